//! A founder's daemon that is killed and goes on from its record.

use super::*;
use crate::journal::KeptJournal;
use landeck_testing::Watchdog;

/// The founder of a machine that stays, and what its keeper has.
fn founder() -> (Daemon, KeptJournal) {
    let (journal, kept) = Journal::pair().unwrap();
    let announced = announce(None);
    let entry = announced.entry(0, vec![announced.address]);
    let founding = Some(Founding { journal, record: None });
    (announced.begin(options(), entry.clone(), entry, (founding, None)), kept)
}

/// The next run of a founder's daemon.
fn begin_again((killed, port): (Killed, KeptPort), before: &KeptJournal) -> (Daemon, KeptJournal) {
    let (journal, kept) = Journal::pair().unwrap();
    let founding = Some(Founding { journal, record: before.record() });
    (announce_with(Some(port), None).take_over(killed, Vec::new(), founding), kept)
}

#[test]
fn nothing_is_lost_or_doubled_when_the_daemon_of_the_founder_is_killed() {
    const TEXTS: usize = 40;
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let (mut zero, mut kept) = founder();
    let (mut one, mut two) = (host(&mut zero, Way::default()), host(&mut zero, Way::default()));
    let mut given = 0;
    for round in 0..6 {
        [&mut one, &mut two].into_iter().for_each(|host| host.wait_up(0));
        // What two hosts say to each other passes through the founder's daemon, and so do words.
        for number in 0..TEXTS {
            one.send(&two, &format!("{round} {number}"));
            two.send(&one, &format!("{round} {number}"));
            let end = end_of_job(given);
            given += 1;
            match number % 2 {
                0 => one.ask(move |context| context.tell(end)),
                _ => two.ask(move |context| context.tell(end)),
            }
        }
        let killed = if round % 2 == 0 { zero.kill_within_a_turn() } else { zero.kill() };
        (zero, kept) = begin_again(killed, &kept);
        [&mut one, &mut two].into_iter().for_each(|host| host.wait_restarted(0));
        for (host, from) in [(&mut one, 2), (&mut two, 1)] {
            for number in 0..TEXTS {
                assert_eq!(host.wait_text(), (from, format!("{round} {number}")));
            }
        }
    }
    let ends = |content: &WordContent| match content {
        WordContent::JobEnds { job, .. } => Some(job.0),
        _ => None,
    };
    for host in [&mut one, &mut two] {
        let words: Vec<Word> =
            (0..given).map(|_| host.wait_word(|content| ends(content).is_some())).collect();
        assert!(words.is_sorted_by_key(|word| word.number), "{words:?}");
        let mut jobs: Vec<u64> = words.iter().filter_map(|word| ends(&word.content)).collect();
        jobs.sort_unstable();
        assert_eq!(jobs, (0..given).collect::<Vec<_>>());
        assert!(!host.seen_so_far().iter().any(|seen| matches!(seen, Seen::Down(..))));
    }
    // A host that comes later is admitted by the run that is there now.
    let mut three = host(&mut zero, Way::default());
    zero.ask(move |context| context.tell(end_of_job(given)));
    three.wait_word(|content| ends(content) == Some(given));
    assert_eq!(three.ask(|context| context.snapshot()), zero.ask(|context| context.snapshot()));
}

#[test]
fn what_anybody_hears_stands_in_the_record() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let (mut zero, kept) = founder();
    let announced = announce(None);
    let entry = admit(&mut zero, &announced, announced.key, vec![announced.address]);
    let check = move |word: &Word| {
        let record = kept.record().expect("a record");
        let last = Record::decode(&record).expect("whole").arbiter.last();
        assert!(last >= word.number, "word {} was told after a record of {last}", word.number);
    };
    let arbiter = zero.entry.clone();
    let mut one = announced.begin(options(), entry, arbiter, (None, Some(Box::new(check))));
    one.wait_up(0);
    // The record is long, so it takes a while.
    let cause = "a long cause ".repeat(40_000);
    for job in 0..60 {
        let (job, cause) = (JobId(job), cause.clone());
        zero.ask(move |context| context.tell(WordContent::JobEnds { job, code: 3, cause }));
        one.wait_word(
            |content| matches!(content, WordContent::JobEnds { job: it, .. } if *it == job),
        );
    }
}
