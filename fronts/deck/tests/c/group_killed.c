/* A member dies between broadcast and synchronisation: everybody else has the broadcast, and is told. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    deck_group_t g = DECK_NOTHING;
    deck_mbox_t mb;
    deck_msg_t m;
    const char *name = "mortals";
    int number = 0, error, members;
    begin(&argc, &argv);
    int victim = nodes - 1;
    OK(deck_mbox_create(&mb, NULL));
    OK(deck_msg_create(&m, 0));
    if (node == 0) OK(deck_group_create(&g, name, nodes));
    OK(deck_collective_barrier(&all));
    OK(deck_group_join(&g, &mb, name));
    OK(deck_group_sync(&g));
    if (node == victim) {
        number = 4711;
        OK(deck_msg_pack(&m, DECK_INT, &number, 1));
        OK(deck_group_bcast(&g, &m));
        kill(getpid(), SIGKILL);
    }
    /* It tells of the death, whether it has begun with the victim as a member or without. */
    FAILS(DECK_EMEMBERDIED, deck_group_sync_timed(&g, 100000));
    OK(deck_mbox_retrv_timed(&mb, &m, 100000));
    OK(deck_msg_unpack(&m, DECK_INT, &number, 1));
    CHECK(number == 4711);
    FAILS(DECK_EWOULDBLOCK, deck_mbox_retrv_try(&mb, &m));
    OK(deck_group_sync_timed(&g, 100000));
    OK(deck_group_view(&g, NULL, 0, &members));
    CHECK(members == nodes - 1);
    /* Collective operations go on without it. */
    number = 1;
    do {
        OK(deck_msg_clear(&m));
        OK(deck_msg_pack(&m, DECK_INT, &number, 1));
    } while ((error = deck_collective_allreduce(&g, &m, &m, DECK_SUM)) == DECK_EDEAD);
    CHECK(error == DECK_OK);
    OK(deck_msg_unpack(&m, DECK_INT, &number, 1));
    CHECK(number == nodes - 1);
    printf("group: node %d goes on\n", node);
    fflush(stdout);
    OK(deck_group_leave(&g));
    return deck_done() != DECK_OK;
}
