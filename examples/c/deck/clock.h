/* What the examples that measure share. */
#ifndef CLOCK_H
#define CLOCK_H

#include <time.h>

/* Microseconds since some moment. */
static inline double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

#endif
