/* Structures in the portable format.
 * Only here: MPICH 5.0.2 crashes. */
#include <stddef.h>

#include "check.h"

/* Records with gaps, more than are converted at once. */
static void portable_records(void)
{
    enum { many = 30000 };
    struct record {
        short kind;
        double value;
        char name[3];
    } *records = malloc(many * sizeof *records), *back = calloc(many, sizeof *back);
    MPI_Datatype packed, type;
    MPI_Count need, at = 0;
    unsigned char *external;

    MPI_Type_create_struct(3, (const int[]){1, 1, 3},
                           (const MPI_Aint[]){offsetof(struct record, kind),
                                              offsetof(struct record, value),
                                              offsetof(struct record, name)},
                           (const MPI_Datatype[]){MPI_SHORT, MPI_DOUBLE, MPI_CHAR}, &packed);
    MPI_Type_create_resized(packed, 0, sizeof *records, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < many; i++) {
        records[i].kind = (short)i;
        records[i].value = i * 0.5;
        memcpy(records[i].name, "abc", 3);
    }
    CHECK(MPI_Pack_external_size_c("external32", many, type, &need) == MPI_SUCCESS);
    CHECK(need == many * 13);
    external = malloc((size_t)need);
    CHECK(MPI_Pack_external_c("external32", records, many, type, external, need, &at) == MPI_SUCCESS);
    CHECK(at == need && external[13] == 0 && external[14] == 1);
    at = 0;
    CHECK(MPI_Unpack_external_c("external32", external, need, &at, back, many, type) == MPI_SUCCESS);
    CHECK(at == need);
    for (int i = 0; i < many; i++) {
        CHECK(back[i].kind == (short)i && back[i].value == i * 0.5);
        CHECK(!memcmp(back[i].name, "abc", 3));
    }
    MPI_Type_free(&type);
    MPI_Type_free(&packed);
    free(external);
    free(records);
    free(back);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    portable_records();
    return end("pack_records");
}
