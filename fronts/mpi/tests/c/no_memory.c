/* Address space ends: what needs much memory of its own fails with MPI_ERR_NO_MEM, at members that have none and at
 * those that need them. Nobody hangs, and the same call works as soon as there is memory again. */
#include "check.h"
#include "address_space.h"

enum { BYTES = 4 << 20, COUNT = BYTES / sizeof(int), LEFT = 2 << 20 };
enum form {
    PACK_EXTERNAL, UNPACK_EXTERNAL, ALLREDUCE, ALLREDUCE_IN_PLACE, ALLREDUCE_OWN, REDUCE, REDUCE_OWN, SCAN,
    SCAN_OWN, EXSCAN, REDUCE_SCATTER, REDUCE_SCATTER_IN_PLACE, REDUCE_SCATTER_BLOCK, ALLTOALL_IN_PLACE, ALLTOALLV_IN_PLACE,
    IALLREDUCE, IALLREDUCE_OWN, IREDUCE, ISCAN, IREDUCE_SCATTER, IALLTOALL_IN_PLACE, ALLREDUCE_KEPT, ALLREDUCE_ACROSS, SENDRECV_REPLACE, FORMS
};

static int *in, *out, counts[8], places[8];
static MPI_Datatype whole;
static MPI_Op own;
/* Between the even ranks and the odd ones. */
static MPI_Comm across;

static void add(void *from, void *to, int *length, MPI_Datatype *type)
{
    (void)type;
    for (int at = 0; at < *length; at++) ((int *)to)[at] += ((int *)from)[at];
}

static int fill(enum form form)
{
    for (int at = 0; at < COUNT; at++) in[at] = at % 1000 + rank, out[at] = form == ALLREDUCE_IN_PLACE ? in[at] : -1;
    if (form == ALLTOALL_IN_PLACE || form == ALLTOALLV_IN_PLACE || form == IALLTOALL_IN_PLACE)
        for (int at = 0; at < COUNT; at++) out[at] = in[at];
    return COUNT / size;
}

static int call(enum form form)
{
    int each = COUNT / size, code = MPI_SUCCESS;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Aint position = 0;
    MPI_Comm comm = MPI_COMM_WORLD;
    switch (form) {
    case PACK_EXTERNAL: return MPI_Pack_external("external32", in, 1, whole, out, BYTES, &position);
    case UNPACK_EXTERNAL: return MPI_Unpack_external("external32", in, BYTES, &position, out, 1, whole);
    case ALLREDUCE: return MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, comm);
    case ALLREDUCE_IN_PLACE: return MPI_Allreduce(MPI_IN_PLACE, out, COUNT, MPI_INT, MPI_SUM, comm);
    case ALLREDUCE_OWN: return MPI_Allreduce(in, out, COUNT, MPI_INT, own, comm);
    case REDUCE: return MPI_Reduce(in, out, COUNT, MPI_INT, MPI_SUM, size - 1, comm);
    case REDUCE_OWN: return MPI_Reduce(in, out, COUNT, MPI_INT, own, size - 1, comm);
    case SCAN: return MPI_Scan(in, out, COUNT, MPI_INT, MPI_SUM, comm);
    case SCAN_OWN: return MPI_Scan(in, out, COUNT, MPI_INT, own, comm);
    case EXSCAN: return MPI_Exscan(in, out, COUNT, MPI_INT, MPI_SUM, comm);
    case REDUCE_SCATTER: return MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm);
    case REDUCE_SCATTER_IN_PLACE: return MPI_Reduce_scatter(MPI_IN_PLACE, in, counts, MPI_INT, MPI_SUM, comm);
    case REDUCE_SCATTER_BLOCK: return MPI_Reduce_scatter_block(in, out, each, MPI_INT, MPI_SUM, comm);
    case ALLTOALL_IN_PLACE: return MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, out, each, MPI_INT, comm);
    case ALLTOALLV_IN_PLACE:
        return MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, out, counts, places, MPI_INT, comm);
    case IALLREDUCE: code = MPI_Iallreduce(in, out, COUNT, MPI_INT, MPI_SUM, comm, &request); break;
    case IALLREDUCE_OWN: code = MPI_Iallreduce(in, out, COUNT, MPI_INT, own, comm, &request); break;
    case IREDUCE: code = MPI_Ireduce(in, out, COUNT, MPI_INT, MPI_SUM, size - 1, comm, &request); break;
    case ISCAN: code = MPI_Iscan(in, out, COUNT, MPI_INT, MPI_SUM, comm, &request); break;
    case IREDUCE_SCATTER: code = MPI_Ireduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm, &request); break;
    case IALLTOALL_IN_PLACE:
        code = MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_INT, out, each, MPI_INT, comm, &request);
        break;
    case ALLREDUCE_ACROSS: return MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, across);
    case ALLREDUCE_KEPT:
        code = MPI_Allreduce_init(in, out, COUNT, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
        if (code == MPI_SUCCESS) code = MPI_Start(&request);
        if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
        return code;
    default:
        return MPI_Sendrecv_replace(in, COUNT, MPI_INT, (rank + 1) % size, 7, (rank + size - 1) % size, 7, comm,
                                    MPI_STATUS_IGNORE);
    }
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

/* Whether so many ints are so many times what rank 0 gives from some place on, plus so much. */
static int are(const int *result, int count, int first, int times, int plus, int step)
{
    for (int at = 0; at < count; at += step)
        if (result[at] != times * ((first + at) % 1000) + plus) return 0;
    return 1;
}

