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
    /// Relays alone, over the one connection that the daemons of two hosts have for that.
    Daemons,
}

impl PathWish {
    /// The names, as users write them.
    pub const NAMES: [&str; 4] = ["auto", "lane", "relay", "daemons"];

    const ALL: [Self; 4] = [Self::Auto, Self::Lane, Self::Relay, Self::Daemons];

    /// The wish with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|its| *its == name).map(|number| Self::ALL[number])
    }

    /// The wish with this number, which `as` gives.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// The wish for long messages between processes of one host (`--one-copy`): from which length on the kernel copies them out
/// of the sender's memory, in one copy instead of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OneCopy {
    /// As the figures of the host say.
    #[default]
    Auto,
    /// Never.
    Never,
    /// From so many bytes on.
    From(u64),
}

impl OneCopy {
    /// The words that users may write.
    pub const WORDS: &str = "auto, never or a number of bytes (4K at least) is wanted";
    /// The length from which no message is copied so.
    pub const NEVER: u64 = u64::MAX;
    /// A shorter message travels with its announcement, which is one step.
    const LEAST: u64 = 4 << 10;

    /// The wish in these words: `auto`, `never`, or a number of bytes (K and M stand for KiB and MiB; at least 4K).
    #[must_use]
    pub fn from_words(words: &str) -> Option<Self> {
        match words {
            "auto" => Some(Self::Auto),
            "never" => Some(Self::Never),
            _ => {
                let bytes = bytes_from_words(words)?;
                (bytes >= Self::LEAST).then_some(Self::From(bytes))
            }
        }
    }

    /// The length from which messages are copied once, where `measured` is the one that was measured for the host.
    #[must_use]
    pub const fn settled(self, measured: OneCopyFrom) -> OneCopyFrom {
        let bytes = match self {
            Self::Auto => return measured,
            Self::Never => Self::NEVER,
            Self::From(bytes) => bytes,
        };
        OneCopyFrom { bytes, source: OneCopySource::Asked }
    }
}

/// The bytes in these words: a number, or one with K or M behind it for KiB or MiB.
#[must_use]
pub fn bytes_from_words(words: &str) -> Option<u64> {
    let (number, unit) = match words.as_bytes().last()? {
        b'K' => (&words[..words.len() - 1], 1 << 10),
        b'M' => (&words[..words.len() - 1], 1 << 20),
        _ => (words, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// The source of the length from which messages are copied once. A later one wins over an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum OneCopySource {
    /// Nothing was measured or asked for.
    #[default]
    Nothing = 0,
    /// The probe of the launcher, which a host without figures has once in a boot.
    Probe = 1,
    /// The figures of `landeck tune`.
    Tuned = 2,
    /// The option, the variable of the environment, or the wish of a group.
    Asked = 3,
}

impl OneCopySource {
    /// The source with this number; [`OneCopySource::Nothing`] if there is none.
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Probe,
            2 => Self::Tuned,
            3 => Self::Asked,
            _ => Self::Nothing,
        }
    }
}

/// The length from which messages are copied once, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneCopyFrom {
    /// The length in bytes; [`OneCopy::NEVER`] if there is none.
    pub bytes: u64,
    /// Its source.
    pub source: OneCopySource,
}

impl OneCopyFrom {
    /// No length, from no source.
    pub const NOTHING: Self = Self { bytes: OneCopy::NEVER, source: OneCopySource::Nothing };
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
        /// The length from which the receiver copies the data out of the sender's memory ([`OneCopy`]).
        one_copy_from: u64,
    },
    /// It is on another host.
    Far {
        /// The lane.
        lane: LaneState,
        /// The user's wish.
        wish: PathWish,
    },
}

/// The data of a message on one side, as far as the choice needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Their number of bytes.
    pub bytes: u64,
    /// The bytes that lie in one place on average; `u64::MAX` if all do.
    pub place_bytes: u64,
}

impl Extent {
    /// The least bytes in a place on average for which the kernel copies. With shorter places its work for each of them
    /// takes longer than the copy that it saves.
    pub const PLACE_BYTES_MIN: u64 = 1 << 10;

    /// So many bytes in one place.
    #[must_use]
    pub const fn whole(bytes: u64) -> Self {
        Self { bytes, place_bytes: u64::MAX }
    }
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
    /// The sender's own memory, out of which the kernel copies for the receiver.
    OneCopy = 5,
    /// The relay of the receiver's host, over the connection of both daemons.
    Daemons = 6,
    /// The store of a host, from which the receiver fetches the data.
    Store = 7,
}

/// The bits of a way in the number that a waiting process publishes; those above are the source of the length of one copy.
const WAY_BITS: u32 = 4;

impl MessageWay {
    /// The number of this way with the source that has decided for it.
    #[must_use]
    pub const fn number_with(self, source: OneCopySource) -> u8 {
        match self {
            Self::OneCopy => self as u8 | (source as u8) << WAY_BITS,
            _ => self as u8,
        }
    }

    /// The way in a number of [`MessageWay::number_with`] and its source.
    #[must_use]
    pub const fn with_source(number: u8) -> Option<(Self, OneCopySource)> {
        match Self::from_number(number & ((1 << WAY_BITS) - 1)) {
            Some(way) => Some((way, OneCopySource::from_number(number >> WAY_BITS))),
            None => None,
        }
    }

    /// Whether the relay of the receiver's host takes the message.
    #[must_use]
    pub const fn is_relayed(self) -> bool {
        matches!(self, Self::Relay | Self::Daemons)
    }

