//! The events that a guardian has told its daemon, as far as they still count. When a daemon was killed, the next one hears them
//! again: it cannot know which of them were passed on.

use std::collections::BTreeMap;

use super::{Command, Event};

/// The events that count.
#[derive(Debug, Default)]
pub struct ToldEvents {
    /// The events of each process that was started last with its rank or number.
    processes: BTreeMap<u32, Vec<Event>>,
    /// The rank or number of the process that a slot had last.
    ranks: BTreeMap<u32, u32>,
    /// The processes that are stopped.
    stopped: BTreeMap<u32, Event>,
    /// The wishes that are not answered, by their numbers.
    wishes: BTreeMap<u64, Event>,
    /// A guest has ended the job.
    abort: Option<Event>,
    all_ended: Option<Event>,
}

impl ToldEvents {
    /// Takes note of an event.
    pub fn note(&mut self, event: &Event) {
        let kept = event.clone();
        match *event {
            Event::Started { slot, rank, .. } => {
                self.ranks.insert(slot, rank);
                self.stopped.remove(&slot);
                self.processes.insert(rank, vec![kept]);
            }
            Event::NotStarted { rank, .. } | Event::NotAdded { rank, .. } => {
                self.processes.insert(rank, vec![kept]);
            }
            Event::Joined { slot } => self.add(slot, kept),
            Event::Ended { slot, .. } => {
                self.stopped.remove(&slot);
                self.add(slot, kept);
            }
            Event::Stopped { slot } => drop(self.stopped.insert(slot, kept)),
            Event::Continued { slot } => drop(self.stopped.remove(&slot)),
            Event::GuestAborted { .. } => self.abort = Some(kept),
            Event::StartAsked { request, .. } => drop(self.wishes.insert(request, kept)),
            Event::AllEnded => self.all_ended = Some(kept),
            Event::AllTold | Event::GuardianGone => {}
        }
    }

    /// Takes note of a command.
    pub fn obeyed(&mut self, command: &Command) {
        if let Command::AnswerStart { request, .. } = command {
            self.wishes.remove(request);
        }
    }

    /// All events that count, in an order in which they may have happened. [`Event::AllTold`] is the last one but that all have
    /// ended, behind which nothing comes.
    pub fn again(&self) -> Vec<Event> {
        let processes = self.processes.values().flatten();
        let others = self.stopped.values().chain(self.wishes.values());
        let last = [Event::AllTold];
        let all = processes.chain(others).chain(&self.abort).chain(&last).chain(&self.all_ended);
        all.cloned().collect()
    }

    fn add(&mut self, slot: u32, event: Event) {
        let rank = self.ranks.get(&slot);
        let of_process = rank.and_then(|rank| self.processes.get_mut(rank));
        of_process.into_iter().for_each(|events| events.push(event.clone()));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use landeck_memory::{Presence, WaitRecord};
    use landeck_protocols::door::{StartAnswer, StartRefusal};

    use super::*;
    use crate::heard::simulation::wish;

    fn started(slot: u32, rank: u32) -> Event {
        Event::Started { slot, pid: 100 + slot, rank, restart: 0 }
    }

    fn ended(slot: u32) -> Event {
        let (presence, wait) = (Presence::NotAttached, WaitRecord::default());
        Event::Ended {
            slot,
            pid: 100 + slot,
            status: 9,
            at: Duration::ZERO,
            wait,
            presence,
            again: None,
        }
    }

    fn asked(request: u64) -> Event {
        Event::StartAsked { request, wish: Box::new(wish()) }
    }

    #[test]
    fn what_counts_is_told_again() {
        let mut told = ToldEvents::default();
        assert_eq!(told.again(), [Event::AllTold]);
        let all = [
            started(0, 0),
            started(1, 1),
            Event::Stopped { slot: 0 },
            Event::Stopped { slot: 1 },
            Event::Continued { slot: 0 },
            ended(0),
            asked(7),
            asked(8),
            // Rank 0 is started again, and a process is added in the slot that it had.
            started(2, 0),
            started(0, 5),
            Event::Joined { slot: 0 },
        ];
        all.iter().for_each(|event| told.note(event));
        let answer = StartAnswer::Refused(StartRefusal::NoSlot);
        told.obeyed(&Command::AnswerStart { request: 7, answer });
        let expected = [
            started(2, 0),
            started(1, 1),
            started(0, 5),
            Event::Joined { slot: 0 },
            Event::Stopped { slot: 1 },
            asked(8),
            Event::AllTold,
        ];
        assert_eq!(told.again(), expected);
        for event in [ended(2), ended(1), ended(0), Event::AllEnded] {
            told.note(&event);
        }
        let again = told.again();
        let places = [ended(2), ended(1), ended(0), Event::AllTold, Event::AllEnded]
            .map(|event| again.iter().position(|it| *it == event).unwrap());
        assert!(places.is_sorted(), "{again:?}");
        assert!(!again.contains(&Event::Stopped { slot: 1 }), "it has ended");
    }
}
