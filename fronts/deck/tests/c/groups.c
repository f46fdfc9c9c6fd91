/* Groups: members come and go, broadcasts reach all of them once and in one order, who may not is told. */
#include "check.h"

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { ROUNDS = 20 };

static void send(deck_group_t *g, deck_msg_t *m, int kind, int number)
{
    int values[3] = { node, kind, number };
    OK(deck_msg_clear(m));
    OK(deck_msg_pack(m, DECK_INT, values, 3));
    OK(deck_group_bcast(g, m));
}

static int next(deck_mbox_t *mb, deck_msg_t *m, int *kind, int *number)
{
    int values[3];
    OK(deck_mbox_retrv_timed(mb, m, 100000));
    OK(deck_msg_unpack(m, DECK_INT, values, 3));
    *kind = values[1];
    *number = values[2];
    return values[0];
}

/* Everybody broadcasts to everybody; each sender's messages come in their order, all once. */
static void broadcasts(void)
{
    deck_group_t g = DECK_NOTHING, twin = DECK_NOTHING;
    deck_mbox_t mb;
    deck_msg_t m;
    const char *name = "everybody";
    int ids[16], members = 0, id = -1, seen[16] = { 0 }, kind, number;
    OK(deck_mbox_create(&mb, NULL));
    OK(deck_msg_create(&m, 0));
    if (node == 0) {
        OK(deck_group_create(&g, name, nodes));
        FAILS(DECK_ETAKEN, deck_group_create(&twin, name, 1));
        FAILS(DECK_ELEFT, deck_group_id(&g, &id));
        FAILS(DECK_ELEFT, deck_group_sync(&g));
        FAILS(DECK_ELEFT, deck_group_leave(&g));
        FAILS(DECK_EMINIMUM, deck_group_bcast_timed(&g, &m, 1));
        FAILS(DECK_EMINIMUM, deck_group_bcast_try(&g, &m));
    }
    OK(deck_collective_barrier(&all));
    OK(deck_group_join(&g, &mb, name));
    FAILS(DECK_EALREADYMEMBER, deck_group_join(&twin, &mb, name));
    OK(deck_group_id(&g, &id));
    CHECK(id >= 0 && id < nodes);
    for (int i = 0; i < ROUNDS; i++) send(&g, &m, 0, i);
    OK(deck_group_sync(&g));
    /* All broadcasts of all are there now. */
    for (int i = 0; i < ROUNDS * nodes; i++) {
        int values[3];
        OK(deck_mbox_retrv_try(&mb, &m));
        OK(deck_msg_unpack(&m, DECK_INT, values, 3));
        CHECK(values[2] == seen[values[0]]);
        seen[values[0]]++;
    }
    FAILS(DECK_EWOULDBLOCK, deck_mbox_retrv_try(&mb, &m));
    OK(deck_group_view(&g, ids, 16, &members));
    CHECK(members == nodes);
    for (int i = 0; i < members; i++) CHECK(ids[i] == i);
    OK(deck_group_view(&g, NULL, 0, &members));
    OK(deck_group_sync(&g));
    /* To all but oneself. */
    OK(deck_msg_clear(&m));
    int hello[3] = { node, 1, 0 };
    OK(deck_msg_pack(&m, DECK_INT, hello, 3));
    OK(deck_group_bcast_others(&g, &m));
    OK(deck_group_sync(&g));
    for (int i = 0; i < nodes - 1; i++) CHECK(next(&mb, &m, &kind, &number) != node && kind == 1);
    FAILS(DECK_EWOULDBLOCK, deck_mbox_retrv_try(&mb, &m));
    OK(deck_group_sync(&g));
    OK(deck_group_leave(&g));
    FAILS(DECK_ELEFT, deck_group_leave(&g));
    FAILS(DECK_ELEFT, deck_group_sync(&g));
    OK(deck_collective_barrier(&all));
    /* The last leave has ended it. */
    FAILS(DECK_EGROUPDESTROYED, deck_group_bcast(&g, &m));
    FAILS(DECK_EGROUPDESTROYED, deck_group_destroy(&g));
    FAILS(DECK_EDESTROYED, deck_group_bcast(&g, &m));
    FAILS(DECK_EUNKNOWN, deck_group_join(&twin, &mb, name));
    OK(deck_mbox_destroy(&mb));
    OK(deck_msg_destroy(&m));
}

