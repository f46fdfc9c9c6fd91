//! The names that processes of the job publish, each with a socket of its own.

use std::io;
use std::os::fd::OwnedFd;

use landeck_wire::ProcessId;
use rustix::event::epoll::EventFlags;

use super::{Agent, Watched};
use crate::socket::{Answer, NAMES_MAX, PublicName, Published, Verdict};

/// A published name.
pub(super) struct Name {
    name: PublicName,
    pub(super) published: Published,
    pub(super) door: OwnedFd,
}

impl Agent {
    /// Takes back the names of which this holds.
    pub(super) fn drop_names(&mut self, is_meant: impl Fn(&Published) -> bool) {
        let doomed: Vec<u64> = self
            .names
            .iter()
            .filter(|(_, name)| is_meant(&name.published))
            .map(|(&token, _)| token)
            .collect();
        for token in doomed {
            self.names.remove(&token);
            self.watched.remove(&token);
        }
    }

    pub(super) fn publish(&mut self, process: ProcessId, context: u32, name: PublicName) -> Answer {
        let bare = |verdict| Answer::bare(process.host, verdict);
        if !self.membership.is_alive(process) {
            return bare(Verdict::NotAlive);
        }
        if let Some(present) = self.names.values().find(|present| present.name == name) {
            return Answer { published: present.published, ..bare(Verdict::InUse) };
        }
        if self.names.len() >= NAMES_MAX {
            return bare(Verdict::TooMany);
        }
        let door = match name.address().listen() {
            Ok(door) => door,
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return bare(Verdict::InUse),
            Err(_) => return bare(Verdict::TooMany),
        };
        let token = self.new_token(Watched::NameDoor);
        if self.watch(&door, token, EventFlags::IN).is_err() {
            self.watched.remove(&token);
            return bare(Verdict::TooMany);
        }
        let pid = self.membership.record(process.slot).pid;
        let published = Published { process, pid, context };
        self.names.insert(token, Name { name, published, door });
        Answer { published, ..bare(Verdict::Granted) }
    }

    pub(super) fn unpublish(&mut self, process: ProcessId, name: &PublicName) -> Verdict {
        let found = self.names.iter().find(|(_, present)| present.name == *name);
        match found.map(|(&token, present)| (token, present.published.process)) {
            Some((token, owner)) if owner == process => {
                self.names.remove(&token);
                self.watched.remove(&token);
                Verdict::Granted
            }
            Some(_) => Verdict::InUse,
            None => Verdict::NotAlive,
        }
    }
}
