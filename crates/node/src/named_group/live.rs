//! A group as this process sees it: the log, and what it has folded of it.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use landeck_groups::service::{
    Asking, Entry, EntryWord, Gone, Held, Joining, MemberRecord, Outcome, Phase, Server, Serving,
    State,
};
use landeck_host::objects::{self, Object, ObjectKind, ObjectName, Use, map};
use landeck_memory::{Bytes, Gate, Operation, SharedArea, SlotState, ThreadMode, WaitRecord};
use landeck_objects::group_log::{
    Aside, CELL_BYTES, Claim, Claims, GroupLog, LOG_ENTRIES, Look, Passed, Reach, WaitsFor,
};

use super::answer::Answer;
use super::everybody::Everybody;
use super::options::GroupOptions;
use super::server_client::{REQUEST_BIT, ServerClient};
use super::server_handle::ServerHandle;
use crate::error::{Error, ErrorKind, GroupError, Result};
use crate::message::SharedValues;
use landeck_engine::Shared;

/// Times that others may be faster before something must be wrong.
pub(super) const ATTEMPTS: u32 = 1 << 20;

/// A group as this process sees it. Any thread may use it, as the thread mode says.
pub(crate) struct Live {
    pub(crate) shared: Arc<Shared>,
    /// The thread of this process that serves groups.
    pub(super) employment: Arc<ServerHandle>,
    pub(crate) log: GroupLog,
    pub(crate) name: String,
    pub(crate) options: GroupOptions,
    pub(crate) object: Use,
    /// Where the server's replies come; none without a server.
    pub(crate) desk: Option<ServerClient>,
    mirror: Gate<Mirror>,
    claims: Claims,
}

/// What this process knows of the group.
pub(crate) struct Mirror {
    pub(crate) state: State,
    /// What nobody needs any more, as far as this process has looked.
    passed: Passed,
    /// Broadcasts of this process that some have not taken, when it looked last.
    own: VecDeque<u64>,
    /// What was broadcast last, where this process is to retrieve it as well: it gets the same memory.
    shared: Option<(u64, SharedValues)>,
    /// The cell of the next short one, claimed while there was nothing else to do.
    aside: Option<Aside>,
    /// All members as they stand on the roll, and the view that is from.
    pub(super) everybody: Everybody,
    /// The generation of the membership for which all that is known here was looked through.
    tended: Option<u32>,
}

/// Whose entry is folded.
#[derive(Clone, Copy)]
enum Whose<'a> {
    /// This process's, with the memory of the message that it is.
    Own(Option<&'a Claim<'a>>),
    Others,
}

impl Live {
    /// The group whose memory was made or opened.
    ///
    /// # Errors
    /// [`GroupError::Broken`]: the memory is none of a group; [`ErrorKind::Thread`].
    pub(crate) fn open(
        shared: &Arc<Shared>,
        employment: &Arc<ServerHandle>,
        name: &ObjectName,
        (object, file): (Object, OwnedFd),
    ) -> Result<Arc<Self>> {
        let used = Use::new(shared.process(), ObjectKind::Group, object.number);
        let area: SharedArea = map(&file, &object)?;
        let name = name.as_str().to_owned();
        let broken = |group| GroupError::Broken { group, what: "its memory has no shape" };
        let options = GroupOptions::from_words(object.words);
        let log = options.and_then(|options| {
            GroupLog::open(area, &shared.segment, shared.slot, options.shape()?)
        });
        match (options, log) {
            (Some(options), Some(log)) => {
                Ok(Arc::new(Self::new((shared, employment), log, name, options, used)?))
            }
            _ => Err(broken(name).into()),
        }
    }

    fn new(
        (shared, employment): (&Arc<Shared>, &Arc<ServerHandle>),
        log: GroupLog,
        name: String,
        options: GroupOptions,
        object: Use,
    ) -> Result<Self> {
        let mirror = Mirror {
            state: State::new(options.rules()),
            passed: Passed::default(),
            own: VecDeque::new(),
            shared: None,
            aside: None,
            everybody: Everybody::default(),
            tended: None,
        };
        let mirror = Gate::new(shared.kernel.mode(), mirror);
        let desk = options.first_server().map(|_| ServerClient::open(shared)).transpose()?;
        Ok(Self {
            shared: shared.clone(),
            employment: employment.clone(),
            log,
            name,
            options,
            object,
            desk,
            mirror,
            claims: Claims::default(),
        })
    }

