/* The last node looks at its results with DECK_CHECK, and one of its calls fails: of the mailbox that nobody has, or,
   with an argument, of an error that it has from elsewhere. The others would stay for long. */
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv)
{
    deck_mbox_t mb;
    begin(&argc, &argv);
    if (node == nodes - 1) {
        DECK_CHECK(DECK_OK);
        DECK_CHECK(deck_mbox_create(&mb, "own"));
        printf("up to here\n");
        FAILS(DECK_EHANDLE, deck_mbox_destroy(&(deck_mbox_t)DECK_NOTHING));
        if (argc > 1) DECK_CHECK(DECK_ETIMEDOUT);
        /* What was written so far is not lost. */
        DECK_CHECK(deck_mbox_fetch(&mb, "nobody's"));
        printf("too far\n");
    }
    sleep(300);
    return 0;
}
