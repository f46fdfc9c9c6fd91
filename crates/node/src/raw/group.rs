//! Broadcasts of a member of a named group without access to its [`Member`]: several threads of a
//! front may broadcast with one object at once, even while another of them waits in a
//! synchronisation.

use std::time::Duration;

use landeck_named_groups::{Sender, TimeLimit};
pub use landeck_protocols::service::Seat;

use crate::error::Result;
use crate::group_service::{Group, Member};
use crate::message::Message;

/// Returns a member's place in its group, a value that can be kept anywhere.
pub fn seat(member: &Member) -> Seat {
    member.seat()
}

/// Sends a message to all members, the sender included.
///
/// # Errors
/// As [`Member::broadcast`].
pub fn broadcast(group: &Group, seat: Seat, message: &Message) -> Result<()> {
    group.send(message, Sender::Member { seat, receives: true }, TimeLimit::Unlimited)
}

/// Sends a message to all members but the sender.
///
/// # Errors
/// As [`Member::broadcast_to_others`].
pub fn broadcast_to_others(group: &Group, seat: Seat, message: &Message) -> Result<()> {
    group.send(message, Sender::Member { seat, receives: false }, TimeLimit::Unlimited)
}

/// Sends a message to all members, waiting for at most `time`.
///
/// # Errors
/// As [`Member::broadcast_within`].
pub fn broadcast_within(
    group: &Group,
    seat: Seat,
    message: &Message,
    time: Duration,
) -> Result<()> {
    group.send(message, Sender::Member { seat, receives: true }, TimeLimit::within(time))
}

/// Sends a message to all members if this is possible without waiting.
///
/// # Errors
/// As [`Member::try_broadcast`].
pub fn try_broadcast(group: &Group, seat: Seat, message: &Message) -> Result<()> {
    group.send(message, Sender::Member { seat, receives: true }, TimeLimit::Now)
}
