//! The names that processes publish, each with a socket of its own.

use std::collections::BTreeMap;

use landeck_wire::ProcessId;

use super::name::Name;
use super::question::{Answer, Published};
use super::steps::Listener;
use super::verdict::{NAMES_MAX, Verdict};

/// The published names.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    names: BTreeMap<Listener, (Name, Published)>,
}

impl Names {
    /// The refusal of a name; `None` if it can be published now.
    pub(super) fn refusal(&self, name: &Name) -> Option<Answer> {
        let present = self.names.values().find(|(present, _)| present == name);
        if let Some(&(_, published)) = present {
            return Some(Answer { published, ..Answer::bare(Verdict::InUse) });
        }
        (self.names.len() >= NAMES_MAX).then(|| Answer::bare(Verdict::TooMany))
    }

    /// Publishes something under a name with this socket.
    pub(super) fn publish(&mut self, listener: Listener, name: Name, published: Published) {
        self.names.insert(listener, (name, published));
    }

    /// Takes back a name of this process; returns its socket, or the reason why it cannot.
    pub(super) fn take_back(
        &mut self,
        process: ProcessId,
        name: &Name,
    ) -> Result<Listener, Verdict> {
        let found = self.names.iter().find(|(_, (present, _))| present == name);
        match found.map(|(&listener, (_, published))| (listener, published.process)) {
            Some((listener, owner)) if owner == process => {
                self.names.remove(&listener);
                Ok(listener)
            }
            Some(_) => Err(Verdict::InUse),
            None => Err(Verdict::NotAlive),
        }
    }

    /// Takes back the names of a process that has ended, and of all earlier ones of its slot; returns their sockets.
    pub(super) fn forget(&mut self, gone: ProcessId) -> Vec<Listener> {
        let had = |owner: ProcessId| (owner.segment, owner.slot) == (gone.segment, gone.slot);
        let doomed = self.names.iter().filter(|(_, (_, published))| had(published.process));
        let doomed: Vec<Listener> = doomed.map(|(&listener, _)| listener).collect();
        doomed.iter().for_each(|listener| drop(self.names.remove(listener)));
        doomed
    }

    /// The publication at this socket, if there is one.
    pub(super) fn at(&self, listener: Listener) -> Option<Published> {
        self.names.get(&listener).map(|&(_, published)| published)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_wire::{Incarnation, SegmentId, Slot};

    const HOST: SegmentId = SegmentId(1);

    fn process(slot: u32) -> ProcessId {
        ProcessId { segment: HOST, slot: Slot(slot), incarnation: Incarnation(1) }
    }

    fn published(slot: u32) -> Published {
        Published { process: process(slot), pid: 100 + slot, context: 5 }
    }

    fn name(number: usize) -> Name {
        Name::new(format!("name {number}")).unwrap()
    }

    #[test]
    fn a_name_stands_once_and_its_owner_takes_it_back() {
        let mut names = Names::default();
        assert_eq!(names.refusal(&name(1)), None);
        names.publish(Listener(7), name(1), published(0));
        let refused = names.refusal(&name(1)).unwrap();
        assert_eq!((refused.verdict, refused.published), (Verdict::InUse, published(0)));
        assert_eq!(names.at(Listener(7)), Some(published(0)));
        assert_eq!(names.take_back(process(1), &name(1)), Err(Verdict::InUse), "another's");
        assert_eq!(names.take_back(process(0), &name(2)), Err(Verdict::NotAlive), "no such name");
        assert_eq!(names.take_back(process(0), &name(1)), Ok(Listener(7)));
        assert_eq!((names.at(Listener(7)), names.refusal(&name(1))), (None, None));
    }

    #[test]
    fn the_names_of_a_process_go_with_it() {
        let mut names = Names::default();
        for (listener, slot) in [(1, 0), (2, 1), (3, 0)] {
            names.publish(Listener(listener), name(listener as usize), published(slot));
        }
        let elsewhere = ProcessId { segment: SegmentId(2), ..process(0) };
        assert_eq!(names.forget(elsewhere), []);
        assert_eq!(names.forget(process(0)), [Listener(1), Listener(3)]);
        assert_eq!(names.at(Listener(2)), Some(published(1)));
        assert_eq!(names.forget(process(0)), []);
    }

    #[test]
    fn there_is_a_limit() {
        let mut names = Names::default();
        for number in 0..NAMES_MAX {
            assert_eq!(names.refusal(&name(number)), None);
            names.publish(Listener(number as u64), name(number), published(0));
        }
        let refused = names.refusal(&name(NAMES_MAX)).unwrap();
        assert_eq!(refused.verdict, Verdict::TooMany);
        assert_eq!(names.refusal(&name(0)).unwrap().verdict, Verdict::InUse);
    }
}
