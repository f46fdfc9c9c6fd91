/* Messages: packed, unpacked, cut, joined, sent; what is wrong with them is told. No job is needed for
 * most of it. */
#include "check.h"

static void packing(void)
{
    deck_msg_t m, copy;
    int numbers[4] = { 1, -2, 3, -4 }, back[4] = { 0 }, type = -1;
    double temperatures[2] = { 20.5, -3.25 }, back_temperatures[2];
    unsigned char bytes[3] = { 1, 2, 255 }, back_bytes[3];
    char text[16];
    size_t count = 0, size = 0, length = 0;
    FAILS(DECK_ENULL, deck_msg_create(NULL, 0));
    FAILS(DECK_ENOMEMORY, deck_msg_create(&m, SIZE_MAX / 2));
    OK(deck_msg_create(&m, 100));
    OK(deck_msg_next(&m, &type, &count));
    CHECK(type == DECK_NONE && count == 0);
    OK(deck_msg_pack(&m, DECK_INT, numbers, 3));
    OK(deck_msg_pack(&m, DECK_INT, numbers + 3, 1));
    OK(deck_msg_pack_string(&m, "warm"));
    OK(deck_msg_pack(&m, DECK_DOUBLE, temperatures, 2));
    OK(deck_msg_pack(&m, DECK_BYTE, bytes, 3));
    OK(deck_msg_pack(&m, DECK_INT, NULL, 0));
    OK(deck_msg_size(&m, &size));
    OK(deck_msg_count(&m, &count));
    CHECK(size == 4 * sizeof(int) + 4 + 2 * sizeof(double) + 3 && count == 4 + 1 + 2 + 3);
    OK(deck_msg_copy(&copy, &m));
    OK(deck_msg_next(&m, &type, &count));
    CHECK(type == DECK_INT && count == 4);
    FAILS(DECK_ETYPE, deck_msg_unpack(&m, DECK_DOUBLE, back_temperatures, 1));
    CHECK(strstr(deck_error_text(), "the next in the message is DECK_INT32, not DECK_DOUBLE: "));
    FAILS(DECK_ETYPE, deck_msg_unpack(&m, DECK_UNSIGNED, back, 1));
    FAILS(DECK_EEND, deck_msg_unpack(&m, DECK_INT, back, 5));
    FAILS(DECK_ETYPE, deck_msg_unpack_string(&m, text, sizeof text, NULL));
    CHECK(strstr(deck_error_text(), "is DECK_INT32, not DECK_STRING: "));
    OK(deck_msg_unpack(&m, DECK_INT, back, 4));
    CHECK(memcmp(back, numbers, sizeof back) == 0);
    OK(deck_msg_next(&m, &type, &count));
    CHECK(type == DECK_STRING && count == 4);
    FAILS(DECK_EROOM, deck_msg_unpack_string(&m, text, 4, &length));
    CHECK(length == 4);
    length = 0;
    OK(deck_msg_unpack_string(&m, text, 5, &length));
    CHECK(length == 4 && strcmp(text, "warm") == 0);
    OK(deck_msg_unpack(&m, DECK_DOUBLE, back_temperatures, 2));
    CHECK(memcmp(back_temperatures, temperatures, sizeof temperatures) == 0);
    OK(deck_msg_unpack(&m, DECK_BYTE, back_bytes, 3));
    CHECK(memcmp(back_bytes, bytes, sizeof bytes) == 0);
    FAILS(DECK_EEND, deck_msg_unpack(&m, DECK_BYTE, back_bytes, 1));
    OK(deck_msg_rewind(&m));
    OK(deck_msg_unpack(&m, DECK_INT, back, 1));
    CHECK(back[0] == 1);
    OK(deck_msg_clear(&m));
    OK(deck_msg_count(&m, &count));
    CHECK(count == 0);
    /* The copy has what it had. */
    OK(deck_msg_count(&copy, &count));
    CHECK(count == 10);
    OK(deck_msg_destroy(&copy));
    OK(deck_msg_destroy(&m));
}

/* Every type keeps its values and is no other. */
static void types(void)
{
    static const struct { int type; size_t bytes; } known[] = {
        { DECK_INT8, 1 }, { DECK_INT16, 2 }, { DECK_INT32, 4 }, { DECK_INT64, 8 },
        { DECK_UINT8, 1 }, { DECK_UINT16, 2 }, { DECK_UINT32, 4 }, { DECK_UINT64, 8 },
        { DECK_FLOAT, 4 }, { DECK_DOUBLE, 8 },
    };
    enum { TYPES = sizeof known / sizeof *known };
    union { uint64_t aligned; unsigned char bytes[32]; } values, back;
    for (int i = 0; i < 32; i++) values.bytes[i] = (unsigned char)(i * 7 + 1);
    for (int one = 0; one < TYPES; one++) {
        for (int other = 0; other < TYPES; other++) {
            deck_msg_t m;
            int type;
            size_t count;
            OK(deck_msg_create(&m, 0));
            OK(deck_msg_pack(&m, known[one].type, &values, 3));
            OK(deck_msg_next(&m, &type, &count));
            CHECK(type == known[one].type && count == 3);
            memset(&back, 0, sizeof back);
            if (one == other) {
                OK(deck_msg_unpack(&m, known[other].type, &back, 3));
                CHECK(memcmp(&values, &back, 3 * known[one].bytes) == 0);
            } else {
                FAILS(DECK_ETYPE, deck_msg_unpack(&m, known[other].type, &back, 1));
            }
            OK(deck_msg_destroy(&m));
        }
    }
}

