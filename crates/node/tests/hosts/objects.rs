//! Objects of one host: processes of other hosts are told where they are.

use landeck::{ErrorKind, MailboxAddress, MailboxError, RegionAddress};

use crate::job::{EACH, RANKS, on_hosts};

#[test]
fn a_mailbox_and_a_region_of_another_host_are_refused_by_name() {
    on_hosts("objects::a_mailbox_and_a_region_of_another_host_are_refused_by_name", |job| {
        let world = job.world();
        let rank = world.rank();
        let mut mailbox = job.create_mailbox().unwrap();
        let region = job.create_region(64).unwrap();
        let (mut mailboxes, mut regions) = ([0u64; 4 * RANKS], [0u64; 4 * RANKS]);
        world.all_gather(&mailbox.address().to_words(), &mut mailboxes).unwrap();
        world.all_gather(&region.address().to_words(), &mut regions).unwrap();
        for other in 0..RANKS {
            let words = |all: &[u64]| -> [u64; 4] { all[4 * other..][..4].try_into().unwrap() };
            let mailbox = MailboxAddress::from_words(words(&mailboxes));
            let region = RegionAddress::from_words(words(&regions));
            let opened = job.open_mailbox_by_address(mailbox);
            let seen = job.open_region(region).map(drop);
            if (other < EACH) == (rank < EACH) {
                opened.unwrap().post_values(&[rank as u64]).unwrap();
                seen.unwrap();
                continue;
            }
            let host = if other < EACH { "n1" } else { "n2" };
            for refused in [opened.map(drop).unwrap_err(), seen.unwrap_err()] {
                let ErrorKind::Mailbox(MailboxError::AnotherHost { owner, host: on, .. }) =
                    &refused.kind
                else {
                    panic!("{refused}")
                };
                assert_eq!((&owner[..], &on[..]), (&format!("rank {other}")[..], host));
            }
        }
        let mut got = [0u64];
        (0..EACH).for_each(|_| assert_eq!(mailbox.retrieve_values(&mut got).unwrap(), 1));
        world.barrier().unwrap();
    });
}
