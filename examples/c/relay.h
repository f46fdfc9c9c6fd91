/* A broadcast along a hypercube whose messages route themselves.
 *
 * Each message carries a string of bits: the dimensions that its receiver still has to serve. Whoever has the message
 * sends a copy along each of them, with the bits that are left. So no receiver needs a plan, or to know the root. A cube
 * may be incomplete: a neighbour that does not exist is left out, and so are those behind it, which do not exist either.
 * From "Network-Specific Performance Enhancements for PVM" (G. Davies, N. Matloff, 1997). */
#ifndef RELAY_H
#define RELAY_H

#include <mpi.h>
#include <string.h>

enum { RELAY_TAG = 7, RELAY_BYTES = 64 };

/* What travels: the node of the cube that it is for, the bits, and the content. */
typedef struct {
    unsigned node, to_serve;
    char content[RELAY_BYTES];
} relayed;

/* Brings `bytes` (at most RELAY_BYTES) from the root to everybody. Returns the number of messages that this process has
 * sent. The root is node 0 of the cube, and the ranks behind it are the next nodes. */
static inline int relay(void *content, int bytes, int root, MPI_Comm comm)
{
    int rank, size, sent = 0;
    relayed message = {0, 0, {0}};

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank == root) {
        for (unsigned bit = 1; bit < (unsigned)size; bit <<= 1) message.to_serve |= bit;
        memcpy(message.content, content, (size_t)bytes);
    } else {
        MPI_Recv(&message, sizeof message, MPI_BYTE, MPI_ANY_SOURCE, RELAY_TAG, comm, MPI_STATUS_IGNORE);
        memcpy(content, message.content, (size_t)bytes);
    }
    for (unsigned bit = 1, node = message.node; message.to_serve; bit <<= 1) {
        if (!(message.to_serve & bit)) continue;
        message.to_serve &= ~bit;
        message.node = node | bit;
        if (message.node >= (unsigned)size) continue;
        MPI_Send(&message, sizeof message, MPI_BYTE, (int)((message.node + (unsigned)root) % (unsigned)size), RELAY_TAG, comm);
        sent++;
    }
    return sent;
}

#endif
