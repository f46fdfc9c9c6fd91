/*
 * The floor of every message between two hosts: two processes with one TCP connection, and nothing between them and
 * the system calls. Both poll their socket without a pause.
 *
 *   sockets RSH HOST round [bytes=8,65536] [batches=20] [batch_ms=5] [limit_s=20]
 *
 * It starts its other half on HOST by the remote shell RSH, which connects back to this host by its name. It prints
 * the lines of points.c: half of a round trip, one line for each batch.
 */
#define _GNU_SOURCE
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"

enum { CONNECT_MS = 25000 };

static int connection;
static char *outgoing, *incoming;

static void send_all(const void *data, size_t bytes) {
    for (const char *next = data; bytes > 0;) {
        ssize_t sent = send(connection, next, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (sent < 0) fail("the other host is gone");
        next += sent, bytes -= (size_t)sent;
    }
}

static void receive_all(void *data, size_t bytes) {
    for (char *next = data; bytes > 0;) {
        ssize_t received = recv(connection, next, bytes, MSG_DONTWAIT);
        if (received < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (received <= 0) fail("the other host is gone");
        next += received, bytes -= (size_t)received;
    }
}

static double to_and_fro(int64_t iterations, long bytes) {
    double start = now_s();
    for (int64_t i = 0; i < iterations; i++) {
        if (rank == 0) send_all(outgoing, (size_t)bytes);
        receive_all(incoming, (size_t)bytes);
        if (rank == 1) send_all(outgoing, (size_t)bytes);
    }
    return now_s() - start;
}

/* Rank 0 says before each batch how long it is; nothing at all ends. */
static double lead_batch(const struct batches *batches, int64_t iterations) {
    int64_t words[] = {iterations, batches->bytes};
    send_all(words, sizeof words);
    return batches->batch(iterations, batches->bytes);
}

static void follow_batches(void) {
    for (;;) {
        int64_t words[2];
        receive_all(words, sizeof words);
        if (words[0] == 0) return;
        (void)to_and_fro(words[0], (long)words[1]);
    }
}

/* Touched before anything is measured. */
static void allocate_buffers(size_t largest) {
    outgoing = malloc(largest), incoming = malloc(largest);
    if (!outgoing || !incoming) fail("no memory for the buffers");
    memset(outgoing, 1, largest);
    memset(incoming, 0, largest);
}

static void use(int socket) {
    int yes = 1;
    connection = socket;
    if (connection < 0) fail("no connection between the hosts");
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/* Listens on any port, which it returns. */
static int listen_somewhere(int *listener) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    *listener = socket(AF_INET, SOCK_STREAM, 0);
    if (*listener < 0 || bind(*listener, (struct sockaddr *)&address, length) || listen(*listener, 1)
        || getsockname(*listener, (struct sockaddr *)&address, &length)) {
        fail("cannot listen");
    }
    return ntohs(address.sin_port);
}

static pid_t start_other(const char *shell, const char *host, int port) {
    char program[4096], name[256], words[4 * 4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0 || gethostname(name, sizeof name)) fail("cannot find this program or this host");
    program[length] = 0;
    snprintf(words, sizeof words, "%s --connect %s %d %ld", program, name, port, largest_bytes());
    pid_t child = fork();
    if (child < 0) fail("cannot fork");
    if (child > 0) return child;
    execlp(shell, shell, host, words, (char *)NULL);
    fail("the remote shell cannot be started");
    return 0;
}

static void lead(const char *shell, const char *host) {
    int listener, status;
    pid_t child = start_other(shell, host, listen_somewhere(&listener));
    struct pollfd caller = {.fd = listener, .events = POLLIN};
    if (poll(&caller, 1, CONNECT_MS) != 1) fail("the other host does not connect");
    use(accept(listener, NULL, NULL));
    allocate_buffers((size_t)largest_bytes());
    for (int i = 0; i < settings.bytes.count; i++) {
        lead_and_print(&(struct batches){.figure = "round", .form = "", .batch = to_and_fro, .bytes = settings.bytes.values[i],
                                         .divisor = 2},
                       lead_batch);
    }
    send_all((int64_t[]){0, 0}, 16);
    if (waitpid(child, &status, 0) != child || status != 0) fail("the other half did not end well");
}

static void follow(const char *host, const char *port, const char *largest) {
    struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    rank = 1;
    if (getaddrinfo(host, port, &wanted, &found)) fail("the first host has no address");
    int other = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(other, found->ai_addr, found->ai_addrlen)) fail("cannot connect to the first host");
    use(other);
    allocate_buffers((size_t)atol(largest));
    follow_batches();
}

int main(int argc, char **argv) {
    size = 2;
    if (argc == 5 && !strcmp(argv[1], "--connect")) {
        follow(argv[2], argv[3], argv[4]);
        return 0;
    }
    if (argc < 4) fail("usage: sockets RSH HOST round [setting=value ...]");
    const char *figure = parse_command_line(argc - 2, argv + 2);
    if (strcmp(figure, "round")) fail("unknown figure; it knows round alone");
    lead(argv[1], argv[2]);
    return 0;
}
