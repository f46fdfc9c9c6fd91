//! Objects by their numbers and names. The agent keeps those of its host so, and the arbiter the names of a job.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::name::Name;
use super::object::{Object, ObjectAnswer, ObjectKind, ObjectQuestion};
use super::verdict::Verdict;

/// Objects, each with a number that is never given out again. Each kind has names of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Registry<T> {
    most: usize,
    /// The last number given out.
    last: u64,
    entries: BTreeMap<u64, GroupEntry<T>>,
    /// The numbers of the objects that have a name.
    numbers: BTreeMap<(ObjectKind, Name), u64>,
}

/// An object in a registry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GroupEntry<T> {
    pub(crate) kind: ObjectKind,
    pub(crate) name: Option<Name>,
    pub(crate) object: Object,
    /// The state that the keeper of the registry needs beside it.
    pub(crate) beside: T,
}

impl<T> Registry<T> {
    /// Creates a registry of so many objects at a time, whose numbers are larger than `last`.
    pub(crate) fn new(most: usize, last: u64) -> Self {
        Self { most, last, entries: BTreeMap::new(), numbers: BTreeMap::new() }
    }

    /// Adds an object as a question describes it, of a process with this PID. Refused while another one has its name.
    pub(crate) fn add(&mut self, question: ObjectQuestion, pid: u32, beside: T) -> ObjectAnswer {
        if question.name.is_some()
            && let Some(present) = self.find(&question)
        {
            return ObjectAnswer { object: present.object, ..ObjectAnswer::bare(Verdict::InUse) };
        }
        if self.entries.len() >= self.most {
            return ObjectAnswer::bare(Verdict::TooMany);
        }
        self.last += 1;
        let ObjectQuestion { kind, process: owner, bytes, words, name, .. } = question;
        let object = Object { number: self.last, bytes, words, owner, pid };
        self.numbers.extend(name.clone().map(|name| ((kind, name), self.last)));
        self.entries.insert(self.last, GroupEntry { kind, name, object, beside });
        ObjectAnswer::granted(object)
    }

    /// Finds the object in question: by its name if that is given, else by its number.
    pub(crate) fn find(&mut self, question: &ObjectQuestion) -> Option<&mut GroupEntry<T>> {
        let number = match &question.name {
            Some(name) => *self.numbers.get(&(question.kind, name.clone()))?,
            None => question.number,
        };
        self.entries.get_mut(&number).filter(|entry| entry.kind == question.kind)
    }

    /// Finds the object of the kind in question with the next number.
    pub(crate) fn next(&self, question: &ObjectQuestion) -> Option<&GroupEntry<T>> {
        let mut behind = self.entries.range((Bound::Excluded(question.number), Bound::Unbounded));
        behind.find(|(_, entry)| entry.kind == question.kind).map(|(_, entry)| entry)
    }

    /// Removes the object in question if the asking process owns it.
    pub(crate) fn take_back(&mut self, question: &ObjectQuestion) -> ObjectAnswer {
        let Some(entry) = self.find(question) else {
            return ObjectAnswer::bare(Verdict::Unknown);
        };
        let object = entry.object;
        if object.owner != question.process {
            return ObjectAnswer { object, ..ObjectAnswer::bare(Verdict::InUse) };
        }
        self.remove(object.number);
        ObjectAnswer::granted(object)
    }

    /// Removes the object with this number.
    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let GroupEntry { kind, name, beside, .. } = self.entries.remove(&number)?;
        if let Some(name) = name {
            self.numbers.remove(&(kind, name));
        }
        Some(beside)
    }

    /// Removes all objects that are over; returns what stood beside them.
    pub(crate) fn remove_all(
        &mut self,
        mut is_over: impl FnMut(&mut GroupEntry<T>) -> bool,
    ) -> Vec<T> {
        let over = self.entries.iter_mut().filter_map(|(&at, entry)| is_over(entry).then_some(at));
        let over: Vec<u64> = over.collect();
        over.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    /// Whether there is no object.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.numbers.is_empty()
    }
}
