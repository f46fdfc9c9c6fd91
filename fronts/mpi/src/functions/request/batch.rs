//! Brings requests to their end, one after the other, and tells the program of it. Functions of the
//! program may be called in between.

use std::ffi::c_int;

use landeck::raw::{self, Endings};

use super::Several;
use crate::abi::{
    ERR_IN_STATUS, ERR_PENDING, ERR_PROC_ABORTED, Handle, REQUEST_NULL, SUCCESS, Status,
};
use crate::arguments::tell;
use crate::job;
use crate::mistake::Mistake;
use crate::objects::completion::{self, Completing, End};
use crate::objects::request::{self, Entry, Found, Request, WaitsFor};
use crate::walk::{Call, Walk};

/// The argument that they come in.
const REQUESTS: &str = "array_of_requests";

/// Requests that are to be completed or looked at.
#[derive(Debug)]
pub(super) struct Batch {
    several: Several,
    chosen: Chosen,
    /// They are looked at, and stay as they are.
    looks: bool,
    /// How many are through.
    done: usize,
    current: Option<Current>,
    /// The mistakes in their order, each with the request that it belongs to; of equal ones the first.
    failed: Vec<(usize, Mistake)>,
}

/// Which requests.
#[derive(Debug)]
pub(super) enum Chosen {
    /// One of them; its status is the only one, and its mistake that of the call.
    One(usize),
    /// All; each has the status at its place.
    All,
    /// Some; their statuses lie one behind the other.
    Some(Vec<usize>),
}

/// The request that is brought to its end at the moment.
#[derive(Debug)]
struct Current {
    completing: Completing,
    /// The new value of its handle.
    left: Handle,
    /// Where its end is kept, if it is looked at.
    keeper: Option<&'static Entry>,
}

impl Batch {
    /// They are waited for, as far as they are not over, and completed.
    pub(super) fn completes(several: Several, chosen: Chosen) -> Self {
        Self { several, chosen, looks: false, done: 0, current: None, failed: Vec::new() }
    }

    /// They are over, and are looked at.
    pub(super) fn looks(several: Several, chosen: Chosen) -> Self {
        Self { looks: true, ..Self::completes(several, chosen) }
    }

    /// Does it.
    ///
    /// # Safety
    /// The program has requests, and statuses, as it says, until the call is over.
    pub(super) unsafe fn run(mut self) -> Result<Walk, Mistake> {
        // SAFETY: as the caller says.
        unsafe { self.run_ahead()? };
        // SAFETY: as the caller says.
        let Some(call) = (unsafe { self.go_on()? }) else { return Ok(Walk::Done) };
        let mut first = Some(call);
        Ok(Walk::new(move || match first.take() {
            Some(call) => Ok(Some(call)),
            // SAFETY: as the caller says; the walk is part of the call.
            None => unsafe { self.go_on() },
        }))
    }

    /// Completes the first ones of all, as far as they are messages that have ended well.
    ///
    /// # Safety
    /// As [`Batch::run`].
    unsafe fn run_ahead(&mut self) -> Result<(), Mistake> {
        if self.looks || !matches!(self.chosen, Chosen::All) {
            return Ok(());
        }
        let Ok(job) = job::current() else { return Ok(()) };
        let mut endings = Endings::of(&job.world.world)?;
        let Several { requests, count, statuses } = self.several;
        while self.done < count {
            // SAFETY: as the caller says; the index is one of theirs, and `Several::new` has checked
            // the statuses, if there are any.
            unsafe {
                let request = requests.add(self.done);
                let ended = completion::complete_at_once(REQUESTS, request.read(), &mut endings);
                let Some(status) = ended? else { break };
                request.write(REQUEST_NULL);
                if !statuses.is_null() {
                    status.write_to(statuses.add(self.done));
                }
            }
            self.done += 1;
        }
        Ok(())
    }

    /// Goes on to the next call of the program, or to the end.
    ///
    /// # Safety
    /// As [`Batch::run`].
    unsafe fn go_on(&mut self) -> Result<Option<Call>, Mistake> {
        loop {
            if let Some(current) = &mut self.current {
                let end = match current.completing.step() {
                    Ok(end) => end,
                    Err(call) => return Ok(Some(call)),
                };
                if let Some(keeper) = current.keeper {
                    keeper.set_seen(end.clone());
                }
                let left = current.left;
                self.current = None;
                // SAFETY: as the caller says.
                unsafe { self.tell(end, left)? };
            }
            let Some(index) = self.index() else { return self.finish() };
            // SAFETY: as the caller says.
            unsafe { self.begin(index)? };
        }
    }

    /// Begins with a request; ends with it too, where nothing is to be called.
    ///
    /// # Safety
    /// As [`Batch::run`].
    unsafe fn begin(&mut self, index: usize) -> Result<(), Mistake> {
        // SAFETY: as the caller says.
        let handle = unsafe { self.several.handle(index) };
        if self.looks {
            self.current = Some(look(handle)?);
            return Ok(());
        }
        if self.failed.is_empty()
            && let Some(end) = completion::complete_message(REQUESTS, handle)?
        {
            // SAFETY: as the caller says.
            return unsafe { self.tell(end, REQUEST_NULL) };
        }
        if self.is_pending(handle)? {
            // SAFETY: as the caller says.
            unsafe { self.set_error(index, ERR_PENDING) };
            self.done += 1;
            return Ok(());
        }
        let (completing, left) = completion::complete(REQUESTS, handle)?;
        match completing.into_end() {
            // SAFETY: as the caller says.
            Ok(end) => unsafe { self.tell(end, left) },
            Err(completing) => {
                // The request is gone from here on, even if the program jumps out of what is called.
                // SAFETY: as the caller says; `index` is one of theirs.
                unsafe { self.several.requests.add(index).write(left) };
                self.current = Some(Current { completing, left, keeper: None });
                Ok(())
            }
        }
    }

