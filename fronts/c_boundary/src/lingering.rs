//! Objects that the program has freed while operations go on with them.

use std::sync::{Arc, Mutex, PoisonError};

use crate::handles::{HandleError, Table};

/// The handles of such objects in a table. They lead to their objects until the last operation is over:
/// a function of the program that is called for it may use them.
#[derive(Debug, Default)]
pub struct Lingering(Mutex<Vec<u64>>);

impl Lingering {
    /// None so far.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Frees an object: its handle leads nowhere as soon as the table alone holds the object. Those that
    /// were freed before and are needed no more go as well.
    ///
    /// # Errors
    /// [`HandleError`], also where the object was freed before.
    pub fn free<T>(&self, table: &Table<Arc<T>>, handle: u64) -> Result<(), HandleError> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let was_freed = list.contains(&handle);
        let mut unneeded = Vec::new();
        list.retain(|&freed| {
            let is_held = is_held(table, freed);
            if !is_held {
                unneeded.push(table.remove(freed));
            }
            is_held
        });
        let freed = match (was_freed, is_held(table, handle)) {
            (true, _) => Err(HandleError::Stale(handle)),
            (false, true) => {
                list.push(handle);
                Ok(())
            }
            (false, false) => table.remove(handle).map(|object| unneeded.push(Ok(object))),
        };
        // Objects may wait for others while they go.
        drop(list);
        drop(unneeded);
        freed
    }
}

/// Whether anything but the table holds an object.
fn is_held<T>(table: &Table<Arc<T>>, handle: u64) -> bool {
    // SAFETY: only `Lingering::free` removes objects of this table, and it runs once at a time.
    unsafe { table.find(handle) }.is_some_and(|object| Arc::strong_count(object) > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_leads_to_its_object_while_something_holds_that() {
        let (table, lingering) = (Table::new(1), Lingering::new());
        let operation = Arc::new("needed");
        let (needed, idle) = (table.insert(operation.clone()), table.insert(Arc::new("idle")));
        assert_eq!(lingering.free(&table, needed), Ok(()));
        assert_eq!(lingering.free(&table, needed), Err(HandleError::Stale(needed)), "twice");
        assert_eq!(lingering.free(&table, idle), Ok(()));
        assert!(table.is_there(needed) && !table.is_there(idle));
        drop(operation);
        let next = table.insert(Arc::new("next"));
        assert_eq!(lingering.free(&table, next), Ok(()));
        assert!(!table.is_there(needed) && !table.is_there(next));
        assert_eq!(lingering.free(&table, needed), Err(HandleError::Stale(needed)));
    }
}
