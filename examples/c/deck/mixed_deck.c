/* One of three programs of one job, each in another language or library; this one is DECK:
 *
 *     landeck run -n 1 ./mixed_deck : -n 1 ./mixed_mpi : -n 1 ./mixed
 *
 * All are members of the group "mixed": everybody says hello to everybody, they wait for each other, and add up.
 * What all processes of the job do together is one operation, whatever each of them calls it. */
#include "example.h"

int main(int argc, char **argv)
{
    int nodes, number = 1, sum, world_sum;
    char name[] = "mixed", text[64];
    deck_group_t all, g = DECK_NOTHING;
    deck_mbox_t mb;
    deck_msg_t m;
    CALL(deck_init(&argc, &argv));
    CALL(deck_node_num(&nodes));
    CALL(deck_group_world(&all));
    CALL(deck_mbox_create(&mb, NULL));
    CALL(deck_msg_create(&m, 0));
    CALL(deck_group_create(&g, name, nodes));
    CALL(deck_collective_barrier(&all)); /* from here on the group is there */
    CALL(deck_group_join(&g, &mb, name));

    CALL(deck_msg_pack_string(&m, "DECK"));
    CALL(deck_msg_pack(&m, DECK_INT, &number, 1));
    CALL(deck_group_bcast(&g, &m));
    CALL(deck_group_sync(&g));
    for (int i = sum = 0; i < nodes; i++) {
        CALL(deck_mbox_retrv(&mb, &m));
        CALL(deck_msg_unpack_string(&m, text, sizeof text, NULL));
        CALL(deck_msg_unpack(&m, DECK_INT, &number, 1));
        sum += number;
    }

    /* All processes of the job, as MPI_COMM_WORLD and as Rust's world. */
    double value = 1.5;
    CALL(deck_msg_clear(&m));
    CALL(deck_msg_pack(&m, DECK_DOUBLE, &value, 1));
    CALL(deck_collective_allreduce(&all, &m, &m, DECK_SUM));
    CALL(deck_msg_unpack(&m, DECK_DOUBLE, &value, 1));
    world_sum = (int)(10 * value);

    /* The members of the group. */
    CALL(deck_msg_clear(&m));
    CALL(deck_msg_pack(&m, DECK_INT, &sum, 1));
    CALL(deck_collective_allreduce(&g, &m, &m, DECK_MAX));
    CALL(deck_msg_unpack(&m, DECK_INT, &number, 1));
    printf("DECK: hellos %d, all processes %d, the group %d\n", sum, world_sum, number);
    CALL(deck_group_leave(&g));
    return deck_done();
}
