// The same program with exceptions in place of jumps.
#include "escapes.c"
