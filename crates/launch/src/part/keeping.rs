//! A part that outlives the daemon that drives it: everything by which the next daemon goes on with it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use landeck_host::memory_groups::MemoryGroups;
use landeck_memory::Segment;
use landeck_wire::HostNumber;
use serde::{Deserialize, Serialize};

use super::{HostPart, READERS, SOURCES, Source, own_ranks};
use crate::guardian::{Event, Guardian};
use crate::messages::{PartEvent, WINDOW_BYTES};
use crate::output::Stream;
use crate::spec::JobSpec;

/// The name of a pipe between a part and a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPipe {
    /// Its number in the part. Another pipe may have it once this one is closed.
    number: u32,
    /// The rank or number of the process, and the stream; `None` for the input of a process.
    output: Option<(u32, Stream)>,
}

impl KeptPipe {
    /// Its number in the part.
    pub const fn number(self) -> u32 {
        self.number
    }
}

/// The pipes that were opened or closed since they were kept the last time.
#[derive(Debug, Default)]
pub(super) struct Unkept(Vec<u32>);

impl Unkept {
    /// Takes note of a pipe, by its token.
    pub(super) fn add(&mut self, token: u32) {
        if token >= SOURCES {
            self.0.push(token);
        }
    }
}

impl HostPart {
    /// The job, as this host knows it now.
    pub const fn spec(&self) -> &JobSpec {
        &self.spec
    }

    /// The descriptors by which the next daemon goes on with a part that has a guardian: the segment, and this end of the
    /// conversation with the guardian.
    pub fn kept(&self) -> Option<[BorrowedFd<'_>; 2]> {
        let guardian = self.guardian.as_ref()?;
        Some([self.segment().descriptor()?, guardian.descriptor()])
    }

    /// The pipes that were opened or closed since the last call; a closed one has no descriptor. A pipe stands once in the
    /// list, as it is now.
    pub fn unkept_pipes(&mut self) -> Vec<(KeptPipe, Option<BorrowedFd<'_>>)> {
        let mut tokens = std::mem::take(&mut self.unkept.0);
        tokens.sort_unstable();
        tokens.dedup();
        let part = &*self;
        tokens.into_iter().filter_map(|token| part.pipe(token)).collect()
    }

    fn pipe(&self, token: u32) -> Option<(KeptPipe, Option<BorrowedFd<'_>>)> {
        if token >= READERS {
            let kept = KeptPipe { number: token, output: None };
            return Some((kept, self.readers.pipe((token - READERS) as usize)));
        }
        let source = self.sources.get(token.checked_sub(SOURCES)? as usize)?;
        let kept = KeptPipe { number: token, output: Some((source.rank, source.stream)) };
        Some((kept, source.pipe.as_ref().map(AsFd::as_fd)))
    }

    /// The part that another daemon has driven, from the job, the descriptors of [`HostPart::kept`] and its pipes. The guardian
    /// tells again what has happened; everything else that was under way is lost.
    ///
    /// # Errors
    /// The kernel's error; these do not belong to one part.
    pub fn resume(
        spec: JobSpec,
        host: HostNumber,
        [segment, conversation]: [OwnedFd; 2],
        pipes: Vec<(KeptPipe, Option<OwnedFd>)>,
    ) -> io::Result<HostPart> {
        let (place, ranks) = own_ranks(&spec, host).map_err(io::Error::other)?;
        let segment = Segment::attach(segment).map_err(io::Error::other)?;
        let guardian = Guardian::resumed(conversation, segment.clone());
        let guardian = guardian.map_err(io::Error::other)?;
        let groups = MemoryGroups::of_this_process();
        let mut part = HostPart {
            guardian: Some(guardian),
            // The block that the processes were getting may have come in part.
            events: VecDeque::from([PartEvent::InputTaken]),
            ..HostPart::of_segment(spec, (place, ranks), segment, groups)
        };
        pipes.into_iter().for_each(|(kept, pipe)| part.take_pipe(kept, pipe));
        Ok(part)
    }

    /// Tells everything again that has happened, for the question with this number: the daemon that conducts the job was killed,
    /// and events that were on their way there are lost.
    pub fn tell_again(&mut self, asked: u64) {
        self.asked_again = asked;
        self.credit = [WINDOW_BYTES; 2];
        self.streams_watched = None;
        if !self.has_block {
            self.events.push_back(PartEvent::InputTaken);
        }
        if self.said_unread {
            self.events.push_back(PartEvent::InputUnread);
        }
        let closed = self.sources.iter().filter(|source| source.pipe.is_none());
        let ended = closed.map(|it| PartEvent::OutputEnded { rank: it.rank, stream: it.stream });
        self.events.extend(ended);
        (self.all_ended, self.is_over) = (false, false);
        let sent = self.guardian.as_mut().map(Guardian::ask_again);
        if let Some(Err(error)) = sent {
            self.events.push_back(PartEvent::Said(format!("landeck: {error}")));
        }
        // A guardian that has ended tells nothing.
        if self.guardian.as_ref().is_none_or(Guardian::is_gone) {
            self.take_guardian_event(Event::GuardianGone);
            self.events.push_back(PartEvent::Stands { asked });
        }
    }

    /// Takes a pipe of a part that is resumed. Those of outputs come in the order of their numbers.
    fn take_pipe(&mut self, kept: KeptPipe, pipe: Option<OwnedFd>) {
        let Some((rank, stream)) = kept.output else {
            return self.readers.take_pipe((kept.number.saturating_sub(READERS)) as usize, pipe);
        };
        if pipe.is_none() {
            self.events.push_back(PartEvent::OutputEnded { rank, stream });
        }
        self.first_sources.entry(rank).or_insert(self.sources.len());
        self.sources.push(Source { rank, stream, pipe });
    }
}
