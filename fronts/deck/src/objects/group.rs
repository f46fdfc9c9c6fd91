//! Groups: all processes of the job, or one with a name whose members come and go.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
    Weak,
};

use landeck::collectives::Preset;
use landeck::{Member, MessageWorld};

use crate::errors;
use crate::mistake::Mistake;

/// A group of the program's.
pub(crate) enum Group {
    /// All processes that the job began with.
    World(Mutex<MessageWorld>),
    /// One with a name.
    Named(Arc<Named>),
}

/// A group with a name, as one object of the program sees it.
pub(crate) struct Named {
    pub(crate) group: landeck::Group,
    membership: RwLock<Option<Membership>>,
}

/// A member, and what it does together with the others.
pub(crate) struct Membership {
    pub(crate) member: Member,
    together: Option<MessageWorld>,
    preset: Option<Preset>,
}

/// What the members do together, for one thread at a time.
pub(crate) enum Together<'a> {
    World(MutexGuard<'a, MessageWorld>),
    Named(RwLockWriteGuard<'a, Option<Membership>>),
}

/// The groups in which this process may be a member: it leaves them when it leaves the job.
static NAMED: Mutex<Vec<Weak<Named>>> = Mutex::new(Vec::new());

impl Group {
    /// An object of a group with a name.
    pub(crate) fn named(group: landeck::Group, member: Option<Member>) -> Self {
        let membership = RwLock::new(member.map(Membership::new));
        let named = Arc::new(Named { group, membership });
        let mut all = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&named));
        Self::Named(named)
    }

    /// The group with a name; there are no broadcasts to all processes.
    pub(crate) fn as_named(&self) -> Result<&Arc<Named>, Mistake> {
        match self {
            Self::Named(named) => Ok(named),
            Self::World(_) => {
                let text = "g is the group of all processes, which nobody joins, leaves or \
                            broadcasts to: create or join a group with a name";
                Err(Mistake::known(errors::VALUE, text))
            }
        }
    }

    /// What its members do together, before an operation: whoever joined or left counts from here on.
    pub(crate) fn together(&self) -> Result<Together<'_>, Mistake> {
        self.with_others(true)
    }

    /// The same as of the last operation.
    pub(crate) fn last_together(&self) -> Result<Together<'_>, Mistake> {
        self.with_others(false)
    }

    /// Has the operations go by an architecture from now on.
    pub(crate) fn go_by(&self, preset: Option<Preset>) -> Result<(), Mistake> {
        match self {
            Self::World(world) => alone(world.try_lock())?.go_by(preset),
            Self::Named(named) => {
                let mut membership = named.alone()?;
                let membership = membership.as_mut().ok_or_else(left)?;
                membership.preset = preset.clone();
                if let Some(world) = &mut membership.together {
                    world.go_by(preset);
                }
            }
        }
        Ok(())
    }

    fn with_others(&self, advances: bool) -> Result<Together<'_>, Mistake> {
        match self {
            Self::World(world) => Ok(Together::World(alone(world.try_lock())?)),
            Self::Named(named) => {
                let mut guard = named.alone()?;
                guard.as_mut().ok_or_else(left)?.advance(advances)?;
                Ok(Together::Named(guard))
            }
        }
    }
}

impl Named {
    /// Its membership, for who sends: several threads may.
    pub(crate) fn shared(&self) -> Result<RwLockReadGuard<'_, Option<Membership>>, Mistake> {
        alone(self.membership.try_read())
    }

    /// The same for one thread alone.
    pub(crate) fn alone(&self) -> Result<RwLockWriteGuard<'_, Option<Membership>>, Mistake> {
        alone(self.membership.try_write())
    }
}

impl Membership {
    pub(crate) fn new(member: Member) -> Self {
        Self { member, together: None, preset: None }
    }

    /// Goes on to the next operation, or to the first.
    fn advance(&mut self, advances: bool) -> Result<(), Mistake> {
        if !advances && self.together.is_some() {
            return Ok(());
        }
        // Until it is known whether there are others, there is nobody.
        let before = self.together.take();
        let has_changed = self.member.advance()?;
        self.together = match before {
            Some(world) if !has_changed => Some(world),
            _ => {
                let mut world = MessageWorld::new(self.member.world()?.clone());
                world.go_by(self.preset.clone());
                Some(world)
            }
        };
        Ok(())
    }
}

impl Together<'_> {
    pub(crate) fn world(&mut self) -> Result<&mut MessageWorld, Mistake> {
        match self {
            Self::World(world) => Ok(world),
            Self::Named(guard) => {
                let membership = guard.as_mut().ok_or_else(left)?;
                membership.together.as_mut().ok_or_else(left)
            }
        }
    }

    /// The rank of the member with a number.
    pub(crate) fn rank_of(&self, number: i32) -> Result<usize, Mistake> {
        let (found, most) = match self {
            Self::World(world) => {
                let size = world.world().size();
                (usize::try_from(number).ok().filter(|&rank| rank < size), size)
            }
            Self::Named(guard) => {
                let membership = guard.as_ref().ok_or_else(left)?;
                let numbers = membership.member.world_ids();
                (numbers.iter().position(|&id| i64::from(id) == i64::from(number)), numbers.len())
            }
        };
        found.ok_or_else(|| {
            let choice = format!("none of the {most} members that take part has this number");
            Mistake::value("root", number, &choice)
        })
    }
}

/// Leaves all groups: the job is left.
pub(crate) fn leave_all() {
    let all = std::mem::take(&mut *NAMED.lock().unwrap_or_else(PoisonError::into_inner));
    for named in all.iter().filter_map(Weak::upgrade) {
        if let Ok(mut membership) = named.membership.try_write() {
            *membership = None;
        }
    }
}

/// The right to use something that one thread at a time may.
fn alone<T>(tried: Result<T, TryLockError<T>>) -> Result<T, Mistake> {
    match tried {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            let text = "another thread waits with this object: threads take part with a mailbox and \
                        an object of their own";
            Err(Mistake::known(errors::BUSY, text))
        }
    }
}

#[cold]
pub(crate) fn left() -> Mistake {
    Mistake::known(errors::LEFT, "g is no member of the group: join it, or it has left")
}
