//! The operations of reductions: predefined ones and those of the program.

use landeck::arithmetic::Operation as Predefined;
use landeck_c_boundary::Table;

use crate::abi::{self, Handle, UserFunction, UserFunctionLarge};
use crate::mistake::Mistake;
use crate::objects::kind::Kind;

/// How a reduction combines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Predefined(Predefined),
    Own(Own),
}

/// An operation of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub(crate) function: Function,
    pub(crate) is_commutative: bool,
}

/// A function of the program that combines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Function {
    Short(UserFunction),
    Large(UserFunctionLarge),
}

static TABLE: Table<Own> = Table::new(Kind::Operation as u8);

/// Gives out the handle of an operation of the program.
pub(crate) fn keep(own: Own) -> Handle {
    TABLE.insert(own) as Handle
}

/// The operation of a handle.
pub(crate) fn get(argument: &str, handle: Handle) -> Result<Operation, Mistake> {
    if let Some(predefined) = predefined(handle) {
        return Ok(Operation::Predefined(predefined));
    }
    // SAFETY: it is copied at once; a program frees an object when no other call of its uses it.
    unsafe { TABLE.get(handle as u64) }
        .map(|own| Operation::Own(*own))
        .map_err(|error| Kind::Operation.refuse(argument, handle, error))
}

/// Frees an operation of the program.
pub(crate) fn free(argument: &str, handle: Handle) -> Result<(), Mistake> {
    if predefined(handle).is_some() {
        return Err(Kind::Operation.refuse_predefined(argument, handle));
    }
    let removed = TABLE.remove(handle as u64);
    removed.map(|_| ()).map_err(|error| Kind::Operation.refuse(argument, handle, error))
}

/// The number of a handle, and the handle of a number.
pub(crate) fn table() -> &'static Table<impl Sized> {
    &TABLE
}

fn predefined(handle: Handle) -> Option<Predefined> {
    Some(match handle {
        abi::SUM => Predefined::Sum,
        abi::MIN => Predefined::Minimum,
        abi::MAX => Predefined::Maximum,
        abi::PROD => Predefined::Product,
        abi::BAND => Predefined::BitAnd,
        abi::BOR => Predefined::BitOr,
        abi::BXOR => Predefined::BitXor,
        abi::LAND => Predefined::LogicalAnd,
        abi::LOR => Predefined::LogicalOr,
        abi::LXOR => Predefined::LogicalXor,
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
        let handle = keep(Own { function: Function::Short(nothing), is_commutative: true });
        assert!(matches!(get("op", handle), Ok(Operation::Own(_))));
        free("op", handle).unwrap();
        assert!(get("op", handle).is_err());
        assert!(free("op", handle).is_err());
        assert!(free("op", abi::SUM).is_err());
        assert!(get("op", abi::OP_NULL).is_err());
    }
}
