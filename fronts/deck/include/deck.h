/* DECK: threads, semaphores, messages, mailboxes, shared segments, groups and collective operations of
 * the processes of a job.
 *
 * Every function returns DECK_OK or the number of an error, unless it says otherwise: deck_strerror says
 * what a number means, deck_error_text what was wrong with the last call, DECK_CHECK(call) ends the program
 * where a call fails. Manual pages: deck(7).
 * Made by `cargo xtask deck`.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef LANDECK_DECK_H
#define LANDECK_DECK_H

/* The version of this header; deck_version gives that of the library. */
#define DECK_VERSION_MAJOR 0
#define DECK_VERSION_MINOR 1
#define DECK_VERSION_PATCH 0

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

/* Errors. */
enum deck_error {
    DECK_OK = 0,
    DECK_ENULL = 1,
    DECK_EPOINTER = 2,
    DECK_EHANDLE = 3,
    DECK_EKIND = 4,
    DECK_EDESTROYED = 5,
    DECK_EBUSY = 6,
    DECK_ENOTINIT = 7,
    DECK_EAGAIN = 8,
    DECK_EDONE = 9,
    DECK_ENAMEEMPTY = 10,
    DECK_ENAMELONG = 11,
    DECK_ENAMEUTF8 = 12,
    DECK_ENAMECONTROL = 13,
    DECK_ETAKEN = 14,
    DECK_EUNKNOWN = 15,
    DECK_EGONE = 16,
    DECK_EDEAD = 17,
    DECK_EBROKEN = 18,
    DECK_ENOTCREATOR = 19,
    DECK_ETYPE = 20,
    DECK_EEND = 21,
    DECK_EPART = 22,
    DECK_EMIXED = 23,
    DECK_EROOM = 24,
    DECK_ENOTMESSAGE = 25,
    DECK_ENOTTEXT = 26,
    DECK_ETIMEDOUT = 27,
    DECK_EWOULDBLOCK = 28,
    DECK_EENDED = 29,
    DECK_EOWNERDIED = 30,
    DECK_EUNITS = 31,
    DECK_ENOMEMORY = 32,
    DECK_ENOTHREAD = 33,
    DECK_ENOTJOINABLE = 34,
    DECK_EVALUE = 35,
    DECK_EARCHITECTURE = 36,
    DECK_ELENGTH = 37,
    DECK_EMISMATCH = 38,
    DECK_EREDUCE = 39,
    DECK_ENOTMEMBER = 40,
    DECK_ENOPROGRESS = 41,
    DECK_EJOB = 42,
    DECK_EAGENT = 43,
    DECK_ESYSTEM = 44,
    DECK_EFORKED = 45,
    DECK_EFAULT = 46,
    DECK_EMINIMUM = 47,
    DECK_EDESTROYING = 48,
    DECK_EGROUPDESTROYED = 49,
    DECK_ELOSS = 50,
    DECK_EMEMBERDIED = 51,
    DECK_EALREADYMEMBER = 52,
    DECK_ELEFT = 53,
    DECK_ETOOMANY = 54,
    DECK_EFULL = 55,
    DECK_ETOOLONG = 56,
    DECK_ETWICE = 57,
    DECK_ELEFTBEHIND = 58,
    DECK_ENOSERVER = 59,
    DECK_EOPTIONS = 60,
    DECK_EUNREACHED = 61,
    DECK_EINDOUBT = 62
};


/* Starting and ending. `landeck run -n 4 ./program` starts a DECK program as four nodes. A program
 * that is started by hand is a job of one node. Any thread may call any function at any time. A
 * child made by fork is no member of the job: every function returns DECK_EFORKED in it, except
 * `deck_abort` and `deck_check`, which end the child alone, `deck_version`, and the texts of errors. */

/* Joins the job that this process was started for. */
int deck_init(int *argc, char ***argv) DECK_NODISCARD;

/* Joins the job that this process was started for, with flags. */
int deck_init_flags(int *argc, char ***argv, unsigned flags) DECK_NODISCARD;

/* Leaves the job in good order. */
int deck_done(void) DECK_NODISCARD;

/* The number of this process among those that the job began with, from 0. */
int deck_node(int *node) DECK_NODISCARD;

/* The number of processes that the job began with. */
int deck_node_num(int *nodes) DECK_NODISCARD;

