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
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH 4096
#define ROUNDS 200

/* Who is above `leader` on the way to `root`, among `count` leaders. */
typedef int (*parent_function)(int leader, int root, int count);

typedef struct {
    const char *name;
    int is_flat;
    parent_function parent;
} architecture;

/* An architecture's communicators as one process sees them. */
typedef struct {
    const architecture *of;
    int clusters;      /* how many there are */
    int first_sizes;   /* so many clusters have one process more than the others */
    int smaller_size;  /* the size of the others */
    MPI_Comm world;
    MPI_Comm cluster;  /* this process's cluster */
    MPI_Comm leaders;  /* the leaders; MPI_COMM_NULL for all others */
} layout;

static int star(int leader, int root, int count)
{
    (void)leader, (void)count;
    return root;
}

static int row(int leader, int root, int count)
{
    (void)count;
    return leader > root ? leader - 1 : leader + 1;
}

/* A binary tree with leader 0 at its top. Above a leader on the way to the root is the child whose
 * part of the tree has the root, if there is one, and else the leader's own superior. */
static int tree(int leader, int root, int count)
{
    int below = root;

    (void)count;
    while (below > leader) {
        int superior = (below - 1) / 2;
        if (superior == leader) return below;
        below = superior;
    }
    return (leader - 1) / 2;
}

/* Corners are numbered from the root's; a message crosses the highest dimension last. */
static int cube(int leader, int root, int count)
{
    int corner = (leader - root + count) % count, highest = 1;

    while (highest * 2 <= corner) highest *= 2;
    return (corner - highest + root) % count;
}

static const architecture ARCHITECTURES[] = {
    {"flat", 1, star},      {"pipeline", 0, row},   {"daisy", 0, star},
    {"hierarchy", 0, tree}, {"hypercube", 0, cube},
};
#define ARCHITECTURES_COUNT (int)(sizeof ARCHITECTURES / sizeof ARCHITECTURES[0])

/* The cluster of a rank of the world. */
static int cluster_of(const layout *layout, int rank)
{
    int larger = layout->first_sizes * (layout->smaller_size + 1);

    if (rank < larger) return rank / (layout->smaller_size + 1);
    return layout->first_sizes + (rank - larger) / layout->smaller_size;
}

/* The rank that leads a cluster. */
static int leader_of(const layout *layout, int cluster)
{
    int larger = cluster < layout->first_sizes ? cluster : layout->first_sizes;

    return cluster * layout->smaller_size + larger;
}

static layout build(const architecture *of, int clusters)
{
    layout layout = {of, clusters, 0, 0, MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
    MPI_Group everybody, leading;
    int rank, size, *ranks;

    MPI_Comm_dup(MPI_COMM_WORLD, &layout.world);
    MPI_Comm_rank(layout.world, &rank);
    MPI_Comm_size(layout.world, &size);
    if (of->is_flat) layout.clusters = size;
    layout.first_sizes = size % layout.clusters;
    layout.smaller_size = size / layout.clusters;
    MPI_Comm_split(layout.world, cluster_of(&layout, rank), rank, &layout.cluster);

    ranks = malloc((size_t)layout.clusters * sizeof *ranks);
    if (ranks == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < layout.clusters; i++) ranks[i] = leader_of(&layout, i);
    MPI_Comm_group(layout.world, &everybody);
    MPI_Group_incl(everybody, layout.clusters, ranks, &leading);
    MPI_Comm_create(layout.world, leading, &layout.leaders);
    MPI_Group_free(&leading);
    MPI_Group_free(&everybody);
    free(ranks);
    return layout;
}

static void take_down(layout *layout)
{
    if (layout->leaders != MPI_COMM_NULL) MPI_Comm_free(&layout->leaders);
    MPI_Comm_free(&layout->cluster);
    MPI_Comm_free(&layout->world);
}

/* From a root that need not lead: it tells its leader, leaders tell each other, each its cluster. */
static void broadcast(const layout *layout, int *data, int count, int root)
{
    int rank, me, from = cluster_of(layout, root), to = leader_of(layout, from);

    MPI_Comm_rank(layout->world, &rank);
    if (rank == root && rank != to) MPI_Send(data, count, MPI_INT, to, 0, layout->world);
    if (rank == to && rank != root)
        MPI_Recv(data, count, MPI_INT, root, 0, layout->world, MPI_STATUS_IGNORE);
    if (layout->leaders != MPI_COMM_NULL) {
        MPI_Comm_rank(layout->leaders, &me);
        parent_function parent = layout->of->parent;
        if (me != from)
            MPI_Recv(data, count, MPI_INT, parent(me, from, layout->clusters), 0,
                     layout->leaders, MPI_STATUS_IGNORE);
        for (int other = 0; other < layout->clusters; other++)
            if (other != me && other != from && parent(other, from, layout->clusters) == me)
                MPI_Send(data, count, MPI_INT, other, 0, layout->leaders);
    }
    MPI_Bcast(data, count, MPI_INT, 0, layout->cluster);
}

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
    broadcast(layout, sum, count, 0);
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
        broadcast(layout, data, LENGTH, root);
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
