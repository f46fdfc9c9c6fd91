/* Calls each function that its arguments name, with zeroes, under both names: it is not supported, and
 * an error handler of the program is told so. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "check.h"

static int told;

static void handler(MPI_Comm *comm, int *code, ...)
{
    CHECK(*comm == MPI_COMM_SELF);
    told = *code;
}

/* All parameters are integers or addresses; who has fewer of them looks at the first ones alone. */
typedef int (*any)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                   void *, void *, void *, void *, void *, void *);

static void call(const char *prefix, const char *name)
{
    char full[128];
    void *symbol;
    any function;
    int code;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    symbol = dlsym(RTLD_DEFAULT, full);
    if (!symbol) fprintf(stderr, "%s is not there\n", full);
    CHECK(symbol);
    memcpy(&function, &symbol, sizeof function);
    told = 0;
    code = function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    if (code != MPI_ERR_UNSUPPORTED_OPERATION) fprintf(stderr, "%s: %d\n", full, code);
    CHECK(code == MPI_ERR_UNSUPPORTED_OPERATION);
    /* Files have a handler of their own, which returns; the tool interface has none. */
    if (strncmp(name, "MPI_T_", 6) && strncmp(name, "MPI_File_", 9)) CHECK(told == code);
}

int main(int argc, char **argv)
{
    MPI_Errhandler own;
    int index;
    begin(&argc, &argv);
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
    for (index = 1; index < argc; index++) {
        call("", argv[index]);
        call("P", argv[index]);
    }
    return end("unsupported");
}
