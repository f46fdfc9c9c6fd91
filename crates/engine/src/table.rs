//! The collective operations of a process whose outcome nobody has taken yet.

use crate::running::Running;

/// One of them. A stale one is recognised by its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CollectiveId {
    index: u32,
    generation: u32,
}

/// The collective operations of a process.
#[derive(Default)]
pub(crate) struct Table {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// The operations that are not complete.
    active: Vec<CollectiveId>,
    /// How many have ended so far.
    endings: u64,
}

#[derive(Default)]
struct Entry {
    generation: u32,
    running: Option<Box<Running>>,
}

impl Table {
    /// Whether all are over.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// Grows with every operation that ends.
    pub(crate) fn endings(&self) -> u64 {
        self.endings
    }

    /// The operations that are not complete.
    pub(crate) fn active(&self) -> &[CollectiveId] {
        &self.active
    }

    pub(crate) fn insert(&mut self, running: Box<Running>) -> CollectiveId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.running = Some(running);
        let id = CollectiveId { index, generation: entry.generation };
        self.active.push(id);
        id
    }

    #[inline]
    pub(crate) fn get(&self, id: CollectiveId) -> Option<&Running> {
        let entry = self.entries.get(id.index as usize)?;
        if entry.generation == id.generation { entry.running.as_deref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: CollectiveId) -> Option<&mut Running> {
        let entry = self.entries.get_mut(id.index as usize)?;
        if entry.generation == id.generation { entry.running.as_deref_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, id: CollectiveId) -> Option<Box<Running>> {
        let entry = self.entries.get_mut(id.index as usize)?;
        let running = if entry.generation == id.generation { entry.running.take() } else { None };
        if running.is_some() {
            self.free.push(id.index);
            self.active.retain(|&active| active != id);
        }
        running
    }

    /// Forgets among the active those that are over by now.
    pub(crate) fn retire(&mut self) {
        let (entries, before) = (&self.entries, self.active.len());
        self.active.retain(|id| {
            let running = entries[id.index as usize].running.as_deref();
            running.is_some_and(|running| running.outcome().is_none())
        });
        self.endings += (before - self.active.len()) as u64;
    }
}
