/* A program makes objects until there is no memory for more: MPI_ERR_NO_MEM says so, those that it has stay valid, and
 * when it has freed them it makes more. */
#include "check.h"

#include <sys/resource.h>
#include <unistd.h>

enum { LEFT = 8 << 20, MOST = 1 << 20 };
enum kind { RECEIVES, SENDS, KEPT_RECEIVES, TYPES, VECTORS, INFOS, GROUPS, OPERATIONS, COMMUNICATORS, KINDS };

static union {
    MPI_Request request;
    MPI_Datatype type;
    MPI_Info info;
    MPI_Group group;
    MPI_Op op;
    MPI_Comm comm;
} made[MOST];
static char data[1];
static struct rlimit usual;

/* From now on there are so many bytes beside those that the process has. */
static void leave(size_t bytes)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    struct rlimit limit = {pages * sysconf(_SC_PAGESIZE) + bytes, usual.rlim_max};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void nothing(void *in, void *out, int *length, MPI_Datatype *type)
{
    (void)in, (void)out, (void)length, (void)type;
}

static int make(enum kind kind, int at)
{
    MPI_Group all;
    int code;
    switch (kind) {
    case RECEIVES: return MPI_Irecv(data, 1, MPI_CHAR, rank, at, MPI_COMM_WORLD, &made[at].request);
    case SENDS: return MPI_Issend(data, 1, MPI_CHAR, rank, at, MPI_COMM_WORLD, &made[at].request);
    case KEPT_RECEIVES: return MPI_Recv_init(data, 1, MPI_CHAR, rank, at, MPI_COMM_WORLD, &made[at].request);
    case TYPES: return MPI_Type_contiguous(at + 1, MPI_INT, &made[at].type);
    case VECTORS: return MPI_Type_vector(at + 2, 1, 3, MPI_INT, &made[at].type);
    case INFOS: return MPI_Info_create(&made[at].info);
    case GROUPS:
        code = MPI_Comm_group(MPI_COMM_WORLD, &all);
        if (code != MPI_SUCCESS) return code;
        code = MPI_Group_incl(all, 1, &rank, &made[at].group);
        MPI_Group_free(&all);
        return code;
    case OPERATIONS: return MPI_Op_create(nothing, 1, &made[at].op);
    default: return MPI_Comm_dup(MPI_COMM_WORLD, &made[at].comm);
    }
}

