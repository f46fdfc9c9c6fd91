/* Collective operations on messages, by every architecture that has a name here: the results are those
 * that were computed alone. */
#include "check.h"

static const char *const paces[] = {"credit", "none", "fixed:1", "calibrated", "credit:64K"};
static const char *const architectures[] = {
    NULL, "board", "flat", "binary-tree", "knomial", "butterfly", "ring", "deck2000", "deck2003", "mpi2003",
};

static double value_of(int member, int place) { return member * 1000 + place; }

static void fill(deck_msg_t *m, int member, int first, int count)
{
    OK(deck_msg_clear(m));
    for (int i = first; i < first + count; i++) {
        double value = value_of(member, i);
        OK(deck_msg_pack(m, DECK_DOUBLE, &value, 1));
    }
}

static void expect(deck_msg_t *m, int member, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        double value;
        OK(deck_msg_unpack(m, DECK_DOUBLE, &value, 1));
        CHECK(value == value_of(member, i));
    }
}

static void expect_end(deck_msg_t *m)
{
    int type;
    size_t count;
    OK(deck_msg_next(m, &type, &count));
    CHECK(type == DECK_NONE);
}

/* From every root, of any length, so that what came before helps or does not. */
static void broadcasts(deck_msg_t *m)
{
    static const int lengths[] = { 1, 3, 100, 100, 2000, 20, 20000, 0, 5 };
    for (int root = 0; root < nodes; root++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            if (node == root) fill(m, root, (int)i, lengths[i]);
            OK(deck_collective_bcast(&all, m, root));
            expect(m, root, (int)i, lengths[i]);
            expect_end(m);
        }
        char text[64] = "";
        if (node == root) {
            OK(deck_msg_clear(m));
            OK(deck_msg_pack_string(m, "mixed"));
            OK(deck_msg_pack(m, DECK_INT, &root, 1));
        }
        OK(deck_collective_bcast(&all, m, root));
        int number = -1;
        OK(deck_msg_rewind(m));
        OK(deck_msg_unpack_string(m, text, sizeof text, NULL));
        OK(deck_msg_unpack(m, DECK_INT, &number, 1));
        CHECK(strcmp(text, "mixed") == 0 && number == root);
    }
}

static void scatters_and_gathers(deck_msg_t *m, deck_msg_t *own)
{
    static const int lengths[] = { 1, 12, 12, 1250, 1250, 30, 9000 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int root = (int)i % nodes, length = lengths[i];
        if (node == root) {
            deck_msg_t part;
            OK(deck_msg_create(&part, 0));
            OK(deck_msg_clear(m));
            for (int to = 0; to < nodes; to++) {
                fill(&part, to, 5, length);
                OK(deck_msg_join(m, &part));
            }
            OK(deck_msg_destroy(&part));
        }
        OK(deck_collective_scatter(&all, node == root ? m : NULL, own, root));
        expect(own, node, 5, length);
        expect_end(own);
        OK(deck_msg_rewind(own));
        OK(deck_collective_gather(&all, own, node == root ? m : NULL, root));
        if (node == root) {
            for (int from = 0; from < nodes; from++) expect(m, from, 5, length);
            expect_end(m);
        }
        OK(deck_collective_allgather(&all, own, m));
        for (int from = 0; from < nodes; from++) expect(m, from, 5, length);
        expect_end(m);
    }
    /* Parts of different lengths in bytes. */
    if (node == 0) {
        OK(deck_msg_clear(m));
        for (int to = 0; to < nodes; to++) {
            char text[512];
            memset(text, 'a', sizeof text);
            text[100 * (to % 5) + 7] = '\0';
            OK(deck_msg_pack_string(m, text));
        }
    }
    OK(deck_collective_scatter(&all, m, own, 0));
    char text[512];
    OK(deck_msg_unpack_string(own, text, sizeof text, NULL));
    CHECK(strlen(text) == (size_t)(100 * (node % 5) + 7));
}

static void any_messages(deck_msg_t *m, deck_msg_t *own)
{
    int number;
    char text[64];
    OK(deck_msg_clear(own));
    for (int i = 0; i <= node; i++) OK(deck_msg_pack(own, DECK_INT, &i, 1));
    OK(deck_msg_pack_string(own, "end"));
    FAILS(DECK_EMIXED, deck_collective_gather(&all, own, m, 0));
    for (int step = 0; step < 2; step++) {
        if (step == 0) OK(deck_collective_gather_any(&all, own, m, nodes - 1));
        else OK(deck_collective_allgather_any(&all, own, m));
        if (step == 0 && node != nodes - 1) continue;
        for (int from = 0; from < nodes; from++) {
            for (int i = 0; i <= from; i++) {
                OK(deck_msg_unpack(m, DECK_INT, &number, 1));
                CHECK(number == i);
            }
            OK(deck_msg_unpack_string(m, text, sizeof text, NULL));
        }
        expect_end(m);
    }
}

