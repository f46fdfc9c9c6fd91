//! What a client asks of a group's server: one message there, where it pays one back.
//!
//! The server has accepted what is asked for, as the client would have done itself; what came of it
//! stands in the client's word of the log ([`landeck_objects::group_log::Progress`]). The messages say
//! when to look. So when the server is gone, the client folds the log to its end: what was accepted
//! is done, and the rest is asked of the next server with the same number. Who finds the seat empty
//! and wants something takes it. Who can wait no longer for a server that has begun takes the seat away
//! from it: then what it asked for was accepted before that, or never is.

use std::sync::atomic::Ordering;

use landeck_groups::service::{Ask, Asking, EntryWord, MemberRecord, Phase, Server};
use landeck_kernel::{Area, Peer, Started};
use landeck_memory::{Buffer, Bytes, Operation, SlotState, WaitRecord};
use landeck_objects::group_log::{Progress, WaitsFor};

use super::answer::{Answer, nearest};
use super::live::{Live, Mirror, Waits, nobody};
use super::server_client::{ASK, BROADCAST, HELD_BROADCAST, ServerClient};
use super::serving::serve;
use crate::error::{Error, GroupError, Result};
use landeck_engine::{Engine, OperationId};

/// When a request is over for who asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Accepted,
    Replied,
}

/// A request that was posted.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    number: u32,
    epoch: u64,
}

/// A message to the server.
struct Letter<'a> {
    kind: u32,
    head: [u64; 3],
    data: Bytes<'a>,
}

/// Says that a thread of this process asks, for as long as it does.
struct Turn<'a>(&'a Live, &'a ServerClient);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.1.is_asking.store(false, Ordering::Release);
        self.0.log.wake_own();
    }
}

impl Live {
    /// Asks for a membership of a mailbox of this process; its record, or its number if it was a
    /// member.
    pub(crate) fn ask_to_join(
        &self,
        desk: &ServerClient,
        context: u32,
        place: u64,
    ) -> Result<std::result::Result<MemberRecord, Answer>> {
        let what = Ask::Join { context, place };
        match self.ask(desk, what, Until::Replied, None)?.1 {
            Answer::Joined(id) => self.with(|mirror| {
                let mut members = mirror.state.members().iter();
                let is_it = |it: &&MemberRecord| {
                    (it.id, it.context, it.slot) == (id, context, self.shared.slot)
                };
                members.find(is_it).copied().map(Ok).ok_or_else(|| self.no_member(id))
            }),
            other => Ok(Err(other)),
        }
    }

    /// Asks to leave, with a copy of the broadcasts up to number `kept`.
    pub(super) fn ask_to_leave(
        &self,
        desk: &ServerClient,
        seat: landeck_groups::service::Seat,
        kept: u64,
    ) -> Result<Answer> {
        Ok(self.ask(desk, Ask::Leave { seat, kept }, Until::Replied, None)?.1)
    }

    /// Says that a member has come; the round, and by what to know that it is over.
    pub(crate) fn ask_to_sync(
        &self,
        desk: &ServerClient,
        seat: landeck_groups::service::Seat,
        deadline_ns: Option<u64>,
    ) -> Result<(Answer, u64, Asked)> {
        let (asked, answer) = self.ask(desk, Ask::Sync(seat), Until::Accepted, deadline_ns)?;
        let Answer::Come(low) = answer else { return Ok((answer, 0, asked)) };
        let round = self.with(|mirror| Ok(nearest(mirror.state.rounds(), low)))?;
        Ok((answer, round, asked))
    }

    /// Asks for the group's end; it is over when [`Live::is_told`].
    pub(crate) fn ask_to_destroy(
        &self,
        desk: &ServerClient,
        deadline_ns: Option<u64>,
    ) -> Result<(Answer, Asked)> {
        let (asked, answer) = self.ask(desk, Ask::Destroy, Until::Accepted, deadline_ns)?;
        Ok((answer, asked))
    }

    /// Asks for a broadcast.
    pub(super) fn ask_to_broadcast(
        &self,
        desk: &ServerClient,
        tag: u32,
        words: [u64; 3],
        data: Bytes<'_>,
        is_held: bool,
        deadline_ns: Option<u64>,
    ) -> Result<Answer> {
        let kind = if is_held { HELD_BROADCAST } else { BROADCAST };
        let letter = Letter { kind, head: [words[0], words[1], u64::from(tag)], data };
        let (_, answer) =
            self.have_done(desk, |_| letter.copied(), Until::Accepted, deadline_ns)?;
        if let Answer::Accepted(low) = answer {
            self.with(|mirror| {
                let number = nearest(mirror.state.broadcasts(), low);
                Self::note_own(mirror, number);
                Ok(())
            })?;
        }
        Ok(answer)
    }

