/* One of three programs of one job; this one is MPI and uses DECK for the group (see mixed_deck.c):
 *
 *     mpicc_abi -I.. mixed_mpi.c -o mixed_mpi -ldeck */
#include "example.h"
#include <mpi.h>

int main(int argc, char **argv)
{
    int nodes, number = 2, sum, greatest;
    char name[] = "mixed", text[64];
    deck_group_t g = DECK_NOTHING;
    deck_mbox_t mb;
    deck_msg_t m;
    MPI_Init(&argc, &argv);
    CALL(deck_init(&argc, &argv));
    MPI_Comm_size(MPI_COMM_WORLD, &nodes);
    CALL(deck_mbox_create(&mb, NULL));
    CALL(deck_msg_create(&m, 0));
    MPI_Barrier(MPI_COMM_WORLD); /* from here on the group is there */
    CALL(deck_group_join(&g, &mb, name));

    CALL(deck_msg_pack_string(&m, "MPI"));
    CALL(deck_msg_pack(&m, DECK_INT, &number, 1));
    CALL(deck_group_bcast(&g, &m));
    CALL(deck_group_sync(&g));
    for (int i = sum = 0; i < nodes; i++) {
        CALL(deck_mbox_retrv(&mb, &m));
        CALL(deck_msg_unpack_string(&m, text, sizeof text, NULL));
        CALL(deck_msg_unpack(&m, DECK_INT, &number, 1));
        sum += number;
    }

    double value = 2.5;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);

    CALL(deck_msg_clear(&m));
    CALL(deck_msg_pack(&m, DECK_INT, &sum, 1));
    CALL(deck_collective_allreduce(&g, &m, &m, DECK_MAX));
    CALL(deck_msg_unpack(&m, DECK_INT, &greatest, 1));
    printf("MPI: hellos %d, all processes %d, the group %d\n", sum, (int)(10 * value), greatest);
    CALL(deck_group_leave(&g));
    CALL(deck_done());
    return MPI_Finalize();
}
