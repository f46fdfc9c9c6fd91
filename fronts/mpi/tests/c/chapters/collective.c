/* Blocking collective operations: any root, in place, no items at all, datatypes with gaps and different
 * ones on the two sides, both widths of counts, and mistakes. */
#include "check.h"

enum { MOST = 64 };

static int sent[MOST * MOST], got[MOST * MOST];
static int counts[MOST], places[MOST];
static MPI_Count wide_counts[MOST];
static MPI_Aint wide_places[MOST];
/* Two ints of which every other is skipped; the same in a run. */
static MPI_Datatype gaps, run;

static int value(int from, int to, int index)
{
    return from * 10000 + to * 100 + index;
}

static void fill(int *memory, int length)
{
    for (int index = 0; index < length; index++) memory[index] = -1;
}

static void broadcasts(void)
{
    for (int root = 0; root < size; root++) {
        for (int count = 0; count < 5000; count = 7 * count + 1) {
            static int data[5000];
            for (int at = 0; at < count; at++) data[at] = rank == root ? value(root, 0, at) : -1;
            CHECK(MPI_Bcast(data, count, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS);
            for (int at = 0; at < count; at++) CHECK(data[at] == value(root, 0, at));
        }
        fill(got, 8);
        if (rank == root) {
            for (int at = 0; at < 4; at++) got[at] = at;
            MPI_Bcast_c(got, 2, run, root, MPI_COMM_WORLD);
        } else {
            MPI_Bcast(got, 2, gaps, root, MPI_COMM_WORLD);
            CHECK(got[0] == 0 && got[1] == -1 && got[2] == 1 && got[3] == -1);
            CHECK(got[4] == 2 && got[5] == -1 && got[6] == 3 && got[7] == -1);
        }
    }
}

static void to_a_root(int root)
{
    sent[0] = value(rank, root, 0), sent[2] = value(rank, root, 1);
    fill(got, 2 * size + 2);
    MPI_Gather(sent, 1, gaps, got, 2, MPI_INT, root, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++)
        for (int at = 0; at < 2; at++)
            CHECK(got[2 * from + at] == (rank == root ? value(from, root, at) : -1));
    CHECK(got[2 * size] == -1);

    /* In place, and with different lengths in any order. */
    for (int from = 0; from < size; from++) {
        wide_counts[from] = counts[from] = from % 3;
        wide_places[from] = places[from] = 3 * (size - 1 - from);
    }
    for (int at = 0; at < 2; at++) sent[at] = value(rank, root, at);
    fill(got, 3 * size);
    if (rank == root) {
        memcpy(got + places[rank], sent, counts[rank] * sizeof *sent);
        MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, counts, places, MPI_INT, root,
                    MPI_COMM_WORLD);
    } else {
        MPI_Gatherv_c(sent, counts[rank], MPI_INT, NULL, NULL, NULL, MPI_DATATYPE_NULL, root,
                      MPI_COMM_WORLD);
    }
    for (int from = 0; from < size && rank == root; from++)
        for (int at = 0; at < 3; at++)
            CHECK(got[places[from] + at] == (at < counts[from] ? value(from, root, at) : -1));
    if (rank == root) {
        got[rank] = value(rank, 5, 5);
        MPI_Gather_c(MPI_IN_PLACE, 3, MPI_INT, got, 1, MPI_INT, root, MPI_COMM_WORLD);
        for (int from = 0; from < size; from++) CHECK(got[from] == value(from, 5, 5));
    } else {
        sent[0] = value(rank, 5, 5);
        MPI_Gather(sent, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
    }
}

static void from_a_root(int root)
{
    for (int to = 0; to < size; to++)
        for (int at = 0; at < 2; at++) sent[4 * to + 2 * at] = value(root, to, at);
    fill(got, 4);
    MPI_Scatter(sent, 1, gaps, got, 2, MPI_INT, root, MPI_COMM_WORLD);
    CHECK(got[0] == sent[4 * rank] && got[1] == sent[4 * rank + 2] && got[2] == -1);
    for (int to = 0; to < size; to++) {
        wide_counts[to] = counts[to] = to % 3;
        wide_places[to] = places[to] = 3 * (size - 1 - to);
        for (int at = 0; at < 3; at++) sent[places[to] + at] = value(root, to, at);
    }
    fill(got, 4);
    if (rank == root)
        MPI_Scatterv_c(sent, wide_counts, wide_places, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
                       root, MPI_COMM_WORLD);
    else
        MPI_Scatterv(NULL, NULL, NULL, MPI_DATATYPE_NULL, got, counts[rank], MPI_INT, root,
                     MPI_COMM_WORLD);
    for (int at = 0; at < 3 && rank != root; at++)
        CHECK(got[at] == (at < counts[rank] ? value(root, rank, at) : -1));
    MPI_Scatter_c(sent, 0, MPI_INT, rank == root ? MPI_IN_PLACE : got, 0, MPI_INT, root,
                  MPI_COMM_WORLD);
}

static void to_all(void)
{
    sent[0] = value(rank, 0, 0), sent[2] = value(rank, 0, 1);
    fill(got, 4 * size);
    MPI_Allgather(sent, 1, gaps, got, 1, gaps, MPI_COMM_WORLD);
    for (int at = 0; at < 4 * size; at++)
        CHECK(got[at] == (at % 2 ? -1 : value(at / 4, 0, at % 4 / 2)));
    fill(got, size);
    got[rank] = rank;
    MPI_Allgather_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, 1, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++) CHECK(got[from] == from);
    MPI_Allgather(sent, 0, MPI_INT, got, 0, MPI_INT, MPI_COMM_WORLD);

    for (int from = 0; from < size; from++) {
        wide_counts[from] = counts[from] = (from + 1) % 3;
        wide_places[from] = places[from] = 3 * (size - 1 - from);
    }
    for (int at = 0; at < 3; at++) sent[at] = value(rank, 1, at);
    for (int again = 0; again < 2; again++) {
        fill(got, 3 * size);
        if (again)
            memcpy(got + places[rank], sent, counts[rank] * sizeof *sent);
        if (again)
            MPI_Allgatherv(MPI_IN_PLACE, 7, MPI_INT, got, counts, places, MPI_INT, MPI_COMM_WORLD);
        else
            MPI_Allgatherv_c(sent, counts[rank], MPI_INT, got, wide_counts, wide_places, MPI_INT,
                             MPI_COMM_WORLD);
        for (int from = 0; from < size; from++)
            for (int at = 0; at < 3; at++)
                CHECK(got[places[from] + at] == (at < counts[from] ? value(from, 1, at) : -1));
    }
}

