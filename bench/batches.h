/*
 * Batches of processes that talk over MPI: rank 0 decides how many iterations a batch has and tells
 * the ranks behind it; each of them runs the batch and, if all times count, reports its own, of which
 * the longest counts. Of MPI only Send and Recv are used.
 */
#ifndef BATCHES_H
#define BATCHES_H

#include <mpi.h>

#include "measure.h"

/* Tags of the control messages lie above every tag of a measured message. */
enum { TAG_DATA = 1, TAG_CONTROL = 30000, TAG_REPORT, TAG_MARKER, TAG_LIST };

static inline void send_words(const void *words, int count, int to, int tag) {
    MPI_Send(words, 8 * count, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

static inline void receive_words(void *words, int count, int from, int tag) {
    MPI_Recv(words, 8 * count, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline int64_t receive_word(int from, int tag) {
    int64_t word;
    receive_words(&word, 1, from, tag);
    return word;
}

static inline void send_word(int64_t word, int to, int tag) { send_words(&word, 1, to, tag); }

static inline void report(double value) { send_words(&value, 1, 0, TAG_REPORT); }

static inline double lead_batch(const struct batches *batches, int64_t iterations) {
    for (int other = 1; other <= batches->followers; other++) send_word(iterations, other, TAG_CONTROL);
    double longest = batches->batch(iterations, batches->bytes);
    for (int other = 1; batches->slowest_counts && other <= batches->followers; other++) {
        double elapsed;
        receive_words(&elapsed, 1, other, TAG_REPORT);
        if (elapsed > longest) longest = elapsed;
    }
    return longest;
}

static inline void follow_batches(const struct batches *batches) {
    int64_t iterations;
    while ((iterations = receive_word(0, TAG_CONTROL)) > 0) {
        double elapsed = batches->batch(iterations, batches->bytes);
        if (batches->slowest_counts) report(elapsed);
    }
}

/* In rank 0 and its followers; the others must not call. */
static inline void run_batches(const struct batches *batches) {
    if (rank > 0) {
        follow_batches(batches);
        return;
    }
    lead_and_print(batches, lead_batch);
    for (int other = 1; other <= batches->followers; other++) send_word(0, other, TAG_CONTROL);
}

#endif
