/* Groups with a server, as the paper of 2000 has them: in each of its places. */
#include "check.h"

enum { ROUNDS = 10 };

/* Everybody broadcasts and synchronises; all messages of all are there, once. */
static void serves(int where, int server_node, const char *title)
{
    deck_group_t g = DECK_NOTHING;
    deck_group_options_t options = OPTIONS(.served_by = where, .server_node = server_node);
    deck_mbox_t mb;
    deck_msg_t m;
    char name[DECK_NAME_MAX + 1];
    int values[2], seen[16][2 * ROUNDS] = { { 0 } };
    snprintf(name, sizeof name, "served by %s", title);
    OK(deck_mbox_create(&mb, NULL));
    OK(deck_msg_create(&m, 0));
    if (node == 0) OK(deck_group_create_with(&g, name, nodes, &options));
    OK(deck_collective_barrier(&all));
    if (node == 0) FAILS(DECK_EMINIMUM, deck_group_bcast_timed(&g, &m, 1));
    OK(deck_collective_barrier(&all));
    OK(deck_group_join(&g, &mb, name));
    OK(deck_group_sync(&g));
    for (int i = 0; i < ROUNDS; i++) {
        values[0] = node;
        values[1] = i;
        OK(deck_msg_clear(&m));
        OK(deck_msg_pack(&m, DECK_INT, values, 2));
        if (i % 2 == 0) OK(deck_group_bcast(&g, &m));
        else OK(deck_group_bcast_timed(&g, &m, 100000));
        if (i % 2 == 0) OK(deck_group_bcast_wait(&g));
        else OK(deck_group_bcast_wait_timed(&g, 100000));
        /* What all others do not tell by the group. */
        OK(deck_collective_barrier(&all));
        for (int from = 0; from < nodes; from++) {
            OK(deck_mbox_retrv_try(&mb, &m));
            OK(deck_msg_unpack(&m, DECK_INT, values, 2));
            CHECK(values[0] >= 0 && values[0] < nodes && values[1] == i);
            CHECK(seen[values[0]][values[1]]++ == 0);
        }
        OK(deck_group_sync_timed(&g, 100000));
    }
    for (int i = 0; i < ROUNDS; i++) {
        values[0] = node;
        values[1] = ROUNDS + i;
        OK(deck_msg_clear(&m));
        OK(deck_msg_pack(&m, DECK_INT, values, 2));
        OK(deck_group_bcast(&g, &m));
        OK(deck_group_sync_timed(&g, 100000));
    }
    for (int i = 0; i < ROUNDS * nodes; i++) {
        OK(deck_mbox_retrv_try(&mb, &m));
        OK(deck_msg_unpack(&m, DECK_INT, values, 2));
        CHECK(values[0] >= 0 && values[0] < nodes && values[1] >= ROUNDS && values[1] < 2 * ROUNDS);
        CHECK(seen[values[0]][values[1]]++ == 0);
    }
    FAILS(DECK_EWOULDBLOCK, deck_mbox_retrv_try(&mb, &m));
    OK(deck_group_sync(&g));
    if (node == nodes - 1) OK(deck_group_destroy(&g));
    OK(deck_collective_barrier(&all));
    if (node != nodes - 1) {
        FAILS(DECK_EGROUPDESTROYED, deck_group_bcast(&g, &m));
        FAILS(DECK_EGROUPDESTROYED, deck_group_bcast_wait(&g));
        OK(deck_group_close(&g));
    }
    OK(deck_mbox_destroy(&mb));
    OK(deck_msg_destroy(&m));
}

static void mistakes(int with_launcher)
{
    deck_group_t g = DECK_NOTHING;
    deck_group_options_t nowhere = OPTIONS(.served_by = 9);
    deck_group_options_t no_node = OPTIONS(.served_by = DECK_NODE, .server_node = nodes);
    deck_group_options_t launcher = OPTIONS(.served_by = DECK_LAUNCHER);
    const char *name = "mistaken";
    FAILS(DECK_EVALUE, deck_group_create_with(&g, name, 1, &nowhere));
    FAILS(DECK_EVALUE, deck_group_create_with(&g, name, 1, &no_node));
    no_node.server_node = -1;
    FAILS(DECK_EVALUE, deck_group_create_with(&g, name, 1, &no_node));
    if (!with_launcher) FAILS(DECK_ENOSERVER, deck_group_create_with(&g, name, 1, &launcher));
}

/* With "launcher", the launcher serves as well; with "hosts", the last node is on another host and serves nothing. */
int main(int argc, char **argv)
{
    begin(&argc, &argv);
    serves(DECK_CREATOR, 0, "who creates it");
    serves(DECK_NODE, 0, "node 0");
    int over_hosts = argc > 1 && strcmp(argv[1], "hosts") == 0;
    int with_launcher = argc > 1 && !over_hosts;
    if (!over_hosts) serves(DECK_NODE, nodes - 1, "the last node");
    if (with_launcher) serves(DECK_LAUNCHER, 0, "the launcher");
    mistakes(with_launcher);
    return end("served");
}
