/* Every operation between neighbours in its six forms (done, started, kept, each with short and with large counts), on
 * a graph with edges to both sides, to itself, and twice to the same process where there are few. */
#include "check.h"

enum { FORMS = 6, EDGES = 3, ROOM = 64 };

#define OK(call) CHECK((call) == MPI_SUCCESS)
#define UNPACK(...) __VA_ARGS__

/* One operation in the form that is in turn; arrays of counts are short or large ones. */
#define DO(name, short_ones, large_ones)                                                   \
    do {                                                                                   \
        clear();                                                                           \
        switch (form) {                                                                    \
        case 0: OK(MPI_Neighbor_##name(UNPACK short_ones, comm)); break;                   \
        case 1: OK(MPI_Neighbor_##name##_c(UNPACK large_ones, comm)); break;               \
        case 2: OK(MPI_Ineighbor_##name(UNPACK short_ones, comm, &request)); break;        \
        case 3: OK(MPI_Ineighbor_##name##_c(UNPACK large_ones, comm, &request)); break;    \
        case 4:                                                                            \
            OK(MPI_Neighbor_##name##_init(UNPACK short_ones, comm, MPI_INFO_NULL, &request)); \
            break;                                                                         \
        default:                                                                           \
            OK(MPI_Neighbor_##name##_init_c(UNPACK large_ones, comm, MPI_INFO_NULL, &request)); \
        }                                                                                  \
        finish();                                                                          \
    } while (0)
#define SAME(name, ...) DO(name, (__VA_ARGS__), (__VA_ARGS__))

static int form;
static MPI_Comm comm;
static MPI_Request request;
static int sources[EDGES];
static int in[ROOM], out[ROOM];

/* Item `at` of what a process tells along its edge; that edge is the same one at both ends. */
static int value(int from, int edge, int at) { return (from * EDGES + edge) * 8 + at + 1; }

static void clear(void)
{
    for (int at = 0; at < ROOM; at++) out[at] = -1;
}

/* Ends what goes on. What is kept is started more than once. */
static void finish(void)
{
    if (form < 2) return;
    for (int again = 0; form >= 4 && again < 2; again++) {
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    if (form < 4) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    else OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
}

/* So many items came along each edge, where they were to be; nothing else was written. */
static void check(const int *counts, const int *places, int is_same_to_all)
{
    int expected[ROOM];
    for (int at = 0; at < ROOM; at++) expected[at] = -1;
    for (int edge = 0; edge < EDGES; edge++)
        for (int at = 0; at < counts[edge]; at++)
            expected[places[edge] + at] = value(sources[edge], is_same_to_all ? 0 : edge, at);
    for (int at = 0; at < ROOM; at++) CHECK(out[at] == expected[at]);
}

static void all_operations(void)
{
    /* How many items go along an edge, and where they stand at either end. */
    int counts[EDGES] = {2, 0, 3}, sent[EDGES] = {4, 9, 0}, received[EDGES] = {10, 20, 1};
    int equal[EDGES] = {2, 2, 2}, behind[EDGES] = {0, 2, 4};
    MPI_Count large_counts[EDGES], large_equal[EDGES];
    MPI_Aint large_sent[EDGES], large_received[EDGES], sent_bytes[EDGES], received_bytes[EDGES];
    MPI_Datatype types[EDGES];

    for (int edge = 0; edge < EDGES; edge++) {
        large_counts[edge] = counts[edge], large_equal[edge] = equal[edge], types[edge] = MPI_INT;
        large_sent[edge] = sent[edge], large_received[edge] = received[edge];
        sent_bytes[edge] = sent[edge] * (MPI_Aint)sizeof(int);
        received_bytes[edge] = received[edge] * (MPI_Aint)sizeof(int);
    }
    for (int at = 0; at < 2; at++) in[at] = value(rank, 0, at);
    SAME(allgather, in, 2, MPI_INT, out, 2, MPI_INT);
    check(equal, behind, 1);
    DO(allgatherv, (in, 2, MPI_INT, out, equal, received, MPI_INT),
       (in, 2, MPI_INT, out, large_equal, large_received, MPI_INT));
    check(equal, received, 1);

    for (int at = 0; at < 2 * EDGES; at++) in[at] = value(rank, at / 2, at % 2);
    SAME(alltoall, in, 2, MPI_INT, out, 2, MPI_INT);
    check(equal, behind, 0);

    for (int edge = 0; edge < EDGES; edge++)
        for (int at = 0; at < counts[edge]; at++) in[sent[edge] + at] = value(rank, edge, at);
    DO(alltoallv, (in, counts, sent, MPI_INT, out, counts, received, MPI_INT),
       (in, large_counts, large_sent, MPI_INT, out, large_counts, large_received, MPI_INT));
    check(counts, received, 0);
    DO(alltoallw, (in, counts, sent_bytes, types, out, counts, received_bytes, types),
       (in, large_counts, sent_bytes, types, out, large_counts, received_bytes, types));
    check(counts, received, 0);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    /* What goes along an edge of some number comes along the edge of that number. */
    int above = (rank + 1) % size, below = (rank + size - 1) % size;
    int destinations[EDGES] = {below, above, rank};
    sources[0] = above, sources[1] = below, sources[2] = rank;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, EDGES, sources, MPI_UNWEIGHTED, EDGES, destinations,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    for (form = 0; form < FORMS; form++) all_operations();
    MPI_Comm_free(&comm);
    return end("neighborhood_forms");
}
