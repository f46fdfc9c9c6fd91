//! The events of a job in terms of ranks. A guardian reports them in terms of slots.

use std::collections::HashMap;
use std::time::Duration;

use landeck_host::memory_groups::MemoryGroups;
use landeck_host::process::StartError;
use landeck_host::report::{self, Deeds, ProcessFailure};
use landeck_memory::{Presence, Segment, WaitRecord, system as clock};
use serde::{Deserialize, Serialize};

use crate::guardian::Event;

/// A restart that follows a failure: its number, and the time until then.
pub(crate) type Again = Option<(u32, Duration)>;

/// An event of a job, in terms of ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Happened {
    /// A process runs its program.
    Started {
        /// Its rank.
        rank: u32,
        /// Its PID.
        pid: u32,
        /// The number of the restart; 0 is the first start.
        restart: u32,
    },
    /// A process could not be started.
    NotStarted {
        /// Its rank.
        rank: u32,
        /// The step that failed, and the kernel's answer.
        error: StartError,
        /// The restart that follows, if any.
        again: Option<(u32, Duration)>,
    },
    /// A process has ended.
    Ended {
        /// Its rank.
        rank: u32,
        /// Its PID.
        pid: u32,
        /// Its failure, if it failed.
        failure: Option<ProcessFailure>,
        /// Time since the job began on its host.
        at: Duration,
        /// The wait that it was in, in words.
        waiting: Option<String>,
        /// Whether it was ever a member of the job.
        was_member: bool,
        /// Its counters.
        deeds: Deeds,
        /// The restart that follows, if any.
        again: Option<(u32, Duration)>,
    },
    /// A process was stopped.
    Stopped {
        /// Its rank.
        rank: u32,
    },
    /// A stopped process continues.
    Continued {
        /// Its rank.
        rank: u32,
    },
    /// A guest has ended the job.
    GuestAborted {
        /// Its PID.
        pid: u32,
        /// The exit code that it asked for.
        code: u8,
        /// Time since the job began on its host.
        at: Duration,
    },
    /// Everything of the job on this host has ended.
    AllEnded,
    /// The guardian itself has died; everything below it was killed.
    GuardianGone,
}

/// The knowledge that turns slots into ranks, and statuses into failures.
#[derive(Debug)]
pub(crate) struct EventTranslator {
    segment: Segment,
    /// The rank of each slot whose process has been started.
    ranks: HashMap<u32, u32>,
    groups: MemoryGroups,
    out_of_memory_kills: u64,
}

impl EventTranslator {
    /// A translator of the processes of this segment; the rank of slot `n` is `ranks[n]`.
    pub(crate) fn new(segment: Segment, ranks: &[u32], groups: MemoryGroups) -> EventTranslator {
        let out_of_memory_kills = groups.out_of_memory_kills();
        let ranks = (0..).zip(ranks.iter().copied()).collect();
        EventTranslator { segment, ranks, groups, out_of_memory_kills }
    }

    /// The segment.
    pub(crate) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// The rank of the process that this slot has or had; `None` for a guest.
    pub(crate) fn rank_of(&self, slot: u32) -> Option<u32> {
        self.ranks.get(&slot).copied()
    }

    /// The meaning of an event of the guardian; `None` if it is about a guest, of which nobody keeps a record.
    pub(crate) fn understand(&mut self, event: Event) -> Option<Happened> {
        let again = |again: Option<crate::guardian::Restart>| {
            again.map(|restart| (restart.number, restart.after))
        };
        Some(match event {
            Event::Started { slot, pid, rank, restart } => {
                let rank = self.take_slot(slot, rank);
                Happened::Started { rank, pid, restart }
            }
            Event::NotStarted { slot, rank, error, again: next } => {
                let rank = self.take_slot(slot, rank);
                Happened::NotStarted { rank, error, again: again(next) }
            }
            Event::Ended { slot, pid, status, at, wait, presence, again: next } => {
                Happened::Ended {
                    rank: self.rank_of(slot)?,
                    pid,
                    failure: failure_of(status, presence).map(|failure| self.with_reason(failure)),
                    at,
                    waiting: self.place(wait),
                    was_member: presence != Presence::NotAttached,
                    deeds: self.deeds_in(slot),
                    again: again(next),
                }
            }
            Event::Stopped { slot } => Happened::Stopped { rank: self.rank_of(slot)? },
            Event::Continued { slot } => Happened::Continued { rank: self.rank_of(slot)? },
            Event::GuestAborted { pid, code, at } => Happened::GuestAborted { pid, code, at },
            // The part answers them itself.
            Event::StartAsked { .. }
            | Event::NotAdded { .. }
            | Event::Joined { .. }
            | Event::AllTold => return None,
            Event::AllEnded => Happened::AllEnded,
            Event::GuardianGone => Happened::GuardianGone,
        })
    }

    /// The counters of the process of a slot so far.
    pub(crate) fn deeds_in(&self, slot: u32) -> Deeds {
        let waited_for = self.segment.waited_for(slot);
        let most = waited_for.first().map(|most| (self.rank_of_peer(most.peer), most.ns));
        Deeds::new(self.segment.counters(slot), most)
    }

    /// Where the process of a slot is at present, in words.
    pub(crate) fn present_place(&self, slot: u32, is_stopped: bool) -> String {
        match self.place(self.segment.wait_record(slot)) {
            _ if is_stopped => "stopped by a signal or a debugger".to_owned(),
            Some(place) => place,
            None => "is in no call that waits".to_owned(),
        }
    }

    /// Records that this slot has the process that was first started as this one of the host's processes, or that was
    /// added with this number.
    fn take_slot(&mut self, slot: u32, first: u32) -> u32 {
        let is_added = first >= self.segment.plan().processes;
        let rank = if is_added { first } else { self.rank_of_peer(first) };
        self.ranks.insert(slot, rank);
        rank
    }

    fn place(&self, wait: WaitRecord) -> Option<String> {
        let since = Duration::from_nanos(clock::now_ns().saturating_sub(wait.since_ns));
        let name = |peer| format!("rank {}{}", self.rank_of_peer(peer), self.segment.on_host(peer));
        report::place(&wait, wait.peer.map(name).as_deref(), since)
    }

    fn rank_of_peer(&self, peer: u32) -> u32 {
        self.segment.rank_of_peer(peer).unwrap_or(peer)
    }

    /// Adds the reason to a failure: a kill may be the kernel's own, for lack of memory.
    fn with_reason(&self, failure: ProcessFailure) -> ProcessFailure {
        let is_kill = failure == ProcessFailure::Signal(libc::SIGKILL);
        match is_kill && self.groups.out_of_memory_kills() > self.out_of_memory_kills {
            true => ProcessFailure::OutOfMemory(self.groups.limit_bytes()),
            false => failure,
        }
    }
}

/// The failure of a process with this status and presence; `None` if it did not fail.
fn failure_of(status: i32, presence: Presence) -> Option<ProcessFailure> {
    match presence {
        Presence::Aborted(code) => Some(ProcessFailure::Aborted(code)),
        _ => ProcessFailure::of_status(status, presence == Presence::Attached),
    }
}
