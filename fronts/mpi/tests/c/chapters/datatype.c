/* Datatypes: every constructor with its layout, its envelope and its contents; sizes and extents;
 * predefined datatypes. */
#include <stddef.h>

#include "check.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* The packed bytes of items are those at these places, in this order. */
static void packs(MPI_Datatype type, int count, const int *places, int length)
{
    unsigned char memory[400], back[400], packed[400];
    int position = 0, size;

    for (int i = 0; i < 400; i++) {
        memory[i] = (unsigned char)(i * 7 + i / 256);
        back[i] = 0xee;
    }
    CHECK(MPI_Type_commit(&type) == MPI_SUCCESS);
    CHECK(MPI_Type_size(type, &size) == MPI_SUCCESS && size * count == length);
    CHECK(MPI_Pack(memory + 100, count, type, packed, sizeof packed, &position, MPI_COMM_SELF) ==
          MPI_SUCCESS);
    CHECK(position == length);
    for (int i = 0; i < length; i++) CHECK(packed[i] == memory[100 + places[i]]);
    position = 0;
    CHECK(MPI_Unpack(packed, length, &position, back + 100, count, type, MPI_COMM_SELF) ==
          MPI_SUCCESS);
    CHECK(position == length);
    for (int i = 0; i < length; i++) {
        CHECK(back[100 + places[i]] == memory[100 + places[i]]);
        back[100 + places[i]] = 0xee;
    }
    for (int i = 0; i < 400; i++) CHECK(back[i] == 0xee);
}

static void extends(MPI_Datatype type, MPI_Aint lb, MPI_Aint extent, MPI_Aint true_lb,
                    MPI_Aint true_extent)
{
    MPI_Aint first = -1, length = -1;
    MPI_Count wide_first = -1, wide_length = -1;

    CHECK(MPI_Type_get_extent(type, &first, &length) == MPI_SUCCESS);
    CHECK(first == lb && length == extent);
    CHECK(MPI_Type_get_true_extent(type, &first, &length) == MPI_SUCCESS);
    CHECK(first == true_lb && length == true_extent);
    CHECK(MPI_Type_get_extent_c(type, &wide_first, &wide_length) == MPI_SUCCESS);
    CHECK(wide_first == lb && wide_length == extent);
    wide_first = wide_length = -1;
    CHECK(MPI_Type_get_extent_x(type, &wide_first, &wide_length) == MPI_SUCCESS);
    CHECK(wide_first == lb && wide_length == extent);
    CHECK(MPI_Type_get_true_extent_c(type, &wide_first, &wide_length) == MPI_SUCCESS);
    CHECK(wide_first == true_lb && wide_length == true_extent);
    wide_first = wide_length = -1;
    CHECK(MPI_Type_get_true_extent_x(type, &wide_first, &wide_length) == MPI_SUCCESS);
    CHECK(wide_first == true_lb && wide_length == true_extent);
}

/* The constructor and its arguments: integers, addresses, then as many datatypes. */
static void describes(MPI_Datatype type, int combiner, const int *integers, int num_integers,
                      const MPI_Aint *addresses, int num_addresses, const MPI_Datatype *types,
                      int num_types)
{
    int ni, na, nd, got, numbers[40];
    MPI_Aint places[40];
    MPI_Datatype parts[8];
    MPI_Count wide_ni, wide_na, wide_nc, wide_nd;

    CHECK(MPI_Type_get_envelope(type, &ni, &na, &nd, &got) == MPI_SUCCESS);
    CHECK(got == combiner && ni == num_integers && na == num_addresses && nd == num_types);
    CHECK(MPI_Type_get_envelope_c(type, &wide_ni, &wide_na, &wide_nc, &wide_nd, &got) ==
          MPI_SUCCESS);
    CHECK(got == combiner && wide_ni == ni && wide_na == na && wide_nc == 0 && wide_nd == nd);
    CHECK(MPI_Type_get_contents(type, 40, 40, 8, numbers, places, parts) == MPI_SUCCESS);
    for (int i = 0; i < ni; i++) CHECK(numbers[i] == integers[i]);
    for (int i = 0; i < na; i++) CHECK(places[i] == addresses[i]);
    for (int i = 0; i < nd; i++) CHECK(parts[i] == types[i]);
}

