/*
 * What the papers on DECK measured, over DECK: collectives.c does the same over MPI.
 *
 *     deck FIGURE [NAME=VALUE ...]
 *
 *     deck_sync            a broadcast to a group, its synchronisation, the message taken out of the mailbox;
 *                          over MPI a broadcast and a barrier
 *     deck_scatter_gather  a scatter, and a gather of what it gave
 *     deck_reduce          a sum of doubles
 *     deck_barrier
 *     roots                a round of root finding (examples/c/roots.c): all tell each other in which part the sign
 *                          changes, `iterations` searches in a batch
 *
 * Settings are those of collectives.c. Operations run back to back, a multiple of n of them, and the root, or who
 * broadcasts, moves on with each. Messages are packed beforehand, as the buffers of MPI are filled. Before a size is
 * timed, every place of the result is checked in every process, for every root.
 */
#define _GNU_SOURCE
#include <deck.h>

#include "../examples/c/sections.h"
#include "measure.h"

static deck_group_t all, group;
static deck_mbox_t mailbox;
/* What a root hands out, a process's own, what comes back, what a group sends and gets. */
static deck_msg_t whole, own, result, outgoing, incoming, control;

static void call(int error) {
    if (error != DECK_OK) fail(deck_error_text());
}

/* ------------------------------------------------------------------ batches */

static int64_t told(int64_t word) {
    call(deck_msg_clear(&control));
    call(deck_msg_pack(&control, DECK_INT64, &word, 1));
    call(deck_collective_bcast(&all, &control, 0));
    call(deck_msg_rewind(&control));
    call(deck_msg_unpack(&control, DECK_INT64, &word, 1));
    return word;
}

static double longest(double elapsed) {
    call(deck_msg_clear(&control));
    call(deck_msg_pack(&control, DECK_DOUBLE, &elapsed, 1));
    call(deck_collective_allreduce(&all, &control, &control, DECK_MAX));
    call(deck_msg_unpack(&control, DECK_DOUBLE, &elapsed, 1));
    return elapsed;
}

static double lead_batch(const struct batches *batches, int64_t iterations) {
    (void)told(iterations);
    return longest(batches->batch(iterations, batches->bytes));
}

static void run_batches(const struct batches *batches) {
    int64_t iterations;
    if (rank == 0) {
        lead_and_print(batches, lead_batch);
        (void)told(0);
        return;
    }
    while ((iterations = told(0)) > 0) (void)longest(batches->batch(iterations, batches->bytes));
}

/* ------------------------------------------------------------------ messages and their checks */

/* Whole numbers: their sum over all ranks is exact, in any order. */
static double number_at(long place, int of_rank) { return (double)((place % 1000 + 1) * (of_rank + 1)); }

static void fill(deck_msg_t *m, long bytes, int from, int count) {
    call(deck_msg_clear(m));
    for (int part = from; part < from + count; part++) {
        for (long place = 0; place < bytes / 8; place++) {
            double value = number_at(place, part);
            call(deck_msg_pack(m, DECK_DOUBLE, &value, 1));
        }
    }
}

static void check(deck_msg_t *m, long bytes, int from, int count, double factor) {
    for (int part = from; part < from + count; part++) {
        for (long place = 0; place < bytes / 8; place++) {
            double value;
            call(deck_msg_unpack(m, DECK_DOUBLE, &value, 1));
            if (value != number_at(place, part) * factor) fail("received a wrong value");
        }
    }
}

/* ------------------------------------------------------------------ the operations */

static void sync_group(int root) {
    if (rank == root) call(deck_group_bcast(&group, &outgoing));
    call(deck_group_sync(&group));
    call(deck_mbox_retrv(&mailbox, &incoming));
}

static void check_sync(int root, long bytes) {
    sync_group(root);
    check(&incoming, bytes, root, 1, 1);
}

static void scatter_gather(int root) {
    call(deck_collective_scatter(&all, &whole, &own, root));
    call(deck_collective_gather(&all, &own, &result, root));
}

static void check_scatter_gather(int root, long bytes) {
    scatter_gather(root);
    check(&own, bytes, rank, 1, 1);
    if (rank == root) check(&result, bytes, 0, size, 1);
}

static void reduce(int root) { call(deck_collective_reduce(&all, &outgoing, &result, DECK_SUM, root)); }

static void check_reduce(int root, long bytes) {
    reduce(root);
    if (rank == root) check(&result, bytes, 0, 1, size * (size + 1) / 2.0);
}

