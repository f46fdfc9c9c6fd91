/* Many processes answer one: the experiment of Davies and Matloff (1997), "Programmed Backoff".
 *
 * usage: gather ROUNDS BYTES...
 *
 * Rank 0 gathers BYTES of each of the others. For each round it prints the time in milliseconds, from the moment at which
 * the first process has left a barrier to the last byte, and the number of TCP segments that all processes sent again
 * meanwhile. All hosts are one machine, so they have one clock. Rank 0 may leave the barrier last: a clock that it starts
 * then would not count what is sent before. */
#define _GNU_SOURCE
#include <dirent.h>
#include <mpi.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* The clock of the machine in milliseconds. */
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
}

/* What a connection had sent again at the last look. */
static struct { unsigned long long cookie; long count; } known[4096];
static int known_count;

/* The segments that a connection has sent again since the last look. */
static long new_of(int socket, long count) {
    unsigned long long cookie = 0;
    socklen_t length = sizeof cookie;
    int at = 0;
    if (getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &length)) return 0;
    while (at < known_count && known[at].cookie != cookie) at++;
    if (at == 4096) return 0;
    if (at == known_count) known[known_count++].cookie = cookie, known[at].count = 0;
    long before = known[at].count;
    known[at].count = count;
    return count - before;
}

/* The segments that this process has sent again so far: tcpi_total_retrans of all its connections. Connections of a
 * library's daemons are not among them, nor what a connection sent again between the last look and its end. */
static long sent_again(void) {
    static long count;
    DIR *open_files = opendir("/proc/self/fd");
    if (!open_files) return count;
    for (struct dirent *entry; (entry = readdir(open_files));) {
        struct tcp_info facts;
        socklen_t length = sizeof facts;
        memset(&facts, 0, sizeof facts);
        if (entry->d_name[0] == '.') continue;
        int socket = atoi(entry->d_name);
        if (!getsockopt(socket, IPPROTO_TCP, TCP_INFO, &facts, &length)) count += new_of(socket, facts.tcpi_total_retrans);
    }
    closedir(open_files);
    return count;
}

/* A line for landeck-bench. */
static void say(int size, long bytes, const char *form, const char *unit, double value) {
    printf("{\"figure\":\"incast\",\"form\":\"%s\",\"n\":%d,\"bytes\":%ld,\"pending\":0,\"unit\":\"%s\",\"value\":%.9g}\n",
           form, size - 1, bytes, unit, value);
    fflush(stdout);
}

/* Gathers so many times; returns whether any byte at an end of a block was wrong. */
static int gather(long bytes, int rounds) {
    int rank, size, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *mine = malloc(bytes), *all = malloc(rank ? 1 : bytes * size);
    if (!mine || !all) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(mine, rank, bytes);
    if (!rank) memset(all, 255, bytes * size);
    for (int round = 0; round < rounds; round++) {
        long before = sent_again();
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now(), first = start;
        MPI_Gather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        double end = now();
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Reduce(&start, &first, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
        long again = sent_again() - before, sum = 0;
        MPI_Reduce(&again, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        for (int from = 0; !rank && from < size; from++)
            wrong |= all[from * bytes] != (char)from || all[(from + 1) * bytes - 1] != (char)from;
        if (!rank) say(size, bytes, "", "ms", end - first), say(size, bytes, "sent again", "segments", sum);
    }
    free(mine);
    free(all);
    return wrong;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 5, wrong = 0;
    for (int at = 2; at < argc; at++) wrong |= gather(atol(argv[at]), rounds);
    if (wrong) fprintf(stderr, "the gathered data are wrong\n");
    MPI_Finalize();
    return wrong;
}
