/* The program's own operation jumps out of MPI_Allreduce; the library must still work. */
#include "check.h"

#include <setjmp.h>

static jmp_buf outside;

static void jump(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)length, (void)type;
    longjmp(outside, 1);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Op operation;
    MPI_Op_create(jump, 1, &operation);
    int mine = rank, all;
    if (setjmp(outside) == 0) {
        MPI_Allreduce(&mine, &all, 1, MPI_INT, operation, MPI_COMM_WORLD);
        CHECK(size == 1);
        return MPI_Finalize();
    }
    int token = 5;
    MPI_Request request;
    MPI_Irecv(&token, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
    int sent = 6;
    MPI_Send(&sent, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(token == 6);
    printf("rank %d jumped out and goes on\n", rank);
    fflush(stdout);
    /* The others wait for a result that never comes. */
    MPI_Abort(MPI_COMM_WORLD, 42);
}
