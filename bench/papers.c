/*
 * The measurements of four papers on group communication, over any MPI library.
 *
 *   mpiexec -n N papers FIGURE [bytes=4,40000] [iterations=20] [batches=5] [limit_s=20] [ways=mpi,daisy@8]
 *
 *   service      a broadcast and a barrier: DECK's group service, 2000
 *   collective   scatter and gather, reduce, barrier: DECK's collective operations, 2003
 *   delivery     a broadcast until its last receiver has it, by the ways in turn. A way is an architecture of 2005 with its
 *                number of clusters, built from communicators; `mpi` is MPI_Bcast
 *   roots        the root of a function, 1997. A value is the time of one round. The master broadcasts each interval by
 *                MPI_Bcast (`mpi`), or by messages that route themselves through a hypercube (`relay`)
 *
 * The root is always rank 0, as in the papers. In a batch are `iterations` operations, one after the other. No batch of
 * service, collective and delivery but the first begins after limit_s; in the first two, of each row. The lines
 * that are printed are those of points.c. programs/bench/src/points does the same over Landeck's own interface, in
 * delivery.rs, repeated.rs and roots.rs.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include "../examples/c/architectures.h"
#include "../examples/c/search.h"
#include "measure.h"

enum { WARM = 12, NAME_MAX_BYTES = 64 };

static char *own, *every;

static char pattern(long place, int to) { return (char)(unsigned char)(place * 131 + to * 37 + 1); }

static void fill(char *block, long bytes, int to) {
    for (long place = 0; place < bytes; place++) block[place] = pattern(place, to);
}

static void check(const char *block, long bytes, int to) {
    for (long place = 0; place < bytes; place++)
        if (block[place] != pattern(place, to)) fail("received wrong bytes");
}

/* Whether there is time for another batch, as the first one began then: rank 0 says so to all. */
static bool goes_on(double begun) {
    int word = now_s() - begun < settings.limit_s;
    MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return word;
}

/* ------------------------------------------------------------------ 2000 and 2003 */

