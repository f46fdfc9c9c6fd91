//! Requests that the program has freed while they go on. Each is kept until it is over, with all that
//! it needs: other processes wait for this one's part of a collective operation.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::mistake::Mistake;
use crate::objects::completion;
use crate::objects::request::Entry;
use crate::walk::Walk;

static GOING: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// Leaves a request to itself. Where something is to be done at its end, with functions of the program or
/// in its memory, this waits for the end: the program has no other way to know when that is done.
pub(crate) fn free(entry: Entry) -> Result<Walk, Mistake> {
    if entry.has_rest() {
        return finish(entry);
    }
    let mut going = lock();
    // What cannot be looked at goes on.
    let (mut over, left) =
        going.drain(..).partition::<Vec<_>, _>(|entry| entry.is_over().unwrap_or(false));
    *going = left;
    match entry.is_over() {
        Ok(true) => over.push(entry),
        _ => going.push(entry),
    }
    drop(going);
    over.iter().for_each(end);
    Ok(Walk::Done)
}

/// Waits for all of them, and ignores how they end.
pub(crate) fn finish_all() {
    let going = std::mem::take(&mut *lock());
    going.iter().for_each(end);
}

/// Waits until a request is over, then does what is left to do.
fn finish(entry: Entry) -> Result<Walk, Mistake> {
    let mut completing = completion::look(&entry)?;
    Ok(Walk::new(move || {
        let _needed = &entry;
        match completing.step() {
            Err(call) => Ok(Some(call)),
            Ok(end) => end.mistake.map_or(Ok(None), Err),
        }
    }))
}

fn end(entry: &Entry) {
    // An operation that cannot be waited for any more has nobody to be told.
    let _ = completion::look(entry);
}

fn lock() -> MutexGuard<'static, Vec<Entry>> {
    GOING.lock().unwrap_or_else(PoisonError::into_inner)
}