static void unmake(enum kind kind, int at)
{
    switch (kind) {
    case RECEIVES: case SENDS:
        CHECK(MPI_Cancel(&made[at].request) == MPI_SUCCESS);
        CHECK(MPI_Wait(&made[at].request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        break;
    case KEPT_RECEIVES: CHECK(MPI_Request_free(&made[at].request) == MPI_SUCCESS); break;
    case TYPES: case VECTORS: CHECK(MPI_Type_free(&made[at].type) == MPI_SUCCESS); break;
    case INFOS: CHECK(MPI_Info_free(&made[at].info) == MPI_SUCCESS); break;
    case GROUPS: CHECK(MPI_Group_free(&made[at].group) == MPI_SUCCESS); break;
    case OPERATIONS: CHECK(MPI_Op_free(&made[at].op) == MPI_SUCCESS); break;
    default: CHECK(MPI_Comm_free(&made[at].comm) == MPI_SUCCESS);
    }
}

/* Rank 0 starts operations that the others come to later. The one that it has no memory for it takes part in all the
 * same: nobody waits for it for ever. */
static void start_ahead(void)
{
    int count = 0, code = MPI_SUCCESS, class;
    if (rank == 0) {
        leave(2 << 20);
        while (count < MOST && (code = MPI_Ibarrier(MPI_COMM_WORLD, &made[count].request)) == MPI_SUCCESS) count++;
        MPI_Error_class(code, &class);
        CHECK(class == MPI_ERR_NO_MEM && count > 20);
        CHECK(setrlimit(RLIMIT_AS, &usual) == 0);
        for (int to = 1; to < size; to++) CHECK(MPI_Send(&count, 1, MPI_INT, to, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(MPI_Waitall(count, &made[0].request, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    } else {
        MPI_Request request;
        CHECK(MPI_Recv(&count, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        for (int at = 0; at <= count; at++) {
            code = MPI_Ibarrier(MPI_COMM_WORLD, &request);
            if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Error_class(code, &class);
            CHECK(code == MPI_SUCCESS || (at == count && class == MPI_ERR_NO_MEM));
        }
    }
    meet(MPI_COMM_WORLD);
}

/* The program has all memory itself: what it has works, and what it makes is made or refused. */
static void go_on_without_any(void)
{
    struct piece { struct piece *next; } *pieces = NULL, *piece;
    int refused = 0, sum, code;
    leave(2 << 20);
    for (size_t bytes = 1 << 20; bytes >= sizeof *piece; bytes /= 4)
        while ((piece = malloc(bytes))) piece->next = pieces, pieces = piece;
    for (int at = 0; at < 1000; at++) {
        char text[MPI_MAX_ERROR_STRING], sent = (char)at, got = 0;
        int length, to = (rank + 1) % size, from = (rank + size - 1) % size;
        CHECK(MPI_Sendrecv(&sent, 1, MPI_CHAR, to, at, &got, 1, MPI_CHAR, from, at, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(got == sent);
        CHECK(MPI_Allreduce(&at, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS && sum == at * size);
        for (enum kind kind = 0; kind < COMMUNICATORS; kind++) {
            if ((code = make(kind, at)) == MPI_SUCCESS) {
                unmake(kind, at);
                continue;
            }
            MPI_Error_string(code, text, &length);
            CHECK(strstr(text, "no memory"));
            refused++;
        }
    }
    CHECK(refused > 0);
    CHECK(setrlimit(RLIMIT_AS, &usual) == 0);
    while ((piece = pieces)) pieces = piece->next, free(piece);
}

/* Datatypes of many blocks, and those that are made of them. */
static void lay_out_much(void)
{
    enum { BLOCKS = 1 << 16 };
    static int lengths[BLOCKS], places[BLOCKS];
    const MPI_Aint none = 0;
    const int one = 1;
    MPI_Datatype blocks, other;
    int class, codes[3];
    for (int at = 0; at < BLOCKS; at++) lengths[at] = 4, places[at] = 8 * at + at * 7 % 3;
    CHECK(MPI_Type_indexed(BLOCKS, lengths, places, MPI_INT, &blocks) == MPI_SUCCESS);
    leave(1 << 20);
    codes[0] = MPI_Type_indexed(BLOCKS, lengths, places, MPI_INT, &other);
    codes[1] = MPI_Type_contiguous(2, blocks, &other);
    codes[2] = MPI_Type_create_struct(1, &one, &none, &blocks, &other);
    for (int at = 0; at < 3; at++) {
        MPI_Error_class(codes[at], &class);
        CHECK(class == MPI_ERR_NO_MEM);
    }
    CHECK(setrlimit(RLIMIT_AS, &usual) == 0);
    CHECK(MPI_Type_contiguous(2, blocks, &other) == MPI_SUCCESS && MPI_Type_free(&other) == MPI_SUCCESS);
    CHECK(MPI_Type_free(&blocks) == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(getrlimit(RLIMIT_AS, &usual) == 0);
    if (size > 1) start_ahead();
    lay_out_much();
    for (enum kind kind = 0; kind < KINDS; kind++) {
        int count = 0, code = MPI_SUCCESS, class;
        meet(MPI_COMM_WORLD);
        leave(LEFT);
        while (count < MOST && (code = make(kind, count)) == MPI_SUCCESS) count++;
        MPI_Error_class(code, &class);
        CHECK(class == MPI_ERR_NO_MEM && count > 100);
        for (int at = 0; at < count; at++) unmake(kind, at);
        meet(MPI_COMM_WORLD);
        for (int at = 0; at < 10; at++) CHECK(make(kind, at) == MPI_SUCCESS);
        for (int at = 0; at < 10; at++) unmake(kind, at);
        CHECK(setrlimit(RLIMIT_AS, &usual) == 0);
    }
    go_on_without_any();
    return end("many_objects");
}
