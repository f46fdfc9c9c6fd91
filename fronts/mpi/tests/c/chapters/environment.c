/* Versions, thread levels, the clock, memory; and what may be called at any time. */
#include "check.h"

/* Whether other processes can reach the memory at an address. */
static int is_shared(const void *address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096], rights[8] = "";
    unsigned long start, end;

    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 &&
            start <= (unsigned long)address && (unsigned long)address < end)
            break;
    fclose(maps);
    return rights[3] == 's';
}

/* Several pieces at a time, of all sizes; each is its owner's alone, and a message like any other. */
static void allocate(void)
{
    enum { PIECES = 12 };
    char *pieces[PIECES], *other;
    int piece, after = (rank + 1) % size, before = (rank + size - 1) % size;

    for (piece = 0; piece < PIECES; piece++) {
        size_t bytes = (size_t)1 << (2 * piece);
        CHECK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &pieces[piece]) == MPI_SUCCESS);
        CHECK(piece > 0 || is_shared(pieces[piece]) || !is_ours());
        memset(pieces[piece], rank + piece, bytes);
    }
    for (piece = 0; piece < PIECES; piece++) {
        size_t bytes = (size_t)1 << (2 * piece);
        CHECK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &other) == MPI_SUCCESS);
        CHECK(MPI_Sendrecv(pieces[piece], (int)bytes, MPI_CHAR, after, piece, other, (int)bytes,
                           MPI_CHAR, before, piece, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(other[0] == before + piece && other[bytes - 1] == before + piece);
        CHECK(pieces[piece][0] == rank + piece && pieces[piece][bytes - 1] == rank + piece);
        CHECK(MPI_Free_mem(other) == MPI_SUCCESS);
    }
    for (piece = 0; piece < PIECES; piece++) CHECK(MPI_Free_mem(pieces[piece]) == MPI_SUCCESS);
}

/* More than the heap of a process has: the rest is private, and messages still find room. */
static void allocate_much(void)
{
    enum { PIECES = 20 };
    const MPI_Aint bytes = 16 << 20;
    char *pieces[PIECES];
    int piece, root;

    for (piece = 0; piece < PIECES; piece++) {
        CHECK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &pieces[piece]) == MPI_SUCCESS);
        pieces[piece][0] = pieces[piece][bytes - 1] = (char)piece;
    }
    CHECK(!is_shared(pieces[PIECES - 1]) || !is_ours());
    for (root = 0; root < size; root++)
        CHECK(MPI_Bcast(pieces[root % PIECES], 1 << 20, MPI_CHAR, root, MPI_COMM_WORLD) ==
              MPI_SUCCESS);
    for (piece = 0; piece < PIECES; piece++) {
        CHECK(pieces[piece][0] == piece && pieces[piece][bytes - 1] == piece);
        CHECK(MPI_Free_mem(pieces[piece]) == MPI_SUCCESS);
    }
}

/* Memory that begins where it was asked to, and what is refused. The standard asks no library to find
   such mistakes. */
static void ask_wrongly(void)
{
    MPI_Info info;
    char *memory, local[64];

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096");
    CHECK(MPI_Alloc_mem(100, info, &memory) == MPI_SUCCESS);
    CHECK((size_t)memory % 4096 == 0 || !is_ours());
    MPI_Info_free(&info);
    if (is_ours()) {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        CHECK(MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory) == MPI_ERR_ARG);
        CHECK(MPI_Alloc_mem((MPI_Aint)1 << 62, MPI_INFO_NULL, &memory) == MPI_ERR_NO_MEM);
        CHECK(MPI_Alloc_mem(1, MPI_INFO_NULL, NULL) == MPI_ERR_ARG);
        CHECK(MPI_Free_mem(local) == MPI_ERR_BASE);
        CHECK(MPI_Free_mem(NULL) == MPI_ERR_BASE);
        CHECK(MPI_Free_mem(memory + 64) == MPI_ERR_BASE);
    }
    CHECK(MPI_Free_mem(memory) == MPI_SUCCESS);
    if (is_ours()) CHECK(MPI_Free_mem(memory) == MPI_ERR_BASE);
}

