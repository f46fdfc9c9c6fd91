/* Messages and a collective operation of more than 2 GiB, with counts and with datatypes that no int
 * counts. Needs 7 GiB of memory with two processes; says so and passes where there is less. */
#include "check.h"

#include <stdint.h>

static const MPI_Count LENGTH = ((MPI_Count)1 << 31) + 4096 + 3;

static unsigned char value_at(MPI_Count place) { return (unsigned char)(place * 31 + (place >> 20)); }

static unsigned char *filled(void)
{
    unsigned char *buffer = malloc((size_t)LENGTH);
    CHECK(buffer);
    for (MPI_Count place = 0; place < LENGTH; place++) buffer[place] = value_at(place);
    return buffer;
}

static void check(const unsigned char *buffer)
{
    for (MPI_Count place = 0; place < LENGTH; place++) CHECK(buffer[place] == value_at(place));
}

/* Bytes by count; the other side takes them as one item of a datatype. */
static void by_count(void)
{
    if (rank == 0) {
        unsigned char *buffer = filled();
        CHECK(MPI_Send_c(buffer, LENGTH, MPI_BYTE, 1, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
        free(buffer);
    } else if (rank == 1) {
        unsigned char *buffer = calloc((size_t)LENGTH, 1);
        MPI_Datatype whole;
        MPI_Status status;
        MPI_Count count;
        int narrow;
        MPI_Type_contiguous_c(LENGTH, MPI_BYTE, &whole);
        MPI_Type_commit(&whole);
        MPI_Type_size(whole, &narrow);
        MPI_Type_size_c(whole, &count);
        CHECK(narrow == MPI_UNDEFINED && count == LENGTH);
        CHECK(MPI_Recv(buffer, 1, whole, 0, 1, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
        CHECK(MPI_Get_count_c(&status, MPI_BYTE, &count) == MPI_SUCCESS && count == LENGTH);
        CHECK(MPI_Get_count(&status, MPI_BYTE, &narrow) == MPI_SUCCESS && narrow == MPI_UNDEFINED);
        CHECK(MPI_Get_elements_c(&status, whole, &count) == MPI_SUCCESS && count == LENGTH);
        check(buffer);
        MPI_Type_free(&whole);
        free(buffer);
    }
}

/* Two pieces with a gap of more than 2 GiB between them, in memory that is only touched there. */
static void with_a_gap(void)
{
    const MPI_Count far = ((MPI_Count)5 << 30) + 8;
    MPI_Count lengths[2] = {1000, 3000}, places[2] = {0, far};
    MPI_Datatype pieces;
    MPI_Count lower, extent;
    MPI_Type_create_hindexed_c(2, lengths, places, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    MPI_Type_get_extent_c(pieces, &lower, &extent);
    CHECK(lower == 0 && extent == far + 3000);
    unsigned char *buffer = calloc((size_t)(far + 3000), 1);
    CHECK(buffer);
    if (rank == 0)
        for (int place = 0; place < 3000; place++) {
            if (place < 1000) buffer[place] = value_at(place);
            buffer[far + place] = value_at(place + 7);
        }
    CHECK(MPI_Bcast(buffer, 1, pieces, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int place = 0; place < 3000; place++) {
        CHECK(buffer[place] == (place < 1000 ? value_at(place) : 0));
        CHECK(buffer[far + place] == value_at(place + 7));
    }
    free(buffer);
    MPI_Type_free(&pieces);
}

static void collective(void)
{
    unsigned char *buffer = rank == 0 ? filled() : (unsigned char *)calloc((size_t)LENGTH, 1);
    CHECK(MPI_Bcast_c(buffer, LENGTH, MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    if (rank != 0) check(buffer);
    free(buffer);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (have_memory_gib("large", 9)) {
        by_count();
        with_a_gap();
        collective();
    }
    return end("large");
}
