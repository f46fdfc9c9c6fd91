/* Semaphores and shared segments: a counter that nobody counts wrong, between processes and threads. */
#include "check.h"

enum { TURNS = 500, THREADS = 2 };

static long *counter;

static void *counts(void *argument)
{
    deck_sem_t *lock = argument;
    for (int i = 0; i < TURNS; i++) {
        OK(deck_sem_p(lock));
        long seen = *(volatile long *)counter;
        *(volatile long *)counter = seen + 1;
        OK(deck_sem_v(lock));
    }
    return NULL;
}

static void counting(void)
{
    deck_sem_t lock;
    deck_segment_t segment;
    deck_thread_t threads[THREADS];
    void *start;
    size_t bytes = 0;
    if (node == 0) {
        OK(deck_sem_create(&lock, "lock", 1));
        OK(deck_segment_create(&segment, "counter", sizeof *counter));
        FAILS(DECK_ETAKEN, deck_segment_create(&segment, "counter", 8));
    }
    OK(deck_collective_barrier(&all));
    if (node != 0) {
        OK(deck_sem_fetch(&lock, "lock"));
        OK(deck_segment_fetch(&segment, "counter"));
    }
    OK(deck_segment_address(&segment, &start, &bytes));
    CHECK(bytes >= sizeof *counter);
    counter = start;
    for (int i = 0; i < THREADS; i++) OK(deck_thread_create(&threads[i], counts, &lock));
    for (int i = 0; i < THREADS; i++) OK(deck_thread_join(&threads[i], NULL));
    OK(deck_collective_barrier(&all));
    CHECK(*counter == (long)nodes * THREADS * TURNS);
    OK(deck_collective_barrier(&all));
    OK(deck_segment_destroy(&segment));
    FAILS(DECK_EDESTROYED, deck_segment_address(&segment, &start, NULL));
    OK(deck_sem_destroy(&lock));
    FAILS(DECK_EDESTROYED, deck_sem_p(&lock));
}

/* Node 0 adds units that the others use up. */
static void producing(void)
{
    deck_sem_t work;
    int units = -1;
    if (node == 0) OK(deck_sem_create(&work, "work", 0));
    OK(deck_collective_barrier(&all));
    if (node == 0) {
        for (int i = 0; i < 10 * (nodes - 1); i++) OK(deck_sem_v(&work));
    } else {
        OK(deck_sem_fetch(&work, "work"));
        for (int i = 0; i < 10; i++) {
            OK(deck_sem_p_timed(&work, 100000));
            OK(deck_sem_spend(&work));
        }
        FAILS(DECK_EUNITS, deck_sem_spend(&work));
    }
    OK(deck_collective_barrier(&all));
    OK(deck_sem_value(&work, &units));
    CHECK(units == 0);
    FAILS(DECK_EWOULDBLOCK, deck_sem_p_try(&work));
    FAILS(DECK_ETIMEDOUT, deck_sem_p_timed(&work, 1));
    OK(deck_sem_recover(&work, &units));
    CHECK(units == 0);
    OK(deck_collective_barrier(&all));
    OK(deck_sem_destroy(&work));
}

static void mistakes(void)
{
    deck_sem_t s;
    deck_segment_t segment;
    FAILS(DECK_EVALUE, deck_sem_create(&s, "a", -1));
    FAILS(DECK_EUNITS, deck_sem_create(&s, "a", 1 << 16));
    FAILS(DECK_ENAMEEMPTY, deck_sem_create(&s, "", 1));
    FAILS(DECK_EUNKNOWN, deck_sem_fetch(&s, "nobody made it"));
    FAILS(DECK_EUNKNOWN, deck_segment_fetch(&segment, "nobody made it"));
    FAILS(DECK_EVALUE, deck_segment_create(&segment, "none", 0));
    CHECK(strstr(deck_error_text(), "cannot have 0 bytes: give it 1 to 1,099,511,627,776"));
    FAILS(DECK_ENOMEMORY, deck_segment_create(&segment, "all", SIZE_MAX / 2));
    CHECK(strstr(deck_error_text(), "cannot have 9,223,372,036,854,775,807 bytes: give it 1 to"));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    counting();
    producing();
    mistakes();
    return end("semaphores");
}
