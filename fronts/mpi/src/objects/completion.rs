//! How requests end: their statuses, their mistakes, and the functions of the program that are called
//! before they are complete.

use std::fmt;
use std::sync::{Arc, PoisonError};

use landeck::raw;

use crate::abi::{Handle, REQUEST_NULL, Status};
use crate::mistake::Mistake;
use crate::objects::communicator::Communicator;
use crate::objects::generalized::Asking;
use crate::objects::request::{
    self, Entry, Found, Pair, Pending, Persistent, Request, RequestMessage, Rest, Started,
    WaitsFor, status_of,
};
use crate::walk::Call;

/// How an operation ended.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) status: Status,
    pub(crate) mistake: Option<Mistake>,
}

/// A request that is over, and complete when the program's functions have been called.
#[derive(Debug)]
pub(crate) struct Completing {
    end: End,
    remaining: Remaining,
}

/// The calls of the program's functions that a completion still makes.
enum Remaining {
    Nothing,
    Rest(Rest),
    Asking(Asking),
}

impl End {
    /// It went well.
    #[inline]
    pub(crate) fn well(status: Status) -> Self {
        Self { status, mistake: None }
    }

    /// The end of an operation of a communicator, as the layer below tells it.
    #[inline]
    pub(crate) fn of(
        result: landeck::Result<landeck::Status>,
        communicator: &Arc<Communicator>,
    ) -> Self {
        match result {
            Ok(status) => Self::well(status_of(&status)),
            Err(error) => Self::failed(error, communicator),
        }
    }

    #[cold]
    fn failed(error: landeck::Error, communicator: &Arc<Communicator>) -> Self {
        let status = status_of_error(&error);
        Self { status, mistake: Some(Mistake::from(error).on(communicator)) }
    }
}

/// Returns the status of a failed receive. If the message was too long, its sender, tag and length are known.
#[cold]
pub(crate) fn status_of_error(error: &landeck::Error) -> Status {
    match &error.kind {
        landeck::ErrorKind::Truncated { rank: Some(rank), tag, buffer_bytes, .. } => {
            Status::of_message(*rank as i32, tag.0 as i32, *buffer_bytes, false)
        }
        _ => Status::empty(),
    }
}

/// Waits until a request is over and gives how it ended, if it is a message, or leads to nothing: as
/// most are. None for others: [`complete`].
#[inline(always)]
pub(crate) fn complete_message(
    argument: &'static str,
    handle: Handle,
) -> Result<Option<End>, Mistake> {
    Ok(Some(match request::find(argument, handle)? {
        Found::Null => End::well(Status::empty()),
        Found::Immediate(status) => End::well(status),
        Found::Kept(entry @ Entry { request: Request::PointToPoint(message), .. })
            if !entry.is_seen() =>
        {
            let end = message.end();
            request::discard_message(argument, handle, &message.communicator)?;
            end
        }
        Found::Kept(_) => return Ok(None),
    }))
}

/// Completes a request that leads to nothing, or to a message that has ended well after one look at
/// most: as most of many do. None for others, which are as they were.
#[inline(always)]
pub(crate) fn complete_at_once(
    argument: &'static str,
    handle: Handle,
    endings: &mut raw::Endings<'_>,
) -> Result<Option<Status>, Mistake> {
    match request::find(argument, handle)? {
        Found::Null => Ok(Some(Status::empty())),
        Found::Immediate(status) => Ok(Some(status)),
        Found::Kept(entry @ Entry { request: Request::PointToPoint(message), .. })
            if !entry.is_seen() =>
        {
            let ended = match message.operation {
                raw::Operation::Complete(status) => Some(status),
                raw::Operation::Pending(id) => endings.take(message.world(), id),
            };
            let status = ended.as_ref().map(status_of);
            if status.is_some() {
                request::discard_message(argument, handle, &message.communicator)?;
            }
            Ok(status)
        }
        Found::Kept(_) => Ok(None),
    }
}

/// Waits until a request is over; gives how it ended, and what its handle becomes.
#[inline]
pub(crate) fn complete(
    argument: &'static str,
    handle: Handle,
) -> Result<(Completing, Handle), Mistake> {
    let entry = match request::find(argument, handle)? {
        Found::Null => return Ok((End::well(Status::empty()).into(), REQUEST_NULL)),
        Found::Immediate(status) => return Ok((End::well(status).into(), REQUEST_NULL)),
        Found::Kept(entry) => entry,
    };
    match &entry.request {
        // It must be found in the table until the program says that it is complete.
        Request::Generalized(own) => drop(raw::wait_any(own.world(), &[Some(own.signal)])?),
        Request::Flush(flush) => {
            while let WaitsFor::Operation(operation) = flush.waits_for()? {
                raw::wait_any(flush.world(), &[Some(operation)])?;
            }
        }
        _ => {}
    }
    conclude(argument, handle, entry)
}

