//! The check of all traces of a group.
//!
//! It first makes the one order of all messages from what the members delivered. Then each property is judged, by its own
//! function. A property of which the traces have no case is neither kept nor broken.

mod each;
mod levels;
mod property;
mod report;
mod run;
mod stream;
mod summary;
#[cfg(test)]
mod tests;
mod views;

use crate::event::GroupTrace;
use property::Findings;
use run::Run;
use stream::Stream;

pub use property::{Property, Violation};
pub use report::TraceReport;

/// Checks the traces of one group.
///
/// A trace without an end is that of a process that died; its deliveries are the first of those of the survivors. A
/// member whose host was lost, as some view says, may have delivered other messages at its end. These are reported and are
/// no violation, unless they are safe.
pub fn check(traces: &[GroupTrace]) -> TraceReport {
    let run = Run::new(traces);
    let mut findings = Findings::default();
    each::check_whole(&run, &mut findings);
    let stream = Stream::new(&run, &mut findings);
    for (member, part) in run.members.iter().zip(&stream.parts) {
        each::check_member(&run, member, &mut findings);
        each::check_senders(&run, (member, part.tail), &mut findings);
        each::check_causes(&run, &stream, (member, part.tail), &mut findings);
        views::check_member(&run, member, &mut findings);
    }
    stream::check_numbers(&run, &stream, &mut findings);
    views::check_sequence(&run, &mut findings);
    views::check_places(&run, &stream, &mut findings);
    levels::check_waits(&run, &mut findings);
    levels::check_covered(&run, &stream, &mut findings);
    let safe_lost = levels::check_safe(&run, &stream, &mut findings);
    TraceReport {
        members: summary::lines(&run, &stream),
        safe_lost,
        judged: findings.judged.into_iter().collect(),
        counts: findings.counts,
        violations: findings.violations,
    }
}
