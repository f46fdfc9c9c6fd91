/* Operations: every predefined one on every type that the standard has it for, and refused on the
 * others; places of extreme values; the program's own, also for large counts; local reductions. */
#include "check.h"

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

static int class_of(int code)
{
    int class_;
    MPI_Error_class(code, &class_);
    return class_;
}

/* FORTRAN: integers of Fortran, which are no truth values. */
enum {
    INTEGER = 1, FORTRAN = 2, FLOATING = 4, LOGICAL = 8, COMPLEX = 16, BYTES = 32, PAIR = 64, OTHER = 128
};

static const struct { MPI_Op operation; int fits; } operations[] = {
    {MPI_MAX, INTEGER | FORTRAN | FLOATING}, {MPI_MIN, INTEGER | FORTRAN | FLOATING},
    {MPI_SUM, INTEGER | FORTRAN | FLOATING | COMPLEX},
    {MPI_PROD, INTEGER | FORTRAN | FLOATING | COMPLEX},
    {MPI_LAND, INTEGER | LOGICAL}, {MPI_LOR, INTEGER | LOGICAL}, {MPI_LXOR, INTEGER | LOGICAL},
    {MPI_BAND, INTEGER | FORTRAN | BYTES}, {MPI_BOR, INTEGER | FORTRAN | BYTES},
    {MPI_BXOR, INTEGER | FORTRAN | BYTES},
    {MPI_MINLOC, PAIR}, {MPI_MAXLOC, PAIR}, {MPI_REPLACE, 0}, {MPI_NO_OP, 0},
};

static const struct { MPI_Datatype type; int kind; } types[] = {
    {MPI_INT, INTEGER}, {MPI_LONG, INTEGER}, {MPI_SHORT, INTEGER}, {MPI_UNSIGNED_SHORT, INTEGER},
    {MPI_UNSIGNED, INTEGER}, {MPI_UNSIGNED_LONG, INTEGER}, {MPI_LONG_LONG, INTEGER},
    {MPI_UNSIGNED_LONG_LONG, INTEGER}, {MPI_SIGNED_CHAR, INTEGER}, {MPI_UNSIGNED_CHAR, INTEGER},
    {MPI_INT8_T, INTEGER}, {MPI_INT16_T, INTEGER}, {MPI_INT32_T, INTEGER}, {MPI_INT64_T, INTEGER},
    {MPI_UINT8_T, INTEGER}, {MPI_UINT16_T, INTEGER}, {MPI_UINT32_T, INTEGER},
    {MPI_UINT64_T, INTEGER}, {MPI_INTEGER, FORTRAN}, {MPI_INTEGER1, FORTRAN},
    {MPI_INTEGER2, FORTRAN}, {MPI_INTEGER4, FORTRAN}, {MPI_INTEGER8, FORTRAN},
    {MPI_AINT, INTEGER}, {MPI_COUNT, INTEGER}, {MPI_OFFSET, INTEGER},
    {MPI_FLOAT, FLOATING}, {MPI_DOUBLE, FLOATING}, {MPI_LONG_DOUBLE, FLOATING},
    {MPI_REAL, FLOATING}, {MPI_DOUBLE_PRECISION, FLOATING}, {MPI_REAL4, FLOATING},
    {MPI_REAL8, FLOATING}, {MPI_C_BOOL, LOGICAL}, {MPI_CXX_BOOL, LOGICAL}, {MPI_LOGICAL, LOGICAL},
    {MPI_C_FLOAT_COMPLEX, COMPLEX}, {MPI_C_DOUBLE_COMPLEX, COMPLEX},
    {MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX}, {MPI_CXX_FLOAT_COMPLEX, COMPLEX},
    {MPI_CXX_DOUBLE_COMPLEX, COMPLEX}, {MPI_CXX_LONG_DOUBLE_COMPLEX, COMPLEX},
    {MPI_COMPLEX, COMPLEX}, {MPI_DOUBLE_COMPLEX, COMPLEX}, {MPI_COMPLEX8, COMPLEX},
    {MPI_COMPLEX16, COMPLEX}, {MPI_BYTE, BYTES}, {MPI_FLOAT_INT, PAIR}, {MPI_DOUBLE_INT, PAIR},
    {MPI_LONG_INT, PAIR}, {MPI_2INT, PAIR}, {MPI_SHORT_INT, PAIR}, {MPI_LONG_DOUBLE_INT, PAIR},
    {MPI_2REAL, PAIR}, {MPI_2DOUBLE_PRECISION, PAIR}, {MPI_2INTEGER, PAIR},
    {MPI_PACKED, OTHER}, {MPI_WCHAR, OTHER},
};