/* The version of the library that the program runs with. */
int deck_version(int *major, int *minor, int *patch) DECK_NODISCARD;

/* Ends the whole job, and this process with the exit code. */
int deck_abort(int code, const char *text);

/* The meaning of an error, in words. */
const char *deck_strerror(int error);

/* The name of an error, such as DECK_EDEAD. */
const char *deck_error_name(int error);

/* The description of the last failed call of this thread, with the process, the cause and the
 * remedy. */
const char *deck_error_text(void);

/* Returns if the error is DECK_OK, and otherwise ends this process with exit code 1. */
void deck_check(int error, const char *file, int line);


/* Threads. A thread of DECK is a thread of the system. It may end by `pthread_exit`, and other
 * threads may use DECK as well. */

/* Starts a thread, which runs the body with the argument. */
int deck_thread_create(deck_thread_t *t, deck_thread_body_t body, void *argument) DECK_NODISCARD;

/* Starts a thread with a name of 1 to 15 bytes, which the system shows, and a stack of so many
 * bytes. */
int deck_thread_create_with(deck_thread_t *t, deck_thread_body_t body, void *argument, const char *name, size_t stack_bytes) DECK_NODISCARD;

/* Waits until a thread has ended, and gives its result. */
int deck_thread_join(deck_thread_t *t, void **result) DECK_NODISCARD;

/* The calling thread. */
int deck_thread_self(deck_thread_t *t) DECK_NODISCARD;


/* Semaphores. A semaphore has a name and units, which processes and threads of the job take (p) and
 * return (v). It records the units of each process, so a process that waits for units of a dead one
 * gets an error. It lives until its last user has destroyed it or is gone. */

/* Makes a semaphore with so many units under a name. */
int deck_sem_create(deck_sem_t *s, const char *name, int units) DECK_NODISCARD;

/* Finds the semaphore with a name. */
int deck_sem_fetch(deck_sem_t *s, const char *name) DECK_NODISCARD;

/* Waits for a unit and takes it. */
int deck_sem_p(deck_sem_t *s) DECK_NODISCARD;

/* Waits at most so many milliseconds for a unit and takes it. */
int deck_sem_p_timed(deck_sem_t *s, int timeout_ms) DECK_NODISCARD;

/* Takes a unit if one is free. */
int deck_sem_p_try(deck_sem_t *s) DECK_NODISCARD;

/* Returns a unit that this process holds, or adds one if it holds none. */
int deck_sem_v(deck_sem_t *s) DECK_NODISCARD;

/* Consumes a unit that this process holds, as a consumer does with the units that a producer adds. */
int deck_sem_spend(deck_sem_t *s) DECK_NODISCARD;

/* The number of free units now; it may change at any moment. */
int deck_sem_value(const deck_sem_t *s, int *units) DECK_NODISCARD;

/* Returns the units that dead processes held, and their number. */
int deck_sem_recover(deck_sem_t *s, int *units) DECK_NODISCARD;

/* Ends this process's use of the semaphore. */
int deck_sem_destroy(deck_sem_t *s) DECK_NODISCARD;


/* Messages. A message holds values with their types and refuses to unpack them as other types. Only
 * one thread at a time may use a message. Messages are cut and joined without copies: they share the
 * memory of their values until the last of them is destroyed. They need no job, and may be used
 * before deck_init and after deck_done. */

/* Makes an empty message with room for so many bytes; it grows if more are packed. */
int deck_msg_create(deck_msg_t *m, size_t size) DECK_NODISCARD;

/* Destroys a message. */
int deck_msg_destroy(deck_msg_t *m) DECK_NODISCARD;

/* Removes all values; the memory is reused for the next ones. */
int deck_msg_clear(deck_msg_t *m) DECK_NODISCARD;

/* The number of bytes of its values, unpacked or not. */
int deck_msg_size(const deck_msg_t *m, size_t *bytes) DECK_NODISCARD;

/* The number of its values, unpacked or not; a text and a mailbox count as one each. */
int deck_msg_count(const deck_msg_t *m, size_t *values) DECK_NODISCARD;

/* Packs so many values of a type (DECK_INT, DECK_DOUBLE ...) behind the existing ones. */
int deck_msg_pack(deck_msg_t *m, int type, const void *data, size_t count) DECK_NODISCARD;

