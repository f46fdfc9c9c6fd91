/* The root of a function by N-section, with a master.
 *
 *   mpiexec -n 6 ./roots [TOLERANCE] [relay]
 *
 * N processes cut the interval into N parts, and each looks whether the sign changes in its own. They tell the master,
 * which broadcasts the ends of the next interval: by MPI_Bcast, or with "relay" by messages that route themselves through
 * a hypercube of the processes. The application of "Network-Specific Performance Enhancements for PVM" (1997). */
#include "search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    double tolerance = argc > 1 ? atof(argv[1]) : 1e-12;
    int is_relayed = argc > 2 && !strcmp(argv[2], "relay"), rank, size;
    long messages = 0, all = 0;
    interval found = {2, 4};

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rounds = find_root(&found, tolerance, is_relayed, &messages);
    MPI_Reduce(&messages, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && rounds < 0) printf("there is no change of sign\n");
    if (rank == 0 && rounds >= 0) printf("root %.10f after %d rounds\n", (found.from + found.to) / 2, rounds);
    if (rank == 0 && is_relayed) printf("%ld messages were relayed to %d others\n", all, size - 1);
    MPI_Finalize();
    return rounds < 0 ? 2 : 0;
}
