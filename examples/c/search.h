/* The search of roots.c, which bench/papers.c measures. */
#ifndef SEARCH_H
#define SEARCH_H

#include "relay.h"
#include "sections.h"

#include <mpi.h>

/* Makes the interval as narrow as the tolerance. Returns the number of rounds, or -1 if the sign changes nowhere. Adds the
 * messages that this process relays to `messages`. */
static inline int find_root(interval *now, double tolerance, int is_relayed, long *messages)
{
    int rank, size, rounds = 0;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Two parts at least, or the interval stays as it is. */
    int each = size == 1 ? 2 : 1, parts = each * size;
    while (now->to - now->from > tolerance) {
        int own = parts, first = parts;
        for (int part = (rank + 1) * each - 1; part >= rank * each; part--) {
            double left = quartic(point_of(now, part, parts)), right = quartic(point_of(now, part + 1, parts));
            if ((left < 0) != (right < 0)) own = part;
        }
        interval next = *now;
        MPI_Reduce(&own, &first, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
        if (rank == 0 && first < parts)
            next = (interval){point_of(now, first, parts), point_of(now, first + 1, parts)};
        if (rank == 0 && first == parts) next = (interval){1, 0};
        if (is_relayed) *messages += relay(&next, sizeof next, 0, MPI_COMM_WORLD);
        else MPI_Bcast(&next, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (next.from > next.to) return -1;
        rounds++;
        if (next.from == now->from && next.to == now->to) break; /* no numbers in between */
        *now = next;
    }
    return rounds;
}

#endif