/* Each kind of hardware that is named can be split by; who is bound to a single one has a part. */
static void hardware(void)
{
    MPI_Info kinds, info;
    MPI_Comm part;
    int kind, count, flag, length, all;
    char key[MPI_MAX_INFO_KEY + 1], value[8];

    CHECK(MPI_Get_hw_resource_info(&kinds) == MPI_SUCCESS);
    CHECK(MPI_Info_get_nkeys(kinds, &count) == MPI_SUCCESS);
    CHECK(count > 0 || !is_ours());
    /* All have the same keys: they are on one host. */
    for (kind = 0; kind < count && is_ours(); kind++) {
        CHECK(MPI_Info_get_nthkey(kinds, kind, key) == MPI_SUCCESS && !strncmp(key, "hwloc://", 8));
        length = sizeof value;
        CHECK(MPI_Info_get_string(kinds, key, &length, value, &flag) == MPI_SUCCESS && flag);
        CHECK(!strcmp(value, "true") || !strcmp(value, "false"));
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_hw_resource_type", key);
        CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &part) ==
              MPI_SUCCESS);
        MPI_Info_free(&info);
        CHECK((part != MPI_COMM_NULL) == !strcmp(value, "true"));
        if (part == MPI_COMM_NULL) continue;
        MPI_Comm_size(part, &all);
        CHECK(all >= 1 && all <= size);
        MPI_Comm_free(&part);
    }
    MPI_Info_free(&kinds);
}

int main(int argc, char **argv)
{
    int flag, level, version, subversion, length;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    double before;
    MPI_Info info;
    unsigned char *kept;
    size_t place;
    enum { KEPT = 1 << 20 };

    /* What is asked for is there because it was asked for. */
    flag = 7;
    CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && !flag);
    flag = 7;
    CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && !flag);
    version = subversion = -1;
    CHECK(MPI_Get_version(&version, &subversion) == MPI_SUCCESS);
    CHECK(version == MPI_VERSION && subversion == MPI_SUBVERSION);
    version = subversion = -1;
    CHECK(MPI_Abi_get_version(&version, &subversion) == MPI_SUCCESS);
    CHECK(version == MPI_ABI_VERSION && subversion == MPI_ABI_SUBVERSION);
    CHECK(MPI_Get_library_version(text, &length) == MPI_SUCCESS);
    CHECK(length > 0 && strlen(text) == (size_t)length);

    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    level = -1;
    CHECK(MPI_Query_thread(&level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE);
    flag = 0;
    CHECK(MPI_Is_thread_main(&flag) == MPI_SUCCESS && flag);
    flag = 0;
    CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && flag);
    memset(text, 0, sizeof text);
    length = -1;
    CHECK(MPI_Get_processor_name(text, &length) == MPI_SUCCESS && length > 0);
    CHECK(strlen(text) == (size_t)length);

    before = MPI_Wtime();
    CHECK(MPI_Wtime() >= before && MPI_Wtick() > 0 && MPI_Wtick() < 1);
    CHECK(MPI_Pcontrol(2, "anything", 1.5) == MPI_SUCCESS);

    allocate();
    allocate_much();
    ask_wrongly();
    hardware();

    CHECK(MPI_Abi_get_info(&info) == MPI_SUCCESS);
    length = sizeof text;
    CHECK(MPI_Info_get_string(info, "mpi_aint_size", &length, text, &flag) == MPI_SUCCESS);
    CHECK(flag && atoi(text) == (int)sizeof(MPI_Aint));
    MPI_Info_free(&info);

    /* Memory that the program keeps stays as it is, also when nobody is in the job any more. */
    CHECK(MPI_Alloc_mem(KEPT, MPI_INFO_NULL, &kept) == MPI_SUCCESS);
    for (place = 0; place < KEPT; place++) kept[place] = pattern(rank, 1, place);
    CHECK(end("environment") == MPI_SUCCESS);
    flag = 0;
    CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && flag);
    for (place = 0; place < KEPT; place++)
        if (kept[place] != pattern(rank, 1, place)) return 1;
    return 0;
}
