//! Groups: all processes of the job, or one with a name whose members come and go.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use landeck::raw::group::{Seat, seat};
use landeck::unstable::collectives::Preset;
use landeck::unstable::memory::gate::{Entry, Gate};
use landeck::{Incast, Member, MessageWorld, ThreadMode};

use crate::errors;
use crate::mistake::Mistake;

/// A group of the program's.
pub(crate) enum Group {
    /// All processes that the job began with.
    World(Box<Gate<MessageWorld>>),
    /// One with a name.
    Named(Arc<Named>),
}

/// A group with a name, as one object of the program sees it.
pub(crate) struct Named {
    pub(crate) group: landeck::Group,
    /// As whom it sends, which any thread may do: a number and a stamp.
    seat: AtomicU64,
    /// For one thread at a time.
    membership: Gate<Option<Membership>>,
}

/// No member.
const NO_SEAT: u64 = u64::MAX;

/// A member, and what it does together with the others.
pub(crate) struct Membership {
    pub(crate) member: Member,
    together: Option<MessageWorld>,
    preset: Option<Preset>,
    pace: Option<Incast>,
}

/// The world in which the members of a group call collective operations, entered by one thread.
pub(crate) enum Together<'a> {
    World(Entry<'a, MessageWorld>),
    Named(Entry<'a, Option<Membership>>),
}

/// The groups in which this process may be a member: it leaves them when it leaves the job.
static NAMED: Mutex<Vec<Weak<Named>>> = Mutex::new(Vec::new());

impl Group {
    /// All processes that the job began with.
    pub(crate) fn world(world: MessageWorld) -> Self {
        Self::World(Box::new(Gate::new(ThreadMode::Multiple, world)))
    }

    /// An object of a group with a name.
    pub(crate) fn named(group: landeck::Group, member: Option<Member>) -> Self {
        let seat = AtomicU64::new(member.as_ref().map_or(NO_SEAT, seat_word));
        let membership = Gate::new(ThreadMode::Multiple, member.map(Membership::new));
        let named = Arc::new(Named { group, seat, membership });
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

    /// Enters the world of the members for a new operation. Processes that have joined or left count from here on.
    #[inline(always)]
    pub(crate) fn together(&self) -> Result<Together<'_>, Mistake> {
        match self {
            Self::World(world) => Ok(Together::World(alone(world)?)),
            Self::Named(named) => named.together(true),
        }
    }

    /// Enters the world of the members as the last operation had it.
    pub(crate) fn last_together(&self) -> Result<Together<'_>, Mistake> {
        match self {
            Self::World(world) => Ok(Together::World(alone(world)?)),
            Self::Named(named) => named.together(false),
        }
    }

    /// Has the operations go by an architecture from now on.
    pub(crate) fn go_by(&self, preset: Option<Preset>) -> Result<(), Mistake> {
        match self {
            Self::World(world) => alone(world)?.go_by(preset),
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

    /// Sets the pace at which members of other hosts answer this process.
    pub(crate) fn set_pace(&self, pace: Incast) -> Result<(), Mistake> {
        match self {
            Self::World(world) => Ok(alone(world)?.world().set_incast(pace)?),
            Self::Named(named) => {
                let mut membership = named.alone()?;
                let membership = membership.as_mut().ok_or_else(left)?;
                membership.pace = Some(pace);
                match &membership.together {
                    Some(world) => Ok(world.world().set_incast(pace)?),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Named {
    /// The seat from which the process sends; `None` if it is no member.
    #[inline]
    pub(crate) fn seat(&self) -> Option<Seat> {
        match self.seat.load(Ordering::Acquire) {
            NO_SEAT => None,
            word => Some(Seat { id: word as u32, stamp: (word >> 32) as u32 }),
        }
    }

    /// Its membership, for one thread alone.
    pub(crate) fn alone(&self) -> Result<Entry<'_, Option<Membership>>, Mistake> {
        alone(&self.membership)
    }

    /// Enters the world of the members; if it advances, processes that have joined or left count.
    #[inline(never)]
    fn together(&self, advances: bool) -> Result<Together<'_>, Mistake> {
        let mut membership = self.alone()?;
        membership.as_mut().ok_or_else(left)?.advance(advances)?;
        Ok(Together::Named(membership))
    }

    /// Takes a member in; gives it back where there is one, or another thread waits with it.
    pub(crate) fn take_in(&self, member: Member) -> Option<Member> {
        match self.alone() {
            Ok(mut membership) if membership.is_none() => {
                self.seat.store(seat_word(&member), Ordering::Release);
                *membership = Some(Membership::new(member));
                None
            }
            _ => Some(member),
        }
    }

    /// Gives the member away, if there is one.
    pub(crate) fn give_away(&self) -> Result<Option<Membership>, Mistake> {
        let mut membership = self.alone()?;
        self.seat.store(NO_SEAT, Ordering::Release);
        Ok(membership.take())
    }
}

fn seat_word(member: &Member) -> u64 {
    let Seat { id, stamp } = seat(member);
    u64::from(id) | u64::from(stamp) << 32
}

impl Membership {
    pub(crate) fn new(member: Member) -> Self {
        Self { member, together: None, preset: None, pace: None }
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
                if let Some(pace) = self.pace {
                    world.world().set_incast(pace)?;
                }
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
        // Where a thread waits with one, it goes with the job.
        drop(named.give_away());
    }
}

/// The right to use something that one thread at a time may.
#[inline(always)]
fn alone<T>(gate: &Gate<T>) -> Result<Entry<'_, T>, Mistake> {
    match gate.try_enter_in_turn() {
        Ok(Some(entry)) => Ok(entry),
        Ok(None) => {
            let text = "another thread waits with this object: threads take part with a mailbox and \
                        an object of their own";
            Err(Mistake::known(errors::BUSY, text))
        }
        Err(error) => Err(landeck::Error::from(error).into()),
    }
}

#[cold]
pub(crate) fn left() -> Mistake {
    Mistake::known(errors::LEFT, "g is no member of the group: join it, or it has left")
}
