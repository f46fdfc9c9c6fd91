/*
 * The floor of every collective operation on one host: a barrier of one shared counter, without any
 * message passing. The last to arrive opens the next round; the others give up their turns until then.
 *
 *   counter -n N FIGURE [bytes=8,65536] [batches=20] [batch_ms=5] [limit_s=20]
 *
 * It forks n processes, each bound to a processor of its own if there are enough, and prints the lines
 * of collectives.c for the named figure: one for each batch and size, although no byte is moved.
 * Whatever synchronises n processes has to switch each of them in once, and so does this.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

/* In memory that all processes share; every word that is written often has its own cache lines. */
static struct shared {
    _Alignas(128) _Atomic int64_t arrived;
    _Alignas(128) _Atomic int64_t round;
    _Alignas(128) int64_t iterations; /* of the next batch; 0 ends */
    _Alignas(128) double elapsed_s[];
} *shared;

static void barrier(void) {
    int64_t round = atomic_load_explicit(&shared->round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&shared->arrived, 1, memory_order_acq_rel) + 1 == size) {
        atomic_store_explicit(&shared->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&shared->round, round + 1, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&shared->round, memory_order_acquire) == round) sched_yield();
}

static double back_to_back(int64_t iterations, long bytes) {
    (void)bytes;
    barrier();
    double start = now_s();
    for (int64_t i = 0; i < iterations; i++) barrier();
    return now_s() - start;
}

/* Process 0 leads the others, as rank 0 does in batches.h. */
static double lead_batch(const struct batches *batches, int64_t iterations) {
    shared->iterations = iterations;
    barrier();
    double longest = batches->batch(iterations, batches->bytes);
    barrier();
    for (int other = 1; other < size; other++) {
        if (shared->elapsed_s[other] > longest) longest = shared->elapsed_s[other];
    }
    return longest;
}

static void follow_batches(void) {
    for (;;) {
        barrier();
        int64_t iterations = shared->iterations;
        if (iterations == 0) return;
        shared->elapsed_s[rank] = back_to_back(iterations, 0);
        barrier();
    }
}

static void lead(const char *figure) {
    bool grows = !strcmp(figure, "growth"), has_no_size = grows || !strcmp(figure, "barrier");
    for (int i = 0; i < (has_no_size ? 1 : settings.bytes.count); i++) {
        struct batches batches = {.figure = figure, .form = grows ? "barrier" : "", .batch = back_to_back,
                                  .bytes = has_no_size ? 0 : settings.bytes.values[i], .divisor = 1};
        lead_and_print(&batches, lead_batch);
    }
    shared->iterations = 0;
    barrier();
}

/* The processors that this process may use, dealt out in turn if there is one for everybody. */
static void bind_to_own_processor(void) {
    cpu_set_t usable, own;
    if (sched_getaffinity(0, sizeof usable, &usable) || CPU_COUNT(&usable) < size) return;
    CPU_ZERO(&own);
    for (int processor = 0, place = 0; processor < CPU_SETSIZE; processor++) {
        if (CPU_ISSET(processor, &usable) && place++ == rank) CPU_SET(processor, &own);
    }
    (void)sched_setaffinity(0, sizeof own, &own); /* without it the floor is only less steady */
}

static void start_others(void) {
    pid_t parent = getpid();
    for (int other = 1; other < size; other++) {
        pid_t child = fork();
        if (child < 0) fail("cannot fork so many processes"); /* those that are there end with this one */
        if (child > 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) exit(3);
        rank = other;
        return;
    }
}

int main(int argc, char **argv) {
    if (argc < 4 || strcmp(argv[1], "-n") || (size = atoi(argv[2])) < 1) fail("usage: counter -n N FIGURE [setting=value ...]");
    const char *figure = parse_command_line(argc - 2, argv + 2);
    size_t bytes = sizeof *shared + (size_t)size * sizeof(double);
    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) fail("no shared memory for the counter");
    start_others();
    bind_to_own_processor();
    if (rank > 0) {
        follow_batches();
        return 0;
    }
    lead(figure);
    for (int other = 1; other < size; other++) wait(NULL);
    return 0;
}
