//! The processes of this host that want to join a job of the machine as guests, where this host may have no part of that job.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use landeck_joining::address::Address;
use landeck_joining::peer;
use landeck_protocols::door::{PartAnswer, Question, Reply};
use landeck_wire::{ControlMessage, JobId, SegmentId};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::context::Context;
use crate::machine::listening::Listening;

/// The visitors that may wait at the same time.
const VISITORS_MAX: usize = 256;

/// The visitors of a daemon, one connection for each.
#[derive(Debug)]
pub(crate) struct Visitors {
    listening: Listening,
    visitors: BTreeMap<u64, Visitor>,
    asked: Vec<(u64, String)>,
}

#[derive(Debug)]
struct Visitor {
    socket: OwnedFd,
    has_asked: bool,
    /// The job that it means, once that is known.
    job: Option<JobId>,
}

impl Visitors {
    /// Listens for visitors. Their descriptors get the tokens from this one on.
    ///
    /// # Errors
    /// The kernel's error: another daemon may listen there.
    pub(crate) fn listen(address: &Address, tokens: u64) -> io::Result<Self> {
        let listening = Listening::new(address.listen()?, tokens);
        Ok(Self { listening, visitors: BTreeMap::new(), asked: Vec::new() })
    }

    /// The first of their tokens.
    pub(crate) const fn tokens(&self) -> u64 {
        self.listening.tokens()
    }

    /// Watches the socket at which visitors come.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn watch(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.listening.watch(context)
    }

    /// Goes on with a descriptor that is ready.
    pub(crate) fn ready(&mut self, context: &mut Context<'_>, token: u64) {
        let Some(number) = self.listening.number(token) else { return self.accept(context) };
        let Some(visitor) = self.visitors.get_mut(&number) else { return };
        let mut bytes = [0; Question::BYTES_MAX + 1];
        let heard = recv(&visitor.socket, &mut bytes[..], RecvFlags::DONTWAIT);
        let question = match heard {
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok((_, length)) => bytes.get(..length).and_then(|bytes| Question::decode(bytes).ok()),
            Err(_) => None,
        };
        match question {
            Some(Question::Part { job }) if !visitor.has_asked => {
                visitor.has_asked = true;
                self.asked.push((number, job));
            }
            // It has gone, or sends anything else. Its socket is closed with it, which ends the watch.
            _ => drop(self.visitors.remove(&number)),
        }
    }

    fn accept(&mut self, context: &mut Context<'_>) {
        let Ok(socket) = self.listening.accept() else { return };
        let own = rustix::process::geteuid().as_raw();
        let is_own = peer::credentials(&socket).is_ok_and(|(user, _)| user == own);
        if !is_own || self.visitors.len() >= VISITORS_MAX {
            return;
        }
        let number = self.listening.next();
        if context.watch(socket.as_fd(), self.listening.token(number), EventFlags::IN).is_ok() {
            self.visitors.insert(number, Visitor { socket, has_asked: false, job: None });
        }
    }

    /// Takes the names of jobs that visitors have asked for, each with its visitor.
    pub(crate) fn take_asked(&mut self) -> Vec<(u64, String)> {
        std::mem::take(&mut self.asked)
    }

    /// Notes the job that a visitor means.
    pub(crate) fn note_job(&mut self, visitor: u64, job: JobId) {
        if let Some(visitor) = self.visitors.get_mut(&visitor) {
            visitor.job = Some(job);
        }
    }

    /// Whether some of them mean a job.
    pub(crate) fn want(&self, job: JobId) -> bool {
        self.visitors.values().any(|visitor| visitor.job == Some(job))
    }

    /// Answers a visitor, which may have gone.
    pub(crate) fn answer(&mut self, visitor: u64, answer: PartAnswer) {
        if let Some(Visitor { socket, .. }) = self.visitors.remove(&visitor) {
            // The buffer of its socket has room: this is all that it is ever sent.
            let _ = send(socket, &Reply::Part(answer.cut()).encode(), SendFlags::NOSIGNAL);
        }
    }

    /// Answers all visitors that mean a job.
    pub(crate) fn answer_all(&mut self, job: JobId, answer: &PartAnswer) {
        let its = self.visitors.iter().filter(|(_, visitor)| visitor.job == Some(job));
        let its: Vec<u64> = its.map(|(number, _)| *number).collect();
        its.into_iter().for_each(|visitor| self.answer(visitor, answer.clone()));
    }

    /// Answers the visitors whose job has a part here. `segment_of` knows the segment of a part whose guardian is there.
    pub(crate) fn answer_present(&mut self, segment_of: impl Fn(JobId) -> Option<SegmentId>) {
        let jobs: Vec<JobId> = self.visitors.values().filter_map(|visitor| visitor.job).collect();
        for job in jobs {
            if let Some(segment) = segment_of(job) {
                self.answer_all(job, &PartAnswer::There(segment));
            }
        }
    }
}
