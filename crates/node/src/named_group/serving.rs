//! The server of groups that were made to have one: a thread that does what clients ask for.
//!
//! A process has one such thread for all groups that it serves. It is a guest of the job, with an
//! endpoint of its own, so it needs nothing of the thread mode and waits for nobody else's calls. What
//! it does, it has accepted in the group's log like any process; so it keeps nothing that would be lost
//! with it but whom to tell. It waits for no client and no member: what has no room yet is on its
//! way, members that do not retrieve hold their senders, not it, and a long broadcast is written in
//! pieces, with what others ask for in between.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use landeck_groups::service::{Ask, Asking, EntryWord, MemberRecord, Outcome, Phase};
use landeck_host::objects::{self, ObjectKind, ObjectName};
use landeck_kernel::{Area, Peer, Received, Started, Wanted};
use landeck_memory::{Buffer, Operation, WaitRecord};
use landeck_objects::group_log::{Aside, Claim, WaitsFor};

use super::answer::Answer;
use super::live::Live;
use super::server_client::{ASK, BROADCAST, HELD_BROADCAST, REQUEST_BIT, bytes_of, open_context};
use super::server_handle::{Order, ServerHandle, ServerShared, lock};
use crate::error::{ErrorKind, Result};
use landeck_engine::{Engine, OperationId, Shared};

/// The tag of a message that says: take the broadcast with this number from the group.
pub(crate) const FORWARDED: u32 = 1 << 17;
/// Words in front of what is asked for.
const HEAD_WORDS: usize = 4;
const HEAD_BYTES: usize = 8 * HEAD_WORDS;
/// Bytes of a broadcast that are written at a time.
const PIECE_BYTES: usize = 256 << 10;

struct Server<'a> {
    shared: &'a Arc<Shared>,
    employment: &'a Arc<ServerHandle>,
    office: &'a ServerShared,
    /// Contexts in which something has come, once for each message.
    arrivals: Arc<Mutex<VecDeque<u32>>>,
    /// By the contexts in which they are asked.
    groups: HashMap<u32, Served>,
    receiving: Vec<(u32, OperationId)>,
    sending: Vec<(OperationId, Box<[u64; 2]>)>,
    /// Messages of groups of which their members are being told, or were since this was last said.
    forwarded: Vec<Forwarded>,
    filling: Vec<Filling>,
}

/// A broadcast on its way into the memory of its group: a piece of it, then what others ask for.
struct Filling {
    context: u32,
    aside: Aside,
    received: Received,
    copied: usize,
    words: [u64; 3],
    was_held: bool,
}

/// A message of a group of which its members are told.
#[derive(Clone, Copy)]
struct Forwarded {
    context: u32,
    group: u64,
    message: u64,
}

/// A group that this process serves.
struct Served {
    live: Arc<Live>,
    epoch: u64,
    /// Up to which entry it was looked after.
    seen: u64,
    /// Whom to tell when a round is over, and which.
    syncing: Vec<(Client, u64)>,
    /// Whom to tell when the group is.
    destroying: Vec<Client>,
}

/// Who is told that a request is done.
#[derive(Clone, Copy)]
struct Client {
    slot: u32,
    context: u32,
    number: u32,
}

/// Serves groups as a guest of the job, until the process that it works for needs it no more.
pub(super) fn serve(office: &ServerShared, shared: &Arc<Shared>, employment: &Arc<ServerHandle>) {
    Server::new(shared, employment, office).run();
}

impl<'a> Server<'a> {
    fn new(
        shared: &'a Arc<Shared>,
        employment: &'a Arc<ServerHandle>,
        office: &'a ServerShared,
    ) -> Self {
        Self {
            shared,
            employment,
            office,
            arrivals: Arc::default(),
            groups: HashMap::new(),
            receiving: Vec::new(),
            sending: Vec::new(),
            forwarded: Vec::new(),
            filling: Vec::new(),
        }
    }

