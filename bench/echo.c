/* Two processes send messages to and fro: figure 12 of "Communication Kernel for High Speed Networks in the Parallel
 * Environment LANDA-HSN" (1999).
 *
 * usage: echo MILLISECONDS BYTES...
 *
 * For each size rank 0 prints the rate in Mb/s as the paper has it: the sizes of all messages, sent and received,
 * divided by the time, which is about MILLISECONDS. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sends messages to and fro, and returns the time. */
static double echo(int rank, char *data, int bytes, int count) {
    double start = MPI_Wtime();
    for (int round = 0; round < count; round++) {
        if (rank == 0) {
            MPI_Send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    return MPI_Wtime() - start;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double seconds = argc > 1 ? atof(argv[1]) * 1e-3 : 0.1;
    for (int at = 2; at < argc && rank < 2; at++) {
        int bytes = atoi(argv[at]), count;
        char *data = malloc(bytes ? bytes : 1);
        if (!data) MPI_Abort(MPI_COMM_WORLD, 1);
        memset(data, rank == 0 ? at : 0, bytes);
        double trial = echo(rank, data, bytes, 4);
        if (rank == 0) trial = echo(rank, data, bytes, 4), count = seconds / (trial / 4 + 1e-9) + 1;
        else echo(rank, data, bytes, 4);
        MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
        double time = echo(rank, data, bytes, count);
        wrong |= bytes > 0 && (data[0] != (char)at || data[bytes - 1] != (char)at);
        if (rank == 0) {
            printf("{\"figure\":\"tokens\",\"form\":\"\",\"n\":2,\"bytes\":%d,\"pending\":0,\"unit\":\"Mb/s\",\"value\":%.9g}\n",
                   bytes, 2.0 * bytes * 8 * count / time / 1e6);
            fflush(stdout);
        }
        free(data);
    }
    if (wrong) fprintf(stderr, "the data are wrong\n");
    MPI_Finalize();
    return wrong;
}
