//! The agent's work for its door: it owns the sockets and the memory, receives what arrives there, and carries out the
//! door's actions.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use landeck_memory::{SlotRecord, shared_area};
use landeck_protocols::door::{
    Answer, DoorAction, Input, Listening, MemoryNumber, Name, Question, Reply, Visitor,
};
use landeck_protocols::membership::{self, LastPresence};
use landeck_wire::{ControlMessage, ProcessId, Slot};
use rustix::event::epoll::EventFlags;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, accept_with, recv};

use super::sockets::{Connection, Watched};
use super::{Agent, Effect, presence_of};
use crate::address::Address;
use crate::peer;
use crate::socket::send_answer;

/// How long nobody is let in after descriptors ran out.
const SHUT_TIME: Duration = Duration::from_millis(100);

impl Agent {
    /// Watches the sockets at which the agent listens from the beginning.
    pub(super) fn watch_doors(&mut self) -> io::Result<()> {
        for watched in [Watched::Job, Watched::Entry] {
            let token = self.sockets.new_token(watched);
            if let Some(socket) = self.sockets.listener(watched) {
                self.watch(socket, token, EventFlags::IN)?;
            }
        }
        Ok(())
    }

    /// Tells the door what happened and carries out what follows.
    pub(super) fn tell_door(&mut self, input: Input<'_>) {
        let now = self.began.elapsed();
        for action in self.door.handle(now, &self.membership, input) {
            self.carry_out(action);
        }
    }

    /// When the door or a shut socket needs attention next, counted from `began`.
    pub(super) fn own_deadline(&self, now: Duration) -> Option<Duration> {
        self.door.deadline(now).into_iter().chain(self.sockets.shut_until).min()
    }

    /// Opens the sockets again when the time for that has come.
    pub(super) fn open_doors(&mut self) {
        if self.sockets.shut_until.is_some_and(|until| until <= self.began.elapsed()) {
            self.shut_doors(None);
        }
    }

    /// Handles an event at one of the door's descriptors.
    pub(super) fn serve(&mut self, token: u64) {
        match self.sockets.watched(token) {
            Some(Watched::Connection(visitor)) => self.serve_connection(visitor, token),
            Some(door) => self.accept_all(door),
            None => {} // closed by an earlier event of this round
        }
    }

    fn accept_all(&mut self, door: Watched) {
        loop {
            let Some(socket) = self.sockets.listener(door) else { return };
            match accept_with(socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(connection) => self.receive(connection, door),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return,
                // Descriptors or memory are exhausted: asking again at once would only burn time.
                Err(_) => return self.shut_doors(Some(self.began.elapsed() + SHUT_TIME)),
            }
        }
    }

    /// Tells the door of a new connection.
    fn receive(&mut self, socket: OwnedFd, door: Watched) {
        let Ok((uid, pid)) = peer::credentials(&socket) else { return };
        let visitor = self.sockets.new_visitor();
        if self.watch(&socket, visitor.0, EventFlags::IN).is_err() {
            return self.sockets.forget_token(visitor.0);
        }
        self.sockets.connections.insert(visitor, Connection { socket, pid, process: None });
        self.tell_door(Input::Came { visitor, uid, pid, by: door.name() });
    }

    /// Handles a message from a connection, or the end of its process (then `token` is that of the process).
    fn serve_connection(&mut self, visitor: Visitor, token: u64) {
        let Some(found) = self.sockets.connections.get(&visitor) else { return };
        if !self.door.may_ask(visitor) {
            // The visitor may not send anything now: it has gone or is broken.
            if token != visitor.0 || !peer::is_quiet(&found.socket) {
                self.tell_door(Input::Gone { visitor });
            }
            return;
        }
        let mut bytes = [0; Question::BYTES_MAX + 1];
        match recv(&found.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok((length @ 1.., _)) => {
                self.tell_door(Input::Said { visitor, bytes: &bytes[..length] });
            }
            Ok(_) | Err(_) => self.tell_door(Input::Gone { visitor }),
        }
    }

    fn carry_out(&mut self, action: DoorAction) {
        match action {
            DoorAction::Answer { visitor, reply, memory } => {
                let memory = memory.and_then(|memory| self.sockets.memories.get(&memory));
                // A visitor that does not accept its answer gets none.
                let _ = self.send(visitor, &reply.encode(), memory.map(AsFd::as_fd));
                self.sockets.close(visitor);
            }
            DoorAction::Close { visitor } => self.sockets.close(visitor),
            DoorAction::Admit { visitor, answer } => self.admit(visitor, answer),
            DoorAction::Watch { visitor, answer } => {
                // A visitor that does not accept its answer is watched nevertheless.
                let _ = self.send(visitor, &Reply::Plain(answer).encode(), None);
                self.watch_itself(visitor);
            }
            DoorAction::Ask { visitor, wanted, pid } => {
                self.tell(membership::Input::Asked { request: visitor.0, wanted, pid });
            }
            DoorAction::Found { slot, pid } => self.tell(membership::Input::Found { slot, pid }),
            DoorAction::Said { slot, has_left: true } => {
                self.tell(membership::Input::Left { slot });
            }
            DoorAction::Said { slot, has_left: false } => {
                self.tell(membership::Input::Returned { slot });
                self.effects.push(Effect::Joined(slot.0));
            }
            DoorAction::Start { visitor, wish } => {
                self.effects.push(Effect::StartAsked { request: visitor.0, wish });
            }
            DoorAction::Left { process } => self.end(process),
            DoorAction::Lost { visitor, process } => self.lose(visitor, process),
            DoorAction::Announce => self.unannounced = true,
            DoorAction::Allocate { visitor, bytes } => {
                self.provide(visitor, shared_area::file(bytes).ok());
            }
            DoorAction::Expose { visitor } => {
                let file = self.segment.descriptor().and_then(|file| read_only(file).ok());
                self.provide(visitor, file);
            }
            DoorAction::Release(memory) => drop(self.sockets.memories.remove(&memory)),
            DoorAction::Listen { visitor, name } => {
                let outcome = self.listen(&name);
                self.tell_door(Input::Listening { visitor, outcome });
            }
            DoorAction::Deafen(listener) => self.sockets.deafen(listener),
            DoorAction::Look { visitor, slot: Slot(slot) } => {
                let presence = presence_of(self.segment.presence(slot));
                self.tell_door(Input::Seen { visitor, presence });
            }
        }
    }

