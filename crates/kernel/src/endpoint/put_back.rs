//! Receives whose time has passed: a message that has begun to arrive returns to its position among the unexpected
//! ones, and the next matching receive gets it from its beginning.
//!
//! A message that lies whole in a block, a cell or a store is still there. For a message that comes through a window or in
//! parts, the data that have arrived are kept, and further data are appended. The sender of a window waits for the next
//! receive, as it did for the first; parts are on their way and are accepted.

use landeck_channel::Channel;
use landeck_memory::{NoMemory, room};

use crate::arrival::Core;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::kept::{Begun, Kept};
use crate::matching::{Label, Waiting};
use crate::reading::Reading;
use crate::request::{Completion, Received, RequestId};
use crate::status::Status;
use crate::stores::StoredReceive;
use crate::transfer::{Collecting, Draining, Target};
use crate::work::Work;

impl Target {
    /// Its first bytes, which had already come.
    fn into_own(self, length: u64) -> Result<Vec<u8>, NoMemory> {
        match self {
            Self::Area(area) => {
                let mut own = room::list(length as usize)?;
                area.append_to(0, length as usize, &mut own);
                Ok(own)
            }
            Self::Own(own) => Ok(own),
            Self::Through(through) => Ok(through.0),
            Self::Nowhere => Ok(Vec::new()),
            Self::Missing(no_memory) => Err(no_memory),
        }
    }

    /// The data that have already come. If a part of the message may be lost, this completes the receive instead.
    fn put_aside(self, length: u64, status: Status) -> Result<Vec<u8>, Completion> {
        if self.has_lost_of(length) {
            return Err(self.complete(status));
        }
        self.into_own(length).map_err(|no_memory| Self::Missing(no_memory).complete(status))
    }

    /// A target behind data of the message that have already come.
    fn behind(self, has_come: Vec<u8>) -> Self {
        match self {
            target if has_come.is_empty() => target,
            Self::Own(_) => Self::Own(has_come),
            target => Self::Through(Box::new((has_come, target))),
        }
    }

    /// Whether some of so many bytes did not fit and are lost.
    fn has_lost_of(&self, length: u64) -> bool {
        matches!(self, Self::Area(area) if area.packed_bytes() < length)
    }
}

impl<N: Channel> Endpoint<N> {
    /// Gives up an operation whose time has passed: it is removed, and its memory is free. Returns false if it has
    /// ended meanwhile, or is a send that has begun: then it must still be waited for. A message that has begun to
    /// arrive goes to the next receive, as if it had just come, unless a part of it did not fit: then the receive has
    /// ended.
    pub fn put_back(&mut self, id: RequestId) -> bool {
        match self.core.requests.get(id) {
            Some(Work::Posted { .. } | Work::Queued { .. }) => {
                self.abandon(id);
                true
            }
            Some(
                Work::Draining(_) | Work::Collecting(_) | Work::Reading(_) | Work::Fetching(_),
            ) => self.core.put_back(id),
            Some(_) => false,
            None => true,
        }
    }
}

impl Core {
    fn put_back(&mut self, id: RequestId) -> bool {
        let Some(work) = self.requests.get_mut(id) else { return true };
        match std::mem::replace(work, Work::Free) {
            Work::Draining(draining) => self.put_back_draining(id, draining),
            Work::Collecting(collecting) => self.put_back_collecting(id, collecting),
            Work::Reading(reading) => {
                self.put_back_reading(id, reading);
                true
            }
            Work::Fetching(receive) => {
                self.put_back_fetching(id, *receive);
                true
            }
            other => {
                *work = other;
                false
            }
        }
    }

    fn put_back_draining(&mut self, id: RequestId, draining: Draining) -> bool {
        let Draining { context, source, target, status, position, is_whole, number } = draining;
        self.active.retain(|&active| active != id);
        let has_come = if is_whole { Ok(Vec::new()) } else { target.put_aside(position, status) };
        let has_come = match has_come {
            Ok(has_come) => has_come,
            Err(completion) => {
                let target = Target::Nowhere;
                let rest = Draining { context, source, target, status, position, is_whole, number };
                let nobodys = self.requests.insert(Work::Draining(rest));
                self.active.push(nobodys);
                self.requests.put(id, Work::Done(completion));
                return false;
            }
        };
        self.requests.remove(id);
        let message = Kept::Begun(Box::new(Begun { source, status, is_whole, has_come }));
        let label = Label { context, source: status.peer.0, tag: status.tag };
        self.keep_again(Waiting { label, message, number });
        true
    }

