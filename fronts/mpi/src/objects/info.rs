//! Info objects: keys and values, in the order in which they came.

use std::sync::{Mutex, MutexGuard, PoisonError};

use landeck_c_boundary::Table;

use crate::abi::{Handle, INFO_ENV, INFO_NULL};
use crate::mistake::Mistake;
use crate::objects::error_handler;
use crate::objects::kind::Kind;

/// Keys and their values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Info {
    pairs: Vec<(String, String)>,
}

static TABLE: Table<Mutex<Info>> = Table::new(Kind::Info as u8);

/// Gives out a handle of an info object.
pub(crate) fn keep(info: Info) -> Result<Handle, Mistake> {
    TABLE.make_room()?;
    Ok(TABLE.insert(Mutex::new(info)) as Handle)
}

/// Frees one of the program's info objects.
pub(crate) fn free(argument: &str, handle: Handle) -> Result<(), Mistake> {
    if handle == INFO_ENV {
        return Err(Kind::Info.refuse_predefined(argument, handle));
    }
    let removed = TABLE.remove(handle as u64);
    removed.map(|_| ()).map_err(|error| Kind::Info.refuse(argument, handle, error))
}

/// Returns a copy of an info object; an empty one for MPI_INFO_NULL.
pub(crate) fn snapshot_or_empty(argument: &str, handle: Handle) -> Result<Info, Mistake> {
    if handle == INFO_NULL { Ok(Info::default()) } else { snapshot(argument, handle) }
}

/// Returns a copy of an info object.
pub(crate) fn snapshot(argument: &str, handle: Handle) -> Result<Info, Mistake> {
    if handle == INFO_ENV {
        return Ok(Info::of_environment());
    }
    locked(argument, handle).map(|info| info.clone())
}

/// One of the program's info objects, to change it.
pub(crate) fn locked(argument: &str, handle: Handle) -> Result<MutexGuard<'static, Info>, Mistake> {
    if handle == INFO_ENV {
        return Err(Kind::Info.refuse_predefined(argument, handle));
    }
    // SAFETY: a program frees an object when no other call of its uses it.
    let found = unsafe { TABLE.get(handle as u64) };
    found
        .map(|info| info.lock().unwrap_or_else(PoisonError::into_inner))
        .map_err(|error| Kind::Info.refuse(argument, handle, error))
}

/// The number of a handle, and the handle of a number.
pub(crate) fn table() -> &'static Table<impl Sized> {
    &TABLE
}

impl Info {
    /// The facts about the start of this program (MPI_INFO_ENV).
    pub(crate) fn of_environment() -> Self {
        let mut info = Self::default();
        let mut words = std::env::args();
        if let Some(command) = words.next() {
            info.set("command", &command);
        }
        info.set("argv", &words.collect::<Vec<_>>().join(" "));
        if let Ok(folder) = std::env::current_dir() {
            info.set("wdir", &folder.to_string_lossy());
        }
        info.set("arch", std::env::consts::ARCH);
        if let Some(name) = error_handler::initial_name() {
            info.set("mpi_initial_errhandler", name);
        }
        info
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
    }

    pub(crate) fn set(&mut self, key: &str, value: &str) {
        match self.pairs.iter_mut().find(|(own, _)| own == key) {
            Some((_, place)) => value.clone_into(place),
            None => self.pairs.push((key.to_owned(), value.to_owned())),
        }
    }

    /// Takes a key out; false if it is not there.
    pub(crate) fn delete(&mut self, key: &str) -> bool {
        let before = self.pairs.len();
        self.pairs.retain(|(own, _)| own != key);
        self.pairs.len() < before
    }

    /// The keys in their order.
    pub(crate) fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.pairs.iter().map(|(key, _)| key.as_str())
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order() {
        let mut info = Info::default();
        info.set("b", "1");
        info.set("a", "2");
        info.set("b", "3");
        assert_eq!(info.pairs().collect::<Vec<_>>(), [("b", "3"), ("a", "2")]);
        assert!(info.delete("b"));
        assert!(!info.delete("b"));
        assert_eq!((info.get("a"), info.get("b")), (Some("2"), None));
    }

    #[test]
    fn a_predefined_info_stays() {
        assert!(free("info", INFO_ENV).is_err());
        assert!(locked("info", INFO_ENV).is_err());
        let info = keep(Info::default()).unwrap();
        free("info", info).unwrap();
        assert!(snapshot("info", info).is_err());
        assert_eq!(snapshot_or_empty("info", INFO_NULL).unwrap().keys().len(), 0);
    }
}
