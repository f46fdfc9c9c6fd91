/* A collective operation under SimGrid's SMPI: prints its simulated time for each size, from the moment
 * at which all call it to the last return, in microseconds. compare.sh runs it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double time_us(const char *operation, int bytes)
{
    char *in = calloc(1, bytes + 8), *out = calloc(1, bytes + 8);
    double own = MPI_Wtime(), latest, end, last = 0;
    /* All begin a second after the last has come here. */
    MPI_Allreduce(&own, &latest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    double start = latest + 1.0;
    while (MPI_Wtime() < start)
        usleep((useconds_t)((start - MPI_Wtime()) * 1e6) + 1);
    if (strcmp(operation, "broadcast") == 0)
        MPI_Bcast(in, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    else
        MPI_Allreduce(in, out, bytes / 8, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    end = MPI_Wtime();
    MPI_Reduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    free(in);
    free(out);
    return (last - start) * 1e6;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int at = 2; at < argc; at++) {
        double us = time_us(argv[1], atoi(argv[at]));
        if (rank == 0)
            printf("%s %.3f\n", argv[at], us);
    }
    MPI_Finalize();
    return 0;
}
