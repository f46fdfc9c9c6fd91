//! Communicators: a world of messages, its group, and what programs attach to it.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use landeck::{Bridge, Incast, OneCopy, World};
use landeck_c_boundary::{Lingering, Table};

use crate::abi::{COMM_SELF, COMM_WORLD, ERRORS_ARE_FATAL, Handle};
use crate::job;
use crate::mistake::Mistake;
use crate::objects::attributes::Attributes;
use crate::objects::buffer;
use crate::objects::error_handler::{self, Reaction, Slot};
use crate::objects::group::Group;
use crate::objects::info::Info;
use crate::objects::kind::Kind;
use crate::objects::neighbours::Neighbours;
use crate::objects::session::Session;
use crate::objects::topology::Topology;

/// The hint for the pace of many-to-one steps between hosts.
const INCAST: &str = "landeck_incast";
/// Where the data of long messages wait, as `--store` has it.
const STORE: &str = "landeck_store";
/// The hint that says from which length on messages are copied once.
const ONE_COPY: &str = "landeck_one_copy";

/// A communicator.
pub(crate) struct Communicator {
    /// Its own handle, which callbacks are told.
    handle: AtomicUsize,
    /// The world in which its messages and its collective operations go; that of the local group,
    /// if there is a remote one.
    pub(crate) world: World,
    /// The world in which operations talk that use single messages; opened when it is needed.
    inside: OnceLock<World>,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) group: Arc<Group>,
    /// The other side, if it is an intercommunicator.
    pub(crate) remote: Option<Remote>,
    pub(crate) topology: OnceLock<Topology>,
    /// Those of the topology; found out when they are needed.
    neighbours: OnceLock<Neighbours>,
    /// How many operations with neighbours are kept, to be started again and again. Members make
    /// them in the same order.
    kept_exchanges: AtomicU32,
    pub(crate) error_handler: Slot,
    pub(crate) attributes: Attributes,
    pub(crate) name: Mutex<String>,
    pub(crate) info: Mutex<Info>,
    pub(crate) buffer: buffer::Slot,
}

/// The other side of an intercommunicator.
pub(crate) struct Remote {
    pub(crate) group: Arc<Group>,
    /// The bridge between the two sides. Its local world is that of the communicator; the ranks of its
    /// remote ones are those of the remote group.
    pub(crate) bridge: Bridge,
}

impl Remote {
    /// The world in which the collective operations of both groups go on.
    pub(crate) fn both(&self) -> &World {
        self.bridge.both()
    }

    /// The rank that a member of the other group has there.
    pub(crate) fn place(&self, rank: usize) -> usize {
        let local = self.bridge.local();
        // One group follows the other.
        if self.both().rank() == local.rank() { local.size() + rank } else { rank }
    }
}

static TABLE: Table<Arc<Communicator>> = Table::new(Kind::Communicator as u8);
static LINGERING: Lingering = Lingering::new();

impl Communicator {
    /// A communicator over a world, in a session if there is one, with nothing attached.
    pub(crate) fn new(world: World, session: Option<Arc<Session>>) -> Self {
        Self {
            handle: AtomicUsize::new(0),
            rank: world.rank() as u32,
            size: world.size() as u32,
            group: Group::of(&world, session),
            world,
            inside: OnceLock::new(),
            remote: None,
            topology: OnceLock::new(),
            neighbours: OnceLock::new(),
            kept_exchanges: AtomicU32::new(0),
            error_handler: Slot::new(Kind::Communicator, ERRORS_ARE_FATAL),
            attributes: Attributes::default(),
            name: Mutex::default(),
            info: Mutex::default(),
            buffer: buffer::Slot::new(),
        }
    }

    /// A communicator of two groups, with nothing attached.
    pub(crate) fn across(bridge: Bridge, session: Option<Arc<Session>>) -> Self {
        let made = Self::new(bridge.local().clone(), session.clone());
        let group = Group::of(bridge.remote(), session);
        Self { remote: Some(Remote { group, bridge }), ..made }
    }

    /// One that is predefined, with the error handler that there is at first.
    pub(crate) fn predefined(handle: Handle, name: &str, world: World) -> Result<Self, Mistake> {
        let made = Self::new(world, None);
        made.handle.store(handle, Ordering::Release);
        made.error_handler.set("errhandler", error_handler::initial()?)?;
        Ok(Self { name: Mutex::new(name.to_owned()), ..made })
    }

    /// A communicator that is made of this one: it inherits the error handler, and the session.
    pub(crate) fn child(&self, world: World) -> Self {
        let made = Self::new(world, self.session().cloned());
        Self { error_handler: self.error_handler.inherit(), ..made }
    }

    /// An intercommunicator that is made of this communicator and inherits the error handler and the session.
    pub(crate) fn child_across(&self, bridge: Bridge) -> Self {
        let made = Self::across(bridge, self.session().cloned());
        Self { error_handler: self.error_handler.inherit(), ..made }
    }

    /// Makes this child a copy of its parent: with its topology and these hints.
    pub(crate) fn into_copy_of(self, parent: &Self, hints: Info) -> Self {
        let copy = Self { topology: parent.topology.clone(), info: Mutex::new(hints), ..self };
        copy.heed_hints();
        copy
    }

    /// Whether it stays until MPI_Finalize.
    pub(crate) fn is_predefined(&self) -> bool {
        matches!(self.handle(), COMM_WORLD | COMM_SELF)
    }

