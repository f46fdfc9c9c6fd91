//! A process as the log names it, and the words that name the sender of a message and the client of a request.

use landeck_protocols::service::{Asking, Party};
use landeck_wire::ProcessId;

/// Marks a request's number in the third word.
const REQUEST_BIT: u64 = 1 << 32;

/// A process as the log names it.
pub(crate) fn party(host: u16, process: ProcessId) -> Party {
    // A segment has no more slots than that.
    Party { host, slot: process.slot.0 as u16, incarnation: process.incarnation.0 }
}

/// The sender of a message of a group, as the message's cell names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The sending process.
    pub(crate) process: Party,
    /// The number of the sending member; none for a process that is not a member.
    pub(crate) sender: Option<u32>,
    /// The number of the member that does not receive the message.
    pub(crate) left_out: Option<u32>,
    /// The number of the request by which a client has asked the server for the broadcast.
    pub(crate) request: Option<u32>,
}

impl Origin {
    pub(crate) fn to_words(self) -> [u64; 3] {
        let number = |id: Option<u32>| id.map_or(0, |id| u64::from(id) + 1);
        let request = self.request.map_or(0, |request| REQUEST_BIT | u64::from(request));
        let members = number(self.sender) | number(self.left_out) << 32;
        [self.process.to_word(), members, request]
    }

    #[inline]
    pub(crate) fn from_words([process, members, request]: [u64; 3]) -> Self {
        Self {
            process: Party::from_word(process),
            sender: (members as u32).checked_sub(1),
            left_out: ((members >> 32) as u32).checked_sub(1),
            request: (request & REQUEST_BIT != 0).then_some(request as u32),
        }
    }

    /// The request by which a client has asked for the broadcast.
    pub(crate) fn request_id(self) -> Option<RequestId> {
        let Self { process, request, .. } = self;
        request.map(|number| RequestId { process, number })
    }
}

/// A request, as the log identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId {
    /// The client.
    pub(crate) process: Party,
    /// The number that the client has given it.
    pub(crate) number: u32,
}

impl RequestId {
    pub(crate) fn of(asking: &Asking) -> Self {
        Self { process: asking.process, number: asking.number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_as_they_were_written() {
        let process = Party { host: 2, slot: 7, incarnation: 3 };
        let outsider = Origin { process, sender: None, left_out: None, request: None };
        let member = Origin { sender: Some(0), left_out: Some(0), ..outsider };
        let asked = Origin { sender: Some(1023), request: Some(0), ..outsider };
        for origin in [outsider, member, asked, Origin { left_out: None, ..member }] {
            assert_eq!(Origin::from_words(origin.to_words()), origin);
        }
    }
}
