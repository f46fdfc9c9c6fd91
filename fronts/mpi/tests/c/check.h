/* What every test program needs: a check that says what failed, and the ranks. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: rank %d: %s is false\n", __FILE__, __LINE__, rank,     \
                    #condition);                                                           \
            MPI_Abort(MPI_COMM_WORLD, 99);                                                 \
        }                                                                                  \
    } while (0)

static inline void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* Whether this is our library: some other one is not so exact in a place or two. */
static inline int is_ours(void)
{
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(name, &length);
    return !strncmp(name, "Landeck", 7);
}

/* Returns when all have come this far. */
static inline void meet(MPI_Comm comm)
{
    int one = 1, all;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm);
}

/* Whether all ranks find that much free memory. If not, rank 0 says that this program is passed over. */
static inline int have_memory_gib(const char *what, unsigned long long needed)
{
    unsigned long long free_kib = 0;
    char line[200];
    int mine, all;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &free_kib) == 1) break;
    if (file) fclose(file);
    mine = free_kib >= needed << 20;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all && rank == 0) printf("%s: there are less than %llu GiB of memory\n", what, needed);
    return all;
}

/* The number of ranks on this process's host, how many of them come before it, and the number of hosts. */
struct host_ranks {
    int here, before, hosts;
};

static inline struct host_ranks host_ranks(void)
{
    struct host_ranks found = {0, 0, 0};
    char own[MPI_MAX_PROCESSOR_NAME] = "", *all = (char *)calloc(size, MPI_MAX_PROCESSOR_NAME);
    int length;
    CHECK(all && MPI_Get_processor_name(own, &length) == MPI_SUCCESS && own[length] == '\0');
    MPI_Allgather(own, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, all, MPI_MAX_PROCESSOR_NAME, MPI_CHAR,
                  MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) {
        int is_here = !strcmp(own, all + i * MPI_MAX_PROCESSOR_NAME), first = 0;
        while (strcmp(all + first * MPI_MAX_PROCESSOR_NAME, all + i * MPI_MAX_PROCESSOR_NAME)) first++;
        found.here += is_here;
        found.before += is_here && i < rank;
        found.hosts += first == i;
    }
    free(all);
    return found;
}

/* Rank 0 says so once everybody has come this far. */
static inline int end(const char *what)
{
    int one = 1, all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all == size);
    if (rank == 0) printf("%s: %d processes agree\n", what, all);
    fflush(stdout);
    return MPI_Finalize();
}

/* The byte at some place of a message: depends on who sends it and which message it is. */
static inline unsigned char pattern(int from, int number, size_t place)
{
    return (unsigned char)(from * 131 + number * 31 + place * 7 + (place >> 8));
}

#endif