/* Unpacks the next values, all of them or none. */
int deck_msg_unpack(deck_msg_t *m, int type, void *data, size_t count) DECK_NODISCARD;

/* Packs a text, which is UTF-8 and is unpacked as a whole. */
int deck_msg_pack_string(deck_msg_t *m, const char *text) DECK_NODISCARD;

/* Unpacks a text and its end into so many bytes. */
int deck_msg_unpack_string(deck_msg_t *m, char *text, size_t room, size_t *length) DECK_NODISCARD;

/* Packs the address of a mailbox, so that the receiver can post there. */
int deck_msg_pack_mbox(deck_msg_t *m, const deck_mbox_t *mb) DECK_NODISCARD;

/* Unpacks the address of a mailbox as a mailbox to post to. */
int deck_msg_unpack_mbox(deck_msg_t *m, deck_mbox_t *mb) DECK_NODISCARD;

/* Begins to unpack from the first value again. */
int deck_msg_rewind(deck_msg_t *m) DECK_NODISCARD;

/* The type of the next values, and their number. */
int deck_msg_next(const deck_msg_t *m, int *type, size_t *count) DECK_NODISCARD;

/* Makes a message of the same values, which shares their memory. */
int deck_msg_copy(deck_msg_t *copy, const deck_msg_t *m) DECK_NODISCARD;

/* Makes a message of `count` values from number `first` on, which shares their memory. */
int deck_msg_part(deck_msg_t *part, const deck_msg_t *m, size_t first, size_t count) DECK_NODISCARD;

/* Divides the values equally among `count` messages, which share their memory. */
int deck_msg_split(deck_msg_t parts[], const deck_msg_t *m, int count) DECK_NODISCARD;

/* Appends the values of another message, without copying them. */
int deck_msg_join(deck_msg_t *m, const deck_msg_t *other) DECK_NODISCARD;


/* Mailboxes. Any thread that knows a mailbox can post to it; only the thread that created it
 * retrieves. A mailbox becomes known by its name, or inside a message (deck_msg_pack_mbox). Messages
 * of one sender are retrieved in the order of posting. The waiting messages are bounded; beyond the
 * bound a post waits. A mailbox and its name end with the thread that created it. */

/* Makes a mailbox of the calling thread and registers it under a name. */
int deck_mbox_create(deck_mbox_t *mb, const char *name) DECK_NODISCARD;

/* Finds the mailbox with a name, to post to it. */
int deck_mbox_fetch(deck_mbox_t *mb, const char *name) DECK_NODISCARD;

/* Sets where the data of long messages wait that are posted to the mailbox from other hosts. */
int deck_mbox_store(deck_mbox_t *mb, const char *place) DECK_NODISCARD;

/* Posts a message; returns when the message may be changed again. */
int deck_mbox_post(deck_mbox_t *mb, const deck_msg_t *m) DECK_NODISCARD;

/* Posts a message within at most so many milliseconds; after a timeout nothing was posted. */
int deck_mbox_post_timed(deck_mbox_t *mb, const deck_msg_t *m, int timeout_ms) DECK_NODISCARD;

/* Posts a message if that is possible without waiting. */
int deck_mbox_post_try(deck_mbox_t *mb, const deck_msg_t *m) DECK_NODISCARD;

/* Waits for a message and retrieves it; it replaces the contents of `m`. */
int deck_mbox_retrv(deck_mbox_t *mb, deck_msg_t *m) DECK_NODISCARD;

/* Waits at most so many milliseconds for a message and retrieves it. */
int deck_mbox_retrv_timed(deck_mbox_t *mb, deck_msg_t *m, int timeout_ms) DECK_NODISCARD;

/* Retrieves a message if one has arrived completely. */
int deck_mbox_retrv_try(deck_mbox_t *mb, deck_msg_t *m) DECK_NODISCARD;

/* Waits for the next event: a message, or a view of a group in its place among the messages of that
 * group. */
int deck_mbox_event(deck_mbox_t *mb, deck_event_t *e) DECK_NODISCARD;

/* Waits at most so many milliseconds for the next event. */
int deck_mbox_event_timed(deck_mbox_t *mb, deck_event_t *e, int timeout_ms) DECK_NODISCARD;

/* Gives the next event if there is one. */
int deck_mbox_event_try(deck_mbox_t *mb, deck_event_t *e) DECK_NODISCARD;