    /// Whether a request is not waited for any more, since a process is gone that may be the reason
    /// why it never ends.
    fn is_pending(&self, handle: Handle) -> Result<bool, Mistake> {
        match self.failed.first() {
            Some((_, mistake)) if mistake.code() == ERR_PROC_ABORTED => {}
            _ => return Ok(false),
        }
        let Found::Kept(entry) = request::find(REQUESTS, handle)? else {
            return Ok(false);
        };
        match entry.waits_for()? {
            WaitsFor::Operation(operation) => {
                Ok(!raw::are_over(entry.world(), &[Some(operation)])?)
            }
            WaitsFor::Inactive | WaitsFor::Nothing => Ok(false),
        }
    }

    /// The next request.
    fn index(&self) -> Option<usize> {
        match &self.chosen {
            Chosen::One(index) => (self.done == 0).then_some(*index),
            Chosen::All => (self.done < self.several.count).then_some(self.done),
            Chosen::Some(list) => list.get(self.done).copied(),
        }
    }

    /// Tells how the current request ended.
    ///
    /// # Safety
    /// As [`Batch::run`].
    #[inline(always)]
    unsafe fn tell(&mut self, end: End, left: Handle) -> Result<(), Mistake> {
        let Some(index) = self.index() else { return Ok(()) };
        if !self.looks {
            // SAFETY: as the caller says; `index` is one of theirs.
            unsafe { self.several.requests.add(index).write(left) };
        }
        // SAFETY: as the caller says.
        unsafe { tell(self.place(self.done), end.status)? };
        if matches!(self.chosen, Chosen::One(_)) {
            self.done += 1;
            return end.mistake.map_or(Ok(()), Err);
        }
        if end.mistake.is_some() || !self.failed.is_empty() {
            // SAFETY: as the caller says.
            unsafe { self.note(index, end.mistake) };
        }
        self.done += 1;
        Ok(())
    }

    /// Notes what went wrong in the status of a request, or that it went well where another did not.
    ///
    /// # Safety
    /// As [`Batch::run`].
    #[cold]
    unsafe fn note(&mut self, index: usize, mistake: Option<Mistake>) {
        let code = mistake.as_ref().map_or(SUCCESS, Mistake::code);
        if self.failed.is_empty() {
            for place in 0..self.done {
                // SAFETY: as the caller says.
                unsafe { self.set_error(place, SUCCESS) };
            }
        }
        let is_known = |new: &Mistake| {
            let mut known = self.failed.iter();
            known.any(|(_, it)| it.code() == new.code() && it.text() == new.text())
        };
        if let Some(mistake) = mistake.filter(|mistake| !is_known(mistake)) {
            self.failed.push((index, mistake));
        }
        // SAFETY: as the caller says.
        unsafe { self.set_error(self.done, code) };
    }

    /// # Safety
    /// As [`Batch::run`].
    unsafe fn set_error(&self, place: usize, code: i32) {
        let status = self.place(place);
        if !status.is_null() {
            // SAFETY: as the caller says.
            unsafe { (&raw mut (*status).error).write(code) };
        }
    }

    /// Where a status goes; null if the program wants none.
    fn place(&self, place: usize) -> *mut Status {
        match self.several.statuses {
            none if none.is_null() => none,
            statuses => statuses.wrapping_add(place),
        }
    }

    fn finish(&mut self) -> Result<Option<Call>, Mistake> {
        let failed = std::mem::take(&mut self.failed);
        let Some((first, mistake)) = failed.first() else { return Ok(None) };
        let told = Mistake::new(ERR_IN_STATUS, how_it_ended(*first, mistake));
        let told = told.with_statuses(texts_of(&failed));
        Err(match mistake.raised_on() {
            Some(communicator) => told.on(communicator),
            None => told,
        })
    }
}

fn how_it_ended(index: usize, mistake: &Mistake) -> String {
    format!("{REQUESTS}[{index}] ended with an error: {mistake}")
}

/// The text of each code that stands in statuses: how the requests ended that have it.
fn texts_of(failed: &[(usize, Mistake)]) -> Vec<(c_int, String)> {
    let mut texts: Vec<(c_int, String)> = Vec::new();
    for (index, mistake) in failed {
        let text = how_it_ended(*index, mistake);
        match texts.iter_mut().find(|(code, _)| *code == mistake.code()) {
            Some((_, texts)) => {
                texts.push_str("; ");
                texts.push_str(&text);
            }
            None => texts.push((mistake.code(), text)),
        }
    }
    texts
}

/// Looks at a request that is over.
fn look(handle: Handle) -> Result<Current, Mistake> {
    let status = match request::find("request", handle)? {
        Found::Null => Status::empty(),
        Found::Immediate(status) => status,
        Found::Kept(entry) => match entry.waits_for()? {
            WaitsFor::Inactive => Status::empty(),
            _ => {
                let completing = completion::look(entry)?;
                let asks = matches!(entry.request, Request::Generalized(_));
                return Ok(Current { completing, left: handle, keeper: (!asks).then_some(entry) });
            }
        },
    };
    Ok(Current { completing: End::well(status).into(), left: handle, keeper: None })
}
