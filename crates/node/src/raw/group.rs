//! What a member of a named group sends while its [`Member`] is in other hands: a front's threads may
//! broadcast with one object at once, also while another of them waits in a synchronisation.

use std::time::Duration;

pub use landeck_groups::service::Seat;

use crate::error::Result;
use crate::group_service::{Group, Member};
use crate::message::Message;
use crate::named_group::sending::{Manner, Sender};

/// What a member is in its group, as a value to keep anywhere.
pub fn seat(member: &Member) -> Seat {
    member.seat()
}

/// Sends a message to all members, the sender included.
///
/// # Errors
/// As [`Member::broadcast`].
pub fn broadcast(group: &Group, seat: Seat, message: &Message) -> Result<()> {
    group.send(message, Sender::Member { seat, gets_it: true }, Manner::Patient)
}

/// The same to all but the sender.
///
/// # Errors
/// As [`Member::broadcast_to_others`].
pub fn broadcast_to_others(group: &Group, seat: Seat, message: &Message) -> Result<()> {
    group.send(message, Sender::Member { seat, gets_it: false }, Manner::Patient)
}

/// To all, for a while.
///
/// # Errors
/// As [`Member::broadcast_within`].
pub fn broadcast_within(
    group: &Group,
    seat: Seat,
    message: &Message,
    time: Duration,
) -> Result<()> {
    group.send(message, Sender::Member { seat, gets_it: true }, Manner::within(time))
}

/// To all, if that is possible without waiting.
///
/// # Errors
/// As [`Member::try_broadcast`].
pub fn try_broadcast(group: &Group, seat: Seat, message: &Message) -> Result<()> {
    group.send(message, Sender::Member { seat, gets_it: true }, Manner::AtOnce)
}
