#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the process with a word where the call fails. Where the program goes on after an error, it looks at
 * the result itself. */
#define DECK_CHECK(call) deck_check((call), __FILE__, __LINE__)

/* The compiler warns where a program ignores the result of a function; not with -DDECK_NODISCARD=. */
#ifndef DECK_NODISCARD
#ifdef __GNUC__
#define DECK_NODISCARD __attribute__((warn_unused_result))
#else
#define DECK_NODISCARD
#endif
#endif

/* Most bytes of a name. */
#define DECK_NAME_MAX 64

/* Objects. Each is a number that leads to it and may be copied; one that was destroyed, or is of another
 * kind, is noticed. Before it is made, an object is DECK_NOTHING. */
#define DECK_NOTHING { 0 }
typedef struct deck_thread { uint64_t id; } deck_thread_t;
typedef struct deck_sem { uint64_t id; } deck_sem_t;
typedef struct deck_msg { uint64_t id; } deck_msg_t;
typedef struct deck_mbox { uint64_t id; } deck_mbox_t;
typedef struct deck_segment { uint64_t id; } deck_segment_t;
typedef struct deck_group { uint64_t id; } deck_group_t;

/* What a thread runs. */
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

/* How a group is made. The options begin as DECK_GROUP_OPTIONS_INIT; an option that is 0 has its usual value.
 * New options are added at the end, and the size tells the library which of them the program knows. */
typedef struct deck_group_options {
    size_t size;     /* sizeof(deck_group_options_t) */
    size_t bytes;    /* so long may the messages that wait be together, and so one of them */
    int messages;    /* so many may wait in a mailbox: 1 to 65,536 */
    int persistent;  /* not 0: the group stays without members until it is destroyed */
    int when_full;   /* DECK_HOLD, DECK_EVICT, DECK_REFUSE */
    int evict_ms;    /* DECK_EVICT: how long a broadcast waits before the slowest is put out */
    int served_by;   /* DECK_NOBODY, DECK_CREATOR, DECK_NODE, DECK_LAUNCHER */
    int server_node; /* DECK_NODE: which node */
} deck_group_options_t;

#define DECK_GROUP_OPTIONS_INIT { sizeof(deck_group_options_t), 0, 0, 0, 0, 0, 0, 0 }

/* What becomes of a broadcast for which there is no room: it waits; it waits for a while, then who does not
 * retrieve is put out; it fails. */
enum deck_when_full {
    DECK_HOLD = 0,
    DECK_EVICT = 1,
    DECK_REFUSE = 2
};

/* Where the server of a group is, as the paper of 2000 has one: there is none, as nobody is needed; a thread of the
 * process that creates the group, as in the paper; a thread of a node, from when that opens or joins the group; a
 * thread of the launcher (landeck run --serve-groups). */
enum deck_served_by {
    DECK_NOBODY = 0,
    DECK_CREATOR = 1,
    DECK_NODE = 2,
    DECK_LAUNCHER = 3
};
