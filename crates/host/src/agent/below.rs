//! Processes that have joined in the place of the one that was started: below a shell, a debugger, a
//! tool that measures.
//!
//! The driver sees the end of what it has started. What joins below asks to be watched, so the others
//! learn of its death while what stands above it goes on.

use std::os::fd::OwnedFd;

use landeck_groups::membership::Input;
use landeck_memory::Presence;
use landeck_wire::ProcessId;
use rustix::event::epoll::EventFlags;

use super::{Agent, Effect, Standing};
use crate::peer;
use crate::socket::{Answer, Verdict};

impl Agent {
    /// Watches the process at the other end of a connection, which has joined in this place.
    pub(super) fn watch_below(&mut self, connection: u64, process: ProcessId) {
        let Some(pid) = self.connections.get(&connection).map(|found| found.pid) else { return };
        let slot = process.slot;
        let has_joined = self.segment.presence(slot.0) == Presence::Attached;
        let is_ours = self.membership.rank_of(slot).is_some() && self.membership.is_alive(process);
        if !is_ours || !has_joined {
            return self.refuse(connection, Verdict::NotAlive);
        }
        if self.membership.record(slot).pid == pid || self.is_watched_below(process) {
            return self.refuse(connection, Verdict::Taken);
        }
        self.tell(Input::Found { slot, pid });
        let Some(found) = self.connections.get(&connection) else { return };
        // Who does not take its answer is watched all the same.
        let _ = Answer::bare(process.host, Verdict::Granted).send(&found.socket, None);
        // The end of the process says more than that of its connection, and one descriptor is enough.
        let itself = peer::pidfd(&found.socket, pid);
        let itself = itself.filter(|pidfd| self.watch(pidfd, connection, EventFlags::IN).is_ok());
        if let Some(found) = self.connections.get_mut(&connection) {
            found.standing = Standing::Below { process };
            itself.into_iter().for_each(|pidfd| found.socket = pidfd);
        }
    }

    fn is_watched_below(&self, process: ProcessId) -> bool {
        self.connections.values().any(|connection| {
            matches!(connection.standing, Standing::Below { process: other } if other == process)
        })
    }

    /// A process is gone that was watched below another. After its goodbye that means nothing: what
    /// was started goes on, and its end counts.
    pub(super) fn lose(&mut self, process: ProcessId, pid: u32, watched: &OwnedFd) {
        let has_left = self.segment.presence(process.slot.0) == Presence::Finalized;
        if !has_left && self.membership.is_alive(process) {
            let status = peer::end_status(watched, pid);
            self.effects.push(Effect::Lost { process, status });
        }
    }

    /// Whether this very process lives.
    pub(crate) fn is_alive(&self, process: ProcessId) -> bool {
        self.membership.is_alive(process)
    }
}

#[cfg(test)]
mod tests {
    use landeck_memory::Presence;
    use landeck_wire::{Incarnation, ProcessId, Slot};

    use super::super::tests::{PATIENCE, host, limited, segment};
    use crate::agent_thread::serve_in_thread;
    use crate::socket::{self, JoinError, Verdict};

    #[test]
    fn only_who_has_joined_in_anothers_place_is_watched() {
        let _watchdog = limited();
        let segment = segment(2);
        let _agent = serve_in_thread(&segment, 0, None).unwrap();
        let refused = |slot, incarnation| {
            let (slot, incarnation) = (Slot(slot), Incarnation(incarnation));
            let process = ProcessId { host: host(&segment), slot, incarnation };
            match socket::be_found(process, PATIENCE) {
                Err(JoinError::Refused(verdict)) => verdict,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(refused(0, 1), Verdict::NotAlive, "it has not joined");
        segment.set_presence(0, Presence::Attached);
        assert_eq!(refused(0, 1), Verdict::Taken, "it is the one that was started");
        assert_eq!(refused(0, 2), Verdict::NotAlive, "there is no next one yet");
        assert_eq!(refused(1, 1), Verdict::NotAlive, "nobody was started there");
        assert_eq!(refused(99, 1), Verdict::NotAlive, "there is no such slot");
    }
}
