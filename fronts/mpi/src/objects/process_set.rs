//! Sets of processes that have a name: those that the standard demands.

use std::sync::Arc;

use crate::job;
use crate::mistake::Mistake;
use crate::objects::group::Group;
use crate::objects::session::Session;

/// A set of processes with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessSet {
    /// All that the job began with.
    World,
    /// This process alone.
    Myself,
}

/// All sets, in the order in which they are numbered.
pub(crate) const ALL: [ProcessSet; 2] = [ProcessSet::World, ProcessSet::Myself];

impl ProcessSet {
    /// The set of a name; what follows `mpi://` may be written in letters of either size.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|set| set.name().eq_ignore_ascii_case(name))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::World => "mpi://WORLD",
            Self::Myself => "mpi://SELF",
        }
    }

    /// Its members in a session, in the order of their numbers.
    pub(crate) fn group(self, session: &Arc<Session>) -> Result<Arc<Group>, Mistake> {
        let (own, session) = (job::own_peer()?, Some(Arc::clone(session)));
        Ok(match self {
            Self::World => Group::of(&job::everybody()?, session),
            Self::Myself => Arc::new(Group::new([own].into(), own, session)),
        })
    }

    /// A number that the members of one set have in common, and those of another do not.
    pub(crate) fn color(self, own_rank: usize) -> u32 {
        match self {
            Self::World => 0,
            Self::Myself => own_rank as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_found_by_their_names() {
        for set in ALL {
            assert_eq!(ProcessSet::of_name(set.name()), Some(set));
        }
        assert_eq!(ProcessSet::of_name("mpi://world"), Some(ProcessSet::World));
        assert_eq!(ProcessSet::of_name("WORLD"), None);
    }
}
