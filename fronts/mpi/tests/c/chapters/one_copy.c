/* Long messages that the kernel may copy in one piece, by the hint of a communicator: in all modes, with and without
 * their receive, between buffers whose data lie apart. */
#include "check.h"

enum { LONG = 70001, LONGER = 3000001, MOST = 2 * LONGER };

static unsigned char out[MOST], in[MOST];

static void fill(int number)
{
    for (int place = 0; place < MOST; place++) {
        out[place] = (unsigned char)(place * 31 + (place >> 8) + rank + number);
        in[place] = 0xee;
    }
}

/* The byte that a rank has put at a place. */
static unsigned char of(int place, int whose, int number)
{
    return (unsigned char)(place * 31 + (place >> 8) + whose + number);
}

static void check_whole(int length, int whose, int number)
{
    for (int place = 0; place < length; place++) CHECK(in[place] == of(place, whose, number));
    for (int place = length; place < MOST; place++) CHECK(in[place] == 0xee);
}

static MPI_Comm with_hint(const char *value)
{
    MPI_Info info;
    MPI_Comm comm;
    MPI_Info_create(&info);
    MPI_Info_set(info, "landeck_one_copy", value);
    CHECK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm) == MPI_SUCCESS);
    MPI_Info_free(&info);
    return comm;
}

/* A receive is posted before its message is sent, or afterwards. */
static void modes(MPI_Comm comm, int from, int to, int length)
{
    MPI_Request receive, send;
    MPI_Status status;
    int count;
    for (int mode = 0; mode < 5; mode++) {
        fill(mode);
        int is_expected = mode < 3;
        if (is_expected) MPI_Irecv(in, MOST, MPI_BYTE, from, mode, comm, &receive);
        meet(comm);
        switch (mode) {
        case 0: MPI_Irsend(out, length, MPI_BYTE, to, mode, comm, &send); break;
        case 1: MPI_Issend(out, length, MPI_BYTE, to, mode, comm, &send); break;
        case 3: MPI_Issend(out, length, MPI_BYTE, to, mode, comm, &send); break;
        default: MPI_Isend(out, length, MPI_BYTE, to, mode, comm, &send); break;
        }
        meet(comm);
        if (!is_expected) MPI_Irecv(in, MOST, MPI_BYTE, from, mode, comm, &receive);
        MPI_Wait(&receive, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(count == length && status.MPI_SOURCE == from && status.MPI_TAG == mode);
        check_whole(length, from, mode);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
}

static void repeated(MPI_Comm comm, int from, int to, int length)
{
    MPI_Request both[2];
    MPI_Recv_init(in, MOST, MPI_BYTE, from, 1, comm, &both[0]);
    MPI_Send_init(out, length, MPI_BYTE, to, 1, comm, &both[1]);
    for (int number = 0; number < 3; number++) {
        fill(number);
        MPI_Startall(2, both);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        check_whole(length, from, number);
        meet(comm);
    }
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
}

static void held(MPI_Comm comm, int from, int to, int length)
{
    MPI_Message message;
    MPI_Request send;
    MPI_Status status;
    int count;
    fill(7);
    MPI_Isend(out, length, MPI_BYTE, to, 2, comm, &send);
    MPI_Mprobe(from, 2, comm, &message, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == length);
    MPI_Mrecv(in, MOST, MPI_BYTE, &message, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    check_whole(length, from, 7);
}

/* Some libraries cancel no send. Nor is one cancelled that has left for another host already. */
static void cancelled(MPI_Comm comm, int from, int to, int length)
{
    MPI_Request send;
    MPI_Status status;
    int flag = 0, is_coming, hosts = host_ranks().hosts;
    if (!is_ours() || to == rank) return;
    fill(3);
    MPI_Isend(out, length, MPI_BYTE, to, 3, comm, &send);
    MPI_Cancel(&send);
    MPI_Wait(&send, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag || hosts > 1);
    flag = !flag;
    MPI_Sendrecv(&flag, 1, MPI_INT, to, 4, &is_coming, 1, MPI_INT, from, 4, comm, MPI_STATUS_IGNORE);
    if (is_coming) {
        MPI_Recv(in, MOST, MPI_BYTE, from, 3, comm, MPI_STATUS_IGNORE);
        check_whole(length, from, 3);
    }
    meet(comm);
    MPI_Iprobe(MPI_ANY_SOURCE, 3, comm, &flag, &status);
    CHECK(!flag);
    meet(comm);
}

/* Blocks of one length become blocks of another one; what lies between stays. */
static void apart(MPI_Comm comm, int from, int to, int out_block, int in_block, int length)
{
    MPI_Datatype sent, received;
    int number = out_block;
    MPI_Type_vector(length / out_block, out_block, out_block + out_block / 2, MPI_BYTE, &sent);
    MPI_Type_vector(length / in_block, in_block, 2 * in_block, MPI_BYTE, &received);
    MPI_Type_commit(&sent);
    MPI_Type_commit(&received);
    fill(number);
    MPI_Sendrecv(out + 1, 1, sent, to, 4, in, 1, received, from, 4, comm, MPI_STATUS_IGNORE);
    for (int place = 0; place < 2 * length; place++) {
        int packed = place / (2 * in_block) * in_block + place % (2 * in_block);
        int origin = 1 + packed / out_block * (out_block + out_block / 2) + packed % out_block;
        int is_between = place % (2 * in_block) >= in_block;
        CHECK(in[place] == (is_between ? 0xee : of(origin, from, number)));
    }
    MPI_Type_free(&sent);
    MPI_Type_free(&received);
}

/* With the hint, a send to a neighbour is complete when its message is received; without it such a length needs no
 * receive. */
static void the_hint_decides(int from, int to)
{
    static const struct {
        const char *value;
        int waits;
    } hints[] = {{"4K", 1}, {"never", 0}, {"1M", 0}, {"nonsense", 0}};
    if (!is_ours() || size == 1 || host_ranks().hosts > 1) return;
    const char *asked = getenv("LANDECK_ONE_COPY"); /* decides where a hint means nothing */
    if (asked && strcmp(asked, "never")) return;
    for (int index = 0; index < 4; index++) {
        MPI_Comm comm = with_hint(hints[index].value);
        MPI_Request send;
        int flag;
        MPI_Isend(out, LONG, MPI_BYTE, to, 5, comm, &send);
        for (int look = 0; look < 100; look++) MPI_Test(&send, &flag, MPI_STATUS_IGNORE);
        CHECK(flag == !hints[index].waits);
        meet(MPI_COMM_WORLD);
        MPI_Recv(in, MOST, MPI_BYTE, from, 5, comm, MPI_STATUS_IGNORE);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Comm_free(&comm);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int from = (rank + size - 1) % size, to = (rank + 1) % size;
    MPI_Comm comm = with_hint("4K");
    for (int length = LONG; length <= LONGER; length += LONGER - LONG) {
        modes(comm, from, to, length);
        repeated(comm, from, to, length);
        held(comm, from, to, length);
        cancelled(comm, from, to, length);
    }
    apart(comm, from, to, 5000, 3000, 1500000);
    apart(comm, from, to, 3000, 5000, 1500000);
    apart(comm, from, to, 1024, 1500, 768000);
    apart(comm, from, to, 4000, 8, 400000);
    apart(comm, from, to, 8, 4000, 400000);
    MPI_Comm_free(&comm);
    the_hint_decides(from, to);
    if (rank == 0) printf("one_copy: %d processes agree\n", size);
    MPI_Finalize();
    return 0;
}
