/*
 * Connections of one process by system calls and by io_uring: whether lanes between hosts would gain.
 *
 *   cc -O2 -o io_uring bench/io_uring.c -luring       needs liburing 2.3 and Linux 6.2
 *   io_uring                                           on one host
 *   io_uring ADDRESS                                   on another one: measures, and prints the table
 *
 * Two processes have 64 connections. Each sends a message on n of them and takes one from each, again and again, both in the
 * same way. Every way polls: no process sleeps. Then one sends 1 MiB, and the other answers with a byte. The value is the
 * lower quartile of all rounds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef IORING_SEND_ZC_REPORT_USAGE /* liburing 2.4 */
#define IORING_SEND_ZC_REPORT_USAGE (1U << 3)
#endif

enum { LANES = 64, BUFFERS = 1024, BUFFER_BYTES = 4096, PORT = 7777, LONG_BYTES = 1 << 20, RUNS = 3, ROUNDS_MOST = 1000 };
enum { SENT = 1000, CANCEL = 2000 }; /* user data beside the numbers of lanes */

static int lanes[LANES], poller, received[LANES];
static char data[LONG_BYTES], *places;
static struct io_uring ring;
static struct io_uring_buf_ring *buffers;
static int notices, copied;

static void fail(const char *what, int code) {
    fprintf(stderr, "io_uring: %s: %s\n", what, strerror(code < 0 ? -code : errno));
    exit(1);
}

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

/* ---- system calls ---- */

static void send_each(int n, int bytes) {
    for (int lane = 0; lane < n; lane++) {
        for (int sent = 0; sent < bytes;) {
            ssize_t more = send(lanes[lane], data + sent, bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (more > 0) sent += more;
            else if (errno != EAGAIN) fail("send", 0);
        }
    }
}

/* Takes what a lane has; returns whether its message is whole. */
static int take_from(int lane, int bytes) {
    ssize_t more = recv(lanes[lane], data, bytes - received[lane], MSG_DONTWAIT);
    if (more == 0 || (more < 0 && errno != EAGAIN)) fail("recv", more < 0 ? 0 : -EPIPE);
    if (more > 0) received[lane] += more;
    return received[lane] == bytes;
}

static void take_by_recv(int n, int bytes) {
    for (int lane = 0; lane < n; lane++) while (!take_from(lane, bytes)) {}
}

static void take_by_epoll(int n, int bytes) {
    struct epoll_event events[LANES];
    for (int left = n; left > 0;) {
        int ready = epoll_wait(poller, events, LANES, 0);
        for (int at = 0; at < ready; at++) left -= take_from(events[at].data.u32, bytes);
    }
}

/* ---- io_uring ---- */

static struct io_uring_sqe *request(uint64_t number) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    if (!sqe) fail("no request is free", -ENOSPC);
    sqe->flags = 0;
    io_uring_sqe_set_data64(sqe, number);
    return sqe;
}

static void enter(int awaited) {
    int code = io_uring_submit_and_wait(&ring, awaited);
    if (code < 0) fail("io_uring_enter", code);
}

/* The sends go with the enter that takes the answers. */
static void send_by_ring(int n, int bytes) {
    for (int lane = 0; lane < n; lane++) {
        struct io_uring_sqe *sqe = request(SENT);
        io_uring_prep_send(sqe, lanes[lane], data, bytes, MSG_NOSIGNAL);
        sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
        io_uring_sqe_set_data64(sqe, SENT);
    }
}

static void take_by_requests(int n, int bytes) {
    for (int left = n; left > 0;) {
        int asked = 0;
        for (int lane = 0; lane < n; lane++) {
            if (received[lane] == bytes) continue;
            struct io_uring_sqe *sqe = request(lane);
            io_uring_prep_recv(sqe, lanes[lane], data, bytes - received[lane], MSG_DONTWAIT);
            io_uring_sqe_set_data64(sqe, lane);
            asked++;
        }
        enter(asked);
        struct io_uring_cqe *cqe;
        unsigned head, seen = 0;
        io_uring_for_each_cqe(&ring, head, cqe) {
            seen++;
            if (cqe->user_data == SENT || (cqe->res <= 0 && cqe->res != -EAGAIN)) fail("request", cqe->res);
            if (cqe->res > 0) left -= (received[cqe->user_data] += cqe->res) == bytes;
        }
        io_uring_cq_advance(&ring, seen);
    }
}

