#define _GNU_SOURCE
/* Threads: they have a name, end in any way, and are joined once. */
#include "check.h"
#include <pthread.h>
#include <setjmp.h>

static void *returns(void *argument) { return (char *)argument + 1; }

static void *exits(void *argument)
{
    pthread_exit((char *)argument + 2);
}

static void *jumps(void *argument)
{
    jmp_buf place;
    if (setjmp(place) == 0) longjmp(place, 1);
    return (char *)argument + 3;
}

static void *named(void *argument)
{
    char name[16] = "";
    deck_thread_t self;
    pthread_getname_np(pthread_self(), name, sizeof name);
    CHECK(strcmp(name, "worker 1") == 0);
    OK(deck_thread_self(&self));
    *(deck_thread_t *)argument = self;
    FAILS(DECK_ENOTJOINABLE, deck_thread_join(&self, NULL));
    return NULL;
}

/* Where a thread says what its handle is, before who made it knows that. */
static _Atomic(uint64_t) said;

static void *tells(void *argument)
{
    deck_thread_t self;
    OK(deck_thread_self(&self));
    said = self.id;
    return argument;
}

static void *joins(void *argument)
{
    deck_thread_t thread;
    void *result;
    while (said == 0) sched_yield();
    thread.id = said;
    OK(deck_thread_join(&thread, &result));
    CHECK(result == (void *)&said);
    return argument;
}

/* A thread is joined by another one as soon as it has begun. */
static void joined_at_once(void)
{
    deck_thread_t thread, other;
    for (int i = 0; i < 300; i++) {
        said = 0;
        OK(deck_thread_create(&other, joins, NULL));
        OK(deck_thread_create_with(&thread, tells, (void *)&said, "short", 0));
        OK(deck_thread_join(&other, NULL));
        FAILS(DECK_EDESTROYED, deck_thread_join(&thread, NULL));
    }
}

int main(int argc, char **argv)
{
    deck_thread_t thread, twin, self, same;
    char place[4];
    void *result;
    begin(&argc, &argv);
    void *(*const bodies[])(void *) = { returns, exits, jumps };
    for (int i = 0; i < 3; i++) {
        OK(deck_thread_create(&thread, bodies[i], place));
        twin = thread;
        OK(deck_thread_join(&thread, &result));
        CHECK(result == place + i + 1);
        FAILS(DECK_EDESTROYED, deck_thread_join(&twin, &result));
    }
    OK(deck_thread_create_with(&thread, named, &twin, "worker 1", 1 << 20));
    self = thread;
    OK(deck_thread_join(&thread, NULL));
    CHECK(twin.id == self.id);
    OK(deck_thread_self(&self));
    OK(deck_thread_self(&same));
    CHECK(self.id == same.id);
    FAILS(DECK_ENOTJOINABLE, deck_thread_join(&self, NULL));
    FAILS(DECK_ENULL, deck_thread_create(&thread, NULL, NULL));
    FAILS(DECK_ENULL, deck_thread_create(NULL, returns, NULL));
    FAILS(DECK_ENAMELONG, deck_thread_create_with(&thread, returns, NULL, "a name of sixteen", 0));
    CHECK(strstr(deck_error_text(), "begins with \"a name of sixte\" and has more than 15 bytes: give it 1 to 15"));
    FAILS(DECK_ENAMEEMPTY, deck_thread_create_with(&thread, returns, NULL, "", 0));
    CHECK(strstr(deck_error_text(), "is empty: give a thread a name of 1 to 15 bytes"));
    FAILS(DECK_ENOTHREAD, deck_thread_create_with(&thread, returns, NULL, NULL, (size_t)1 << 46));
    joined_at_once();
    return end("threads");
}
