/* Architectures of process groups, built from MPI's communicators: clusters, their leaders, and a broadcast.
 *
 * architectures.c says what they are and checks them; bench/papers.c measures their broadcasts. */
#ifndef ARCHITECTURES_H
#define ARCHITECTURES_H

#include <mpi.h>
#include <stdlib.h>

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
static void broadcast(const layout *layout, void *data, int count, MPI_Datatype type, int root)
{
    int rank, me, from = cluster_of(layout, root), to = leader_of(layout, from);

    MPI_Comm_rank(layout->world, &rank);
    if (rank == root && rank != to) MPI_Send(data, count, type, to, 0, layout->world);
    if (rank == to && rank != root)
        MPI_Recv(data, count, type, root, 0, layout->world, MPI_STATUS_IGNORE);
    if (layout->leaders != MPI_COMM_NULL) {
        MPI_Comm_rank(layout->leaders, &me);
        parent_function parent = layout->of->parent;
        if (me != from)
            MPI_Recv(data, count, type, parent(me, from, layout->clusters), 0,
                     layout->leaders, MPI_STATUS_IGNORE);
        for (int other = 0; other < layout->clusters; other++)
            if (other != me && other != from && parent(other, from, layout->clusters) == me)
                MPI_Send(data, count, type, other, 0, layout->leaders);
    }
    MPI_Bcast(data, count, type, 0, layout->cluster);
}

#endif