    /// Whether the server has replied to a request, or is gone, so that nobody does.
    pub(super) fn is_told(
        &self,
        desk: &ServerClient,
        kernel: &mut Engine,
        asked: &Asked,
    ) -> Result<bool> {
        desk.hear(kernel);
        if desk.has_heard(asked.number) {
            return Ok(true);
        }
        self.with(|mirror| Ok(!is_served_in(mirror, asked.epoch)))
    }

    /// Waits until `ready` finds something, which is called when the server may have replied.
    pub(crate) fn wait_for_reply<T>(
        &self,
        asked: &Asked,
        desk: &ServerClient,
        deadline_ns: Option<u64>,
        mut ready: impl FnMut(&mut Mirror, bool) -> Result<Option<T>>,
    ) -> Result<T> {
        let _waits = Waits::begin(&self.log, WaitsFor::Others);
        let peer = self.with(|mirror| Ok(mirror.state.server().map(|server| server.who.slot)))?;
        let record = WaitRecord { operation: Operation::Group, peer, ..WaitRecord::default() };
        let found = self.shared.wait_until(&record, deadline_ns, |kernel| {
            kernel.refresh();
            let told = match self.is_told(desk, kernel, asked) {
                Ok(told) => told,
                Err(error) => return Some(Err(error)),
            };
            self.with(|mirror| ready(mirror, told)).transpose()
        });
        found.map_err(|error| Error::of_wait(&self.shared, error, None, |_| None))?
    }

    fn ask(
        &self,
        desk: &ServerClient,
        what: Ask,
        until: Until,
        deadline_ns: Option<u64>,
    ) -> Result<(Asked, Answer)> {
        let slot = self.shared.slot;
        let incarnation = self.shared.segment.slot_record(slot).incarnation;
        let letter = |number| Letter {
            kind: ASK,
            head: Asking { slot, incarnation, number, what }.to_words(),
            data: Bytes::EMPTY,
        };
        self.have_done(desk, letter, until, deadline_ns)
    }