    /// The data are still where they were told to be.
    fn put_back_reading(&mut self, id: RequestId, reading: Reading) {
        let Reading { context, status, send, told, number, .. } = reading;
        self.active.retain(|&active| active != id);
        self.requests.remove(id);
        let message = Kept::Offer { length: status.bytes, send, told: Some(Box::new(told)) };
        let label = Label { context, source: status.peer.0, tag: status.tag };
        self.keep_again(Waiting { label, message, number });
    }

    /// The data are still on their host.
    fn put_back_fetching(&mut self, id: RequestId, receive: StoredReceive) {
        self.stores.forget(&receive);
        self.active.retain(|&active| active != id);
        self.requests.remove(id);
        let StoredReceive { context, status, stored, number, .. } = receive;
        let message = Kept::Stored { stored, length: status.bytes };
        let label = Label { context, source: status.peer.0, tag: status.tag };
        self.keep_again(Waiting { label, message, number });
    }

    fn put_back_collecting(&mut self, id: RequestId, collecting: Collecting) -> bool {
        let Collecting { context, target, status, position, send, named, number } = collecting;
        let target = match target.put_aside(position, status) {
            Ok(has_come) => Target::Own(has_come),
            Err(completion) => {
                self.requests.put(id, Work::Done(completion));
                self.forget_named(id, named);
                return false;
            }
        };
        let aside = Collecting { context, target, status, position, send, named, number };
        if named != id {
            self.requests.remove(id);
        }
        self.requests.put(named, Work::Collecting(aside));
        let message = Kept::Coming { named, length: status.bytes };
        let label = Label { context, source: status.peer.0, tag: status.tag };
        self.keep_again(Waiting { label, message, number });
        true
    }

    /// Keeps a message again that was kept, or has met its receive, whatever the limits are.
    fn keep_again(&mut self, waiting: Waiting<Kept>) {
        let label = waiting.label;
        if !self.admits(label.context) {
            return self.let_go(label, &waiting.message);
        }
        self.count_kept(label.source, waiting.message.cost_bytes());
        // A matching receive may have been posted meanwhile.
        match self.matching.match_arrival(label) {
            Some(id) => self.receive_kept(id, waiting),
            None => {
                self.matching.keep_again(waiting);
                self.mailboxes.arrived(label.context);
            }
        }
    }

    /// Hands a message that has begun to arrive to its next receive.
    pub(crate) fn receive_begun(&mut self, id: RequestId, begun: Begun, number: u64) {
        let Begun { source, status, is_whole, has_come } = begun;
        let Some(work) = self.requests.get_mut(id) else { return };
        let Work::Posted { target, wanted } = std::mem::replace(work, Work::Free) else { return };
        let (context, position) = (wanted.context, has_come.len() as u64);
        let target = target.behind(has_come);
        *work = Work::Draining(Draining {
            context,
            source,
            target,
            status,
            position,
            is_whole,
            number,
        });
        self.active.push(id);
    }

    /// Hands a message that has begun to arrive, and whose parts name another request, to its next receive.
    pub(crate) fn receive_coming(&mut self, id: RequestId, named: RequestId) {
        let Some(work) = self.requests.get_mut(id) else { return };
        let Work::Posted { target, .. } = std::mem::replace(work, Work::Free) else { return };
        let aside = self.requests.get_mut(named);
        let aside = aside.map(|work| std::mem::replace(work, Work::Passed { to: id }));
        let next = match aside {
            Some(Work::Collecting(aside)) => {
                // Data that were put aside are private already, or there was no memory for them.
                let target = match aside.target.into_own(aside.position) {
                    Ok(has_come) => target.behind(has_come),
                    Err(missing) => Target::Missing(missing),
                };
                Work::Collecting(Collecting { target, ..aside })
            }
            ended => {
                self.requests.remove(named);
                match ended {
                    Some(Work::Done(Completion {
                        result: Ok(status),
                        data: Some(Received::Private(own)),
                    })) => Work::Done(target.behind(own).complete(status)),
                    // The sender is gone.
                    Some(failed @ Work::Done(_)) => failed,
                    _ => Work::failed(Failure::Gone),
                }
            }
        };
        self.requests.put(id, next);
    }
}