/* A descriptor that is readable while messages wait, for `poll`. */
int deck_mbox_descriptor(deck_mbox_t *mb, int *descriptor) DECK_NODISCARD;

/* Destroys a mailbox with its waiting messages, or ends the use of a fetched one. */
int deck_mbox_destroy(deck_mbox_t *mb) DECK_NODISCARD;


/* Shared segments. A shared segment is memory with a name that processes of the job share. It lives
 * until the last of them has destroyed its object or is gone. Its bytes are zero at first.
 * Synchronise accesses by a semaphore or a message. */

/* Makes a segment of so many bytes, at least 1, under a name. */
int deck_segment_create(deck_segment_t *g, const char *name, size_t bytes) DECK_NODISCARD;

/* Finds the segment with a name. */
int deck_segment_fetch(deck_segment_t *g, const char *name) DECK_NODISCARD;

/* The address of the segment in this process, and its length. */
int deck_segment_address(const deck_segment_t *g, void **start, size_t *bytes) DECK_NODISCARD;

/* Ends this process's use of the segment, whose address is invalid then. */
int deck_segment_destroy(deck_segment_t *g) DECK_NODISCARD;


/* Groups. A group has a name, and members that join and leave. A member is a mailbox with its
 * process. It gets the smallest free number and keeps it. A broadcast goes to the members of the
 * moment at which it is accepted. Before that no member sees it; afterwards every living member
 * retrieves it from its mailbox exactly once, even if the sender dies. All members retrieve
 * broadcasts in one order. Until a group has had its minimum of members once, broadcasts,
 * synchronisation and collective operations wait. A group has no server that could die or be slow,
 * unless an option asks for one (deck_group_create_with). */

/* Makes a group with a name, which starts when it has had `min` members at once. */
int deck_group_create(deck_group_t *g, const char *g_name, int min) DECK_NODISCARD;

/* Makes a group with a name and options. */
int deck_group_create_with(deck_group_t *g, const char *g_name, int min, const deck_group_options_t *options) DECK_NODISCARD;

/* Finds the group with a name, to broadcast to it without being a member. */
int deck_group_open(deck_group_t *g, const char *name) DECK_NODISCARD;

/* Joins the group with a name: from now on its broadcasts are retrieved from the mailbox. */
int deck_group_join(deck_group_t *g, deck_mbox_t *mb, const char *name) DECK_NODISCARD;

/* Leaves the group: the mailbox receives nothing more of it. */
int deck_group_leave(deck_group_t *g) DECK_NODISCARD;

/* Sends a message to all members, the sender included if it is one; returns when it is accepted. */
int deck_group_bcast(deck_group_t *g, const deck_msg_t *msg) DECK_NODISCARD;

/* Sends a message to all members within at most so many milliseconds; after a timeout nothing was
 * sent. */
int deck_group_bcast_timed(deck_group_t *g, const deck_msg_t *msg, int timeout_ms) DECK_NODISCARD;

/* Sends a message to all members if that is possible without waiting. */
int deck_group_bcast_try(deck_group_t *g, const deck_msg_t *msg) DECK_NODISCARD;

/* Sends a message to all members except the sender. */
int deck_group_bcast_others(deck_group_t *g, const deck_msg_t *msg) DECK_NODISCARD;

/* Waits until all earlier broadcasts to the group are in all mailboxes, so that a retrieve finds
 * them at once. */
int deck_group_bcast_wait(deck_group_t *g) DECK_NODISCARD;

/* Waits at most so many milliseconds until all earlier broadcasts to the group are in all mailboxes. */
int deck_group_bcast_wait_timed(deck_group_t *g, int timeout_ms) DECK_NODISCARD;

/* Waits until all members have called it. The members are those of the moment of the first call. */
int deck_group_sync(deck_group_t *g) DECK_NODISCARD;

/* Waits at most so many milliseconds until all members have called it; after a timeout the next call
 * goes on waiting. */
int deck_group_sync_timed(deck_group_t *g, int timeout_ms) DECK_NODISCARD;

/* The number of this member. */
int deck_group_id(const deck_group_t *g, int *id) DECK_NODISCARD;

/* The number of the group, which no other group of the job has. Events tell it. */
int deck_group_number(const deck_group_t *g, uint64_t *number) DECK_NODISCARD;