static int is_right(enum form form)
{
    int each = COUNT / size, all = size * (size - 1) / 2, before = rank * (rank - 1) / 2;
    switch (form) {
    case PACK_EXTERNAL: case UNPACK_EXTERNAL: return out[COUNT - 1] != -1;
    case REDUCE: case REDUCE_OWN: case IREDUCE: return rank < size - 1 || are(out, COUNT, 0, size, all, 1);
    case SCAN: case SCAN_OWN: case ISCAN: return are(out, COUNT, 0, rank + 1, before + rank, 1);
    case EXSCAN: return rank == 0 || are(out, COUNT, 0, rank, before, 1);
    case REDUCE_SCATTER: case REDUCE_SCATTER_BLOCK: case IREDUCE_SCATTER:
        return are(out, each, rank * each, size, all, 1);
    case REDUCE_SCATTER_IN_PLACE: return are(in, each, rank * each, size, all, 1);
    case ALLTOALL_IN_PLACE: case ALLTOALLV_IN_PLACE: case IALLTOALL_IN_PLACE:
        for (int from = 0; from < size; from++)
            if (!are(out + from * each, each, rank * each, 1, from, 1)) return 0;
        return 1;
    case ALLREDUCE_ACROSS: {
        int others = 0, sum = 0;
        for (int other = !(rank % 2); other < size; other += 2) others++, sum += other;
        return are(out, COUNT, 0, others, sum, 1);
    }
    case SENDRECV_REPLACE: return are(in, COUNT, 0, 1, (rank + size - 1) % size, 1);
    default: return are(out, COUNT, 0, size, all, 1);
    }
}

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static void check(int code, int may_fail, enum form form, int shorts)
{
    char text[MPI_MAX_ERROR_STRING] = "success";
    int length;
    if (code == MPI_SUCCESS ? is_right(form) : may_fail && class_of(code) == MPI_ERR_NO_MEM) return;
    if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
    fprintf(stderr, "rank %d: form %d, members without memory %x: %s\n", rank, form, shorts, text);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

/* Counts for which there is no memory anywhere: nothing of the program's is touched. */
static void ask_for_the_impossible(void)
{
    const MPI_Count count = (MPI_Count)1 << 50;
    MPI_Count position = 0;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Datatype item;
    MPI_Request request = MPI_REQUEST_NULL;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    CHECK(MPI_Type_contiguous_c(count, MPI_INT, &item) == MPI_SUCCESS && MPI_Type_commit(&item) == MPI_SUCCESS);
    MPI_Count size_bytes = 8 * count;
    CHECK(class_of(MPI_Pack_external_c("external32", in, 1, item, out, size_bytes, &position)) == MPI_ERR_NO_MEM);
    CHECK(class_of(MPI_Unpack_external_c("external32", in, size_bytes, &position, out, 1, item)) == MPI_ERR_NO_MEM);
    CHECK(class_of(MPI_Sendrecv_replace_c(in, count, MPI_INT, to, 7, from, 7, comm, MPI_STATUS_IGNORE)) == MPI_ERR_NO_MEM);
    CHECK(class_of(MPI_Alltoall_c(MPI_IN_PLACE, 0, MPI_INT, in, count, MPI_INT, comm)) == MPI_ERR_NO_MEM);
    CHECK(class_of(MPI_Reduce_scatter_block_c(MPI_IN_PLACE, in, count, MPI_INT, MPI_SUM, comm)) == MPI_ERR_NO_MEM);
    int code = MPI_Ialltoall_c(MPI_IN_PLACE, 0, MPI_INT, in, count, MPI_INT, comm, &request);
    CHECK(class_of(code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code) == MPI_ERR_NO_MEM);
    code = MPI_Iallreduce_c(in, out, count, MPI_INT, own, comm, &request);
    CHECK(class_of(code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code) == MPI_ERR_NO_MEM);
    CHECK(class_of(MPI_Allreduce_init_c(in, out, count, MPI_INT, own, comm, MPI_INFO_NULL, &request)) == MPI_ERR_NO_MEM);
    MPI_Type_free(&item);
    meet(comm);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    watch_space();
    in = malloc(BYTES);
    out = malloc(BYTES);
    MPI_Type_contiguous(COUNT, MPI_INT, &whole);
    MPI_Type_commit(&whole);
    MPI_Op_create(add, 1, &own);
    if (size > 1) {
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !(rank % 2), 1, &across);
        MPI_Comm_free(&half);
        MPI_Comm_set_errhandler(across, MPI_ERRORS_RETURN);
    }
    for (int member = 0; member < size; member++)
        counts[member] = COUNT / size, places[member] = member * counts[member];
    int failed = 0, all_failed;
    ask_for_the_impossible();
    for (enum form form = 0; form < FORMS; form++) {
        if (form == ALLREDUCE_ACROSS && size < 2) continue;
        /* All members, the first, the last. */
        const int shorts[] = {(1 << size) - 1, 1, 1 << (size - 1)};
        /* A message has nobody but its receiver. */
        for (int which = 0; which < (size > 1 && form != SENDRECV_REPLACE ? 3 : 1); which++) {
            int is_short = shorts[which] >> rank & 1;
            fill(form);
            meet(MPI_COMM_WORLD);
            if (is_short) leave(LEFT);
            int code = call(form);
            check(code, 1, form, shorts[which]);
            failed += code != MPI_SUCCESS;
            meet(MPI_COMM_WORLD);
            leave_all();
        }
        fill(form);
        check(call(form), 0, form, 0);
    }
    MPI_Allreduce(&failed, &all_failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all_failed > 0);
    MPI_Type_free(&whole);
    MPI_Op_free(&own);
    if (size > 1) MPI_Comm_free(&across);
    free(in);
    free(out);
    return end("no_memory");
}
