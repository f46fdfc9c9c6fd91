/* The program's own operation throws out of MPI_Allreduce; the library still works, to the end. */
#include "check.h"
#include "leaves.h"

#include <stdexcept>

static void refuse(void *, void *, int *, MPI_Datatype *) { throw std::runtime_error("refused"); }

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Op operation;
    MPI_Op_create(refuse, 1, &operation);
    int caught = 0;
    for (int round = 0; round < 10; round++) {
        int mine = rank, all = 0;
        try {
            MPI_Allreduce(&mine, &all, 1, MPI_INT, operation, MPI_COMM_WORLD);
        } catch (const std::runtime_error &error) {
            CHECK(strcmp(error.what(), "refused") == 0);
            caught++;
        }
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(all == size * (size - 1) / 2);
    }
    CHECK(caught == (size == 1 ? 0 : 10));
    MPI_Op_free(&operation);
    return end("throw");
}
