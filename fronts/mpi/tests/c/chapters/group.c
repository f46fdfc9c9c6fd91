/* Groups: sets of processes in an order, made of others, compared and translated. */
#include "check.h"

static int compared(MPI_Group one, MPI_Group other)
{
    int result;
    CHECK(MPI_Group_compare(one, other, &result) == MPI_SUCCESS);
    return result;
}

static int size_of(MPI_Group group)
{
    int processes;
    CHECK(MPI_Group_size(group, &processes) == MPI_SUCCESS);
    return processes;
}

static void inclusion(MPI_Group world)
{
    MPI_Group backwards, first, rest, union_, common, part;
    int *ranks = malloc(sizeof(int) * (size_t)size), own, zero = 0;
    for (int i = 0; i < size; i++) ranks[i] = size - 1 - i;
    CHECK(MPI_Group_incl(world, size, ranks, &backwards) == MPI_SUCCESS);
    CHECK(MPI_Group_rank(backwards, &own) == MPI_SUCCESS && own == size - 1 - rank);
    CHECK(compared(world, backwards) == (size == 1 ? MPI_IDENT : MPI_SIMILAR));
    CHECK(MPI_Group_incl(world, 1, &zero, &first) == MPI_SUCCESS && size_of(first) == 1);
    CHECK(MPI_Group_rank(first, &own) == MPI_SUCCESS && own == (rank ? MPI_UNDEFINED : 0));
    CHECK(MPI_Group_excl(world, 1, &zero, &rest) == MPI_SUCCESS && size_of(rest) == size - 1);
    CHECK((rest == MPI_GROUP_EMPTY) == (size == 1));
    CHECK(MPI_Group_union(rest, first, &union_) == MPI_SUCCESS && size_of(union_) == size);
    CHECK(MPI_Group_rank(union_, &own) == MPI_SUCCESS && own == (rank ? rank - 1 : size - 1));
    CHECK(MPI_Group_intersection(rest, first, &common) == MPI_SUCCESS);
    CHECK(common == MPI_GROUP_EMPTY && size_of(common) == 0);
    CHECK(MPI_Group_difference(backwards, rest, &part) == MPI_SUCCESS);
    CHECK(compared(part, first) == MPI_IDENT);
    CHECK(compared(rest, first) == MPI_UNEQUAL);
    MPI_Group_free(&part);
    MPI_Group_free(&common);
    MPI_Group_free(&union_);
    MPI_Group_free(&rest);
    MPI_Group_free(&first);
    CHECK(MPI_Group_free(&backwards) == MPI_SUCCESS && backwards == MPI_GROUP_NULL);
    free(ranks);
}

static void ranges(MPI_Group world)
{
    MPI_Group even, odd, down;
    int every_other[1][3] = {{0, size - 1, 2}}, all_down[1][3] = {{size - 1, 0, -1}}, own;
    CHECK(MPI_Group_range_incl(world, 1, every_other, &even) == MPI_SUCCESS);
    CHECK(MPI_Group_range_excl(world, 1, every_other, &odd) == MPI_SUCCESS);
    CHECK(size_of(even) == (size + 1) / 2 && size_of(odd) == size / 2);
    MPI_Group_rank(rank % 2 ? odd : even, &own);
    CHECK(own == rank / 2);
    CHECK(MPI_Group_range_incl(world, 1, all_down, &down) == MPI_SUCCESS);
    MPI_Group_rank(down, &own);
    CHECK(own == size - 1 - rank);

    int ranks[3] = {0, MPI_PROC_NULL, size - 1}, translated[3];
    CHECK(MPI_Group_translate_ranks(world, 3, ranks, even, translated) == MPI_SUCCESS);
    CHECK(translated[0] == 0 && translated[1] == MPI_PROC_NULL);
    CHECK(translated[2] == (size % 2 ? size / 2 : MPI_UNDEFINED));
    /* A stride that leads away from the last rank, or nowhere. */
    int away[3][3] = {{0, size, -1}, {size, 0, 2}, {0, 0, 0}};
    for (int at = 0; at < 3; at++) {
        MPI_Group nobody = MPI_GROUP_NULL;
        int code = MPI_Group_range_incl(world, 1, &away[at], &nobody), class_;
        MPI_Error_class(code, &class_);
        CHECK((class_ == MPI_ERR_ARG || class_ == MPI_ERR_RANK) && nobody == MPI_GROUP_NULL);
    }
    MPI_Group_free(&down);
    MPI_Group_free(&odd);
    MPI_Group_free(&even);
}

int main(int argc, char **argv)
{
    MPI_Group world, again, none = MPI_GROUP_EMPTY;
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS && size_of(world) == size);
    CHECK(MPI_Comm_group(MPI_COMM_WORLD, &again) == MPI_SUCCESS);
    CHECK(compared(world, again) == MPI_IDENT && compared(none, none) == MPI_IDENT);
    CHECK(compared(world, none) == MPI_UNEQUAL && size_of(none) == 0);
    inclusion(world);
    ranges(world);
    MPI_Group_free(&again);
    MPI_Group_free(&world);
    return end("group");
}
