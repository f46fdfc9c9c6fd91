/* MPI over Landeck: the part of the MPI 5.0 standard ABI that this library has.
 *
 * Handles, constants and types have the values of the ABI, so a program built with this header runs
 * on every library of the standard ABI, and the other way round. Names that are not here are not in
 * the library yet.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef LANDECK_MPI_H
#define LANDECK_MPI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Versions */
#define MPI_VERSION 5
#define MPI_SUBVERSION 0
#define MPI_ABI_VERSION 1
#define MPI_ABI_SUBVERSION 0

/* Types */
typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Op *MPI_Op;
typedef struct MPI_ABI_Request *MPI_Request;

typedef struct MPI_Status {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;

/* Combines: inoutvec[i] = invec[i] op inoutvec[i] */
typedef void(MPI_User_function)(void *invec, void *inoutvec, int *len, MPI_Datatype *datatype);

/* Communicators */
#define MPI_COMM_NULL ((MPI_Comm)0x00000100)
#define MPI_COMM_WORLD ((MPI_Comm)0x00000101)
#define MPI_COMM_SELF ((MPI_Comm)0x00000102)

/* Requests */
#define MPI_REQUEST_NULL ((MPI_Request)0x00000180)

/* Operations */
#define MPI_OP_NULL ((MPI_Op)0x00000020)
#define MPI_SUM ((MPI_Op)0x00000021)
#define MPI_MIN ((MPI_Op)0x00000022)
#define MPI_MAX ((MPI_Op)0x00000023)
#define MPI_PROD ((MPI_Op)0x00000024)
#define MPI_BAND ((MPI_Op)0x00000028)
#define MPI_BOR ((MPI_Op)0x00000029)
#define MPI_BXOR ((MPI_Op)0x0000002a)
#define MPI_LAND ((MPI_Op)0x00000030)
#define MPI_LOR ((MPI_Op)0x00000031)
#define MPI_LXOR ((MPI_Op)0x00000032)

/* Datatypes */
#define MPI_DATATYPE_NULL ((MPI_Datatype)0x00000200)
#define MPI_AINT ((MPI_Datatype)0x00000201)
#define MPI_COUNT ((MPI_Datatype)0x00000202)
#define MPI_OFFSET ((MPI_Datatype)0x00000203)
#define MPI_SHORT ((MPI_Datatype)0x00000208)
#define MPI_INT ((MPI_Datatype)0x00000209)
#define MPI_LONG ((MPI_Datatype)0x0000020a)
#define MPI_LONG_LONG ((MPI_Datatype)0x0000020b)
#define MPI_LONG_LONG_INT MPI_LONG_LONG
#define MPI_UNSIGNED_SHORT ((MPI_Datatype)0x0000020c)
#define MPI_UNSIGNED ((MPI_Datatype)0x0000020d)
#define MPI_UNSIGNED_LONG ((MPI_Datatype)0x0000020e)
#define MPI_UNSIGNED_LONG_LONG ((MPI_Datatype)0x0000020f)
#define MPI_FLOAT ((MPI_Datatype)0x00000210)
#define MPI_DOUBLE ((MPI_Datatype)0x00000214)
#define MPI_C_BOOL ((MPI_Datatype)0x00000238)
#define MPI_INT8_T ((MPI_Datatype)0x00000240)
#define MPI_UINT8_T ((MPI_Datatype)0x00000241)
#define MPI_CHAR ((MPI_Datatype)0x00000243)
#define MPI_SIGNED_CHAR ((MPI_Datatype)0x00000244)
#define MPI_UNSIGNED_CHAR ((MPI_Datatype)0x00000245)
#define MPI_BYTE ((MPI_Datatype)0x00000247)
#define MPI_INT16_T ((MPI_Datatype)0x00000248)
#define MPI_UINT16_T ((MPI_Datatype)0x00000249)
#define MPI_INT32_T ((MPI_Datatype)0x00000250)
#define MPI_UINT32_T ((MPI_Datatype)0x00000251)
#define MPI_INT64_T ((MPI_Datatype)0x00000258)
#define MPI_UINT64_T ((MPI_Datatype)0x00000259)

/* Addresses with a meaning */
#define MPI_BOTTOM ((void *)0)
#define MPI_IN_PLACE ((void *)1)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)

/* Ranks and tags with a meaning */
#define MPI_ANY_SOURCE (-1)
#define MPI_ANY_TAG (-2)
#define MPI_PROC_NULL (-3)
#define MPI_UNDEFINED (-32766)

/* Thread levels */
#define MPI_THREAD_SINGLE 0
#define MPI_THREAD_FUNNELED 1024
#define MPI_THREAD_SERIALIZED 2048
#define MPI_THREAD_MULTIPLE 4096

/* Error classes */
#define MPI_SUCCESS 0
#define MPI_ERR_BUFFER 1
#define MPI_ERR_COUNT 2
#define MPI_ERR_TYPE 3
#define MPI_ERR_TAG 4
#define MPI_ERR_COMM 5
#define MPI_ERR_RANK 6
#define MPI_ERR_REQUEST 7
#define MPI_ERR_OP 10
#define MPI_ERR_ARG 13
#define MPI_ERR_TRUNCATE 15
#define MPI_ERR_OTHER 16
#define MPI_ERR_INTERN 17
#define MPI_ERR_PENDING 18
#define MPI_ERR_IN_STATUS 19
#define MPI_ERR_NO_MEM 39
#define MPI_ERR_PROC_ABORTED 58

/* Functions; each is also there as PMPI_, for tools that take the place of the first name */
#define LANDECK_MPI_FUNCTION(type, name, arguments) \
    type MPI_##name arguments; \
    type PMPI_##name arguments;

LANDECK_MPI_FUNCTION(int, Init, (int *argc, char ***argv))
LANDECK_MPI_FUNCTION(int, Init_thread, (int *argc, char ***argv, int required, int *provided))
LANDECK_MPI_FUNCTION(int, Finalize, (void))
LANDECK_MPI_FUNCTION(int, Abort, (MPI_Comm comm, int errorcode))
LANDECK_MPI_FUNCTION(double, Wtime, (void))
LANDECK_MPI_FUNCTION(int, Comm_rank, (MPI_Comm comm, int *rank))
LANDECK_MPI_FUNCTION(int, Comm_size, (MPI_Comm comm, int *size))
LANDECK_MPI_FUNCTION(int, Send, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag,
                                 MPI_Comm comm))
