/* An interval with a root of a function, and its parts. */
#ifndef SECTIONS_H
#define SECTIONS_H

typedef struct {
    double from, to;
} interval;

/* A polynomial of the fourth degree. */
static inline double quartic(double x) { return ((x - 3) * x * x + 1) * x - 2; }

static inline double point_of(const interval *whole, int part, int parts)
{
    return part == parts ? whole->to : whole->from + (whole->to - whole->from) * part / parts;
}

#endif
