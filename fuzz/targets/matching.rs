//! Sequences of receives, arrivals, probes and withdrawals: matching does what the standard's own
//! description does, two lists that are searched from the front.

#![no_main]

use arbitrary::Arbitrary;
use landeck_kernel::Wanted;
use landeck_kernel::matching::{Label, Matching};
use libfuzzer_sys::fuzz_target;

/// Few values, so that steps meet.
const VALUES: u8 = 3;

#[derive(Arbitrary, Debug)]
enum Step {
    Receive { context: u8, source: Option<u8>, tag: Option<u8> },
    Arrive { context: u8, source: u8, tag: u8 },
    Probe { context: u8, source: Option<u8>, tag: Option<u8> },
    Withdraw { receive: u8 },
    Discard { source: u8 },
}

/// The description.
#[derive(Default)]
struct Lists {
    posted: Vec<(Wanted, u32)>,
    waiting: Vec<(Label, u32)>,
}

fuzz_target!(|steps: Vec<Step>| {
    let mut matching: Matching<u32, u32> = Matching::default();
    let mut lists = Lists::default();
    for (number, step) in (0..).zip(&steps) {
        take(&mut matching, &mut lists, number, step);
        assert_eq!(matching.waiting(), lists.waiting.len());
        assert_eq!(matching.posted().count(), lists.posted.len());
    }
});

fn take(matching: &mut Matching<u32, u32>, lists: &mut Lists, number: u32, step: &Step) {
    match *step {
        Step::Receive { context, source, tag } => {
            let wanted = wanted(context, source, tag);
            let found = matching.take(&wanted).map(|it| (it.label, it.message));
            assert_eq!(found, lists.first_waiting(&wanted).map(|at| lists.waiting.remove(at)));
            if found.is_none() {
                matching.post(wanted, number);
                lists.posted.push((wanted, number));
            }
        }
        Step::Arrive { context, source, tag } => {
            let label = label(context, source, tag);
            let found = matching.match_arrival(label);
            let first = lists.posted.iter().position(|(wanted, _)| wanted.accepts(label));
            assert_eq!(found, first.map(|at| lists.posted.remove(at).1));
            if found.is_none() {
                matching.keep(label, number);
                lists.waiting.push((label, number));
            }
        }
        Step::Probe { context, source, tag } => {
            let wanted = wanted(context, source, tag);
            let expected = lists.first_waiting(&wanted).map(|at| &lists.waiting[at]);
            assert_eq!(matching.peek(&wanted), expected);
        }
        Step::Withdraw { receive } => {
            let receive = u32::from(receive);
            let first = lists.posted.iter().position(|(_, other)| *other == receive);
            assert_eq!(matching.withdraw(receive), first.is_some());
            first.map(|at| lists.posted.remove(at));
        }
        Step::Discard { source } => {
            let source = u32::from(source % VALUES);
            let mut dropped = Vec::new();
            matching.discard(|label| label.source == source, |_, message| dropped.push(message));
            dropped.sort_unstable();
            let doomed = lists.waiting.extract_if(.., |(label, _)| label.source == source);
            assert_eq!(dropped, doomed.map(|(_, message)| message).collect::<Vec<_>>());
        }
    }
}

impl Lists {
    fn first_waiting(&self, wanted: &Wanted) -> Option<usize> {
        self.waiting.iter().position(|(label, _)| wanted.accepts(*label))
    }
}

fn wanted(context: u8, source: Option<u8>, tag: Option<u8>) -> Wanted {
    let value = |value: u8| u32::from(value % VALUES);
    Wanted { context: value(context), source: source.map(value), tag: tag.map(value) }
}

fn label(context: u8, source: u8, tag: u8) -> Label {
    let value = |value: u8| u32::from(value % VALUES);
    Label { context: value(context), source: value(source), tag: value(tag) }
}
