/*
 * A program without any message passing, for comparison: says "ready", waits for one line on its
 * standard input, and prints its own proportional share of memory. Many copies run at once, so that
 * the pages of the C library are shared between as many processes as in the measured job.
 */
#include <stdio.h>

int main(void) {
    char line[256];
    long pss_kib = -1;

    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 1;

    FILE *rollup = fopen("/proc/self/smaps_rollup", "r");
    if (!rollup) { perror("bare: cannot read /proc/self/smaps_rollup"); return 1; }
    while (fgets(line, sizeof line, rollup)) {
        if (sscanf(line, "Pss: %ld kB", &pss_kib) == 1) break;
    }
    fclose(rollup);
    printf("%ld\n", pss_kib);
    fflush(stdout);

    /* Everybody measures while everybody is still there. */
    return fgets(line, sizeof line, stdin) ? 0 : 1;
}