/* Who is no member sends as well; a leave counts as coming; destruction is told to who waits. */
static void strangers(void)
{
    deck_group_t g = DECK_NOTHING;
    deck_group_options_t options = OPTIONS(.persistent = 1, .messages = 64, .bytes = 1 << 20);
    deck_mbox_t mb;
    deck_msg_t m;
    const char *name = "strangers";
    int kind, number, members;
    OK(deck_mbox_create(&mb, NULL));
    OK(deck_msg_create(&m, 0));
    if (node == 0) OK(deck_group_create_with(&g, name, 1, &options));
    OK(deck_collective_barrier(&all));
    if (node == 0) OK(deck_group_join(&g, &mb, name));
    else OK(deck_group_open(&g, name));
    OK(deck_collective_barrier(&all));
    if (node != 0) send(&g, &m, 2, 0);
    OK(deck_collective_barrier(&all));
    if (node == 0) {
        for (int i = 1; i < nodes; i++) CHECK(next(&mb, &m, &kind, &number) > 0 && kind == 2);
        OK(deck_group_leave(&g));
        /* It is persistent: nobody gets this. */
        send(&g, &m, 3, 0);
        OK(deck_group_view(&g, NULL, 0, &members));
        CHECK(members == 0);
        FAILS(DECK_EWOULDBLOCK, deck_mbox_retrv_try(&mb, &m));
        OK(deck_group_join(&g, &mb, name));
    }
    OK(deck_collective_barrier(&all));
    if (node == nodes - 1) OK(deck_group_destroy_timed(&g, 100000));
    OK(deck_collective_barrier(&all));
    if (node == 0 && nodes > 1) FAILS(DECK_EGROUPDESTROYED, deck_group_sync(&g));
    if (node != nodes - 1) {
        FAILS(DECK_EGROUPDESTROYED, deck_group_bcast(&g, &m));
        OK(deck_group_close(&g));
    }
    OK(deck_mbox_destroy(&mb));
    OK(deck_msg_destroy(&m));
}

/* Node 1 does not retrieve: what becomes of a broadcast without room in its mailbox is an option. */
static void full_mailboxes(void)
{
    deck_group_options_t refuse = OPTIONS(.messages = 1, .when_full = DECK_REFUSE);
    deck_group_options_t evict = OPTIONS(.messages = 4, .when_full = DECK_EVICT, .evict_ms = 20);
    deck_group_t g = DECK_NOTHING;
    deck_mbox_t mb;
    deck_msg_t m;
    const char *refusing = "refuse", *evicting = "evict";
    int kind, number, members, got = 0, error;
    OK(deck_mbox_create(&mb, NULL));
    OK(deck_msg_create(&m, 0));
    if (node == 0) OK(deck_group_create_with(&g, refusing, 2, &refuse));
    OK(deck_collective_barrier(&all));
    if (node < 2) OK(deck_group_join(&g, &mb, refusing));
    if (node == 0) {
        send(&g, &m, 6, 0);
        CHECK(next(&mb, &m, &kind, &number) == 0 && kind == 6);
        FAILS(DECK_EFULL, deck_group_bcast(&g, &m));
    }
    OK(deck_collective_barrier(&all));
    if (node == 1) CHECK(next(&mb, &m, &kind, &number) == 0 && kind == 6);
    if (node < 2) OK(deck_group_leave(&g));
    if (node == 0) OK(deck_group_create_with(&g, evicting, 2, &evict));
    OK(deck_collective_barrier(&all));
    if (node < 2) OK(deck_group_join(&g, &mb, evicting));
    if (node == 0) {
        for (int i = 0; i < 10; i++) {
            send(&g, &m, 7, i);
            CHECK(next(&mb, &m, &kind, &number) == 0 && number == i);
        }
        OK(deck_group_view(&g, NULL, 0, &members));
        CHECK(members == 1);
        OK(deck_group_sync(&g));
    }
    OK(deck_collective_barrier(&all));
    if (node == 1) {
        while ((error = deck_mbox_retrv_timed(&mb, &m, 100000)) == DECK_OK) got++;
        CHECK(error == DECK_ELEFT && got <= 4);
        FAILS(DECK_ELEFT, deck_group_bcast(&g, &m));
        FAILS(DECK_ELEFT, deck_group_sync(&g));
        FAILS(DECK_ELEFT, deck_group_leave(&g));
        OK(deck_group_close(&g));
    }
    OK(deck_collective_barrier(&all));
    if (node == 0) OK(deck_group_leave(&g));
    OK(deck_mbox_destroy(&mb));
    OK(deck_msg_destroy(&m));
}

static atomic_int opened;

