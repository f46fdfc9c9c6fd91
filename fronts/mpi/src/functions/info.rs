//! Info objects.

use std::ffi::{c_char, c_int};

use landeck_c_boundary::{pointer, string};

use crate::abi::{
    ERR_ARG, ERR_INFO_KEY, ERR_INFO_NOKEY, ERR_INFO_VALUE, Handle, INFO_NULL, MAX_INFO_KEY,
    MAX_INFO_VAL,
};
use crate::arguments::give;
use crate::mistake::Mistake;
use crate::objects::info::{self, Info};

/// An empty one.
pub(crate) unsafe fn info_create(info: *mut Handle) -> Result<(), Mistake> {
    pointer::check("info", info, 1)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("info", info, info::keep(Info::default())?) }
}

/// One with what is known of how the program was started; it may be called at any time.
pub(crate) unsafe fn info_create_env(
    _argc: c_int,
    _argv: *mut *mut c_char,
    info: *mut Handle,
) -> Result<(), Mistake> {
    pointer::check("info", info, 1)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("info", info, info::keep(Info::of_environment())?) }
}

/// A copy.
pub(crate) unsafe fn info_dup(info: Handle, newinfo: *mut Handle) -> Result<(), Mistake> {
    pointer::check("newinfo", newinfo, 1)?;
    let copy = info::snapshot("info", info)?;
    // SAFETY: the program says that it is writable.
    unsafe { give("newinfo", newinfo, info::keep(copy)?) }
}

/// Frees one.
pub(crate) unsafe fn info_free(info: *mut Handle) -> Result<(), Mistake> {
    // SAFETY: the program gives the address of a handle, or it is refused.
    info::free("info", unsafe { pointer::read("info", info)? })?;
    // SAFETY: read above; the program says that it is writable too.
    unsafe { give("info", info, INFO_NULL) }
}

/// Sets the value of a key.
pub(crate) unsafe fn info_set(
    info: Handle,
    key: *const c_char,
    value: *const c_char,
) -> Result<(), Mistake> {
    // SAFETY: the program gives texts, or they are refused.
    let (key, value) = unsafe { (key_of(key)?, value_of(value)?) };
    info::locked("info", info)?.set(&key, &value);
    Ok(())
}

/// Takes a key out.
pub(crate) unsafe fn info_delete(info: Handle, key: *const c_char) -> Result<(), Mistake> {
    // SAFETY: the program gives a text, or it is refused.
    let key = unsafe { key_of(key)? };
    if info::locked("info", info)?.delete(&key) {
        return Ok(());
    }
    Err(Mistake::new(ERR_INFO_NOKEY, format_args!("key is \"{key}\", which info does not have")))
}

/// The value of a key, as far as there is room, and how much room it needs.
pub(crate) unsafe fn info_get_string(
    info: Handle,
    key: *const c_char,
    buflen: *mut c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gives a text, or it is refused.
    let key = unsafe { key_of(key)? };
    // SAFETY: the program says that it is readable.
    let room = unsafe { pointer::read("buflen", buflen)? };
    let info = info::snapshot("info", info)?;
    let found = info.get(&key);
    if let Some(found) = found {
        let room = usize::try_from(room).unwrap_or_default();
        // SAFETY: the program has so much room.
        unsafe {
            string::write("value", value, room, found)?;
            give("buflen", buflen, found.len() as c_int + 1)?;
        }
    }
    // SAFETY: the program says that it is writable.
    unsafe { give("flag", flag, c_int::from(found.is_some())) }
}

/// The value of a key, up to a length without its end.
pub(crate) unsafe fn info_get(
    info: Handle,
    key: *const c_char,
    valuelen: c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> Result<(), Mistake> {
    let room = usize::try_from(valuelen).map_err(|_| {
        Mistake::new(ERR_ARG, format_args!("valuelen is {valuelen}; it must be 0 or more"))
    })?;
    // SAFETY: the program gives a text, or it is refused.
    let key = unsafe { key_of(key)? };
    let info = info::snapshot("info", info)?;
    let found = info.get(&key);
    if let Some(found) = found {
        // SAFETY: the program has room for the text and its end.
        unsafe { string::write("value", value, room + 1, found)? };
    }
    // SAFETY: the program says that it is writable.
    unsafe { give("flag", flag, c_int::from(found.is_some())) }
}

/// The length of the value of a key.
pub(crate) unsafe fn info_get_valuelen(
    info: Handle,
    key: *const c_char,
    valuelen: *mut c_int,
    flag: *mut c_int,
) -> Result<(), Mistake> {
    // SAFETY: the program gives a text, or it is refused.
    let key = unsafe { key_of(key)? };
    let info = info::snapshot("info", info)?;
    let found = info.get(&key);
    // SAFETY: the program says that both are writable.
    unsafe {
        if let Some(found) = found {
            give("valuelen", valuelen, found.len() as c_int)?;
        }
        give("flag", flag, c_int::from(found.is_some()))
    }
}

/// How many keys there are.
pub(crate) unsafe fn info_get_nkeys(info: Handle, nkeys: *mut c_int) -> Result<(), Mistake> {
    let count = info::snapshot("info", info)?.keys().len();
    // SAFETY: the program says that it is writable.
    unsafe { give("nkeys", nkeys, count as c_int) }
}

/// The key at a place.
pub(crate) unsafe fn info_get_nthkey(
    info: Handle,
    n: c_int,
    key: *mut c_char,
) -> Result<(), Mistake> {
    let info = info::snapshot("info", info)?;
    let count = info.keys().len();
    let found = usize::try_from(n).ok().and_then(|place| info.keys().nth(place));
    let found = found.ok_or_else(|| {
        Mistake::new(ERR_ARG, format_args!("n is {n}, but info has {count} keys, counted from 0"))
    })?;
    // SAFETY: the program has so much room.
    unsafe { string::write("key", key, MAX_INFO_KEY as usize, found)? };
    Ok(())
}

unsafe fn key_of(key: *const c_char) -> Result<String, Mistake> {
    // SAFETY: as the caller says.
    let text = unsafe { string::read("key", key, MAX_INFO_KEY as usize - 1) }
        .map_err(|error| Mistake::new(ERR_INFO_KEY, error))?;
    if text.is_empty() {
        return Err(Mistake::new(ERR_INFO_KEY, "key is empty; give it a name"));
    }
    Ok(text.to_string_lossy().into_owned())
}

unsafe fn value_of(value: *const c_char) -> Result<String, Mistake> {
    // SAFETY: as the caller says.
    let text = unsafe { string::read("value", value, MAX_INFO_VAL as usize - 1) }
        .map_err(|error| Mistake::new(ERR_INFO_VALUE, error))?;
    Ok(text.to_string_lossy().into_owned())
}
