//! Communicators: a world of messages, its group, and what programs attach to it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use landeck::{Bridge, World};
use landeck_c_boundary::Table;

use crate::abi::{COMM_SELF, COMM_WORLD, ERR_COMM, ERRORS_ARE_FATAL, Handle};
use crate::job;
use crate::mistake::Mistake;
use crate::objects::attributes::Attributes;
use crate::objects::error_handler::{Reaction, Slot};
use crate::objects::group::Group;
use crate::objects::info::Info;
use crate::objects::kind::Kind;
use crate::objects::topology::Topology;

/// A communicator.
pub(crate) struct Communicator {
    /// Its own handle, which callbacks are told.
    handle: AtomicUsize,
    /// The world in which its messages and its collective operations go; that of the local group,
    /// if there is a remote one.
    pub(crate) world: World,
    /// The world in which operations talk that use single messages; made when it is needed.
    inside: OnceLock<World>,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) group: Arc<Group>,
    /// The other side, if it is an intercommunicator.
    pub(crate) remote: Option<Remote>,
    pub(crate) topology: OnceLock<Topology>,
    pub(crate) error_handler: Slot,
    pub(crate) attributes: Attributes,
    pub(crate) name: Mutex<String>,
    pub(crate) info: Mutex<Info>,
}

/// The other side of an intercommunicator.
pub(crate) struct Remote {
    pub(crate) group: Arc<Group>,
    /// The world in which the two sides talk; its ranks are those of the remote group.
    pub(crate) world: World,
    /// What the world is a part of.
    pub(crate) bridge: Bridge,
    /// The world in which the collective operations of both groups go on.
    both: World,
}

impl Remote {
    /// The other side of a bridge. All members of both groups call it.
    pub(crate) fn new(bridge: Bridge, group: Arc<Group>) -> Result<Self, Mistake> {
        let both = bridge.merge(false)?;
        Ok(Self { group, world: bridge.remote().clone(), bridge, both })
    }

    /// The world in which the collective operations of both groups go on.
    pub(crate) fn both(&self) -> &World {
        &self.both
    }

    /// The rank that a member of the other group has there.
    pub(crate) fn place(&self, rank: usize) -> usize {
        let local = self.bridge.local();
        // One group follows the other.
        if self.both.rank() == local.rank() { local.size() + rank } else { rank }
    }
}

static TABLE: Table<Arc<Communicator>> = Table::new(Kind::Communicator as u8);

impl Communicator {
    /// A communicator over a world, with nothing attached.
    pub(crate) fn new(world: World, group: Arc<Group>) -> Self {
        let (rank, size) = (world.rank() as u32, world.size() as u32);
        Self {
            handle: AtomicUsize::new(0),
            world,
            inside: OnceLock::new(),
            rank,
            size,
            group,
            remote: None,
            topology: OnceLock::new(),
            error_handler: Slot::new(Kind::Communicator, ERRORS_ARE_FATAL),
            attributes: Attributes::default(),
            name: Mutex::default(),
            info: Mutex::default(),
        }
    }

    /// One that is predefined.
    pub(crate) fn predefined(handle: Handle, name: &str, world: World, group: Group) -> Self {
        let made = Self::new(world, Arc::new(group));
        made.handle.store(handle, Ordering::Release);
        Self { name: Mutex::new(name.to_owned()), ..made }
    }

    /// A communicator that is made of this one: it inherits the error handler.
    pub(crate) fn child(&self, world: World, group: Arc<Group>) -> Self {
        Self { error_handler: self.error_handler.inherit(), ..Self::new(world, group) }
    }

    /// Its own handle.
    pub(crate) fn handle(&self) -> Handle {
        self.handle.load(Ordering::Acquire)
    }

    /// The world of messages between processes of the program, and how many ranks it has.
    #[inline]
    pub(crate) fn messages(&self) -> (&World, u32) {
        match &self.remote {
            None => (&self.world, self.size),
            Some(remote) => (&remote.world, remote.group.size()),
        }
    }

    /// Checks that it is no intercommunicator.
    pub(crate) fn check_within(&self, argument: &str) -> Result<(), Mistake> {
        if self.remote.is_none() {
            return Ok(());
        }
        let handle = self.handle();
        let text =
            format!("{argument} is {handle:#x}, an intercommunicator; pass one of one group");
        Err(Mistake::new(ERR_COMM, text))
    }

    /// The world for messages of the library itself. The first call is made by all members, as
    /// part of one collective operation.
    pub(crate) fn inside(&self) -> Result<&World, Mistake> {
        if let Some(world) = self.inside.get() {
            return Ok(world);
        }
        let world = self.world.duplicate()?;
        Ok(self.inside.get_or_init(|| world))
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "communicator {:#x}: rank {} of {}", self.handle(), self.rank, self.size)
    }
}

/// Gives out the handle of a communicator.
pub(crate) fn keep(communicator: Communicator) -> Handle {
    let communicator = Arc::new(communicator);
    let handle = TABLE.insert(Arc::clone(&communicator)) as Handle;
    communicator.handle.store(handle, Ordering::Release);
    handle
}

/// The communicator of a handle. A call borrows it: a program frees an object when no other call of
/// its uses it. What goes on after the call keeps a clone.
#[inline]
pub(crate) fn get(argument: &str, handle: Handle) -> Result<&'static Arc<Communicator>, Mistake> {
    match handle {
        COMM_WORLD => Ok(&job::current()?.world),
        COMM_SELF => Ok(&job::current()?.myself),
        handle => {
            job::check_joined()?;
            // SAFETY: as said above.
            unsafe { TABLE.get(handle as u64) }
                .map_err(|error| Kind::Communicator.refuse(argument, handle, error))
        }
    }
}

/// Takes a communicator out of the table: its handle is stale from now on.
pub(crate) fn free(argument: &str, handle: Handle) -> Result<Arc<Communicator>, Mistake> {
    if matches!(handle, COMM_WORLD | COMM_SELF) {
        return Err(Kind::Communicator.refuse_predefined(argument, handle));
    }
    let removed = TABLE.remove(handle as u64);
    removed.map_err(|error| Kind::Communicator.refuse(argument, handle, error))
}

/// What the error handler of a communicator does; none if there is no such communicator.
pub(crate) fn reaction(handle: Handle) -> Option<Reaction> {
    get("comm", handle).ok().map(|communicator| communicator.error_handler.reaction())
}

/// The number of a handle, and the handle of a number.
pub(crate) fn table() -> &'static Table<impl Sized> {
    &TABLE
}
