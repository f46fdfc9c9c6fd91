/* A chat of rooms over several terminals: a room is a group, a line is a broadcast.
 *
 *     deckcc chat.c -o chat
 *     landeck run --name chat -n 1 ./chat kitchen ada          in one terminal
 *     LANDECK_JOB=chat ./chat kitchen bob                      in others
 *
 * A line that is typed goes to everybody else in the room; end of file leaves it. */
#include <deck.h>
#include <stdio.h>
#include <string.h>

/* What the thread that types and the one that listens have in common. */
static struct {
    const char *name;
    const char *own;
    deck_group_t group;
    deck_mbox_t ears; /* of the listener */
    deck_mbox_t told; /* of the one that types */
} room;

/* Says a line to the others. */
static void say(const char *line)
{
    deck_msg_t m;
    DECK_CHECK(deck_msg_create(&m, 0));
    DECK_CHECK(deck_msg_pack_string(&m, room.own));
    DECK_CHECK(deck_msg_pack_string(&m, line));
    DECK_CHECK(deck_group_bcast_others(&room.group, &m));
    DECK_CHECK(deck_msg_destroy(&m));
}

/* A thread of its own listens, with a mailbox of its own, until it gets an empty message. */
static void *listener(void *nothing)
{
    deck_msg_t m;
    size_t count;
    char who[256], line[4096];
    DECK_CHECK(deck_mbox_create(&room.ears, NULL));
    DECK_CHECK(deck_msg_create(&m, 0));
    DECK_CHECK(deck_group_join(&room.group, &room.ears, room.name));
    DECK_CHECK(deck_mbox_post(&room.told, &m));
    for (;;) {
        DECK_CHECK(deck_mbox_retrv(&room.ears, &m));
        DECK_CHECK(deck_msg_count(&m, &count));
        if (count == 0) return nothing;
        DECK_CHECK(deck_msg_unpack_string(&m, who, sizeof who, NULL));
        DECK_CHECK(deck_msg_unpack_string(&m, line, sizeof line, NULL));
        printf("%s: %s\n", who, line);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    deck_group_options_t options = DECK_GROUP_OPTIONS_INIT;
    deck_thread_t thread;
    deck_msg_t m;
    char line[4000];
    if (argc != 3) {
        fprintf(stderr, "Usage: chat ROOM NAME\n");
        return 2;
    }
    options.persistent = 1;
    room.name = argv[1];
    room.own = argv[2];
    DECK_CHECK(deck_init(&argc, &argv));
    /* Whoever comes first makes the room. */
    int error = deck_group_create_with(&room.group, room.name, 0, &options);
    if (error == DECK_ETAKEN) error = deck_group_open(&room.group, room.name);
    DECK_CHECK(error);
    DECK_CHECK(deck_mbox_create(&room.told, NULL));
    DECK_CHECK(deck_msg_create(&m, 0));
    DECK_CHECK(deck_thread_create(&thread, listener, NULL));
    DECK_CHECK(deck_mbox_retrv(&room.told, &m)); /* it is in the room */
    printf("you are in\n");
    fflush(stdout);
    say("comes in"); /* after that others may answer */
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        say(line);
    }
    say("goes");
    DECK_CHECK(deck_mbox_post(&room.ears, &m));
    DECK_CHECK(deck_thread_join(&thread, NULL));
    DECK_CHECK(deck_done());
    return 0;
}
