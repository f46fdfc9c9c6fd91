/* What depends on the hosts of a job: it holds on one and on several.
   Only here: what others have on several hosts, this library refuses. */
#include "check.h"

static struct host_ranks near;

static int class_of(int code)
{
    int class_;
    MPI_Error_class(code, &class_);
    return class_;
}

static void attributes(void)
{
    int *value, flag, own[2], most[2];
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag) == MPI_SUCCESS);
    CHECK(flag && *value == (near.hosts == 1));
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag) == MPI_SUCCESS);
    CHECK(flag && *value == MPI_PROC_NULL);
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag) == MPI_SUCCESS && flag);
    own[0] = *value, own[1] = -*value;
    MPI_Allreduce(own, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(most[0] == own[0] && most[1] == own[1]);
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag) == MPI_SUCCESS);
    CHECK(flag && *value == size);
}

/* The processes of this host, by each way to ask for them, in the reverse order. */
static void one_host(void)
{
    MPI_Comm part, again;
    MPI_Info info;
    int own, processes, length = 64, flag;
    char text[64];
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
    int ways[3] = {MPI_COMM_TYPE_SHARED, MPI_COMM_TYPE_HW_GUIDED, MPI_COMM_TYPE_RESOURCE_GUIDED};
    for (int i = 0; i < 3; i++) {
        CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, ways[i], -rank, info, &part) == MPI_SUCCESS);
        MPI_Comm_rank(part, &own), MPI_Comm_size(part, &processes);
        CHECK(processes == near.here && own == near.here - 1 - near.before);
        MPI_Comm_free(&part);
    }
    MPI_Info_set(info, "mpi_hw_resource_type", "no such thing");
    CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &part) == MPI_SUCCESS);
    CHECK(part == MPI_COMM_NULL);
    MPI_Info_delete(info, "mpi_hw_resource_type");
    /* A part that is smaller than the whole; the program learns what it is. */
    CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, rank, info, &part) ==
          MPI_SUCCESS);
    MPI_Info_get_string(info, "mpi_hw_resource_type", &length, text, &flag);
    CHECK((part == MPI_COMM_NULL) == (near.hosts == 1) && !flag == (near.hosts == 1));
    if (part != MPI_COMM_NULL) {
        CHECK(!strcmp(text, "mpi_shared_memory"));
        MPI_Comm_size(part, &processes);
        CHECK(processes == near.here);
        CHECK(MPI_Comm_split_type(part, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &again) ==
              MPI_SUCCESS);
        CHECK(again == MPI_COMM_NULL);
        MPI_Comm_free(&part);
    }
    MPI_Info_free(&info);
}

/* Two groups are divided by hosts, too: only processes of one host are left in a part. */
static void two_groups(void)
{
    if (size == 1) return;
    MPI_Comm half, between, part;
    int side = rank % 2, own, others, counts[2] = {0, 0}, all[2];
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
    CHECK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 7, &between) == MPI_SUCCESS);
    CHECK(MPI_Comm_split_type(between, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part) == MPI_SUCCESS);
    MPI_Comm local;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
    counts[side] = 1;
    MPI_Allreduce(counts, all, 2, MPI_INT, MPI_SUM, local);
    CHECK((part != MPI_COMM_NULL) == (all[0] && all[1]));
    if (part != MPI_COMM_NULL) {
        MPI_Comm_size(part, &own), MPI_Comm_remote_size(part, &others);
        CHECK(own == all[side] && others == all[1 - side]);
        MPI_Comm_free(&part);
    }
    MPI_Comm_free(&local), MPI_Comm_free(&between), MPI_Comm_free(&half);
}

/* What is absent is refused by name at the call, on one host and on several. */
static void refused(void)
{
    char port[MPI_MAX_PORT_NAME] = "none", *memory = NULL;
    MPI_Win window = MPI_WIN_NULL;
    MPI_Comm other = MPI_COMM_NULL;
    MPI_File file;
    int wanted = MPI_ERR_UNSUPPORTED_OPERATION;
    MPI_Info none = MPI_INFO_NULL;
    MPI_Comm all = MPI_COMM_WORLD;
    CHECK(class_of(MPI_Win_create(port, 8, 1, none, all, &window)) == wanted);
    CHECK(class_of(MPI_Win_allocate(8, 1, none, all, &memory, &window)) == wanted);
    CHECK(class_of(MPI_Win_allocate_shared(8, 1, none, all, &memory, &window)) == wanted);
    CHECK(class_of(MPI_Win_create_dynamic(none, all, &window)) == wanted);
    CHECK(class_of(MPI_Open_port(none, port)) == wanted);
    CHECK(class_of(MPI_Comm_accept("port", none, 0, all, &other)) == wanted);
    CHECK(class_of(MPI_Comm_connect("port", none, 0, all, &other)) == wanted);
    CHECK(class_of(MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, none, 0, all, &other,
                                  MPI_ERRCODES_IGNORE)) == wanted);
    CHECK(class_of(MPI_File_open(all, "file", MPI_MODE_RDONLY, none, &file)) == wanted);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    near = host_ranks();
    CHECK(near.hosts >= 1 && near.here >= 1 && near.before < near.here);
    attributes();
    one_host();
    two_groups();
    refused();
    return end("hosts");
}
