/* A program that receives more than its memory has room for. */
#include "check.h"

int main(int argc, char **argv)
{
    enum { COUNT = 100 };
    int values[COUNT] = {0};
    int *place = malloc((COUNT - 1) * sizeof *place);

    begin(&argc, &argv);
    MPI_Sendrecv(values, COUNT, MPI_INT, (rank + 1) % size, 0, place, COUNT, MPI_INT,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(place);
    return end("short_buffer");
}
