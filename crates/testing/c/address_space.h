/* Processes without memory: the address space of one ends. A front includes it behind its check.h. */
#ifndef ADDRESS_SPACE_H
#define ADDRESS_SPACE_H

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

static struct rlimit usual_space;

/* Comes first. From then on much memory that is freed is the system's at once. */
static inline void watch_space(void)
{
    CHECK(getrlimit(RLIMIT_AS, &usual_space) == 0);
    CHECK(mallopt(M_MMAP_THRESHOLD, 1 << 17));
}

/* From now on there are so many bytes beside those that the process has. */
static inline void leave(size_t bytes)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    struct rlimit limit = { pages * sysconf(_SC_PAGESIZE) + bytes, usual_space.rlim_max };
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static inline void leave_all(void) { CHECK(setrlimit(RLIMIT_AS, &usual_space) == 0); }

#endif
