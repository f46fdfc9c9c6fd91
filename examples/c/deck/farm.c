/* A farm of work whose workers come and go. The farmer hands out tasks; who is there is the group "farm", in which
 * every worker tells how much it has to do, and the farmer gives the next task to who has least.
 *
 *     deckcc -O2 farm.c -o farm && landeck run -n 4 ./farm [TASKS]
 *
 * Node 0 is the farmer. Every other worker goes home after some tasks and comes back as a new member. */
#include <deck.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKERS_MAX = 64, BEFORE_HOME = 10 };
enum { LOAD = 1, GONE = 2 };

static int node, nodes;

/* A task: the sum of the squares below a number, computed the long way. */
static long work(long number)
{
    long sum = 0;
    for (long i = 0; i < number; i++) sum += i * i;
    return sum;
}

/* A worker says in the group who it is, what happens, how much waits for it; and how it is reached. */
static void tell(deck_group_t *g, deck_msg_t *m, int what, int load, deck_mbox_t *tasks)
{
    int words[3] = { node, what, load };
    DECK_CHECK(deck_msg_clear(m));
    DECK_CHECK(deck_msg_pack(m, DECK_INT, words, 3));
    DECK_CHECK(deck_msg_pack_mbox(m, tasks));
    DECK_CHECK(deck_group_bcast_others(g, m));
}

/* Works until there is nothing more to do. */
static void worker(const char *name)
{
    deck_mbox_t ears, tasks, results;
    deck_msg_t m;
    long number = 0;
    DECK_CHECK(deck_mbox_create(&ears, NULL));
    DECK_CHECK(deck_mbox_create(&tasks, NULL));
    DECK_CHECK(deck_mbox_fetch(&results, "results"));
    DECK_CHECK(deck_msg_create(&m, 0));
    while (number >= 0) {
        deck_group_t g = DECK_NOTHING;
        DECK_CHECK(deck_group_join(&g, &ears, name));
        tell(&g, &m, LOAD, 0, &tasks);
        for (int here = 0; number >= 0 && (node % 2 == 0 || here < BEFORE_HOME); here++) {
            DECK_CHECK(deck_mbox_retrv(&tasks, &m));
            DECK_CHECK(deck_msg_unpack(&m, DECK_LONG, &number, 1));
            if (number < 0) break;
            long words[3] = { node, number, work(number) };
            DECK_CHECK(deck_msg_clear(&m));
            DECK_CHECK(deck_msg_pack(&m, DECK_LONG, words, 3));
            DECK_CHECK(deck_mbox_post(&results, &m));
            tell(&g, &m, LOAD, 0, &tasks);
            /* What the others say of their load is of no use to this one. */
            while (deck_mbox_retrv_try(&ears, &m) == DECK_OK) {}
        }
        if (number < 0) break;
        /* Home: first nobody gives it more, then it finishes what it was given. */
        tell(&g, &m, GONE, 0, &tasks);
        DECK_CHECK(deck_group_leave(&g));
        DECK_CHECK(deck_group_close(&g));
        while (deck_mbox_retrv_timed(&tasks, &m, 20) == DECK_OK) {
            DECK_CHECK(deck_msg_unpack(&m, DECK_LONG, &number, 1));
            if (number < 0) break;
            long words[3] = { node, number, work(number) };
            DECK_CHECK(deck_msg_clear(&m));
            DECK_CHECK(deck_msg_pack(&m, DECK_LONG, words, 3));
            DECK_CHECK(deck_mbox_post(&results, &m));
        }
    }
}

