/* One of three programs of one job; this one is MPI and uses DECK for the group (see mixed_deck.c):
 *
 *     mpicc_abi mixed_mpi.c -o mixed_mpi -ldeck */
#include <deck.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int nodes, number = 2, sum, greatest;
    const char *name = "mixed";
    char text[64];
    deck_group_t g = DECK_NOTHING;
    deck_mbox_t mb;
    deck_msg_t m;
    MPI_Init(&argc, &argv);
    DECK_CHECK(deck_init(&argc, &argv));
    MPI_Comm_size(MPI_COMM_WORLD, &nodes);
    DECK_CHECK(deck_mbox_create(&mb, NULL));
    DECK_CHECK(deck_msg_create(&m, 0));
    MPI_Barrier(MPI_COMM_WORLD); /* from here on the group is there */
    DECK_CHECK(deck_group_join(&g, &mb, name));

    DECK_CHECK(deck_msg_pack_string(&m, "MPI"));
    DECK_CHECK(deck_msg_pack(&m, DECK_INT, &number, 1));
    DECK_CHECK(deck_group_bcast(&g, &m));
    DECK_CHECK(deck_group_sync(&g));
    for (int i = sum = 0; i < nodes; i++) {
        DECK_CHECK(deck_mbox_retrv(&mb, &m));
        DECK_CHECK(deck_msg_unpack_string(&m, text, sizeof text, NULL));
        DECK_CHECK(deck_msg_unpack(&m, DECK_INT, &number, 1));
        sum += number;
    }

    double value = 2.5;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);

    DECK_CHECK(deck_msg_clear(&m));
    DECK_CHECK(deck_msg_pack(&m, DECK_INT, &sum, 1));
    DECK_CHECK(deck_collective_allreduce(&g, &m, &m, DECK_MAX));
    DECK_CHECK(deck_msg_unpack(&m, DECK_INT, &greatest, 1));
    printf("MPI: hellos %d, all processes %d, the group %d\n", sum, (int)(10 * value), greatest);
    DECK_CHECK(deck_group_leave(&g));
    DECK_CHECK(deck_done());
    return MPI_Finalize();
}
