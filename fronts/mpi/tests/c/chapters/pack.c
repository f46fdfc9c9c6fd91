/* Packing and unpacking, message by message, and in the portable format. */
#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

#include "check.h"

/* Several things in one message, taken apart again by the receiver. */
static void messages(void)
{
    char packed[200];
    double values[3] = {1.5, rank + 0.25, -3};
    int number = rank * 10, position = 0, to = (rank + 1) % size, from = (rank + size - 1) % size;
    int got, length, need, all;
    double back[3];
    MPI_Request request;
    MPI_Status status;
    char other[200];

    CHECK(MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &need) == MPI_SUCCESS && need >= 4);
    CHECK(MPI_Pack_size(3, MPI_DOUBLE, MPI_COMM_WORLD, &all) == MPI_SUCCESS && all >= 24);
    CHECK(need + all <= (int)sizeof packed);
    CHECK(MPI_Pack(&number, 1, MPI_INT, packed, sizeof packed, &position, MPI_COMM_WORLD) ==
          MPI_SUCCESS);
    CHECK(MPI_Pack(values, 3, MPI_DOUBLE, packed, sizeof packed, &position, MPI_COMM_WORLD) ==
          MPI_SUCCESS);
    CHECK(MPI_Isend(packed, position, MPI_PACKED, to, 1, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(MPI_Recv(other, sizeof other, MPI_PACKED, from, 1, MPI_COMM_WORLD, &status) ==
          MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Get_count(&status, MPI_PACKED, &length) == MPI_SUCCESS && length == position);
    position = 0;
    CHECK(MPI_Unpack(other, length, &position, &got, 1, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Unpack(other, length, &position, back, 3, MPI_DOUBLE, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(position == length && got == from * 10);
    CHECK(back[0] == 1.5 && back[1] == from + 0.25 && back[2] == -3);
}

static void large_counts(void)
{
    int matrix[8][8], row[8], column[8];
    MPI_Count position = 0, need;
    MPI_Datatype type;

    for (int i = 0; i < 64; i++) matrix[i / 8][i % 8] = i;
    MPI_Type_vector(8, 1, 8, MPI_INT, &type);
    MPI_Type_commit(&type);
    CHECK(MPI_Pack_size_c(1, type, MPI_COMM_SELF, &need) == MPI_SUCCESS && need >= 32);
    CHECK(MPI_Pack_c(&matrix[0][3], 1, type, column, sizeof column, &position, MPI_COMM_SELF) ==
          MPI_SUCCESS);
    CHECK(position == 32);
    for (int i = 0; i < 8; i++) CHECK(column[i] == 8 * i + 3);
    position = 0;
    CHECK(MPI_Unpack_c(column, sizeof column, &position, row, 8, MPI_INT, MPI_COMM_SELF) ==
          MPI_SUCCESS);
    CHECK(position == 32 && !memcmp(row, column, sizeof row));
    MPI_Type_free(&type);
}

#define EXTERNAL(value, type, size, ...)                                                        \
    do {                                                                                        \
        const unsigned char expected_[] = {__VA_ARGS__};                                        \
        unsigned char external_[32], back_[32];                                                 \
        MPI_Aint at_ = 0, need_ = -1;                                                           \
        memset(back_, 0, sizeof back_);                                                         \
        CHECK(MPI_Pack_external_size("external32", 1, type, &need_) == MPI_SUCCESS);            \
        CHECK(need_ == size);                                                                   \
        CHECK(MPI_Pack_external("external32", &value, 1, type, external_, 32, &at_) ==          \
              MPI_SUCCESS);                                                                     \
        CHECK(at_ == size && sizeof expected_ == size);                                         \
        CHECK(!memcmp(external_, expected_, size));                                             \
        at_ = 0;                                                                                \
        CHECK(MPI_Unpack_external("external32", external_, size, &at_, back_, 1, type) ==       \
              MPI_SUCCESS);                                                                     \
        CHECK(at_ == size && !memcmp(back_, &value, sizeof value < 10 ? sizeof value : 10));    \
    } while (0)

static void portable(void)
{
    short two = -2;
    int four = 0x01020304;
    unsigned positive = 0xfffefdfcu;
    long narrow = -3;
    unsigned long narrow_u = 0xfffffff0u;
    long long wide = -3;
    int64_t sized = 0x0102030405060708;
    float single = -1.5f;
    double number = 2.5;
    char letter = 'x';
    bool truth = true;
    MPI_Aint place = 5;
    float complex pair = 1.0f - 2.0f * I;

    EXTERNAL(two, MPI_SHORT, 2, 0xff, 0xfe);
    EXTERNAL(four, MPI_INT, 4, 1, 2, 3, 4);
    EXTERNAL(positive, MPI_UNSIGNED, 4, 0xff, 0xfe, 0xfd, 0xfc);
    EXTERNAL(narrow, MPI_LONG, 4, 0xff, 0xff, 0xff, 0xfd);
    EXTERNAL(narrow_u, MPI_UNSIGNED_LONG, 4, 0xff, 0xff, 0xff, 0xf0);
    EXTERNAL(wide, MPI_LONG_LONG, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd);
    EXTERNAL(sized, MPI_INT64_T, 8, 1, 2, 3, 4, 5, 6, 7, 8);
    EXTERNAL(single, MPI_FLOAT, 4, 0xbf, 0xc0, 0, 0);
    EXTERNAL(number, MPI_DOUBLE, 8, 0x40, 4, 0, 0, 0, 0, 0, 0);
    EXTERNAL(letter, MPI_CHAR, 1, 'x');
    EXTERNAL(letter, MPI_BYTE, 1, 'x');
    EXTERNAL(truth, MPI_C_BOOL, 1, 1);
    EXTERNAL(place, MPI_AINT, 8, 0, 0, 0, 0, 0, 0, 0, 5);
    EXTERNAL(pair, MPI_C_FLOAT_COMPLEX, 8, 0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0);
#if defined __x86_64__
    long double extended = -3;
    EXTERNAL(extended, MPI_LONG_DOUBLE, 16, 0xc0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
#endif
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    messages();
    large_counts();
    portable();
    return end("pack");
}