static void exchanges(void)
{
    int back[MOST], back_places[MOST];
    MPI_Datatype types[MOST];

    for (int to = 0; to < size; to++)
        for (int at = 0; at < 2; at++) sent[4 * to + 2 * at] = value(rank, to, at);
    fill(got, 2 * size);
    MPI_Alltoall(sent, 1, gaps, got, 2, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++)
        for (int at = 0; at < 2; at++) CHECK(got[2 * from + at] == value(from, rank, at));
    for (int to = 0; to < size; to++) got[to] = value(rank, to, 0);
    MPI_Alltoall_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, 1, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++) CHECK(got[from] == value(from, rank, 0));

    /* Rank r sends (r + s) % 3 to rank s, so both sides of an exchange in place are as long. */
    for (int to = 0; to < size; to++) {
        counts[to] = back[to] = (rank + to) % 3;
        places[to] = 3 * to;
        back_places[to] = 3 * (size - 1 - to);
        types[to] = MPI_INT;
        for (int at = 0; at < 3; at++) sent[3 * to + at] = value(rank, to, at);
    }
    fill(got, 3 * size);
    MPI_Alltoallv(sent, counts, places, MPI_INT, got, back, back_places, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++)
        for (int at = 0; at < 3; at++)
            CHECK(got[back_places[from] + at] == (at < back[from] ? value(from, rank, at) : -1));
    memcpy(got, sent, 3 * size * sizeof *got);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, got, counts, places, MPI_INT,
                  MPI_COMM_WORLD);
    for (int from = 0; from < size; from++)
        for (int at = 0; at < 3; at++)
            CHECK(got[3 * from + at] == (at < back[from] ? value(from, rank, at) : sent[3 * from + at]));

    /* Displacements in bytes, a datatype for each: one with gaps where the number of ints is even. */
    for (int to = 0; to < size; to++) {
        counts[to] = (rank + to) % 3;
        places[to] = 4 * to * (int)sizeof(int);
        if (counts[to] == 2) types[to] = gaps, counts[to] = 1;
        for (int at = 0; at < 4; at++) sent[4 * to + at] = value(rank, to, at);
    }
    fill(got, 4 * size);
    MPI_Alltoallw(sent, counts, places, types, got, counts, places, types, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++)
        for (int at = 0; at < 4; at++) {
            int is_there = types[from] == gaps ? at % 2 == 0 : at < counts[from];
            CHECK(got[4 * from + at] == (is_there ? value(from, rank, at) : -1));
        }
    for (int to = 0; to < size; to++) {
        wide_counts[to] = counts[to];
        wide_places[to] = places[to];
    }
    memcpy(got, sent, 4 * size * sizeof *got);
    MPI_Alltoallw_c(MPI_IN_PLACE, NULL, NULL, NULL, got, wide_counts, wide_places, types,
                    MPI_COMM_WORLD);
    for (int from = 0; from < size; from++)
        for (int at = 0; at < 4; at++) {
            int is_there = types[from] == gaps ? at % 2 == 0 : at < counts[from];
            CHECK(got[4 * from + at] == (is_there ? value(from, rank, at) : value(rank, from, at)));
        }
}

