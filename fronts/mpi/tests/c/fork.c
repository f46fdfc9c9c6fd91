#define _GNU_SOURCE
/* A child made by fork is no member of the job: what needs the job is refused there, nothing that the child does
   reaches its parent, and its parent goes on. Arguments: a way, and for "all" the functions to call. */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* How a child ends that finds something wrong. */
#define CHILD_CHECK(condition)                                                                       \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "%s:%d: the child: %s is false\n", __FILE__, __LINE__, #condition);      \
            _exit(99);                                                                               \
        }                                                                                            \
    } while (0)

typedef int (*any_function)(long, long, long, long, long, long, long, long, long, long);

/* The exit code of a child; a death is -1. */
static int code_of(pid_t child)
{
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int is_refused(const char *name)
{
    any_function function = (any_function)dlsym(RTLD_DEFAULT, name);
    CHILD_CHECK(function != NULL);
    int code = function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    if (code == MPI_ERR_OTHER || code == MPI_ERR_UNSUPPORTED_OPERATION) return 1;
    fprintf(stderr, "%s gives a child %d\n", name, code);
    return 0;
}

static char *memory;
static MPI_Comm twin;

/* Everything is refused, to a child of the child as well. */
static void refused(int count, char **names)
{
    int flag = 0, all = 1, value = 1;
    CHILD_CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && flag);
    CHILD_CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && flag);
    for (int i = 0; i < count; i++) all &= is_refused(names[i]);
    CHILD_CHECK(all);
    CHILD_CHECK(MPI_Send(&value, 1, MPI_INT, rank, 0, MPI_COMM_WORLD) == MPI_ERR_OTHER);
    CHILD_CHECK(MPI_Barrier(twin) == MPI_ERR_OTHER);
    CHILD_CHECK(MPI_Init(NULL, NULL) == MPI_ERR_OTHER);
    memory[0] = 2;
    pid_t grandchild = fork();
    if (grandchild == 0) {
        CHILD_CHECK(memory[0] == 2 && MPI_Barrier(MPI_COMM_WORLD) == MPI_ERR_OTHER);
        exit(7);
    }
    int status = 0;
    CHILD_CHECK(waitpid(grandchild, &status, 0) == grandchild && WEXITSTATUS(status) == 7);
    exit(8);
}

/* Children have the error handlers that their parent had. */
static void return_errors(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(twin, MPI_ERRORS_RETURN);
}

static void *forks(void *ignored)
{
    pid_t child = fork();
    if (child == 0) exit(MPI_Barrier(MPI_COMM_WORLD) == MPI_ERR_OTHER ? 9 : 99);
    CHECK(code_of(child) == 9);
    return ignored;
}

/* What starts other programs works as ever. */
static void others_start(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, forks, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(system("exit 5") >> 8 == 5);
    FILE *pipe = popen("echo word", "r");
    char word[10] = "";
    CHECK(pipe && fgets(word, sizeof word, pipe) && !strcmp(word, "word\n") && pclose(pipe) == 0);
    char *const arguments[] = { "sh", "-c", "exit 6", NULL };
    pid_t child;
    CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0 && code_of(child) == 6);
    child = vfork();
    if (child == 0) {
        execv("/bin/sh", arguments);
        _exit(99);
    }
    CHECK(code_of(child) == 6);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "all";
    if (!strcmp(way, "session")) {
        /* Its end at the end of the process is the parent's alone. */
        MPI_Session session;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
        MPI_Session_finalize(&session);
    }
    begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    CHECK(MPI_Alloc_mem(100, MPI_INFO_NULL, &memory) == MPI_SUCCESS);
    memory[0] = 1;
    if (strcmp(way, "fatal")) return_errors();
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        if (!strcmp(way, "abort")) MPI_Abort(MPI_COMM_WORLD, argc > 2 ? atoi(argv[2]) : 3);
        if (!strcmp(way, "fatal")) MPI_Barrier(MPI_COMM_WORLD);
        refused(argc > 2 ? argc - 2 : 0, argv + 2);
    }
    int code = code_of(child);
    if (!strcmp(way, "abort")) CHECK(code == (argc > 2 ? 1 : 3));
    else if (!strcmp(way, "fatal")) CHECK(code == MPI_ERR_OTHER);
    else CHECK(code == 8);
    CHECK(memory[0] == 1);
    return_errors();
    others_start();
    CHECK(MPI_Free_mem(memory) == MPI_SUCCESS && MPI_Comm_free(&twin) == MPI_SUCCESS);
    return end("fork");
}
