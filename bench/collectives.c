/*
 * Figures of the collective operations of one MPI library, measured inside one job.
 *
 *   mpiexec -n N collectives FIGURE [bytes=8,65536] [batches=20] [batch_ms=5] [limit_s=20] [new=1]
 *
 *   barrier            MPI_Barrier, of 0 bytes whatever `bytes` says
 *   broadcast          MPI_Bcast
 *   broadcast_barrier  MPI_Bcast, then MPI_Barrier
 *   group              the same, beside Landeck's named groups: broadcast, retrieve, synchronise
 *   reduce, allreduce, reduce_scatter
 *                      the sum of doubles
 *   gather, scatter, allgather, alltoall
 *   deck_sync, deck_scatter_gather, deck_reduce, deck_barrier
 *                      what deck.c does over DECK: broadcast and barrier, scatter and gather, reduce, barrier
 *   growth             barrier, allreduce and broadcast of 8 bytes, each a form of its own
 *   four               the same of every size, and alltoall; barrier of none
 *   overlap            a non-blocking allreduce while the process computes as long as one takes alone:
 *                      the share of it that the computation did not hide
 *   overlap_call       the same; the time in the call that starts it
 *
 * `bytes` are those of one block: what a process gives or gets, and for gather, scatter, allgather,
 * alltoall and reduce_scatter what one process has for another. A batch is a number of operations back to back, begun
 * by a barrier; where there is a root it moves on with each (i % n), so that no root runs ahead of the
 * others, and a batch has a multiple of n operations. A value is the time of the slowest process, divided by the operations.
 * With new=1 whoever gives data writes them anew before each operation, as a program would; that is part of the
 * time. Without, they stay as they are, and who reads them from where they lie finds them in its own cache.
 * Before a size is timed, every place of the result is checked in every process, for every root.
 *
 * The lines that are printed are those of points.c. programs/bench/src/points does the same over
 * Landeck's own interface, operation for operation.
 */
#define _GNU_SOURCE
#include "batches.h"

static char *outgoing, *incoming, *middle;

/* ------------------------------------------------------------------ what is in a block */

/* A pattern that differs by size, place, sender and receiver; the same in both programs. */
static char pattern(long place, long bytes, int from, int to) {
    return (char)(unsigned char)(place * 131 + bytes * 7 + from * 89 + to * 37 + 1);
}

static void fill_block(char *block, long bytes, int from, int to) {
    for (long place = 0; place < bytes; place++) block[place] = pattern(place, bytes, from, to);
}

static void check_block(const char *block, long bytes, int from, int to) {
    for (long place = 0; place < bytes; place++) {
        if (block[place] != pattern(place, bytes, from, to)) fail("received wrong bytes");
    }
}

/* Whole numbers: their sum over all ranks is exact, in any order. */
static double weight(long place) { return (double)(place % 1000 + 1); }

static void fill_terms(long bytes) {
    double *terms = (double *)outgoing;
    for (long place = 0; place < bytes / 8; place++) terms[place] = weight(place) * (rank + 1);
}

/* The sums of the terms from the first one on. */
static void check_sums(long first, long bytes) {
    const double *sums = (const double *)incoming;
    for (long place = 0; place < bytes / 8; place++) {
        if (sums[place] != weight(first + place) * size * (size + 1) / 2) fail("received a wrong sum");
    }
}

/* The blocks of all ranks, one after the other, as this one sends or gets them. */
static void fill_blocks(long bytes) {
    for (int to = 0; to < size; to++) fill_block(outgoing + to * bytes, bytes, rank, to);
}

static void check_blocks(long bytes, bool to_this_one) {
    for (int from = 0; from < size; from++) check_block(incoming + from * bytes, bytes, from, to_this_one ? rank : 0);
}

/* ------------------------------------------------------------------ the operations */