    /// Frees the name of a group that is over. Who finds it taken does so as well.
    pub(crate) fn retire(&self) {
        // Somebody else may have said so, or will.
        let _ = objects::retire(self.shared.process(), self.object.number());
    }

    /// Does something with what is known, when all that was accepted so far is.
    pub(crate) fn with<T>(&self, then: impl FnOnce(&mut Mirror) -> Result<T>) -> Result<T> {
        let mut mirror = self.mirror.enter()?;
        self.fold(&mut mirror)?;
        self.tend(&mut mirror)?;
        then(&mut mirror)
    }

    /// Does something with what was known before, unless it is to be looked through anew: none then.
    #[inline]
    pub(super) fn with_what_is_known<T>(
        &self,
        then: impl FnOnce(&mut Mirror) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut mirror = self.mirror.enter_in_turn()?;
        let generation = self.shared.segment.membership_generation();
        if mirror.tended == Some(generation) { then(&mut mirror) } else { Ok(None) }
    }

    /// Folds what was accepted meanwhile.
    pub(super) fn catch_up(&self) -> Result<()> {
        self.fold(&mut *self.mirror.enter_in_turn()?)
    }

    /// The same for who is about to send a message.
    pub(super) fn with_lines<T>(&self, then: impl FnOnce(&mut Mirror) -> Result<T>) -> Result<T> {
        let mut mirror = self.mirror.enter_in_turn()?;
        let (place, number) = (mirror.state.position(), mirror.state.broadcasts());
        self.log.prepare(&self.claims, place, number);
        self.fold(&mut mirror)?;
        self.tend(&mut mirror)?;
        then(&mut mirror)
    }

    /// Waits until `ready` finds something. It is called with all that was accepted. If it takes
    /// long, others can see that it waits for the process of slot `whom`.
    pub(crate) fn wait<T>(
        &self,
        deadline_ns: Option<u64>,
        whom: impl FnOnce(&Mirror) -> Option<u32>,
        mut ready: impl FnMut(&mut Mirror) -> Result<Option<T>>,
    ) -> Result<T> {
        let mut found = None;
        let mut look = || {
            found = self.with(&mut ready).transpose();
            found.is_some()
        };
        self.shared.spin_once(&mut look)?;
        if let Some(found) = found {
            return found;
        }
        let _waits = Waits::begin(&self.log, WaitsFor::Others);
        let peer = self.with(|mirror| Ok(whom(mirror)))?;
        let record = WaitRecord { operation: Operation::Group, peer, ..WaitRecord::default() };
        let found =
            self.shared.wait_until(&record, deadline_ns, |_| self.with(&mut ready).transpose());
        found.map_err(|error| Error::of_wait(&self.shared, error, None, |_| None))?
    }

    /// Has an entry accepted, after a check of what is known before it.
    pub(crate) fn append(
        &self,
        mirror: &mut Mirror,
        entry: EntryWord,
        check: impl FnMut(&mut Mirror) -> Result<()>,
    ) -> Result<(u64, Outcome)> {
        self.append_with(mirror, entry, None, check)
    }

    /// The same for a message, whose memory is the message's from then on.
    pub(super) fn append_with(
        &self,
        mirror: &mut Mirror,
        entry: EntryWord,
        message: Option<&Claim<'_>>,
        mut check: impl FnMut(&mut Mirror) -> Result<()>,
    ) -> Result<(u64, Outcome)> {
        for _ in 0..ATTEMPTS {
            self.fold(mirror)?;
            check(mirror)?;
            if changes_who_comes(entry) && !self.log.roll().is_settled() {
                self.close_roll(mirror)?;
                continue;
            }
            if let Some(accepted) = self.accept(mirror, entry, message)? {
                if changes_who_comes(entry) {
                    self.close_stale_roll(mirror)?;
                }
                return Ok(accepted);
            }
        }
        Err(self.broken("its log does not take an entry"))
    }

