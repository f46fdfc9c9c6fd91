/* Order and credit, as docs/mpi.md says.
 * Only here: other libraries may wait in a blocking send for the receiver. So does ours with LANDECK_ONE_COPY=4K: then the
 * blocking sends of `exchange_then_receive` wait for each other. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <fcntl.h>
#include <unistd.h>

enum { MANY = 2000, SHORT_BYTES = 16 << 10, LONG_BYTES = 1 << 20, LONG = 24 };

static int next, before;

/* Messages of all lengths overtake each other neither on their way nor where they wait, whatever
   they are received as. */
static void no_overtaking(void)
{
    static const int lengths[] = {1, 40, 400, 17000, 3, 300000, 0, 70000, 8, 1200000};
    enum { KINDS = sizeof lengths / sizeof lengths[0], COUNT = 3 * KINDS };
    unsigned char *out = calloc(COUNT, 1 << 21), *in = malloc(1 << 21);
    MPI_Request requests[COUNT];
    MPI_Status status;
    int bytes;
    for (int i = 0; i < COUNT; i++) {
        memset(out + ((size_t)i << 21), i + 1, (size_t)lengths[i % KINDS]);
        CHECK(MPI_Isend(out + ((size_t)i << 21), lengths[i % KINDS], MPI_BYTE, next, 7,
                        MPI_COMM_WORLD, &requests[i]) == MPI_SUCCESS);
    }
    for (int i = 0; i < COUNT; i++) {
        int length = lengths[i % KINDS];
        CHECK(MPI_Recv(in, 1 << 21, MPI_BYTE, i % 2 ? before : MPI_ANY_SOURCE,
                       i % 3 ? 7 : MPI_ANY_TAG, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        CHECK(bytes == length && status.MPI_SOURCE == before && status.MPI_TAG == 7);
        CHECK(length == 0 || (in[0] == i + 1 && in[length - 1] == i + 1));
    }
    CHECK(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    free(in);
    free(out);
}

/* All send, then all receive: nobody waits for good. */
static void exchange_then_receive(void)
{
    char *data = malloc(SHORT_BYTES);
    for (int i = 0; i < MANY; i++) {
        memset(data, i, SHORT_BYTES);
        CHECK(MPI_Send(data, i % 2 ? SHORT_BYTES : 8, MPI_BYTE, next, i, MPI_COMM_WORLD) ==
              MPI_SUCCESS);
    }
    for (int i = 0; i < MANY; i++) {
        CHECK(MPI_Recv(data, SHORT_BYTES, MPI_BYTE, before, i, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(data[0] == (char)i && data[i % 2 ? SHORT_BYTES - 1 : 7] == (char)i);
    }
    free(data);
}

/* To begin a send waits for nobody: all are begun before anybody receives. */
static void beginning_never_waits(void)
{
    static MPI_Request requests[LONG + MANY];
    static int numbers[MANY];
    char *out = malloc((size_t)LONG * LONG_BYTES), *in = malloc(LONG_BYTES);
    for (int i = 0; i < LONG; i++) {
        memset(out + (size_t)i * LONG_BYTES, rank + i, LONG_BYTES);
        CHECK(MPI_Isend(out + (size_t)i * LONG_BYTES, LONG_BYTES, MPI_BYTE, next, 1,
                        MPI_COMM_WORLD, &requests[i]) == MPI_SUCCESS);
    }
    for (int i = 0; i < MANY; i++) {
        numbers[i] = i;
        CHECK(MPI_Isend(&numbers[i], 1, MPI_INT, next, 2, MPI_COMM_WORLD, &requests[LONG + i]) ==
              MPI_SUCCESS);
    }
    /* The last ones first. */
    for (int i = 0; i < MANY; i++) {
        int number = -1;
        CHECK(MPI_Recv(&number, 1, MPI_INT, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
              MPI_SUCCESS);
        CHECK(number == i);
    }
    for (int i = 0; i < LONG; i++) {
        CHECK(MPI_Recv(in, LONG_BYTES, MPI_BYTE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
              MPI_SUCCESS);
        CHECK(in[0] == (char)(before + i) && in[LONG_BYTES - 1] == (char)(before + i));
    }
    CHECK(MPI_Waitall(LONG + MANY, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    free(in);
    free(out);
}

/* Not even for a receiver that makes no calls at all: who is to receive looks at a file until that says that
 * all sends have been begun. More messages than there is room for: short ones, and blocks. */
static void beginning_needs_nobody(void)
{
    static MPI_Request requests[LONG + MANY];
    static int numbers[MANY];
    int is_sender = rank % 2 == 0, partner = is_sender ? rank + 1 : rank - 1;
    char path[64] = "/tmp/landeck-order-XXXXXX", *data;
    if (partner >= size) return;
    data = malloc((size_t)LONG * LONG_BYTES);
    if (!is_sender) {
        MPI_Recv(path, sizeof path, MPI_CHAR, partner, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int file = open(path, O_RDONLY);
        CHECK(file >= 0 && unlink(path) == 0);
        while (read(file, data, 1) == 0) usleep(1000);
        close(file);
        for (int i = 0; i < MANY; i++) {
            CHECK(MPI_Recv(&numbers[0], 1, MPI_INT, partner, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
            CHECK(numbers[0] == i);
        }
        for (int i = 0; i < LONG; i++) {
            CHECK(MPI_Recv(data, LONG_BYTES, MPI_BYTE, partner, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
            CHECK(data[0] == (char)i && data[LONG_BYTES - 1] == (char)i);
        }
        free(data);
        return;
    }
    int file = mkstemp(path);
    CHECK(file >= 0);
    MPI_Send(path, sizeof path, MPI_CHAR, partner, 3, MPI_COMM_WORLD);
    for (int i = 0; i < LONG; i++) {
        memset(data + (size_t)i * LONG_BYTES, i, LONG_BYTES);
        MPI_Isend(data + (size_t)i * LONG_BYTES, LONG_BYTES, MPI_BYTE, partner, 5, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < MANY; i++) {
        numbers[i] = i;
        MPI_Isend(&numbers[i], 1, MPI_INT, partner, 4, MPI_COMM_WORLD, &requests[LONG + i]);
    }
    CHECK(write(file, "!", 1) == 1);
    close(file);
    CHECK(MPI_Waitall(LONG + MANY, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    free(data);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    no_overtaking();
    exchange_then_receive();
    beginning_never_waits();
    beginning_needs_nobody();
    return end("order");
}
