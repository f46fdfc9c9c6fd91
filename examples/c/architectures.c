/* Architectures of process groups, built from MPI's communicators.
 *
 *   mpiexec -n 12 ./architectures [CLUSTERS]
 *
 * The processes are divided into clusters, as even as can be; the first of a cluster leads it. An
 * architecture says who talks to whom among the leaders: a tree from any root, which a broadcast
 * goes down and a reduction goes up. Leaders serve their own clusters. The architectures are those
 * of Erciyes, Dagdeviren and Payli, "Group communication architectures for clusters" (2005): a flat
 * group, clusters in a row (the pipeline), leaders as a group of their own (the daisy), a tree of
 * clusters (the hierarchy), clusters at the corners of a cube (the hypercube).
 *
 * Each is checked against MPI_Bcast and MPI_Allreduce from every root, then measured. */
#include "architectures.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH 4096
#define ROUNDS 200

/* Sums for everybody: in the clusters, among the leaders up to leader 0, and the same way back. */
static void sum_for_all(const layout *layout, const int *data, int *sum, int *room, int count)
{
    int me;

    MPI_Reduce(data, sum, count, MPI_INT, MPI_SUM, 0, layout->cluster);
    if (layout->leaders != MPI_COMM_NULL) {
        parent_function parent = layout->of->parent;
        MPI_Comm_rank(layout->leaders, &me);
        for (int other = layout->clusters - 1; other > 0; other--) {
            if (other == me || parent(other, 0, layout->clusters) != me) continue;
            MPI_Recv(room, count, MPI_INT, other, 1, layout->leaders, MPI_STATUS_IGNORE);
            MPI_Reduce_local(room, sum, count, MPI_INT, MPI_SUM);
        }
        if (me != 0)
            MPI_Send(sum, count, MPI_INT, parent(me, 0, layout->clusters), 1, layout->leaders);
    }
    broadcast(layout, sum, count, MPI_INT, 0);
}

/* How many values differ from what MPI's own operations give, from every root. */
static int differences(const layout *layout, int *data, int *sum, int *room)
{
    int rank, size, wrong = 0;
    int *wanted = malloc(LENGTH * sizeof *wanted);

    if (wanted == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_rank(layout->world, &rank);
    MPI_Comm_size(layout->world, &size);
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < LENGTH; i++) wanted[i] = data[i] = rank * LENGTH + i;
        MPI_Bcast(wanted, LENGTH, MPI_INT, root, layout->world);
        broadcast(layout, data, LENGTH, MPI_INT, root);
        wrong += memcmp(wanted, data, LENGTH * sizeof *data) != 0;
    }
    for (int i = 0; i < LENGTH; i++) data[i] = (rank + 1) * i;
    MPI_Allreduce(data, wanted, LENGTH, MPI_INT, MPI_SUM, layout->world);
    sum_for_all(layout, data, sum, room, LENGTH);
    wrong += memcmp(wanted, sum, LENGTH * sizeof *sum) != 0;
    free(wanted);
    return wrong;
}

/* The time of one sum of `count` numbers for all, in microseconds. */
static double time_us(const layout *layout, int *data, int *sum, int *room, int count)
{
    MPI_Barrier(layout->world);
    double start = MPI_Wtime();
    for (int i = 0; i < ROUNDS; i++) sum_for_all(layout, data, sum, room, count);
    double own = (MPI_Wtime() - start) / ROUNDS * 1e6, longest;
    MPI_Allreduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, layout->world);
    return longest;
}

int main(int argc, char **argv)
{
    static int data[LENGTH], sum[LENGTH], room[LENGTH];
    int rank, size, clusters, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    clusters = argc > 1 ? atoi(argv[1]) : (size + 2) / 3;
    if (clusters < 1 || clusters > size) {
        if (rank == 0)
            fprintf(stderr, "CLUSTERS is %s; it must be 1 to %d, the number of processes\n",
                    argv[1], size);
        MPI_Finalize();
        return 2;
    }
    for (int i = 0; i < ARCHITECTURES_COUNT; i++) {
        layout layout = build(&ARCHITECTURES[i], clusters);
        int own = differences(&layout, data, sum, room), all;
        MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        double shorter = time_us(&layout, data, sum, room, 1);
        double longer = time_us(&layout, data, sum, room, LENGTH);
        if (rank == 0)
            printf("%-10s %3d clusters: sums of 4 B in %.1f us, of 16 KiB in %.1f us\n",
                   layout.of->name, layout.clusters, shorter, longer);
        if (rank == 0 && all > 0) printf("%s: %d results are wrong\n", layout.of->name, all);
        wrong += all;
        take_down(&layout);
    }
    if (rank == 0 && wrong == 0)
        printf("architectures: %d processes in %d clusters agree\n", size, clusters);
    MPI_Finalize();
    return wrong > 0;
}