static void parts(void)
{
    deck_msg_t whole, part, parts[3], none = DECK_NOTHING;
    int64_t numbers[6] = { 1, 2, 3, 4, 5, 6 }, back[6];
    size_t count;
    OK(deck_msg_create(&whole, 0));
    OK(deck_msg_pack(&whole, DECK_INT64, numbers, 6));
    FAILS(DECK_EPART, deck_msg_part(&part, &whole, 4, 3));
    FAILS(DECK_EPART, deck_msg_part(&part, &whole, SIZE_MAX, 2));
    FAILS(DECK_EPART, deck_msg_split(parts, &whole, 4));
    CHECK(strstr(deck_error_text(), "equal parts: cut them with deck_msg_part"));
    FAILS(DECK_EPART, deck_msg_split(parts, &whole, 0));
    FAILS(DECK_EVALUE, deck_msg_split(parts, &whole, -1));
    OK(deck_msg_part(&part, &whole, 4, 2));
    OK(deck_msg_split(parts, &whole, 3));
    /* Nobody sees what happens to the whole. */
    OK(deck_msg_clear(&whole));
    OK(deck_msg_pack(&whole, DECK_INT64, &numbers[5], 1));
    for (int i = 0; i < 3; i++) {
        OK(deck_msg_unpack(&parts[i], DECK_INT64, back, 2));
        CHECK(back[0] == 2 * i + 1 && back[1] == 2 * i + 2);
    }
    OK(deck_msg_join(&part, &parts[0]));
    OK(deck_msg_join(&part, &part));
    OK(deck_msg_count(&part, &count));
    CHECK(count == 8);
    OK(deck_msg_unpack(&part, DECK_INT64, back, 6));
    CHECK(back[0] == 5 && back[1] == 6 && back[2] == 1 && back[3] == 2 && back[4] == 5);
    FAILS(DECK_EHANDLE, deck_msg_join(&part, &none));
    for (int i = 0; i < 3; i++) OK(deck_msg_destroy(&parts[i]));
    OK(deck_msg_destroy(&part));
    OK(deck_msg_destroy(&whole));
}

/* Objects that are none, of another kind, or no more. */
static void handles(void)
{
    deck_msg_t m, none = DECK_NOTHING, garbage = { 0x123456789abcdef0u }, other;
    deck_thread_t self;
    int number = 0;
    OK(deck_msg_create(&m, 0));
    OK(deck_thread_self(&self));
    other.id = self.id;
    FAILS(DECK_ENULL, deck_msg_clear(NULL));
    FAILS(DECK_EHANDLE, deck_msg_clear(&none));
    FAILS(DECK_EKIND, deck_msg_clear(&other));
    number = deck_msg_clear(&garbage);
    CHECK(number == DECK_EHANDLE || number == DECK_EKIND);
    FAILS(DECK_EVALUE, deck_msg_pack(&m, 99, &number, 1));
    FAILS(DECK_EVALUE, deck_msg_pack(&m, DECK_STRING, &number, 1));
    FAILS(DECK_ENULL, deck_msg_pack(&m, DECK_INT, NULL, 1));
    FAILS(DECK_EPOINTER, deck_msg_pack(&m, DECK_INT, (char *)&number + 1, 1));
    FAILS(DECK_EPOINTER, deck_msg_pack(&m, DECK_INT, &number, SIZE_MAX / 2));
    FAILS(DECK_ENOTTEXT, deck_msg_pack_string(&m, "\xff"));
    FAILS(DECK_ENULL, deck_msg_pack_string(&m, NULL));
    FAILS(DECK_ENULL, deck_msg_size(&m, NULL));
    OK(deck_msg_destroy(&m));
    FAILS(DECK_EDESTROYED, deck_msg_clear(&m));
    FAILS(DECK_EDESTROYED, deck_msg_destroy(&m));
    CHECK(strstr(deck_error_text(), "deck_msg_destroy: ") == deck_error_text());
    /* The place is used again, and the old handle leads nowhere. */
    other = m;
    OK(deck_msg_create(&m, 0));
    FAILS(DECK_EDESTROYED, deck_msg_clear(&other));
    OK(deck_msg_destroy(&m));
}

static void errors(void)
{
    CHECK(strcmp(deck_error_name(DECK_OK), "DECK_OK") == 0);
    CHECK(strcmp(deck_error_name(DECK_EDEAD), "DECK_EDEAD") == 0);
    CHECK(strlen(deck_strerror(DECK_EDEAD)) > 10);
    CHECK(deck_error_name(-1) && deck_strerror(12345));
    CHECK(strcmp(deck_error_text(), "no call of this thread has failed") == 0);
}

int main(int argc, char **argv)
{
    int number;
    errors();
    packing();
    types();
    parts();
    handles();
    FAILS(DECK_ENOTINIT, deck_node(&number));
    FAILS(DECK_ENOTINIT, deck_done());
    begin(&argc, &argv);
    FAILS(DECK_EAGAIN, deck_init(NULL, NULL));
    packing();
    return end("messages");
}
