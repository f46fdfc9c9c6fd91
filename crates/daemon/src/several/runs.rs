//! Daemons that are killed and started again within one incarnation of their hosts.

use landeck_testing::Watchdog;
use landeck_wire::handover::Handover;

use super::lanes::{JOB, Process, assert_connected, id, parts, three};
use super::*;

/// Begins the next run of a daemon that was killed.
fn begin_again((killed, port): (Killed, KeptPort), parts: Vec<KeptPart>) -> Daemon {
    announce_with(Some(port), None).take_over(killed, parts, None)
}

/// The part of a job on a daemon with one process elsewhere.
fn kept_part(segment: &Segment, elsewhere: &Segment) -> KeptPart {
    (JobId(segment.plan().job), segment.clone(), vec![id(elsewhere.plan().host)])
}

fn limited() -> Watchdog {
    Watchdog::start(Duration::from_secs(170))
}

/// Waits until the arbiter has answered a heartbeat that a host sends so long from now on or later; returns how long.
fn wait_for_answer(daemon: &Daemon, from: Duration) -> Duration {
    let now = daemon.ask(|context| context.now());
    let give_up = Instant::now() + PATIENCE;
    loop {
        let answered = daemon.ask(|context| context.leased_from()).unwrap();
        if answered >= now + from {
            return answered - now;
        }
        assert!(Instant::now() < give_up);
    }
}

fn is_lost(daemon: &mut Daemon) -> bool {
    let is_loss = |seen: &Seen| match seen {
        Seen::Word(word) => matches!(word.content, WordContent::HostLost { .. }),
        seen => matches!(seen, Seen::Down(..)),
    };
    daemon.seen_so_far().iter().any(is_loss)
}

#[test]
fn a_daemon_that_starts_again_keeps_its_place_and_learns_everything_once() {
    let _watchdog = limited();
    let [mut zero, one, mut two] = three();
    for round in 0..3_u64 {
        zero.ask(move |context| context.tell(end_of_job(10 * round)));
    }
    let mut one = one;
    // The heartbeats of the first run have higher numbers than those of the second would have within T, if it began anew.
    let timeout = one.options.host_timeout();
    wait_for_answer(&one, timeout * 3 / 2);
    for round in 1..=3_u64 {
        let killed = one.kill();
        zero.ask(move |context| context.tell(end_of_job(100 + round)));
        zero.ask(move |context| context.send(HostNumber(1), FRAGILE, text("while it is away")));
        one = begin_again(killed, Vec::new());
        zero.wait_restarted(1);
        zero.wait_up(1);
        one.wait_up(0);
        assert!(wait_for_answer(&one, Duration::ZERO) < timeout);
        two.wait_restarted(1);
        zero.ask(move |context| context.tell(end_of_job(200 + round)));
        zero.send(&one, "from the arbiter");
        two.send(&one, "from a host");
        one.send(&zero, "to the arbiter");
        one.send(&two, "to a host");
        let mut came = [one.wait_text(), one.wait_text()];
        came.sort();
        assert_eq!(came, [(0, "from the arbiter".into()), (2, "from a host".into())]);
        assert_eq!(zero.wait_text(), (1, "to the arbiter".into()));
        assert_eq!(two.wait_text(), (1, "to a host".into()));
        let word = one.wait_word(|content| matches!(content, WordContent::JobEnds { .. }));
        assert_eq!(word.content, end_of_job(200 + round), "the others are in its welcome");
        let told = [&zero, &one].map(|daemon| daemon.ask(|context| context.snapshot()));
        assert_eq!(told[0], told[1]);
    }
    wait_for_answer(&one, timeout);
    assert!(![&mut zero, &mut one, &mut two].into_iter().any(is_lost));
    assert_eq!(zero.ask(|context| context.hosts().count()), 3);
}

#[test]
fn words_that_are_given_while_a_daemon_starts_again_come_in_its_welcome_or_behind_it() {
    let _watchdog = limited();
    let mut zero = arbiter();
    let mut one = host(&mut zero, Way::default());
    one.wait_up(0);
    let mut given = 0;
    let mut give = |zero: &Daemon, count: u64| {
        for job in given..given + count {
            zero.ask(move |context| context.tell(end_of_job(job)));
        }
        given += count;
    };
    for _ in 0..5 {
        give(&zero, 20);
        let killed = one.kill();
        give(&zero, 20);
        one = begin_again(killed, Vec::new());
        give(&zero, 20);
        zero.wait_restarted(1);
        give(&zero, 20);
        let last = zero.ask(|context| context.snapshot());
        let mut numbers = Vec::new();
        while numbers.last() != Some(&last.number) {
            numbers.push(one.wait_word(|_| true).number);
        }
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
        // Its address may have a word behind that.
        let told = |daemon: &Daemon| daemon.ask(|context| context.snapshot());
        let give_up = Instant::now() + PATIENCE;
        while told(&one) != told(&zero) {
            assert!(Instant::now() < give_up, "{last:?}");
        }
    }
    assert!(!is_lost(&mut zero));
}

#[test]
fn two_hosts_connect_again_when_the_daemon_of_one_has_started_again() {
    let _watchdog = limited();
    let [mut zero, mut one, two] = three();
    one.ask(|context| context.want_trunk(HostNumber(2)));
    one.wait_up(2);
    let mut two = begin_again(two.kill(), Vec::new());
    zero.wait_restarted(2);
    one.wait_restarted(2);
    two.wait_up(0);
    one.ask(|context| context.want_trunk(HostNumber(2)));
    one.wait_up(2);
    two.wait_up(1);
    one.send(&two, "to the next run");
    assert_eq!(two.wait_text(), (1, "to the next run".into()));
    assert!(!is_lost(&mut zero) && !one.seen_so_far().contains(&Seen::Restarted(HostNumber(2))));
}

#[test]
fn a_lane_that_was_asked_for_opens_when_the_other_daemon_has_started_again() {
    let _watchdog = limited();
    let [mut zero, mut one, mut two] = three();
    // The process with the higher identity has its daemon ask the other one, which dials.
    for is_high in [true, false] {
        let mut segments = parts(&one, &two);
        if (segments[0].plan().host > segments[1].plan().host) != is_high {
            std::mem::swap(&mut one, &mut two);
            segments.swap(0, 1);
        }
        let first = Process::welcomed(&segments[0]);
        let killed = two.kill();
        first.say(&Handover::Want { far: 0 });
        // What its daemon has said about that is with the arbiter, before this.
        one.send(&zero, "behind it");
        zero.wait_text();
        two = begin_again(killed, vec![kept_part(&segments[1], &segments[0])]);
        let mut lane = first.further_lane();
        let second = Process::hello(&segments[1]);
        let mut other_lane = second.lane();
        assert_connected(&mut lane, &mut other_lane);
        for daemon in [&one, &two] {
            daemon.ask(|context| context.remove_part(JOB));
        }
    }
}

#[test]
fn a_part_that_was_over_before_is_forgotten() {
    let _watchdog = limited();
    let [mut zero, one, two] = three();
    let segments = parts(&one, &two);
    // The report that the part is over is lost with the daemon.
    let two = begin_again(two.kill(), Vec::new());
    one.ask(|context| context.remove_part(JOB));
    zero.ask(|context| context.tell(WordContent::JobOver { job: JOB }));
    zero.wait_word(|content| *content == WordContent::JobOver { job: JOB });
    drop((one, two, segments));
}
