/* The last node ends the job with the code given; the others would stay for long. */
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (argc > 1 && node == nodes - 1) deck_abort(atoi(argv[1]), argv[2]);
    sleep(300);
    return 0;
}
