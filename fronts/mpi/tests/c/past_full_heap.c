/* The shared heap of rank 0 is full of messages that rank 1 receives only when rank 2 has received one that was sent
 * after them, and has said so: each way of sending it gets past them. Needs three ranks. */
#include "check.h"

enum { LONG = 1 << 20, MESSAGES = 100, GO_ON = MESSAGES };

static char text[LONG], came[LONG];

static void send_past(int way, MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    switch (way) {
    case 0: MPI_Send(text, LONG, MPI_CHAR, 2, 0, comm); break;
    case 1: MPI_Ssend(text, LONG, MPI_CHAR, 2, 0, comm); break;
    case 2: MPI_Isend(text, LONG, MPI_CHAR, 2, 0, comm, &request); break;
    case 3: MPI_Issend(text, LONG, MPI_CHAR, 2, 0, comm, &request); break;
    default: MPI_Sendrecv(text, LONG, MPI_CHAR, 2, 0, came, 1, MPI_CHAR, 2, 0, comm, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Request requests[MESSAGES];
    begin(&argc, &argv);
    MPI_Comm apart;
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    for (int way = 0; way < 10; way++) {
        MPI_Comm comm = way % 2 ? apart : MPI_COMM_WORLD;
        if (rank == 0) {
            memset(text, way + 1, LONG);
            for (int number = 0; number < MESSAGES; number++)
                MPI_Isend(text, LONG, MPI_CHAR, 1, number, MPI_COMM_WORLD, &requests[number]);
            send_past(way / 2, comm);
            MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
        } else if (rank == 2) {
            memset(came, 0, LONG);
            if (way / 2 == 4) MPI_Send(text, 1, MPI_CHAR, 0, 0, comm);
            MPI_Recv(came, LONG, MPI_CHAR, 0, 0, comm, MPI_STATUS_IGNORE);
            for (int at = 0; at < LONG; at++) CHECK(came[at] == way + 1);
            MPI_Send(NULL, 0, MPI_CHAR, 1, GO_ON, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Recv(NULL, 0, MPI_CHAR, 2, GO_ON, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            /* In another order than they were sent in. */
            for (int number = MESSAGES - 1; number >= 0; number--) {
                came[LONG - 1] = 0;
                MPI_Recv(came, LONG, MPI_CHAR, 0, number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                CHECK(came[0] == way + 1 && came[LONG - 1] == way + 1);
            }
        }
    }
    MPI_Comm_free(&apart);
    return end("past_full_heap");
}
