//! The operations of reductions: predefined ones and those of the program.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicPtr, Ordering};

use landeck::unstable::arithmetic::{Operation as Arithmetic, Operator, Reduction};
use landeck_c_boundary::Table;

use crate::abi::{self, ERR_OP, Handle, UserFunction, UserFunctionLarge};
use crate::mistake::Mistake;
use crate::objects::datatype::{self, Datatype};
use crate::objects::kind::Kind;

/// An operation of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Predefined {
    Combines(Arithmetic),
    /// One that only one-sided communication has.
    OneSided(&'static str),
}

impl Predefined {
    /// Whether its operands may change places.
    pub(crate) fn is_commutative(self) -> bool {
        matches!(self, Self::Combines(_))
    }

    /// The operation on items of a datatype.
    #[inline]
    pub(crate) fn on(self, datatype: &Datatype) -> Result<Reduction, Mistake> {
        match (self, datatype.element) {
            (Self::Combines(operation), _) if operation.is_logical() && !has_truth(datatype) => {
                Err(senseless(operation, datatype))
            }
            (Self::Combines(operation), Some(element)) => Ok(Reduction::new(operation, element)?),
            (Self::Combines(operation), None) => Err(senseless(operation, datatype)),
            (Self::OneSided(name), _) => Err(one_sided(name)),
        }
    }
}

/// Whether the standard takes its items for truth values: integers of C, but none of Fortran.
#[inline]
fn has_truth(datatype: &Datatype) -> bool {
    datatype.permanent.get().is_none_or(|handle| !INTEGERS_WITHOUT_TRUTH.contains(handle))
}

const INTEGERS_WITHOUT_TRUTH: [Handle; 6] =
    [abi::INTEGER, abi::INTEGER1, abi::INTEGER2, abi::INTEGER4, abi::INTEGER8, abi::INTEGER16];

#[cold]
fn senseless(operation: Arithmetic, datatype: &Datatype) -> Mistake {
    let name = datatype.name.lock().unwrap_or_else(PoisonError::into_inner);
    let name = if name.is_empty() { "a datatype that the program made" } else { name.as_str() };
    let text = format!("op does not fit datatype: {operation} means nothing for {name}");
    Mistake::new(ERR_OP, text)
}

#[cold]
fn one_sided(name: &str) -> Mistake {
    let text =
        format!("op is {name}, which only one-sided communication has; use another operation");
    Mistake::new(ERR_OP, text)
}

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

/// The predefined operations lie between these.
const FIRST: Handle = abi::OP_NULL;
const LAST: Handle = abi::NO_OP;

/// By operation and datatype; null if it was not looked up yet, or if it means nothing.
static OPERATORS: [[AtomicPtr<Operator>; datatype::LAST - datatype::FIRST + 1]; LAST - FIRST + 1] = [const {
    [const { AtomicPtr::new(std::ptr::null_mut()) }; datatype::LAST - datatype::FIRST + 1]
};
    LAST - FIRST + 1];
static TABLE: Table<Own> = Table::new(Kind::Operation as u8);

/// Gives out the handle of an operation of the program.
pub(crate) fn keep(own: Own) -> Result<Handle, Mistake> {
    TABLE.make_room()?;
    Ok(TABLE.insert(own) as Handle)
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

/// How items of a predefined datatype combine by a predefined operation, if they do: found out once and
/// kept, since it takes longer than to combine a few of them.
#[inline(always)]
pub(crate) fn operator(op: Handle, datatype: Handle) -> Option<&'static Operator> {
    let (row, column) = (op.wrapping_sub(FIRST), datatype.wrapping_sub(datatype::FIRST));
    let place = OPERATORS.get(row)?.get(column)?;
    // SAFETY: what is stored there is never freed.
    match unsafe { place.load(Ordering::Acquire).as_ref() } {
        Some(operator) => Some(operator),
        None => find_operator(op, datatype, place),
    }
}

#[cold]
#[inline(never)]
fn find_operator(
    op: Handle,
    datatype: Handle,
    place: &'static AtomicPtr<Operator>,
) -> Option<&'static Operator> {
    let reduction = predefined(op)?.on(datatype::get("datatype", datatype).ok()?).ok()?;
    let made = Box::into_raw(Box::new(Operator::from(reduction)));
    let null = std::ptr::null_mut();
    let found = match place.compare_exchange(null, made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made,
        Err(others) => {
            // SAFETY: made above from a box, and nobody else has seen it.
            drop(unsafe { Box::from_raw(made) });
            others
        }
    };
    // SAFETY: what is stored there is never freed.
    Some(unsafe { &*found })
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
    Some(Predefined::Combines(match handle {
        abi::SUM => Arithmetic::Sum,
        abi::MIN => Arithmetic::Minimum,
        abi::MAX => Arithmetic::Maximum,
        abi::PROD => Arithmetic::Product,
        abi::BAND => Arithmetic::BitAnd,
        abi::BOR => Arithmetic::BitOr,
        abi::BXOR => Arithmetic::BitXor,
        abi::LAND => Arithmetic::LogicalAnd,
        abi::LOR => Arithmetic::LogicalOr,
        abi::LXOR => Arithmetic::LogicalXor,
        abi::MINLOC => Arithmetic::MinimumAt,
        abi::MAXLOC => Arithmetic::MaximumAt,
        abi::REPLACE => return Some(Predefined::OneSided("MPI_REPLACE")),
        abi::NO_OP => return Some(Predefined::OneSided("MPI_NO_OP")),
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::{c_int, c_void};

    #[test]
    fn a_predefined_pair_combines_the_same_each_time_it_is_asked_for() {
        for op in 0..=LAST + 1 {
            for datatype in [abi::INT, abi::DOUBLE, abi::INTEGER, abi::DOUBLE_INT, abi::BYTE] {
                let asked = predefined(op).and_then(|predefined| {
                    predefined.on(datatype::get("datatype", datatype).unwrap()).ok()
                });
                let found = [operator(op, datatype), operator(op, datatype)];
                assert_eq!(found[0].map(std::ptr::from_ref), found[1].map(std::ptr::from_ref));
                let reduction = found[0].map(|found| found.reduction().unwrap());
                let named = |found: Reduction| (found.operation(), found.element());
                assert_eq!(reduction.map(named), asked.map(named), "{op:#x} {datatype:#x}");
            }
        }
        assert!(operator(abi::SUM, 0).is_none() && operator(abi::SUM, usize::MAX).is_none());
    }

    unsafe extern "C-unwind" fn nothing(
        _: *mut c_void,
        _: *mut c_void,
        _: *mut c_int,
        _: *mut Handle,
    ) {
    }

    #[test]
    fn an_operation_of_the_program_lives_until_it_is_freed() {
        let handle =
            keep(Own { function: Function::Short(nothing), is_commutative: true }).unwrap();
        assert!(matches!(get("op", handle), Ok(Operation::Own(_))));
        free("op", handle).unwrap();
        assert!(get("op", handle).is_err());
        assert!(free("op", handle).is_err());
        assert!(free("op", abi::SUM).is_err());
        assert!(get("op", abi::OP_NULL).is_err());
    }
}
