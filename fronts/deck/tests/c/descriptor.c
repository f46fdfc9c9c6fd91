/* A mailbox tells of its messages by a descriptor that is polled. */
#include "check.h"
#include <poll.h>

int main(int argc, char **argv)
{
    deck_mbox_t mb, next;
    deck_msg_t m;
    char name[16];
    int number = 7, descriptor;
    FAILS(DECK_EVALUE, deck_init_flags(&argc, &argv, 8));
    OK(deck_init_flags(&argc, &argv, DECK_PROGRESS));
    OK(deck_node(&node));
    OK(deck_node_num(&nodes));
    OK(deck_group_world(&all));
    sprintf(name, "%d", node);
    OK(deck_mbox_create(&mb, name));
    OK(deck_mbox_descriptor(&mb, &descriptor));
    struct pollfd poller = { .fd = descriptor, .events = POLLIN };
    CHECK(poll(&poller, 1, 0) == 0);
    OK(deck_collective_barrier(&all));
    sprintf(name, "%d", (node + 1) % nodes);
    OK(deck_mbox_fetch(&next, name));
    OK(deck_msg_create(&m, 0));
    OK(deck_msg_pack(&m, DECK_INT, &number, 1));
    OK(deck_mbox_post(&next, &m));
    CHECK(poll(&poller, 1, 100000) == 1);
    OK(deck_mbox_retrv_try(&mb, &m));
    CHECK(poll(&poller, 1, 0) == 0);
    OK(deck_collective_barrier(&all));
    OK(deck_mbox_destroy(&mb));
    return end("descriptor");
}
