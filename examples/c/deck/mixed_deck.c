/* One of three programs of one job, each in another language or library; this one is DECK:
 *
 *     landeck run -n 1 ./mixed_deck : -n 1 ./mixed_mpi : -n 1 ./mixed
 *
 * All are members of the group "mixed": everybody says hello to everybody, they wait for each other, and add up.
 * What all processes of the job do together is one operation, whatever each of them calls it. */
#include <deck.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int nodes, number = 1, sum, world_sum;
    const char *name = "mixed";
    char text[64];
    deck_group_t all, g = DECK_NOTHING;
    deck_mbox_t mb;
    deck_msg_t m;
    DECK_CHECK(deck_init(&argc, &argv));
    DECK_CHECK(deck_node_num(&nodes));
    DECK_CHECK(deck_group_world(&all));
    DECK_CHECK(deck_mbox_create(&mb, NULL));
    DECK_CHECK(deck_msg_create(&m, 0));
    DECK_CHECK(deck_group_create(&g, name, nodes));
    DECK_CHECK(deck_collective_barrier(&all)); /* from here on the group is there */
    DECK_CHECK(deck_group_join(&g, &mb, name));

    DECK_CHECK(deck_msg_pack_string(&m, "DECK"));
    DECK_CHECK(deck_msg_pack(&m, DECK_INT, &number, 1));
    DECK_CHECK(deck_group_bcast(&g, &m));
    DECK_CHECK(deck_group_sync(&g));
    for (int i = sum = 0; i < nodes; i++) {
        DECK_CHECK(deck_mbox_retrv(&mb, &m));
        DECK_CHECK(deck_msg_unpack_string(&m, text, sizeof text, NULL));
        DECK_CHECK(deck_msg_unpack(&m, DECK_INT, &number, 1));
        sum += number;
    }

    /* All processes of the job, as MPI_COMM_WORLD and as Rust's world. */
    double value = 1.5;
    DECK_CHECK(deck_msg_clear(&m));
    DECK_CHECK(deck_msg_pack(&m, DECK_DOUBLE, &value, 1));
    DECK_CHECK(deck_collective_allreduce(&all, &m, &m, DECK_SUM));
    DECK_CHECK(deck_msg_unpack(&m, DECK_DOUBLE, &value, 1));
    world_sum = (int)(10 * value);

    /* The members of the group. */
    DECK_CHECK(deck_msg_clear(&m));
    DECK_CHECK(deck_msg_pack(&m, DECK_INT, &sum, 1));
    DECK_CHECK(deck_collective_allreduce(&g, &m, &m, DECK_MAX));
    DECK_CHECK(deck_msg_unpack(&m, DECK_INT, &number, 1));
    printf("DECK: hellos %d, all processes %d, the group %d\n", sum, world_sum, number);
    DECK_CHECK(deck_group_leave(&g));
    DECK_CHECK(deck_done());
    return 0;
}
