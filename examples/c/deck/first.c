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
    deck_init(&argc, &argv);
    deck_node(&node);
    deck_node_num(&nodes);
    deck_group_world(&all);
    deck_msg_create(&m, 0);
    deck_msg_pack(&m, DECK_INT, &node, 1);
    deck_collective_allreduce(&all, &m, &m, DECK_SUM);
    deck_msg_unpack(&m, DECK_INT, &sum, 1);
    if (node == 0) printf("the sum of %d nodes is %d\n", nodes, sum);
    return deck_done();
}
