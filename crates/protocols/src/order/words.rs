//! Words of the arbiter about a group over hosts, and the state that follows from them.
//!
//! The arbiter and every host fold the words of a group in one order, so all of them agree on its home, its epoch and
//! its registered holders up to the last word that they have.

use std::collections::BTreeSet;

use landeck_wire::HostNumber;

/// A copy of a group on a host, from its registration until it is put out. A host that holds the group again has
/// another one. The order is that of coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HolderId {
    /// The number of the word that registered it.
    pub word: u64,
    /// Its host.
    pub host: HostNumber,
}

/// The reason why a holder is put out of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutCause {
    /// Its host is lost.
    HostLost,
    /// It has no process of the job.
    NoProcess,
    /// It and the home did not reach each other, though both reached the arbiter.
    NoPath,
}

/// A change of a group that the arbiter decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupChange {
    /// The group begins with its first holder, which is its home.
    Created(HolderId),
    /// A host holds the group from now on, and waits for its copy.
    Registered(HolderId),
    /// A holder is put out.
    Out(HolderId, OutCause),
    /// A holder becomes the home. The number of this word is the new epoch.
    Home(HolderId),
    /// No complete copy of the group is left.
    Lost,
}

/// A word about a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupWord {
    /// Its number among all words of the machine.
    pub number: u64,
    /// The number of the group.
    pub group: u32,
    /// The change.
    pub change: GroupChange,
}

/// The state of a group that follows from the words about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStanding {
    /// The number of the word that named the home.
    pub epoch: u64,
    /// The home. `None` before the first word, and between the loss of a home and the next one.
    pub home: Option<HolderId>,
    /// The registered holders, in the order of coming.
    pub registered: BTreeSet<HolderId>,
    /// Whether no complete copy is left.
    pub is_lost: bool,
}

impl GroupStanding {
    /// Applies a word about this group.
    pub fn apply(&mut self, word: &GroupWord) {
        match word.change {
            GroupChange::Created(home) => {
                self.registered.insert(home);
                (self.epoch, self.home) = (word.number, Some(home));
            }
            GroupChange::Registered(holder) => {
                self.registered.insert(holder);
            }
            GroupChange::Out(holder, _) => {
                self.registered.remove(&holder);
                self.home = self.home.filter(|home| *home != holder);
            }
            GroupChange::Home(home) => (self.epoch, self.home) = (word.number, Some(home)),
            GroupChange::Lost => {
                self.registered.clear();
                (self.home, self.is_lost) = (None, true);
            }
        }
    }

    /// The registered holder on a host.
    #[must_use]
    pub fn holder_on(&self, host: HostNumber) -> Option<HolderId> {
        self.registered.iter().find(|holder| holder.host == host).copied()
    }
}