LANDECK_MPI_FUNCTION(int, Recv, (void *buf, int count, MPI_Datatype datatype, int source, int tag,
                                 MPI_Comm comm, MPI_Status *status))
LANDECK_MPI_FUNCTION(int, Isend, (const void *buf, int count, MPI_Datatype datatype, int dest,
                                  int tag, MPI_Comm comm, MPI_Request *request))
LANDECK_MPI_FUNCTION(int, Irecv, (void *buf, int count, MPI_Datatype datatype, int source, int tag,
                                  MPI_Comm comm, MPI_Request *request))
LANDECK_MPI_FUNCTION(int, Wait, (MPI_Request *request, MPI_Status *status))
LANDECK_MPI_FUNCTION(int, Waitall, (int count, MPI_Request array_of_requests[],
                                    MPI_Status *array_of_statuses))
LANDECK_MPI_FUNCTION(int, Allreduce, (const void *sendbuf, void *recvbuf, int count,
                                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm))
LANDECK_MPI_FUNCTION(int, Op_create, (MPI_User_function *user_fn, int commute, MPI_Op *op))
LANDECK_MPI_FUNCTION(int, Op_free, (MPI_Op *op))

#undef LANDECK_MPI_FUNCTION

#ifdef __cplusplus
}
#endif

#endif
