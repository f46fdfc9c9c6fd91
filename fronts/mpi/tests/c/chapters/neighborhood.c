/* Operations between neighbours: each in its three forms, with both widths of counts, in grids and
   graphs. What is sent says who sends it and which of its blocks it is. */
#include "check.h"

enum form { BLOCKING, STARTED, KEPT };

/* Calls a function in one of its forms. */
#define CALL(name, suffix, ...)                                                            \
    CHECK((form == BLOCKING  ? MPI_Neighbor_##name##suffix(__VA_ARGS__, t->comm)           \
           : form == STARTED ? MPI_Ineighbor_##name##suffix(__VA_ARGS__, t->comm, &request) \
                             : MPI_Neighbor_##name##_init##suffix(                         \
                                   __VA_ARGS__, t->comm, MPI_INFO_NULL, &request)) == MPI_SUCCESS)

#define MOST 16

struct topology {
    MPI_Comm comm;
    int in, out;
    int sources[MOST];
    /* Which of its blocks the source sends here. */
    int blocks[MOST];
};

static int value(int from, int block, int item)
{
    return 1000 * from + 10 * block + item;
}

/* Ends a call in its form; begins again what is kept, once. */
static int goes_on(enum form form, MPI_Request *request, int time)
{
    MPI_Status status;
    int done = 0;
    if (form == BLOCKING) return time == 0;
    if (form == STARTED) {
        if (time == 0) CHECK(MPI_Wait(request, &status) == MPI_SUCCESS);
        CHECK(*request == MPI_REQUEST_NULL);
        return time == 0;
    }
    if (time == 2) {
        CHECK(MPI_Request_free(request) == MPI_SUCCESS && *request == MPI_REQUEST_NULL);
        return 0;
    }
    CHECK(MPI_Start(request) == MPI_SUCCESS);
    if (time == 0) CHECK(MPI_Wait(request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    while (time == 1 && !done) CHECK(MPI_Test(request, &done, &status) == MPI_SUCCESS);
    CHECK(*request != MPI_REQUEST_NULL);
    return 1;
}

static void clear(int *items, int count)
{
    for (int i = 0; i < count; i++) items[i] = -1;
}

/* Two items of each, received as one of two. */
static void allgather(struct topology *t, enum form form, int wide)
{
    int out[2] = {value(rank, 0, 0), value(rank, 0, 1)}, in[2 * MOST];
    MPI_Request request;
    MPI_Datatype two;
    MPI_Type_contiguous(2, MPI_INT, &two);
    MPI_Type_commit(&two);
    clear(in, 2 * MOST);
    if (wide) CALL(allgather, _c, out, 2, MPI_INT, in, 1, two);
    else CALL(allgather, , out, 2, MPI_INT, in, 1, two);
    MPI_Type_free(&two);
    for (int time = 0; goes_on(form, &request, time); time++) {
        for (int i = 0; i < MOST; i++) {
            int is_there = i < t->in && t->sources[i] != MPI_PROC_NULL;
            for (int item = 0; item < 2; item++)
                CHECK(in[2 * i + item] == (is_there ? value(t->sources[i], 0, item) : -1));
        }
        clear(in, 2 * MOST);
    }
}

/* The blocks in the opposite order, with room between them. */
static void allgatherv(struct topology *t, enum form form, int wide)
{
    int out[2] = {value(rank, 0, 0), value(rank, 0, 1)}, in[3 * MOST], counts[MOST], displs[MOST];
    MPI_Count wide_counts[MOST];
    MPI_Aint wide_displs[MOST];
    MPI_Request request;
    for (int i = 0; i < t->in; i++) {
        wide_counts[i] = counts[i] = 2;
        wide_displs[i] = displs[i] = 3 * (t->in - 1 - i);
    }
    clear(in, 3 * MOST);
    if (wide) CALL(allgatherv, _c, out, 2, MPI_INT, in, wide_counts, wide_displs, MPI_INT);
    else CALL(allgatherv, , out, 2, MPI_INT, in, counts, displs, MPI_INT);
    for (int time = 0; goes_on(form, &request, time); time++) {
        for (int i = 0; i < t->in; i++) {
            int is_there = t->sources[i] != MPI_PROC_NULL;
            for (int item = 0; item < 2; item++)
                CHECK(in[displs[i] + item] == (is_there ? value(t->sources[i], 0, item) : -1));
            CHECK(in[displs[i] + 2] == -1);
        }
        clear(in, 3 * MOST);
    }
}

static void alltoall(struct topology *t, enum form form, int wide)
{
    int out[2 * MOST], in[2 * MOST];
    MPI_Request request;
    for (int i = 0; i < t->out; i++)
        for (int item = 0; item < 2; item++) out[2 * i + item] = value(rank, i, item);
    clear(in, 2 * MOST);
    if (wide) CALL(alltoall, _c, out, 2, MPI_INT, in, 2, MPI_INT);
    else CALL(alltoall, , out, 2, MPI_INT, in, 2, MPI_INT);
    for (int time = 0; goes_on(form, &request, time); time++) {
        for (int i = 0; i < MOST; i++) {
            int is_there = i < t->in && t->sources[i] != MPI_PROC_NULL;
            for (int item = 0; item < 2; item++)
                CHECK(in[2 * i + item] ==
                      (is_there ? value(t->sources[i], t->blocks[i], item) : -1));
        }
        clear(in, 2 * MOST);
    }
}

/* Block k has k % 3 items: some have none. */
static void alltoallv(struct topology *t, enum form form, int wide)
{
    int out[3 * MOST], in[3 * MOST], counts[2][MOST], displs[MOST];
    MPI_Count wide_counts[2][MOST];
    MPI_Aint wide_displs[MOST];
    MPI_Request request;
    for (int i = 0; i < MOST; i++) {
        wide_displs[i] = displs[i] = 3 * i;
        wide_counts[0][i] = counts[0][i] = i % 3;
        wide_counts[1][i] = counts[1][i] = i < t->in ? t->blocks[i] % 3 : 0;
        for (int item = 0; item < 3; item++) out[3 * i + item] = value(rank, i, item);
    }
    clear(in, 3 * MOST);
    if (wide)
        CALL(alltoallv, _c, out, wide_counts[0], wide_displs, MPI_INT, in, wide_counts[1],
             wide_displs, MPI_INT);
    else CALL(alltoallv, , out, counts[0], displs, MPI_INT, in, counts[1], displs, MPI_INT);
    for (int time = 0; goes_on(form, &request, time); time++) {
        for (int i = 0; i < t->in; i++) {
            int count = t->sources[i] == MPI_PROC_NULL ? 0 : t->blocks[i] % 3;
            for (int item = 0; item < 3; item++)
                CHECK(in[3 * i + item] ==
                      (item < count ? value(t->sources[i], t->blocks[i], item) : -1));
        }
        clear(in, 3 * MOST);
    }
}

/* Odd blocks are received with gaps, and at addresses instead of in a buffer. */
static void alltoallw(struct topology *t, enum form form, int wide)
{
    int out[2 * MOST], in[4 * MOST], counts[2][MOST];
    MPI_Count wide_counts[2][MOST];
    MPI_Aint from[MOST], to[MOST];
    MPI_Datatype types[2][MOST], apart;
    MPI_Request request;
    MPI_Type_vector(2, 1, 2, MPI_INT, &apart);
    MPI_Type_commit(&apart);
    for (int i = 0; i < MOST; i++) {
        int is_apart = i < t->in && t->blocks[i] % 2;
        wide_counts[0][i] = counts[0][i] = 2;
        wide_counts[1][i] = counts[1][i] = is_apart ? 1 : 2;
        types[0][i] = MPI_INT;
        types[1][i] = is_apart ? apart : MPI_INT;
        from[i] = (MPI_Aint)(2 * sizeof(int)) * i;
        MPI_Get_address(in + 4 * i, &to[i]);
        for (int item = 0; item < 2; item++) out[2 * i + item] = value(rank, i, item);
    }
    clear(in, 4 * MOST);
    if (wide)
        CALL(alltoallw, _c, out, wide_counts[0], from, types[0], MPI_BOTTOM, wide_counts[1], to,
             types[1]);
    else CALL(alltoallw, , out, counts[0], from, types[0], MPI_BOTTOM, counts[1], to, types[1]);
    MPI_Type_free(&apart);
    for (int time = 0; goes_on(form, &request, time); time++) {
        for (int i = 0; i < t->in; i++) {
            int is_there = t->sources[i] != MPI_PROC_NULL, step = t->blocks[i] % 2 ? 2 : 1;
            for (int item = 0; item < 4; item++) {
                int is_item = is_there && item % step == 0 && item / step < 2;
                CHECK(in[4 * i + item] ==
                      (is_item ? value(t->sources[i], t->blocks[i], item / step) : -1));
            }
        }
        clear(in, 4 * MOST);
    }
}

static void all(struct topology *t)
{
    for (int form = BLOCKING; form <= KEPT; form++)
        for (int wide = 0; wide < 2; wide++) {
            allgather(t, form, wide);
            allgatherv(t, form, wide);
            alltoall(t, form, wide);
            alltoallv(t, form, wide);
            alltoallw(t, form, wide);
        }
}

/* What goes down in a dimension comes from above, also where both are the same process. */
static void grid(int ndims, const int *dims, const int *periods)
{
    struct topology t;
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, 0, &t.comm) == MPI_SUCCESS);
    t.in = t.out = 2 * ndims;
    for (int i = 0; i < ndims; i++)
        MPI_Cart_shift(t.comm, i, 1, &t.sources[2 * i], &t.sources[2 * i + 1]);
    for (int i = 0; i < t.in; i++) t.blocks[i] = i ^ 1;
    all(&t);
    MPI_Comm copy, given = t.comm;
    CHECK(MPI_Comm_dup(t.comm, &copy) == MPI_SUCCESS);
    t.comm = copy;
    all(&t);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&given);
}

