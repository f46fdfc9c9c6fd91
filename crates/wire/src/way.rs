//! The choice of a message's way: which channel carries it.
//!
//! [`choose`] is the one place that decides it. Who sends asks it, and `landeck why` prints its answer.

use crate::header::Class;

/// The wish of a job's user for the way of messages between hosts (`--path`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathWish {
    /// Lanes, and relays where there is none.
    #[default]
    Auto,
    /// Lanes alone.
    Lane,
    /// Relays alone.
    Relay,
}

impl PathWish {
    /// The names, as users write them.
    pub const NAMES: [&str; 3] = ["auto", "lane", "relay"];

    /// The wish with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "lane" => Self::Lane,
            "relay" => Self::Relay,
            _ => return None,
        })
    }
}

/// The state of a pair's lane, as its sender sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneState {
    /// No frame has decided the path of this direction, and a lane can be had or is there.
    Possible,
    /// No frame has decided the path, and no lane can be had: the two hosts do not reach each other, or one process has as
    /// many lanes as it can have.
    Impossible,
    /// Frames of this direction go over the lane, which has room.
    Free,
    /// Frames of this direction go over the lane, where 64 KiB wait for the network, or the receiver has much to take.
    Crowded,
    /// Frames of this direction go over the relay.
    Unused,
}

/// The receiver of a message, as far as the choice needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// It is on this host, and data up to so many bytes travel with their message.
    Near {
        /// The most bytes.
        in_message: u64,
    },
    /// It is on another host.
    Far {
        /// The lane.
        lane: LaneState,
        /// The user's wish.
        wish: PathWish,
    },
}

/// The channel that carries a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MessageWay {
    /// A ring or queue in memory, with the message itself.
    Ring = 1,
    /// Memory of the sender, of which the message tells.
    Heap = 2,
    /// The lane of the two processes.
    Lane = 3,
    /// The relay of the receiver's host.
    Relay = 4,
}

impl MessageWay {
    /// The way with this number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Ring,
            2 => Self::Heap,
            3 => Self::Lane,
            4 => Self::Relay,
            _ => return None,
        })
    }
}

/// Chooses the channel of a message of this class with so many bytes of data.
///
/// Messages of one pair and direction keep their order, so their path is decided before the first of them and stays.
/// Urgent messages have no order, so each takes the lane unless much waits there.
#[must_use]
#[inline]
pub const fn choose(receiver: Receiver, class: Class, bytes: u64) -> MessageWay {
    let (lane, wish) = match receiver {
        Receiver::Near { in_message } if bytes <= in_message => return MessageWay::Ring,
        Receiver::Near { .. } => return MessageWay::Heap,
        Receiver::Far { lane, wish } => (lane, wish),
    };
    match (wish, lane, class) {
        (PathWish::Lane, ..) => MessageWay::Lane,
        (PathWish::Relay, ..) => MessageWay::Relay,
        (PathWish::Auto, LaneState::Crowded, Class::Urgent) => MessageWay::Relay,
        (PathWish::Auto, LaneState::Impossible | LaneState::Unused, _) => MessageWay::Relay,
        (PathWish::Auto, LaneState::Possible | LaneState::Free | LaneState::Crowded, _) => {
            MessageWay::Lane
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_has_its_way() {
        use Class::{Kernel, Urgent, User};
        use LaneState::{Crowded, Free, Impossible, Possible, Unused};
        use PathWish::{Auto, Lane, Relay};
        let near = Receiver::Near { in_message: 16_384 };
        for (receiver, class, bytes, way) in [
            (near, User, 0, MessageWay::Ring),
            (near, Urgent, 48, MessageWay::Ring),
            (near, User, 16_384, MessageWay::Ring),
            (near, User, 16_385, MessageWay::Heap),
        ] {
            assert_eq!(choose(receiver, class, bytes), way, "{class:?} {bytes}");
        }
        for (wish, lane, class, way) in [
            (Auto, Possible, User, MessageWay::Lane),
            (Auto, Free, User, MessageWay::Lane),
            (Auto, Free, Urgent, MessageWay::Lane),
            (Auto, Crowded, User, MessageWay::Lane),
            (Auto, Crowded, Kernel, MessageWay::Lane),
            (Auto, Crowded, Urgent, MessageWay::Relay),
            (Auto, Impossible, User, MessageWay::Relay),
            (Auto, Impossible, Urgent, MessageWay::Relay),
            (Auto, Unused, User, MessageWay::Relay),
            (Auto, Unused, Urgent, MessageWay::Relay),
            (Lane, Crowded, Urgent, MessageWay::Lane),
            (Lane, Impossible, User, MessageWay::Lane),
            (Relay, Free, User, MessageWay::Relay),
            (Relay, Possible, Urgent, MessageWay::Relay),
        ] {
            for bytes in [0, 48, 1 << 30] {
                let receiver = Receiver::Far { lane, wish };
                assert_eq!(choose(receiver, class, bytes), way, "{wish:?} {lane:?} {class:?}");
            }
        }
    }

    #[test]
    fn names_and_numbers_come_back() {
        for (name, wish) in
            PathWish::NAMES.iter().zip([PathWish::Auto, PathWish::Lane, PathWish::Relay])
        {
            assert_eq!(PathWish::from_name(name), Some(wish));
        }
        assert_eq!(PathWish::from_name("both"), None);
        for way in [MessageWay::Ring, MessageWay::Heap, MessageWay::Lane, MessageWay::Relay] {
            assert_eq!(MessageWay::from_number(way as u8), Some(way));
        }
        assert_eq!((MessageWay::from_number(0), MessageWay::from_number(5)), (None, None));
    }
}
