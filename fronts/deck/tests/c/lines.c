/* Writes a line and is killed before it is through with the next. */
#include "check.h"
#include <signal.h>

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    printf("whole\npart");
    raise(SIGKILL);
    return 0;
}
