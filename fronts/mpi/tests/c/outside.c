/* Calls the functions that its arguments name, with zeroes: before MPI_Init, between it and MPI_Finalize,
 * after it. Outside they are refused, but for those whose names begin with "+"; inside they may say what
 * they like, but do no harm. It runs with MPI_ERRORS_RETURN from the beginning. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "check.h"

/* All parameters are integers or addresses; who has fewer of them looks at the first ones alone. */
typedef int (*any)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                   void *, void *, void *, void *, void *, void *);

static int call(const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    any function;
    if (!symbol) {
        fprintf(stderr, "%s is not there\n", name);
        exit(1);
    }
    memcpy(&function, &symbol, sizeof function);
    return function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static int call_all(int argc, char **argv, const char *when)
{
    int wrong = 0;
    for (int index = 1; index < argc; index++) {
        int is_allowed = argv[index][0] == '+';
        int code = call(argv[index] + is_allowed);
        if (is_allowed || !when) continue;
        int class_ = -1;
        MPI_Error_class(code, &class_);
        if (class_ == MPI_ERR_OTHER || class_ == MPI_ERR_UNSUPPORTED_OPERATION) continue;
        fprintf(stderr, "%s %s: %d\n", argv[index], when, code);
        wrong++;
    }
    return wrong;
}

int main(int argc, char **argv)
{
    int wrong = call_all(argc, argv, "before MPI_Init");
    begin(&argc, &argv);
    call_all(argc, argv, NULL);
    /* The job is as it was. */
    MPI_Comm comm;
    int all = -1;
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm) == MPI_SUCCESS);
    CHECK(MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(all == size * (size - 1) / 2);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    wrong += call_all(argc, argv, "after MPI_Finalize");
    if (wrong == 0 && rank == 0) printf("outside: %d processes agree\n", size);
    return wrong != 0;
}