/* What others are told while a group is being destroyed, one with a call that waits for room. */
static void *held(void *name)
{
    deck_group_t g = DECK_NOTHING;
    deck_msg_t m;
    int error;
    OK(deck_msg_create(&m, 0));
    OK(deck_group_open(&g, name));
    opened++;
    error = deck_group_bcast(&g, &m);
    CHECK(error == DECK_EGROUPDESTROYED || error == DECK_EDESTROYING);
    OK(deck_group_close(&g));
    OK(deck_msg_destroy(&m));
    return NULL;
}

static void *without_waiting(void *name)
{
    deck_group_t g = DECK_NOTHING;
    deck_msg_t m;
    int error;
    OK(deck_msg_create(&m, 0));
    OK(deck_group_open(&g, name));
    opened++;
    while ((error = deck_group_bcast_try(&g, &m)) == DECK_EFULL) continue;
    CHECK(error == DECK_EGROUPDESTROYED || error == DECK_EDESTROYING);
    if (error == DECK_EDESTROYING) {
        error = deck_group_bcast_wait(&g);
        CHECK(error == DECK_EGROUPDESTROYED || error == DECK_EDESTROYING);
        error = DECK_EDESTROYING;
    }
    OK(deck_group_close(&g));
    OK(deck_msg_destroy(&m));
    return error == DECK_EDESTROYING ? name : NULL;
}

struct destruction {
    void *name;
    int time_ms, error;
};

/* A thread without the mailbox waits for room there. Its owner would be told at once that it waits for itself. */
static void *destroys(void *argument)
{
    struct destruction *it = argument;
    deck_group_t g = DECK_NOTHING;
    OK(deck_group_open(&g, it->name));
    it->error = deck_group_destroy_timed(&g, it->time_ms);
    return NULL;
}

/* A broadcast has no room until the time of the destruction is over. Whether it waits by then, and whether
 * somebody looks meanwhile, is for the scheduler to say: so until both were seen. */
static void destroyed_with_loss(void)
{
    deck_group_options_t one = OPTIONS(.messages = 1);
    int error = DECK_OK, was_told = 0;
    for (int time_ms = 20; error != DECK_ELOSS || !was_told; time_ms += 20) {
        deck_group_t g = DECK_NOTHING;
        deck_mbox_t mb;
        deck_msg_t m;
        deck_thread_t threads[3];
        void *told;
        char name[DECK_NAME_MAX + 1];
        struct destruction destruction = {name, time_ms, DECK_OK};
        int kind, number;
        snprintf(name, sizeof name, "lost %d %d", node, time_ms);
        OK(deck_mbox_create(&mb, NULL));
        OK(deck_msg_create(&m, 0));
        OK(deck_group_create_with(&g, name, 1, &one));
        OK(deck_group_join(&g, &mb, name));
        send(&g, &m, 8, time_ms);
        OK(deck_thread_create(&threads[0], held, name));
        OK(deck_thread_create(&threads[1], without_waiting, name));
        while (opened < 2) sched_yield();
        opened = 0;
        usleep(50 * time_ms);
        OK(deck_thread_create(&threads[2], destroys, &destruction));
        OK(deck_thread_join(&threads[2], NULL));
        error = destruction.error;
        CHECK(error == DECK_OK || error == DECK_ELOSS);
        OK(deck_group_close(&g));
        OK(deck_thread_join(&threads[0], NULL));
        OK(deck_thread_join(&threads[1], &told));
        was_told = told != NULL;
        CHECK(next(&mb, &m, &kind, &number) == node && kind == 8 && number == time_ms);
        FAILS(DECK_EWOULDBLOCK, deck_mbox_retrv_try(&mb, &m));
        OK(deck_mbox_destroy(&mb));
        OK(deck_msg_destroy(&m));
    }
}

/* Threads are members too, each with a mailbox of its own. */
static void *member_thread(void *argument)
{
    deck_group_t g = DECK_NOTHING;
    deck_mbox_t mb;
    deck_msg_t m;
    const char *name = "threads";
    int sum = 0, kind, number, id;
    OK(deck_mbox_create(&mb, NULL));
    OK(deck_msg_create(&m, 0));
    FAILS(DECK_ENOTCREATOR, deck_group_join(&g, (deck_mbox_t *)argument, name));
    OK(deck_group_join(&g, &mb, name));
    OK(deck_group_id(&g, &id));
    for (int i = 0; i < ROUNDS; i++) {
        send(&g, &m, 4, i);
        OK(deck_group_sync(&g));
        for (int from = 0; from < 3 * nodes; from++) {
            next(&mb, &m, &kind, &number);
            CHECK(kind == 4 && number == i);
            sum++;
        }
        OK(deck_group_sync(&g));
    }
    FAILS(DECK_ETWICE, deck_collective_barrier(&g));
    OK(deck_group_sync(&g));
    OK(deck_group_leave(&g));
    OK(deck_msg_destroy(&m));
    return (void *)(intptr_t)sum;
}