static int sum_of_ranks(int before)
{
    return before * (before - 1) / 2;
}

static void reductions(void)
{
    int mine[4] = {rank, 1, -rank, rank * rank}, all[4 * MOST];

    for (int root = 0; root < size; root++) {
        fill(all, 4);
        MPI_Reduce(mine, all, 2, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        CHECK(rank == root ? all[0] == sum_of_ranks(size) && all[1] == size : all[0] == -1);
        memcpy(all, mine, sizeof mine);
        MPI_Reduce_c(rank == root ? MPI_IN_PLACE : all, rank == root ? all : NULL, 4, MPI_INT, MPI_MIN,
                     root, MPI_COMM_WORLD);
        CHECK(rank == root ? all[0] == 0 && all[2] == 1 - size : all[3] == rank * rank);
        MPI_Reduce(NULL, NULL, 0, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    }
    MPI_Allreduce(mine, all, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all[0] == sum_of_ranks(size) && all[1] == size && all[2] == -sum_of_ranks(size));
    MPI_Scan(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all[0] == sum_of_ranks(rank + 1) && all[1] == rank + 1);
    memcpy(all, mine, sizeof mine);
    MPI_Scan_c(MPI_IN_PLACE, all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(all[0] == rank && all[1] == 1);
    fill(all, 2);
    MPI_Exscan(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(rank == 0 ? all[0] == -1 : all[0] == sum_of_ranks(rank) && all[1] == rank);
    memcpy(all, mine, sizeof mine);
    MPI_Exscan_c(MPI_IN_PLACE, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(rank == 0 || (all[0] == sum_of_ranks(rank) && all[1] == rank));

    for (int at = 0; at < 2 * size; at++) sent[at] = rank + at;
    fill(got, 3);
    MPI_Reduce_scatter_block(sent, got, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(got[0] == sum_of_ranks(size) + 2 * rank * size && got[2] == -1);
    CHECK(got[1] == sum_of_ranks(size) + (2 * rank + 1) * size);
    MPI_Reduce_scatter_block_c(MPI_IN_PLACE, sent, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sent[0] == got[0] && sent[1] == got[1]);

    int length = 0, before = 0;
    for (int to = 0; to < size; to++) {
        wide_counts[to] = counts[to] = to % 3;
        if (to == rank) before = length;
        length += counts[to];
    }
    for (int at = 0; at < length; at++) sent[at] = rank + at;
    fill(got, 3);
    MPI_Reduce_scatter(sent, got, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int at = 0; at < 3; at++)
        CHECK(got[at] == (at < counts[rank] ? sum_of_ranks(size) + (before + at) * size : -1));
    MPI_Reduce_scatter_c(MPI_IN_PLACE, sent, wide_counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int at = 0; at < counts[rank]; at++) CHECK(sent[at] == got[at]);
}

static int class_of(int code)
{
    int class_;
    MPI_Error_class(code, &class_);
    return class_;
}

#define WRONG(call, class) CHECK(class_of(call) == class)

static void mistakes(void)
{
    int one = 1, other = 0;
    MPI_Datatype loose;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(2, MPI_INT, &loose);
    WRONG(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
    WRONG(MPI_Bcast(&one, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT);
    WRONG(MPI_Bcast(&one, 1, MPI_INT, -1, MPI_COMM_WORLD), MPI_ERR_ROOT);
    WRONG(MPI_Bcast(&one, -1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
    WRONG(MPI_Bcast(&one, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    WRONG(MPI_Bcast(&one, 1, loose, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    WRONG(MPI_Bcast(NULL, 1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    WRONG(MPI_Allreduce(&one, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    WRONG(MPI_Allreduce(&one, &other, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP);
    WRONG(MPI_Allreduce(&one, &other, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD), MPI_ERR_OP);
    WRONG(MPI_Allgather(&one, -1, MPI_INT, &other, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_COUNT);
    WRONG(MPI_Allreduce(&one, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    MPI_Type_free(&loose);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Type_vector(2, 1, 2, MPI_INT, &run);
    MPI_Type_create_resized(run, 0, 4 * sizeof(int), &gaps);
    MPI_Type_free(&run);
    MPI_Type_contiguous(2, MPI_INT, &run);
    MPI_Type_commit(&gaps);
    MPI_Type_commit(&run);
    for (int again = 0; again < 3; again++) {
        CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
        broadcasts();
        for (int root = 0; root < size; root++) {
            to_a_root(root);
            from_a_root(root);
        }
        to_all();
        exchanges();
        reductions();
    }
    mistakes();
    MPI_Type_free(&gaps);
    MPI_Type_free(&run);
    return end("collective");
}
