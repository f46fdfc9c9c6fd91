/* Address space ends: what needs much memory fails with DECK_ENOMEMORY, at nodes that have none and at those that need
 * them. Nobody hangs, and the same call works as soon as there is memory again. */
#include "check.h"
#include "address_space.h"

enum { COUNT = 1 << 20, LEFT = 2 << 20, OBJECTS = 100000, OBJECTS_LEFT = 8 << 20 };
enum form { PACK, STRING, BCAST, SCATTER, GATHER, GATHER_ANY, ALLGATHER, ALLGATHER_ANY, REDUCE, ALLREDUCE, FORMS };

static int *values, *got;
static deck_msg_t made[OBJECTS];

/* How many values a node brings: the others bring what all get together. */
static int brought(enum form form)
{
    int each = COUNT / nodes;
    switch (form) {
    case PACK: return 0;
    case STRING: case BCAST: case REDUCE: case ALLREDUCE: return COUNT;
    case SCATTER: return each * nodes;
    default: return each;
    }
}

static int call(enum form form, deck_msg_t *own, deck_msg_t *result)
{
    switch (form) {
    case PACK: return deck_msg_pack(own, DECK_INT, values, COUNT);
    case STRING: return deck_msg_pack_string(own, (char *)values);
    case BCAST: return deck_collective_bcast(&all, node == 0 ? own : result, 0);
    case SCATTER: return deck_collective_scatter(&all, own, result, 0);
    case GATHER: return deck_collective_gather(&all, own, result, 0);
    case GATHER_ANY: return deck_collective_gather_any(&all, own, result, 0);
    case ALLGATHER: return deck_collective_allgather(&all, own, result);
    case ALLGATHER_ANY: return deck_collective_allgather_any(&all, own, result);
    case REDUCE: return deck_collective_reduce(&all, own, result, DECK_SUM, 0);
    default: return deck_collective_allreduce(&all, own, result, DECK_SUM);
    }
}

/* Whether the result is so many times what node 0 brings, plus so much. */
static void expect(deck_msg_t *m, int count, int first, int times, int plus)
{
    OK(deck_msg_unpack(m, DECK_INT, got, count));
    for (int at = 0; at < count; at++) CHECK(got[at] == times * ((first + at) % 1000 + 1) + plus);
}

static void check(enum form form, deck_msg_t *own, deck_msg_t *result)
{
    int each = COUNT / nodes, gets = form == ALLGATHER || form == ALLGATHER_ANY || form == ALLREDUCE || node == 0;
    OK(deck_msg_rewind(own));
    OK(deck_msg_rewind(result));
    switch (form) {
    case PACK: expect(own, COUNT, 0, 1, node); break;
    case STRING: break;
    case BCAST: expect(node == 0 ? own : result, COUNT, 0, 1, 0); break;
    case SCATTER: expect(result, each, node * each, 1, 0); break;
    case REDUCE: case ALLREDUCE: if (gets) expect(result, COUNT, 0, nodes, nodes * (nodes - 1) / 2); break;
    default:
        for (int from = 0; from < nodes && gets; from++) expect(result, each, 0, 1, from);
    }
}

/* Once with so little memory at some nodes, and once with enough. */
static void fail_and_go_on(enum form form, int shorts)
{
    deck_msg_t own, result;
    OK(deck_msg_create(&own, 0));
    OK(deck_msg_create(&result, 0));
    for (int at = 0; at < COUNT; at++) values[at] = at % 1000 + 1 + node;
    if (form == STRING) {
        memset(values, 'x', COUNT * sizeof *values);
        ((char *)values)[COUNT * sizeof *values - 1] = 0;
    } else if (brought(form)) {
        OK(deck_msg_pack(&own, DECK_INT, values, brought(form)));
    }
    OK(deck_collective_barrier(&all));
    if (shorts >> node & 1) leave(LEFT);
    int error = call(form, &own, &result);
    if (error == DECK_OK) check(form, &own, &result);
    else CHECK(error == DECK_ENOMEMORY);
    CHECK(form > STRING || error == DECK_ENOMEMORY || !(shorts >> node & 1));
    OK(deck_collective_barrier(&all));
    leave_all();
    OK(deck_msg_destroy(&result));
    OK(deck_msg_create(&result, 0));
    if (form <= STRING) OK(deck_msg_clear(&own));
    OK(call(form, &own, &result));
    check(form, &own, &result);
    OK(deck_msg_destroy(&own));
    OK(deck_msg_destroy(&result));
}

/* As many messages as there is memory for. */
static void many(void)
{
    int count = 0, error = DECK_OK, one = 1;
    leave(OBJECTS_LEFT);
    while (count < OBJECTS && (error = deck_msg_create(&made[count], 0)) == DECK_OK) count++;
    CHECK(error == DECK_ENOMEMORY && count > 100);
    OK(deck_msg_pack(&made[0], DECK_INT, &one, 1));
    while (count > 0) OK(deck_msg_destroy(&made[--count]));
    OK(deck_msg_create(&made[0], 0));
    OK(deck_msg_destroy(&made[0]));
    leave_all();
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    watch_space();
    values = malloc(COUNT * sizeof *values);
    got = malloc(COUNT * sizeof *got);
    if (argc > 1) OK(deck_collective_use(&all, argv[1]));
    for (enum form form = 0; form < FORMS; form++) {
        /* All nodes, the first, the last. */
        fail_and_go_on(form, (1 << nodes) - 1);
        if (nodes > 1) fail_and_go_on(form, 1);
        if (nodes > 1) fail_and_go_on(form, 1 << (nodes - 1));
    }
    many();
    free(values);
    free(got);
    return end("no_memory");
}