    /// The way with this number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Ring,
            2 => Self::Heap,
            3 => Self::Lane,
            4 => Self::Relay,
            5 => Self::OneCopy,
            6 => Self::Daemons,
            7 => Self::Store,
            _ => return None,
        })
    }
}

/// Chooses the channel of a message of this class with these data.
///
/// Messages of one pair and direction keep their order, so their path is decided before the first of them and stays.
/// Urgent messages have no order, so each takes the lane unless much waits there.
///
/// The receiver of a message in one copy asks again with the places of its own side. The kernel copies straight to them
/// where this answers [`MessageWay::OneCopy`]. Otherwise the receiver asks for the data in two copies.
#[must_use]
#[inline]
pub const fn choose(receiver: Receiver, class: Class, data: Extent) -> MessageWay {
    let Extent { bytes, place_bytes } = data;
    let (lane, wish) = match receiver {
        Receiver::Near { one_copy_from, .. }
            if bytes >= one_copy_from && place_bytes >= Extent::PLACE_BYTES_MIN =>
        {
            return MessageWay::OneCopy;
        }
        Receiver::Near { in_message, .. } if bytes <= in_message => return MessageWay::Ring,
        Receiver::Near { .. } => return MessageWay::Heap,
        Receiver::Far { lane, wish } => (lane, wish),
    };
    match (wish, lane, class) {
        (PathWish::Lane, ..) => MessageWay::Lane,
        (PathWish::Relay, ..) => MessageWay::Relay,
        (PathWish::Daemons, ..) => MessageWay::Daemons,
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
        use PathWish::{Auto, Daemons, Lane, Relay};
        let near = Receiver::Near { in_message: 16_384, one_copy_from: OneCopy::NEVER };
        let once = Receiver::Near { in_message: 16_384, one_copy_from: 8_192 };
        for (receiver, class, bytes, way) in [
            (once, User, 8_191, MessageWay::Ring),
            (once, User, 8_192, MessageWay::OneCopy),
            (once, User, 1 << 40, MessageWay::OneCopy),
            (near, User, 0, MessageWay::Ring),
            (near, Urgent, 48, MessageWay::Ring),
            (near, User, 16_384, MessageWay::Ring),
            (near, User, 16_385, MessageWay::Heap),
        ] {
            assert_eq!(choose(receiver, class, Extent::whole(bytes)), way, "{class:?} {bytes}");
        }
        for (bytes, place_bytes, way) in [
            (1 << 20, Extent::PLACE_BYTES_MIN, MessageWay::OneCopy),
            (1 << 20, Extent::PLACE_BYTES_MIN - 1, MessageWay::Heap),
            (8_192, 8, MessageWay::Ring),
            (8_191, 4_096, MessageWay::Ring),
        ] {
            let data = Extent { bytes, place_bytes };
            assert_eq!(choose(once, User, data), way, "{data:?}");
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
            (Daemons, Unused, User, MessageWay::Daemons),
            (Daemons, Possible, Urgent, MessageWay::Daemons),
        ] {
            for bytes in [0, 48, 1 << 30] {
                let receiver = Receiver::Far { lane, wish };
                let data = Extent::whole(bytes);
                assert_eq!(choose(receiver, class, data), way, "{wish:?} {lane:?} {class:?}");
            }
        }
    }

    #[test]
    fn one_copy_has_words() {
        let from = OneCopy::From;
        for (words, wish) in [
            ("auto", Some(OneCopy::Auto)),
            ("never", Some(OneCopy::Never)),
            ("65536", Some(from(65_536))),
            ("64K", Some(from(65_536))),
            ("4M", Some(from(4 << 20))),
            ("4095", None),
            ("1K", None),
            ("always", None),
            ("K", None),
            ("", None),
        ] {
            assert_eq!(OneCopy::from_words(words), wish, "{words:?}");
        }
        let tuned = OneCopyFrom { bytes: 7, source: OneCopySource::Tuned };
        let asked = |bytes| OneCopyFrom { bytes, source: OneCopySource::Asked };
        let found = [OneCopy::Auto, OneCopy::Never, from(5)].map(|wish| wish.settled(tuned));
        assert_eq!(found, [tuned, asked(OneCopy::NEVER), asked(5)]);
    }

    #[test]
    fn names_and_numbers_come_back() {
        use PathWish::{Auto, Daemons};
        let wishes = [Auto, PathWish::Lane, PathWish::Relay, Daemons];
        for (name, wish) in PathWish::NAMES.iter().zip(wishes) {
            assert_eq!(PathWish::from_name(name), Some(wish));
        }
        assert_eq!(PathWish::from_name("both"), None);
        let numbers = [0, 1, 2, 3].map(|number| PathWish::from_number(number).unwrap() as u8);
        assert_eq!((numbers, PathWish::from_number(4)), ([0, 1, 2, 3], None));
        use MessageWay::{Heap, Lane, Relay, Ring};
        let others = [MessageWay::OneCopy, MessageWay::Daemons, MessageWay::Store];
        for way in [Ring, Heap, Lane, Relay].into_iter().chain(others) {
            assert_eq!(MessageWay::from_number(way as u8), Some(way));
        }
        assert_eq!((MessageWay::from_number(0), MessageWay::from_number(8)), (None, None));
        use OneCopySource::{Asked, Nothing, Probe, Tuned};
        for source in [Nothing, Probe, Tuned, Asked] {
            let number = MessageWay::OneCopy.number_with(source);
            assert_eq!(MessageWay::with_source(number), Some((MessageWay::OneCopy, source)));
            assert_eq!(MessageWay::with_source(Lane.number_with(source)), Some((Lane, Nothing)));
        }
        assert_eq!(MessageWay::with_source(0x30), None);
    }
}
