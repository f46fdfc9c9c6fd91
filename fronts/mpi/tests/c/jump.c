/* The program's own operation jumps out of MPI_Allreduce, of the MPI_Wait that ends MPI_Iallreduce and
 * of MPI_Reduce_local, on one process or on all; the library still
 * works, and nobody waits for who has jumped. */
#include "check.h"
#include "leaves.h"

#include <setjmp.h>

static jmp_buf outside;
static int jumper;

static void jump(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)in, (void)type;
    if (jumper == rank || jumper == size) longjmp(outside, 1);
    for (int index = 0; index < *length; index++) ((int *)inout)[index] = 7;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Op operation;
    MPI_Op_create(jump, 1, &operation);
    volatile int jumped = 0;
    for (volatile int round = 0; round < 10 * (size + 1); round++) {
        jumper = round % (size + 1);
        int mine = rank, all = 0;
        if (setjmp(outside) == 0) {
            MPI_Allreduce(&mine, &all, 1, MPI_INT, operation, MPI_COMM_WORLD);
            CHECK(size == 1 ? all == 0 : all == 7);
        } else {
            jumped++;
        }
        if (setjmp(outside) == 0) {
            MPI_Request started;
            all = 0;
            MPI_Iallreduce(&mine, &all, 1, MPI_INT, operation, MPI_COMM_WORLD, &started);
            MPI_Wait(&started, MPI_STATUS_IGNORE);
            CHECK(size == 1 ? all == 0 : all == 7);
        } else {
            CHECK(jumper == rank || jumper == size);
        }
        if (setjmp(outside) == 0) {
            MPI_Reduce_local(&mine, &all, 1, MPI_INT, operation);
            CHECK(all == 7);
        } else {
            CHECK(jumper == rank || jumper == size);
        }
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(all == size * (size - 1) / 2);
        int token = 5, sent = 6;
        MPI_Request request;
        MPI_Irecv(&token, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &request);
        MPI_Send(&sent, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(token == 6);
    }
    CHECK(jumped == (size == 1 ? 0 : 20));
    MPI_Op_free(&operation);
    return end("jump");
}
