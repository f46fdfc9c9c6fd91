/* Who is there, and where; whether the clock goes on; both names of a function. */
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(rank >= 0 && rank < size);
    int alone_rank = -1, alone_size = -1;
    PMPI_Comm_rank(MPI_COMM_SELF, &alone_rank);
    PMPI_Comm_size(MPI_COMM_SELF, &alone_size);
    CHECK(alone_rank == 0 && alone_size == 1);
    char host[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    CHECK(MPI_Get_processor_name(host, &length) == MPI_SUCCESS && length > 0);
    double before = MPI_Wtime(), after = PMPI_Wtime();
    CHECK(before > 0 && after >= before);
    printf("rank %d of %d\n", rank, size);
    return end("hello");
}
