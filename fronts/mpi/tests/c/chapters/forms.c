/* Every collective operation in its six forms (done, started, kept, each with short and with large counts): in one
 * group, there also in place, and between two groups; with every root, items without and with gaps, operations of the
 * library and of the program. */
#include "check.h"

enum { FORMS = 6, MOST = 16, ROOM = 8 * MOST * MOST, STARTS = 2 };

#define OK(call) CHECK((call) == MPI_SUCCESS)
#define UNPACK(...) __VA_ARGS__

/* One operation in the form that is in turn; arrays of counts are short or large ones. */
#define DO(Name, name, short_ones, large_ones)                                             \
    do {                                                                                   \
        switch (form) {                                                                    \
        case 0: OK(MPI_##Name(UNPACK short_ones, comm)); break;                            \
        case 1: OK(MPI_##Name##_c(UNPACK large_ones, comm)); break;                        \
        case 2: OK(MPI_I##name(UNPACK short_ones, comm, &request)); break;                 \
        case 3: OK(MPI_I##name##_c(UNPACK large_ones, comm, &request)); break;             \
        case 4: OK(MPI_##Name##_init(UNPACK short_ones, comm, MPI_INFO_NULL, &request)); break; \
        default: OK(MPI_##Name##_init_c(UNPACK large_ones, comm, MPI_INFO_NULL, &request)); \
        }                                                                                  \
        finish();                                                                          \
    } while (0)
#define SAME(Name, name, ...) DO(Name, name, (__VA_ARGS__), (__VA_ARGS__))

static int form, is_in_place;
static MPI_Comm comm;
static MPI_Request request;
/* This process in its group; the group that it hears from and tells, which may be its own. */
static int own_rank, own_size, far_size, is_low, is_between;

/* Items have a number each, at every `step`th place. */
static MPI_Datatype type;
static int step;

static int in[ROOM], out[ROOM];
static int counts[MOST], places[MOST], far_counts[MOST], far_places[MOST];
static MPI_Count large_counts[MOST], large_far_counts[MOST];
static MPI_Aint large_places[MOST], large_far_places[MOST];
static MPI_Datatype types[MOST];

/* Ends what goes on. What is kept is started more than once, unless its input is gone then. */
static void finish(void)
{
    if (form < 2) return;
    for (int again = 0; again < (form < 4 ? 0 : is_in_place ? 1 : STARTS); again++) {
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(request != MPI_REQUEST_NULL);
    }
    if (form < 4) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    else OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
}

/* What a process tells another one, or all. */
static int value(int low, int from, int to, int at)
{
    return ((low * MOST + from) * MOST + to) * 16 + at;
}

static int heard(int from, int to, int at)
{
    return value(is_between ? !is_low : is_low, from, to, at);
}

static void clear(void)
{
    for (int at = 0; at < ROOM; at++) in[at] = out[at] = -1;
}

/* Nothing was written between items. */
static void check_gaps(void)
{
    for (int at = 0; step > 1 && at < ROOM; at++) CHECK(at % step == 0 || out[at] == -1);
}

static void widen(void)
{
    for (int at = 0; at < MOST; at++) {
        large_counts[at] = counts[at], large_places[at] = places[at];
        large_far_counts[at] = far_counts[at], large_far_places[at] = far_places[at];
    }
}

/* The root as this process names it. */
static int named(int in_low, int root)
{
    if (!is_between || in_low != is_low) return root;
    return own_rank == root ? MPI_ROOT : MPI_PROC_NULL;
}

/* Every process of both groups is the root once, in an order that both have. */
static int turns(void) { return is_between ? own_size + far_size : own_size; }

static int root_of_turn(int turn, int *in_low)
{
    int low_size = is_low ? own_size : far_size;
    *in_low = is_between ? turn < low_size : is_low;
    return is_between && !*in_low ? turn - low_size : turn;
}

static void from_root(int in_low, int root)
{
    int name = named(in_low, root), is_root = is_between ? name == MPI_ROOT : own_rank == root;
    int hears = !is_between || name >= 0;

    clear();
    for (int at = 0; is_root && at < 3; at++) out[at * step] = value(is_low, root, 0, at);
    SAME(Bcast, bcast, out, 3, type, name);
    for (int at = 0; at < 3; at++)
        CHECK(out[at * step] == (is_root || hears ? value(in_low, root, 0, at) : -1));
    check_gaps();

    clear();
    for (int at = 0; is_root && at < 2 * far_size; at++)
        in[at * step] = value(is_low, root, at / 2, at % 2);
    if (is_in_place && is_root) {
        SAME(Scatter, scatter, in, 2, type, MPI_IN_PLACE, 2, type, name);
    } else {
        SAME(Scatter, scatter, in, 2, type, out, 2, type, name);
        for (int at = 0; at < 2; at++)
            CHECK(out[at * step] == (hears ? value(in_low, root, own_rank, at) : -1));
    }
    check_gaps();

    clear();
    for (int to = 0; to < far_size; to++) {
        counts[to] = to % 3, places[to] = 3 * (far_size - 1 - to);
        for (int at = 0; at < counts[to]; at++)
            in[(places[to] + at) * step] = value(is_low, root, to, at);
    }
    widen();
    if (is_in_place && is_root) {
        DO(Scatterv, scatterv, (in, counts, places, type, MPI_IN_PLACE, 0, type, name),
           (in, large_counts, large_places, type, MPI_IN_PLACE, 0, type, name));
    } else {
        DO(Scatterv, scatterv, (in, counts, places, type, out, own_rank % 3, type, name),
           (in, large_counts, large_places, type, out, own_rank % 3, type, name));
        for (int at = 0; at < 3; at++)
            CHECK(out[at * step] ==
                  (hears && at < own_rank % 3 ? value(in_low, root, own_rank, at) : -1));
    }
    check_gaps();
}

static void to_root(int in_low, int root)
{
    int name = named(in_low, root), is_root = is_between ? name == MPI_ROOT : own_rank == root;
    int own_place = is_in_place && is_root;

    clear();
    for (int at = 0; at < 2; at++) {
        in[at * step] = value(is_low, own_rank, 0, at);
        if (own_place) out[(2 * own_rank + at) * step] = in[at * step];
    }
    SAME(Gather, gather, own_place ? MPI_IN_PLACE : in, 2, type, out, 2, type, name);
    for (int at = 0; at < 2 * far_size; at++)
        CHECK(out[at * step] == (is_root ? heard(at / 2, 0, at % 2) : -1));
    check_gaps();

    clear();
    for (int from = 0; from < far_size; from++)
        counts[from] = from % 3, places[from] = 3 * (far_size - 1 - from);
    widen();
    for (int at = 0; at < own_rank % 3; at++) {
        in[at * step] = value(is_low, own_rank, 0, at);
        if (own_place) out[(places[own_rank] + at) * step] = in[at * step];
    }
    DO(Gatherv, gatherv,
       (own_place ? MPI_IN_PLACE : in, own_rank % 3, type, out, counts, places, type, name),
       (own_place ? MPI_IN_PLACE : in, own_rank % 3, type, out, large_counts, large_places, type, name));
    for (int from = 0; from < far_size; from++)
        for (int at = 0; at < 3; at++)
            CHECK(out[(places[from] + at) * step] ==
                  (is_root && at < counts[from] ? heard(from, 0, at) : -1));
    check_gaps();
}

static void to_all(void)
{
    clear();
    for (int at = 0; at < 2; at++) {
        in[at * step] = value(is_low, own_rank, 0, at);
        if (is_in_place) out[(2 * own_rank + at) * step] = in[at * step];
    }
    SAME(Allgather, allgather, is_in_place ? MPI_IN_PLACE : in, 2, type, out, 2, type);
    for (int at = 0; at < 2 * far_size; at++) CHECK(out[at * step] == heard(at / 2, 0, at % 2));
    check_gaps();

    clear();
    for (int from = 0; from < far_size; from++)
        counts[from] = from % 3, places[from] = 3 * (far_size - 1 - from);
    widen();
    for (int at = 0; at < own_rank % 3; at++) {
        in[at * step] = value(is_low, own_rank, 0, at);
        if (is_in_place) out[(places[own_rank] + at) * step] = in[at * step];
    }
    DO(Allgatherv, allgatherv,
       (is_in_place ? MPI_IN_PLACE : in, own_rank % 3, type, out, counts, places, type),
       (is_in_place ? MPI_IN_PLACE : in, own_rank % 3, type, out, large_counts, large_places, type));
    for (int from = 0; from < far_size; from++)
        for (int at = 0; at < 3; at++)
            CHECK(out[(places[from] + at) * step] == (at < counts[from] ? heard(from, 0, at) : -1));
    check_gaps();
}

/* How many items go from one process to another: the same either way, as in place it must be. */
static int between_two(int one, int other)
{
    return (one + other) % 3;
}

static void each_to_each(void)
{
    int *from_here = is_in_place ? out : in;
    clear();
    for (int at = 0; at < 2 * far_size; at++)
        from_here[at * step] = value(is_low, own_rank, at / 2, at % 2);
    SAME(Alltoall, alltoall, is_in_place ? MPI_IN_PLACE : in, 2, type, out, 2, type);
    for (int at = 0; at < 2 * far_size; at++) CHECK(out[at * step] == heard(at / 2, own_rank, at % 2));
    check_gaps();

    for (int bytes = 0; bytes < 2; bytes++) {
        int unit = bytes ? step * (int)sizeof(int) : 1;
        clear();
        for (int to = 0; to < far_size; to++) {
            counts[to] = far_counts[to] = between_two(own_rank, to), types[to] = type;
            far_places[to] = 3 * (far_size - 1 - to) * unit;
            places[to] = is_in_place ? far_places[to] : 3 * to * unit;
            for (int at = 0; at < counts[to]; at++)
                from_here[(places[to] / unit + at) * step] = value(is_low, own_rank, to, at);
        }
        widen();
        const void *sent = is_in_place ? MPI_IN_PLACE : in;
        if (bytes)
            DO(Alltoallw, alltoallw, (sent, counts, places, types, out, far_counts, far_places, types),
               (sent, large_counts, large_places, types, out, large_far_counts, large_far_places, types));
        else
            DO(Alltoallv, alltoallv, (sent, counts, places, type, out, far_counts, far_places, type),
               (sent, large_counts, large_places, type, out, large_far_counts, large_far_places, type));
        for (int from = 0; from < far_size; from++)
            for (int at = 0; at < 3; at++)
                CHECK(out[(far_places[from] / unit + at) * step] ==
                      (at < counts[from] ? heard(from, own_rank, at) : -1));
        check_gaps();
    }
}

/* A map x -> a x + b: one follows another, and the order matters. */
typedef struct {
    int a, b;
} Map;

enum { MODULUS = 10007 };

static Map follow(Map first, Map second)
{
    return (Map){second.a * first.a % MODULUS, (second.a * first.b + second.b) % MODULUS};
}

static void compose(void *left, void *right, int *length, MPI_Datatype *of)
{
    (void)of;
    for (int at = 0; at < *length; at++) ((Map *)right)[at] = follow(((Map *)left)[at], ((Map *)right)[at]);
}

static void compose_large(void *left, void *right, MPI_Count *length, MPI_Datatype *of)
{
    int narrow = (int)*length;
    compose(left, right, &narrow, of);
}

static Map map_of(int low, int of, int at)
{
    return (Map){of + 2 + at % 5 + low, 3 * of + at + 1};
}

/* That of the first `members` processes which this one hears from; of none nothing. */
static Map folded(int members, int at, int sums)
{
    int low = is_between ? !is_low : is_low;
    Map all = map_of(low, 0, at);
    for (int of = 1; of < members; of++) {
        Map next = map_of(low, of, at);
        all = sums ? (Map){all.a + next.a, all.b + next.b} : follow(all, next);
    }
    return members ? all : (Map){-1, -1};
}

static void put_maps(Map *where, int items)
{
    for (int at = 0; at < items; at++) where[at] = map_of(is_low, own_rank, at);
}

static void check_maps(const Map *where, int items, int members, int from, int sums)
{
    for (int at = 0; at < items; at++) {
        Map right = folded(members, from + at, sums);
        CHECK(where[at].a == right.a && where[at].b == right.b);
    }
}

/* `width` numbers of `item` are a map. */
static void combined(MPI_Datatype item, int width, MPI_Op op, int sums)
{
    enum { ITEMS = 5 };
    Map *mine = (Map *)in, *result = (Map *)out;
    const void *sent = is_in_place ? MPI_IN_PLACE : in;
    int count = ITEMS * width, total = own_size * far_size, before = 0;

    for (int turn = 0; turn < turns(); turn++) {
        int in_low, root = root_of_turn(turn, &in_low);
        int name = named(in_low, root), is_root = is_between ? name == MPI_ROOT : own_rank == root;
        clear();
        put_maps(is_in_place && is_root ? result : mine, ITEMS);
        SAME(Reduce, reduce, is_root ? sent : in, is_root ? out : NULL, count, item, op, name);
        check_maps(result, ITEMS, is_root ? far_size : 0, 0, sums);
    }
    clear();
    put_maps(is_in_place ? result : mine, ITEMS);
    SAME(Allreduce, allreduce, sent, out, count, item, op);
    check_maps(result, ITEMS, far_size, 0, sums);

    clear();
    put_maps(is_in_place ? result : mine, total);
    SAME(Reduce_scatter_block, reduce_scatter_block, sent, out, far_size * width, item, op);
    check_maps(result, far_size, far_size, own_rank * far_size, sums);

    clear();
    for (int of = 0; of < own_size; of++) {
        counts[of] = (of ? far_size - 1 : far_size + own_size - 1) * width;
        if (of < own_rank) before += counts[of] / width;
    }
    widen();
    put_maps(is_in_place ? result : mine, total);
    DO(Reduce_scatter, reduce_scatter, (sent, out, counts, item, op), (sent, out, large_counts, item, op));
    check_maps(result, counts[own_rank] / width, far_size, before, sums);

    if (is_between) return;
    clear();
    put_maps(is_in_place ? result : mine, ITEMS);
    SAME(Scan, scan, sent, out, count, item, op);
    check_maps(result, ITEMS, own_rank + 1, 0, sums);
    clear();
    put_maps(is_in_place ? result : mine, ITEMS);
    SAME(Exscan, exscan, sent, out, count, item, op);
    if (own_rank) check_maps(result, ITEMS, own_rank, 0, sums);
}

static void all_operations(void)
{
    MPI_Datatype spread, map;
    MPI_Op narrow, wide;

    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
    MPI_Type_commit(&spread);
    MPI_Type_contiguous(2, MPI_INT, &map);
    MPI_Type_commit(&map);
    MPI_Op_create(compose, 0, &narrow);
    MPI_Op_create_c(compose_large, 0, &wide);
    for (is_in_place = 0; is_in_place <= !is_between; is_in_place++)
        for (form = 0; form < FORMS; form++) {
            for (step = 1; step <= 2; step++) {
                type = step == 1 ? MPI_INT : spread;
                for (int turn = 0; turn < turns(); turn++) {
                    int in_low, root = root_of_turn(turn, &in_low);
                    from_root(in_low, root);
                    to_root(in_low, root);
                }
                to_all();
                each_to_each();
            }
            combined(MPI_INT, 2, MPI_SUM, 1);
            combined(map, 1, narrow, 0);
            combined(map, 1, wide, 0);
        }
    MPI_Op_free(&narrow);
    MPI_Op_free(&wide);
    MPI_Type_free(&map);
    MPI_Type_free(&spread);
}

int main(int argc, char **argv)
{
    MPI_Comm own;

    begin(&argc, &argv);
    CHECK(size <= MOST);
    comm = MPI_COMM_WORLD, own_rank = rank, own_size = far_size = size;
    all_operations();
    if (size > 1) {
        int low_size = (size + 2) / 3;
        is_between = 1, is_low = rank < low_size;
        MPI_Comm_split(MPI_COMM_WORLD, is_low, rank, &own);
        MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, is_low ? low_size : 0, 3, &comm);
        MPI_Comm_rank(comm, &own_rank);
        MPI_Comm_size(comm, &own_size);
        MPI_Comm_remote_size(comm, &far_size);
        all_operations();
        MPI_Comm_free(&comm);
        MPI_Comm_free(&own);
    }
    return end("forms");
}
