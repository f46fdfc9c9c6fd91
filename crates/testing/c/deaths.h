/* The frame of the programs for `landeck_testing::deaths`, which says how they are started and what they write. A front
 * includes it behind its check.h. An error is a number other than 0. */
#ifndef DEATHS_H
#define DEATHS_H

#include <time.h>
#include <unistd.h>

struct operation {
    const char *name;
    int (*run)(void);
};

#define OPERATION(name) { #name, name }
/* An operation that is tried on one host alone. */
#define OPERATION_HERE(name) { #name " (one host)", name }

/* Returns from the operation with the first error. */
#define TRY(call)                   \
    do {                            \
        int error_ = (call);        \
        if (error_) return error_;  \
    } while (0)

/* The operation with the name; without a name, prints the names of all and ends. */
static inline const struct operation *chosen(const struct operation *all, size_t count, const char *name)
{
    for (size_t at = 0; at < count; at++) {
        if (!name) puts(all[at].name);
        else if (strcmp(all[at].name, name) == 0) return &all[at];
    }
    exit(name != NULL);
}

static inline void has_begun(int number)
{
    printf("in %d %d\n", number, (int)getpid());
    fflush(stdout);
}

/* Repeats the operation to its first error; the time of that in nanoseconds. */
static inline long long repeat(const struct operation *operation, int *error)
{
    struct timespec now;
    while ((*error = operation->run()) == 0) continue;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline void was_told(int number, long long told_ns, int is_death, const char *text)
{
    printf("told %d %lld %s %s\n", number, told_ns, is_death ? "dead" : "other", text);
    fflush(stdout);
}

#endif
