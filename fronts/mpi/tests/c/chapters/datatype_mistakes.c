/* What the functions about datatypes, packing and statuses refuse, and with which class.
 * Only here: the standard leaves most of these classes to the library. */
#include "check.h"

static int class_of(int code)
{
    int class_ = -1;
    MPI_Error_class(code, &class_);
    return class_;
}

#define REFUSED(call, wanted)                                          \
    do {                                                               \
        int code_ = class_of(call);                                    \
        if (code_ != (wanted)) fprintf(stderr, "class %d\n", code_);   \
        CHECK(code_ == (wanted));                                      \
    } while (0)

/* Sizes and offsets beyond 63 bits. */
static void too_large(void)
{
    const MPI_Count huge = (MPI_Count)1 << 62, lengths[] = {1}, offsets[] = {huge};
    MPI_Datatype type;

    REFUSED(MPI_Type_contiguous_c(huge, MPI_INT, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_vector_c(3, 1, huge, MPI_INT, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_create_hvector_c(3, 1, huge, MPI_INT, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_indexed_c(1, lengths, offsets, MPI_INT, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_create_resized_c(MPI_INT, huge, huge, &type), MPI_ERR_ARG);
}

static void dealt_out(void)
{
    const int size_[] = {10}, block[] = {MPI_DISTRIBUTE_BLOCK}, none[] = {MPI_DISTRIBUTE_NONE};
    const int two[] = {2}, four[] = {4}, dflt[] = {MPI_DISTRIBUTE_DFLT_DARG}, minus[] = {-1};
    const int other[] = {99};
    MPI_Datatype type;

#define DARRAY(size, rank, distribs, dargs, psizes)                                               \
    REFUSED(MPI_Type_create_darray(size, rank, 1, size_, distribs, dargs, psizes, MPI_ORDER_C,     \
                                   MPI_INT, &type),                                               \
            MPI_ERR_ARG)
    DARRAY(4, 4, block, dflt, four);
    DARRAY(4, -1, block, dflt, four);
    DARRAY(3, 0, block, dflt, four);
    DARRAY(4, 0, block, two, four);
    DARRAY(4, 0, block, minus, four);
    DARRAY(4, 0, none, dflt, four);
    DARRAY(4, 0, other, dflt, four);
    DARRAY(4, 0, block, dflt, minus);
    DARRAY(4, 0, NULL, dflt, four);
}

static void packing(void)
{
    int values[4] = {0}, position = 0, size_;
    long wide = 1L << 40;
    char packed[8];
    MPI_Aint at = 0;

    REFUSED(MPI_Pack(values, 4, MPI_INT, packed, 8, &position, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
    REFUSED(MPI_Pack(values, -1, MPI_INT, packed, 8, &position, MPI_COMM_WORLD), MPI_ERR_COUNT);
    REFUSED(MPI_Pack(values, 1, MPI_INT, packed, -8, &position, MPI_COMM_WORLD), MPI_ERR_ARG);
    REFUSED(MPI_Pack(values, 1, MPI_INT, NULL, 8, &position, MPI_COMM_WORLD), MPI_ERR_ARG);
    REFUSED(MPI_Pack(NULL, 1, MPI_INT, packed, 8, &position, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    REFUSED(MPI_Pack(values, 1, MPI_INT, packed, 8, NULL, MPI_COMM_WORLD), MPI_ERR_ARG);
    REFUSED(MPI_Pack(values, 1, MPI_INT, packed, 8, &position, MPI_COMM_NULL), MPI_ERR_COMM);
    REFUSED(MPI_Unpack(packed, 8, &position, values, 4, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
    position = 9;
    REFUSED(MPI_Unpack(packed, 8, &position, values, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_ARG);
    CHECK(position == 9);
    REFUSED(MPI_Pack_size(1, MPI_DATATYPE_NULL, MPI_COMM_WORLD, &size_), MPI_ERR_TYPE);
    REFUSED(MPI_Pack_external("native", values, 1, MPI_INT, packed, 8, &at),
            MPI_ERR_UNSUPPORTED_DATAREP);
    REFUSED(MPI_Pack_external("external32", &wide, 1, MPI_LONG, packed, 8, &at), MPI_ERR_CONVERSION);
    REFUSED(MPI_Pack_external("external32", values, 4, MPI_INT, packed, 8, &at), MPI_ERR_TRUNCATE);
    CHECK(at == 0);
}

static void statuses(void)
{
    MPI_Status status;
    MPI_Datatype none;
    int value;

    memset(&status, 0, sizeof status);
    REFUSED(MPI_Get_count(MPI_STATUS_IGNORE, MPI_INT, &value), MPI_ERR_ARG);
    REFUSED(MPI_Get_count(&status, MPI_DATATYPE_NULL, &value), MPI_ERR_TYPE);
    REFUSED(MPI_Get_elements(&status, MPI_INT, NULL), MPI_ERR_ARG);
    REFUSED(MPI_Status_set_elements(&status, MPI_INT, -1), MPI_ERR_COUNT);
    MPI_Type_contiguous(0, MPI_INT, &none);
    REFUSED(MPI_Status_set_elements(&status, none, 1), MPI_ERR_ARG);
    MPI_Type_free(&none);
    REFUSED(MPI_Status_set_cancelled(NULL, 1), MPI_ERR_ARG);
}

static void refused(void)
{
    MPI_Datatype type, freed, null = MPI_DATATYPE_NULL, predefined_ = MPI_INT;
    int one = 1, value = 0, position = 0, minus[] = {-1}, ni, na, nd, combiner;
    int zero[] = {0}, two[] = {2};
    MPI_Aint place[] = {0};
    char packed[16];

    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    REFUSED(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT);
    REFUSED(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type), MPI_ERR_TYPE);
    REFUSED(MPI_Type_contiguous(1, MPI_INT, NULL), MPI_ERR_ARG);
    REFUSED(MPI_Type_vector(-1, 1, 1, MPI_INT, &type), MPI_ERR_COUNT);
    REFUSED(MPI_Type_vector(1, -1, 1, MPI_INT, &type), MPI_ERR_COUNT);
    REFUSED(MPI_Type_create_hvector(1, -1, 1, MPI_INT, &type), MPI_ERR_COUNT);
    REFUSED(MPI_Type_indexed(1, minus, zero, MPI_INT, &type), MPI_ERR_COUNT);
    REFUSED(MPI_Type_indexed(1, NULL, zero, MPI_INT, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_indexed(1, &one, NULL, MPI_INT, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_create_hindexed(1, minus, place, MPI_INT, &type), MPI_ERR_COUNT);
    REFUSED(MPI_Type_create_indexed_block(1, -1, zero, MPI_INT, &type), MPI_ERR_COUNT);
    REFUSED(MPI_Type_create_hindexed_block(-1, 1, place, MPI_INT, &type), MPI_ERR_COUNT);
    REFUSED(MPI_Type_create_struct(1, minus, place, &predefined_, &type), MPI_ERR_COUNT);
    REFUSED(MPI_Type_create_struct(1, &one, place, &null, &type), MPI_ERR_TYPE);
    REFUSED(MPI_Type_create_struct(1, &one, place, NULL, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_create_resized(null, 0, 4, &type), MPI_ERR_TYPE);
    REFUSED(MPI_Type_create_subarray(0, &one, &one, zero, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_create_subarray(1, &one, two, zero, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_create_subarray(1, two, &one, minus, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_create_subarray(1, two, &one, zero, 77, MPI_INT, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_create_f90_integer(100, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_match_size(MPI_TYPECLASS_REAL, 5, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_match_size(7, 4, &type), MPI_ERR_ARG);

    REFUSED(MPI_Type_size(null, &value), MPI_ERR_TYPE);
    REFUSED(MPI_Type_size(MPI_INT, NULL), MPI_ERR_ARG);
    REFUSED(MPI_Type_commit(&null), MPI_ERR_TYPE);
    REFUSED(MPI_Type_free(&null), MPI_ERR_TYPE);
    REFUSED(MPI_Type_free(&predefined_), MPI_ERR_TYPE);
    REFUSED(MPI_Type_dup(null, &type), MPI_ERR_TYPE);
    REFUSED(MPI_Type_get_envelope(null, &ni, &na, &nd, &combiner), MPI_ERR_TYPE);
    REFUSED(MPI_Type_get_contents(MPI_INT, 0, 0, 0, NULL, NULL, NULL), MPI_ERR_TYPE);
    REFUSED(MPI_Type_set_name(null, "none"), MPI_ERR_TYPE);
    REFUSED(MPI_Get_address(&value, NULL), MPI_ERR_ARG);

    MPI_Type_contiguous(2, MPI_INT, &type);
    REFUSED(MPI_Type_get_contents(type, 0, 0, 1, NULL, NULL, &freed), MPI_ERR_ARG);
    REFUSED(MPI_Pack(&value, 0, type, packed, sizeof packed, &position, MPI_COMM_SELF), MPI_ERR_TYPE);
    freed = type;
    MPI_Type_free(&type);
    REFUSED(MPI_Type_size(freed, &value), MPI_ERR_TYPE);
    REFUSED(MPI_Type_contiguous(1, freed, &type), MPI_ERR_TYPE);
    REFUSED(MPI_Type_free(&freed), MPI_ERR_TYPE);
    REFUSED(MPI_Type_size((MPI_Datatype)MPI_COMM_WORLD, &value), MPI_ERR_TYPE);
    REFUSED(MPI_Type_size((MPI_Datatype)0, &value), MPI_ERR_TYPE);
    MPI_Type_contiguous_c(2, MPI_INT, &type);
    REFUSED(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner), MPI_ERR_TYPE);
    MPI_Type_free(&type);
    MPI_Type_create_f90_integer(4, &type);
    REFUSED(MPI_Type_free(&type), MPI_ERR_TYPE);
    REFUSED(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &type), MPI_ERR_ARG);
    REFUSED(MPI_Type_create_f90_real(-1, 3, &type), MPI_ERR_ARG);
    too_large();
    dealt_out();
    packing();
    statuses();
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL) == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    refused();
    return end("datatype_mistakes");
}
