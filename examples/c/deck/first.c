/* The first DECK program: every node brings its number, node 0 prints the sum.
 *
 *     deckcc first.c -o first && landeck run -n 4 ./first */
#include <deck.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    deck_group_t all;
    deck_msg_t m;
    int node, nodes, sum;
    DECK_CHECK(deck_init(&argc, &argv));
    DECK_CHECK(deck_node(&node));
    DECK_CHECK(deck_node_num(&nodes));
    DECK_CHECK(deck_group_world(&all));
    DECK_CHECK(deck_msg_create(&m, 0));
    DECK_CHECK(deck_msg_pack(&m, DECK_INT, &node, 1));
    DECK_CHECK(deck_collective_allreduce(&all, &m, &m, DECK_SUM));
    DECK_CHECK(deck_msg_unpack(&m, DECK_INT, &sum, 1));
    if (node == 0) printf("the sum of %d nodes is %d\n", nodes, sum);
    DECK_CHECK(deck_done());
    return 0;
}
