//! A client on another host, as the server feeds it: a reader of the log by messages.
//!
//! The server tells a follower the entries in their order, one feed at a time: the next one goes when the follower has
//! the one before. What a follower lacks is in the log, so a follower that is slow or stopped needs no memory here. One
//! that lags so far behind that its next entry was overwritten gets the state instead, as a process of this host does.

use landeck_engine::{Engine, OperationId};
use landeck_objects::group_log::entries::{Details, details_cell, entry_of, message_cell};
use landeck_objects::group_log::{Described, Look, Progress};
use landeck_protocols::service::{Outcome, Party, Seat, State};

use crate::answer::Answer;
use crate::error::Result;
use crate::feed::{FedMessage, FeedHead, FeedItem, FeedWriter, LastRequest, Opened};
use crate::replica::{LocalState, Replica};

/// A feed ends behind the entry that makes it so long.
const FEED_WORDS: usize = 8 << 10;

/// A client on another host.
pub(crate) struct Follower {
    pub(crate) process: Party,
    /// Its peer number here.
    pub(crate) peer: u32,
    /// The context of its mailbox.
    pub(crate) context: u32,
    /// The group as the follower knows it; none before its first feed.
    state: Option<State>,
    /// The broadcasts that it has had from earlier servers.
    broadcasts: u64,
    /// The last look that it has asked for, and the last one that was told.
    look: u64,
    told_look: u64,
    awaits_delivery: bool,
    told_delivered: u64,
    told_marks: Vec<u64>,
    /// The number of the last feed, and of the last one that has arrived.
    feed: u64,
    arrived: u64,
    is_last_told: bool,
    /// The feed that is being sent.
    sending: Option<(OperationId, Box<[u64]>)>,
    /// Broadcasts that this client has asked for and that it has not been told of: their numbers and the requests.
    asked: Vec<(u64, u32)>,
}

/// The common part of the feeds of all followers of a group.
pub(crate) struct FeedBasis<'a> {
    pub(crate) replica: &'a Replica,
    /// This group has ended, or has another server.
    pub(crate) is_last: bool,
}

impl Follower {
    pub(crate) fn new((peer, process): (u32, Party), context: u32, broadcasts: u64) -> Self {
        Self {
            process,
            peer,
            context,
            state: None,
            broadcasts,
            look: 0,
            told_look: 0,
            awaits_delivery: false,
            told_delivered: 0,
            told_marks: Vec::new(),
            feed: 0,
            arrived: 0,
            is_last_told: false,
            sending: None,
            asked: Vec::new(),
        }
    }

    /// The follower asks to be told everything up to now.
    pub(crate) fn look(&mut self, look: u64, awaits_delivery: bool) {
        self.look = self.look.max(look);
        self.awaits_delivery = awaits_delivery;
    }

    /// A feed has arrived.
    pub(crate) fn has_arrived(&mut self, feed: u64) {
        if feed == self.feed {
            self.arrived = feed;
        }
    }

    /// The server has accepted a broadcast that the follower has asked for.
    pub(crate) fn add_accepted(&mut self, number: u64, request: u32) {
        self.asked.push((number, request));
    }

    /// Whether the last feed has arrived.
    pub(crate) fn has_all(&self) -> bool {
        self.arrived == self.feed
    }

