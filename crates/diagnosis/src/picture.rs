//! The visible state of a job at a moment.

use landeck_host::observe::ObservedJob;
use landeck_host::process_figures::{self, Activity, ProcessFigures};
use landeck_memory::observed::SelfPortrait;
use landeck_memory::system::now_ns;
use landeck_memory::{JobState, Operation, SlotRecord, SlotState};

use crate::names::Names;

/// A job at a moment.
#[derive(Clone, Debug)]
pub struct Picture {
    /// When it was taken, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// The number of processes of the job's first world.
    pub processes: u32,
    /// The names of the processes.
    pub names: Names,
    /// Whether the job runs or is ending.
    pub state: JobState,
    /// All processes that are, were or will be in the job, by slot.
    pub members: Vec<Member>,
}

/// A process of a job at a moment.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its slot; [`Picture::names`] has its name.
    pub slot: u32,
    /// The agent's record of it.
    pub record: SlotRecord,
    /// The words that it wrote about itself.
    pub portrait: SelfPortrait,
    /// The kernel's figures; `None` if its process cannot be seen from here.
    pub figures: Option<ProcessFigures>,
}

/// The activity of a process, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It computes, in no call that waits.
    Run,
    /// It waits in a call, awake.
    Spin,
    /// It waits in a call, asleep.
    Sleep,
    /// It waits for something outside Landeck: a file, the network, a timer.
    Wait,
    /// It was stopped by a signal or a debugger.
    Stopped,
    /// It has not started yet.
    Expected,
    /// It has left in good order.
    Left,
    /// It died.
    Dead,
}

impl Doing {
    /// The word in the output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Spin => "spin",
            Self::Sleep => "sleep",
            Self::Wait => "wait",
            Self::Stopped => "stopped",
            Self::Expected => "expected",
            Self::Left => "left",
            Self::Dead => "dead",
        }
    }
}

impl Picture {
    /// Takes a picture of a job.
    pub fn take(job: &ObservedJob) -> Self {
        let mut picture = Self::glance(job);
        picture.members.iter_mut().for_each(|member| member.ask_the_kernel(job));
        picture
    }

    /// Takes a picture of a job without the kernel's figures about each process, which take most of the time. This
    /// suffices for the first of the two pictures of a [`Report`](crate::Report).
    pub fn glance(job: &ObservedJob) -> Self {
        let (state, records) = job.segment.membership();
        let processes = job.segment.plan().processes;
        let names = Names::new(processes, (0..).zip(&records));
        let seen = (0u32..).zip(records).filter(|(_, record)| record.state != SlotState::Free);
        let members = seen.map(|(slot, record)| Member::see(job, slot, record)).collect();
        Self { at_ns: now_ns(), processes, names, state, members }
    }

    /// The member of a slot.
    pub fn member(&self, slot: u32) -> Option<&Member> {
        let place = self.members.binary_search_by_key(&slot, |member| member.slot).ok()?;
        self.members.get(place)
    }

    /// Whether any process lives.
    pub fn is_alive(&self) -> bool {
        self.members.iter().any(|member| member.record.state == SlotState::Alive)
    }
}

impl Member {
    fn see(job: &ObservedJob, slot: u32, record: SlotRecord) -> Self {
        let portrait = job.segment.portrait(slot).unwrap_or_default();
        Self { slot, record, portrait, figures: None }
    }

    fn ask_the_kernel(&mut self, job: &ObservedJob) {
        let SlotRecord { state, pid, .. } = self.record;
        // If the agent cannot be seen, its PIDs mean nothing here, as those of a container.
        if state == SlotState::Alive && pid != 0 && job.agent_is_seen {
            self.figures = process_figures::of_process(pid);
        }
    }

    /// The activity of the process, in one word.
    pub fn doing(&self) -> Doing {
        match self.record.state {
            SlotState::Free | SlotState::Reserved => return Doing::Expected,
            SlotState::Departed => return Doing::Left,
            SlotState::Dead => return Doing::Dead,
            SlotState::Alive => {}
        }
        let activity = self.figures.map(|figures| figures.activity);
        match (self.portrait.wait.operation, activity) {
            _ if self.is_stopped() => Doing::Stopped,
            (Operation::None, Some(Activity::Sleeps | Activity::Ended)) => Doing::Wait,
            (Operation::None, _) => Doing::Run,
            _ if self.portrait.is_asleep => Doing::Sleep,
            _ => Doing::Spin,
        }
    }

    /// Whether a signal or a debugger has stopped it. The agent only knows this of its own children.
    pub fn is_stopped(&self) -> bool {
        let activity = self.figures.map(|figures| figures.activity);
        self.record.stopped || activity == Some(Activity::Stopped)
    }

    /// How long it has waited since it joined, in nanoseconds, the present wait included.
    pub fn waited_ns(&self, at_ns: u64) -> u64 {
        let wait = &self.portrait.wait;
        let present_ns = match wait.operation {
            Operation::None => 0,
            _ => at_ns.saturating_sub(wait.since_ns),
        };
        self.portrait.counters.waited_ns.saturating_add(present_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::WaitRecord;
    use std::time::Duration;

    fn member(operation: Operation, activity: Activity) -> Member {
        let wait = WaitRecord { operation, since_ns: 100, ..WaitRecord::default() };
        let computed = Duration::ZERO;
        Member {
            slot: 0,
            record: SlotRecord { state: SlotState::Alive, ..SlotRecord::default() },
            portrait: SelfPortrait { wait, ..SelfPortrait::default() },
            figures: Some(ProcessFigures { activity, computed, threads: 1 }),
        }
    }

    #[test]
    fn what_a_process_does_has_one_word() {
        let of = |operation, activity| member(operation, activity).doing();
        assert_eq!(of(Operation::None, Activity::Runs), Doing::Run);
        assert_eq!(of(Operation::None, Activity::Sleeps), Doing::Wait);
        assert_eq!(of(Operation::Receive, Activity::Runs), Doing::Spin);
        assert_eq!(of(Operation::Receive, Activity::Stopped), Doing::Stopped);
        let mut asleep = member(Operation::Receive, Activity::Sleeps);
        asleep.portrait.is_asleep = true;
        assert_eq!(asleep.doing(), Doing::Sleep);
        asleep.record.stopped = true;
        assert_eq!(asleep.doing(), Doing::Stopped);
        asleep.record.state = SlotState::Dead;
        assert_eq!(asleep.doing(), Doing::Dead);
    }

    #[test]
    fn the_present_wait_counts() {
        let mut waiting = member(Operation::Send, Activity::Runs);
        waiting.portrait.counters.waited_ns = 7;
        assert_eq!(waiting.waited_ns(150), 57);
        assert_eq!(waiting.waited_ns(50), 7, "the clock of the words may be anything");
        waiting.portrait.wait.operation = Operation::None;
        assert_eq!(waiting.waited_ns(150), 7);
    }
}
