/* What every test program needs: a check that says what failed, and who this is. */
#ifndef CHECK_H
#define CHECK_H

#include <deck.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int node, nodes;
static deck_group_t all;

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: node %d: %s is false; %s\n", __FILE__, __LINE__, node, \
                    #condition, deck_error_text());                                        \
            deck_abort(99, "a check failed");                                              \
            exit(99);                                                                      \
        }                                                                                  \
    } while (0)

/* The call does what it should. */
#define OK(call)                                                                              \
    do {                                                                                      \
        int error = (call);                                                                   \
        if (error != DECK_OK) {                                                               \
            fprintf(stderr, "%s:%d: node %d: %s is %s: %s\n", __FILE__, __LINE__, node, #call, \
                    deck_error_name(error), deck_error_text());                               \
            deck_abort(99, "a call failed");                                                  \
            exit(99);                                                                         \
        }                                                                                     \
    } while (0)

/* The call fails with this error. */
#define FAILS(wanted, call)                                                                       \
    do {                                                                                          \
        int error = (call);                                                                       \
        if (error != (wanted)) {                                                                  \
            fprintf(stderr, "%s:%d: node %d: %s is %s and not %s: %s\n", __FILE__, __LINE__, node, \
                    #call, deck_error_name(error), #wanted, deck_error_text());                   \
            deck_abort(99, "a call did not fail as it should");                                   \
            exit(99);                                                                             \
        }                                                                                         \
    } while (0)

/* Options for a group, of which some are set. */
#define OPTIONS(...) { .size = sizeof(deck_group_options_t), __VA_ARGS__ }

static inline void begin(int *argc, char ***argv)
{
    OK(deck_init(argc, argv));
    OK(deck_node(&node));
    OK(deck_node_num(&nodes));
    OK(deck_group_world(&all));
}

/* Node 0 says so once everybody has come this far. */
static inline int end(const char *what)
{
    deck_msg_t one;
    int count = 1, sum = 0;
    OK(deck_msg_create(&one, 0));
    OK(deck_msg_pack(&one, DECK_INT, &count, 1));
    OK(deck_collective_allreduce(&all, &one, &one, DECK_SUM));
    OK(deck_msg_unpack(&one, DECK_INT, &sum, 1));
    CHECK(sum == nodes);
    if (node == 0) printf("%s: %d nodes agree\n", what, sum);
    fflush(stdout);
    OK(deck_done());
    OK(deck_msg_destroy(&one));
    return 0;
}

#endif