    fn run(mut self) {
        let shared = self.shared;
        let record = WaitRecord { operation: Operation::Group, ..WaitRecord::default() };
        loop {
            let ended = shared.wait_until(&record, None, |kernel| {
                kernel.refresh();
                self.has_work(kernel).then_some(())
            });
            if ended.is_err() || self.office.is_over() {
                break;
            }
            // A group that is broken says so to its clients.
            let _ = self.work();
        }
        self.stand_up();
    }

    fn has_work(&self, kernel: &Engine) -> bool {
        let is_done = |id: &OperationId| kernel.is_done(*id);
        self.office.is_over()
            || self.office.has_orders()
            || !lock(&self.arrivals).is_empty()
            || !self.filling.is_empty()
            || self.forwarded.iter().any(|&forwarded| self.is_sent_on(forwarded))
            || self.receiving.iter().any(|(_, id)| is_done(id))
            || self.sending.iter().any(|(id, _)| is_done(id))
            || self.groups.values().any(Served::has_news)
    }

    fn work(&mut self) -> Result<()> {
        for order in self.office.take_orders() {
            if let Err(error) = self.acquire_lease(&order) {
                self.office.fail(order.number, error.kind.to_string());
            }
            self.office.tell_client();
        }
        self.receive()?;
        for (context, peer, tag, received) in self.received()? {
            self.handle(context, peer, tag, received)?;
        }
        for filling in std::mem::take(&mut self.filling) {
            self.fill(filling)?;
        }
        let mut kernel = self.shared.kernel.enter()?;
        self.sending.retain(|(id, _)| kernel.take(*id).is_none());
        drop(kernel);
        self.say_what_was_sent_on();
        let contexts: Vec<u32> = self.groups.keys().copied().collect();
        contexts.into_iter().try_for_each(|context| self.look_after(context))
    }

    /// Says of which messages all members are told by now.
    fn say_what_was_sent_on(&mut self) {
        let (said, kept) =
            self.forwarded.iter().partition(|&&forwarded| self.is_sent_on(forwarded));
        self.forwarded = kept;
        for Forwarded { context, message, .. } in said {
            // Where the seat was left, everybody finds them by themselves.
            if let Some(served) = self.groups.get(&context) {
                served.live.log.set_sent_on(message + 1);
                served.live.wake(WaitsFor::Others);
            }
        }
    }

    /// Whether nothing of this message, or of one before it, is on its way to a member.
    fn is_sent_on(&self, of: Forwarded) -> bool {
        let mut words = self.sending.iter().map(|(_, words)| **words);
        !words.any(|[group, message]| group == of.group && message <= of.message)
    }

    /// Takes the seat of a group, if it is free.
    fn acquire_lease(&mut self, order: &Order) -> Result<()> {
        let is_it = |served: &Served| served.live.object.number() == order.number;
        let had = self.groups.iter().find(|(_, served)| is_it(served)).map(|(&context, _)| context);
        if let Some(context) = had {
            // Somebody may have taken the seat away.
            self.look_after(context)?;
            if self.groups.contains_key(&context) {
                return Ok(());
            }
        }
        let name = ObjectName::new(&order.name).map_err(objects::ObjectError::from)?;
        let (shared, process) = (self.shared, self.shared.process());
        let opened = objects::open_number(process, ObjectKind::Group, order.number)?;
        let live = Live::open(shared, self.employment, &name, opened)?;
        let context = open_context(shared)?;
        let arrivals = self.arrivals.clone();
        let arrival = Box::new(move || lock(&arrivals).push_back(context));
        shared.kernel.enter()?.watch_mailbox(context, arrival);
        let who = u64::from(process.slot.0) | u64::from(process.incarnation.0) << 32;
        let outcome = live.with(|mirror| {
            let claim = live.claim_details(mirror, [who, u64::from(context), 0])?;
            let entry = EntryWord::Serve { cell: claim.cell() };
            let (place, outcome) = live.append(mirror, entry, |_| Ok(()))?;
            claim.becomes_entry(place);
            Ok(outcome)
        })?;
        let Outcome::Seated(epoch) = outcome else {
            shared.kernel.enter()?.close_mailbox(context);
            return Ok(());
        };
        live.log.waits(WaitsFor::Others, true);
        let (syncing, destroying) = (Vec::new(), Vec::new());
        self.groups.insert(context, Served { live, epoch, seen: 0, syncing, destroying });
        Ok(())
    }

