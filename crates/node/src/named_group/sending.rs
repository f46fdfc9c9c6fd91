//! Sending to a group: waiting for room, and what is said meanwhile.

use std::time::Duration;

use landeck_groups::service::{EntryWord, Outcome, Phase, Seat};
use landeck_memory::Bytes;
use landeck_memory::system::now_ns;
use landeck_objects::group_log::Claim;

use super::answer::Answer;
use super::live::{Live, Mirror};
use super::options::WhenFull;
use super::server_client::ServerClient;
use crate::error::{Error, ErrorKind, GroupError, Result};
use crate::message::Message;
use landeck_engine::deadline_ns;

/// Messages up to this length are copied while nobody else of the process uses the group.
const COPIED_INSIDE: u64 = 64 << 10;

/// Messages longer than this are not copied out for their sender, which has them.
pub(super) const SHARED_FROM: u64 = 4 << 10;

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// Somebody who is no member.
    Stranger,
    /// A member, which gets the message as well or not.
    Member { seat: Seat, gets_it: bool },
}

/// How long who does not wait gives the server to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// How long to wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Patient,
    Until { deadline_ns: u64, time: Duration },
    AtOnce,
}

impl Manner {
    pub(crate) fn within(time: Duration) -> Self {
        let until = |deadline_ns| Self::Until { deadline_ns, time };
        deadline_ns(Some(time)).map_or(Self::Patient, until)
    }

    fn deadline_ns(self) -> Option<u64> {
        match self {
            Self::Patient => None,
            Self::Until { deadline_ns, .. } => Some(deadline_ns),
            Self::AtOnce => Some(0),
        }
    }

    /// What a call says whose time is over.
    fn too_late(self) -> Error {
        match self {
            Self::Until { time, .. } => ErrorKind::TimedOut(time).into(),
            Self::Patient | Self::AtOnce => ErrorKind::WouldBlock.into(),
        }
    }
}

/// Whether a broadcast has its memory and room.
enum Attempt<'a> {
    Ready(Claim<'a>),
    Full,
}

/// What became of a broadcast that does not wait.
enum Sent {
    Accepted,
    NotStarted,
    NoRoom,
}

/// A broadcast that is held, for as long as others are to know.
struct Holding<'a> {
    live: &'a Live,
    ticket: u32,
}

impl Live {
    pub(crate) fn broadcast(
        &self,
        message: &Message,
        sender: Sender,
        manner: Manner,
    ) -> Result<()> {
        let mut scratch = Vec::new();
        let (tag, bytes) = message.outgoing(&mut scratch)?;
        let length = bytes.len() as u64;
        self.check_length(length)?;
        loop {
            let sent = match (&self.desk, length > COPIED_INSIDE) {
                (Some(desk), _) => self.send_asking(desk, tag, bytes, sender, manner)?,
                (None, true) => self.send_long(tag, bytes, sender)?,
                (None, false) if length > SHARED_FROM => {
                    self.send_shared(message, tag, bytes, sender)?
                }
                (None, false) => {
                    self.with_lines(|mirror| self.send_short(mirror, tag, bytes, sender))?
                }
            };
            match sent {
                Sent::Accepted => return Ok(()),
                Sent::NotStarted => self.wait_for_start(manner)?,
                Sent::NoRoom => return self.broadcast_held(tag, bytes, sender, manner),
            }
        }
    }

    /// A short message whose values are kept, where its sender retrieves it as well.
    #[inline(never)]
    fn send_shared(
        &self,
        message: &Message,
        tag: u32,
        bytes: Bytes<'_>,
        sender: Sender,
    ) -> Result<Sent> {
        self.with_lines(|mirror| {
            let sent = self.send_short(mirror, tag, bytes, sender)?;
            let gets_it = matches!(sender, Sender::Member { gets_it: true, .. });
            if gets_it
                && matches!(sent, Sent::Accepted)
                && let Some(values) = message.shared_values()
            {
                Self::keep_shared(mirror, values);
            }
            Ok(sent)
        })
    }

