/* Who comes into a job that runs joins its group, and the operations are of all of them from then on. */
#include "check.h"
#include <unistd.h>

enum { FIRST = 2, IN_THE_END = 3 };

int main(int argc, char **argv)
{
    deck_group_t g = DECK_NOTHING;
    deck_mbox_t mb;
    deck_msg_t m;
    const char *name = "elastic";
    int sum = 0, members, before = 0, id, one = 1;
    OK(deck_init(&argc, &argv));
    OK(deck_mbox_create(&mb, NULL));
    OK(deck_msg_create(&m, 0));
    /* Whoever comes first makes it. */
    int error = deck_group_create(&g, name, FIRST);
    if (error == DECK_ETAKEN) error = deck_group_open(&g, name);
    CHECK(error == DECK_OK);
    OK(deck_group_join(&g, &mb, name));
    OK(deck_group_id(&g, &id));
    /* All find the same in each operation, so all end with the same one. */
    while (sum < IN_THE_END) {
        OK(deck_msg_clear(&m));
        OK(deck_msg_pack(&m, DECK_INT, &one, 1));
        OK(deck_collective_allreduce(&g, &m, &m, DECK_SUM));
        OK(deck_msg_unpack(&m, DECK_INT, &sum, 1));
        OK(deck_group_size(&g, &members));
        CHECK(members == sum);
        if (sum != before) printf("elastic: member %d is one of %d\n", id, sum);
        fflush(stdout);
        before = sum;
        usleep(1000);
    }
    OK(deck_group_leave(&g));
    OK(deck_group_close(&g));
    OK(deck_mbox_destroy(&mb));
    OK(deck_msg_destroy(&m));
    return deck_done() != DECK_OK;
}
