//! Links between hosts are measured once, by both ends, within a bounded time.

use landeck_protocols::hosts::LinkSight;
use landeck_protocols::hosts::measuring::{round_time, rounds};
use landeck_testing::Watchdog;

use super::*;
use crate::figures::LinkFindings;

type Found = Vec<(HostNumber, LinkSight)>;

impl Daemon {
    /// Waits until all rounds are over for this host.
    fn wait_links(&self) -> Found {
        let give_up = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = self.ask(|context| context.take_links()) {
                return found;
            }
            assert!(Instant::now() < give_up, "{}: links were not measured", self.entry.name);
        }
    }

    /// Begins to measure; returns the time since the daemon began.
    fn measure_links(&self, secret: [u8; 32], hosts: &[u16]) {
        let hosts: Vec<HostNumber> = hosts.iter().map(|host| HostNumber(*host)).collect();
        self.ask(move |context| context.measure_links(secret, hosts));
    }
}

fn machine() -> [Daemon; 3] {
    let mut zero = arbiter();
    let one = host(&mut zero, Way::default());
    let two = host(&mut zero, Way::default());
    let mut all = [zero, one, two];
    all[1].wait_up(0);
    all[2].wait_up(0);
    for daemon in &mut all {
        let is_last = |content: &WordContent| matches!(content, WordContent::HostJoined(entry) if entry.host.0 == 2);
        daemon.wait_word(is_last);
    }
    all
}

#[test]
fn each_pair_of_hosts_is_measured() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    // On a busy machine the time of a round may not suffice; then a link is not known, and a later machine knows it.
    for attempt in 1.. {
        let all = machine();
        all.iter().for_each(|daemon| daemon.measure_links([7; 32], &[0, 1, 2]));
        let found = all.each_ref().map(Daemon::wait_links);
        let mut findings = LinkFindings::default();
        for (host, found) in (0..).zip(&found) {
            findings.add(HostNumber(host), found);
        }
        let links = findings.settled(&[HostNumber(0), HostNumber(1), HostNumber(2)]);
        let hosts: Vec<(u16, u16)> =
            links.iter().map(|link| (link.hosts.0.0, link.hosts.1.0)).collect();
        let is_known = links.iter().all(|link| link.words.iter().all(|word| *word > 0));
        if hosts == [(0, 1), (0, 2), (1, 2)] && is_known {
            // Some microseconds, and some GB/s: no network is a thousand times faster.
            assert!(links.iter().all(|link| link.words[0] > 10_000 && link.words[2] > 100));
            let (first, last) = (all[0].entry.host, all[2].entry.host);
            assert!(found[0].iter().any(|(host, _)| *host == last));
            assert!(found[2].iter().any(|(host, _)| *host == first));
            return;
        }
        assert!(attempt < 20, "{links:?}");
    }
}

#[test]
fn a_partner_that_does_not_come_costs_its_round_alone() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [zero, one, two] = machine();
    let began = Instant::now();
    // Host 1 knows another secret, and host 2 does not measure.
    zero.measure_links([7; 32], &[0, 1, 2]);
    one.measure_links([8; 32], &[0, 1, 2]);
    let found = [zero.wait_links(), one.wait_links()];
    for (_, sight) in found.iter().flatten() {
        assert_eq!(sight.to_words(), [0; 3], "{found:?}");
    }
    assert!(began.elapsed() >= round_time(3) * rounds(3) as u32);
    // Nobody waits for a host that comes behind that.
    two.measure_links([7; 32], &[0, 1, 2]);
    assert!(two.wait_links().iter().all(|(_, sight)| *sight == LinkSight::default()));
}
