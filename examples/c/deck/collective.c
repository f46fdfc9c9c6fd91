/* What the paper of 2003 measured: scatter and gather, reduce, and barrier, about 100 times each, with 100 bytes
 * and 10,000 bytes; the mean in microseconds. A launch measures one number of members:
 *
 *     deckcc -O2 collective.c -o collective
 *     for n in 2 4 6 8 10 12 14 16 18 20; do landeck run -n $n ./collective [ITERATIONS [ARCHITECTURE]]; done
 *
 * ARCHITECTURE may be deck2003 or mpi2003, for what the paper compared. */
#include "clock.h"
#include <deck.h>
#include <stdio.h>
#include <stdlib.h>

static int node, nodes, iterations;
static deck_group_t all;
static deck_msg_t whole, own, result;

static void fail(const char *what)
{
    fprintf(stderr, "node %d: %s gave a wrong result\n", node, what);
    exit(1);
}

/* Bytes of a node as 32-bit numbers. */
static void fill(deck_msg_t *m, int count, int of_node)
{
    DECK_CHECK(deck_msg_clear(m));
    for (int i = 0; i < count; i++) {
        int value = of_node * count + i;
        DECK_CHECK(deck_msg_pack(m, DECK_INT, &value, 1));
    }
}

static void scatter_gather(int count)
{
    (void)count;
    DECK_CHECK(deck_collective_scatter(&all, &whole, &own, 0));
    DECK_CHECK(deck_collective_gather(&all, &own, &result, 0));
}

static void check_scatter_gather(int count)
{
    int value;
    for (int i = 0; i < (node == 0 ? nodes * count : 0); i++) {
        DECK_CHECK(deck_msg_unpack(&result, DECK_INT, &value, 1));
        if (value != i) fail("scatter and gather");
    }
}

static void reduce(int count)
{
    (void)count;
    DECK_CHECK(deck_collective_reduce(&all, &own, &result, DECK_SUM, 0));
}

static void check_reduce(int count)
{
    int value;
    for (int i = 0; i < (node == 0 ? count : 0); i++) {
        DECK_CHECK(deck_msg_unpack(&result, DECK_INT, &value, 1));
        if (value != count * nodes * (nodes - 1) / 2 + i * nodes) fail("reduce");
    }
}

static void barrier(int count)
{
    (void)count;
    DECK_CHECK(deck_collective_barrier(&all));
}

static void check_barrier(int count) { (void)count; }

static double measure(void (*call)(int), void (*check)(int), int count)
{
    double start = 0;
    for (int i = -iterations / 10; i < iterations; i++) {
        if (i == 0) {
            DECK_CHECK(deck_collective_barrier(&all));
            start = now_us();
        }
        call(count);
    }
    DECK_CHECK(deck_collective_barrier(&all));
    double us = (now_us() - start) / iterations;
    check(count);
    return us;
}

int main(int argc, char **argv)
{
    iterations = argc > 1 ? atoi(argv[1]) : 100;
    if (iterations < 1) {
        fprintf(stderr, "collective: %s is no number of iterations\n", argv[1]);
        return 2;
    }
    DECK_CHECK(deck_init(&argc, &argv));
    DECK_CHECK(deck_node(&node));
    DECK_CHECK(deck_node_num(&nodes));
    DECK_CHECK(deck_group_world(&all));
    DECK_CHECK(deck_msg_create(&whole, 0));
    DECK_CHECK(deck_msg_create(&own, 0));
    DECK_CHECK(deck_msg_create(&result, 0));
    if (argc > 2) DECK_CHECK(deck_collective_use(&all, argv[2]));
    if (node == 0) printf("%2d members:", nodes);
    for (int step = 0; step < 2; step++) {
        int count = step == 0 ? 25 : 2500;
        fill(&whole, node == 0 ? nodes * count : 0, 0);
        double both = measure(scatter_gather, check_scatter_gather, count);
        fill(&own, count, node);
        double reduced = measure(reduce, check_reduce, count);
        if (node == 0) printf(" %5d B: scatter-gather %8.2f us, reduce %8.2f us;", 4 * count, both, reduced);
    }
    double us = measure(barrier, check_barrier, 0);
    if (node == 0) printf(" barrier %8.2f us\n", us);
    DECK_CHECK(deck_done());
    return 0;
}