    /// Leaves all seats.
    fn stand_up(&mut self) {
        let groups = std::mem::take(&mut self.groups);
        for (context, served) in groups {
            self.leave(context, &served);
        }
        if let Ok(mut kernel) = self.shared.kernel.enter() {
            // Members find by themselves what is not on its way.
            self.sending.drain(..).for_each(|(id, _)| kernel.abandon(id));
            self.receiving.drain(..).for_each(|(_, id)| kernel.abandon(id));
        }
    }

    fn leave(&self, context: u32, served: &Served) {
        let live = &served.live;
        let epoch = EntryWord::low_bits(served.epoch);
        // Whoever finds the process gone says so as well.
        let _ = live.with(|mirror| live.append(mirror, EntryWord::Vacate { epoch }, |_| Ok(())));
        live.log.waits(WaitsFor::Others, false);
        if let Ok(mut kernel) = self.shared.kernel.enter() {
            kernel.close_mailbox(context);
        }
    }

    /// Begins to receive what has come.
    fn receive(&mut self) -> Result<()> {
        let arrivals = std::mem::take(&mut *lock(&self.arrivals));
        let mut kernel = self.shared.kernel.enter()?;
        for context in arrivals {
            let wanted = Wanted { context, source: None, tag: None };
            if self.groups.contains_key(&context) && kernel.probe(wanted).is_some() {
                self.receiving.push((context, kernel.receive_own(wanted).into()));
            }
        }
        Ok(())
    }

    fn received(&mut self) -> Result<Vec<(u32, u32, u32, Received)>> {
        let mut kernel = self.shared.kernel.enter()?;
        let mut received = Vec::new();
        self.receiving.retain(|&(context, id)| match kernel.take(id) {
            None => true,
            // Who died while it asked has asked for nothing.
            Some(Err(_)) => false,
            Some(Ok(completion)) => {
                if let (Ok(status), Some(data)) = (completion.result, completion.data) {
                    received.push((context, status.peer.0, status.tag, data));
                }
                false
            }
        });
        Ok(received)
    }

    fn handle(&mut self, context: u32, slot: u32, tag: u32, received: Received) -> Result<()> {
        let bytes = bytes_of(&received);
        let mut head = [0u64; HEAD_WORDS];
        let is_whole =
            bytes.copy_to_slice(landeck_memory::plain::bytes_of_mut(&mut head)) == HEAD_BYTES;
        let (kind, number) = (tag >> Asking::NUMBER_BITS, tag & ((1 << Asking::NUMBER_BITS) - 1));
        let client = Client { slot, context: head[3] as u32, number };
        let record = self.shared.segment.slot_record(slot);
        let is_there = head[0] >> 32 == u64::from(record.incarnation) && !record.state.is_gone();
        // Who is gone asks for nothing any more.
        if !is_whole || head[0] as u32 != slot || !is_there {
            return Ok(());
        }
        let Some(served) = self.groups.get(&context) else { return Ok(()) };
        match kind {
            ASK => match Asking::from_words([head[0], head[1], head[2]]) {
                Some(asking) if asking.number == number => self.do_asked(context, client, &asking),
                _ => Ok(()),
            },
            BROADCAST | HELD_BROADCAST => {
                let [who, member, tag, _] = head;
                let words = [who, member, REQUEST_BIT | u64::from(number)];
                let length = (bytes.len() - HEAD_BYTES) as u64;
                let Some(aside) = served.prepare(words, tag as u32, length)? else {
                    return Ok(());
                };
                let was_held = kind == HELD_BROADCAST;
                self.fill(Filling { context, aside, received, copied: 0, words, was_held })
            }
            _ => Ok(()),
        }
    }

