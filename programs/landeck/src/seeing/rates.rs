//! Rates of the processes of a job, from two pictures. Pure.

use landeck_diagnosis::Picture;
use landeck_diagnosis::host_picture::ObservedWait;
use landeck_diagnosis::picture::{Doing, Member};
use landeck_memory::{Counters, SlotState};
use landeck_wire::ProcessId;

/// The activity of one process between two pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) process: ProcessId,
    pub(crate) pid: u32,
    pub(crate) doing: Doing,
    /// Processor time in percent of one processor; none where it cannot be seen.
    pub(crate) computing_percent: Option<f64>,
    /// Time in waiting calls, in percent.
    pub(crate) waiting_percent: f64,
    /// Sent messages and bytes per second.
    pub(crate) sent: Traffic,
    pub(crate) received: Traffic,
    /// The bytes that it has sent to other hosts and they have not taken; zero if it does not wait.
    pub(crate) unsent_bytes: u64,
    /// Its current wait.
    pub(crate) wait: ObservedWait,
}

/// Traffic in one direction per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Traffic {
    pub(crate) messages: f64,
    pub(crate) bytes: f64,
}

/// The rows of all processes of a picture, in its order. A new process has done nothing yet.
pub(crate) fn rows(before: &Picture, now: &Picture) -> Vec<Row> {
    let row = |member: &Member| {
        let same = |earlier: &&Member| earlier.record.incarnation == member.record.incarnation;
        row(before.member(member.process).filter(same), member)
    };
    now.members.iter().map(row).collect()
}

fn row(before: Option<&Member>, now: &Member) -> Row {
    // Both times are of the process's own host.
    let passed_ns = before.map_or(0, |before| now.at_ns.saturating_sub(before.at_ns));
    let seconds = passed_ns.max(1) as f64 / 1e9;
    let (new, old) = (now.counters, before.map(|before| before.counters));
    let old = old.unwrap_or(new);
    // A damaged segment may contain any words.
    let per_second = |new: u64, old: u64| new.saturating_sub(old) as f64 / seconds;
    let waited_ns = before.map_or(0, |before| now.waited_ns().saturating_sub(before.waited_ns()));
    let computed = before.and_then(|before| {
        let (new, old) = (now.figures?.computed, before.figures?.computed);
        Some(100.0 * new.saturating_sub(old).as_secs_f64() / seconds)
    });
    let is_alive = now.record.state == SlotState::Alive;
    let waiting_percent = (100.0 * waited_ns as f64 / 1e9 / seconds).min(100.0);
    Row {
        process: now.process,
        pid: now.record.pid,
        doing: now.doing(),
        computing_percent: computed,
        waiting_percent: if is_alive { waiting_percent } else { 0.0 },
        sent: Traffic {
            messages: per_second(new.messages_sent, old.messages_sent),
            bytes: per_second(given(new), given(old)),
        },
        received: Traffic {
            messages: per_second(new.messages_received, old.messages_received),
            bytes: per_second(new.bytes_received, old.bytes_received),
        },
        unsent_bytes: now.lanes.iter().map(|lane| lane.unsent_bytes).fold(0, u64::saturating_add),
        wait: now.wait,
    }
}

/// Bytes that a process has sent in messages or deposited on boards.
fn given(counters: Counters) -> u64 {
    counters.bytes_sent.wrapping_add(counters.bytes_laid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_diagnosis::{HostPicture, Role, Stored};
    use landeck_host::process_figures::{Activity, ProcessFigures};
    use landeck_memory::{Operation, SlotRecord};
    use landeck_wire::{Incarnation, SegmentId, Slot};
    use std::time::Duration;

    fn picture(at_ns: u64, counters: Counters, computed: Duration, wait: ObservedWait) -> Picture {
        let activity = Activity::Runs;
        let process =
            ProcessId { segment: SegmentId(1), slot: Slot(0), incarnation: Incarnation(1) };
        let state = SlotState::Alive;
        let record = SlotRecord { state, incarnation: 1, pid: 7, ..SlotRecord::default() };
        let figures = Some(ProcessFigures { activity, computed, threads: 1 });
        let known = Member::new(process, Role::Rank(0), record);
        let member = Member { wait, counters, figures, at_ns, ..known };
        let host = HostPicture {
            host: SegmentId(1),
            number: 0,
            name: "n1".to_owned(),
            ranks: 1,
            processes: 1,
            is_ending: false,
            members: vec![member],
            far: Vec::new(),
            host_names: Vec::new(),
            boards: Vec::new(),
            ways: Vec::new(),
            stored: Stored::default(),
        };
        Picture::join(vec![host], Vec::new())
    }

    #[test]
    fn counters_are_divided_by_the_elapsed_time() {
        let second = 1_000_000_000;
        let none = ObservedWait::default();
        let before = picture(0, Counters::default(), Duration::from_secs(1), none);
        let counters = Counters {
            messages_sent: 20,
            bytes_sent: 1_500,
            bytes_laid: 500,
            messages_received: 4,
            waited_ns: second / 2,
            ..Counters::default()
        };
        let wait = ObservedWait {
            operation: Operation::Receive,
            since_ns: second + second / 2,
            ..ObservedWait::default()
        };
        let now = picture(2 * second, counters, Duration::from_secs(2), wait);
        let row = rows(&before, &now)[0];
        assert_eq!((row.computing_percent, row.waiting_percent), (Some(50.0), 50.0));
        assert_eq!(row.sent, Traffic { messages: 10.0, bytes: 1_000.0 });
        assert_eq!(row.received, Traffic { messages: 2.0, bytes: 0.0 });
    }

    #[test]
    fn the_next_user_of_a_slot_has_done_nothing_yet() {
        let counters = Counters { messages_sent: 9, ..Counters::default() };
        let before = picture(0, counters, Duration::from_secs(9), ObservedWait::default());
        let mut now = picture(1, Counters::default(), Duration::ZERO, ObservedWait::default());
        assert_eq!(rows(&before, &now)[0].sent, Traffic::default());
        now.members[0].record.incarnation = 2;
        let row = rows(&before, &now)[0];
        assert_eq!((row.sent, row.computing_percent), (Traffic::default(), None));
    }
}
