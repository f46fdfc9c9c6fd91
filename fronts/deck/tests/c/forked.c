#define _GNU_SOURCE
/* A child made by fork is no member of the job: every function is refused there, nothing that it does or leaves
   behind reaches its parent, and its parent goes on. Arguments: "abort", "check", or the functions to call. */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* How a child ends that finds something wrong. */
#define CHILD_CHECK(condition)                                                                  \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "%s:%d: the child: %s is false: %s\n", __FILE__, __LINE__,          \
                    #condition, deck_error_text());                                             \
            _exit(98);                                                                          \
        }                                                                                       \
    } while (0)

typedef int (*any_function)(long, long, long, long, long, long);

static deck_sem_t lock;
static deck_mbox_t inbox;
static deck_segment_t field;
static deck_group_t group;

static void refused(int count, char **names)
{
    deck_sem_t other;
    deck_mbox_t box;
    deck_segment_t segment;
    deck_msg_t message;
    for (int i = 0; i < count; i++) {
        any_function function = (any_function)dlsym(RTLD_DEFAULT, names[i]);
        if (!function || function(0, 0, 0, 0, 0, 0) != DECK_EFORKED) {
            fprintf(stderr, "%s is not refused: %s\n", names[i], deck_error_text());
            _exit(97);
        }
    }
    CHILD_CHECK(deck_sem_v(&lock) == DECK_EFORKED);
    CHILD_CHECK(strstr(deck_error_text(), "deck_sem_v: this process was made by fork"));
    CHILD_CHECK(deck_sem_create(&other, "child's", 1) == DECK_EFORKED);
    CHILD_CHECK(deck_mbox_create(&box, "child's") == DECK_EFORKED);
    CHILD_CHECK(deck_segment_create(&segment, "child's", 8) == DECK_EFORKED);
    CHILD_CHECK(deck_mbox_destroy(&inbox) == DECK_EFORKED);
    CHILD_CHECK(deck_segment_destroy(&field) == DECK_EFORKED);
    CHILD_CHECK(deck_group_leave(&group) == DECK_EFORKED);
    CHILD_CHECK(deck_msg_create(&message, 0) == DECK_EFORKED);
    CHILD_CHECK(deck_init(NULL, NULL) == DECK_EFORKED);
    CHILD_CHECK(deck_done() == DECK_EFORKED);
    CHILD_CHECK(!strcmp(deck_error_name(DECK_EFORKED), "DECK_EFORKED"));
}

static int code_of(pid_t child)
{
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void *forks(void *ignored)
{
    pid_t child = fork();
    if (child == 0) exit(deck_sem_v(&lock) == DECK_EFORKED ? 9 : 99);
    CHECK(code_of(child) == 9);
    return ignored;
}

int main(int argc, char **argv)
{
    char name[40], box[40], group_name[40], own[40];
    int units, members, expected = 8;
    void *start;
    deck_msg_t message;
    deck_mbox_t found;
    deck_sem_t other;
    deck_segment_t segment;
    pthread_t thread;
    begin(&argc, &argv);
    snprintf(name, sizeof name, "lock %d", node);
    snprintf(box, sizeof box, "inbox %d", node);
    snprintf(group_name, sizeof group_name, "group %d", node);
    snprintf(own, sizeof own, "child's");
    OK(deck_sem_create(&lock, name, 1));
    OK(deck_sem_p(&lock));
    OK(deck_mbox_create(&inbox, box));
    OK(deck_segment_create(&field, name, 8));
    OK(deck_segment_address(&field, &start, NULL));
    OK(deck_group_create(&group, group_name, 1));
    OK(deck_group_join(&group, &inbox, group_name));
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        if (argc > 1 && !strcmp(argv[1], "abort")) {
            deck_abort(7, "a child gives up");
            _exit(99);
        }
        if (argc > 1 && !strcmp(argv[1], "check")) {
            DECK_CHECK(deck_sem_v(&lock));
            _exit(99);
        }
        refused(argc - 1, argv + 1);
        pid_t grandchild = fork();
        if (grandchild == 0) exit(deck_sem_v(&lock) == DECK_EFORKED ? 9 : 99);
        int status = 0;
        CHILD_CHECK(waitpid(grandchild, &status, 0) == grandchild && WEXITSTATUS(status) == 9);
        /* With all that the process has registered, and what its threads have. */
        exit(8);
    }
    if (argc > 1 && !strcmp(argv[1], "abort")) expected = 7;
    if (argc > 1 && !strcmp(argv[1], "check")) expected = 1;
    CHECK(code_of(child) == expected);
    CHECK(pthread_create(&thread, NULL, forks, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(system("exit 5") >> 8 == 5);
    /* The parent has what it had, and nothing more is there. */
    OK(deck_sem_value(&lock, &units));
    CHECK(units == 0);
    OK(deck_sem_v(&lock));
    OK(deck_sem_value(&lock, &units));
    CHECK(units == 1);
    OK(deck_mbox_fetch(&found, box));
    OK(deck_msg_create(&message, 0));
    OK(deck_mbox_post(&found, &message));
    OK(deck_mbox_retrv(&inbox, &message));
    OK(deck_group_view(&group, NULL, 0, &members));
    CHECK(members == 1);
    OK(deck_group_leave(&group));
    if (node == 0) {
        FAILS(DECK_EUNKNOWN, deck_sem_fetch(&other, own));
        FAILS(DECK_EUNKNOWN, deck_mbox_fetch(&found, own));
        FAILS(DECK_EUNKNOWN, deck_segment_fetch(&segment, own));
    }
    return end("forked");
}
