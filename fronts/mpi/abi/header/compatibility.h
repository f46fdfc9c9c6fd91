/* What programs of earlier standards use. It is made of the functions above and is no part of the
 * ABI; LANDECK_STRICT_ABI leaves it out. */
#ifndef LANDECK_STRICT_ABI

/* C89 has no `inline`. */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define LANDECK_INLINE static inline
#elif defined(__GNUC__)
#define LANDECK_INLINE static __inline__
#else
#define LANDECK_INLINE static
#endif

typedef int MPI_Fint;
typedef MPI_Comm_errhandler_function MPI_Comm_errhandler_fn;
typedef MPI_File_errhandler_function MPI_File_errhandler_fn;
typedef MPI_Session_errhandler_function MPI_Session_errhandler_fn;
typedef MPI_Win_errhandler_function MPI_Win_errhandler_fn;
typedef MPI_Comm_errhandler_function MPI_Handler_function;

#define MPI_F_STATUS_IGNORE ((MPI_Fint *)0)
#define MPI_F_STATUSES_IGNORE ((MPI_Fint *)0)

LANDECK_INLINE MPI_Fint MPI_Comm_c2f(MPI_Comm comm)
{
    return MPI_Comm_toint(comm);
}

LANDECK_INLINE MPI_Comm MPI_Comm_f2c(MPI_Fint comm)
{
    return MPI_Comm_fromint(comm);
}

LANDECK_INLINE MPI_Fint MPI_Errhandler_c2f(MPI_Errhandler errhandler)
{
    return MPI_Errhandler_toint(errhandler);
}

LANDECK_INLINE MPI_Errhandler MPI_Errhandler_f2c(MPI_Fint errhandler)
{
    return MPI_Errhandler_fromint(errhandler);
}

LANDECK_INLINE MPI_Fint MPI_File_c2f(MPI_File file)
{
    return MPI_File_toint(file);
}

LANDECK_INLINE MPI_File MPI_File_f2c(MPI_Fint file)
{
    return MPI_File_fromint(file);
}

LANDECK_INLINE MPI_Fint MPI_Group_c2f(MPI_Group group)
{
    return MPI_Group_toint(group);
}

LANDECK_INLINE MPI_Group MPI_Group_f2c(MPI_Fint group)
{
    return MPI_Group_fromint(group);
}

LANDECK_INLINE MPI_Fint MPI_Info_c2f(MPI_Info info)
{
    return MPI_Info_toint(info);
}

LANDECK_INLINE MPI_Info MPI_Info_f2c(MPI_Fint info)
{
    return MPI_Info_fromint(info);
}

LANDECK_INLINE MPI_Fint MPI_Message_c2f(MPI_Message message)
{
    return MPI_Message_toint(message);
}

LANDECK_INLINE MPI_Message MPI_Message_f2c(MPI_Fint message)
{
    return MPI_Message_fromint(message);
}

LANDECK_INLINE MPI_Fint MPI_Op_c2f(MPI_Op op)
{
    return MPI_Op_toint(op);
}

LANDECK_INLINE MPI_Op MPI_Op_f2c(MPI_Fint op)
{
    return MPI_Op_fromint(op);
}

LANDECK_INLINE MPI_Fint MPI_Request_c2f(MPI_Request request)
{
    return MPI_Request_toint(request);
}

LANDECK_INLINE MPI_Request MPI_Request_f2c(MPI_Fint request)
{
    return MPI_Request_fromint(request);
}

LANDECK_INLINE MPI_Fint MPI_Session_c2f(MPI_Session session)
{
    return MPI_Session_toint(session);
}

LANDECK_INLINE MPI_Session MPI_Session_f2c(MPI_Fint session)
{
    return MPI_Session_fromint(session);
}

LANDECK_INLINE MPI_Fint MPI_Win_c2f(MPI_Win win)
{
    return MPI_Win_toint(win);
}

LANDECK_INLINE MPI_Win MPI_Win_f2c(MPI_Fint win)
{
    return MPI_Win_fromint(win);
}

LANDECK_INLINE MPI_Fint MPI_Type_c2f(MPI_Datatype datatype)
{
    return MPI_Type_toint(datatype);
}

LANDECK_INLINE MPI_Datatype MPI_Type_f2c(MPI_Fint datatype)
{
    return MPI_Type_fromint(datatype);
}