static void arm(int lane) {
    struct io_uring_sqe *sqe = request(lane);
    io_uring_prep_recv_multishot(sqe, lanes[lane], NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = 1;
    io_uring_sqe_set_data64(sqe, lane);
}

static void take_by_multishot(int n, int bytes) {
    for (long left = (long)n * bytes; left > 0;) {
        enter(1);
        struct io_uring_cqe *cqe;
        unsigned head, seen = 0, given = 0;
        io_uring_for_each_cqe(&ring, head, cqe) {
            seen++;
            if (cqe->user_data == SENT || cqe->res <= 0) fail("multishot", cqe->res ? cqe->res : -EPIPE);
            int number = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
            char *place = places + (size_t)number * BUFFER_BYTES;
            memcpy(data, place, cqe->res); /* the message's own place is elsewhere */
            left -= cqe->res;
            io_uring_buf_ring_add(buffers, place, BUFFER_BYTES, number, BUFFERS - 1, given++);
            if (!(cqe->flags & IORING_CQE_F_MORE)) arm(cqe->user_data);
        }
        io_uring_buf_ring_advance(buffers, given);
        io_uring_cq_advance(&ring, seen);
    }
}

/* Sends without a copy, and waits until the memory is free again. */
static void send_zero_copy(int n, int bytes) {
    (void)n;
    struct io_uring_sqe *sqe = request(SENT);
    io_uring_prep_send_zc(sqe, lanes[0], data, bytes, MSG_NOSIGNAL | MSG_WAITALL, IORING_SEND_ZC_REPORT_USAGE);
    for (int is_free = 0; !is_free;) {
        enter(1);
        struct io_uring_cqe *cqe;
        unsigned head, seen = 0;
        io_uring_for_each_cqe(&ring, head, cqe) {
            seen++;
            int is_notice = cqe->flags & IORING_CQE_F_NOTIF;
            if (!is_notice && cqe->res != bytes) fail("send_zc", cqe->res < 0 ? cqe->res : -EIO);
            if (is_notice) notices++, copied += (uint32_t)cqe->res >> 31, is_free = 1;
        }
        io_uring_cq_advance(&ring, seen);
    }
}

static void open_ring(int multishots) {
    struct io_uring_params parameters = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    int code = io_uring_queue_init_params(256, &ring, &parameters);
    if (code < 0) fail("io_uring_setup", code);
    if (multishots == 0) return;
    if (!places && (posix_memalign((void **)&buffers, 4096, BUFFERS * sizeof(struct io_uring_buf)) ||
                    posix_memalign((void **)&places, 4096, (size_t)BUFFERS * BUFFER_BYTES)))
        fail("memory", -ENOMEM);
    struct io_uring_buf_reg group = {.ring_addr = (uintptr_t)buffers, .ring_entries = BUFFERS, .bgid = 1};
    if ((code = io_uring_register_buf_ring(&ring, &group, 0)) < 0) fail("io_uring_register", code);
    io_uring_buf_ring_init(buffers);
    for (int at = 0; at < BUFFERS; at++)
        io_uring_buf_ring_add(buffers, places + (size_t)at * BUFFER_BYTES, BUFFER_BYTES, at, BUFFERS - 1, at);
    io_uring_buf_ring_advance(buffers, BUFFERS);
    for (int lane = 0; lane < multishots; lane++) arm(lane);
}

/* Nothing of the ring may take bytes of the next step. */
static void close_ring(int multishots) {
    for (int lane = 0; lane < multishots; lane++) {
        struct io_uring_sqe *sqe = request(CANCEL);
        io_uring_prep_cancel64(sqe, lane, 0);
        io_uring_sqe_set_data64(sqe, CANCEL);
    }
    for (int left = 2 * multishots; left > 0;) {
        enter(1);
        struct io_uring_cqe *cqe;
        unsigned head, seen = 0;
        io_uring_for_each_cqe(&ring, head, cqe) seen++;
        io_uring_cq_advance(&ring, seen);
        left -= seen;
    }
    io_uring_queue_exit(&ring);
}

/* ---- the steps ---- */

typedef void way(int n, int bytes);
static const struct { const char *name; way *send, *take; int is_ring, is_multishot; } WAYS[] = {
    {"recv, send", send_each, take_by_recv, 0, 0},
    {"epoll, recv, send", send_each, take_by_epoll, 0, 0},
    {"n receives and n sends in one io_uring_enter", send_by_ring, take_by_requests, 1, 0},
    {"multishot receives, n sends in one io_uring_enter", send_by_ring, take_by_multishot, 1, 1},
};
static const struct { const char *name; way *send; int is_ring; } LONG_WAYS[] = {
    {"send", send_each, 0},
    {"zero-copy send", send_zero_copy, 1},
};

static double times[RUNS * ROUNDS_MOST];
static int is_client, taken;

static int compare(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return one < other ? -1 : one > other;
}

/* Both processes are at the same step. */
static void meet(void) {
    received[0] = 0;
    if (is_client) send_each(1, 1);
    take_by_recv(1, 1);
    if (!is_client) send_each(1, 1);
}

static void exchange(int at, int n, int bytes) {
    int multishots = WAYS[at].is_multishot ? n : 0;
    meet();
    if (WAYS[at].is_ring) open_ring(multishots);
    for (int round = 0; round < 3200 / (n < 8 ? 8 : n); round++) {
        double begun = now_us();
        memset(received, 0, sizeof received);
        if (is_client) WAYS[at].send(n, bytes);
        WAYS[at].take(n, bytes);
        if (!is_client) WAYS[at].send(n, bytes);
        if (is_client) times[taken++] = now_us() - begun;
    }
    if (!WAYS[at].is_ring) return;
    enter(0);
    close_ring(multishots);
}

static void send_long(int at) {
    meet();
    if (is_client && LONG_WAYS[at].is_ring) open_ring(0);
    for (int round = 0; round < 200; round++) {
        double begun = now_us();
        received[0] = 0;
        if (is_client) LONG_WAYS[at].send(1, LONG_BYTES);
        take_by_recv(1, is_client ? 1 : LONG_BYTES);
        if (!is_client) send_each(1, 1);
        if (is_client) times[taken++] = now_us() - begun;
    }
    if (is_client && LONG_WAYS[at].is_ring) close_ring(0);
}

static void print(int n, int bytes, const char *name) {
    if (is_client) {
        qsort(times, taken, sizeof *times, compare);
        printf("%2d x %7d B  %8.1f us  %s\n", n, bytes, times[taken / 4], name);
    }
    taken = 0;
}

static void connect_all(const char *address) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (inet_pton(AF_INET, address, &to.sin_addr) != 1) fail(address, -EINVAL);
    for (int lane = 0; lane < LANES; lane++) {
        while ((lanes[lane] = socket(AF_INET, SOCK_STREAM, 0)) >= 0 && connect(lanes[lane], (void *)&to, sizeof to)) {
            close(lanes[lane]);
            usleep(10000);
        }
    }
}

