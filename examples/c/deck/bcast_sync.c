/* What the paper of 2000 measured: a broadcast and a synchronisation of a group, 500 times, with messages of
 * 1 B to 32 KB and 2 to 8 members; the mean of an iteration in microseconds.
 *
 *     deckcc -O2 bcast_sync.c -o bcast_sync && landeck run -n 8 ./bcast_sync [ITERATIONS]
 *
 * Every number of members up to that of the nodes is a group of its own; the other nodes wait meanwhile. Each
 * message is looked at where it arrives. */
#include "clock.h"
#include <deck.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZES = 7 };
static const size_t sizes[SIZES] = { 1, 64, 1024, 2048, 8192, 16384, 32768 };

static int node;
static unsigned char bytes[32768];

/* One size in a group: the time of an iteration. */
static double measure(deck_group_t *g, deck_mbox_t *mb, deck_msg_t *m, size_t size, int iterations)
{
    double start = 0;
    for (int i = -iterations / 10; i < iterations; i++) {
        if (i == 0) start = now_us();
        if (node == 0) {
            bytes[0] = (unsigned char)i;
            DECK_CHECK(deck_msg_clear(m));
            DECK_CHECK(deck_msg_pack(m, DECK_BYTE, bytes, size));
            DECK_CHECK(deck_group_bcast(g, m));
        }
        DECK_CHECK(deck_group_sync(g));
        DECK_CHECK(deck_mbox_retrv(mb, m));
        size_t got;
        DECK_CHECK(deck_msg_size(m, &got));
        DECK_CHECK(deck_msg_unpack(m, DECK_BYTE, bytes, 1));
        if (got != size || bytes[0] != (unsigned char)i) {
            fprintf(stderr, "node %d got %zu bytes that are not those of iteration %d\n", node, got, i);
            exit(1);
        }
    }
    return (now_us() - start) / iterations;
}

int main(int argc, char **argv)
{
    int nodes, iterations = argc > 1 ? atoi(argv[1]) : 500;
    deck_group_t all;
    deck_mbox_t mb;
    deck_msg_t m;
    if (iterations < 1) {
        fprintf(stderr, "bcast_sync: %s is no number of iterations\n", argv[1]);
        return 2;
    }
    DECK_CHECK(deck_init(&argc, &argv));
    DECK_CHECK(deck_node(&node));
    DECK_CHECK(deck_node_num(&nodes));
    DECK_CHECK(deck_group_world(&all));
    DECK_CHECK(deck_mbox_create(&mb, NULL));
    DECK_CHECK(deck_msg_create(&m, sizeof bytes));
    if (node == 0) {
        printf("members");
        for (int i = 0; i < SIZES; i++) printf("%9zu B", sizes[i]);
        printf("   (us for a broadcast and a synchronisation)\n");
    }
    for (int members = 2; members <= nodes; members++) {
        char name[32];
        deck_group_t g = DECK_NOTHING;
        snprintf(name, sizeof name, "%d members", members);
        if (node == 0) DECK_CHECK(deck_group_create(&g, name, members));
        DECK_CHECK(deck_collective_barrier(&all));
        if (node < members) {
            DECK_CHECK(deck_group_join(&g, &mb, name));
            DECK_CHECK(deck_group_sync(&g));
            if (node == 0) printf("%7d", members);
            for (int i = 0; i < SIZES; i++) {
                double us = measure(&g, &mb, &m, sizes[i], iterations);
                if (node == 0) printf("%11.2f", us);
            }
            if (node == 0) printf("\n"), fflush(stdout);
            DECK_CHECK(deck_group_leave(&g));
            DECK_CHECK(deck_group_close(&g));
        }
        DECK_CHECK(deck_collective_barrier(&all));
    }
    if (node == 0) printf("done\n");
    DECK_CHECK(deck_done());
    return 0;
}