static void barrier(int root) {
    (void)root;
    call(deck_collective_barrier(&all));
}

static void check_barrier(int root, long bytes) {
    (void)bytes;
    barrier(root);
}

static const struct operation {
    const char *name;
    void (*call)(int root);
    void (*check)(int root, long bytes);
} operations[] = {
    {"deck_sync", sync_group, check_sync},
    {"deck_scatter_gather", scatter_gather, check_scatter_gather},
    {"deck_reduce", reduce, check_reduce},
    {"deck_barrier", barrier, check_barrier},
};

/* The one that is measured now. */
static const struct operation *operation;

static double back_to_back(int64_t iterations, long bytes) {
    (void)bytes;
    call(deck_collective_barrier(&all));
    double start = now_s();
    for (int64_t i = 0; i < iterations; i++) operation->call((int)(i % size));
    return now_s() - start;
}

static void measure(const char *figure, long bytes) {
    fill(&whole, bytes, 0, size);
    fill(&own, bytes, rank, 1);
    fill(&outgoing, bytes, rank, 1);
    for (int root = 0; root < size; root++) operation->check(root, bytes);
    run_batches(&(struct batches){.figure = figure, .form = "", .batch = back_to_back, .bytes = bytes,
                                  .followers = size - 1, .slowest_counts = true, .divisor = 1, .step = size});
}

/* ------------------------------------------------------------------ 1997 */

static int part_with_change(const interval *now, int parts) {
    int own = parts, each = parts / size;
    for (int part = (rank + 1) * each - 1; part >= rank * each; part--) {
        double left = quartic(point_of(now, part, parts)), right = quartic(point_of(now, part + 1, parts));
        if ((left < 0) != (right < 0)) own = part;
    }
    return own;
}

/* Returns the number of rounds. */
static int search(void) {
    interval now = {2, 4};
    int rounds = 0, parts = size == 1 ? 2 : size;
    while (now.to - now.from > 1e-12) {
        int first = part_with_change(&now, parts);
        call(deck_msg_clear(&control));
        call(deck_msg_pack(&control, DECK_INT, &first, 1));
        call(deck_collective_allreduce(&all, &control, &control, DECK_MIN));
        call(deck_msg_unpack(&control, DECK_INT, &first, 1));
        if (first == parts) fail("the sign changes nowhere");
        interval next = {point_of(&now, first, parts), point_of(&now, first + 1, parts)};
        rounds++;
        if (next.from == now.from && next.to == now.to) break; /* no numbers in between */
        now = next;
    }
    return rounds;
}

static void roots(void) {
    int rounds = search();
    if (rank == 0) print_value("roots", "deck", 0, 0, "rounds", rounds);
    for (int batch = 0; batch < settings.batches; batch++) {
        call(deck_collective_barrier(&all));
        double start = now_s();
        rounds = 0;
        for (int i = 0; i < settings.iterations; i++) rounds += search();
        double elapsed = now_s() - start;
        if (rank == 0) print_value("roots", "deck", 0, 0, "ns", 1e9 * elapsed / rounds);
    }
}

int main(int argc, char **argv) {
    const char *name = "measured";
    call(deck_init(&argc, &argv));
    call(deck_node(&rank));
    call(deck_node_num(&size));
    call(deck_group_world(&all));
    deck_msg_t *messages[] = {&whole, &own, &result, &outgoing, &incoming, &control};
    for (int i = 0; i < 6; i++) call(deck_msg_create(messages[i], 0));
    const char *figure = parse_command_line(argc, argv);
    if (!strcmp(figure, "roots")) {
        roots();
        call(deck_done());
        return 0;
    }
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (!strcmp(operations[i].name, figure)) operation = &operations[i];
    }
    if (!operation) fail("unknown figure; they stand at the head of bench/deck.c");
    if (rank == 0) call(deck_group_create(&group, name, size));
    call(deck_mbox_create(&mailbox, NULL));
    call(deck_collective_barrier(&all));
    call(deck_group_join(&group, &mailbox, name));
    if (operation->call == barrier) measure(figure, 0);
    for (int i = 0; operation->call != barrier && i < settings.bytes.count; i++) {
        if (settings.bytes.values[i] % 8) fail("bytes must be a multiple of 8: values are doubles");
        measure(figure, settings.bytes.values[i]);
    }
    call(deck_group_leave(&group));
    call(deck_done());
    return 0;
}
