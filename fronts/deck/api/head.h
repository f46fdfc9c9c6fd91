#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the process with a message if the call fails. A program that goes on after an error checks the result
 * itself. */
#define DECK_CHECK(call) deck_check((call), __FILE__, __LINE__)

/* The compiler warns if a program ignores the result of a function, but not with -DDECK_NODISCARD=. */
#ifndef DECK_NODISCARD
#ifdef __GNUC__
#define DECK_NODISCARD __attribute__((warn_unused_result))
#else
#define DECK_NODISCARD
#endif
#endif

/* Most bytes of a name. */
#define DECK_NAME_MAX 64

/* Objects. Each is a number that may be copied. Functions notice an object that was destroyed, or that is of
 * another kind. Before it is made, an object is DECK_NOTHING. */
#define DECK_NOTHING { 0 }
typedef struct deck_thread { uint64_t id; } deck_thread_t;
typedef struct deck_sem { uint64_t id; } deck_sem_t;
typedef struct deck_msg { uint64_t id; } deck_msg_t;
typedef struct deck_mbox { uint64_t id; } deck_mbox_t;
typedef struct deck_segment { uint64_t id; } deck_segment_t;
typedef struct deck_group { uint64_t id; } deck_group_t;
typedef struct deck_view { uint64_t id; } deck_view_t;

/* The function that a thread runs. */
typedef void *(*deck_thread_body_t)(void *argument);

/* deck_init_flags: a thread receives while the program does not call. */
#define DECK_PROGRESS 1u

/* Types of values in messages. */
enum deck_type {
    DECK_NONE = 0,
    DECK_INT8 = 1,
    DECK_INT16 = 2,
    DECK_INT32 = 3,
    DECK_INT64 = 4,
    DECK_UINT8 = 5,
    DECK_UINT16 = 6,
    DECK_UINT32 = 7,
    DECK_UINT64 = 8,
    DECK_FLOAT = 9,
    DECK_DOUBLE = 10,
    DECK_STRING = 11,
    DECK_MBOX = 12,
    DECK_OTHER = 13,
    DECK_CHAR = DECK_INT8,
    DECK_BYTE = DECK_UINT8,
    DECK_SHORT = DECK_INT16,
    DECK_INT = DECK_INT32,
    DECK_UNSIGNED = DECK_UINT32,
    DECK_LONG = sizeof(long) == 8 ? DECK_INT64 : DECK_INT32
};

/* How values are combined: logical and bit by bit where they say so. */
enum deck_op {
    DECK_SUM = 1,
    DECK_PROD = 2,
    DECK_MIN = 3,
    DECK_MAX = 4,
    DECK_AND = 5,
    DECK_OR = 6,
    DECK_XOR = 7,
    DECK_BIT_AND = 8,
    DECK_BIT_OR = 9,
    DECK_BIT_XOR = 10
};

/* The options of a group. Begin with DECK_GROUP_OPTIONS_INIT; zero means the default. New options are added at
 * the end, and the size tells the library which of them the program knows. */
typedef struct deck_group_options {
    size_t size;     /* sizeof(deck_group_options_t) */
    size_t bytes;    /* the most bytes of all waiting messages together, and so of one message */
    int messages;    /* the most waiting messages: 1 to 65,536 */
    int persistent;  /* not 0: the group stays without members until it is destroyed */
    int when_full;   /* DECK_HOLD, DECK_EVICT, DECK_REFUSE */
    int evict_ms;    /* DECK_EVICT: the time that a broadcast waits before the slowest member is evicted */
    int served_by;   /* DECK_NOBODY, DECK_CREATOR, DECK_NODE, DECK_LAUNCHER */
    int server_node; /* DECK_NODE: the number of the node */
} deck_group_options_t;

#define DECK_GROUP_OPTIONS_INIT { sizeof(deck_group_options_t), 0, 0, 0, 0, 0, 0, 0 }

/* A broadcast without room waits; or it waits for a while, and then the slowest member is evicted; or it fails. */
enum deck_when_full {
    DECK_HOLD = 0,
    DECK_EVICT = 1,
    DECK_REFUSE = 2
};

/* The server of a group: none; a thread of the process that creates the group, as in the paper of 2000; a thread of
 * a node, from when that opens or joins the group; a thread of the launcher (landeck run --serve-groups). */
enum deck_served_by {
    DECK_NOBODY = 0,
    DECK_CREATOR = 1,
    DECK_NODE = 2,
    DECK_LAUNCHER = 3
};

/* An event of a mailbox: a message, or a view of a group that the mailbox is a member of. Begin with DECK_NOTHING, and
 * give the same event again: its message and its view are objects that the next event of that kind replaces. */
typedef struct deck_event {
    int kind;         /* DECK_MESSAGE, DECK_VIEW */
    int member;       /* DECK_MESSAGE: the number of the member that has sent it; -1: none has */
    int missed;       /* DECK_VIEW: not 0: earlier views are missing, since this member was late */
    uint64_t group;   /* the number of the group (deck_group_number); 0: the message was posted */
    uint64_t number;  /* the number of the message in its group, or of the view */
    uint64_t after;   /* DECK_VIEW: how many messages the group had accepted before */
    deck_msg_t msg;   /* the message */
    deck_view_t view; /* the view */
} deck_event_t;

enum deck_event_kind {
    DECK_MESSAGE = 1,
    DECK_VIEW = 2
};

/* How a member has gone: it left, its process died, it was evicted, its host was lost. */
enum deck_departure {
    DECK_LEFT = 1,
    DECK_DIED = 2,
    DECK_EVICTED = 3,
    DECK_HOSTLOST = 4
};
