/* Groups, communicators, topologies, sessions: bad arguments are refused with the right class of error.
 * Only here: other libraries leave some of them unchecked. */
#include "check.h"

static int class_of(int code)
{
    int class_;
    MPI_Error_class(code, &class_);
    return class_;
}

static void groups(MPI_Group world)
{
    MPI_Group group = MPI_GROUP_NULL, gone;
    int twice[2] = {0, 0}, far = size, still[1][3] = {{0, 0, 0}}, beyond[1][3] = {{0, size, 1}};
    int result, place;
    CHECK(class_of(MPI_Group_size(MPI_GROUP_NULL, &result)) == MPI_ERR_GROUP);
    CHECK(class_of(MPI_Group_incl(world, 2, twice, &group)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Group_incl(world, 1, &far, &group)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Group_excl(world, 1, &far, &group)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Group_range_incl(world, 1, still, &group)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Group_range_incl(world, 1, beyond, &group)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Group_translate_ranks(world, 1, &far, world, &place)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Group_union(world, MPI_GROUP_NULL, &group)) == MPI_ERR_GROUP);
    CHECK(class_of(MPI_Group_size(world, NULL)) == MPI_ERR_ARG);
    gone = MPI_GROUP_NULL;
    CHECK(class_of(MPI_Group_free(&gone)) == MPI_ERR_GROUP);
}

static void communicators(void)
{
    MPI_Comm comm, null = MPI_COMM_NULL, world = MPI_COMM_WORLD;
    MPI_Group all, alone;
    MPI_Request request;
    CHECK(class_of(MPI_Comm_dup(MPI_COMM_NULL, &comm)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Comm_dup(MPI_COMM_WORLD, NULL)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Comm_idup(MPI_COMM_NULL, &comm, &request)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &comm)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0, MPI_INFO_NULL, &comm)) ==
          MPI_ERR_ARG);
    CHECK(class_of(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &comm)) == MPI_ERR_GROUP);
    CHECK(class_of(MPI_Comm_create_group(MPI_COMM_WORLD, MPI_GROUP_NULL, 0, &comm)) ==
          MPI_ERR_GROUP);
    CHECK(class_of(MPI_Comm_free(&null)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Comm_free(&world)) == MPI_ERR_COMM);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(MPI_COMM_SELF, &alone);
    CHECK(class_of(MPI_Comm_create_group(MPI_COMM_WORLD, alone, -1, &comm)) == MPI_ERR_TAG);
    if (size > 1) CHECK(class_of(MPI_Comm_create(MPI_COMM_SELF, all, &comm)) == MPI_ERR_GROUP);
    MPI_Group_free(&alone);
    MPI_Group_free(&all);
}

static void intercommunicators(MPI_Comm inter, MPI_Comm half)
{
    MPI_Comm made;
    int result, processes, far;
    CHECK(class_of(MPI_Comm_remote_size(half, &result)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Intercomm_merge(half, 0, &made)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Comm_test_inter(MPI_COMM_NULL, &result)) == MPI_ERR_COMM);
    MPI_Comm_remote_size(inter, &processes);
    far = processes;
    CHECK(class_of(MPI_Send(&result, 1, MPI_INT, far, 0, inter)) == MPI_ERR_RANK);
    CHECK(MPI_Comm_compare(inter, half, &result) == MPI_SUCCESS && result == MPI_UNEQUAL);
}

static void topologies(void)
{
    MPI_Comm made;
    int value, negative[2] = {-1, 1}, large[2] = {size + 1, 1}, no[2] = {0, 0}, seven[1] = {7};
    CHECK(class_of(MPI_Cartdim_get(MPI_COMM_WORLD, &value)) == MPI_ERR_TOPOLOGY);
    CHECK(class_of(MPI_Graph_neighbors_count(MPI_COMM_WORLD, 0, &value)) == MPI_ERR_TOPOLOGY);
    CHECK(class_of(MPI_Topo_test(MPI_COMM_NULL, &value)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Cart_create(MPI_COMM_WORLD, 2, negative, no, 0, &made)) == MPI_ERR_DIMS);
    CHECK(class_of(MPI_Cart_create(MPI_COMM_WORLD, 2, large, no, 0, &made)) == MPI_ERR_DIMS);
    CHECK(class_of(MPI_Dims_create(6, 1, seven)) == MPI_ERR_DIMS);
}

static void sessions(void)
{
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Group group;
    int count, length = 0;
    CHECK(class_of(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count)) == MPI_ERR_SESSION);
    CHECK(class_of(MPI_Session_finalize(&session)) == MPI_ERR_SESSION);
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
    CHECK(class_of(MPI_Group_from_session_pset(session, "no set", &group)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, -1, &length, NULL)) ==
          MPI_ERR_ARG);
    CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    MPI_Group world;
    MPI_Comm half, inter;
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    groups(world);
    MPI_Group_free(&world);
    communicators();
    topologies();
    sessions();
    if (size > 1) {
        int is_second = rank >= size / 2;
        MPI_Comm_split(MPI_COMM_WORLD, is_second, 0, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_second ? 0 : size / 2, 17, &inter);
        intercommunicators(inter, half);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
    return end("communicator_refusals");
}
