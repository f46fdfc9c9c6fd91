/* What the examples share: a call that fails ends the program with a word about it. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <deck.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALL(call)                                                               \
    do {                                                                         \
        int error_ = (call);                                                     \
        if (error_ != DECK_OK) {                                                 \
            fprintf(stderr, "%s (%s)\n", deck_error_text(), deck_error_name(error_)); \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

static inline double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

#endif
