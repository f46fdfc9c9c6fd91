//! The identities of hosts, processes, mailboxes, members and contexts.
//!
//! Every identity that can be reused carries a generation, so that a stale one is recognised instead of meaning another
//! object.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A virtual machine: the hosts whose keys stand in one host table. It is random.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MachineId(pub u64);

/// The number of a computer in a machine. It is not a [`SegmentId`], which is one job's segment on a computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostNumber(pub u16);

impl HostNumber {
    /// The host of the arbiter: that of the launcher, or of a machine's founder.
    pub const ARBITER: Self = Self(0);
    /// The host that has no number yet, because it has not been admitted.
    pub const NONE: Self = Self(u16::MAX);
}

/// One run of the daemon of a host. A daemon that is started again is another incarnation, and so is a host that was
/// lost and returns. It is random.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostIncarnation(pub u64);

/// A job, on however many hosts. It is random. A job on one host has the number of its segment's [`SegmentId`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobId(pub u64);

/// The domain of one job segment: processes with the same `SegmentId` share memory.
///
/// It is random, and created together with the segment. It is never derived from a host name, a boot id or a machine
/// id: two network namespaces share those and are two hosts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SegmentId(pub u64);

/// The place of a process in its host's segment. A slot is never a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slot(pub u32);

/// How often the slot had been given away when this process got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Incarnation(pub u32);

/// The identity of one process, which no other process ever has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessId {
    /// The segment of its job on its host.
    pub segment: SegmentId,
    /// Its slot there.
    pub slot: Slot,
    /// The incarnation of the slot.
    pub incarnation: Incarnation,
}

impl ProcessId {
    /// The incarnation of the slot before this one.
    #[must_use]
    pub fn before(self) -> Option<Self> {
        let incarnation = Incarnation(self.incarnation.0.checked_sub(1)?);
        Some(Self { incarnation, ..self })
    }
}

/// A mailbox of a process: an index and the generation of its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MailboxId {
    /// The index in the process's table of mailboxes.
    pub index: u32,
    /// The generation of the index.
    pub generation: u32,
}

/// A member of a group: a mailbox with its process. A thread can be a member, and one process can join twice with two
/// mailboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId {
    /// The process that owns the mailbox.
    pub process: ProcessId,
    /// The mailbox that the group's messages go to.
    pub mailbox: MailboxId,
}

/// A context, on which a group agrees: messages that are sent in one context are never received in another. It has an
/// index in the low 20 bits, and a generation above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextId(pub u32);

impl ContextId {
    /// The context of the first world, which is equal in every job.
    pub const WORLD: Self = Self::new(0, 1);
    /// The number of bits of the index.
    pub const INDEX_BITS: u32 = 20;
    /// The bit that is set in a group's context for collective operations.
    pub const COLLECTIVE: u32 = 1 << (Self::INDEX_BITS - 1);
    /// The bit that is set in a group's context for agreements.
    pub const AGREEMENT: u32 = 1 << 28;
    /// The bit that is set in a group's context for the creation of new groups.
    pub const CREATION: u32 = 1 << 29;
    /// The bit that is set in the contexts of ports and mailboxes, which belong to no group.
    const OUTSIDE_GROUPS: u32 = 1 << 31;

    /// Creates the context with this index and generation, both cut to their fields.
    pub const fn new(index: u32, generation: u32) -> Self {
        Self((generation << Self::INDEX_BITS) | (index & ((1 << Self::INDEX_BITS) - 1)))
    }

    /// The index of the context in its endpoint's table.
    pub const fn index(self) -> u32 {
        self.0 & ((1 << Self::INDEX_BITS) - 1)
    }

    /// The group's own context, if this is one of its other contexts.
    pub const fn of_group(self) -> Self {
        match self.0 & Self::OUTSIDE_GROUPS {
            0 => Self(self.0 & !(Self::COLLECTIVE | Self::AGREEMENT | Self::CREATION)),
            _ => self,
        }
    }

    /// The purpose of the messages in words, if they are not the program's own. Their tags mean nothing to the program.
    pub const fn purpose(self) -> Option<&'static str> {
        match () {
            () if self.0 & Self::OUTSIDE_GROUPS != 0 => None,
            () if self.0 & Self::COLLECTIVE != 0 => Some("for a collective operation"),
            () if self.0 & Self::CREATION != 0 => Some("to make a group"),
            () if self.0 & Self::AGREEMENT != 0 => Some("to agree"),
            () => None,
        }
    }

    /// The generation of the index.
    pub const fn generation(self) -> u32 {
        self.0 >> Self::INDEX_BITS
    }
}

/// The sender's label of a message, which a receiver can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u32);

impl From<u32> for Tag {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl fmt::Debug for SegmentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SegmentId({self})")
    }
}

/// The error for a text that is not a [`SegmentId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a host identity: 16 hexadecimal digits are needed")]
pub struct HostIdError(String);

impl FromStr for SegmentId {
    type Err = HostIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let valid = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = if valid { u64::from_str_radix(text, 16).ok() } else { None };
        number.map(Self).ok_or_else(|| HostIdError(text.to_owned()))
    }
}

macro_rules! sixteen_digits {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{:016x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({})"), self)
            }
        }
    )*};
}
sixteen_digits!(MachineId, HostIncarnation, JobId);

impl fmt::Display for ProcessId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}.{}", self.segment, self.slot.0, self.incarnation.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_beside_that_of_a_group_tells_what_it_is_for() {
        let own = ContextId::new(5, 1 << 10 | 3);
        assert_eq!((own.purpose(), own.of_group()), (None, own));
        for (bits, words) in [
            (ContextId::COLLECTIVE, "for a collective operation"),
            (ContextId::COLLECTIVE | ContextId::CREATION, "for a collective operation"),
            (ContextId::CREATION, "to make a group"),
            (ContextId::AGREEMENT, "to agree"),
        ] {
            let beside = ContextId(own.0 | bits);
            assert_eq!((beside.purpose(), beside.of_group()), (Some(words), own));
        }
        let mailbox = ContextId(3 << 30 | ContextId::CREATION | ContextId::COLLECTIVE);
        assert_eq!((mailbox.purpose(), mailbox.of_group()), (None, mailbox));
    }

    #[test]
    fn host_identity_survives_its_text() {
        for number in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            let host = SegmentId(number);
            assert_eq!(host.to_string().parse(), Ok(host));
        }
    }

    #[test]
    fn host_identity_refuses_other_texts() {
        for text in ["", "1", "+123456789abcdef", "0123456789abcdeg", "0123456789abcdef0"] {
            assert!(text.parse::<SegmentId>().is_err(), "{text}");
        }
    }

    #[test]
    fn context_keeps_index_and_generation_apart() {
        let context = ContextId::new(0xf_ffff, 0xfff);
        assert_eq!((context.index(), context.generation()), (0xf_ffff, 0xfff));
        assert_ne!(ContextId::new(3, 1), ContextId::new(3, 2));
    }
}
