//! The attributes of an object, and the calls of the program when they are copied or deleted.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::abi::{CopyFunction, DeleteFunction, Handle, SUCCESS};
use crate::mistake::Mistake;
use crate::objects::keyval::{Copying, Keyval};
use crate::walk::{Call, Walk};

/// The attributes of an object, in the order in which they were set.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Mutex<Vec<Attribute>>);

/// One attribute.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    /// The number of its key.
    pub(crate) number: c_int,
    pub(crate) keyval: Arc<Keyval>,
    /// The value that the program set: an address, most often.
    pub(crate) value: usize,
}

impl Attributes {
    /// The value that is set for a key.
    pub(crate) fn get(&self, number: c_int) -> Option<usize> {
        self.lock().iter().find(|own| own.number == number).map(|own| own.value)
    }

    /// The key of one that is set.
    pub(crate) fn key(&self, number: c_int) -> Option<Arc<Keyval>> {
        self.lock().iter().find(|own| own.number == number).map(|own| Arc::clone(&own.keyval))
    }

    /// Sets one; an old value must be taken and deleted before.
    pub(crate) fn push(&self, attribute: Attribute) {
        self.lock().push(attribute);
    }

    /// Takes one out.
    pub(crate) fn take(&self, number: c_int) -> Option<Attribute> {
        let mut list = self.lock();
        let place = list.iter().position(|own| own.number == number)?;
        Some(list.remove(place))
    }

    /// Takes all out.
    pub(crate) fn take_all(&self) -> Vec<Attribute> {
        std::mem::take(&mut *self.lock())
    }

    /// All as they are now.
    pub(crate) fn snapshot(&self) -> Vec<Attribute> {
        self.lock().clone()
    }

    /// Puts these in the place of what is there.
    pub(crate) fn replace(&self, list: Vec<Attribute>) {
        *self.lock() = list;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Attribute>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Copies the attributes of an object that is being duplicated, as their keys say, and passes the
/// copies on. If the program refuses, so does the call.
pub(crate) fn copy(
    object: Handle,
    attributes: Vec<Attribute>,
    finish: impl FnOnce(Vec<Attribute>) -> Result<(), Mistake> + 'static,
) -> Result<Walk, Mistake> {
    if attributes.is_empty() {
        finish(Vec::new())?;
        return Ok(Walk::Done);
    }
    Ok(Walk::new(copying(object, attributes, finish)))
}

/// The steps of [`copy`], for who makes them later.
pub(crate) fn copying(
    object: Handle,
    attributes: Vec<Attribute>,
    finish: impl FnOnce(Vec<Attribute>) -> Result<(), Mistake> + 'static,
) -> impl FnMut() -> Result<Option<Call>, Mistake> + 'static {
    let (mut left, mut copies) = (attributes.into_iter(), Vec::new());
    let (mut asked, mut finish) = (None, Some(finish));
    move || {
        if let Some((attribute, call)) = asked.take() {
            copies.extend(CopyCall::answer(call, attribute)?);
        }
        for attribute in left.by_ref() {
            match attribute.keyval.copying {
                Copying::Never => {}
                Copying::Always => copies.push(attribute),
                Copying::Asks(function) => {
                    let call = CopyCall::new(function, object, &attribute);
                    let data = call.0.as_ptr().cast();
                    asked = Some((attribute, call));
                    return Ok(Some(Call { run: CopyCall::run, data }));
                }
            }
        }
        finish.take().map_or(Ok(()), |finish| finish(std::mem::take(&mut copies)))?;
        Ok(None)
    }
}

/// Tells the program that attributes go, the newest first, then does the rest. If the program
/// refuses one, that one and the older ones stay, and so does the object.
pub(crate) fn delete(
    object: Handle,
    attributes: Vec<Attribute>,
    put_back: impl FnOnce(Vec<Attribute>) + 'static,
    finish: impl FnOnce() -> Result<(), Mistake> + 'static,
) -> Result<Walk, Mistake> {
    if attributes.is_empty() {
        finish()?;
        return Ok(Walk::Done);
    }
    let (mut left, mut asked) = (attributes, None);
    let (mut put_back, mut finish) = (Some(put_back), Some(finish));
    Ok(Walk::new(move || {
        if let Some((attribute, call)) = asked.take()
            && let Err(mistake) = DeleteCall::answer(call)
        {
            left.push(attribute);
            if let Some(put_back) = put_back.take() {
                put_back(std::mem::take(&mut left));
            }
            return Err(mistake);
        }
        while let Some(attribute) = left.pop() {
            if let Some(function) = attribute.keyval.deleting {
                let call = DeleteCall::new(function, object, &attribute);
                let data = call.0.as_ptr().cast();
                asked = Some((attribute, call));
                return Ok(Some(Call { run: DeleteCall::run, data }));
            }
        }
        finish.take().map_or(Ok(()), |finish| finish())?;
        Ok(None)
    }))
}

/// A call of the program's function that copies. It lives on the heap, and leaks if that jumps out.
struct CopyCall {
    function: CopyFunction,
    object: Handle,
    number: c_int,
    extra_state: *mut c_void,
    value: *mut c_void,
    copied: *mut c_void,
    is_copied: c_int,
    code: c_int,
}

impl CopyCall {
    fn new(function: CopyFunction, object: Handle, attribute: &Attribute) -> OnHeap<Self> {
        OnHeap::new(Self {
            function,
            object,
            number: attribute.number,
            extra_state: attribute.keyval.extra_state(),
            value: std::ptr::with_exposed_provenance_mut(attribute.value),
            copied: std::ptr::null_mut(),
            is_copied: 0,
            code: SUCCESS,
        })
    }