    /// A short message, if there is room: all of it while nobody else of this process uses the group.
    fn send_short(
        &self,
        mirror: &mut Mirror,
        tag: u32,
        bytes: Bytes<'_>,
        sender: Sender,
    ) -> Result<Sent> {
        self.may_send(mirror, sender)?;
        if !mirror.state.has_started() {
            return Ok(Sent::NotStarted);
        }
        if !self.has_room(mirror) {
            return Ok(Sent::NoRoom);
        }
        let claim = self.claim_for_message(mirror, bytes.len() as u64)?;
        let Some(claim) = claim else { return Ok(Sent::NoRoom) };
        claim.fill(tag, self.words_of(sender), bytes);
        let entry = EntryWord::Broadcast { cell: claim.cell(), was_held: false, by: 0 };
        if let Some((_, Outcome::Broadcast(number))) = self.accept(mirror, entry, Some(&claim))? {
            claim.end();
            Self::note_own(mirror, number);
            return Ok(Sent::Accepted);
        }
        // Somebody was faster.
        let left = self.append_message(mirror, claim, sender, None)?;
        Ok(if left.is_none() { Sent::Accepted } else { Sent::NoRoom })
    }

    /// One that the server is asked for, of any length.
    fn send_asking(
        &self,
        desk: &ServerClient,
        tag: u32,
        bytes: Bytes<'_>,
        sender: Sender,
        manner: Manner,
    ) -> Result<Sent> {
        if !self.may_begin(sender)? {
            return Ok(Sent::NotStarted);
        }
        let deadline_ns = match manner {
            Manner::AtOnce => deadline_ns(Some(ANSWER_WITHIN)),
            _ => manner.deadline_ns(),
        };
        let is_sent = self.send_by_server(desk, tag, bytes, sender, None, deadline_ns);
        match is_sent {
            Ok(true) => Ok(Sent::Accepted),
            Ok(false) => Ok(Sent::NoRoom),
            Err(Error { kind: ErrorKind::TimedOut(_), .. }) => Err(manner.too_late()),
            Err(error) => Err(error),
        }
    }

    /// Whether the group has started, for who may send.
    fn may_begin(&self, sender: Sender) -> Result<bool> {
        self.with(|mirror| self.may_send(mirror, sender).map(|()| mirror.state.has_started()))
    }

    /// A long one, which is copied while others of this process may use the group.
    fn send_long(&self, tag: u32, bytes: Bytes<'_>, sender: Sender) -> Result<Sent> {
        if !self.may_begin(sender)? {
            return Ok(Sent::NotStarted);
        }
        let Attempt::Ready(claim) = self.prepare(bytes.len() as u64, sender)? else {
            return Ok(Sent::NoRoom);
        };
        let left = self.send(claim, tag, bytes, sender, None)?;
        Ok(if left.is_none() { Sent::Accepted } else { Sent::NoRoom })
    }

    /// Asks the server for a broadcast; false when there is no room.
    fn send_by_server(
        &self,
        desk: &ServerClient,
        tag: u32,
        bytes: Bytes<'_>,
        sender: Sender,
        ticket: Option<u32>,
        deadline_ns: Option<u64>,
    ) -> Result<bool> {
        let has_room = self.with(|mirror| {
            self.may_send_now(mirror, sender, ticket)?;
            Ok(self.has_room(mirror))
        })?;
        if !has_room {
            return Ok(false);
        }
        let words = self.words_of(sender);
        let is_held = ticket.is_some();
        match self.ask_to_broadcast(desk, tag, words, bytes, is_held, deadline_ns)? {
            Answer::Accepted(_) => Ok(true),
            Answer::NotNow => Ok(false),
            _ => Err(self
                .with(|mirror| self.check_goes_on(&mirror.state))
                .err()
                .unwrap_or(ErrorKind::WouldBlock.into())),
        }
    }

    fn wait_for_start(&self, manner: Manner) -> Result<()> {
        match manner {
            Manner::AtOnce => Err(self.minimum_not_reached()?),
            _ => self.wait_started(manner.deadline_ns()),
        }
    }

    fn check_length(&self, bytes: u64) -> Result<()> {
        let most = self.log.shape().bytes().max(landeck_objects::group_log::CELL_BYTES as u64);
        if bytes > most {
            return Err(GroupError::TooLong { group: self.name.clone(), bytes, most }.into());
        }
        Ok(())
    }