static void barrier(int root, long bytes) {
    (void)root, (void)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void broadcast(int root, long bytes) { MPI_Bcast(incoming, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD); }

static void broadcast_barrier(int root, long bytes) {
    broadcast(root, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void reduce(int root, long bytes) {
    MPI_Reduce(outgoing, incoming, (int)(bytes / 8), MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
}

static void allreduce(int root, long bytes) {
    (void)root;
    MPI_Allreduce(outgoing, incoming, (int)(bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter(int root, long bytes) {
    (void)root;
    MPI_Reduce_scatter_block(outgoing, incoming, (int)(bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void gather(int root, long bytes) {
    MPI_Gather(outgoing, (int)bytes, MPI_BYTE, incoming, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void scatter(int root, long bytes) {
    MPI_Scatter(outgoing, (int)bytes, MPI_BYTE, incoming, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void scatter_gather(int root, long bytes) {
    MPI_Scatter(outgoing, (int)bytes, MPI_BYTE, middle, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    MPI_Gather(middle, (int)bytes, MPI_BYTE, incoming, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void allgather(int root, long bytes) {
    (void)root;
    MPI_Allgather(outgoing, (int)bytes, MPI_BYTE, incoming, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(int root, long bytes) {
    (void)root;
    MPI_Alltoall(outgoing, (int)bytes, MPI_BYTE, incoming, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* ------------------------------------------------------------------ their checks */

/* Late ones arrive after a while; nobody may leave before the last has come. All look at one clock. */
static void check_barrier(int late, long bytes) {
    struct timespec while_others_wait = {0, 3000000};
    (void)bytes;
    if (late % (size / 4 + 1)) return; /* up to four late ones: their naps add up */
    if (rank == late) nanosleep(&while_others_wait, NULL);
    double arrived = now_s(), last;
    MPI_Barrier(MPI_COMM_WORLD);
    double left = now_s();
    MPI_Allreduce(&arrived, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (left < last) fail("left a barrier before everybody had come");
}

static void check_broadcast(int root, long bytes) {
    memset(incoming, 0, (size_t)bytes);
    if (rank == root) fill_block(incoming, bytes, root, 0);
    broadcast(root, bytes);
    check_block(incoming, bytes, root, 0);
}

static void check_reduce(int root, long bytes) {
    memset(incoming, 0, (size_t)bytes);
    fill_terms(bytes);
    reduce(root, bytes);
    if (rank == root) check_sums(0, bytes);
}

static void check_allreduce(int root, long bytes) {
    memset(incoming, 0, (size_t)bytes);
    fill_terms(bytes);
    allreduce(root, bytes);
    check_sums(0, bytes);
}

static void check_reduce_scatter(int root, long bytes) {
    memset(incoming, 0, (size_t)bytes);
    fill_terms(bytes * size);
    reduce_scatter(root, bytes);
    check_sums(bytes / 8 * rank, bytes);
}

static void check_gather(int root, long bytes) {
    fill_block(outgoing, bytes, rank, 0);
    if (rank == root) memset(incoming, 0, (size_t)(bytes * size));
    gather(root, bytes);
    if (rank == root) check_blocks(bytes, false);
}

static void check_scatter(int root, long bytes) {
    if (rank == root) fill_blocks(bytes);
    memset(incoming, 0, (size_t)bytes);
    scatter(root, bytes);
    check_block(incoming, bytes, root, rank);
}

static void check_scatter_gather(int root, long bytes) {
    if (rank == root) fill_blocks(bytes);
    memset(incoming, 0, (size_t)(bytes * size));
    scatter_gather(root, bytes);
    for (int of = 0; rank == root && of < size; of++) check_block(incoming + of * bytes, bytes, root, of);
}

static void check_allgather(int root, long bytes) {
    fill_block(outgoing, bytes, rank, 0);
    memset(incoming, 0, (size_t)(bytes * size));
    allgather(root, bytes);
    check_blocks(bytes, false);
}

static void check_alltoall(int root, long bytes) {
    fill_blocks(bytes);
    memset(incoming, 0, (size_t)(bytes * size));
    alltoall(root, bytes);
    check_blocks(bytes, true);
}

/* ------------------------------------------------------------------ back to back */

static const struct operation {
    const char *name;
    void (*call)(int root, long bytes);
    void (*check)(int root, long bytes);
    bool has_root;
} operations[] = {
    {"barrier", barrier, check_barrier, true}, /* the check's root is who comes late */
    {"broadcast", broadcast, check_broadcast, true},
    {"broadcast_barrier", broadcast_barrier, check_broadcast, true},
    {"group", broadcast_barrier, check_broadcast, true},
    {"reduce", reduce, check_reduce, true},
    {"allreduce", allreduce, check_allreduce, false},
    {"reduce_scatter", reduce_scatter, check_reduce_scatter, false},
    {"gather", gather, check_gather, true},
    {"scatter", scatter, check_scatter, true},
    {"allgather", allgather, check_allgather, false},
    {"alltoall", alltoall, check_alltoall, false},
    /* what deck.c does over DECK */
    {"deck_sync", broadcast_barrier, check_broadcast, true},
    {"deck_scatter_gather", scatter_gather, check_scatter_gather, true},
    {"deck_reduce", reduce, check_reduce, true},
    {"deck_barrier", barrier, check_barrier, true},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static const struct operation *find_operation(const char *name) {
    for (int i = 0; i < OPERATIONS; i++) {
        if (!strcmp(operations[i].name, name)) return &operations[i];
    }
    return NULL;
}

/* The one that is measured now. */
static const struct operation *operation;

/* What this process gives to the operation, written anew. */
static void renew_data(const struct operation *one, int root, long bytes, int64_t turn) {
    bool gives = !one->has_root || one->call == gather || one->call == reduce || rank == root;
    bool is_for_each = one->call == scatter || one->call == alltoall || one->call == scatter_gather ||
                       one->call == reduce_scatter;
    if (!gives || one->call == barrier) return;
    char *data = one->call == broadcast || one->call == broadcast_barrier ? incoming : outgoing;
    renew(data, is_for_each ? bytes * size : bytes, turn);
}

/* Whether the root moves on from one to the next. */
static bool moves(const struct operation *one) { return one->has_root && one->call != barrier; }

static double back_to_back(int64_t iterations, long bytes) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_s();
    for (int64_t i = 0; i < iterations; i++) {
        if (settings.is_new) renew_data(operation, (int)(i % size), bytes, i);
        operation->call((int)(i % size), bytes);
    }
    return now_s() - start;
}

static void measure_operation(const char *figure, const char *form, const struct operation *wanted, long bytes) {
    operation = wanted;
    for (int root = 0; root < (operation->has_root ? size : 1); root++) operation->check(root, bytes);
    run_batches(&(struct batches){.figure = figure, .form = form, .batch = back_to_back, .bytes = bytes,
                                  .followers = size - 1, .slowest_counts = true, .divisor = 1,
                                  .step = moves(operation) ? size : 1});
}

static void measure_every_size(const char *figure, const struct operation *wanted) {
    if (wanted->call == barrier) {
        measure_operation(figure, "", wanted, 0);
        return;
    }
    for (int i = 0; i < settings.bytes.count; i++) measure_operation(figure, "", wanted, settings.bytes.values[i]);
}

static void measure_growth(void) {
    measure_operation("growth", "barrier", find_operation("barrier"), 0);
    measure_operation("growth", "allreduce", find_operation("allreduce"), 8);
    measure_operation("growth", "broadcast", find_operation("broadcast"), 8);
}

/* Barrier, and three others of every size. */
static void measure_four(const char *figure) {
    static const char *const names[] = {"allreduce", "broadcast", "alltoall"};
    measure_operation(figure, "barrier", find_operation("barrier"), 0);
    for (int i = 0; i < settings.bytes.count; i++) {
        for (int j = 0; j < 3; j++) {
            measure_operation(figure, names[j], find_operation(names[j]), settings.bytes.values[i]);
        }
    }
}

/* ------------------------------------------------------------------ beside a computation */

/* Keeps a core busy and touches no memory; the result is used, so that it is not left out. */
static double compute(int64_t turns) {
    static volatile double result;
    double start = now_s(), value = 1;
    for (int64_t turn = 0; turn < turns; turn++) value = value * 0.999999 + 1e-6;
    result = value;
    (void)result;
    return now_s() - start;
}

/* Allreduces, each with so many turns of computation between its start and its wait. */
static double reduce_beside(int64_t iterations, int64_t turns, long bytes, double *starting_s) {
    double begin = now_s();
    *starting_s = 0;
    for (int64_t i = 0; i < iterations; i++) {
        MPI_Request request;
        double start = now_s();
        MPI_Iallreduce(outgoing, incoming, (int)(bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        *starting_s += now_s() - start;
        if (turns > 0) (void)compute(turns);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return now_s() - begin;
}

/* What a batch says, in the slowest process: seconds for all of its iterations. */
struct overlap {
    double alone, computing, together, starting;
};

static struct overlap overlap_batch(int64_t iterations, int64_t turns, long bytes) {
    struct overlap own = {0}, slowest;
    double ignored;
    MPI_Barrier(MPI_COMM_WORLD);
    own.alone = reduce_beside(iterations, 0, bytes, &ignored);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int64_t i = 0; i < iterations; i++) own.computing += compute(turns);
    MPI_Barrier(MPI_COMM_WORLD);
    own.together = reduce_beside(iterations, turns, bytes, &own.starting);
    MPI_Allreduce(&own, &slowest, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* Iterations that fill a batch, and turns that take as long as one operation: as rank 0 finds them. */
static void plan_overlap(long bytes, int64_t plan[2]) {
    enum { TRIALS = 10, TURNS = 1000000 };
    double ignored, alone_s = 0;
    for (int pass = 0; pass < 2; pass++) { /* the first one warms up */
        MPI_Barrier(MPI_COMM_WORLD);
        alone_s = reduce_beside(TRIALS, 0, bytes, &ignored) / TRIALS;
    }
    plan[0] = 1 + (int64_t)(1e-3 * settings.batch_ms / alone_s);
    plan[1] = 1 + (int64_t)(alone_s / compute(TURNS) * TURNS);
    MPI_Bcast(plan, 16, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void measure_overlap(const char *figure, bool is_call) {
    for (int i = 0; i < settings.bytes.count; i++) {
        long bytes = settings.bytes.values[i];
        int64_t plan[2], go_on = 1;
        check_allreduce(0, bytes);
        plan_overlap(bytes, plan);
        double stop_s = now_s() + settings.limit_s;
        for (int done = 0; go_on; done++) {
            struct overlap took = overlap_batch(plan[0], plan[1], bytes);
            if (rank == 0 && is_call) print_value(figure, "", bytes, 0, "ns", 1e9 * took.starting / (double)plan[0]);
            if (rank == 0 && !is_call) {
                print_value(figure, "", bytes, 0, "%", 100 * (took.together - took.computing) / took.alone);
            }
            go_on = done + 1 < settings.batches && now_s() < stop_s;
            MPI_Bcast(&go_on, 8, MPI_BYTE, 0, MPI_COMM_WORLD);
        }
        check_sums(0, bytes);
    }
}

/* ------------------------------------------------------------------ the command line */

/* Room for a block of every rank. Both are touched by the checks, before anything is timed. */
static void allocate_buffers(void) {
    size_t room = (size_t)largest_bytes() * (size_t)size;
    char **buffers[] = {&outgoing, &incoming, &middle};
    for (int i = 0; i < 3; i++) {
        if (posix_memalign((void **)buffers[i], 4096, room)) fail("no memory for the buffers");
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    const char *figure = parse_command_line(argc, argv);
    const struct operation *wanted = find_operation(figure);
    for (int i = 0; i < settings.bytes.count; i++) {
        if (settings.bytes.values[i] % 8) fail("bytes must be a multiple of 8: sums are of doubles");
    }
    allocate_buffers();
    if (wanted) measure_every_size(figure, wanted);
    else if (!strcmp(figure, "growth")) measure_growth();
    else if (!strcmp(figure, "four")) measure_four(figure);
    else if (!strcmp(figure, "overlap")) measure_overlap(figure, false);
    else if (!strcmp(figure, "overlap_call")) measure_overlap(figure, true);
    else fail("unknown figure; they stand at the head of bench/collectives.c");

    free(outgoing);
    free(incoming);
    free(middle);
    MPI_Finalize();
    return 0;
}