static void grids(void)
{
    int ring[1] = {size}, comes_round[1] = {1}, ends[1] = {0};
    int plane[2] = {0, 0}, half[2] = {0, 1}, tube[3] = {1, size, 1}, two[3] = {0, 1, 0};
    grid(1, ring, comes_round);
    grid(1, ring, ends);
    MPI_Dims_create(size, 2, plane);
    grid(2, plane, half);
    grid(3, tube, two);
}

/* A ring in which each knows the next first. */
static void graph(void)
{
    struct topology t = {.in = 2, .out = 2, .blocks = {1, 0}};
    int index[64], edges[128];
    if (size < 3) return;
    for (int i = 0; i < size; i++) {
        index[i] = 2 * (i + 1);
        edges[2 * i] = (i + 1) % size;
        edges[2 * i + 1] = (i + size - 1) % size;
    }
    CHECK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &t.comm) == MPI_SUCCESS);
    memcpy(t.sources, edges + 2 * rank, 2 * sizeof(int));
    all(&t);
    MPI_Comm_free(&t.comm);
}

/* Everybody tells the next; all but the last one tell rank 0 too, which hears of it in the opposite
   order of ranks. */
static void distributed(void)
{
    int destinations[2] = {(rank + 1) % size, 0};
    struct topology t = {.in = 1, .out = rank == size - 1 ? 1 : 2};
    t.sources[0] = (rank + size - 1) % size;
    t.blocks[0] = 0;
    for (int i = size - 2; i >= 0 && rank == 0; i--) {
        t.sources[t.in] = i;
        t.blocks[t.in++] = 1;
    }
    CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, t.in, t.sources, MPI_UNWEIGHTED, t.out,
                                         destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                         &t.comm) == MPI_SUCCESS);
    all(&t);
    MPI_Comm_free(&t.comm);
}

