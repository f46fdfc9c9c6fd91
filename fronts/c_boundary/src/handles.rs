//! A table of what C programs hold by handle. A handle that was freed is noticed, even when its
//! place has been used again.

use thiserror::Error;

/// What a C program holds: a place in a table and which use of the place is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    index: u32,
    generation: u32,
}

/// Why a handle leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HandleError {
    /// No such handle was ever given out.
    #[error("{0:#x} is no handle of this kind")]
    Unknown(u64),
    /// What it led to was freed.
    #[error("the handle {0:#x} was used after it was freed")]
    Stale(u64),
}

/// Everything of one kind that is held by handle.
#[derive(Debug)]
pub struct Table<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl Handle {
    /// The handle as a number: never less than 2^32, so it is no small constant and no null.
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The handle that a number means.
    pub fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

impl<T> Table<T> {
    /// An empty table.
    pub const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Keeps a value and gives out its handle.
    ///
    /// # Panics
    /// When 2^32 values are kept at once.
    pub fn insert(&mut self, value: T) -> Handle {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, value: None });
            u32::try_from(self.places.len() - 1).expect("fewer than 2^32 values are kept at once")
        });
        let place = &mut self.places[index as usize];
        place.generation = place.generation.wrapping_add(1).max(1);
        place.value = Some(value);
        Handle { index, generation: place.generation }
    }

    /// What a handle leads to.
    ///
    /// # Errors
    /// [`HandleError`].
    pub fn get(&self, handle: Handle) -> Result<&T, HandleError> {
        let place = self.places.get(handle.index as usize);
        place
            .filter(|place| place.generation == handle.generation)
            .and_then(|place| place.value.as_ref())
            .ok_or_else(|| self.blame(handle))
    }

    /// What a handle leads to, to change it.
    ///
    /// # Errors
    /// [`HandleError`].
    pub fn get_mut(&mut self, handle: Handle) -> Result<&mut T, HandleError> {
        self.get(handle)?;
        let error = HandleError::Unknown(handle.to_bits());
        self.places[handle.index as usize].value.as_mut().ok_or(error)
    }

    /// Takes what a handle leads to; the handle is stale from now on.
    ///
    /// # Errors
    /// [`HandleError`].
    pub fn remove(&mut self, handle: Handle) -> Result<T, HandleError> {
        self.get(handle)?;
        let error = HandleError::Unknown(handle.to_bits());
        let value = self.places[handle.index as usize].value.take().ok_or(error)?;
        self.free.push(handle.index);
        Ok(value)
    }

    /// How many values are kept.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether no value is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is wrong with a handle that leads nowhere.
    fn blame(&self, handle: Handle) -> HandleError {
        let was_given = handle.generation > 0
            && self
                .places
                .get(handle.index as usize)
                .is_some_and(|place| handle.generation <= place.generation);
        if was_given {
            HandleError::Stale(handle.to_bits())
        } else {
            HandleError::Unknown(handle.to_bits())
        }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_handle_never_leads_to_anothers_value() {
        let mut table = Table::new();
        let first = table.insert("first");
        assert!(first.to_bits() >= 1 << 32);
        assert_eq!(Handle::from_bits(first.to_bits()), first);
        assert_eq!(table.remove(first), Ok("first"));
        let second = table.insert("second");
        assert_eq!(table.get(first), Err(HandleError::Stale(first.to_bits())));
        assert_eq!(table.remove(first), Err(HandleError::Stale(first.to_bits())));
        *table.get_mut(second).unwrap() = "changed";
        assert_eq!(table.get(second), Ok(&"changed"));
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn what_was_never_given_out_is_unknown() {
        let mut table: Table<u8> = Table::new();
        for bits in [0, 1, 0x101, 1 << 32, u64::MAX] {
            assert_eq!(table.get(Handle::from_bits(bits)), Err(HandleError::Unknown(bits)));
        }
        table.insert(1);
        let bits = 2 << 32;
        assert_eq!(table.get(Handle::from_bits(bits)), Err(HandleError::Unknown(bits)));
        assert!(!table.is_empty());
    }
}