/* The same of a constructor for large counts. */
static void describes_large(MPI_Datatype type, int combiner, const int *integers, int num_integers,
                            const MPI_Count *counts, int num_counts)
{
    MPI_Count ni, na, nc, nd, numbers[40];
    MPI_Aint addresses[1];
    MPI_Datatype parts[8];
    int got, small[40];

    CHECK(MPI_Type_get_envelope_c(type, &ni, &na, &nc, &nd, &got) == MPI_SUCCESS);
    CHECK(got == combiner && ni == num_integers && na == 0 && nc == num_counts && nd >= 1);
    CHECK(MPI_Type_get_contents_c(type, 40, 1, 40, 8, small, addresses, numbers, parts) ==
          MPI_SUCCESS);
    for (int i = 0; i < ni; i++) CHECK(small[i] == integers[i]);
    for (int i = 0; i < nc; i++) CHECK(numbers[i] == counts[i]);
    for (int i = 0; i < nd; i++) CHECK(parts[i] == MPI_BYTE || parts[i] == MPI_SHORT);
}

static const MPI_Datatype of_bytes[] = {MPI_BYTE}, of_shorts[] = {MPI_SHORT};

static void rows(void)
{
    MPI_Datatype type;
    const int three[] = {0, 1, 2, 3, 4, 5}, ints[] = {3};
    const int blocks[] = {0, 1, 2, 3, 6, 7, 8, 9}, vector[] = {2, 2, 3}, hvector[] = {2, 2};
    const int apart[] = {0, 1, 2, 3, 5, 6, 7, 8}, back[] = {0, 1, -4, -3}, twice[] = {2, 1, -2};
    const MPI_Aint stride[] = {5};
    const MPI_Count large[] = {2, 2, 3}, large_h[] = {2, 2, 5}, large_three[] = {3};

    CHECK(MPI_Type_contiguous(3, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, three, COUNT(three));
    extends(type, 0, 6, 0, 6);
    describes(type, MPI_COMBINER_CONTIGUOUS, ints, 1, NULL, 0, of_shorts, 1);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS && type == MPI_DATATYPE_NULL);
    CHECK(MPI_Type_contiguous_c(3, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, three, COUNT(three));
    describes_large(type, MPI_COMBINER_CONTIGUOUS, NULL, 0, large_three, 1);
    MPI_Type_free(&type);

    CHECK(MPI_Type_vector(2, 2, 3, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, blocks, COUNT(blocks));
    extends(type, 0, 10, 0, 10);
    describes(type, MPI_COMBINER_VECTOR, vector, 3, NULL, 0, of_shorts, 1);
    MPI_Type_free(&type);
    CHECK(MPI_Type_vector_c(2, 2, 3, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, blocks, COUNT(blocks));
    describes_large(type, MPI_COMBINER_VECTOR, NULL, 0, large, 3);
    MPI_Type_free(&type);
    CHECK(MPI_Type_vector(2, 1, -2, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, back, COUNT(back));
    extends(type, -4, 6, -4, 6);
    describes(type, MPI_COMBINER_VECTOR, twice, 3, NULL, 0, of_shorts, 1);
    MPI_Type_free(&type);

    CHECK(MPI_Type_create_hvector(2, 2, 5, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, apart, COUNT(apart));
    describes(type, MPI_COMBINER_HVECTOR, hvector, 2, stride, 1, of_shorts, 1);
    MPI_Type_free(&type);
    CHECK(MPI_Type_create_hvector_c(2, 2, 5, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, apart, COUNT(apart));
    describes_large(type, MPI_COMBINER_HVECTOR, NULL, 0, large_h, 3);
    MPI_Type_free(&type);
}

static void lists(void)
{
    MPI_Datatype type;
    const int lengths[] = {2, 0, 1}, offsets[] = {3, 9, 0};
    const MPI_Aint bytes[] = {7, 1, -2};
    const MPI_Count wide_lengths[] = {2, 0, 1}, wide_offsets[] = {3, 9, 0}, wide_bytes[] = {7, 1, -2};
    const int places[] = {6, 7, 8, 9, 0, 1}, byte_places[] = {7, 8, 9, 10, -2, -1};
    const int ints[] = {3, 2, 0, 1, 3, 9, 0}, block[] = {3, 1, 3, 9, 0};
    const int block_places[] = {6, 7, 18, 19, 0, 1}, hblock_places[] = {7, 8, 1, 2, -2, -1};
    const MPI_Count large[] = {3, 2, 0, 1, 3, 9, 0}, large_h[] = {3, 2, 0, 1, 7, 1, -2};
    const MPI_Count large_block[] = {3, 1, 3, 9, 0}, large_hblock[] = {3, 1, 7, 1, -2};

    CHECK(MPI_Type_indexed(3, lengths, offsets, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, places, COUNT(places));
    extends(type, 0, 10, 0, 10);
    describes(type, MPI_COMBINER_INDEXED, ints, 7, NULL, 0, of_shorts, 1);
    MPI_Type_free(&type);
    CHECK(MPI_Type_indexed_c(3, wide_lengths, wide_offsets, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, places, COUNT(places));
    describes_large(type, MPI_COMBINER_INDEXED, NULL, 0, large, 7);
    MPI_Type_free(&type);

    CHECK(MPI_Type_create_hindexed(3, lengths, bytes, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, byte_places, COUNT(byte_places));
    describes(type, MPI_COMBINER_HINDEXED, ints, 4, bytes, 3, of_shorts, 1);
    MPI_Type_free(&type);
    CHECK(MPI_Type_create_hindexed_c(3, wide_lengths, wide_bytes, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, byte_places, COUNT(byte_places));
    describes_large(type, MPI_COMBINER_HINDEXED, NULL, 0, large_h, 7);
    MPI_Type_free(&type);

    CHECK(MPI_Type_create_indexed_block(3, 1, offsets, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, block_places, COUNT(block_places));
    describes(type, MPI_COMBINER_INDEXED_BLOCK, block, 5, NULL, 0, of_shorts, 1);
    MPI_Type_free(&type);
    CHECK(MPI_Type_create_indexed_block_c(3, 1, wide_offsets, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, block_places, COUNT(block_places));
    describes_large(type, MPI_COMBINER_INDEXED_BLOCK, NULL, 0, large_block, 5);
    MPI_Type_free(&type);

    CHECK(MPI_Type_create_hindexed_block(3, 1, bytes, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, hblock_places, COUNT(hblock_places));
    describes(type, MPI_COMBINER_HINDEXED_BLOCK, block, 2, bytes, 3, of_shorts, 1);
    MPI_Type_free(&type);
    CHECK(MPI_Type_create_hindexed_block_c(3, 1, wide_bytes, MPI_SHORT, &type) == MPI_SUCCESS);
    packs(type, 1, hblock_places, COUNT(hblock_places));
    describes_large(type, MPI_COMBINER_HINDEXED_BLOCK, NULL, 0, large_hblock, 5);
    MPI_Type_free(&type);
}

static void records(void)
{
    MPI_Datatype type, resized, pair;
    const int lengths[] = {2, 1, 1};
    const MPI_Aint offsets[] = {0, 8, 4};
    const MPI_Count wide_lengths[] = {2, 1, 1}, wide_offsets[] = {0, 8, 4};
    const MPI_Datatype types[] = {MPI_BYTE, MPI_DOUBLE, MPI_SHORT};
    const MPI_Datatype bytes[] = {MPI_BYTE, MPI_SHORT, MPI_BYTE};
    const int places[] = {0, 1, 8, 9, 10, 11, 12, 13, 14, 15, 4, 5};
    const int small[] = {0, 1, 8, 9, 4, 20, 21, 28, 29, 24}, ints[] = {3, 2, 1, 1};
    const MPI_Count large[] = {3, 2, 1, 1, 0, 8, 4}, large_resized[] = {-2, 20};
    const MPI_Aint bounds[] = {-2, 20};

    CHECK(MPI_Type_create_struct(3, lengths, offsets, types, &type) == MPI_SUCCESS);
    packs(type, 1, places, COUNT(places));
    extends(type, 0, 16, 0, 16);
    describes(type, MPI_COMBINER_STRUCT, ints, 4, offsets, 3, types, 3);
    MPI_Type_free(&type);

    CHECK(MPI_Type_create_struct_c(3, wide_lengths, wide_offsets, bytes, &type) == MPI_SUCCESS);
    extends(type, 0, 10, 0, 10);
    describes_large(type, MPI_COMBINER_STRUCT, NULL, 0, large, 7);
    CHECK(MPI_Type_create_resized(type, -2, 20, &resized) == MPI_SUCCESS);
    packs(resized, 2, small, COUNT(small));
    extends(resized, -2, 20, 0, 10);
    MPI_Type_free(&resized);
    MPI_Type_free(&type);

    CHECK(MPI_Type_create_resized(MPI_BYTE, -2, 20, &type) == MPI_SUCCESS);
    describes(type, MPI_COMBINER_RESIZED, NULL, 0, bounds, 2, of_bytes, 1);
    MPI_Type_free(&type);
    CHECK(MPI_Type_create_resized_c(MPI_BYTE, -2, 20, &type) == MPI_SUCCESS);
    describes_large(type, MPI_COMBINER_RESIZED, NULL, 0, large_resized, 2);
    MPI_Type_free(&type);

    /* The end of a structure leaves room for the alignment of the next one. */
    CHECK(MPI_Type_create_struct(2, (const int[]){1, 1}, (const MPI_Aint[]){0, 8},
                                 (const MPI_Datatype[]){MPI_DOUBLE, MPI_CHAR}, &pair) == MPI_SUCCESS);
    extends(pair, 0, 16, 0, 9);
    MPI_Type_free(&pair);
}

/* What a datatype was made of can be asked for, also when that is freed already. */
static void parts(void)
{
    MPI_Datatype inner, outer, part;
    MPI_Aint address;
    int number, ni, na, nd, combiner;

    CHECK(MPI_Type_vector(2, 1, 2, MPI_INT, &inner) == MPI_SUCCESS);
    CHECK(MPI_Type_contiguous(2, inner, &outer) == MPI_SUCCESS);
    MPI_Type_free(&inner);
    CHECK(MPI_Type_get_contents(outer, 1, 0, 1, &number, &address, &part) == MPI_SUCCESS);
    CHECK(number == 2 && part != MPI_DATATYPE_NULL);
    CHECK(MPI_Type_get_envelope(part, &ni, &na, &nd, &combiner) == MPI_SUCCESS);
    CHECK(combiner == MPI_COMBINER_VECTOR && ni == 3 && na == 0 && nd == 1);
    extends(part, 0, 12, 0, 12);
    CHECK(MPI_Type_free(&part) == MPI_SUCCESS);
    extends(outer, 0, 24, 0, 24);
    MPI_Type_free(&outer);
}

static void arrays(void)
{
    MPI_Datatype type;
    const int sizes[] = {3, 4}, lengths[] = {2, 2}, starts[] = {1, 1};
    const MPI_Count wide_sizes[] = {3, 4}, wide_lengths[] = {2, 2}, wide_starts[] = {1, 1};
    const int in_c[] = {5, 6, 9, 10}, in_fortran[] = {4, 5, 7, 8};
    const int ints[] = {2, 3, 4, 2, 2, 1, 1, MPI_ORDER_C};
    const int ints_f[] = {2, 3, 4, 2, 2, 1, 1, MPI_ORDER_FORTRAN}, large_ints[] = {2, MPI_ORDER_C};
    const MPI_Count large[] = {3, 4, 2, 2, 1, 1};

    CHECK(MPI_Type_create_subarray(2, sizes, lengths, starts, MPI_ORDER_C, MPI_BYTE, &type) ==
          MPI_SUCCESS);
    packs(type, 1, in_c, 4);
    extends(type, 0, 12, 5, 6);
    describes(type, MPI_COMBINER_SUBARRAY, ints, 8, NULL, 0, of_bytes, 1);
    MPI_Type_free(&type);
    CHECK(MPI_Type_create_subarray(2, sizes, lengths, starts, MPI_ORDER_FORTRAN, MPI_BYTE, &type) ==
          MPI_SUCCESS);
    packs(type, 1, in_fortran, 4);
    describes(type, MPI_COMBINER_SUBARRAY, ints_f, 8, NULL, 0, of_bytes, 1);
    MPI_Type_free(&type);
    CHECK(MPI_Type_create_subarray_c(2, wide_sizes, wide_lengths, wide_starts, MPI_ORDER_C, MPI_BYTE,
                                     &type) == MPI_SUCCESS);
    packs(type, 1, in_c, 4);
    describes_large(type, MPI_COMBINER_SUBARRAY, large_ints, 2, large, 6);
    MPI_Type_free(&type);
}

/* 5 x 4 over 2 x 2 processes: cyclic along the first dimension, blocks along the second. */
static void dealt_out(void)
{
    MPI_Datatype type;
    const int sizes[] = {5, 4}, distribs[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
    const int dargs[] = {1, MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {2, 2};
    const int none[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE}, twos[] = {2, 1}, row[] = {2, 1};
    const MPI_Count wide[] = {5, 4};
    const int first[] = {0, 1, 8, 9, 16, 17}, last[] = {6, 7, 14, 15};
    const int fortran[] = {0, 2, 4, 5, 7, 9}, rows[] = {8, 9, 10, 11, 12, 13, 14, 15};
    const int ints[] = {4, 3, 2, 5, 4, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK, 1,
                        MPI_DISTRIBUTE_DFLT_DARG, 2, 2, MPI_ORDER_C};
    const int large_ints[] = {4, 3, 2, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK, 1,
                              MPI_DISTRIBUTE_DFLT_DARG, 2, 2, MPI_ORDER_C};

    CHECK(MPI_Type_create_darray(4, 0, 2, sizes, distribs, dargs, grid, MPI_ORDER_C, MPI_BYTE,
                                 &type) == MPI_SUCCESS);
    packs(type, 1, first, 6);
    extends(type, 0, 20, 0, 18);
    MPI_Type_free(&type);
    CHECK(MPI_Type_create_darray(4, 3, 2, sizes, distribs, dargs, grid, MPI_ORDER_C, MPI_BYTE,
                                 &type) == MPI_SUCCESS);
    packs(type, 1, last, 4);
    describes(type, MPI_COMBINER_DARRAY, ints, 12, NULL, 0, of_bytes, 1);
    MPI_Type_free(&type);
    CHECK(MPI_Type_create_darray(4, 0, 2, sizes, distribs, dargs, grid, MPI_ORDER_FORTRAN, MPI_BYTE,
                                 &type) == MPI_SUCCESS);
    packs(type, 1, fortran, 6);
    MPI_Type_free(&type);
    CHECK(MPI_Type_create_darray(2, 1, 2, sizes, none, twos, row, MPI_ORDER_C, MPI_BYTE, &type) ==
          MPI_SUCCESS);
    packs(type, 1, rows, 8);
    MPI_Type_free(&type);
    CHECK(MPI_Type_create_darray_c(4, 3, 2, wide, distribs, dargs, grid, MPI_ORDER_C, MPI_BYTE,
                                   &type) == MPI_SUCCESS);
    packs(type, 1, last, 4);
    describes_large(type, MPI_COMBINER_DARRAY, large_ints, 10, wide, 2);
    MPI_Type_free(&type);
}

static void predefined(void)
{
    const struct {
        MPI_Datatype type;
        int size;
        MPI_Aint extent;
    } known[] = {
        {MPI_CHAR, 1, 1}, {MPI_SHORT, sizeof(short), sizeof(short)}, {MPI_INT, sizeof(int), sizeof(int)},
        {MPI_LONG, sizeof(long), sizeof(long)}, {MPI_LONG_LONG, sizeof(long long), sizeof(long long)},
        {MPI_SIGNED_CHAR, 1, 1}, {MPI_UNSIGNED_CHAR, 1, 1}, {MPI_UNSIGNED_SHORT, 2, 2},
        {MPI_UNSIGNED, 4, 4}, {MPI_UNSIGNED_LONG, sizeof(long), sizeof(long)},
        {MPI_UNSIGNED_LONG_LONG, 8, 8}, {MPI_FLOAT, 4, 4}, {MPI_DOUBLE, 8, 8},
        {MPI_LONG_DOUBLE, sizeof(long double), sizeof(long double)},
        {MPI_WCHAR, sizeof(wchar_t), sizeof(wchar_t)}, {MPI_C_BOOL, 1, 1}, {MPI_INT8_T, 1, 1},
        {MPI_INT16_T, 2, 2}, {MPI_INT32_T, 4, 4}, {MPI_INT64_T, 8, 8}, {MPI_UINT8_T, 1, 1},
        {MPI_UINT16_T, 2, 2}, {MPI_UINT32_T, 4, 4}, {MPI_UINT64_T, 8, 8},
        {MPI_C_COMPLEX, 8, 8}, {MPI_C_FLOAT_COMPLEX, 8, 8}, {MPI_C_DOUBLE_COMPLEX, 16, 16},
        {MPI_C_LONG_DOUBLE_COMPLEX, 2 * sizeof(long double), 2 * sizeof(long double)},
        {MPI_AINT, sizeof(MPI_Aint), sizeof(MPI_Aint)}, {MPI_COUNT, 8, 8}, {MPI_OFFSET, 8, 8},
        {MPI_BYTE, 1, 1}, {MPI_PACKED, 1, 1}, {MPI_CXX_BOOL, 1, 1}, {MPI_CXX_FLOAT_COMPLEX, 8, 8},
        {MPI_FLOAT_INT, 8, 8}, {MPI_DOUBLE_INT, 12, 16}, {MPI_LONG_INT, 12, 16}, {MPI_2INT, 8, 8},
        {MPI_SHORT_INT, 6, 8}, {MPI_LONG_DOUBLE_INT, 20, 32},
    };
    char name[MPI_MAX_OBJECT_NAME];
    int length, size, ni, na, nd, combiner;
    MPI_Aint lb, extent;
    MPI_Count wide;

    for (int i = 0; i < COUNT(known); i++) {
        CHECK(MPI_Type_size(known[i].type, &size) == MPI_SUCCESS && size == known[i].size);
        CHECK(MPI_Type_size_c(known[i].type, &wide) == MPI_SUCCESS && wide == known[i].size);
        wide = -1;
        CHECK(MPI_Type_size_x(known[i].type, &wide) == MPI_SUCCESS && wide == known[i].size);
        CHECK(MPI_Type_get_extent(known[i].type, &lb, &extent) == MPI_SUCCESS);
        CHECK(lb == 0 && extent == known[i].extent);
        CHECK(MPI_Type_get_envelope(known[i].type, &ni, &na, &nd, &combiner) == MPI_SUCCESS);
        CHECK(combiner == MPI_COMBINER_NAMED && ni == 0 && na == 0 && nd == 0);
        CHECK(MPI_Type_get_name(known[i].type, name, &length) == MPI_SUCCESS);
        CHECK((size_t)length == strlen(name) && !strncmp(name, "MPI_", 4));
    }
    CHECK(MPI_Type_get_name(MPI_INT, name, &length) == MPI_SUCCESS && !strcmp(name, "MPI_INT"));
    CHECK(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &length) == MPI_SUCCESS);
    CHECK(!strcmp(name, "MPI_DATATYPE_NULL"));
}

static void asked_for(void)
{
    MPI_Datatype one, other;
    int size, ni, na, nd, combiner, numbers[2];
    MPI_Aint address;

    CHECK(MPI_Type_create_f90_real(15, 307, &one) == MPI_SUCCESS);
    CHECK(MPI_Type_create_f90_real(15, 307, &other) == MPI_SUCCESS && one == other);
    CHECK(MPI_Type_size(one, &size) == MPI_SUCCESS && size == 8);
    CHECK(MPI_Type_get_envelope(one, &ni, &na, &nd, &combiner) == MPI_SUCCESS);
    CHECK(combiner == MPI_COMBINER_F90_REAL && ni == 2 && na == 0 && nd == 0);
    CHECK(MPI_Type_get_contents(one, 2, 0, 0, numbers, &address, &other) == MPI_SUCCESS);
    CHECK(numbers[0] == 15 && numbers[1] == 307);
    CHECK(MPI_Type_create_f90_real(6, MPI_UNDEFINED, &one) == MPI_SUCCESS);
    CHECK(MPI_Type_size(one, &size) == MPI_SUCCESS && size == 4);
    CHECK(MPI_Type_create_f90_complex(6, 37, &one) == MPI_SUCCESS);
    CHECK(MPI_Type_size(one, &size) == MPI_SUCCESS && size == 8);
    CHECK(MPI_Type_create_f90_integer(9, &one) == MPI_SUCCESS);
    CHECK(MPI_Type_size(one, &size) == MPI_SUCCESS && size == 4);
    CHECK(MPI_Type_get_envelope(one, &ni, &na, &nd, &combiner) == MPI_SUCCESS);
    CHECK(combiner == MPI_COMBINER_F90_INTEGER && ni == 1);

    CHECK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &one) == MPI_SUCCESS);
    CHECK(MPI_Type_size(one, &size) == MPI_SUCCESS && size == 8);
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 2, &one) == MPI_SUCCESS);
    CHECK(MPI_Type_size(one, &size) == MPI_SUCCESS && size == 2);
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, &one) == MPI_SUCCESS);
    CHECK(MPI_Type_size(one, &size) == MPI_SUCCESS && size == 16);

    CHECK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &one) == MPI_SUCCESS);
    CHECK(one == MPI_DOUBLE_INT);
    CHECK(MPI_Type_get_value_index(MPI_INT, MPI_INT, &one) == MPI_SUCCESS && one == MPI_2INT);
    CHECK(MPI_Type_get_value_index(MPI_C_COMPLEX, MPI_INT, &one) == MPI_SUCCESS);
    CHECK(one == MPI_DATATYPE_NULL);
}

static void copies(void)
{
    MPI_Datatype type, copy;
    MPI_Datatype parts[1];
    char name[MPI_MAX_OBJECT_NAME];
    int length, ni, na, nd, combiner;
    const int places[] = {0, 1, 4, 5};

    CHECK(MPI_Type_vector(2, 1, 2, MPI_SHORT, &type) == MPI_SUCCESS);
    CHECK(MPI_Type_get_name(type, name, &length) == MPI_SUCCESS && length == 0);
    CHECK(MPI_Type_set_name(type, "every other") == MPI_SUCCESS);
    CHECK(MPI_Type_get_name(type, name, &length) == MPI_SUCCESS);
    CHECK(!strcmp(name, "every other") && length == 11);
    CHECK(MPI_Type_commit(&type) == MPI_SUCCESS);
    CHECK(MPI_Type_dup(type, &copy) == MPI_SUCCESS && copy != type);
    CHECK(MPI_Type_get_envelope(copy, &ni, &na, &nd, &combiner) == MPI_SUCCESS);
    CHECK(combiner == MPI_COMBINER_DUP && ni == 0 && na == 0 && nd == 1);
    CHECK(MPI_Type_get_contents(copy, 0, 0, 1, NULL, NULL, parts) == MPI_SUCCESS);
    CHECK(MPI_Type_free(&parts[0]) == MPI_SUCCESS);
    MPI_Type_free(&type);
    packs(copy, 1, places, 4);
    MPI_Type_free(&copy);
    CHECK(MPI_Type_dup(MPI_INT, &copy) == MPI_SUCCESS && copy != MPI_INT);
    CHECK(MPI_Type_get_contents(copy, 0, 0, 1, NULL, NULL, parts) == MPI_SUCCESS);
    CHECK(parts[0] == MPI_INT);
    MPI_Type_free(&copy);
}

static void addresses(void)
{
    double values[4];
    MPI_Aint first, last;
    MPI_Datatype type;
    int position = 0, one = 1;
    double got[2];

    CHECK(MPI_Get_address(values, &first) == MPI_SUCCESS);
    CHECK(MPI_Get_address(values + 3, &last) == MPI_SUCCESS);
    CHECK(MPI_Aint_diff(last, first) == 3 * (MPI_Aint)sizeof(double));
    CHECK(MPI_Aint_add(first, 3 * (MPI_Aint)sizeof(double)) == last);
    values[0] = 1.5;
    values[3] = -2.5;
    CHECK(MPI_Type_create_struct(2, (const int[]){1, 1}, (const MPI_Aint[]){first, last},
                                 (const MPI_Datatype[]){MPI_DOUBLE, MPI_DOUBLE}, &type) ==
          MPI_SUCCESS);
    MPI_Type_commit(&type);
    CHECK(MPI_Pack(MPI_BOTTOM, one, type, got, sizeof got, &position, MPI_COMM_SELF) == MPI_SUCCESS);
    CHECK(got[0] == 1.5 && got[1] == -2.5);
    MPI_Type_free(&type);
}

static void large(void)
{
    MPI_Datatype type;
    MPI_Count size, lb, extent;
    int small;

    CHECK(MPI_Type_contiguous_c((MPI_Count)1 << 40, MPI_SHORT, &type) == MPI_SUCCESS);
    CHECK(MPI_Type_size_c(type, &size) == MPI_SUCCESS && size == (MPI_Count)1 << 41);
    CHECK(MPI_Type_size(type, &small) == MPI_SUCCESS && small == MPI_UNDEFINED);
    CHECK(MPI_Type_get_extent_c(type, &lb, &extent) == MPI_SUCCESS);
    CHECK(lb == 0 && extent == (MPI_Count)1 << 41);
    MPI_Type_free(&type);
}

/* Zero of everything, and datatypes of nothing. */
static void nothing(void)
{
    MPI_Datatype none, bounded, type;
    const int places[] = {0};
    int size;

    CHECK(MPI_Type_contiguous(0, MPI_INT, &none) == MPI_SUCCESS);
    packs(none, 3, places, 0);
    extends(none, 0, 0, 0, 0);
    MPI_Type_free(&none);
    CHECK(MPI_Type_create_struct(0, NULL, NULL, NULL, &none) == MPI_SUCCESS);
    CHECK(MPI_Type_size(none, &size) == MPI_SUCCESS && size == 0);
    MPI_Type_free(&none);
    CHECK(MPI_Type_indexed(0, NULL, NULL, MPI_INT, &none) == MPI_SUCCESS);
    CHECK(MPI_Type_create_resized(none, 4, 12, &bounded) == MPI_SUCCESS);
    CHECK(MPI_Type_contiguous(2, bounded, &type) == MPI_SUCCESS);
    CHECK(MPI_Type_size(type, &size) == MPI_SUCCESS && size == 0);
    MPI_Type_free(&type);
    MPI_Type_free(&bounded);
    MPI_Type_free(&none);
}

/* Sent with one layout and received with another. */
static void sent(void)
{
    int matrix[4][4], column[4], to = (rank + 1) % size, from = (rank + size - 1) % size, one;
    MPI_Datatype type;
    MPI_Status status;
    MPI_Request request;

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) matrix[i][j] = rank * 100 + i * 4 + j;
    MPI_Type_vector(4, 1, 4, MPI_INT, &type);
    MPI_Type_commit(&type);
    CHECK(MPI_Isend(&matrix[0][2], 1, type, to, 5, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(MPI_Recv(column, 4, MPI_INT, from, 5, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < 4; i++) CHECK(column[i] == from * 100 + i * 4 + 2);
    CHECK(MPI_Get_count(&status, type, &one) == MPI_SUCCESS && one == 1);
    CHECK(MPI_Get_elements(&status, type, &one) == MPI_SUCCESS && one == 4);
    /* It may be freed while a message of it is on its way. */
    CHECK(MPI_Isend(column, 4, MPI_INT, to, 6, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(MPI_Recv(&matrix[0][1], 1, type, from, 6, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
    MPI_Type_free(&type);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    from = (from + size - 1) % size;
    for (int i = 0; i < 4; i++) CHECK(matrix[i][1] == from * 100 + i * 4 + 2);
    CHECK(matrix[1][0] == rank * 100 + 4);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    rows();
    lists();
    records();
    parts();
    arrays();
    dealt_out();
    predefined();
    asked_for();
    copies();
    addresses();
    large();
    nothing();
    sent();
    return end("datatype");
}
