/* Collective operations that go on: several at once, completed in any order, with operations of the
 * program and with datatypes and operations that are freed meanwhile; datatypes with gaps. */
#include "check.h"

enum { MOST = 64 };

static int sent[4 * MOST], got[4 * MOST], more[4 * MOST], counts[MOST], places[MOST];
static int calls;

/* a x + b after c x + d: it does not commute. */
static void compose(void *in, void *inout, int *length, MPI_Datatype *type)
{
    const int *first = in;
    int *second = inout;
    (void)type;
    for (int at = 0; at < *length; at++, first += 2, second += 2) {
        second[1] = first[1] * second[0] + second[1];
        second[0] = first[0] * second[0];
    }
    calls++;
}

static void finish(int count, MPI_Request *requests)
{
    int flag = 0, index;
    MPI_Status status;

    CHECK(MPI_Wait(&requests[count - 1], &status) == MPI_SUCCESS);
    CHECK(requests[count - 1] == MPI_REQUEST_NULL);
    while (!flag) CHECK(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void moving(int root)
{
    MPI_Request requests[8];
    int one = rank == root ? root + 7 : -1, parts[MOST], sums = 0;

    for (int at = 0; at < 3 * size; at++) sent[at] = 100 * rank + at, got[at] = more[at] = -1;
    for (int at = 0; at < size; at++) counts[at] = at % 2, places[at] = 2 * at;
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(&one, 1, MPI_INT, root, MPI_COMM_WORLD, &requests[1]);
    MPI_Igather(&rank, 1, MPI_INT, parts, 1, MPI_INT, root, MPI_COMM_WORLD, &requests[2]);
    MPI_Iscatter(sent, 2, MPI_INT, got, 2, MPI_INT, root, MPI_COMM_WORLD, &requests[3]);
    MPI_Ialltoall(sent, 1, MPI_INT, more, 1, MPI_INT, MPI_COMM_WORLD, &requests[4]);
    MPI_Iallgatherv(sent, counts[rank], MPI_INT, more + size, counts, places, MPI_INT,
                    MPI_COMM_WORLD, &requests[5]);
    MPI_Iallreduce(&rank, &sums, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[6]);
    finish(7, requests);
    CHECK(one == root + 7 && sums == size * (size - 1) / 2);
    CHECK(got[0] == 100 * root + 2 * rank && got[1] == got[0] + 1);
    for (int from = 0; from < size; from++) {
        CHECK(rank != root || parts[from] == from);
        CHECK(more[from] == 100 * from + rank);
        CHECK(more[size + 2 * from] == (counts[from] ? 100 * from : -1));
    }
}

static void combining(int root)
{
    MPI_Request requests[6];
    MPI_Datatype pair;
    MPI_Op operation;
    int mine[2] = {rank + 1, rank}, all[2], first[2], upto[2], before[2] = {-1, -1}, expected[2];
    int blocks[2 * MOST], block[2];

    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &operation);
    for (int at = 0; at < size; at++) blocks[2 * at] = rank + 1, blocks[2 * at + 1] = rank + at;
    calls = 0;
    MPI_Iallreduce(mine, all, 1, pair, operation, MPI_COMM_WORLD, &requests[0]);
    MPI_Ireduce(mine, first, 1, pair, operation, root, MPI_COMM_WORLD, &requests[1]);
    MPI_Iscan(mine, upto, 1, pair, operation, MPI_COMM_WORLD, &requests[2]);
    MPI_Iexscan(mine, before, 1, pair, operation, MPI_COMM_WORLD, &requests[3]);
    MPI_Ireduce_scatter_block(blocks, block, 1, pair, operation, MPI_COMM_WORLD, &requests[4]);
    MPI_Op_free(&operation);
    MPI_Type_free(&pair);
    finish(5, requests);
    CHECK(calls > 0 || size == 1);
    expected[0] = 1, expected[1] = 0;
    for (int at = 0; at < size; at++) {
        expected[1] = expected[1] * (at + 1) + at;
        expected[0] *= at + 1;
        if (at == rank) CHECK(upto[0] == expected[0] && upto[1] == expected[1]);
        if (at + 1 == rank) CHECK(before[0] == expected[0] && before[1] == expected[1]);
    }
    CHECK(rank > 0 || before[0] == -1);
    CHECK(all[0] == expected[0] && all[1] == expected[1]);
    if (rank == root) CHECK(first[0] == expected[0] && first[1] == expected[1]);
    expected[1] = 0;
    for (int at = 0; at < size; at++) expected[1] = expected[1] * (at + 1) + at + rank;
    CHECK(block[0] == expected[0] && block[1] == expected[1]);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int root = 0; root < size; root++) {
        moving(root);
        combining(root);
    }
    return end("collective_started");
}
