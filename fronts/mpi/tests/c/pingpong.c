/* Messages of every size between neighbours, there and back, every byte looked at. */
#include "check.h"

static const size_t lengths[] = {0,    1,    8,     47,    48,     49,     64,      100,
                                 1000, 4096, 10000, 65536, 100000, 300000, 1048576, 4194305};

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int peer = rank ^ 1;
    if (peer >= size) peer = MPI_PROC_NULL;
    unsigned char *out = malloc(1 << 23), *in = malloc(1 << 23);
    CHECK(out && in);
    for (size_t index = 0; index < sizeof lengths / sizeof *lengths; index++) {
        size_t length = lengths[index];
        for (size_t place = 0; place < length; place++) out[place] = pattern(rank, index, place);
        memset(in, 0xee, length + 1);
        MPI_Status status;
        if (rank % 2 == 0) MPI_Send(out, length, MPI_BYTE, peer, index, MPI_COMM_WORLD);
        MPI_Recv(in, length + 1, MPI_BYTE, peer, index, MPI_COMM_WORLD, &status);
        if (rank % 2 == 1) MPI_Send(out, length, MPI_BYTE, peer, index, MPI_COMM_WORLD);
        if (peer == MPI_PROC_NULL) continue;
        CHECK(status.MPI_SOURCE == peer && status.MPI_TAG == (int)index);
        for (size_t place = 0; place < length; place++)
            CHECK(in[place] == pattern(peer, index, place));
        CHECK(in[length] == 0xee);
    }
    free(out);
    free(in);
    return end("pingpong");
}
