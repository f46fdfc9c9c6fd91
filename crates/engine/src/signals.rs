//! Operations that the program itself ends, from any thread that may call: what other languages
//! call generalized requests.

/// One of them. A stale one is recognised by its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignalId {
    index: u32,
    generation: u32,
}

/// The operations whose end nobody has taken yet.
#[derive(Default)]
pub struct Signals {
    entries: Vec<Entry>,
    free: Vec<u32>,
    endings: u64,
}

#[derive(Default)]
struct Entry {
    generation: u32,
    is_used: bool,
    is_over: bool,
}

impl Signals {
    /// Begins one, which goes on until the program ends it.
    pub fn begin(&mut self) -> SignalId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[index as usize];
        (entry.is_used, entry.is_over) = (true, false);
        entry.generation = entry.generation.wrapping_add(1);
        SignalId { index, generation: entry.generation }
    }

    /// Ends one; false when it is not there (any more).
    pub(crate) fn end(&mut self, id: SignalId) -> bool {
        let Some(entry) = self.entry(id) else { return false };
        entry.is_over = true;
        self.endings += 1;
        true
    }

    /// Whether one is over; none when it is not there (any more).
    pub(crate) fn is_over(&self, id: SignalId) -> Option<bool> {
        let entry = self.entries.get(id.index as usize)?;
        (entry.is_used && entry.generation == id.generation).then_some(entry.is_over)
    }

    /// Forgets one, over or not.
    pub(crate) fn remove(&mut self, id: SignalId) {
        if let Some(entry) = self.entry(id) {
            entry.is_used = false;
            self.free.push(id.index);
        }
    }

    /// Grows with every one that ends.
    pub(crate) fn endings(&self) -> u64 {
        self.endings
    }

    fn entry(&mut self, id: SignalId) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(id.index as usize)?;
        (entry.is_used && entry.generation == id.generation).then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_name_names_nothing() {
        let mut signals = Signals::default();
        let (first, second) = (signals.begin(), signals.begin());
        assert!(signals.end(first));
        assert_eq!((signals.is_over(first), signals.is_over(second)), (Some(true), Some(false)));
        signals.remove(first);
        let third = signals.begin();
        assert_eq!((signals.is_over(first), signals.is_over(third)), (None, Some(false)));
        assert!(!signals.end(first));
        assert_eq!(signals.endings(), 1);
    }
}