static void accept_all(void) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&own, sizeof own) || listen(listener, LANES)) fail("listen", 0);
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = accept(listener, NULL, NULL);
}

int main(int count, char **words) {
    is_client = count > 1;
    if (is_client) connect_all(words[1]);
    else accept_all();
    poller = epoll_create1(0);
    for (int lane = 0; lane < LANES; lane++) {
        int one = 1;
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = lane};
        if (setsockopt(lanes[lane], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) ||
            epoll_ctl(poller, EPOLL_CTL_ADD, lanes[lane], &event))
            fail("connection", 0);
    }
    for (int n = 1; n <= LANES; n *= n == 1 ? 16 : 4) {
        for (int bytes = 64; bytes <= 1024; bytes *= 16) {
            for (size_t at = 0; at < sizeof WAYS / sizeof *WAYS; at++) {
                for (int run = 0; run < RUNS; run++) exchange(at, n, bytes);
                print(n, bytes, WAYS[at].name);
            }
        }
    }
    for (size_t at = 0; at < sizeof LONG_WAYS / sizeof *LONG_WAYS; at++) {
        for (int run = 0; run < RUNS; run++) send_long(at);
        print(1, LONG_BYTES, LONG_WAYS[at].name);
    }
    if (is_client) printf("zero-copy sends: %d, of which the kernel copied %d\n", notices, copied);
    return 0;
}