/* A thread with a mailbox of its own, which sends with the object of another one. */
static void *sending_thread(void *argument)
{
    deck_group_t *theirs = argument, g = DECK_NOTHING;
    deck_mbox_t mb;
    deck_msg_t m;
    const char *name = "one object";
    int kind, number;
    OK(deck_mbox_create(&mb, NULL));
    OK(deck_msg_create(&m, 0));
    OK(deck_group_join(&g, &mb, name));
    for (int i = 0; i < ROUNDS; i++) {
        send(theirs, &m, 5, i);
        OK(deck_group_sync(&g));
        for (int from = 0; from < nodes; from++) next(&mb, &m, &kind, &number);
    }
    OK(deck_group_leave(&g));
    OK(deck_msg_destroy(&m));
    return NULL;
}

/* Threads send with one object, also while another one waits in a synchronisation with it. */
static void one_object(void)
{
    deck_group_t g = DECK_NOTHING;
    deck_thread_t thread;
    deck_mbox_t mb;
    deck_msg_t m;
    const char *name = "one object";
    int kind, number;
    OK(deck_mbox_create(&mb, NULL));
    OK(deck_msg_create(&m, 0));
    if (node == 0) OK(deck_group_create(&g, name, 2 * nodes));
    OK(deck_collective_barrier(&all));
    OK(deck_group_join(&g, &mb, name));
    OK(deck_thread_create(&thread, sending_thread, &g));
    for (int i = 0; i < ROUNDS; i++) {
        OK(deck_group_sync(&g));
        for (int from = 0; from < nodes; from++) {
            next(&mb, &m, &kind, &number);
            CHECK(kind == 5 && number == i);
        }
    }
    OK(deck_thread_join(&thread, NULL));
    OK(deck_group_leave(&g));
    OK(deck_collective_barrier(&all));
    OK(deck_group_close(&g));
    OK(deck_mbox_destroy(&mb));
    OK(deck_msg_destroy(&m));
}

static void threads(void)
{
    enum { THREADS = 3 };
    deck_group_t g = DECK_NOTHING;
    deck_thread_t threads[THREADS];
    deck_mbox_t mine;
    const char *name = "threads";
    OK(deck_mbox_create(&mine, NULL));
    if (node == 0) OK(deck_group_create(&g, name, THREADS * nodes));
    OK(deck_collective_barrier(&all));
    for (int i = 0; i < THREADS; i++) OK(deck_thread_create(&threads[i], member_thread, &mine));
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        OK(deck_thread_join(&threads[i], &sum));
        CHECK((intptr_t)sum == (intptr_t)ROUNDS * THREADS * nodes);
    }
    if (node == 0) OK(deck_group_close(&g));
    OK(deck_mbox_destroy(&mine));
    OK(deck_collective_barrier(&all));
}

/* Collective operations in a group whose members come and go. */
static void together(void)
{
    deck_group_t g = DECK_NOTHING;
    deck_mbox_t mb;
    deck_msg_t m;
    const char *name = "together";
    int id, one = 1, sum, members, root;
    OK(deck_mbox_create(&mb, NULL));
    OK(deck_msg_create(&m, 0));
    if (node == 0) OK(deck_group_create(&g, name, nodes));
    OK(deck_collective_barrier(&all));
    OK(deck_group_join(&g, &mb, name));
    OK(deck_group_id(&g, &id));
    static const char *const ways[] = { NULL, "deck2003", "mpi2003" };
    for (int i = 0; i < 3; i++) {
        OK(deck_collective_use(&g, ways[i]));
        OK(deck_collective_barrier(&g));
        OK(deck_group_size(&g, &members));
        CHECK(members == nodes);
        for (root = 0; root < nodes; root++) {
            OK(deck_msg_clear(&m));
            if (id == root) OK(deck_msg_pack(&m, DECK_INT, &root, 1));
            OK(deck_collective_bcast(&g, &m, root));
            OK(deck_msg_rewind(&m));
            OK(deck_msg_unpack(&m, DECK_INT, &sum, 1));
            CHECK(sum == root);
        }
        OK(deck_msg_clear(&m));
        OK(deck_msg_pack(&m, DECK_INT, &one, 1));
        OK(deck_collective_allreduce(&g, &m, &m, DECK_SUM));
        OK(deck_msg_unpack(&m, DECK_INT, &sum, 1));
        CHECK(sum == nodes);
    }
    /* Number 0 leaves; the others go on, with roots by their numbers. */
    OK(deck_group_sync(&g));
    if (id == 0) OK(deck_group_leave(&g));
    OK(deck_collective_barrier(&all));
    if (id != 0) {
        OK(deck_msg_clear(&m));
        OK(deck_msg_pack(&m, DECK_INT, &one, 1));
        OK(deck_collective_allreduce(&g, &m, &m, DECK_SUM));
        OK(deck_msg_unpack(&m, DECK_INT, &sum, 1));
        CHECK(sum == nodes - 1);
        FAILS(DECK_EVALUE, deck_collective_bcast(&g, &m, 0));
        OK(deck_collective_bcast(&g, &m, 1));
    }
    OK(deck_collective_barrier(&all));
    OK(deck_group_close(&g));
    OK(deck_mbox_destroy(&mb));
    OK(deck_msg_destroy(&m));
}

