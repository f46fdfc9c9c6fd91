//! Groups: processes in an order.

use std::sync::{Arc, LazyLock};

use landeck::{Peer, World};
use landeck_c_boundary::Table;

use crate::abi::{GROUP_EMPTY, Handle};
use crate::job;
use crate::mistake::Mistake;
use crate::objects::kind::Kind;
use crate::objects::session::Session;

/// Processes in the order of their ranks.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) members: Arc<[Peer]>,
    /// This process's rank, if it is a member.
    pub(crate) rank: Option<u32>,
    /// The session that it was derived from; none where that is MPI_COMM_WORLD or MPI_COMM_SELF.
    pub(crate) session: Option<Arc<Session>>,
}

static TABLE: Table<Arc<Group>> = Table::new(Kind::Group as u8);
static EMPTY: LazyLock<Arc<Group>> = LazyLock::new(Arc::default);

impl Group {
    /// The group of these processes, of which this process is `own`.
    pub(crate) fn new(members: Arc<[Peer]>, own: Peer, session: Option<Arc<Session>>) -> Self {
        let rank = members.iter().position(|member| *member == own).map(|rank| rank as u32);
        Self { members, rank, session }
    }

    /// The group of a world.
    pub(crate) fn of(world: &World, session: Option<Arc<Session>>) -> Arc<Self> {
        let rank = u32::try_from(world.rank()).ok().filter(|rank| *rank < world.size() as u32);
        Arc::new(Self { members: Arc::clone(world.peers()), rank, session })
    }

    pub(crate) fn size(&self) -> u32 {
        self.members.len() as u32
    }
}

/// Gives out a handle of a group; all empty ones are MPI_GROUP_EMPTY.
pub(crate) fn keep(group: Arc<Group>) -> Result<Handle, Mistake> {
    if group.members.is_empty() {
        return Ok(GROUP_EMPTY);
    }
    TABLE.make_room()?;
    Ok(TABLE.insert(group) as Handle)
}

/// The group of a handle.
pub(crate) fn get(argument: &str, handle: Handle) -> Result<Arc<Group>, Mistake> {
    job::check_joined()?;
    if handle == GROUP_EMPTY {
        return Ok(Arc::clone(&EMPTY));
    }
    // SAFETY: a program frees an object when no other call of its uses it.
    unsafe { TABLE.get(handle as u64) }
        .cloned()
        .map_err(|error| Kind::Group.refuse(argument, handle, error))
}

/// Frees a handle of a group. MPI_GROUP_EMPTY may be freed, as it is what operations on groups give.
pub(crate) fn free(argument: &str, handle: Handle) -> Result<(), Mistake> {
    if handle == GROUP_EMPTY {
        return Ok(());
    }
    let removed = TABLE.remove(handle as u64);
    removed.map(|_| ()).map_err(|error| Kind::Group.refuse(argument, handle, error))
}

/// The number of a handle, and the handle of a number.
pub(crate) fn table() -> &'static Table<impl Sized> {
    &TABLE
}
