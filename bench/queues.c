/*
 * Message queues of POSIX, which Linux keeps: what mailboxes are measured beside.
 *
 *   queues -n 2 mailbox [batches=20] [batch_ms=5] [limit_s=20]
 *
 * Two processes, each bound to a processor of its own if there are two, pass one word to and fro through
 * two queues, and half of the round trip is printed as a line of points.c. Who waits asks again and again
 * (O_NONBLOCK) instead of sleeping in the kernel, which takes several times as long: this is the
 * better of the two.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

/* One for each direction: a process receives from its own. */
static mqd_t queues[2];

static void send_word(int64_t word) {
    while (mq_send(queues[1 - rank], (const char *)&word, sizeof word, 0)) {
        if (errno != EAGAIN) fail("mq_send failed");
    }
}

static int64_t receive_word(void) {
    int64_t word = 0;
    while (mq_receive(queues[rank], (char *)&word, sizeof word, NULL) != sizeof word) {
        if (errno != EAGAIN) fail("mq_receive failed");
    }
    return word;
}

static double to_and_fro(int64_t iterations, long bytes) {
    (void)bytes;
    double start = now_s();
    int64_t word = 0;
    for (int64_t i = 0; i < iterations; i++) {
        if (rank == 0) {
            send_word(word);
            word = receive_word();
        } else {
            word = receive_word();
            send_word(word + 1);
        }
    }
    if (rank == 0 && word != iterations) fail("received the wrong word: the queues are broken");
    return now_s() - start;
}

/* Process 0 says how many iterations the next batch has; 0 ends. */
static double lead_batch(const struct batches *batches, int64_t iterations) {
    send_word(iterations);
    return batches->batch(iterations, batches->bytes);
}

static void follow_batches(void) {
    for (;;) {
        int64_t iterations = receive_word();
        if (iterations == 0) return;
        to_and_fro(iterations, 8);
    }
}

/* Without a name once they are open: nothing is left, however this ends. */
static void open_queues(void) {
    struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = sizeof(int64_t)};
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "/landeck-bench-%d-%d", (int)getpid(), i);
        queues[i] = mq_open(name, O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK, 0600, &attributes);
        if (queues[i] == (mqd_t)-1) fail("the system gives no message queue");
        mq_unlink(name);
    }
}

/* The usable processors in turn, if there is one for each. */
static void bind_to_own_processor(void) {
    cpu_set_t usable, own;
    if (sched_getaffinity(0, sizeof usable, &usable) || CPU_COUNT(&usable) < size) return;
    CPU_ZERO(&own);
    for (int processor = 0, place = 0; processor < CPU_SETSIZE; processor++) {
        if (CPU_ISSET(processor, &usable) && place++ == rank) CPU_SET(processor, &own);
    }
    (void)sched_setaffinity(0, sizeof own, &own); /* without it the figure is only less steady */
}

int main(int argc, char **argv) {
    if (argc < 4 || strcmp(argv[1], "-n") || (size = atoi(argv[2])) != 2) fail("usage: queues -n 2 mailbox [setting=value ...]");
    const char *figure = parse_command_line(argc - 2, argv + 2);
    open_queues();
    pid_t child = fork();
    if (child < 0) fail("cannot fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        rank = 1;
    }
    bind_to_own_processor();
    if (rank == 1) {
        follow_batches();
        return 0;
    }
    struct batches batches = {.figure = figure, .form = "values", .batch = to_and_fro, .bytes = 8, .divisor = 2};
    lead_and_print(&batches, lead_batch);
    send_word(0);
    wait(NULL);
    return 0;
}