static void combinations(void)
{
    int wrong = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (size_t at = 0; at < sizeof types / sizeof *types; at++)
        for (size_t by = 0; by < sizeof operations / sizeof *operations; by++) {
            long double one[8] = {0}, all[8] = {0};
            int fits = (operations[by].fits & types[at].kind) != 0;
            int code = MPI_Allreduce(one, all, 2, types[at].type, operations[by].operation,
                                     MPI_COMM_WORLD);
            if (class_of(code) == (fits ? MPI_SUCCESS : MPI_ERR_OP)) continue;
            fprintf(stderr, "type %#zx by operation %#zx: class %d\n", (size_t)types[at].type,
                    (size_t)operations[by].operation, class_of(code));
            wrong++;
        }
    CHECK(wrong == 0);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

#define REDUCES(type, datatype, operation, mine, expected)                                  \
    do {                                                                                    \
        type values[3] = {mine, mine, mine}, results[3] = {0};                              \
        MPI_Allreduce(values, results, 3, datatype, operation, MPI_COMM_WORLD);             \
        CHECK(results[0] == (expected) && results[1] == (expected) && results[2] == (expected)); \
    } while (0)

static void values(void)
{
    double complex power = 1;
    for (int at = 0; at < size; at++) power *= I;
    int everyone = size * (size - 1) / 2;
    REDUCES(int8_t, MPI_INT8_T, MPI_SUM, (int8_t)rank, everyone);
    REDUCES(uint16_t, MPI_UINT16_T, MPI_MAX, (uint16_t)(60000 + rank), 60000 + size - 1);
    REDUCES(int64_t, MPI_INT64_T, MPI_MIN, -((int64_t)rank << 40), -((int64_t)(size - 1) << 40));
    REDUCES(MPI_Aint, MPI_AINT, MPI_SUM, (MPI_Aint)rank, everyone);
    REDUCES(MPI_Count, MPI_COUNT, MPI_BOR, (MPI_Count)1 << rank, ((MPI_Count)1 << size) - 1);
    REDUCES(MPI_Offset, MPI_OFFSET, MPI_MAX, (MPI_Offset)rank, size - 1);
    REDUCES(unsigned char, MPI_BYTE, MPI_BXOR, 0x5a, size % 2 ? 0x5a : 0);
    REDUCES(bool, MPI_C_BOOL, MPI_LAND, rank != 0, false);
    REDUCES(bool, MPI_C_BOOL, MPI_LOR, rank == 0, true);
    REDUCES(int, MPI_LOGICAL, MPI_LXOR, 1, size % 2);
    REDUCES(int, MPI_INT, MPI_LAND, rank + 1, 1);
    REDUCES(long double, MPI_LONG_DOUBLE, MPI_SUM, rank + 0.5L, everyone + 0.5L * size);
    REDUCES(long double, MPI_LONG_DOUBLE, MPI_MIN, -rank / 4.0L, (1 - size) / 4.0L);
    REDUCES(float complex, MPI_C_FLOAT_COMPLEX, MPI_SUM, rank - I, everyone - size * I);
    REDUCES(double complex, MPI_C_DOUBLE_COMPLEX, MPI_PROD, I, power);
    REDUCES(long double complex, MPI_C_LONG_DOUBLE_COMPLEX, MPI_PROD, I, power);
}

#define FINDS(value_type, index_type, datatype)                                             \
    do {                                                                                    \
        struct { value_type value; index_type index; } mine[2], all[2], none;               \
        memset(&none, 0, sizeof none), (void)none;                                          \
        for (int at = 0; at < 2; at++) mine[at].value = (rank + at) % 3, mine[at].index = rank; \
        MPI_Allreduce(mine, all, 2, datatype, MPI_MINLOC, MPI_COMM_WORLD);                  \
        CHECK(all[0].value == 0 && all[0].index == 0);                                      \
        CHECK(all[1].value == (size > 2 ? 0 : 1) && all[1].index == (size > 2 ? 2 : 0));    \
        MPI_Allreduce(mine, all, 2, datatype, MPI_MAXLOC, MPI_COMM_WORLD);                  \
        CHECK(all[0].value == (size > 2 ? 2 : size - 1) && all[0].index == all[0].value);   \
        MPI_Reduce_local(mine, mine, 0, datatype, MPI_MAXLOC);                              \
    } while (0)

static void places(void)
{
    FINDS(float, int, MPI_FLOAT_INT);
    FINDS(double, int, MPI_DOUBLE_INT);
    FINDS(long, int, MPI_LONG_INT);
    FINDS(int, int, MPI_2INT);
    FINDS(short, int, MPI_SHORT_INT);
    FINDS(long double, int, MPI_LONG_DOUBLE_INT);
    FINDS(float, float, MPI_2REAL);
    FINDS(double, double, MPI_2DOUBLE_PRECISION);
    FINDS(int, int, MPI_2INTEGER);
}

static void subtract(void *in, void *inout, int *length, MPI_Datatype *type)
{
    CHECK(*type == MPI_INT);
    for (int at = 0; at < *length; at++) ((int *)inout)[at] = ((int *)in)[at] - ((int *)inout)[at];
}

static void subtract_many(void *in, void *inout, MPI_Count *length, MPI_Datatype *type)
{
    int short_length = (int)*length;
    subtract(in, inout, &short_length, type);
}

static void local(void)
{
    int left[3] = {10, 20, 30}, right[3] = {1, 2, 3};
    MPI_Op short_one, large_one;
    int commutes;
    struct { short value; int index; } few[2] = {{3, 1}, {5, 2}}, many[2] = {{3, 0}, {4, 7}};

    CHECK(MPI_Reduce_local(left, right, 3, MPI_INT, MPI_SUM) == MPI_SUCCESS);
    CHECK(right[0] == 11 && right[2] == 33);
    CHECK(MPI_Reduce_local_c(few, many, 2, MPI_SHORT_INT, MPI_MAXLOC) == MPI_SUCCESS);
    CHECK(many[0].value == 3 && many[0].index == 0 && many[1].value == 5 && many[1].index == 2);
    MPI_Op_create(subtract, 0, &short_one);
    MPI_Op_create_c(subtract_many, 1, &large_one);
    MPI_Op_commutative(short_one, &commutes);
    CHECK(!commutes);
    MPI_Op_commutative(large_one, &commutes);
    CHECK(commutes);
    MPI_Op_commutative(MPI_SUM, &commutes);
    CHECK(commutes);
    CHECK(MPI_Reduce_local(left, right, 2, MPI_INT, short_one) == MPI_SUCCESS);
    CHECK(right[0] == -1 && right[1] == -2 && right[2] == 33);
    CHECK(MPI_Reduce_local_c(left, right, 3, MPI_INT, large_one) == MPI_SUCCESS);
    CHECK(right[0] == 11 && right[2] == -3);
    MPI_Op_free(&short_one);
    MPI_Op_free(&large_one);
    CHECK(short_one == MPI_OP_NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    short_one = MPI_SUM;
    CHECK(class_of(MPI_Op_free(&short_one)) == MPI_ERR_OP && short_one == MPI_SUM);
}

static MPI_Count told;

static void count_items(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)type;
    CHECK(*length > 0);
    told += *length;
}

/* A function for short counts is told of more items than an int counts in several calls. The items are
 * empty, or all at one place, so that they need no room. */
static void more_than_an_int_counts(void)
{
    const MPI_Count many = ((MPI_Count)1 << 32) + 5;
    int one = 1, other = 2;
    MPI_Datatype empty, still;
    MPI_Request request;
    MPI_Op operation;

    if (!is_ours()) return;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    MPI_Type_create_resized(MPI_INT, 0, 0, &still);
    MPI_Type_commit(&still);
    MPI_Op_create(count_items, 1, &operation);
    told = 0;
    CHECK(MPI_Reduce_local_c(&one, &other, many, still, operation) == MPI_SUCCESS);
    CHECK(told == many);
    told = 0;
    CHECK(MPI_Iallreduce_c(&one, &other, many, empty, operation, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(told == many * (size - 1));
    MPI_Op_free(&operation);
    MPI_Type_free(&still);
    MPI_Type_free(&empty);
}

/* Numbers of 16 bits are reduced; those of 128 bits are refused. Other libraries choose otherwise. */
static void rare_numbers(void)
{
    /* 1.5, -2, 1024, and 2 + i, 2 - i. */
    unsigned short value[3] = {0x3e00, 0xc000, 0x6400}, sum[3] = {0x3e00, 0x3c00, 0x6400};
    unsigned short left[2] = {0x4000, 0x3c00}, right[2] = {0x4000, 0xbc00}, all;
    long double in[2] = {0}, out[2] = {0};

    if (!is_ours()) return;
    CHECK(MPI_Reduce_local(value, sum, 3, MPI_REAL2, MPI_SUM) == MPI_SUCCESS);
    CHECK(sum[0] == 0x4200 && sum[1] == 0xbc00 && sum[2] == 0x6800);
    CHECK(MPI_Reduce_local(value, sum, 3, MPI_REAL2, MPI_MIN) == MPI_SUCCESS);
    CHECK(sum[0] == 0x3e00 && sum[1] == 0xc000 && sum[2] == 0x6400);
    CHECK(MPI_Reduce_local(left, right, 1, MPI_COMPLEX4, MPI_PROD) == MPI_SUCCESS);
    CHECK(right[0] == 0x4500 && right[1] == 0);
    /* As many ones as there are processes, which are few enough to be exact. */
    value[0] = 0x3c00;
    CHECK(MPI_Allreduce(value, &all, 1, MPI_REAL2, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(all == (size == 1 ? 0x3c00 : size == 2 ? 0x4000 : size == 3 ? 0x4200 : size == 4 ? 0x4400 : 0x4500) || size > 5);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Reduce_local(in, out, 1, MPI_REAL16, MPI_SUM) == MPI_ERR_OP);
    CHECK(MPI_Reduce_local(in, out, 1, MPI_COMPLEX32, MPI_SUM) == MPI_ERR_OP);
    CHECK(MPI_Reduce_local(value, sum, 1, MPI_REAL2, MPI_BAND) == MPI_ERR_OP);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    combinations();
    values();
    places();
    local();
    more_than_an_int_counts();
    rare_numbers();
    return end("operation");
}
