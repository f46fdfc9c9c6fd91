/* Mailboxes: under names and inside messages, of processes and of threads; who may not is told. */
#include "check.h"
#include <poll.h>

static void name_of(char *name, const char *what, int number) { sprintf(name, "%s %d", what, number); }

/* Everybody sends everybody a number and the way back. */
static void everybody_to_everybody(void)
{
    deck_mbox_t own, answers, other, back;
    deck_msg_t m;
    char name[32];
    long value, sum = 0;
    name_of(name, "inbox", node);
    OK(deck_mbox_create(&own, name));
    OK(deck_mbox_create(&answers, NULL));
    OK(deck_mbox_store(&answers, "sender"));
    FAILS(DECK_EVALUE, deck_mbox_store(&answers, "no such host"));
    OK(deck_collective_barrier(&all));
    OK(deck_msg_create(&m, 64));
    for (int to = 0; to < nodes; to++) {
        name_of(name, "inbox", to);
        OK(deck_mbox_fetch(&other, name));
        value = 100 * node + to;
        OK(deck_msg_clear(&m));
        OK(deck_msg_pack(&m, DECK_LONG, &value, 1));
        OK(deck_msg_pack_mbox(&m, &answers));
        OK(deck_mbox_post(&other, &m));
        OK(deck_mbox_destroy(&other));
    }
    for (int i = 0; i < nodes; i++) {
        OK(deck_mbox_retrv(&own, &m));
        OK(deck_msg_unpack(&m, DECK_LONG, &value, 1));
        CHECK(value % 100 == node);
        OK(deck_msg_unpack_mbox(&m, &back));
        OK(deck_msg_clear(&m));
        OK(deck_msg_pack(&m, DECK_LONG, &value, 1));
        OK(deck_msg_pack_string(&m, "answer"));
        OK(deck_mbox_post(&back, &m));
        OK(deck_mbox_destroy(&back));
        sum += value;
    }
    for (int i = 0; i < nodes; i++) {
        char text[8];
        OK(deck_mbox_retrv_timed(&answers, &m, 100000));
        OK(deck_msg_unpack(&m, DECK_LONG, &value, 1));
        CHECK(value / 100 == node);
        OK(deck_msg_unpack_string(&m, text, sizeof text, NULL));
        CHECK(strcmp(text, "answer") == 0);
    }
    CHECK(sum == (long)nodes * node + 100L * nodes * (nodes - 1) / 2);
    FAILS(DECK_EWOULDBLOCK, deck_mbox_retrv_try(&own, &m));
    FAILS(DECK_ETIMEDOUT, deck_mbox_retrv_timed(&own, &m, 1));
    OK(deck_collective_barrier(&all));
    OK(deck_mbox_destroy(&answers));
    OK(deck_mbox_destroy(&own));
    FAILS(DECK_EDESTROYED, deck_mbox_retrv(&own, &m));
    OK(deck_msg_destroy(&m));
}

/* Long messages, mixed and plain, arrive whole and in order. */
static void long_messages(void)
{
    enum { LENGTH = 300000 };
    deck_mbox_t own, next;
    deck_msg_t m;
    char name[32];
    int *numbers = malloc(LENGTH * sizeof *numbers);
    name_of(name, "long", node);
    OK(deck_mbox_create(&own, name));
    OK(deck_collective_barrier(&all));
    name_of(name, "long", (node + 1) % nodes);
    OK(deck_mbox_fetch(&next, name));
    OK(deck_msg_create(&m, 0));
    for (int round = 0; round < 4; round++) {
        int length = round % 2 ? LENGTH / 10 : 1000;
        for (int i = 0; i < length; i++) numbers[i] = i * (round + 1) + node;
        OK(deck_msg_clear(&m));
        if (round >= 2) OK(deck_msg_pack_string(&m, "mixed"));
        OK(deck_msg_pack(&m, DECK_INT, numbers, (size_t)length));
        OK(deck_mbox_post(&next, &m));
    }
    for (int round = 0; round < 4; round++) {
        int length = round % 2 ? LENGTH / 10 : 1000, from = (node + nodes - 1) % nodes;
        char text[8];
        OK(deck_mbox_retrv(&own, &m));
        if (round >= 2) OK(deck_msg_unpack_string(&m, text, sizeof text, NULL));
        memset(numbers, 0, LENGTH * sizeof *numbers);
        OK(deck_msg_unpack(&m, DECK_INT, numbers, (size_t)length));
        for (int i = 0; i < length; i++) CHECK(numbers[i] == i * (round + 1) + from);
    }
    OK(deck_collective_barrier(&all));
    OK(deck_mbox_destroy(&next));
    OK(deck_mbox_destroy(&own));
    OK(deck_msg_destroy(&m));
    free(numbers);
}

