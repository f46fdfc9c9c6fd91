//! Calls that call the program back between their steps. The program's functions may jump or throw,
//! so they are called by a frame that owns nothing.

use std::ffi::c_void;

use landeck_c_boundary::{Next, Steps};

use crate::mistake::{Mistake, RawMistake};

/// Calls a function of the program: `run` gets `data`, which lives on the heap, owned by the steps,
/// takes the arguments from there and leaves the result there. It owns nothing itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) run: unsafe extern "C-unwind" fn(*mut c_void),
    pub(crate) data: *mut c_void,
}

/// The remaining work of a call after its body has returned: nothing, or steps.
#[derive(Debug)]
pub(crate) enum Walk {
    Done,
    Steps(Steps<Call, Option<RawMistake>>),
}

// Frames that hold a walk own nothing.
const _: () = assert!(!std::mem::needs_drop::<Walk>());

impl Walk {
    /// Steps, each of which ends with a call of the program or with the end.
    pub(crate) fn new(mut step: impl FnMut() -> Result<Option<Call>, Mistake> + 'static) -> Self {
        Self::Steps(Steps::new(move || match step() {
            Ok(Some(call)) => Next::Call(call),
            Ok(None) => Next::Done(None),
            Err(mistake) => Next::Done(Some(mistake.into_raw())),
        }))
    }
}
