//! Threads.

use std::ffi::{CString, c_char, c_void};

use landeck_c_boundary::pointer;

use crate::arguments::thread_name;
use crate::errors;
use crate::handle::Handle;
use crate::mistake::Mistake;
use crate::objects::thread::{self, Body};

pub(crate) unsafe fn create(
    t: *mut Handle,
    body: Body,
    argument: *mut c_void,
) -> Result<(), Mistake> {
    // SAFETY: as the program says of the place.
    unsafe { create_with(t, body, argument, std::ptr::null(), 0) }
}

pub(crate) unsafe fn create_with(
    t: *mut Handle,
    body: Body,
    argument: *mut c_void,
    name: *const c_char,
    stack_bytes: usize,
) -> Result<(), Mistake> {
    pointer::check("t", t, 1)?;
    let text = "body is a null pointer; pass the function that the thread runs";
    let body = body.ok_or_else(|| Mistake::known(errors::NULL, text))?;
    // SAFETY: the program gave a name, or none.
    let name = unsafe { thread_name("name", name) }?;
    let name = name.map(|name| CString::new(name).unwrap_or_default());
    let handle = thread::start(body, argument, name.as_deref(), stack_bytes)?;
    // SAFETY: the program gave the place of an object.
    Ok(unsafe { pointer::write("t", t, handle) }?)
}

pub(crate) unsafe fn join(t: *mut Handle, result: *mut *mut c_void) -> Result<(), Mistake> {
    // SAFETY: the program gave the place of an object.
    let handle = unsafe { pointer::read("t", t) }?;
    if !result.is_null() {
        pointer::check("result", result, 1)?;
    }
    let value = thread::join(handle)?;
    if !result.is_null() {
        // SAFETY: the program gave a place for the result.
        unsafe { pointer::write("result", result, value) }?;
    }
    Ok(())
}

pub(crate) unsafe fn self_(t: *mut Handle) -> Result<(), Mistake> {
    pointer::check("t", t, 1)?;
    // SAFETY: the program gave the place of an object.
    Ok(unsafe { pointer::write("t", t, thread::this()) }?)
}
