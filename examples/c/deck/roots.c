/* The root of a function by N-section: N nodes cut the interval into N parts, each looks whether the sign changes
 * in its own, and the part with the change is the next interval. There is no master.
 *
 *     deckcc -O2 roots.c -o roots -lm && landeck run -n 4 ./roots [TOLERANCE]
 */
#include <deck.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double function(double x) { return cos(x) - x; }

int main(int argc, char **argv)
{
    double tolerance = argc > 1 ? atof(argv[1]) : 1e-12, from = 0, to = 2;
    int node, nodes, rounds = 0;
    deck_group_t all;
    deck_msg_t m;
    DECK_CHECK(deck_init(&argc, &argv));
    DECK_CHECK(deck_node(&node));
    DECK_CHECK(deck_node_num(&nodes));
    DECK_CHECK(deck_group_world(&all));
    DECK_CHECK(deck_msg_create(&m, 0));
    /* Two parts at least, or the interval stays as it is. */
    int each = nodes == 1 ? 2 : 1, parts = each * nodes;
    while (to - from > tolerance) {
        double width = (to - from) / parts;
        int first = parts;
        for (int part = node * each; part < (node + 1) * each; part++) {
            double left = function(from + part * width), right = function(from + (part + 1) * width);
            if (left == 0 || (left < 0) != (right < 0)) first = part < first ? part : first;
        }
        /* Everybody learns which part it is. */
        DECK_CHECK(deck_msg_clear(&m));
        DECK_CHECK(deck_msg_pack(&m, DECK_INT, &first, 1));
        DECK_CHECK(deck_collective_allreduce(&all, &m, &m, DECK_MIN));
        DECK_CHECK(deck_msg_unpack(&m, DECK_INT, &first, 1));
        if (first == parts) {
            if (node == 0) printf("there is no change of sign\n");
            DECK_CHECK(deck_done());
            return 2;
        }
        if (width >= to - from || from + width == from) break; /* no numbers in between */
        from += first * width;
        to = from + width;
        rounds++;
    }
    if (node == 0) printf("root %.10f after %d rounds of %d parts\n", (from + to) / 2, rounds, parts);
    DECK_CHECK(deck_done());
    return 0;
}