    /// Has an entry accepted behind those that are known; none when there are others by now.
    pub(super) fn accept(
        &self,
        mirror: &mut Mirror,
        entry: EntryWord,
        message: Option<&Claim<'_>>,
    ) -> Result<Option<(u64, Outcome)>> {
        self.make_room(mirror)?;
        let place = mirror.state.position();
        if !self.log.accept(place, entry.to_word()) {
            return Ok(None);
        }
        let outcome = self.apply(mirror, place, entry, Whose::Own(message))?;
        self.tell(mirror, entry, outcome);
        Ok(Some((place, outcome)))
    }

    /// Memory for a message or the details of an entry; none when there is none now.
    pub(super) fn claim(&self, mirror: &mut Mirror, bytes: u64) -> Result<Option<Claim<'_>>> {
        let look =
            |mirror: &Mirror, reach| self.log.claim(&self.claims, bytes, &mirror.passed, reach);
        if let Some(claim) = look(mirror, Reach::Home) {
            return Ok(Some(claim));
        }
        self.look_who_has_taken(mirror);
        for reach in [Reach::Home, Reach::All] {
            if let Some(claim) = look(mirror, reach) {
                return Ok(Some(claim));
            }
        }
        self.fold(mirror)?;
        self.snapshot(mirror);
        if self.log.is_claimed_by_the_dead() {
            self.fold(mirror)?;
            let messages = self.least_taken(mirror)..mirror.state.broadcasts();
            self.log.sweep(messages, &self.entries_with_cells(mirror));
        }
        self.look_who_has_taken(mirror);
        Ok(look(mirror, Reach::All))
    }

    /// Claims a cell for the next short message, if this process has sent one that some have not taken.
    pub(super) fn set_cell_aside(&self, mirror: &mut Mirror) {
        if mirror.aside.is_none() && !mirror.own.is_empty() {
            let claim = self.log.claim(&self.claims, 0, &mirror.passed, Reach::Home);
            mirror.aside = claim.map(Claim::put_aside);
        }
    }

    /// Memory for a message, of which some may have been set aside.
    pub(super) fn claim_for_message(
        &self,
        mirror: &mut Mirror,
        bytes: u64,
    ) -> Result<Option<Claim<'_>>> {
        match mirror.aside.take_if(|_| bytes <= CELL_BYTES as u64) {
            Some(aside) => Ok(Some(self.log.take_up(aside))),
            None => self.claim(mirror, bytes),
        }
    }

    /// The same for the details of an entry, for which there always is room sooner or later.
    pub(super) fn claim_details(&self, mirror: &mut Mirror, words: [u64; 3]) -> Result<Claim<'_>> {
        let claim = self.claim(mirror, 0)?;
        let claim = claim.ok_or_else(|| self.broken("all its cells are in use"))?;
        claim.fill(0, words, Bytes::EMPTY);
        Ok(claim)
    }

    /// Whether a broadcast of this process has room.
    pub(super) fn has_room(&self, mirror: &mut Mirror) -> bool {
        self.has_room_for(mirror, self.options.credit())
    }

    /// Whether a broadcast has room, of however many this process has had accepted.
    pub(super) fn has_room_for_others(&self, mirror: &mut Mirror) -> bool {
        self.has_room_for(mirror, u64::MAX)
    }

    fn has_room_for(&self, mirror: &mut Mirror, credit: u64) -> bool {
        for is_new in [false, true] {
            if is_new {
                self.look_who_has_taken(mirror);
            }
            let Mirror { state, passed, own, .. } = mirror;
            while own.front().is_some_and(|&number| number < passed.messages) {
                own.pop_front();
            }
            let waiting = state.broadcasts().saturating_sub(passed.messages);
            let messages = u64::from(self.log.shape().messages());
            if waiting < messages && (own.len() as u64) < credit {
                return true;
            }
        }
        false
    }

    /// A broadcast of this process was accepted.
    pub(super) fn note_own(mirror: &mut Mirror, number: u64) {
        mirror.own.push_back(number);
    }

    /// The values of what this process has broadcast last are kept for who retrieves them here.
    pub(super) fn keep_shared(mirror: &mut Mirror, values: SharedValues) {
        mirror.shared = mirror.own.back().map(|&number| (number, values));
    }

    /// The values of a broadcast of this process, if they are kept. Who comes later reads them where all do.
    pub(super) fn take_shared(&self, number: u64) -> Option<SharedValues> {
        let mut mirror = self.mirror.enter_in_turn().ok()?;
        let kept = mirror.shared.take_if(|(kept, _)| *kept == number)?;
        Some(kept.1)
    }

    /// Says that there was no room for a broadcast that is held, as far as this process has looked.
    pub(super) fn found_no_room(&self, mirror: &Mirror) {
        let is_last_chance = mirror.state.phase() == Phase::Destroying;
        let is_news = self.log.found_no_room(mirror.passed.messages, is_last_chance);
        if is_news && is_last_chance {
            self.wake(WaitsFor::Others);
        }
    }

    /// Whether there was no room for a broadcast of this process because its only thread has not retrieved.
    pub(super) fn is_in_its_own_way(&self, mirror: &Mirror) -> bool {
        self.only_this_thread_takes(mirror, |taken| taken == mirror.passed.messages)
    }

    /// Whether broadcasts that are held have no room because the only thread of this process has not
    /// retrieved.
    pub(crate) fn is_in_the_way(&self, mirror: &Mirror) -> bool {
        self.only_this_thread_takes(mirror, |taken| self.log.has_no_room(taken))
    }

    /// Whether a mailbox has taken so much from which the only thread of this process retrieves.
    fn only_this_thread_takes(&self, mirror: &Mirror, so_much: impl Fn(u64) -> bool) -> bool {
        let all = mirror.state.broadcasts();
        let is_late = |member: &MemberRecord| {
            let taken = self.taken(mirror, member);
            member.slot == self.shared.slot && taken < all && so_much(taken)
        };
        self.shared.kernel.mode() == ThreadMode::Single
            && mirror.state.members().iter().any(is_late)
    }

    /// Who has taken least, and how many messages wait there.
    pub(crate) fn slowest(&self, mirror: &Mirror) -> (Vec<MemberRecord>, u64) {
        let least = self.least_taken(mirror);
        let all = mirror.state.broadcasts();
        let slow = mirror
            .state
            .members()
            .iter()
            .filter(|it| self.taken(mirror, it) == least && least < all);
        (slow.copied().collect(), all - least)
    }

    /// Whether the group can be used; otherwise why not.
    pub(crate) fn check_open(&self, state: &State) -> Result<()> {
        match state.phase() {
            Phase::Open => Ok(()),
            Phase::Destroying => Err(GroupError::Destroying { group: self.name.clone() }.into()),
            Phase::Ended => Err(self.destroyed()),
        }
    }

    #[cold]
    fn destroyed(&self) -> Error {
        GroupError::GroupDestroyed { group: self.name.clone() }.into()
    }

    /// The same for who began before: such calls end as soon as it is being destroyed.
    pub(crate) fn check_goes_on(&self, state: &State) -> Result<()> {
        match state.phase() {
            Phase::Open => Ok(()),
            Phase::Destroying | Phase::Ended => Err(self.destroyed()),
        }
    }

    /// Waits until the group has started.
    pub(crate) fn wait_started(&self, deadline_ns: Option<u64>) -> Result<()> {
        let has_started = self.with(|mirror| {
            self.check_open(&mirror.state)?;
            Ok(mirror.state.has_started())
        })?;
        if has_started {
            return Ok(());
        }
        let waited = self.wait(deadline_ns, nobody, |mirror| {
            self.check_goes_on(&mirror.state)?;
            Ok(mirror.state.has_started().then_some(()))
        });
        match waited {
            Err(Error { kind: ErrorKind::TimedOut(_), .. }) => Err(self.minimum_not_reached()?),
            other => other,
        }
    }

    pub(super) fn minimum_not_reached(&self) -> Result<Error> {
        let have = self.with(|mirror| Ok(mirror.state.members().len() as u32))?;
        let (group, want) = (self.name.clone(), self.options.rules().minimum);
        Ok(GroupError::MinimumNotReached { group, have, want }.into())
    }

    pub(crate) fn no_member(&self, id: u32) -> Error {
        GroupError::NoMember { group: self.name.clone(), member: id }.into()
    }

    pub(crate) fn broken(&self, what: &'static str) -> Error {
        GroupError::Broken { group: self.name.clone(), what }.into()
    }

    /// Folds what was accepted since.
    #[inline]
    pub(super) fn fold(&self, mirror: &mut Mirror) -> Result<()> {
        match self.log.look(mirror.state.position()) {
            Look::Empty => Ok(()),
            _ => self.fold_all(mirror),
        }
    }

    fn fold_all(&self, mirror: &mut Mirror) -> Result<()> {
        let mut reloads = 0;
        loop {
            let place = mirror.state.position();
            match self.log.look(place) {
                Look::Empty => return Ok(()),
                Look::There(word) => match EntryWord::from_word(word) {
                    Some(entry) => self.apply(mirror, place, entry, Whose::Others).map(drop)?,
                    None => mirror.state.skip(),
                },
                Look::Overwritten => {
                    reloads += 1;
                    self.reload(mirror, reloads)?;
                }
            }
        }
    }

    /// Folds the entry that stands at a place.
    fn apply(
        &self,
        mirror: &mut Mirror,
        place: u64,
        word: EntryWord,
        whose: Whose<'_>,
    ) -> Result<Outcome> {
        let entry = match word {
            EntryWord::Join { cell }
            | EntryWord::Serve { cell }
            | EntryWord::Asked { cell, .. } => {
                let described = self.log.described(cell).map(|cell| cell.words);
                // Cells of entries that a snapshot covers may be another's by now; but who claimed one
                // has it until it says so.
                if matches!(whose, Whose::Others) && self.log.snapshot_place() > place {
                    self.reload(mirror, 0)?;
                    return Ok(Outcome::Nothing);
                }
                mirror.tended = None;
                match described.and_then(|words| detailed(word, words)) {
                    Some(entry) => entry,
                    None => {
                        mirror.state.skip();
                        return Ok(Outcome::Nothing);
                    }
                }
            }
            EntryWord::Hold { .. } => {
                mirror.tended = None;
                Entry::Plain(word)
            }
            plain => Entry::Plain(plain),
        };
        let outcome = mirror.state.apply(entry);
        match (outcome, word, entry) {
            (Outcome::Broadcast(number), EntryWord::Broadcast { cell, .. }, _) => {
                if let Whose::Own(Some(claim)) = whose {
                    claim.set_message(number);
                }
                if self.desk.is_some() {
                    self.answer_broadcast(number, cell);
                }
                self.log.put_broadcast(number, cell);
            }
            // Whoever has the seat now is asked for it.
            (Outcome::Stale, ..) => {}
            (outcome, _, Entry::Asked(asking, _)) => self.answer(&asking, Answer::of(outcome)),
            _ => {}
        }
        Ok(outcome)
    }

    /// Says what came of a request.
    fn answer(&self, asking: &Asking, answer: Answer) {
        let Asking { slot, incarnation, number, .. } = *asking;
        self.log.answer(slot, incarnation, number, answer.to_bits());
    }

    /// Says that a broadcast which was asked for was accepted. Its cell may be another's only when it
    /// is among the broadcasts; then whoever put it there has said so.
    fn answer_broadcast(&self, number: u64, cell: u32) {
        let described = self.log.described(cell);
        if let Some(described) = described
            && described.words[2] & REQUEST_BIT != 0
            && !self.log.has_broadcast(number)
        {
            let [who, _, request] = described.words;
            let (slot, incarnation) = (who as u32, (who >> 32) as u32);
            let answer = Answer::Accepted(number as u32).to_bits();
            self.log.answer(slot, incarnation, request as u32, answer);
        }
    }

    /// Begins again from the newest snapshot.
    fn reload(&self, mirror: &mut Mirror, attempt: u32) -> Result<()> {
        let words = self.log.snapshot();
        let state = words.and_then(|words| State::from_words(&words));
        let state = state.filter(|state| {
            state.position() > mirror.state.position() && state.rules() == mirror.state.rules()
        });
        match state {
            Some(state) if attempt < ATTEMPTS => {
                mirror.state = state;
                mirror.tended = None;
                Ok(())
            }
            _ => Err(self.broken("its snapshot is none")),
        }
    }

    /// Says of members and of those who are held that they are gone, once somebody is. A server that is
    /// stopped loses its seat: whoever asked it asks the next one.
    #[inline]
    fn tend(&self, mirror: &mut Mirror) -> Result<()> {
        let generation = self.shared.segment.membership_generation();
        match mirror.tended == Some(generation) {
            true => Ok(()),
            false => self.say_who_is_gone(mirror, generation),
        }
    }

    #[cold]
    fn say_who_is_gone(&self, mirror: &mut Mirror, generation: u32) -> Result<()> {
        mirror.tended = Some(generation);
        let gone = |slot, incarnation| self.how_gone(slot, incarnation);
        let members = mirror.state.members().iter().filter_map(|member| {
            let how = gone(member.slot, member.incarnation)?;
            Some(match how {
                Gone::Left => EntryWord::Departed(member.seat()),
                _ => EntryWord::Died(member.seat()),
            })
        });
        let held = mirror.state.held().iter().filter(|held| self.is_gone(held));
        let held = held.map(|held| EntryWord::Release { ticket: held.ticket });
        let server = mirror.state.server().filter(|Server { who, .. }| {
            gone(who.slot, who.incarnation).is_some() || self.is_stopped(who.slot)
        });
        let vacate =
            server.map(|server| EntryWord::Vacate { epoch: EntryWord::low_bits(server.epoch) });
        for entry in members.chain(held).chain(vacate).collect::<Vec<_>>() {
            self.append(mirror, entry, |_| Ok(()))?;
        }
        Ok(())
    }

    fn is_gone(&self, held: &Held) -> bool {
        let record = self.shared.segment.slot_record(held.slot);
        record.state.is_gone() || !held.is_of(record.incarnation)
    }

    /// Whether the process of a slot is stopped. A server is a guest of the job: its process's first slot
    /// says so.
    fn is_stopped(&self, slot: u32) -> bool {
        let segment = &self.shared.segment;
        let pid = segment.slot_record(slot).pid;
        let mut records = (0..segment.plan().slots()).map(|slot| segment.slot_record(slot));
        records.any(|it| it.state == SlotState::Alive && it.pid == pid && it.stopped)
    }

    fn how_gone(&self, slot: u32, incarnation: u32) -> Option<Gone> {
        let record = self.shared.segment.slot_record(slot);
        match record.state {
            _ if record.incarnation != incarnation => Some(Gone::Died),
            SlotState::Departed => Some(Gone::Left),
            SlotState::Dead => Some(Gone::Died),
            _ => None,
        }
    }

    /// Has the log go round: nobody needs what is covered by a snapshot.
    fn make_room(&self, mirror: &Mirror) -> Result<()> {
        let place = mirror.state.position();
        if place.saturating_sub(self.log.snapshot_place()) < LOG_ENTRIES / 2 {
            return Ok(());
        }
        self.snapshot(mirror);
        match self.log.has_room(place) {
            true => Ok(()),
            false => Err(self.broken("no buffer of its snapshots is free")),
        }
    }

    fn snapshot(&self, mirror: &Mirror) {
        self.log.set_snapshot(mirror.state.position(), &mirror.state.to_words());
    }

    fn look_who_has_taken(&self, mirror: &mut Mirror) {
        mirror.passed =
            Passed { messages: self.least_taken(mirror), entries: self.log.snapshot_place() };
    }

    /// The first message that some member has not taken.
    fn least_taken(&self, mirror: &Mirror) -> u64 {
        let taken = mirror.state.members().iter().map(|member| self.taken(mirror, member));
        taken.min().unwrap_or(mirror.state.broadcasts()).min(mirror.state.broadcasts())
    }

    /// How many broadcasts a member has taken, counted as their numbers.
    pub(crate) fn taken(&self, mirror: &Mirror, member: &MemberRecord) -> u64 {
        let taken = self.log.taken(member.id, member.seat().stamp);
        let least = member.first.min(mirror.state.broadcasts());
        taken.unwrap_or(least).clamp(least, mirror.state.broadcasts())
    }

    /// The cells of entries that no snapshot covers.
    fn entries_with_cells(&self, mirror: &Mirror) -> Vec<(u64, u32)> {
        let places = self.log.snapshot_place()..mirror.state.position();
        let entry = |place| match self.log.look(place) {
            Look::There(word) => match EntryWord::from_word(word)? {
                EntryWord::Join { cell }
                | EntryWord::Serve { cell }
                | EntryWord::Asked { cell, .. } => Some((place, cell)),
                _ => None,
            },
            _ => None,
        };
        places.take(LOG_ENTRIES as usize).filter_map(entry).collect()
    }

    /// Wakes those for whom an entry may change something.
    #[inline]
    fn tell(&self, mirror: &Mirror, entry: EntryWord, outcome: Outcome) {
        match (entry, outcome) {
            (EntryWord::Broadcast { .. }, Outcome::Broadcast(_)) if self.desk.is_none() => {
                self.wake(WaitsFor::Messages);
            }
            // Who has asked the server waits for that; members find what nobody sends on.
            (EntryWord::Vacate { .. }, Outcome::Vacated) => {
                self.wake(WaitsFor::Messages);
                self.wake(WaitsFor::Others);
            }
            (EntryWord::Sync(_), Outcome::Come(round)) if mirror.state.ended(round).is_none() => {}
            (_, Outcome::Nothing | Outcome::Stale) => {}
            _ => self.wake(WaitsFor::Others),
        }
        if mirror.state.phase() != Phase::Open {
            self.wake(WaitsFor::Messages);
            self.wake(WaitsFor::Others);
        }
    }

    pub(super) fn wake(&self, what: WaitsFor) {
        self.log.wake(what);
        if self.mirror.mode() == ThreadMode::Multiple {
            self.log.wake_own();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Ok(mut mirror) = self.mirror.enter()
            && let Some(aside) = mirror.aside.take()
        {
            drop(self.log.take_up(aside));
        }
    }
}

