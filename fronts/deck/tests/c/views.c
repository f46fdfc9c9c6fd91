/* Views: each member is told who comes and goes, in their places among the messages. */
#include "check.h"
#include <unistd.h>

enum { ROOM = 16 };

static deck_event_t e = DECK_NOTHING;

static void next(deck_mbox_t *mb, int kind)
{
    OK(deck_mbox_event_timed(mb, &e, 100000));
    CHECK(e.kind == kind);
}

/* The next event is a message with this number and value. */
static void message(deck_mbox_t *mb, unsigned number, int value)
{
    int found;
    next(mb, DECK_MESSAGE);
    OK(deck_msg_unpack(&e.msg, DECK_INT, &found, 1));
    CHECK(e.number == number && found == value);
}

/* The next event is a view behind so many messages, with so many members. */
static void view(deck_mbox_t *mb, unsigned after, int members)
{
    int ids[ROOM], count = -1;
    next(mb, DECK_VIEW);
    OK(deck_view_members(&e.view, ids, ROOM, &count));
    CHECK(e.after == after && count == members && !e.missed);
    OK(deck_view_members(&e.view, NULL, 0, &count));
    CHECK(count == members);
}

static void gone(int who, int how)
{
    int id = -1, cause = -1, count = -1;
    OK(deck_view_departed(&e.view, &id, &cause, 1, &count));
    CHECK(count == 1 && id == who && cause == how);
    OK(deck_view_joined(&e.view, NULL, 0, &count));
    CHECK(count == 0);
}

static void send(deck_group_t *g, int value)
{
    deck_msg_t m;
    OK(deck_msg_create(&m, 0));
    OK(deck_msg_pack(&m, DECK_INT, &value, 1));
    OK(deck_group_bcast(g, &m));
    OK(deck_msg_destroy(&m));
}

/* The members join in the order of the nodes, each sends its number, and all but the first leave again. */
int main(int argc, char **argv)
{
    deck_group_t g = DECK_NOTHING;
    deck_mbox_t mb;
    deck_view_t none = DECK_NOTHING;
    uint64_t number = 0;
    int count;
    begin(&argc, &argv);
    OK(deck_mbox_create(&mb, NULL));
    FAILS(DECK_EWOULDBLOCK, deck_mbox_event_try(&mb, &e));
    FAILS(DECK_ETIMEDOUT, deck_mbox_event_timed(&mb, &e, 1));
    FAILS(DECK_EVALUE, deck_mbox_event_timed(&mb, &e, -2));
    FAILS(DECK_ENULL, deck_mbox_event(&mb, NULL));
    FAILS(DECK_EHANDLE, deck_view_members(&none, NULL, 0, &count));
    if (node == 0) OK(deck_group_create(&g, "views", 1));
    OK(deck_collective_barrier(&all));
    for (int i = 0; i < nodes; i++) {
        if (node == i) {
            OK(deck_group_join(&g, &mb, "views"));
            send(&g, i);
        }
        OK(deck_collective_barrier(&all));
    }
    OK(deck_group_number(&g, &number));
    for (int i = node; i < nodes; i++) {
        view(&mb, i, i + 1);
        CHECK(e.group == number && e.number == (uint64_t)i + 1);
        message(&mb, i, i);
        CHECK(e.group == number && e.member == i);
    }
    OK(deck_collective_barrier(&all));
    for (int i = nodes - 1; i > 0; i--) {
        if (node == i) OK(deck_group_leave(&g));
        if (node < i) {
            view(&mb, nodes, i);
            gone(i, DECK_LEFT);
        }
        OK(deck_collective_barrier(&all));
    }
    if (node == 0) {
        FAILS(DECK_EVALUE, deck_view_members(&e.view, NULL, -1, &count));
        FAILS(DECK_ENULL, deck_view_members(&e.view, NULL, 1, &count));
    }
    FAILS(DECK_EWOULDBLOCK, deck_mbox_event_try(&mb, &e));
    OK(deck_view_destroy(&e.view));
    FAILS(DECK_EDESTROYED, deck_view_members(&e.view, NULL, 0, &count));
    OK(deck_msg_destroy(&e.msg));
    OK(deck_group_close(&g));
    OK(deck_collective_barrier(&all));
    OK(deck_mbox_destroy(&mb));
    return end("views");
}
