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
    /* The name is given from outside, perhaps a moment later. */
    while (strcmp(name, "worker 1") != 0) {
        pthread_getname_np(pthread_self(), name, sizeof name);
        sched_yield();
    }
    OK(deck_thread_self(&self));
    *(deck_thread_t *)argument = self;
    FAILS(DECK_ENOTJOINABLE, deck_thread_join(&self, NULL));
    return NULL;
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
    FAILS(DECK_ENAMEEMPTY, deck_thread_create_with(&thread, returns, NULL, "", 0));
    FAILS(DECK_ENOTHREAD, deck_thread_create_with(&thread, returns, NULL, NULL, (size_t)1 << 46));
    return end("threads");
}