/* Nobody has neighbours: nothing is looked at. */
static void lonely(void)
{
    struct topology t = {.in = 0, .out = 0};
    CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL,
                                         MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0,
                                         &t.comm) == MPI_SUCCESS);
    all(&t);
    MPI_Comm_free(&t.comm);
}

/* Several at once, of long data, ended in any order. */
static void together(void)
{
    enum { LENGTH = 100000, COUNT = 4 };
    int dims[1] = {size}, periods[1] = {1}, index, done = 0;
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Comm ring;
    MPI_Request requests[COUNT];
    int *out = malloc(sizeof(int) * COUNT * 2 * LENGTH), *in = malloc(sizeof(int) * COUNT * 2 * LENGTH);
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring) == MPI_SUCCESS);
    for (int i = 0; i < COUNT * 2 * LENGTH; i++) {
        out[i] = value(rank, i / LENGTH, i % 10);
        in[i] = -1;
    }
    for (int i = 0; i < COUNT; i++)
        CHECK(MPI_Ineighbor_alltoall(out + i * 2 * LENGTH, LENGTH, MPI_INT, in + i * 2 * LENGTH,
                                     LENGTH, MPI_INT, ring, &requests[i]) == MPI_SUCCESS);
    CHECK(MPI_Waitany(COUNT, requests, &index, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(index >= 0 && index < COUNT && requests[index] == MPI_REQUEST_NULL);
    while (!done) CHECK(MPI_Testall(COUNT, requests, &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < COUNT * 2 * LENGTH; i++) {
        int block = i / LENGTH, from = block % 2 ? next : before;
        CHECK(in[i] == value(from, block ^ 1, i % 10));
    }
    MPI_Comm_free(&ring);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    grids();
    graph();
    distributed();
    lonely();
    together();
    return end("neighborhood");
}
