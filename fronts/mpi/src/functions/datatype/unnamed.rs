//! Predefined datatypes that are asked for by what they must hold.

use std::ffi::c_int;

use landeck::layout::{Kind, Layout, precision};
use landeck_c_boundary::pointer;

use crate::abi::{
    COMBINER_F90_COMPLEX, COMBINER_F90_INTEGER, COMBINER_F90_REAL, DATATYPE_NULL, ERR_ARG, Handle,
    UNDEFINED,
};
use crate::arguments::give;
use crate::mistake::Mistake;
use crate::objects::contents::Contents;
use crate::objects::datatype::{self, Datatype};
use crate::objects::predefined;

/// Real numbers of Fortran with so many decimal digits and so large an exponent.
pub(crate) unsafe fn type_create_f90_real(
    p: c_int,
    r: c_int,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { float(COMBINER_F90_REAL, precision::real, (p, r), newtype) }
}

/// Complex numbers of Fortran with so many decimal digits and so large an exponent.
pub(crate) unsafe fn type_create_f90_complex(
    p: c_int,
    r: c_int,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    unsafe { float(COMBINER_F90_COMPLEX, precision::complex, (p, r), newtype) }
}

/// Integers of Fortran with so many decimal digits.
pub(crate) unsafe fn type_create_f90_integer(
    r: c_int,
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    pointer::check("newtype", newtype, 1)?;
    let kind = at_least_0("r", r)?.and_then(precision::integer);
    let kind = kind.ok_or_else(|| {
        Mistake::new(ERR_ARG, format_args!("r is {r}; no integer has so many decimal digits"))
    })?;
    let contents = Contents::of(COMBINER_F90_INTEGER, false).integers(&[r]);
    // SAFETY: checked above; the program says that it is writable.
    unsafe {
        give("newtype", newtype, numbers((COMBINER_F90_INTEGER, [r.into(), 0]), kind, contents)?)
    }
}

/// The datatype with a name that is of this class and has so many bytes.
pub(crate) unsafe fn type_match_size(
    typeclass: c_int,
    size: c_int,
    datatype: *mut Handle,
) -> Result<(), Mistake> {
    pointer::check("datatype", datatype, 1)?;
    let sized = predefined::SIZED;
    if !sized.iter().any(|(class, ..)| *class == typeclass) {
        return Err(Mistake::new(
            ERR_ARG,
            format_args!(
                "typeclass is {typeclass}; pass MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_REAL or \
                 MPI_TYPECLASS_COMPLEX"
            ),
        ));
    }
    let found = sized.iter().find(|(class, bytes, _)| (*class, *bytes) == (typeclass, size));
    let (.., handle) = found.ok_or_else(|| {
        let text = format!("size is {size}, but no datatype of this class has so many bytes");
        Mistake::new(ERR_ARG, text)
    })?;
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("datatype", datatype, *handle) }
}

/// The pair of a value and an index, for reductions that look for places: one of those with names, or
/// the null datatype. The standard allows others, but programs that know of them do not cope: mpi4py
/// 4.1.2 takes them for datatypes of the program.
pub(crate) unsafe fn type_get_value_index(
    value_type: Handle,
    index_type: Handle,
    pair_type: *mut Handle,
) -> Result<(), Mistake> {
    datatype::get("value_type", value_type)?;
    datatype::get("index_type", index_type)?;
    let named = predefined::PAIRS
        .iter()
        .find(|(_, value, index)| (*value, *index) == (value_type, index_type));
    let pair = named.map_or(DATATYPE_NULL, |(pair, ..)| *pair);
    // SAFETY: the program says that it is writable.
    unsafe { give("pair_type", pair_type, pair) }
}

unsafe fn float(
    combiner: c_int,
    kind_of: fn(Option<u32>, Option<u32>) -> Option<Kind>,
    (p, r): (c_int, c_int),
    newtype: *mut Handle,
) -> Result<(), Mistake> {
    pointer::check("newtype", newtype, 1)?;
    let (digits, exponent) = (at_least_0("p", p)?, at_least_0("r", r)?);
    if digits.is_none() && exponent.is_none() {
        return Err(Mistake::new(ERR_ARG, "p and r are both MPI_UNDEFINED; give one of them"));
    }
    let kind = kind_of(digits, exponent).ok_or_else(|| {
        let text = format!("p is {p} and r is {r}; no number has such a precision and range");
        Mistake::new(ERR_ARG, text)
    })?;
    let contents = Contents::of(combiner, false).integers(&[p, r]);
    // SAFETY: checked above; the program says that it is writable.
    unsafe { give("newtype", newtype, numbers((combiner, [p.into(), r.into()]), kind, contents)?) }
}

/// The predefined datatype of these numbers.
fn numbers(
    arguments: (c_int, [i64; 2]),
    kind: Kind,
    contents: Contents,
) -> Result<Handle, Mistake> {
    datatype::unnamed(arguments, || {
        let made = Datatype::new(Layout::element(kind), contents);
        Ok(Datatype { element: predefined::element_of(kind), ..made })
    })
}

/// A number that is not given if it is MPI_UNDEFINED.
fn at_least_0(argument: &str, number: c_int) -> Result<Option<u32>, Mistake> {
    if number == UNDEFINED {
        return Ok(None);
    }
    u32::try_from(number).map(Some).map_err(|_| {
        let text = format!("{argument} is {number}; it must be 0 or more, or MPI_UNDEFINED");
        Mistake::new(ERR_ARG, text)
    })
}
