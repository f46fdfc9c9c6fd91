/* More data than the heap of a process has room for: in one operation; and in the last operations of many
 * communicators, whose deposits others may still be reading. Needs 4 GiB with three processes; says so and passes
 * where there is less. */
#include "check.h"

enum { COMMUNICATORS = 30, LENGTH = 10 << 20, WHOLE = 260 << 20, BLOCK = 90 << 20 };

static char value_at(long place, int key) { return (char)(place * 13 + (place >> 18) + key); }

/* Some of a buffer's bytes, ends of pages and of the whole among them. */
static void fill(char *buffer, long length, int key)
{
    for (long place = 0; place < length; place += 4095) buffer[place] = value_at(place, key);
    buffer[length - 1] = value_at(length - 1, key);
}

static void check(const char *buffer, long length, int key)
{
    for (long place = 0; place < length; place += 4095) CHECK(buffer[place] == value_at(place, key));
    CHECK(buffer[length - 1] == value_at(length - 1, key));
}

static void many_communicators(void)
{
    MPI_Comm comms[COMMUNICATORS];
    char *buffer = malloc(LENGTH);
    for (int number = 0; number < COMMUNICATORS; number++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[number]);
    for (int round = 0; round < 2; round++)
        for (int number = 0; number < COMMUNICATORS; number++) {
            int root = round % size, key = round * COMMUNICATORS + number;
            memset(buffer, 0, LENGTH);
            if (rank == root) fill(buffer, LENGTH, key);
            if (round == 1) {
                MPI_Request request;
                MPI_Ibcast(buffer, LENGTH, MPI_CHAR, root, comms[number], &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            } else {
                MPI_Bcast(buffer, LENGTH, MPI_CHAR, root, comms[number]);
            }
            check(buffer, LENGTH, key);
        }
    for (int number = 0; number < COMMUNICATORS; number++) MPI_Comm_free(&comms[number]);
    free(buffer);
}

/* One piece of data for all. */
static void whole(void)
{
    char *in = calloc(WHOLE, 1), *out = calloc(WHOLE, 1);
    MPI_Request request;
    if (rank == size - 1) fill(in, WHOLE, 1);
    MPI_Bcast(in, WHOLE, MPI_CHAR, size - 1, MPI_COMM_WORLD);
    check(in, WHOLE, 1);
    /* Of all but one process zeroes. */
    if (rank > 0) memset(in, 0, WHOLE);
    MPI_Allreduce(in, out, WHOLE / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(out, WHOLE, 1);
    memset(out, 0, WHOLE);
    MPI_Iallreduce(in, out, WHOLE / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(out, WHOLE, 1);
    free(in);
    free(out);
}

/* A block for each process. */
static void blocks(void)
{
    char *in = calloc((size_t)size * BLOCK, 1), *out = calloc((size_t)size * BLOCK, 1);
    for (int to = 0; to < size; to++) fill(in + (size_t)to * BLOCK, BLOCK, 10 * rank + to);
    MPI_Alltoall(in, BLOCK, MPI_CHAR, out, BLOCK, MPI_CHAR, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++) check(out + (size_t)from * BLOCK, BLOCK, 10 * from + rank);
    MPI_Scatter(in, BLOCK, MPI_CHAR, out, BLOCK, MPI_CHAR, 0, MPI_COMM_WORLD);
    check(out, BLOCK, rank);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (have_memory_gib("room", 5)) {
        many_communicators();
        whole();
        blocks();
    }
    return end("room");
}
