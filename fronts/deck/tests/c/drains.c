/* Members that broadcast and then take what has come, in turn. A member whose own mailbox is full is told, takes what
   has come, and sends again: nobody waits for a mailbox that only the waiting thread could empty. */
#include "check.h"

enum { ROUNDS = 1000, ROOM = 32 };

static deck_group_t g;
static deck_mbox_t mb;
static deck_msg_t m;

/* A process may have half of the room, here one message. */
static void alone(void)
{
    deck_group_options_t options = OPTIONS(.messages = 2);
    char name[32];
    int number = 1;
    snprintf(name, sizeof name, "alone %d", node);
    OK(deck_group_create_with(&g, name, 1, &options));
    OK(deck_group_join(&g, &mb, name));
    OK(deck_msg_pack(&m, DECK_INT, &number, 1));
    OK(deck_group_bcast(&g, &m));
    FAILS(DECK_EFULL, deck_group_bcast(&g, &m));
    FAILS(DECK_EFULL, deck_group_bcast_timed(&g, &m, 100000));
    OK(deck_mbox_retrv(&mb, &m));
    OK(deck_group_bcast(&g, &m));
    OK(deck_mbox_retrv(&mb, &m));
    OK(deck_group_leave(&g));
}

/* Sends the next number if there is room; says whether it did. */
static int send(int number)
{
    OK(deck_msg_clear(&m));
    OK(deck_msg_pack(&m, DECK_INT, &node, 1));
    OK(deck_msg_pack(&m, DECK_INT, &number, 1));
    int error = deck_group_bcast(&g, &m);
    CHECK(error == DECK_OK || error == DECK_EFULL);
    return error == DECK_OK;
}

static void together(void)
{
    deck_group_options_t options = OPTIONS(.messages = ROOM);
    const char *name = "together";
    int sent = 0, got = 0, error, *next = calloc(nodes, sizeof *next);
    if (node == 0) OK(deck_group_create_with(&g, name, nodes, &options));
    OK(deck_collective_barrier(&all));
    OK(deck_group_join(&g, &mb, name));
    while (sent < ROUNDS || got < ROUNDS * nodes) {
        int from, number;
        if (sent < ROUNDS) sent += send(sent);
        while ((error = deck_mbox_retrv_timed(&mb, &m, 0)) == DECK_OK) {
            OK(deck_msg_unpack(&m, DECK_INT, &from, 1));
            OK(deck_msg_unpack(&m, DECK_INT, &number, 1));
            CHECK(number == next[from]++);
            got++;
        }
        CHECK(error == DECK_ETIMEDOUT);
    }
    OK(deck_group_sync(&g));
    OK(deck_group_leave(&g));
    free(next);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    OK(deck_mbox_create(&mb, NULL));
    OK(deck_msg_create(&m, 0));
    alone();
    together();
    OK(deck_msg_destroy(&m));
    OK(deck_mbox_destroy(&mb));
    return end("drains");
}