LANDECK_INLINE int MPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
    int place;
    f_status[MPI_F_SOURCE] = c_status->MPI_SOURCE;
    f_status[MPI_F_TAG] = c_status->MPI_TAG;
    f_status[MPI_F_ERROR] = c_status->MPI_ERROR;
    for (place = 0; place < 5; place++) f_status[3 + place] = c_status->MPI_internal[place];
    return MPI_SUCCESS;
}

LANDECK_INLINE int MPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
    int place;
    c_status->MPI_SOURCE = f_status[MPI_F_SOURCE];
    c_status->MPI_TAG = f_status[MPI_F_TAG];
    c_status->MPI_ERROR = f_status[MPI_F_ERROR];
    for (place = 0; place < 5; place++) c_status->MPI_internal[place] = f_status[3 + place];
    return MPI_SUCCESS;
}

/* They have no twins in the library: a tool has nothing to take the place of. */
#define PMPI_Comm_c2f MPI_Comm_c2f
#define PMPI_Comm_f2c MPI_Comm_f2c
#define PMPI_Errhandler_c2f MPI_Errhandler_c2f
#define PMPI_Errhandler_f2c MPI_Errhandler_f2c
#define PMPI_File_c2f MPI_File_c2f
#define PMPI_File_f2c MPI_File_f2c
#define PMPI_Group_c2f MPI_Group_c2f
#define PMPI_Group_f2c MPI_Group_f2c
#define PMPI_Info_c2f MPI_Info_c2f
#define PMPI_Info_f2c MPI_Info_f2c
#define PMPI_Message_c2f MPI_Message_c2f
#define PMPI_Message_f2c MPI_Message_f2c
#define PMPI_Op_c2f MPI_Op_c2f
#define PMPI_Op_f2c MPI_Op_f2c
#define PMPI_Request_c2f MPI_Request_c2f
#define PMPI_Request_f2c MPI_Request_f2c
#define PMPI_Session_c2f MPI_Session_c2f
#define PMPI_Session_f2c MPI_Session_f2c
#define PMPI_Win_c2f MPI_Win_c2f
#define PMPI_Win_f2c MPI_Win_f2c
#define PMPI_Type_c2f MPI_Type_c2f
#define PMPI_Type_f2c MPI_Type_f2c
#define PMPI_Status_c2f MPI_Status_c2f
#define PMPI_Status_f2c MPI_Status_f2c

/* Names that MPI-3.0 removed. */
LANDECK_INLINE int MPI_Address(void *location, MPI_Aint *address)
{
    return MPI_Get_address(location, address);
}

LANDECK_INLINE int MPI_Errhandler_create(MPI_Handler_function *function, MPI_Errhandler *errhandler)
{
    return MPI_Comm_create_errhandler(function, errhandler);
}

LANDECK_INLINE int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    return MPI_Comm_get_errhandler(comm, errhandler);
}

LANDECK_INLINE int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler)
{
    return MPI_Comm_set_errhandler(comm, errhandler);
}

LANDECK_INLINE int MPI_Type_extent(MPI_Datatype datatype, MPI_Aint *extent)
{
    MPI_Aint lower;
    return MPI_Type_get_extent(datatype, &lower, extent);
}

LANDECK_INLINE int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement)
{
    MPI_Aint extent;
    return MPI_Type_get_extent(datatype, displacement, &extent);
}

LANDECK_INLINE int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint *displacement)
{
    MPI_Aint lower, extent;
    int code = MPI_Type_get_extent(datatype, &lower, &extent);
    if (code == MPI_SUCCESS) *displacement = lower + extent;
    return code;
}

LANDECK_INLINE int MPI_Type_hvector(int count, int blocklength, MPI_Aint stride,
                                    MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return MPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}

LANDECK_INLINE int MPI_Type_hindexed(int count, int array_of_blocklengths[],
                                     MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                                     MPI_Datatype *newtype)
{
    return MPI_Type_create_hindexed(count, array_of_blocklengths, array_of_displacements, oldtype,
                                    newtype);
}

LANDECK_INLINE int MPI_Type_struct(int count, int array_of_blocklengths[],
                                   MPI_Aint array_of_displacements[],
                                   MPI_Datatype array_of_types[], MPI_Datatype *newtype)
{
    return MPI_Type_create_struct(count, array_of_blocklengths, array_of_displacements,
                                  array_of_types, newtype);
}

#undef LANDECK_INLINE
#endif
