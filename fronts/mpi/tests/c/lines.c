/* Writes two lines and a part of a third, then is killed. The first argument says which buffer the
   program chooses for its standard output, and when: its own before or after MPI_Init, none, the usual
   one, or, by "early", that it writes a line before MPI_Init and chooses nothing. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static char room[1 << 16];

static void choose(const char *buffer)
{
    if (strcmp(buffer, "own") == 0) setvbuf(stdout, room, _IOFBF, sizeof room);
    if (strcmp(buffer, "none") == 0) setvbuf(stdout, NULL, _IONBF, 0);
    if (strcmp(buffer, "usual") == 0) setvbuf(stdout, NULL, _IOFBF, 0);
    if (strcmp(buffer, "early") == 0) puts("early");
}

int main(int argc, char **argv)
{
    const char *buffer = argc > 1 ? argv[1] : "";
    if (strcmp(buffer, "later") != 0) choose(buffer);
    MPI_Init(&argc, &argv);
    if (strcmp(buffer, "later") == 0) choose("own");
    putchar('1');
    putchar('\n');
    printf("second\nthird");
    raise(SIGKILL);
    return 0;
}
