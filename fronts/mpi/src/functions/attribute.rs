//! Attributes of communicators, datatypes and windows.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use landeck_c_boundary::pointer;

use crate::abi::{
    ANY_SOURCE, Callback, HOST, Handle, IO, KEYVAL_INVALID, LASTUSEDCODE, PROC_NULL, TAG_UB,
    UNIVERSE_SIZE, WTIME_IS_GLOBAL,
};
use crate::arguments::give;
use crate::job;
use crate::mistake::Mistake;
use crate::objects::attributes::{self, Attribute, Attributes};
use crate::objects::keyval::{self, Keyval};
use crate::objects::kind::Kind;
use crate::objects::{communicator, datatype, error_code};
use crate::walk::Walk;

/// Makes a key for attributes of communicators.
pub(crate) unsafe fn comm_create_keyval(
    comm_copy_attr_fn: Callback,
    comm_delete_attr_fn: Callback,
    comm_keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Result<(), Mistake> {
    let functions = (comm_copy_attr_fn, comm_delete_attr_fn);
    // SAFETY: the program gives functions of these types, or constants, and a writable place.
    unsafe { create(Kind::Communicator, functions, extra_state, ("comm_keyval", comm_keyval)) }
}

/// MPI_Keyval_create: the old name of [`comm_create_keyval`].
pub(crate) unsafe fn keyval_create(
    copy_fn: Callback,
    delete_fn: Callback,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Result<(), Mistake> {
    // SAFETY: as above.
    unsafe { create(Kind::Communicator, (copy_fn, delete_fn), extra_state, ("keyval", keyval)) }
}

/// Makes a key for attributes of datatypes.
pub(crate) unsafe fn type_create_keyval(
    type_copy_attr_fn: Callback,
    type_delete_attr_fn: Callback,
    type_keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Result<(), Mistake> {
    let functions = (type_copy_attr_fn, type_delete_attr_fn);
    // SAFETY: the program gives functions of these types, or constants, and a writable place.
    unsafe { create(Kind::Datatype, functions, extra_state, ("type_keyval", type_keyval)) }
}

/// Makes a key for attributes of windows.
pub(crate) unsafe fn win_create_keyval(
    win_copy_attr_fn: Callback,
    win_delete_attr_fn: Callback,
    win_keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Result<(), Mistake> {
    let functions = (win_copy_attr_fn, win_delete_attr_fn);
    // SAFETY: the program gives functions of these types, or constants, and a writable place.
    unsafe { create(Kind::Window, functions, extra_state, ("win_keyval", win_keyval)) }
}

/// Frees a key; attributes of it stay.
pub(crate) unsafe fn comm_free_keyval(comm_keyval: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program gives the address of a key, or it is refused.
    unsafe { free(Kind::Communicator, ("comm_keyval", comm_keyval)) }
}

/// MPI_Keyval_free: the old name of [`comm_free_keyval`].
pub(crate) unsafe fn keyval_free(keyval: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: as above.
    unsafe { free(Kind::Communicator, ("keyval", keyval)) }
}

/// Frees a key of datatypes.
pub(crate) unsafe fn type_free_keyval(type_keyval: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: as above.
    unsafe { free(Kind::Datatype, ("type_keyval", type_keyval)) }
}

/// Frees a key of windows.
pub(crate) unsafe fn win_free_keyval(win_keyval: *mut c_int) -> Result<(), Mistake> {
    // SAFETY: the program gives the address of a key, or it is refused.
    unsafe { free(Kind::Window, ("win_keyval", win_keyval)) }
}

/// Sets an attribute of a communicator; an old one of the same key is deleted.
pub(crate) unsafe fn comm_set_attr(
    comm: Handle,
    comm_keyval: c_int,
    attribute_val: *mut c_void,
) -> Result<Walk, Mistake> {
    let attributes = &communicator::get("comm", comm)?.attributes;
    let key = (Kind::Communicator, "comm_keyval", comm_keyval);
    set((comm, attributes), key, attribute_val)
}

/// MPI_Attr_put: the old name of [`comm_set_attr`].
pub(crate) unsafe fn attr_put(
    comm: Handle,
    keyval: c_int,
    attribute_val: *mut c_void,
) -> Result<Walk, Mistake> {
    let attributes = &communicator::get("comm", comm)?.attributes;
    set((comm, attributes), (Kind::Communicator, "keyval", keyval), attribute_val)
}

/// Sets an attribute of a datatype.
pub(crate) unsafe fn type_set_attr(
    datatype: Handle,
    type_keyval: c_int,
    attribute_val: *mut c_void,
) -> Result<Walk, Mistake> {
    let attributes = &datatype::get("datatype", datatype)?.attributes;
    let key = (Kind::Datatype, "type_keyval", type_keyval);
    set((datatype, attributes), key, attribute_val)
}

/// Sets an attribute of a window. There are none here.
pub(crate) unsafe fn win_set_attr(
    win: Handle,
    _win_keyval: c_int,
    _attribute_val: *mut c_void,
) -> Result<(), Mistake> {
    Err(Kind::Window.refuse_unknown("win", win))
}

/// The attribute of a communicator for a key, if it has one.
pub(crate) unsafe fn comm_get_attr(
    comm: Handle,
    comm_keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Result<(), Mistake> {
    let attributes = &communicator::get("comm", comm)?.attributes;
    let key = (Kind::Communicator, "comm_keyval", comm_keyval);
    // SAFETY: the program says that both places are writable.
    unsafe { get(attributes, key, attribute_val, flag) }
}

/// MPI_Attr_get: the old name of [`comm_get_attr`].
pub(crate) unsafe fn attr_get(
    comm: Handle,
    keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Result<(), Mistake> {
    let attributes = &communicator::get("comm", comm)?.attributes;
    // SAFETY: as above.
    unsafe { get(attributes, (Kind::Communicator, "keyval", keyval), attribute_val, flag) }
}

/// The attribute of a datatype for a key, if it has one.
pub(crate) unsafe fn type_get_attr(
    datatype: Handle,
    type_keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Result<(), Mistake> {
    let attributes = &datatype::get("datatype", datatype)?.attributes;
    // SAFETY: the program says that both places are writable.
    unsafe { get(attributes, (Kind::Datatype, "type_keyval", type_keyval), attribute_val, flag) }
}

/// The attribute of a window for a key. There are none here.
pub(crate) unsafe fn win_get_attr(
    win: Handle,
    _win_keyval: c_int,
    _attribute_val: *mut c_void,
    _flag: *mut c_int,
) -> Result<(), Mistake> {
    Err(Kind::Window.refuse_unknown("win", win))
}

/// Deletes an attribute of a communicator, if it has it.
pub(crate) unsafe fn comm_delete_attr(comm: Handle, comm_keyval: c_int) -> Result<Walk, Mistake> {
    let attributes = &communicator::get("comm", comm)?.attributes;
    delete((comm, attributes), (Kind::Communicator, "comm_keyval", comm_keyval))
}

/// MPI_Attr_delete: the old name of [`comm_delete_attr`].
pub(crate) unsafe fn attr_delete(comm: Handle, keyval: c_int) -> Result<Walk, Mistake> {
    let attributes = &communicator::get("comm", comm)?.attributes;
    delete((comm, attributes), (Kind::Communicator, "keyval", keyval))
}

/// Deletes an attribute of a datatype, if it has it.
pub(crate) unsafe fn type_delete_attr(
    datatype: Handle,
    type_keyval: c_int,
) -> Result<Walk, Mistake> {
    let attributes = &datatype::get("datatype", datatype)?.attributes;
    delete((datatype, attributes), (Kind::Datatype, "type_keyval", type_keyval))
}

/// Deletes an attribute of a window. There are none here.
pub(crate) unsafe fn win_delete_attr(win: Handle, _win_keyval: c_int) -> Result<(), Mistake> {
    Err(Kind::Window.refuse_unknown("win", win))
}

unsafe fn create(
    kind: Kind,
    (copy, delete): (Callback, Callback),
    extra_state: *mut c_void,
    (argument, place): (&'static str, *mut c_int),
) -> Result<(), Mistake> {
    job::check_joined()?;
    pointer::check(argument, place, 1)?;
    // SAFETY: as the caller says.
    let made = unsafe { Keyval::new(kind, copy, delete, extra_state) };
    // SAFETY: checked above; the caller says that it is writable.
    unsafe { give(argument, place, keyval::keep(made)?) }
}

unsafe fn free(kind: Kind, (argument, place): (&'static str, *mut c_int)) -> Result<(), Mistake> {
    // SAFETY: as the caller says.
    let number = unsafe { pointer::read(argument, place)? };
    keyval::free(argument, number, kind)?;
    // SAFETY: read above; the caller says that it is writable too.
    unsafe { give(argument, place, KEYVAL_INVALID) }
}

/// A key, with the kind of objects and the argument that names it.
type Key = (Kind, &'static str, c_int);

/// The key of a number. One that was freed is there for as long as an object has an attribute of it,
/// for that object.
fn key(attributes: &Attributes, (kind, argument, number): Key) -> Result<Arc<Keyval>, Mistake> {
    attributes.key(number).map_or_else(|| keyval::get(argument, number, kind), Ok)
}

fn set(
    (object, attributes): (Handle, &'static Attributes),
    (kind, argument, number): Key,
    value: *mut c_void,
) -> Result<Walk, Mistake> {
    let keyval = key(attributes, (kind, argument, number))?;
    let attribute = Attribute { number, keyval, value: value.expose_provenance() };
    let old = attributes.take(number).into_iter().collect();
    attributes::delete(object, old, put_back_to(attributes), move || {
        attributes.push(attribute);
        Ok(())
    })
}

unsafe fn get(
    attributes: &Attributes,
    (kind, argument, number): Key,
    place: *mut c_void,
    flag: *mut c_int,
) -> Result<(), Mistake> {
    let place = place.cast::<*mut c_void>();
    pointer::check("attribute_val", place, 1)?;
    pointer::check("flag", flag, 1)?;
    let found = match kind == Kind::Communicator && is_predefined(number) {
        true => predefined(number)?,
        false => {
            key(attributes, (kind, argument, number))?;
            attributes.get(number).map(std::ptr::with_exposed_provenance_mut)
        }
    };
    // SAFETY: checked above; the caller says that both are writable.
    unsafe {
        if let Some(value) = found {
            place.write(value);
        }
        flag.write(c_int::from(found.is_some()));
    }
    Ok(())
}

fn delete(
    (object, attributes): (Handle, &'static Attributes),
    (kind, argument, number): Key,
) -> Result<Walk, Mistake> {
    key(attributes, (kind, argument, number))?;
    let old = attributes.take(number).into_iter().collect();
    attributes::delete(object, old, put_back_to(attributes), || Ok(()))
}

fn put_back_to(attributes: &'static Attributes) -> impl FnOnce(Vec<Attribute>) + 'static {
    move |list| list.into_iter().for_each(|attribute| attributes.push(attribute))
}

/// The attributes that every communicator has: those of the whole job.
fn is_predefined(number: c_int) -> bool {
    (TAG_UB..=UNIVERSE_SIZE).contains(&number)
}

/// The address of the value of an attribute that is predefined; none if it is not known.
fn predefined(number: c_int) -> Result<Option<*mut c_void>, Mistake> {
    static LARGEST_TAG: AtomicI32 = AtomicI32::new(c_int::MAX);
    static FILES: AtomicI32 = AtomicI32::new(ANY_SOURCE);
    static OWN_HOST: AtomicI32 = AtomicI32::new(PROC_NULL);
    static ONE_CLOCK: AtomicI32 = AtomicI32::new(1);
    static LARGEST_CODE: AtomicI32 = AtomicI32::new(0);
    static PROCESSES: AtomicI32 = AtomicI32::new(0);
    let value = match number {
        TAG_UB => &LARGEST_TAG,
        IO => &FILES,
        HOST => &OWN_HOST,
        WTIME_IS_GLOBAL => {
            // Each host has a clock of its own.
            ONE_CLOCK.store((!job::world_spans_hosts()?).into(), Ordering::Relaxed);
            &ONE_CLOCK
        }
        LASTUSEDCODE => {
            LARGEST_CODE.store(error_code::last_used(), Ordering::Relaxed);
            &LARGEST_CODE
        }
        UNIVERSE_SIZE => {
            PROCESSES.store(job::everybody()?.size() as c_int, Ordering::Relaxed);
            &PROCESSES
        }
        // Which of several programs this is, launchers do not say.
        _ => return Ok(None),
    };
    Ok(Some(value.as_ptr().cast()))
}
