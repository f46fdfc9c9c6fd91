/* A child made by fork is no member of the job: its calls are refused, and its parent goes on. */
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
        MPI_Send(&value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == MPI_ERR_OTHER);
    return end("fork");
}
