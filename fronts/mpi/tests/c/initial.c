/* The error handler that there is at first: argument 1 is its name. */
#include "check.h"

int main(int argc, char **argv)
{
    char name[64];
    int length = sizeof name, flag, code, class;
    const char *wanted = argc > 1 ? argv[1] : "mpi_errors_are_fatal";
    int returns = !strcmp(wanted, "mpi_errors_return");
    MPI_Errhandler handler, expected = returns                               ? MPI_ERRORS_RETURN
                                       : !strcmp(wanted, "mpi_errors_abort") ? MPI_ERRORS_ABORT
                                                                             : MPI_ERRORS_ARE_FATAL;
    MPI_Comm copy;

    if (returns) {
        code = MPI_Comm_size(MPI_COMM_WORLD, &size);
        CHECK(code != MPI_SUCCESS && MPI_Error_class(code, &class) == MPI_SUCCESS);
        CHECK(class == MPI_ERR_OTHER);
    }
    begin(&argc, &argv);
    CHECK(MPI_Info_get_string(MPI_INFO_ENV, "mpi_initial_errhandler", &length, name, &flag) ==
          MPI_SUCCESS);
    CHECK(flag && !strcmp(name, wanted));
    CHECK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler) == MPI_SUCCESS && handler == expected);
    CHECK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &handler) == MPI_SUCCESS && handler == expected);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    CHECK(MPI_Comm_get_errhandler(copy, &handler) == MPI_SUCCESS && handler == expected);
    MPI_Comm_free(&copy);
    if (returns) CHECK(MPI_Send(NULL, 0, MPI_INT, size, 0, MPI_COMM_WORLD) == MPI_ERR_RANK);
    end("initial");
    if (returns && MPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS) return 1;
    return 0;
}
