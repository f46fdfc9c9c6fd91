/* One node dies in the middle of everything; the others are told, and nobody hangs. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    deck_mbox_t mb, theirs;
    deck_sem_t sem;
    deck_msg_t m;
    int number = 1, error;
    begin(&argc, &argv);
    int victim = nodes - 1;
    OK(deck_msg_create(&m, 0));
    OK(deck_msg_pack(&m, DECK_INT, &number, 1));
    if (node == victim) {
        OK(deck_mbox_create(&mb, "victim"));
        OK(deck_sem_create(&sem, "held", 1));
        OK(deck_sem_p(&sem));
    }
    OK(deck_collective_barrier(&all));
    if (node == victim) {
        /* Only when all have found what it made. */
        OK(deck_collective_barrier(&all));
        kill(getpid(), SIGKILL);
    }
    OK(deck_mbox_fetch(&theirs, "victim"));
    OK(deck_sem_fetch(&sem, "held"));
    OK(deck_collective_barrier(&all));
    /* The unit was held; whoever waits for it is told. */
    do error = deck_sem_p_timed(&sem, 100000);
    while (error == DECK_OK && deck_sem_v(&sem) == DECK_OK);
    CHECK(error == DECK_EOWNERDIED);
    FAILS(DECK_EDEAD, deck_collective_barrier(&all));
    FAILS(DECK_EDEAD, deck_mbox_post(&theirs, &m));
    while ((error = deck_mbox_fetch(&theirs, "victim")) == DECK_OK) OK(deck_mbox_destroy(&theirs));
    CHECK(error == DECK_EUNKNOWN || error == DECK_EDEAD || error == DECK_EGONE);
    CHECK(strlen(deck_error_text()) > 0);
    printf("killed: node %d was told\n", node);
    fflush(stdout);
    return deck_done() != DECK_OK;
}