static void broadcast_sync(long bytes) {
    MPI_Bcast(own, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void scatter_gather(long bytes) {
    MPI_Scatter(every, (int)bytes, MPI_BYTE, own, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Gather(own, (int)bytes, MPI_BYTE, every, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void reduce(long bytes) {
    MPI_Reduce(own, every, (int)(bytes / 4), MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void barrier(long bytes) {
    (void)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Every place of the result is looked at, in every process. */
static void check_row(void (*call)(long), long bytes) {
    int *terms = (int *)own, *sums = (int *)every;
    memset(own, 0, (size_t)bytes);
    if (call == broadcast_sync && rank == 0) fill(own, bytes, 0);
    if (call == scatter_gather && rank == 0)
        for (int to = 0; to < size; to++) fill(every + to * bytes, bytes, to);
    if (call == reduce)
        for (long place = 0; place < bytes / 4; place++) terms[place] = rank + 1;
    for (int warm = 0; warm < WARM; warm++) call(bytes);
    if (call == broadcast_sync) check(own, bytes, 0);
    if (call == scatter_gather) check(own, bytes, rank);
    if (call == scatter_gather && rank == 0)
        for (int to = 0; to < size; to++) check(every + to * bytes, bytes, to);
    if (call == reduce && rank == 0)
        for (long place = 0; place < bytes / 4; place++)
            if (sums[place] != size * (size + 1) / 2) fail("received a wrong sum");
}

static void measure_row(const char *figure, const char *form, void (*call)(long), long bytes) {
    check_row(call, bytes);
    double begun = now_s();
    for (int batch = 0; batch < settings.batches && (batch == 0 || goes_on(begun)); batch++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now_s();
        for (int i = 0; i < settings.iterations; i++) call(bytes);
        double elapsed = now_s() - start;
        if (rank == 0) print_value(figure, form, bytes, 0, "ns", 1e9 * elapsed / settings.iterations);
    }
}

static void service(void) {
    for (int i = 0; i < settings.bytes.count; i++)
        measure_row("service", "broadcast-sync", broadcast_sync, settings.bytes.values[i]);
}

static void collective(void) {
    for (int i = 0; i < settings.bytes.count; i++)
        measure_row("collective", "scatter-gather", scatter_gather, settings.bytes.values[i]);
    for (int i = 0; i < settings.bytes.count; i++) measure_row("collective", "reduce", reduce, settings.bytes.values[i]);
    measure_row("collective", "barrier", barrier, 0);
}

/* ------------------------------------------------------------------ 2005 */

typedef struct {
    char name[NAME_MAX_BYTES];
    bool is_own; /* MPI_Bcast */
    layout layout;
} way;

static void deliver(const way *by, long bytes) {
    if (by->is_own) MPI_Bcast(own, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    else broadcast(&by->layout, own, (int)bytes, MPI_BYTE, 0);
}

static way way_of(const char *name, size_t length) {
    way made = {.is_own = false};
    if (length >= NAME_MAX_BYTES) fail("the name of a way is too long");
    memcpy(made.name, name, length);
    made.is_own = !strcmp(made.name, "mpi");
    char *at = strchr(made.name, '@');
    int clusters = at ? atoi(at + 1) : 0;
    for (int i = 0; i < ARCHITECTURES_COUNT && !made.is_own; i++) {
        const architecture *of = &ARCHITECTURES[i];
        if (!at || strncmp(of->name, made.name, (size_t)(at - made.name)) || of->name[at - made.name]) continue;
        if (clusters < 1 || clusters > size) fail("a way needs 1 cluster at least, and at most one for each process");
        made.layout = build(of, clusters);
        return made;
    }
    if (!made.is_own) fail("a way is mpi, or an architecture and its number of clusters, such as daisy@8");
    return made;
}

/* Everybody looks at the one clock of the machine: from the root's call to the last return, in seconds. */
static double mean_delivery_s(const way *by, long bytes, double *begun, double *ended, double *last) {
    for (int i = 0; i < settings.iterations; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        begun[i] = now_s();
        deliver(by, bytes);
        ended[i] = now_s();
    }
    MPI_Reduce(ended, last, settings.iterations, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    double sum = 0;
    for (int i = 0; rank == 0 && i < settings.iterations; i++) sum += last[i] - begun[i];
    return sum / settings.iterations;
}

static void delivery(void) {
    static way ways[2 * LIST_MAX];
    int count = 0;
    double *times = malloc(3 * sizeof *times * (size_t)settings.iterations);
    if (!times) fail("there is no memory left");
    for (const char *name = settings.ways; *name && count < 2 * LIST_MAX;) {
        size_t length = strcspn(name, ",");
        ways[count++] = way_of(name, length);
        name += length + (name[length] == ',');
    }
    for (int by = 0; by < count; by++) {
        for (int i = 0; i < settings.bytes.count; i++) {
            long bytes = settings.bytes.values[i];
            for (int warm = 0; warm < WARM / 4; warm++) {
                memset(own, 0, (size_t)bytes);
                if (rank == 0) fill(own, bytes, warm);
                deliver(&ways[by], bytes);
                check(own, bytes, warm);
            }
        }
    }
    double begun = now_s();
    for (int batch = 0; batch < settings.batches && (batch == 0 || goes_on(begun)); batch++) {
        for (int place = 0; place < count; place++) {
            const way *by = &ways[(batch + place) % count];
            for (int i = 0; i < settings.bytes.count; i++) {
                long bytes = settings.bytes.values[i], iterations = settings.iterations;
                double mean = mean_delivery_s(by, bytes, times, times + iterations, times + 2 * iterations);
                if (rank == 0) print_value("delivery", by->name, bytes, 0, "ns", 1e9 * mean);
            }
        }
    }
    for (int by = 0; by < count; by++)
        if (!ways[by].is_own) take_down(&ways[by].layout);
    free(times);
}

/* ------------------------------------------------------------------ 1997 */

static int search(bool is_relayed, long *messages) {
    interval found = {2, 4};
    int rounds = find_root(&found, 1e-12, is_relayed, messages);
    if (rounds < 1 || quartic(found.from) * quartic(found.to) > 0) fail("there is no root in the interval that was found");
    return rounds;
}

static void roots(void) {
    static const char *const forms[] = {"mpi", "relay"};
    for (int form = 0; form < 2; form++) {
        long messages = 0, all = 0;
        int rounds = search(form, &messages);
        MPI_Reduce(&messages, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0 && form) print_value("roots", forms[form], 0, 0, "messages", (double)all / rounds);
        if (rank == 0) print_value("roots", forms[form], 0, 0, "rounds", rounds);
    }
    for (int batch = 0; batch < settings.batches; batch++) {
        for (int form = 0; form < 2; form++) {
            long rounds = 0, messages = 0;
            MPI_Barrier(MPI_COMM_WORLD);
            double start = now_s();
            for (int i = 0; i < settings.iterations; i++) rounds += search(form, &messages);
            double elapsed = now_s() - start;
            if (rank == 0) print_value("roots", forms[form], 0, 0, "ns", 1e9 * elapsed / (double)rounds);
        }
    }
}

static const struct {
    const char *name;
    void (*measure)(void);
} figures[] = {{"service", service}, {"collective", collective}, {"delivery", delivery}, {"roots", roots}};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *name = parse_command_line(argc, argv);
    size_t count = sizeof figures / sizeof *figures, figure = 0;
    while (figure < count && strcmp(figures[figure].name, name)) figure++;
    if (figure == count) fail("unknown figure; they stand at the head of bench/papers.c");
    own = calloc(1, (size_t)largest_bytes());
    every = calloc((size_t)size, (size_t)largest_bytes());
    if (!own || !every) fail("there is no memory left");
    figures[figure].measure();
    free(own);
    free(every);
    MPI_Finalize();
    return 0;
}