    /// Writes a piece of a broadcast; after the last one it is accepted and sent on.
    fn fill(&mut self, mut filling: Filling) -> Result<()> {
        let Some(served) = self.groups.get(&filling.context) else { return Ok(()) };
        let data = bytes_of(&filling.received);
        let (length, copied) = (data.len() - HEAD_BYTES, filling.copied);
        let piece = data.part(HEAD_BYTES + copied, PIECE_BYTES.min(length - copied));
        filling.copied += piece.len();
        let claim = served.live.log.take_up(filling.aside);
        claim.fill_part(length as u64, copied as u64, piece);
        if filling.copied < length {
            filling.aside = claim.put_aside();
            self.filling.push(filling);
            return Ok(());
        }
        let Filling { context, words, was_held, .. } = filling;
        let sent = served.broadcast(&claim, words, was_held)?;
        let Some((message, members)) = sent else { return Ok(()) };
        claim.end();
        let group = served.live.object.number();
        self.forwarded.push(Forwarded { context, group, message });
        self.forward(group, message, words[1], &members)
    }

    fn do_asked(&mut self, context: u32, client: Client, asking: &Asking) -> Result<()> {
        let Some(served) = self.groups.get_mut(&context) else { return Ok(()) };
        let Some(outcome) = served.accept(asking)? else { return Ok(()) };
        match (asking.what, outcome) {
            (Ask::Sync(_), Outcome::Come(round)) => served.syncing.push((client, round)),
            (Ask::Destroy, Outcome::Destroying) => served.destroying.push(client),
            (Ask::Sync(_) | Ask::Destroy, _) | (_, Outcome::Stale) => {}
            (Ask::Join { .. } | Ask::Leave { .. }, _) => self.reply(client)?,
        }
        Ok(())
    }

    fn reply(&mut self, client: Client) -> Result<()> {
        self.post(client.slot, client.context, client.number, None)
    }

    /// Tells each member of a message, but who is not to get its own.
    fn forward(
        &mut self,
        group: u64,
        message: u64,
        sender: u64,
        members: &[MemberRecord],
    ) -> Result<()> {
        let left_out = (sender >> 32).checked_sub(1);
        for member in members.iter().filter(|member| Some(u64::from(member.id)) != left_out) {
            self.post(member.slot, member.context, FORWARDED, Some([group, message]))?;
        }
        Ok(())
    }

    fn post(&mut self, slot: u32, context: u32, tag: u32, words: Option<[u64; 2]>) -> Result<()> {
        let words = words.map(Box::new);
        let area = match &words {
            // SAFETY: the words are on the heap, and kept until the request is taken or abandoned.
            Some(words) => Area::contiguous(unsafe { Buffer::of(&words[..]) }),
            None => Area::EMPTY,
        };
        let started = self.shared.kernel.enter()?.send(Peer(slot), context, tag, area);
        // Who is gone needs not be told.
        if let Ok(Started::Pending(id)) = started {
            self.sending.push((id.into(), words.unwrap_or_default()));
        }
        Ok(())
    }

    /// Tells those whose round, or group, is over; leaves the group when all were told.
    fn look_after(&mut self, context: u32) -> Result<()> {
        let Some(served) = self.groups.get_mut(&context) else { return Ok(()) };
        let (told, is_over) = served.look()?;
        told.into_iter().try_for_each(|client| self.reply(client))?;
        if is_over && let Some(served) = self.groups.remove(&context) {
            let is_its = |filling: &mut Filling| filling.context == context;
            for filling in self.filling.extract_if(.., is_its) {
                drop(served.live.log.take_up(filling.aside));
            }
            self.leave(context, &served);
        }
        Ok(())
    }
}

impl Served {
    /// Whether the log has an entry that was not looked after.
    fn has_news(&self) -> bool {
        let position = self.live.with(|mirror| Ok(mirror.state.position()));
        position.is_ok_and(|position| position != self.seen)
    }

    /// Whom to tell by now, and whether there is nothing more to do.
    fn look(&mut self) -> Result<(Vec<Client>, bool)> {
        let Self { live, epoch, seen, syncing, destroying } = self;
        live.with(|mirror| {
            let state = &mirror.state;
            *seen = state.position();
            let mut told: Vec<Client> = Vec::new();
            syncing.retain(|&(client, round)| {
                let is_over = state.ended(round).is_some();
                told.extend(is_over.then_some(client));
                !is_over
            });
            let has_ended = state.phase() == Phase::Ended;
            if has_ended {
                told.append(destroying);
            }
            let is_mine = state.server().is_some_and(|server| server.epoch == *epoch);
            Ok((told, has_ended || !is_mine))
        })
    }