static void reductions(deck_msg_t *m, deck_msg_t *own)
{
    static const int lengths[] = { 1, 12, 1250 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int length = lengths[i], root = (int)i % nodes;
        for (int step = 0; step < 3; step++) {
            fill(own, node, 0, length);
            deck_msg_t *result = step == 1 ? own : m;
            if (step == 2) OK(deck_collective_reduce(&all, own, result, DECK_SUM, root));
            else OK(deck_collective_allreduce(&all, own, result, DECK_SUM));
            if (step == 2 && node != root) continue;
            for (int place = 0; place < length; place++) {
                double value, sum = 1000.0 * nodes * (nodes - 1) / 2 + (double)nodes * place;
                OK(deck_msg_unpack(result, DECK_DOUBLE, &value, 1));
                CHECK(value == sum);
            }
            expect_end(result);
        }
    }
    static const struct { int op; long wanted[4]; } known[] = {
        /* of 1 to n for n = 1, 2, 3, 4 */
        { DECK_SUM, { 1, 3, 6, 10 } }, { DECK_PROD, { 1, 2, 6, 24 } }, { DECK_MIN, { 1, 1, 1, 1 } },
        { DECK_MAX, { 1, 2, 3, 4 } }, { DECK_AND, { 1, 1, 1, 1 } }, { DECK_OR, { 1, 1, 1, 1 } },
        { DECK_XOR, { 1, 0, 1, 0 } }, { DECK_BIT_AND, { 1, 0, 0, 0 } }, { DECK_BIT_OR, { 1, 3, 3, 7 } },
        { DECK_BIT_XOR, { 1, 3, 0, 4 } },
    };
    for (size_t i = 0; nodes <= 4 && i < sizeof known / sizeof *known; i++) {
        long value = node + 1;
        OK(deck_msg_clear(own));
        OK(deck_msg_pack(own, DECK_LONG, &value, 1));
        OK(deck_collective_allreduce(&all, own, m, known[i].op));
        OK(deck_msg_unpack(m, DECK_LONG, &value, 1));
        CHECK(value == known[i].wanted[nodes - 1]);
    }
}

static void mistakes(deck_msg_t *m, deck_msg_t *own)
{
    float number = 1;
    deck_group_t none = DECK_NOTHING, other = { own->id };
    FAILS(DECK_EARCHITECTURE, deck_collective_use(&all, "binary-treee"));
    FAILS(DECK_EVALUE, deck_collective_pace(&all, "credit:1"));
    FAILS(DECK_ENULL, deck_collective_pace(&all, 0));
    FAILS(DECK_EVALUE, deck_collective_bcast(&all, m, nodes));
    FAILS(DECK_EVALUE, deck_collective_bcast(&all, m, -1));
    FAILS(DECK_EHANDLE, deck_collective_barrier(&none));
    FAILS(DECK_EKIND, deck_collective_barrier(&other));
    FAILS(DECK_ENULL, deck_collective_barrier(NULL));
    OK(deck_msg_clear(own));
    FAILS(DECK_EMIXED, deck_collective_allreduce(&all, own, m, DECK_SUM));
    OK(deck_msg_pack(own, DECK_FLOAT, &number, 1));
    FAILS(DECK_EREDUCE, deck_collective_allreduce(&all, own, m, DECK_BIT_AND));
    CHECK(strstr(deck_error_text(), "DECK_BIT_AND means nothing for values of DECK_FLOAT"));
    FAILS(DECK_EVALUE, deck_collective_allreduce(&all, own, m, 99));
    if (node == 0) {
        OK(deck_msg_clear(m));
        for (int i = 0; i < nodes + 1; i++) OK(deck_msg_pack(m, DECK_FLOAT, &number, 1));
        if (nodes > 1) FAILS(DECK_EPART, deck_collective_scatter(&all, m, own, 0));
        FAILS(DECK_ENULL, deck_collective_gather(&all, own, NULL, 0));
    }
    OK(deck_collective_barrier(&all));
}

int main(int argc, char **argv)
{
    deck_msg_t m, own;
    int number;
    begin(&argc, &argv);
    OK(deck_group_rank(&all, &number));
    CHECK(number == node);
    OK(deck_group_size(&all, &number));
    CHECK(number == nodes);
    OK(deck_msg_create(&m, 0));
    OK(deck_msg_create(&own, 0));
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        OK(deck_collective_use(&all, architectures[i]));
        OK(deck_collective_pace(&all, paces[i % (sizeof paces / sizeof *paces)]));
        int code = deck_collective_barrier(&all);
        /* A board is memory of one host. */
        if (code == DECK_EARCHITECTURE && i == 1 && getenv("LANDECK_TEST_HOSTS")) continue;
        CHECK(code == DECK_OK);
        broadcasts(&m);
        scatters_and_gathers(&m, &own);
        any_messages(&m, &own);
        reductions(&m, &own);
    }
    mistakes(&m, &own);
    OK(deck_msg_destroy(&m));
    OK(deck_msg_destroy(&own));
    return end("collectives");
}
