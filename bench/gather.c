/* Many processes answer one: the experiment of Davies and Matloff (1997), "Programmed Backoff".
 *
 * usage: gather BYTES ROUNDS
 *
 * Rank 0 gathers BYTES of each of the others. For each round it prints the time in milliseconds, from behind a barrier
 * to the last byte, and the number of TCP segments that all hosts sent again meanwhile. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The segments that this host has sent again: the counter RetransSegs of its network namespace. */
static long sent_again(void) {
    char names[2048], values[2048];
    long count = 0;
    FILE *file = fopen("/proc/net/snmp", "r");
    if (!file) return 0;
    while (fgets(names, sizeof names, file)) {
        if (strncmp(names, "Tcp:", 4) || !fgets(values, sizeof values, file)) continue;
        char *next_name, *next_value;
        char *name = strtok_r(names, " \n", &next_name), *value = strtok_r(values, " \n", &next_value);
        for (; name && value; name = strtok_r(0, " \n", &next_name), value = strtok_r(0, " \n", &next_value))
            if (!strcmp(name, "RetransSegs")) count = atol(value);
    }
    fclose(file);
    return count;
}

/* A line for landeck-bench. */
static void say(int size, long bytes, const char *form, const char *unit, double value) {
    printf("{\"figure\":\"incast\",\"form\":\"%s\",\"n\":%d,\"bytes\":%ld,\"pending\":0,\"unit\":\"%s\",\"value\":%.9g}\n",
           form, size - 1, bytes, unit, value);
    fflush(stdout);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long bytes = argc > 1 ? atol(argv[1]) : 80000;
    int rounds = argc > 2 ? atoi(argv[2]) : 5, wrong = 0;
    char *mine = malloc(bytes), *all = malloc(rank ? 1 : bytes * size);
    if (!mine || !all) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(mine, rank, bytes);
    if (!rank) memset(all, 255, bytes * size);
    /* The counters are those of hosts: with several processes on a host the first of them counts. */
    MPI_Comm host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    int place;
    MPI_Comm_rank(host, &place);
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        long before = sent_again();
        double start = MPI_Wtime();
        MPI_Gather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        double time = MPI_Wtime() - start;
        MPI_Barrier(MPI_COMM_WORLD);
        long again = place ? 0 : sent_again() - before, sum = 0;
        MPI_Reduce(&again, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
        for (int from = 0; !rank && from < size; from++)
            wrong |= all[from * bytes] != (char)from || all[(from + 1) * bytes - 1] != (char)from;
        if (!rank) say(size, bytes, "", "ms", time * 1e3), say(size, bytes, "sent again", "segments", sum);
    }
    if (wrong) fprintf(stderr, "the gathered data are wrong\n");
    MPI_Finalize();
    return wrong;
}