    /// Whether it has everything that it will be told.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_last_told && self.arrived == self.feed
    }

    /// Whether it has this broadcast, or does not need it.
    pub(crate) fn has_message(&self, local: &LocalState, number: u64) -> bool {
        let is_arrived = self.arrived == self.feed
            && self.state.as_ref().is_some_and(|state| state.broadcasts() > number);
        is_arrived || !self.needs(&local.state, number)
    }

    /// Whether a member of this follower receives a broadcast.
    fn needs(&self, state: &State, number: u64) -> bool {
        let mut members = state.members().iter();
        members.any(|member| member.process == self.process && member.first <= number)
    }

    /// Whether the next feed can go.
    pub(crate) fn is_ready(&self, engine: &Engine) -> bool {
        let is_sent = self.sending.as_ref().is_none_or(|(id, _)| engine.is_done(*id));
        is_sent && self.arrived == self.feed
    }

    /// Whether a broadcast of it is held. Then it is told how far members have taken messages.
    fn is_held(&self, state: &State) -> bool {
        state.held().iter().any(|held| held.process == self.process)
    }

    /// Whether there is something to tell.
    pub(crate) fn is_due(&self, basis: &FeedBasis<'_>, local: &LocalState) -> bool {
        let Some(state) = &self.state else { return true };
        state.position() < local.state.position()
            || self.look > self.told_look
            || (basis.is_last && !self.is_last_told)
            || (self.awaits_delivery && basis.replica.log.sent_on() > self.told_delivered)
            || (self.is_held(&local.state) && self.told_marks != marks_of(basis.replica, local))
    }

    /// Forgets the feed that was sent.
    pub(crate) fn take_sent(&mut self, engine: &mut Engine) {
        if let Some((id, _)) = &self.sending
            && engine.take(*id).is_some()
        {
            self.sending = None;
        }
    }

    /// A feed is being sent.
    pub(crate) fn set_sending(&mut self, id: OperationId, words: Box<[u64]>) {
        self.sending = Some((id, words));
    }

    /// Gives up the feed that is being sent.
    pub(crate) fn give_up(&mut self, engine: &mut Engine) {
        self.sending.take().into_iter().for_each(|(id, _)| engine.abandon(id));
    }

    /// The next feed.
    pub(crate) fn next_feed(
        &mut self,
        basis: &FeedBasis<'_>,
        local: &mut LocalState,
    ) -> Result<Box<[u64]>> {
        let replica = basis.replica;
        let (number, looked, delivered) = (self.feed + 1, self.look, replica.log.sent_on());
        let mut feed = FeedWriter::default();
        let is_last = basis.is_last;
        feed.put(&FeedItem::Head(FeedHead { number, looked, delivered, is_last: false }));
        if self.state.is_none() {
            let object = replica.object().map_or(0, |object| object.number());
            let options = replica.options.to_words();
            feed.put(&FeedItem::Opened(Opened { number: object, options }));
            self.put_state(&mut feed, replica, local);
        }
        while feed.len() < FEED_WORDS && self.put_next(&mut feed, replica, local)? {}
        let marks = marks_of(replica, local);
        if marks != self.told_marks {
            feed.put(&FeedItem::Marks(&marks));
            self.told_marks = marks;
        }
        let has_all = self.position() == local.state.position();
        let looked = if has_all { looked } else { self.told_look };
        let is_last = is_last && has_all;
        feed.set_head(FeedHead { number, looked, delivered, is_last });
        (self.feed, self.told_look, self.told_delivered) = (number, looked, delivered);
        self.is_last_told |= is_last;
        Ok(feed.into_words().into_boxed_slice())
    }

    fn position(&self) -> u64 {
        self.state.as_ref().map_or(0, State::position)
    }

    /// Tells the next entry; false when there is none.
    fn put_next(
        &mut self,
        feed: &mut FeedWriter,
        replica: &Replica,
        local: &mut LocalState,
    ) -> Result<bool> {
        let place = self.position();
        if place >= local.state.position() {
            return Ok(false);
        }
        let Look::There(word) = replica.log.look(place) else {
            self.put_state(feed, replica, local);
            return Ok(true);
        };
        let cell = message_cell(word).or(details_cell(word));
        let described = cell.and_then(|cell| replica.log.described(cell)).unwrap_or_default();
        // The cell of an entry that a snapshot covers may hold another by now.
        if replica.log.snapshot_place() > place {
            self.put_state(feed, replica, local);
            return Ok(true);
        }
        match message_cell(word) {
            Some(cell) => self.put_broadcast(feed, replica, local, (word, cell, described))?,
            None => {
                self.apply(word, described.words);
                feed.put(&FeedItem::Entry { word, details: described.words });
            }
        }
        Ok(true)
    }

    fn apply(&mut self, word: u32, details: Details) -> Outcome {
        let Some(state) = &mut self.state else { return Outcome::Nothing };
        match entry_of(word, details, state) {
            Some(entry) => state.apply(entry),
            None => {
                state.skip();
                Outcome::Nothing
            }
        }
    }

    fn put_broadcast(
        &mut self,
        feed: &mut FeedWriter,
        replica: &Replica,
        local: &mut LocalState,
        (word, cell, described): (u32, u32, Described),
    ) -> Result<()> {
        let Outcome::Broadcast(number) = self.apply(word, Details::default()) else {
            feed.put(&FeedItem::Entry { word, details: Details::default() });
            return Ok(());
        };
        let is_needed = self.state.as_ref().is_some_and(|state| self.needs(state, number));
        let bytes = replica.log.data(cell, &described).filter(|_| is_needed);
        let message = FedMessage { cell, described, bytes };
        let start = feed.len();
        feed.put(&FeedItem::Accepted { word, message });
        // The memory is the message's as long as a member of the follower has not taken it.
        replica.fold(local)?;
        if !self.needs(&local.state, number) {
            feed.cut(start);
            feed.put(&FeedItem::Accepted { word, message: FedMessage { bytes: None, ..message } });
        }
        for (_, request) in self.asked.extract_if(.., |(asked, _)| *asked == number) {
            let answer = Some(Answer::Accepted(number as u32).to_bits());
            feed.put(&FeedItem::Request(LastRequest { number: request, answer }));
        }
        Ok(())
    }

    /// Tells the state, and the messages before it that members of the follower have not had.
    fn put_state(&mut self, feed: &mut FeedWriter, replica: &Replica, local: &LocalState) {
        feed.put(&FeedItem::State(&local.state.to_words()));
        feed.put(&FeedItem::Request(self.last_request(replica)));
        let from = self.state.as_ref().map_or(self.broadcasts, State::broadcasts);
        let waiting =
            local.state.broadcasts().saturating_sub(replica.log.shape().messages().into());
        for number in from.max(waiting)..local.state.broadcasts() {
            let cell = replica.log.broadcast(number).filter(|_| self.needs(&local.state, number));
            let Some(cell) = cell else { continue };
            let Some(described) = replica.log.described(cell) else { continue };
            let bytes = replica.log.data(cell, &described);
            let start = feed.len();
            let message = FedMessage { cell, described, bytes };
            feed.put(&FeedItem::Waiting { number, message });
            if !replica.log.is_of(cell, number) {
                feed.cut(start);
            }
        }
        self.asked.clear();
        self.state = Some(local.state.clone());
    }

    fn last_request(&self, replica: &Replica) -> LastRequest {
        let number = replica.log.last_request(self.peer);
        let answer = match replica.log.progress_of(self.peer, self.process.incarnation, number) {
            Progress::Answered(answer) => Some(answer),
            _ => None,
        };
        LastRequest { number, answer }
    }

    /// Records how far members of the follower have taken messages.
    pub(crate) fn take_marks(&self, replica: &Replica, local: &LocalState, pairs: &[u64]) {
        for pair in pairs.chunks_exact(2) {
            let (seat, taken) =
                (Seat { id: pair[0] as u32, stamp: (pair[0] >> 32) as u32 }, pair[1]);
            let member = local.state.member(seat);
            if member.is_some_and(|member| member.process == self.process) {
                replica.log.set_taken(seat.id, seat.stamp, taken.min(local.state.broadcasts()));
            }
        }
    }
}

/// How far all members have taken messages, as pairs.
fn marks_of(replica: &Replica, local: &LocalState) -> Vec<u64> {
    let mark = |member| {
        let seat = landeck_protocols::service::MemberRecord::seat(member);
        [u64::from(seat.id) | u64::from(seat.stamp) << 32, replica.taken(local, member)]
    };
    local.state.members().iter().flat_map(mark).collect()
}