/* Names that cannot be, and names twice. */
static void names(void)
{
    deck_mbox_t mb, second;
    char longest[DECK_NAME_MAX + 1], too_long[DECK_NAME_MAX + 2], name[32];
    memset(longest, 'a' + node, sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    FAILS(DECK_ENULL, deck_mbox_create(NULL, "name"));
    FAILS(DECK_ENAMEEMPTY, deck_mbox_create(&mb, ""));
    FAILS(DECK_ENAMELONG, deck_mbox_create(&mb, too_long));
    FAILS(DECK_ENAMEUTF8, deck_mbox_create(&mb, "\xc3"));
    FAILS(DECK_ENAMECONTROL, deck_mbox_create(&mb, "a\nb"));
    FAILS(DECK_ENULL, deck_mbox_fetch(&mb, NULL));
    FAILS(DECK_ENAMEEMPTY, deck_mbox_fetch(&mb, ""));
    FAILS(DECK_EUNKNOWN, deck_mbox_fetch(&mb, "nobody has this name"));
    OK(deck_mbox_create(&mb, longest));
    FAILS(DECK_ETAKEN, deck_mbox_create(&second, longest));
    OK(deck_mbox_fetch(&second, longest));
    OK(deck_mbox_destroy(&second));
    OK(deck_mbox_destroy(&mb));
    FAILS(DECK_EUNKNOWN, deck_mbox_fetch(&mb, longest));
    /* The name is free again. */
    name_of(name, "again", node);
    for (int i = 0; i < 20; i++) {
        OK(deck_mbox_create(&mb, name));
        OK(deck_mbox_destroy(&mb));
    }
}

static void *other_thread(void *argument)
{
    deck_mbox_t *mb = argument, own;
    deck_msg_t m;
    int number = 0;
    OK(deck_msg_create(&m, 0));
    FAILS(DECK_ENOTCREATOR, deck_mbox_retrv(mb, &m));
    FAILS(DECK_ENOTCREATOR, deck_mbox_retrv_try(mb, &m));
    FAILS(DECK_ENOTCREATOR, deck_mbox_destroy(mb));
    /* It has one of its own, which goes with it; the first thread knows it by a message. */
    OK(deck_mbox_create(&own, NULL));
    OK(deck_msg_pack_mbox(&m, &own));
    OK(deck_mbox_post(mb, &m));
    OK(deck_mbox_retrv(&own, &m));
    OK(deck_msg_unpack(&m, DECK_INT, &number, 1));
    OK(deck_msg_destroy(&m));
    return (void *)(intptr_t)number;
}

/* Only the creator retrieves; who posts to what is no more is told. */
static void threads_and_ends(void)
{
    deck_mbox_t mb, theirs;
    deck_msg_t m;
    deck_thread_t thread;
    void *result;
    int number = 4711;
    OK(deck_mbox_create(&mb, NULL));
    OK(deck_msg_create(&m, 0));
    OK(deck_thread_create(&thread, other_thread, &mb));
    OK(deck_mbox_retrv(&mb, &m));
    OK(deck_msg_unpack_mbox(&m, &theirs));
    FAILS(DECK_ENOTCREATOR, deck_mbox_retrv_try(&theirs, &m));
    OK(deck_msg_clear(&m));
    OK(deck_msg_pack(&m, DECK_INT, &number, 1));
    OK(deck_mbox_post(&theirs, &m));
    OK(deck_thread_join(&thread, &result));
    CHECK((intptr_t)result == 4711);
    FAILS(DECK_EGONE, deck_mbox_post(&theirs, &m));
    FAILS(DECK_EGONE, deck_mbox_post_try(&theirs, &m));
    OK(deck_mbox_destroy(&theirs));
    FAILS(DECK_EDESTROYED, deck_mbox_post(&theirs, &m));
    FAILS(DECK_EVALUE, deck_mbox_retrv_timed(&mb, &m, -2));
    FAILS(DECK_EHANDLE, deck_mbox_post(&mb, &(deck_msg_t)DECK_NOTHING));
    FAILS(DECK_ENOPROGRESS, deck_mbox_descriptor(&mb, &number));
    CHECK(strstr(deck_error_text(), "start with deck_init_flags and DECK_PROGRESS"));
    OK(deck_mbox_post_try(&mb, &m));
    OK(deck_mbox_retrv_try(&mb, &m));
    OK(deck_mbox_destroy(&mb));
    OK(deck_msg_destroy(&m));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    everybody_to_everybody();
    long_messages();
    names();
    threads_and_ends();
    return end("mailboxes");
}