/// Ends a request; waits for messages and collective operations.
#[inline]
fn conclude(
    argument: &'static str,
    handle: Handle,
    entry: &Entry,
) -> Result<(Completing, Handle), Mistake> {
    if let Request::Persistent(persistent) = &entry.request {
        return Ok((entry.take_seen().map_or_else(|| end_of_start(persistent), End::into), handle));
    }
    let completing = match (entry.take_seen(), &entry.request) {
        (Some(end), _) => end.into(),
        (None, Request::PointToPoint(message)) => message.end().into(),
        (None, request) => end_of(request)?,
    };
    request::discard(argument, handle)?;
    Ok((completing, REQUEST_NULL))
}

/// Brings a request that is over to an end that [`Entry::set_seen`] is to keep, unless it is one of
/// the program, which is asked again.
pub(crate) fn look(entry: &Entry) -> Result<Completing, Mistake> {
    match (entry.seen(), &entry.request) {
        (Some(end), _) => Ok(end.into()),
        (None, Request::Generalized(own)) => Ok(Completing::asking(own.query())),
        (None, Request::Persistent(persistent)) => Ok(end_of_start(persistent)),
        (None, request) => end_of(request),
    }
}

#[cold]
fn end_of(request: &Request) -> Result<Completing, Mistake> {
    Ok(match request {
        Request::PointToPoint(message) => message.end().into(),
        Request::Collective(pending) => pending.conclude(),
        Request::Exchange(exchange) => exchange.end().into(),
        Request::Pair(pair) => pair.end().into(),
        Request::Persistent(persistent) => end_of_start(persistent),
        Request::Generalized(own) => Completing::asking(own.conclude()?),
        Request::Flush(_) => End::well(Status::empty()).into(),
    })
}

fn end_of_start(persistent: &Persistent) -> Completing {
    let started = persistent.active().take();
    match started {
        None => End::well(Status::empty()).into(),
        Some(Started::Complete(status)) => End::well(status).into(),
        Some(Started::Pending(pending)) => pending.conclude(),
        Some(Started::Exchange(exchange)) => exchange.end().into(),
    }
}

impl RequestMessage {
    /// Waits until it is over.
    #[inline(always)]
    pub(crate) fn end(&self) -> End {
        End::of(raw::wait(self.world(), self.operation), &self.communicator)
    }
}

impl Pending {
    /// Waits until the operation is over.
    #[inline]
    fn end(&self) -> End {
        End::of(raw::wait(self.world(), self.operation), &self.communicator)
    }

    fn conclude(&self) -> Completing {
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take();
        let remaining = rest.map_or(Remaining::Nothing, Remaining::Rest);
        Completing { end: self.end(), remaining }
    }
}

impl Pair {
    /// Waits until both are over.
    fn end(&self) -> End {
        let world = self.communicator.messages().0;
        let received = match self.receive {
            Some(receive) => End::of(raw::wait(world, receive), &self.communicator),
            None => End::well(Status::of_nobody()),
        };
        let sent = End::of(raw::wait(world, self.send), &self.communicator);
        End { status: received.status, mistake: received.mistake.or(sent.mistake) }
    }
}

impl Completing {
    fn asking(asking: Asking) -> Self {
        Self { end: End::well(Status::empty()), remaining: Remaining::Asking(asking) }
    }

    /// Its end, if no function of the program is to be called before.
    #[inline]
    pub(crate) fn into_end(self) -> Result<End, Self> {
        match self.remaining {
            Remaining::Nothing => Ok(self.end),
            _ => Err(self),
        }
    }

    /// Goes on to the next call of the program; at the end it gives how the request ended.
    pub(crate) fn step(&mut self) -> Result<End, Call> {
        let rested = match &mut self.remaining {
            Remaining::Nothing => Ok(None),
            // What went wrong before is not to be combined.
            Remaining::Rest(_) if self.end.mistake.is_some() => Ok(None),
            Remaining::Rest(rest) => rest(),
            Remaining::Asking(asking) => match asking.step() {
                Some(call) => Ok(Some(call)),
                None => return Ok(asking.end()),
            },
        };
        match rested {
            Ok(Some(call)) => return Err(call),
            Ok(None) => {}
            Err(mistake) => self.end.mistake = Some(mistake),
        }
        Ok(self.end.clone())
    }
}

impl From<End> for Completing {
    #[inline]
    fn from(end: End) -> Self {
        Self { end, remaining: Remaining::Nothing }
    }
}

impl fmt::Debug for Remaining {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Nothing => "nothing",
            Self::Rest(_) => "rest",
            Self::Asking(_) => "asking the program",
        })
    }
}
