/* All nodes repeat the operation that the first argument names. One of them, the second argument, is killed from
   outside, meanwhile or before: the third argument says which. Each other node says when it was told and what, and then stays: it neither calls the library again nor
   ends, so nobody is told by its leaving. */
#include "check.h"
#include "deaths.h"

enum { LONG_VALUES = 20000 };

static int victim;
static deck_msg_t ours, theirs;
static deck_group_t crowd = DECK_NOTHING;
static deck_sem_t held;
static deck_mbox_t own_mbox, victims_mbox;

static void fill(deck_msg_t *m, int count)
{
    OK(deck_msg_clear(m));
    for (int at = 0; at < count; at++) OK(deck_msg_pack(m, DECK_INT, &node, 1));
}

/* A group that all nodes have joined. */
static int join_crowd(const deck_group_options_t *options)
{
    const char *name = "crowd";
    if (node == 0) OK(deck_group_create_with(&crowd, name, nodes, options));
    OK(deck_collective_barrier(&all));
    return deck_group_join(&crowd, &own_mbox, name);
}

static int barrier(void) { return deck_collective_barrier(&all); }

static int bcast(void)
{
    if (node == victim) fill(&ours, 10);
    return deck_collective_bcast(&all, &ours, victim);
}

static int bcast_of_another(void)
{
    int root = (victim + 1) % nodes;
    if (node == root) fill(&ours, 10);
    return deck_collective_bcast(&all, &ours, root);
}

/* The lengths change, so it takes two steps now and then. */
static int bcast_long(void)
{
    static int count;
    if (node == victim) fill(&ours, ++count % 2 ? 10 : LONG_VALUES);
    return deck_collective_bcast(&all, &ours, victim);
}

static int scatter(void)
{
    if (node == victim) fill(&ours, nodes);
    return deck_collective_scatter(&all, node == victim ? &ours : NULL, &theirs, victim);
}

static int gather(void)
{
    fill(&ours, 10);
    return deck_collective_gather(&all, &ours, node == victim ? &theirs : NULL, victim);
}

static int gather_any(void)
{
    fill(&ours, node + 1);
    return deck_collective_gather_any(&all, &ours, node == victim ? &theirs : NULL, victim);
}

static int allgather(void)
{
    fill(&ours, 10);
    return deck_collective_allgather(&all, &ours, &theirs);
}

static int allgather_any(void)
{
    fill(&ours, node + 1);
    return deck_collective_allgather_any(&all, &ours, &theirs);
}

static int reduce(void)
{
    fill(&ours, 10);
    return deck_collective_reduce(&all, &ours, node == victim ? &theirs : NULL, DECK_SUM, victim);
}

static int allreduce(void)
{
    fill(&ours, 10);
    return deck_collective_allreduce(&all, &ours, &theirs, DECK_SUM);
}

static int crowd_allreduce(void)
{
    deck_group_options_t options = DECK_GROUP_OPTIONS_INIT;
    int id;
    if (deck_group_id(&crowd, &id) != DECK_OK) TRY(join_crowd(&options));
    fill(&ours, 10);
    return deck_collective_allreduce(&crowd, &ours, &theirs, DECK_SUM);
}

static int crowd_sync(void)
{
    deck_group_options_t options = DECK_GROUP_OPTIONS_INIT;
    int id;
    if (deck_group_id(&crowd, &id) != DECK_OK) TRY(join_crowd(&options));
    return deck_group_sync(&crowd);
}

/* The server is a thread of node 0, which may be the victim. */
static int served_sync(void)
{
    deck_group_options_t options = OPTIONS(.served_by = DECK_CREATOR);
    int id;
    if (deck_group_id(&crowd, &id) != DECK_OK) TRY(join_crowd(&options));
    return deck_group_sync(&crowd);
}

static int crowd_bcast_and_sync(void)
{
    int error;
    TRY(crowd_sync());
    fill(&ours, 10);
    TRY(deck_group_bcast(&crowd, &ours));
    TRY(deck_group_sync(&crowd));
    while ((error = deck_mbox_retrv_try(&own_mbox, &theirs)) == DECK_OK) continue;
    return error == DECK_EWOULDBLOCK ? DECK_OK : error;
}

/* The victim holds the unit, and the others wait for it. */
static int semaphore(void)
{
    static int is_waiting;
    if (node == victim) {
        usleep(1000);
        return DECK_OK;
    }
    return is_waiting++ ? deck_sem_p(&held) : DECK_OK;
}

/* The victim retrieves less than the others post. */
static int mailbox(void)
{
    if (node == victim) {
        usleep(100);
        int error = deck_mbox_retrv_try(&own_mbox, &theirs);
        return error == DECK_EWOULDBLOCK ? DECK_OK : error;
    }
    fill(&ours, 10);
    return deck_mbox_post(&victims_mbox, &ours);
}

static const struct operation operations[] = {
    OPERATION(barrier), OPERATION(bcast), OPERATION(bcast_of_another), OPERATION(bcast_long), OPERATION(scatter),
    OPERATION(gather), OPERATION(gather_any), OPERATION(allgather), OPERATION(allgather_any), OPERATION(reduce),
    OPERATION(allreduce), OPERATION(crowd_allreduce), OPERATION(crowd_sync), OPERATION(served_sync), OPERATION(crowd_bcast_and_sync),
    OPERATION_HERE(semaphore), OPERATION(mailbox),
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static void prepare(int (*run)(void))
{
    char name[32];
    OK(deck_msg_create(&ours, 0));
    OK(deck_msg_create(&theirs, 0));
    snprintf(name, sizeof name, "mailbox of %d", node);
    OK(deck_mbox_create(&own_mbox, name));
    if (run == semaphore && node == victim) {
        OK(deck_sem_create(&held, "held", 1));
        OK(deck_sem_p(&held));
    }
    OK(deck_collective_barrier(&all));
    snprintf(name, sizeof name, "mailbox of %d", victim);
    OK(deck_mbox_fetch(&victims_mbox, name));
    if (run == semaphore && node != victim) OK(deck_sem_fetch(&held, "held"));
    OK(deck_collective_barrier(&all));
}

/* A mailbox of the dead cannot be posted to. */
static void await_death(void)
{
    deck_msg_t nothing;
    int error;
    OK(deck_msg_create(&nothing, 0));
    while ((error = deck_mbox_post_try(&victims_mbox, &nothing)) == DECK_OK || error == DECK_EWOULDBLOCK)
        usleep(100);
    CHECK(error == DECK_EDEAD);
}

int main(int argc, char **argv)
{
    const struct operation *operation = chosen(operations, OPERATIONS, argv[1]);
    int (*run)(void) = operation->run, error;
    begin(&argc, &argv);
    victim = atoi(argv[2]);
    prepare(run);
    OK(run());
    has_begun(node);
    if (strcmp(argv[3], "later") == 0 && node != victim) await_death();
    long long told_ns = repeat(operation, &error);
    /* The last: on another host, when no process that lives calls the group on the host of its server. */
    int is_death = error == DECK_EDEAD || error == DECK_EMEMBERDIED || error == DECK_EOWNERDIED
                   || error == DECK_EUNREACHED;
    was_told(node, told_ns, is_death, deck_error_text());
    /* In a group that goes on without the dead, the others still wait for those that live. */
    while (run == crowd_sync || run == served_sync || run == crowd_bcast_and_sync) run();
    for (;;) pause();
}