/* The numbers of the current members, as far as there is room, and their count. */
int deck_group_view(const deck_group_t *g, int ids[], int room, int *members) DECK_NODISCARD;

/* Destroys the group for all members. */
int deck_group_destroy(deck_group_t *g) DECK_NODISCARD;

/* Destroys the group for all members; broadcasts that wait for room have so many milliseconds to
 * finish. */
int deck_group_destroy_timed(deck_group_t *g, int timeout_ms) DECK_NODISCARD;

/* Destroys the object but not the group. A member leaves the group. */
int deck_group_close(deck_group_t *g) DECK_NODISCARD;

/* The group of all processes that the job began with, for collective operations. */
int deck_group_world(deck_group_t *g) DECK_NODISCARD;

/* The rank of this member among those of the last collective operation, from 0. */
int deck_group_rank(deck_group_t *g, int *rank) DECK_NODISCARD;

/* The number of members in the last collective operation. */
int deck_group_size(deck_group_t *g, int *members) DECK_NODISCARD;


/* Views. A view is the members of a group from one message on. A mailbox that asks for events
 * (deck_mbox_event) gets the views of its groups in their places among the messages: all members see
 * the same view after the same message. Its first view is the one that it has made when it joined. A
 * lost host makes one view, however many members were there. */

/* The numbers of the members of a view, as far as there is room, and their count. */
int deck_view_members(const deck_view_t *v, int ids[], int room, int *members) DECK_NODISCARD;

/* The numbers of the members that have joined with a view, as far as there is room, and their count. */
int deck_view_joined(const deck_view_t *v, int ids[], int room, int *joined) DECK_NODISCARD;

/* The numbers of the members that have gone with a view, and how, as far as there is room, and their
 * count. */
int deck_view_departed(const deck_view_t *v, int ids[], int causes[], int room, int *departed) DECK_NODISCARD;

/* Destroys a view. */
int deck_view_destroy(deck_view_t *v) DECK_NODISCARD;


/* Collective operations. All members of a group call these operations together, in the same order.
 * `root` is the number of a member (deck_group_id; in the group of all processes, deck_node). Joins
 * and leaves count from the next operation that no member has begun. Messages are sent without a
 * copy. */

/* Returns when all members have called it. */
int deck_collective_barrier(deck_group_t *g) DECK_NODISCARD;

/* All members get the root's message; it replaces the contents of `m`. */
int deck_collective_bcast(deck_group_t *g, deck_msg_t *m, int root) DECK_NODISCARD;

/* Divides the values of the root's message equally among the members; each part replaces the
 * contents of `own`. */
int deck_collective_scatter(deck_group_t *g, const deck_msg_t *all, deck_msg_t *own, int root) DECK_NODISCARD;

/* The root gets the values of all members as one message, in the order of the members. */
int deck_collective_gather(deck_group_t *g, const deck_msg_t *own, deck_msg_t *all, int root) DECK_NODISCARD;

/* The root gets the messages of all members as one, in the order of the members. They may have any
 * length and content; it takes one step more. */
int deck_collective_gather_any(deck_group_t *g, const deck_msg_t *own, deck_msg_t *all, int root) DECK_NODISCARD;

/* All members get the values of all as one message, in the order of the members. */
int deck_collective_allgather(deck_group_t *g, const deck_msg_t *own, deck_msg_t *all) DECK_NODISCARD;

/* All members get the messages of all as one, in the order of the members. They may have any length
 * and content; it takes one step more. */
int deck_collective_allgather_any(deck_group_t *g, const deck_msg_t *own, deck_msg_t *all) DECK_NODISCARD;

/* Combines the values of all members at the root, position by position (DECK_SUM, DECK_MAX ...). */
int deck_collective_reduce(deck_group_t *g, const deck_msg_t *own, deck_msg_t *result, int op, int root) DECK_NODISCARD;

/* Combines the values of all members, position by position; all members get the result. */
int deck_collective_allreduce(deck_group_t *g, const deck_msg_t *own, deck_msg_t *result, int op) DECK_NODISCARD;

/* Selects the architecture of the later operations of this group. */
int deck_collective_use(deck_group_t *g, const char *architecture) DECK_NODISCARD;

/* Selects how many members of other hosts answer this process at once, where many answer one. */
int deck_collective_pace(deck_group_t *g, const char *pace) DECK_NODISCARD;

#ifdef __cplusplus
}
#endif

#endif