    /// The session that it was made in; none of those that MPI_Init has made, and their children.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.group.session.as_ref()
    }

    /// Its hints.
    pub(crate) fn hints(&self) -> Info {
        self.info.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Other hints from now on.
    pub(crate) fn set_hints(&self, hints: Info) {
        *self.info.lock().unwrap_or_else(PoisonError::into_inner) = hints;
        self.heed_hints();
    }

    /// Does what the hints ask for. A value that means nothing is no error, as the standard says of hints.
    pub(crate) fn heed_hints(&self) {
        let hints = self.hints();
        if let Some(wish) = hints.get(INCAST).and_then(Incast::from_words) {
            // In a forked child nothing is sent.
            let _ = self.world.set_incast(wish);
        }
        if let Some(store) = hints.get(STORE).and_then(|name| self.world.store_named(name).ok()) {
            let _ = self.world.set_store(store);
        }
        if let Some(wish) = hints.get(ONE_COPY).and_then(OneCopy::from_words) {
            let _ = self.world.set_one_copy(wish);
        }
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
            Some(remote) => (remote.bridge.remote(), remote.group.size()),
        }
    }

    /// With whom operations between neighbours talk; none without a topology.
    pub(crate) fn neighbours(&self) -> Option<&Neighbours> {
        let topology = self.topology.get()?;
        Some(self.neighbours.get_or_init(|| Neighbours::of(topology, self.rank)))
    }

    /// The number of one more operation that is kept, from 1 on.
    pub(crate) fn count_exchange(&self) -> u32 {
        self.kept_exchanges.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// The world for messages of the library itself, which never meet those of the program.
    pub(crate) fn inside(&self) -> Result<&World, Mistake> {
        if let Some(world) = self.inside.get() {
            return Ok(world);
        }
        let world = self.world.inside()?;
        Ok(self.inside.get_or_init(|| world))
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "communicator {:#x}: rank {} of {}", self.handle(), self.rank, self.size)
    }
}

/// A communicator that something holds on to. Predefined ones are there until the process ends, and
/// are not counted.
#[derive(Clone, Debug)]
pub(crate) enum Holder {
    Predefined(&'static Arc<Communicator>),
    Counted(Arc<Communicator>),
}

impl Holder {
    /// Holds on to the communicator of a handle.
    #[inline]
    pub(crate) fn of(handle: Handle, communicator: &'static Arc<Communicator>) -> Self {
        match handle {
            COMM_WORLD | COMM_SELF => Self::Predefined(communicator),
            _ => Self::Counted(Arc::clone(communicator)),
        }
    }
}

impl Deref for Holder {
    type Target = Arc<Communicator>;

    #[inline]
    fn deref(&self) -> &Arc<Communicator> {
        match self {
            Self::Predefined(communicator) => communicator,
            Self::Counted(communicator) => communicator,
        }
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
#[inline(always)]
pub(crate) fn get(argument: &str, handle: Handle) -> Result<&'static Arc<Communicator>, Mistake> {
    match handle {
        COMM_WORLD => Ok(&job::current()?.world),
        handle => get_other(argument, handle),
    }
}

/// Returns the communicator of a handle that is not MPI_COMM_WORLD.
#[inline(never)]
fn get_other(argument: &str, handle: Handle) -> Result<&'static Arc<Communicator>, Mistake> {
    if handle == COMM_SELF {
        return Ok(&job::current()?.myself);
    }
    job::check_joined()?;
    // SAFETY: as said of `get`.
    unsafe { TABLE.get(handle as u64) }
        .map_err(|error| Kind::Communicator.refuse(argument, handle, error))
}

/// The communicator of a handle that leads to one now; nothing is said of a mistake.
#[inline(always)]
pub(crate) fn find(handle: Handle) -> Option<&'static Arc<Communicator>> {
    if handle == COMM_WORLD {
        return job::if_running().map(|job| &job.world);
    }
    find_other(handle)
}

#[inline(never)]
fn find_other(handle: Handle) -> Option<&'static Arc<Communicator>> {
    get_other("comm", handle).ok()
}

/// Frees a communicator. Its handle is stale when no operation needs it any more: error handlers are told
/// of it until then.
pub(crate) fn free(argument: &str, handle: Handle) -> Result<(), Mistake> {
    if matches!(handle, COMM_WORLD | COMM_SELF) {
        return Err(Kind::Communicator.refuse_predefined(argument, handle));
    }
    let freed = LINGERING.free(&TABLE, handle as u64);
    freed.map_err(|error| Kind::Communicator.refuse(argument, handle, error))
}

/// Returns the reaction of a communicator's error handler; none if there is no such communicator. A child made by
/// fork has the handlers that its parent had.
pub(crate) fn reaction(handle: Handle) -> Option<Reaction> {
    let communicator = match handle {
        COMM_WORLD => job::if_running().map(|job| &job.world),
        COMM_SELF => job::if_running().map(|job| &job.myself),
        // SAFETY: as said of `get`.
        handle if job::is_joined() => unsafe { TABLE.get(handle as u64) }.ok(),
        _ => None,
    };
    communicator.map(|communicator| communicator.error_handler.reaction())
}

/// The number of a handle, and the handle of a number.
pub(crate) fn table() -> &'static Table<impl Sized> {
    &TABLE
}
