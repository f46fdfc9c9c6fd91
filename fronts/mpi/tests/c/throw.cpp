/* The program's own operation throws out of MPI_Allreduce; the library must still work. */
#include "check.h"

#include <stdexcept>

static void refuse(void *, void *, int *, MPI_Datatype *) { throw std::runtime_error("refused"); }

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Op operation;
    MPI_Op_create(refuse, 1, &operation);
    int mine = rank, all;
    try {
        MPI_Allreduce(&mine, &all, 1, MPI_INT, operation, MPI_COMM_WORLD);
    } catch (const std::runtime_error &error) {
        int sent = 6, token = 5;
        MPI_Request request;
        MPI_Irecv(&token, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
        MPI_Send(&sent, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(token == 6);
        printf("rank %d caught \"%s\" and goes on\n", rank, error.what());
        fflush(stdout);
    }
    /* The others wait for a result that never comes. */
    MPI_Abort(MPI_COMM_WORLD, 43);
}
