//! The table of the pending operations.

use crate::request::{Completion, RequestId};
use crate::status::Status;
use crate::transfer::Target;
use crate::work::Work;

/// The pending operations of an endpoint.
#[derive(Default)]
pub(crate) struct Requests {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// The number of operations that have ended so far.
    endings: u64,
}

struct Entry {
    generation: u32,
    work: Work,
}

impl Requests {
    #[inline(always)]
    pub(crate) fn insert(&mut self, work: Work) -> RequestId {
        let index = self.free.pop().unwrap_or_else(|| self.grow());
        let entry = &mut self.entries[index as usize];
        fill(&mut entry.work, work);
        RequestId { index, generation: entry.generation }
    }

    /// Adds a place to the table.
    #[cold]
    fn grow(&mut self) -> u32 {
        self.entries.push(Entry { generation: 1, work: Work::Free });
        (self.entries.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn get(&self, id: RequestId) -> Option<&Work> {
        let entry = self.entries.get(id.index as usize)?;
        (entry.generation == id.generation).then_some(&entry.work)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut Work> {
        let entry = self.entries.get_mut(id.index as usize)?;
        (entry.generation == id.generation).then_some(&mut entry.work)
    }

    /// Gives a request other work; does nothing if the request does not exist (any more).
    #[inline]
    pub(crate) fn put(&mut self, id: RequestId, work: Work) {
        let is_end = matches!(work, Work::Done(_));
        if let Some(place) = self.get_mut(id) {
            *place = work;
            self.endings += u64::from(is_end);
        }
    }

    /// Ends a request well, without data of its own; does nothing if it does not exist (any more).
    #[inline]
    pub(crate) fn end_well(&mut self, id: RequestId, status: Status) {
        let Some(place) = self.get_mut(id) else { return };
        let end = Work::Done(Completion { result: Ok(status), data: None });
        match place {
            Work::Posted { target: Target::Area(area), .. } if area.is_plain() => fill(place, end),
            _ => *place = end,
        }
        self.endings += 1;
    }

    /// Takes the status of a request that has ended well without data of its own, and removes the request.
    #[inline]
    pub(crate) fn take_well(&mut self, id: RequestId) -> Option<Status> {
        let entry = self.entries.get_mut(id.index as usize)?;
        match entry.work {
            Work::Done(Completion { result: Ok(status), data: None })
                if entry.generation == id.generation =>
            {
                entry.generation = entry.generation.wrapping_add(1);
                fill(&mut entry.work, Work::Free);
                self.free.push(id.index);
                Some(status)
            }
            _ => None,
        }
    }

    /// A counter that grows with every request that ends.
    #[inline]
    pub(crate) fn endings(&self) -> u64 {
        self.endings
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<Work> {
        let entry = self.entries.get_mut(id.index as usize)?;
        if entry.generation != id.generation {
            return None;
        }
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(id.index);
        Some(std::mem::replace(&mut entry.work, Work::Free))
    }

    /// The first request whose work satisfies `is_it`.
    pub(crate) fn find(&self, is_it: impl Fn(&Work) -> bool) -> Option<RequestId> {
        let mut all = (0u32..).zip(&self.entries);
        let (index, entry) = all.find(|(_, entry)| is_it(&entry.work))?;
        Some(RequestId { index, generation: entry.generation })
    }

    pub(crate) fn pending(&self) -> impl Iterator<Item = RequestId> {
        (0u32..).zip(&self.entries).filter_map(|(index, entry)| {
            let pending = !matches!(entry.work, Work::Free | Work::Held(_) | Work::Done(_));
            pending.then_some(RequestId { index, generation: entry.generation })
        })
    }
}

/// Stores work in a place whose content needs no drop: a free place, or one with only a status or a plain area.
#[inline(always)]
fn fill(place: &mut Work, work: Work) {
    let before = std::mem::replace(place, work);
    debug_assert!(match &before {
        Work::Posted { target: Target::Area(area), .. } => area.is_plain(),
        Work::Free | Work::Done(Completion { result: Ok(_), data: None }) => true,
        _ => false,
    });
    std::mem::forget(before);
}
