//! The operations of reductions: predefined ones and those of the program.

use std::sync::{Mutex, PoisonError};

use landeck::arithmetic::Operation as Predefined;
use landeck_c_boundary::{Handle as TableHandle, Table};

use crate::abi::{Handle, UserFunction};
use crate::mistake::Mistake;

/// How a reduction combines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    /// An operation of the library.
    Predefined(Predefined),
    /// A function of the program. Whether it commutes does not matter: it is always applied in the
    /// order of the ranks.
    Users(UserFunction),
}

/// The program's own operations.
static USERS: Mutex<Table<UserFunction>> = Mutex::new(Table::new());

/// Makes an operation of a function of the program.
pub(crate) fn create(function: UserFunction) -> Handle {
    // Handles of tables are at least 2^32, so none is a predefined one.
    users().insert(function).to_bits() as Handle
}

/// The operation of a handle.
pub(crate) fn of(handle: Handle) -> Result<Operation, Mistake> {
    if let Some(predefined) = predefined(handle) {
        return Ok(Operation::Predefined(predefined));
    }
    users()
        .get(TableHandle::from_bits(handle as u64))
        .map(|function| Operation::Users(*function))
        .map_err(Mistake::Operation)
}

/// Frees an operation of the program.
pub(crate) fn free(handle: Handle) -> Result<(), Mistake> {
    if predefined(handle).is_some() {
        return Err(Mistake::PredefinedOperation { value: handle });
    }
    users().remove(TableHandle::from_bits(handle as u64)).map(|_| ()).map_err(Mistake::Operation)
}

fn users() -> std::sync::MutexGuard<'static, Table<UserFunction>> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn predefined(handle: Handle) -> Option<Predefined> {
    Some(match handle {
        0x21 => Predefined::Sum,
        0x22 => Predefined::Minimum,
        0x23 => Predefined::Maximum,
        0x24 => Predefined::Product,
        0x28 => Predefined::BitAnd,
        0x29 => Predefined::BitOr,
        0x2a => Predefined::BitXor,
        0x30 => Predefined::LogicalAnd,
        0x31 => Predefined::LogicalOr,
        0x32 => Predefined::LogicalXor,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::{c_int, c_void};

    unsafe extern "C-unwind" fn nothing(
        _: *mut c_void,
        _: *mut c_void,
        _: *mut c_int,
        _: *mut Handle,
    ) {
    }

    #[test]
    fn an_operation_of_the_program_lives_until_it_is_freed() {
        let handle = create(nothing);
        assert!(matches!(of(handle), Ok(Operation::Users(_))));
        free(handle).unwrap();
        assert!(matches!(of(handle), Err(Mistake::Operation(_))));
        assert!(free(handle).is_err());
        assert!(matches!(free(0x21), Err(Mistake::PredefinedOperation { value: 0x21 })));
        assert!(of(0x20).is_err());
    }
}
