//! Which member drives its host in a started operation: the last of the host to come to the board.
//!
//! Members may compute between the start of an operation and their wait for it. So whoever has come does nothing more for
//! others. The last to come finds all data of its host, and sends them within that call. The members of other hosts do
//! not know which it is: they expect a message from any member of its host.

use std::sync::Arc;

use crate::group::plans::Prepared;

/// How a member takes part in a started operation.
pub(crate) struct Direct {
    /// Its plan; where it may still drive its host, the one in which another member does.
    pub(crate) plan: Prepared,
    /// None where only the root sends.
    pub(crate) driving: Option<Driving>,
}

/// The drivers of hosts in one operation, as a member knows them.
pub(crate) struct Driving {
    /// By host: its members. One of them sends for it.
    hosts: Arc<[Vec<u32>]>,
    /// The plan in which this member drives its host, while that is open.
    drives: Option<Prepared>,
}

impl Driving {
    /// The only member of its host drives it.
    pub(crate) fn alone(hosts: Arc<[Vec<u32>]>) -> Self {
        Self { hosts, drives: None }
    }

    /// This member drives its host by this plan, if it comes last.
    pub(crate) fn open(hosts: Arc<[Vec<u32>]>, drives: Prepared) -> Self {
        Self { hosts, drives: Some(drives) }
    }

    /// Whether this member has not come yet.
    pub(crate) fn is_open(&self) -> bool {
        self.drives.is_some()
    }

    /// This member has come. The plan to go on by, if that is another one.
    pub(crate) fn close(&mut self, is_last: bool) -> Option<Prepared> {
        self.drives.take().filter(|_| is_last)
    }

    /// The members any of which may send in the place of this one.
    pub(crate) fn senders(&self, of: u32) -> &[u32] {
        self.hosts.iter().find(|host| host.contains(&of)).map_or(&[], Vec::as_slice)
    }
}