/// Whether an entry changes of whom a synchronisation is, or ends the group.
fn changes_who_comes(entry: EntryWord) -> bool {
    matches!(
        entry,
        EntryWord::Join { .. }
            | EntryWord::Leave(_)
            | EntryWord::Died(_)
            | EntryWord::Departed(_)
            | EntryWord::Evict(_)
            | EntryWord::Destroy
            | EntryWord::End
    )
}

/// A wait for whoever it may be.
pub(crate) fn nobody(_: &Mirror) -> Option<u32> {
    None
}

/// An entry with the details that its cell has; none for details that are none.
fn detailed(word: EntryWord, words: [u64; 3]) -> Option<Entry> {
    let [process, context, place] = words;
    let (slot, incarnation, context) = (process as u32, (process >> 32) as u32, context as u32);
    Some(match word {
        EntryWord::Join { .. } => Entry::Join(Joining { slot, incarnation, context, place }),
        EntryWord::Serve { .. } => Entry::Serve(Serving { slot, incarnation, context }),
        EntryWord::Asked { by, .. } => Entry::Asked(Asking::from_words(words)?, by),
        _ => return None,
    })
}

/// Says that a thread waits, for as long as it does.
pub(super) struct Waits<'a> {
    log: &'a GroupLog,
    what: WaitsFor,
}

impl<'a> Waits<'a> {
    pub(super) fn begin(log: &'a GroupLog, what: WaitsFor) -> Self {
        log.waits(what, true);
        Self { log, what }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.log.waits(self.what, false);
    }
}