    /// Has the server do what the letter says, or the next one if it is gone before it has.
    fn have_done<'a>(
        &self,
        desk: &ServerClient,
        letter: impl Fn(u32) -> Letter<'a>,
        until: Until,
        deadline_ns: Option<u64>,
    ) -> Result<(Asked, Answer)> {
        let _turn = self.turn_to_ask(desk, deadline_ns)?;
        let mut server = self.seated(deadline_ns)?;
        let number = self.log.ask(server.epoch);
        loop {
            let asked = Asked { number, epoch: server.epoch };
            let done = self.post(desk, &server, &letter(number), number, deadline_ns);
            let done = done.and_then(|()| self.await_answer(desk, &asked, until, deadline_ns));
            match done {
                Ok(Some(bits)) => return Ok((asked, Answer::from_bits(bits))),
                Ok(None) => {
                    server = self.seated(deadline_ns).inspect_err(|_| {
                        self.log.withdraw(number, true);
                    })?;
                    self.log.ask_again(number, server.epoch);
                }
                Err(error) => return self.give_up(asked, error),
            }
        }
    }

    /// After an error: what was asked for is taken back. A server that has begun may be stopped there, so
    /// it loses the seat.
    fn give_up(&self, asked: Asked, error: Error) -> Result<(Asked, Answer)> {
        if self.log.withdraw(asked.number, false) {
            return Err(error);
        }
        if !matches!(self.log.progress(asked.number), Progress::Answered(_)) {
            let entry = EntryWord::Vacate { epoch: EntryWord::low_bits(asked.epoch) };
            self.with(|mirror| self.append(mirror, entry, |_| Ok(())))?;
        }
        match self.log.progress(asked.number) {
            Progress::Answered(bits) => Ok((asked, Answer::from_bits(bits))),
            _ => {
                self.log.withdraw(asked.number, true);
                Err(error)
            }
        }
    }

    /// Whose turn it is among the threads of this process.
    fn turn_to_ask<'a>(
        &'a self,
        desk: &'a ServerClient,
        deadline_ns: Option<u64>,
    ) -> Result<Turn<'a>> {
        self.wait(deadline_ns, nobody, |_| {
            let was = desk.is_asking.swap(true, Ordering::AcqRel);
            Ok((!was).then_some(()))
        })?;
        Ok(Turn(self, desk))
    }

    /// Who serves the group; this process does from now on where nobody does any more.
    pub(super) fn seated(&self, deadline_ns: Option<u64>) -> Result<Server> {
        self.wait(deadline_ns, nobody, |mirror| {
            if let Some(server) = mirror.state.server() {
                return Ok(Some(server));
            }
            if mirror.state.phase() == Phase::Ended {
                return self.check_open(&mirror.state).map(|()| None);
            }
            if mirror.state.epochs() > 0 || !self.is_first_server_there() {
                self.take_seat()?;
            }
            Ok(None)
        })
    }

    /// Has a thread of this process serve the group, before long.
    pub(super) fn take_seat(&self) -> Result<()> {
        let served = self.employment.serve(&self.shared, &self.name, self.object.number(), serve);
        served.map_err(|why| self.no_server(why))
    }

    /// Has the process that is to serve it first do so.
    pub(crate) fn serve_first(&self) -> Result<()> {
        let is_new = self
            .with(|mirror| Ok(mirror.state.epochs() == 0 && mirror.state.phase() == Phase::Open))?;
        if is_new && self.options.first_server() == Some(self.shared.slot) {
            self.take_seat()?;
            self.seated(None)?;
        }
        Ok(())
    }

    fn is_first_server_there(&self) -> bool {
        let slot = self.options.first_server();
        let slots = self.shared.segment.plan().slots();
        slot.is_some_and(|slot| {
            slot < slots && self.shared.segment.slot_record(slot).state == SlotState::Alive
        })
    }

    /// Posts a letter. Whether it comes, the log says.
    fn post(
        &self,
        desk: &ServerClient,
        server: &Server,
        letter: &Letter<'_>,
        number: u32,
        deadline_ns: Option<u64>,
    ) -> Result<()> {
        let head = [letter.head[0], letter.head[1], letter.head[2], u64::from(desk.context)];
        let tag = letter.kind << Asking::NUMBER_BITS | number;
        // SAFETY: the request is complete, or abandoned, before this function returns.
        let head = Area::contiguous(unsafe { Buffer::of(&head) });
        // SAFETY: as above.
        let data = unsafe { Buffer::new(letter.data.start(), letter.data.len()) };
        let area = Area::joined([head, Area::contiguous(data)]);
        let to = Peer(server.who.slot);
        let started = self.shared.kernel.enter()?.send(to, server.who.context, tag, area);
        // A server that is gone is found in the log.
        let Ok(Started::Pending(id)) = started else { return Ok(()) };
        let epoch = server.epoch;
        let record =
            WaitRecord { operation: Operation::Group, peer: Some(to.0), ..WaitRecord::default() };
        let sent = self.shared.wait_until(&record, deadline_ns, |kernel| {
            kernel.refresh();
            let is_over = kernel.take(OperationId::from(id)).is_some();
            if is_over {
                return Some(Ok(true));
            }
            self.with(|mirror| Ok((!is_served_in(mirror, epoch)).then_some(false))).transpose()
        });
        if !matches!(sent, Ok(Ok(true))) {
            self.shared.kernel.enter()?.abandon(id.into());
        }
        sent.map_err(|error| Error::of_wait(&self.shared, error, None, |_| None))?.map(drop)
    }

    /// What came of a request; none when its server is gone and did not do it.
    fn await_answer(
        &self,
        desk: &ServerClient,
        asked: &Asked,
        until: Until,
        deadline_ns: Option<u64>,
    ) -> Result<Option<u32>> {
        self.wait_for_reply(asked, desk, deadline_ns, |mirror, told| {
            let is_gone = !is_served_in(mirror, asked.epoch);
            Ok(match self.log.progress(asked.number) {
                Progress::Answered(bits) if told || is_gone || until == Until::Accepted => {
                    Some(Some(bits))
                }
                // What the server refuses it says without a reply.
                Progress::Answered(bits) if Answer::from_bits(bits) == Answer::NotNow => {
                    Some(Some(bits))
                }
                Progress::Answered(_) => None,
                _ if is_gone => Some(None),
                _ => None,
            })
        })
    }
}

impl Letter<'_> {
    fn copied(&self) -> Self {
        Self { kind: self.kind, head: self.head, data: self.data }
    }
}

fn is_served_in(mirror: &Mirror, epoch: u64) -> bool {
    mirror.state.server().is_some_and(|server| server.epoch == epoch)
}

impl Live {
    /// That nobody can serve the group.
    pub(super) fn no_server(&self, why: String) -> Error {
        GroupError::NoServer { group: self.name.clone(), why }.into()
    }
}