/* A program may have been compiled with another header: what counts is what it sets. */
static void sizes_of_options(const char *name)
{
    static const size_t wrong[] = { 0, 1, sizeof(deck_group_options_t) - 1, 4097, SIZE_MAX };
    struct { deck_group_options_t known; int added[2]; } newer = { DECK_GROUP_OPTIONS_INIT, { 0, 0 } };
    deck_group_options_t options = DECK_GROUP_OPTIONS_INIT;
    deck_group_t g = DECK_NOTHING;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.size = wrong[i];
        FAILS(DECK_EOPTIONS, deck_group_create_with(&g, name, 1, &options));
        CHECK(strstr(deck_error_text(), "begin the options with DECK_GROUP_OPTIONS_INIT"));
    }
    newer.known.size = sizeof newer;
    newer.added[1] = 1;
    FAILS(DECK_EOPTIONS, deck_group_create_with(&g, name, 1, &newer.known));
    CHECK(strstr(deck_error_text(), "options has 48 bytes and sets an option behind the 40 that this library"));
    newer.added[1] = 0;
    newer.known.when_full = 7;
    FAILS(DECK_EVALUE, deck_group_create_with(&g, name, 1, &newer.known));
}

static void mistakes(void)
{
    deck_group_t g = DECK_NOTHING;
    deck_group_options_t options = OPTIONS(.when_full = 7), endless = OPTIONS(.bytes = SIZE_MAX);
    deck_msg_t m;
    deck_mbox_t mb, none = DECK_NOTHING;
    const char *empty = "", *not_utf8 = "\xff", *control = "a\tb", *name = "nobody made it";
    char too_long[DECK_NAME_MAX + 2];
    memset(too_long, 'g', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    OK(deck_msg_create(&m, 0));
    OK(deck_mbox_create(&mb, NULL));
    FAILS(DECK_ENULL, deck_group_create(NULL, name, 1));
    FAILS(DECK_ENULL, deck_group_create(&g, NULL, 1));
    FAILS(DECK_ENAMEEMPTY, deck_group_create(&g, empty, 1));
    FAILS(DECK_ENAMEUTF8, deck_group_create(&g, not_utf8, 1));
    FAILS(DECK_ENAMECONTROL, deck_group_create(&g, control, 1));
    FAILS(DECK_ENAMELONG, deck_group_create(&g, too_long, 1));
    FAILS(DECK_EVALUE, deck_group_create(&g, name, -1));
    FAILS(DECK_EVALUE, deck_group_create(&g, name, 100000));
    FAILS(DECK_EVALUE, deck_group_create_with(&g, name, 1, &options));
    FAILS(DECK_EVALUE, deck_group_create_with(&g, name, 1, &endless));
    CHECK(strstr(deck_error_text(), "have 18,446,744,073,709,551,615 bytes together, at most 1,095,216,660,480 fit"));
    sizes_of_options(name);
    FAILS(DECK_EUNKNOWN, deck_group_join(&g, &mb, name));
    FAILS(DECK_EHANDLE, deck_group_join(&g, &none, name));
    FAILS(DECK_EUNKNOWN, deck_group_open(&g, name));
    FAILS(DECK_EHANDLE, deck_group_leave(&g));
    FAILS(DECK_EVALUE, deck_group_bcast(&all, &m));
    FAILS(DECK_EVALUE, deck_group_leave(&all));
    FAILS(DECK_EVALUE, deck_group_destroy(&all));
    OK(deck_mbox_destroy(&mb));
    OK(deck_msg_destroy(&m));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    broadcasts();
    strangers();
    if (nodes > 1) full_mailboxes();
    destroyed_with_loss();
    one_object();
    threads();
    together();
    mistakes();
    return end("groups");
}