    fn may_send(&self, mirror: &Mirror, sender: Sender) -> Result<()> {
        self.check_open(&mirror.state)?;
        match sender {
            Sender::Member { seat, .. } if mirror.state.member(seat).is_none() => {
                Err(self.no_member(seat.id))
            }
            _ => Ok(()),
        }
    }

    /// Memory and room, if both are there.
    fn prepare(&self, bytes: u64, sender: Sender) -> Result<Attempt<'_>> {
        self.with(|mirror| {
            self.may_send(mirror, sender)?;
            if !self.has_room(mirror) {
                return Ok(Attempt::Full);
            }
            Ok(self.claim(mirror, bytes)?.map_or(Attempt::Full, Attempt::Ready))
        })
    }

    /// Has a message accepted; gives its memory back when there is no room by now.
    fn send<'a>(
        &'a self,
        claim: Claim<'a>,
        tag: u32,
        bytes: Bytes<'_>,
        sender: Sender,
        ticket: Option<u32>,
    ) -> Result<Option<Claim<'a>>> {
        let words = self.words_of(sender);
        let is_long = bytes.len() as u64 > COPIED_INSIDE;
        if is_long {
            claim.fill(tag, words, bytes);
        }
        self.with(|mirror| {
            if !is_long {
                claim.fill(tag, words, bytes);
            }
            self.append_message(mirror, claim, sender, ticket)
        })
    }

    /// Has a message accepted whose claim is filled; gives that back when there is no room by now.
    fn append_message<'a>(
        &'a self,
        mirror: &mut Mirror,
        claim: Claim<'a>,
        sender: Sender,
        ticket: Option<u32>,
    ) -> Result<Option<Claim<'a>>> {
        let was_held = ticket.is_some();
        let entry = EntryWord::Broadcast { cell: claim.cell(), was_held, by: 0 };
        let mut is_full = false;
        let appended = self.append_with(mirror, entry, Some(&claim), |mirror| {
            is_full = !self.has_room(mirror);
            match is_full {
                true => Err(ErrorKind::WouldBlock.into()),
                false => self.may_send_now(mirror, sender, ticket),
            }
        });
        match appended {
            Err(_) if is_full => Ok(Some(claim)),
            Err(error) => Err(error),
            Ok((_, Outcome::Broadcast(number))) => {
                claim.end();
                Self::note_own(mirror, number);
                Ok(None)
            }
            Ok(_) => {
                Err(self.check_goes_on(&mirror.state).err().unwrap_or(ErrorKind::WouldBlock.into()))
            }
        }
    }

    /// Who was held may finish while the group is being destroyed.
    fn may_send_now(&self, mirror: &Mirror, sender: Sender, ticket: Option<u32>) -> Result<()> {
        let is_held = |ticket| mirror.state.held().iter().any(|held| held.ticket == ticket);
        match mirror.state.phase() {
            Phase::Destroying if ticket.is_some_and(is_held) => Ok(()),
            _ if ticket.is_some() => self.check_goes_on(&mirror.state),
            _ => self.may_send(mirror, sender),
        }
    }

    /// Sender and slot; who gets it not.
    fn words_of(&self, sender: Sender) -> [u64; 3] {
        let (slot, incarnation) = (self.shared.slot, self.log.incarnation());
        let who = match sender {
            Sender::Stranger => 0,
            Sender::Member { seat, gets_it } => {
                u64::from(seat.id + 1) | u64::from(if gets_it { 0 } else { seat.id + 1 }) << 32
            }
        };
        let process = u64::from(slot) | u64::from(incarnation) << 32;
        [process, who, 0]
    }

    /// The same for a message without room: as the group was made to have it.
    #[cold]
    fn broadcast_held(
        &self,
        tag: u32,
        bytes: Bytes<'_>,
        sender: Sender,
        manner: Manner,
    ) -> Result<()> {
        if manner == Manner::AtOnce || self.options.full() == WhenFull::Refuse {
            return Err(self.full()?);
        }
        let Some(holding) = self.hold()? else { return Err(self.full()?) };
        let ticket = holding.ticket;
        loop {
            let claim = self.wait_for_room(bytes.len() as u64, sender, ticket, manner)?;
            let is_sent = match &self.desk {
                None => self.send(claim, tag, bytes, sender, Some(ticket))?.is_none(),
                Some(desk) => {
                    // The memory is the server's to find; that there is some was to be seen.
                    drop(claim);
                    let deadline_ns = manner.deadline_ns();
                    match self.send_by_server(desk, tag, bytes, sender, Some(ticket), deadline_ns) {
                        Err(Error { kind: ErrorKind::TimedOut(_), .. }) => {
                            return Err(manner.too_late());
                        }
                        is_sent => is_sent?,
                    }
                }
            };
            if is_sent {
                return Ok(());
            }
        }
    }

    fn wait_for_room(
        &self,
        bytes: u64,
        sender: Sender,
        ticket: u32,
        manner: Manner,
    ) -> Result<Claim<'_>> {
        loop {
            let (deadline_ns, evicts) = self.until(manner);
            let slowest = |mirror: &Mirror| self.slowest(mirror).0.first().map(|it| it.slot);
            let waited = self.wait(deadline_ns, slowest, |mirror| {
                self.may_send_now(mirror, sender, Some(ticket))?;
                let claim = match self.has_room(mirror) {
                    true => self.claim(mirror, bytes)?,
                    false => None,
                };
                if claim.is_none() {
                    self.found_no_room(mirror);
                    if self.is_in_its_own_way(mirror) {
                        return Err(self.full_now(mirror));
                    }
                }
                Ok(claim)
            });
            match waited {
                Err(Error { kind: ErrorKind::TimedOut(_), .. }) if evicts => {
                    self.evict_slowest()?;
                }
                Err(Error { kind: ErrorKind::TimedOut(_), .. }) => return Err(self.full()?),
                other => return other,
            }
        }
    }

    /// Until when to wait for room, and whether somebody is put out then.
    fn until(&self, manner: Manner) -> (Option<u64>, bool) {
        let own_ns = manner.deadline_ns();
        let WhenFull::Evict(time) = self.options.full() else { return (own_ns, false) };
        let evict_ns = now_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        match own_ns {
            Some(own_ns) if own_ns <= evict_ns => (Some(own_ns), false),
            _ => (Some(evict_ns), true),
        }
    }

    fn evict_slowest(&self) -> Result<()> {
        self.with(|mirror| {
            let (slow, _) = self.slowest(mirror);
            for member in slow {
                self.append(mirror, EntryWord::Evict(member.seat()), |_| Ok(()))?;
            }
            Ok(())
        })
    }

    /// Says that a broadcast is held; none when too many are.
    fn hold(&self) -> Result<Option<Holding<'_>>> {
        self.with(|mirror| {
            let slot = self.shared.slot;
            let incarnation = self.shared.segment.slot_record(slot).incarnation;
            let entry = EntryWord::Hold { slot, incarnation };
            let (_, outcome) =
                self.append(mirror, entry, |mirror| self.check_open(&mirror.state))?;
            match outcome {
                Outcome::Held(ticket) => {
                    self.log.is_held(true);
                    Ok(Some(Holding { live: self, ticket }))
                }
                _ => Ok(None),
            }
        })
    }

    #[cold]
    fn full(&self) -> Result<Error> {
        self.with(|mirror| Ok(self.full_now(mirror)))
    }

    fn full_now(&self, mirror: &Mirror) -> Error {
        let (members, waiting) = self.slowest(mirror);
        let members = members.iter().map(|member| member.id).collect();
        GroupError::Full { group: self.name.clone(), members, waiting }.into()
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        let Self { live, ticket } = *self;
        live.log.is_held(false);
        // Where the group is broken, nobody waits for this.
        let _ = live.with(|mirror| {
            match mirror.state.held().iter().any(|held| held.ticket == ticket) {
                true => live.append(mirror, EntryWord::Release { ticket }, |_| Ok(())).map(drop),
                false => Ok(()),
            }
        });
    }
}
