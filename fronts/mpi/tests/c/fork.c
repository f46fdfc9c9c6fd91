/* A child made by fork is no member of the job: its calls are refused, and its parent goes on. Memory
   it gets all the same, of its own. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int value = 1;
        char *memory;
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        if (MPI_Alloc_mem(100, MPI_INFO_NULL, &memory) != MPI_SUCCESS) _exit(77);
        MPI_Send(&value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == MPI_ERR_OTHER);
    return end("fork");
}
