/* Reductions with the operations of the library and with one of the program, which does not
 * commute: the composition of linear functions a x + b, in the order of the ranks. */
#include "check.h"

#include <stdbool.h>

static int calls;
static MPI_Datatype expected_type;

/* in and inout are pairs (a, b); rank order: first in, then inout. */
static void compose(void *in, void *inout, int *length, MPI_Datatype *type)
{
    const double *first = in;
    double *second = inout;
    CHECK(*type == expected_type && *length % 2 == 0);
    for (int index = 0; index < *length; index += 2) {
        double a = first[index], b = first[index + 1];
        double c = second[index], d = second[index + 1];
        second[index] = a * c;
        second[index + 1] = b * c + d;
    }
    calls++;
}

static void predefined(void)
{
    int everyone = size * (size - 1) / 2;
    int mine[3] = {rank, rank == 0, 1 << (rank % 20)}, all[3];
    MPI_Allreduce(mine, all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all[0] == everyone);
    MPI_Allreduce(mine, all, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(all[0] == size - 1 && all[1] == 1);
    MPI_Allreduce(mine + 1, all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    CHECK(all[0] == (size == 1));
    MPI_Allreduce(mine + 1, all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    CHECK(all[0] == 1);
    unsigned bits = 1u << (rank % 32), union_of = 0;
    MPI_Allreduce(&bits, &union_of, 1, MPI_UNSIGNED, MPI_BOR, MPI_COMM_WORLD);
    CHECK(union_of == (size >= 32 ? ~0u : (1u << size) - 1));
    unsigned char byte = 0xf0 | rank, common;
    MPI_Allreduce(&byte, &common, 1, MPI_BYTE, MPI_BAND, MPI_COMM_WORLD);
    CHECK((common & 0xf0) == 0xf0);
    double half = 0.5, product;
    MPI_Allreduce(&half, &product, 1, MPI_DOUBLE, MPI_PROD, MPI_COMM_WORLD);
    CHECK(product == 1.0 / (double)(1ull << size));
    float low = (float)-rank, lowest;
    MPI_Allreduce(&low, &lowest, 1, MPI_FLOAT, MPI_MIN, MPI_COMM_WORLD);
    CHECK(lowest == (float)-(size - 1));
    bool odd = rank % 2, parity;
    MPI_Allreduce(&odd, &parity, 1, MPI_C_BOOL, MPI_LXOR, MPI_COMM_WORLD);
    CHECK(parity == (size / 2) % 2);
    int64_t wide = INT64_C(1) << 40, sum;
    MPI_Allreduce(&wide, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == wide * size);
}

static void large_and_in_place(void)
{
    enum { COUNT = 200000 };
    double *values = malloc(COUNT * sizeof *values);
    for (int index = 0; index < COUNT; index++) values[index] = rank + index % 10;
    MPI_Allreduce(MPI_IN_PLACE, values, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int index = 0; index < COUNT; index++)
        CHECK(values[index] == size * (index % 10) + size * (size - 1) / 2);
    MPI_Allreduce(MPI_IN_PLACE, values, 0, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    free(values);
}

static void users(void)
{
    MPI_Op operation = MPI_OP_NULL;
    MPI_Op_create(compose, 0, &operation);
    CHECK(operation != MPI_OP_NULL);
    expected_type = MPI_DOUBLE;
    double mine[4] = {2, rank, rank + 1, 1}, all[4];
    double a[2] = {2, 1}, b[2] = {0, 1};
    for (int other = 1; other < size; other++) {
        double c[2] = {2, other + 1}, d[2] = {other, 1};
        for (int pair = 0; pair < 2; pair++) {
            a[pair] *= c[pair];
            b[pair] = b[pair] * c[pair] + d[pair];
        }
    }
    MPI_Allreduce(mine, all, 4, MPI_DOUBLE, operation, MPI_COMM_WORLD);
    CHECK(all[0] == a[0] && all[1] == b[0] && all[2] == a[1] && all[3] == b[1]);
    CHECK(mine[0] == 2 && mine[1] == rank);
    int all_calls = 0;
    MPI_Allreduce(&calls, &all_calls, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all_calls >= size - 1);
    MPI_Op_free(&operation);
    CHECK(operation == MPI_OP_NULL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    predefined();
    large_and_in_place();
    users();
    return end("allreduce");
}
