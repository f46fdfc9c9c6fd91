/* Semaphores and shared segments are memory of one host: another host is told so, with what to do. */
#include "check.h"

int main(int argc, char **argv)
{
    deck_sem_t sem = DECK_NOTHING;
    deck_segment_t segment = DECK_NOTHING;
    begin(&argc, &argv);
    if (node == 0) {
        OK(deck_sem_create(&sem, "of the first host", 1));
        OK(deck_segment_create(&segment, "of the first host", 64));
    }
    OK(deck_collective_barrier(&all));
    /* The last node is on another host. */
    if (node == nodes - 1) {
        FAILS(DECK_EUNKNOWN, deck_sem_fetch(&sem, "of the first host"));
        CHECK(strstr(deck_error_text(), "no semaphore of this job has the name \"of the first host\" on this host"));
        CHECK(strstr(deck_error_text(), "those of n1 cannot be used here"));
        FAILS(DECK_EUNKNOWN, deck_segment_fetch(&segment, "of the first host"));
        CHECK(strstr(deck_error_text(), "have processes of several hosts use mailboxes or groups"));
    }
    return end("elsewhere");
}