    /// Has a request accepted; none when there is nothing to accept.
    fn accept(&self, asking: &Asking) -> Result<Option<Outcome>> {
        let live = &self.live;
        live.with(|mirror| {
            let Asking { slot, incarnation, number, .. } = *asking;
            if !live.log.begin_request(slot, incarnation, number, self.epoch) {
                return Ok(None);
            }
            let claim = live.claim_details(mirror, asking.to_words())?;
            let mut is_early = false;
            let entry = EntryWord::Asked { cell: claim.cell(), by: self.mark() };
            let appended = live.append(mirror, entry, |mirror| {
                // Whoever leaves has a copy of what was accepted before.
                is_early = match asking.what {
                    Ask::Leave { seat, kept } => {
                        mirror.state.member(seat).is_some() && mirror.state.broadcasts() != kept
                    }
                    _ => false,
                };
                if is_early { Err(ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match appended {
                Err(_) if is_early => {
                    self.refuse((slot, incarnation, number), Answer::NotNow);
                    Ok(None)
                }
                Err(error) => Err(error),
                Ok((place, outcome)) => {
                    claim.becomes_entry(place);
                    Ok(Some(outcome))
                }
            }
        })
    }

    /// Memory for a broadcast; none when there is none, or nobody asks for it any more.
    fn prepare(&self, words: [u64; 3], tag: u32, bytes: u64) -> Result<Option<Aside>> {
        let live = &self.live;
        let request = asked_in(words);
        let (slot, incarnation, number) = request;
        live.with(|mirror| {
            if !live.log.take_request(slot, incarnation, number, self.epoch) {
                return Ok(None);
            }
            let claim = match live.has_room_for_others(mirror) {
                true => live.claim(mirror, bytes)?,
                false => None,
            };
            match claim {
                Some(claim) => {
                    claim.describe(tag, words, bytes);
                    Ok(Some(claim.put_aside()))
                }
                None => {
                    self.refuse(request, Answer::NotNow);
                    Ok(None)
                }
            }
        })
    }

    /// Has a broadcast accepted: its number, and who gets it. None when it was not.
    pub(crate) fn broadcast(
        &self,
        claim: &Claim<'_>,
        words: [u64; 3],
        was_held: bool,
    ) -> Result<Option<(u64, Vec<MemberRecord>)>> {
        let live = &self.live;
        let request = asked_in(words);
        let (slot, incarnation, number) = request;
        live.with(|mirror| {
            if !live.log.begin_request(slot, incarnation, number, self.epoch) {
                return Ok(None);
            }
            let entry = EntryWord::Broadcast { cell: claim.cell(), was_held, by: self.mark() };
            let mut is_full = false;
            let appended = live.append_with(mirror, entry, Some(claim), |mirror| {
                is_full = !live.has_room_for_others(mirror);
                if is_full { Err(ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match appended {
                Ok((_, Outcome::Broadcast(message))) => {
                    return Ok(Some((message, mirror.state.members().to_vec())));
                }
                // Who has asked asks the next server.
                Ok((_, Outcome::Stale)) => {}
                Ok(_) => self.refuse(request, Answer::Closed),
                Err(_) if is_full => self.refuse(request, Answer::NotNow),
                Err(error) => return Err(error),
            }
            Ok(None)
        })
    }

    fn refuse(&self, (slot, incarnation, number): (u32, u32, u32), answer: Answer) {
        let live = &self.live;
        live.log.refuse(slot, incarnation, number, self.epoch, answer.to_bits());
        live.wake(WaitsFor::Others);
    }

    /// How its entries say whose they are.
    fn mark(&self) -> u32 {
        EntryWord::mark_of(self.epoch)
    }
}

/// Who has asked for a broadcast: slot and incarnation, and the number of the request.
fn asked_in([who, _, request]: [u64; 3]) -> (u32, u32, u32) {
    (who as u32, (who >> 32) as u32, request as u32)
}