/* Hands out the tasks and adds up what comes back. */
static void farmer(const char *name, long tasks)
{
    static deck_mbox_t ways[WORKERS_MAX];
    static int is_here[WORKERS_MAX], load[WORKERS_MAX], done[WORKERS_MAX];
    deck_group_t g = DECK_NOTHING, all;
    deck_mbox_t ears, results;
    deck_msg_t m;
    long given = 0, returned = 0, sum = 0, wanted = 0;
    int members = 0, gone = 0;
    DECK_CHECK(deck_mbox_create(&ears, NULL));
    DECK_CHECK(deck_mbox_create(&results, "results"));
    DECK_CHECK(deck_msg_create(&m, 0));
    DECK_CHECK(deck_group_create(&g, name, 1));
    DECK_CHECK(deck_group_join(&g, &ears, name));
    DECK_CHECK(deck_group_world(&all));
    DECK_CHECK(deck_collective_barrier(&all));
    for (long i = 0; i < tasks; i++) wanted += work(1000 + i);
    while (returned < tasks) {
        /* Who is there, and how busy. */
        while (deck_mbox_retrv_timed(&ears, &m, given < tasks && members == 0 ? 100 : 0) == DECK_OK) {
            int words[3];
            DECK_CHECK(deck_msg_unpack(&m, DECK_INT, words, 3));
            int who = words[0];
            if (words[1] == GONE) {
                is_here[who] = 0;
                gone++;
            } else if (!is_here[who]) {
                DECK_CHECK(deck_msg_unpack_mbox(&m, &ways[who]));
                is_here[who] = 1;
            }
            members = 0;
            for (int i = 1; i < nodes; i++) members += is_here[i];
        }
        /* The next task goes to who has least to do, and at most two wait for anybody. */
        int least = 0;
        for (int i = 1; i < nodes; i++) {
            if (is_here[i] && load[i] < 2 && (least == 0 || load[i] < load[least])) least = i;
        }
        if (given < tasks && least > 0) {
            long number = 1000 + given;
            DECK_CHECK(deck_msg_clear(&m));
            DECK_CHECK(deck_msg_pack(&m, DECK_LONG, &number, 1));
            DECK_CHECK(deck_mbox_post(&ways[least], &m));
            load[least]++;
            given++;
            continue;
        }
        if (deck_mbox_retrv_timed(&results, &m, 5) == DECK_OK) {
            long words[3];
            DECK_CHECK(deck_msg_unpack(&m, DECK_LONG, words, 3));
            load[words[0]]--;
            done[words[0]]++;
            sum += words[2];
            returned++;
        }
    }
    /* The end is said to every worker, here or on its way: also to one that was not heard of yet. */
    for (int i = 1; i < nodes; i++) {
        long end = -1;
        while (ways[i].id == 0) {
            int words[3];
            DECK_CHECK(deck_mbox_retrv(&ears, &m));
            DECK_CHECK(deck_msg_unpack(&m, DECK_INT, words, 3));
            if (ways[words[0]].id == 0) DECK_CHECK(deck_msg_unpack_mbox(&m, &ways[words[0]]));
        }
        DECK_CHECK(deck_msg_clear(&m));
        DECK_CHECK(deck_msg_pack(&m, DECK_LONG, &end, 1));
        DECK_CHECK(deck_mbox_post(&ways[i], &m));
    }
    for (int i = 1; i < nodes; i++) printf("worker %d: %d tasks\n", i, done[i]);
    printf("%ld tasks, %d times somebody went home, sum %s\n", tasks, gone, sum == wanted ? "right" : "WRONG");
    if (sum != wanted) exit(1);
}

int main(int argc, char **argv)
{
    const char *name = "farm";
    long tasks = argc > 1 ? atol(argv[1]) : 200;
    deck_group_t all;
    DECK_CHECK(deck_init(&argc, &argv));
    DECK_CHECK(deck_node(&node));
    DECK_CHECK(deck_node_num(&nodes));
    if (nodes < 2 || nodes > WORKERS_MAX || tasks < 1) {
        if (node == 0) fprintf(stderr, "farm: start it on 2 to %d nodes, with 1 task or more\n", WORKERS_MAX);
        DECK_CHECK(deck_done());
        return 2;
    }
    if (node == 0) {
        farmer(name, tasks);
    } else {
        DECK_CHECK(deck_group_world(&all));
        DECK_CHECK(deck_collective_barrier(&all));
        worker(name);
    }
    DECK_CHECK(deck_done());
    return 0;
}