    fn send(
        &self,
        visitor: Visitor,
        answer: &[u8],
        passed: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        match self.sockets.connections.get(&visitor) {
            Some(found) => send_answer(&found.socket, answer, passed),
            None => Err(Errno::NOTCONN.into()),
        }
    }

    fn admit(&mut self, visitor: Visitor, answer: Answer) {
        let answer = Reply::Plain(answer).encode();
        let sent = self.send(visitor, &answer, self.segment.descriptor());
        self.watch_process(visitor);
        if sent.is_err() {
            self.tell_door(Input::Gone { visitor });
        }
    }

    /// Watches the process at the other end of a connection, if the kernel allows it. The connection alone does not
    /// suffice: a forked child may keep it open.
    fn watch_process(&mut self, visitor: Visitor) {
        let Some(pidfd) = self.pidfd(visitor) else { return };
        let token = self.sockets.new_token(Watched::Connection(visitor));
        if self.watch(&pidfd, token, EventFlags::IN).is_err() {
            return self.sockets.forget_token(token);
        }
        if let Some(found) = self.sockets.connections.get_mut(&visitor) {
            found.process = Some((token, pidfd));
        }
    }

    /// Watches the process at the other end of a connection instead of the connection, if the kernel allows it. The end
    /// of the process says more than that of the connection, and one descriptor is enough.
    fn watch_itself(&mut self, visitor: Visitor) {
        let Some(pidfd) = self.pidfd(visitor) else { return };
        if self.watch(&pidfd, visitor.0, EventFlags::IN).is_ok()
            && let Some(found) = self.sockets.connections.get_mut(&visitor)
        {
            found.socket = pidfd;
        }
    }

    fn pidfd(&self, visitor: Visitor) -> Option<OwnedFd> {
        let found = self.sockets.connections.get(&visitor)?;
        peer::pidfd(&found.socket, found.pid)
    }

    /// Records that a process that was let in has left.
    fn end(&mut self, process: ProcessId) {
        if self.membership.is_alive(process) {
            let presence = presence_of(self.segment.presence(process.slot.0));
            // Only its parent knows how it ended, and nobody asks there; a goodbye counts as zero.
            let status = match presence {
                LastPresence::Attached | LastPresence::Aborted => SlotRecord::UNKNOWN_STATUS,
                LastPresence::NotAttached | LastPresence::Finalized => 0,
            };
            self.tell(membership::Input::Ended { slot: process.slot, status, presence });
        }
    }

    /// Reports that a process has ended that was watched below another one. After its goodbye that means nothing: the
    /// process that was started goes on, and its end counts.
    fn lose(&mut self, visitor: Visitor, process: ProcessId) {
        let Some(found) = self.sockets.connections.get(&visitor) else { return };
        let presence = presence_of(self.segment.presence(process.slot.0));
        if presence != LastPresence::Finalized && self.membership.is_alive(process) {
            let status = peer::end_status(&found.socket, found.pid);
            self.effects.push(Effect::Lost { process, status });
        }
    }

    fn provide(&mut self, visitor: Visitor, file: Option<OwnedFd>) {
        let memory = file.map(|file| {
            let memory = MemoryNumber(self.sockets.new_number());
            self.sockets.memories.insert(memory, file);
            memory
        });
        self.tell_door(Input::Provided { visitor, memory });
    }

    fn listen(&mut self, name: &Name) -> Listening {
        let socket = match Address::of_public_name(name).listen() {
            Ok(socket) => socket,
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Listening::InUse,
            Err(_) => return Listening::Failed,
        };
        let listener = self.sockets.new_listener();
        if self.watch(&socket, listener.0, EventFlags::IN).is_err() {
            self.sockets.forget_token(listener.0);
            return Listening::Failed;
        }
        self.sockets.names.insert(listener, socket);
        Listening::At(listener)
    }

    /// Lets nobody in until the given time, or opens the sockets again.
    fn shut_doors(&mut self, until: Option<Duration>) {
        let what = if until.is_some() { EventFlags::empty() } else { EventFlags::IN };
        for (token, socket) in self.sockets.listeners() {
            // It is watched already, so this needs no memory that could be lacking.
            let _ = self.rewatch(socket, token, what);
        }
        self.sockets.shut_until = until;
    }
}

/// Opens a file again through another descriptor, read-only.
fn read_only(file: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
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
            let process = ProcessId { segment: host(&segment), slot, incarnation };
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
