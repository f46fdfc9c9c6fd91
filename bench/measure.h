/*
 * What the measuring programs share: settings, the clock, the lines they print, and batches that
 * are long enough. It needs no message passing; batches.h leads batches over MPI.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LIST_MAX = 16 };

struct list {
    long values[LIST_MAX];
    int count;
};

static struct {
    struct list bytes, pending;
    int batches;
    double batch_ms, limit_s, wait_ms;
    const char *flag;
    int iterations;   /* operations in a batch, where their number is given */
    const char *ways; /* ways of a broadcast, with commas between them */
    bool is_multiple; /* whether several threads may call MPI at once */
    bool is_new;      /* whether data are written anew before each operation, in the time that counts */
} settings = {
    .bytes = {{8}, 1}, .pending = {{256, 10000}, 2}, .batches = 20, .batch_ms = 5, .limit_s = 20, .wait_ms = 1500, .flag = NULL, .iterations = 20, .ways = "mpi", .is_multiple = false, .is_new = false,
};

static int rank, size;

static inline void fail(const char *what) {
    fprintf(stderr, "%s: rank %d of %d: %s\n", program_invocation_short_name, rank, size, what);
    exit(3); /* not MPI_Abort: every program says at its head which functions of MPI it uses */
}

static inline double clock_s(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline double now_s(void) { return clock_s(CLOCK_MONOTONIC); }

static inline void print_value(const char *figure, const char *form, long bytes, long pending, const char *unit, double value) {
    printf("{\"figure\":\"%s\",\"form\":\"%s\",\"n\":%d,\"bytes\":%ld,\"pending\":%ld,\"unit\":\"%s\",\"value\":%.9g}\n",
           figure, form, size, bytes, pending, unit, value);
    fflush(stdout);
}

static inline long largest_bytes(void) {
    long largest = 8;
    for (int i = 0; i < settings.bytes.count; i++) {
        if (settings.bytes.values[i] > largest) largest = settings.bytes.values[i];
    }
    return largest;
}

/* ------------------------------------------------------------------ batches */

/* So many iterations between two looks at the clock; how long they took in this process. */
typedef double (*batch_function)(int64_t iterations, long bytes);

struct batches {
    const char *figure, *form;
    batch_function batch;
    long bytes;
    int followers;       /* the ranks 1..followers take part */
    bool slowest_counts; /* whether the time of the slowest counts, or that of rank 0 */
    double divisor;      /* what an iteration counts as: 2 for the half of a round trip */
    int64_t step;        /* a batch has a multiple of so many iterations; 0 counts as 1 */
};

/* Runs one batch in every process that takes part, from rank 0; the time that counts. */
typedef double (*lead_function)(const struct batches *batches, int64_t iterations);

static inline int64_t whole_steps(const struct batches *batches, int64_t iterations) {
    int64_t step = batches->step > 0 ? batches->step : 1;
    return (iterations + step - 1) / step * step;
}

/* A batch must be long twice in a row: a single one may have been disturbed. */
static inline int64_t calibrate(const struct batches *batches, lead_function lead) {
    double stop_s = now_s() + settings.limit_s / 2;
    int64_t iterations = whole_steps(batches, 1);
    int long_enough = 0;
    while (long_enough < 2 && now_s() < stop_s) {
        double elapsed_ms = 1e3 * lead(batches, iterations);
        if (elapsed_ms >= settings.batch_ms) {
            long_enough++;
            continue;
        }
        /* At most tenfold: the first batches are slow, because connections are made in them. */
        double factor = elapsed_ms > 0 ? 1.2 * settings.batch_ms / elapsed_ms : 10;
        if (factor > 10) factor = 10;
        iterations = whole_steps(batches, (int64_t)((double)iterations * factor) + 1);
        long_enough = 0;
    }
    return iterations;
}

/* In rank 0; per batch: elapsed / iterations / divisor, in nanoseconds. Nothing begins after limit_s. */
static inline void lead_and_print(const struct batches *batches, lead_function lead) {
    double stop_s = now_s() + settings.limit_s;
    int64_t iterations = calibrate(batches, lead);
    for (int done = 0; done < settings.batches; done++) {
        double elapsed = lead(batches, iterations);
        print_value(batches->figure, batches->form, batches->bytes, 0, "ns",
                    1e9 * elapsed / (double)iterations / batches->divisor);
        if (now_s() > stop_s) break;
    }
}

/* ------------------------------------------------------------------ the command line */

static inline struct list parse_list(const char *text) {
    struct list list = {{0}, 0};
    char *end = NULL;
    while (list.count < LIST_MAX) {
        list.values[list.count++] = strtol(text, &end, 10);
        if (*end != ',') break;
        text = end + 1;
    }
    return list;
}

/* The text behind NAME= if the argument is that setting. */
static inline const char *value_of(const char *argument, const char *name) {
    size_t length = strlen(name);
    return !strncmp(argument, name, length) && argument[length] == '=' ? argument + length + 1 : NULL;
}

static inline bool parse_setting(const char *argument) {
    const char *value;
    if ((value = value_of(argument, "bytes"))) settings.bytes = parse_list(value);
    else if ((value = value_of(argument, "pending"))) settings.pending = parse_list(value);
    else if ((value = value_of(argument, "batches"))) settings.batches = atoi(value);
    else if ((value = value_of(argument, "batch_ms"))) settings.batch_ms = atof(value);
    else if ((value = value_of(argument, "limit_s"))) settings.limit_s = atof(value);
    else if ((value = value_of(argument, "wait_ms"))) settings.wait_ms = atof(value);
    else if ((value = value_of(argument, "flag"))) settings.flag = value;
    else if ((value = value_of(argument, "iterations"))) settings.iterations = atoi(value) > 0 ? atoi(value) : 1;
    else if ((value = value_of(argument, "ways"))) settings.ways = value;
    else if ((value = value_of(argument, "level"))) settings.is_multiple = !strcmp(value, "multiple");
    else if ((value = value_of(argument, "new"))) settings.is_new = atoi(value) != 0;
    else return false;
    return true;
}

/* Writes a block anew, if that is wanted: a value that nobody has read from there before. */
static inline void renew(void *block, long bytes, int64_t turn) {
    if (settings.is_new) memset(block, (int)(turn % 64), (size_t)bytes);
}

/* The figure that the command line names, after its settings have been read. */
static inline const char *parse_command_line(int argc, char **argv) {
    if (argc < 2) fail("which figure? They stand at the head of its source in bench/");
    for (int i = 2; i < argc; i++) {
        if (!parse_setting(argv[i])) fail("unknown setting; they stand at the head of its source in bench/");
    }
    return argv[1];
}

#endif