    unsafe extern "C-unwind" fn run(data: *mut c_void) {
        let call = data.cast::<Self>();
        // SAFETY: `copy` passes what `new` made; the program gave the function for this.
        unsafe {
            (*call).code = ((*call).function)(
                (*call).object,
                (*call).number,
                (*call).extra_state,
                (*call).value,
                (&raw mut (*call).copied).cast(),
                &raw mut (*call).is_copied,
            );
        }
    }

    /// Returns the copied attribute that the program has answered with, if any.
    fn answer(call: OnHeap<Self>, attribute: Attribute) -> Result<Option<Attribute>, Mistake> {
        // SAFETY: `new` made it of a box, and each is answered once.
        let call = unsafe { Box::from_raw(call.0.as_ptr()) };
        match (call.code, call.is_copied) {
            (SUCCESS, 0) => Ok(None),
            (SUCCESS, _) => {
                Ok(Some(Attribute { value: call.copied.expose_provenance(), ..attribute }))
            }
            (code, _) => Err(Mistake::from_callback("the function that copies an attribute", code)),
        }
    }
}

/// A call of the program's function that deletes; as above.
struct DeleteCall {
    function: DeleteFunction,
    object: Handle,
    number: c_int,
    extra_state: *mut c_void,
    value: *mut c_void,
    code: c_int,
}

impl DeleteCall {
    fn new(function: DeleteFunction, object: Handle, attribute: &Attribute) -> OnHeap<Self> {
        OnHeap::new(Self {
            function,
            object,
            number: attribute.number,
            extra_state: attribute.keyval.extra_state(),
            value: std::ptr::with_exposed_provenance_mut(attribute.value),
            code: SUCCESS,
        })
    }

    unsafe extern "C-unwind" fn run(data: *mut c_void) {
        let call = data.cast::<Self>();
        // SAFETY: `delete` passes what `new` made; the program gave the function for this.
        unsafe {
            (*call).code = ((*call).function)(
                (*call).object,
                (*call).number,
                (*call).value,
                (*call).extra_state,
            );
        }
    }

    fn answer(call: OnHeap<Self>) -> Result<(), Mistake> {
        // SAFETY: `new` made it of a box, and each is answered once.
        match unsafe { Box::from_raw(call.0.as_ptr()) }.code {
            SUCCESS => Ok(()),
            code => Err(Mistake::from_callback("the function that deletes an attribute", code)),
        }
    }
}

/// A call on the heap, which nobody has while the program's function runs.
struct OnHeap<T>(NonNull<T>);

// SAFETY: one owner has it, who may be any thread: what it points to is passed to the program only.
unsafe impl<T> Send for OnHeap<T> {}
// SAFETY: as above; a shared one leads nowhere.
unsafe impl<T> Sync for OnHeap<T> {}

impl<T> OnHeap<T> {
    fn new(value: T) -> Self {
        // SAFETY: a box is never null.
        Self(unsafe { NonNull::new_unchecked(Box::into_raw(Box::new(value))) })
    }
}
