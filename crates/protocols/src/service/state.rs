//! The state of a group after some entries of its log.

use landeck_wire::SegmentId;

use super::changes::{Changes, Gone, MemberChange, View};
use super::cut::{Cut, CutMember};
use super::entry::{Ask, Asking, GroupEntry, Joining, Party, Seat, Serving, WaitingSender};
use super::member::{Coming, MemberRecord};
use super::{HELD_MAX, HOSTS_MAX, MEMBERS_MAX};

/// The properties that are fixed when a group is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The number of members that it needs to start.
    pub minimum: u32,
    /// Whether it outlives its last member.
    pub is_persistent: bool,
}

/// The life of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It can be used.
    #[default]
    Open,
    /// It accepts nothing new, and lets held broadcasts finish.
    Destroying,
    /// It has ended: it was destroyed, or its last member has left.
    Ended,
}

/// The holder of the server's seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// The process, and its mailbox for requests.
    pub who: Serving,
    /// The number of this holder, counted from 1.
    pub epoch: u64,
    /// The number of the first broadcast that it sends on. Members find earlier ones by themselves.
    pub first: u64,
}

/// The effect of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// None: it came too late, or repeats another entry.
    Nothing,
    /// None: it was written by a server that no longer has the seat.
    Stale,
    /// A message with this number is in the mailboxes of all members.
    Broadcast(u64),
    /// There is a new member.
    Joined(u32),
    /// The mailbox is already a member, with this number.
    AlreadyMember(u32),
    /// The group has the largest possible number of members or held broadcasts.
    Full,
    /// The group no longer accepts such entries.
    Closed,
    /// A member has gone.
    Removed(u32, Gone),
    /// All members of a host have gone with it.
    HostRemoved,
    /// A member has come to the round with this number.
    Come(u64),
    /// A broadcast is held, with this ticket.
    Held(u64),
    /// It is no longer held.
    Released,
    /// The group is being destroyed, or has ended by now.
    Destroying,
    /// A cut was made.
    Cut,
    /// The server of this epoch has its seat.
    Seated(u64),
    /// The seat is free.
    Vacated,
    /// The host has this number in the group, now or since an earlier entry.
    HostNumbered(u16),
}

/// The state of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub(super) rules: Rules,
    pub(super) position: u64,
    pub(super) broadcasts: u64,
    pub(super) phase: Phase,
    pub(super) has_started: bool,
    /// The hosts, in the order of their numbers.
    pub(super) hosts: Vec<SegmentId>,
    pub(super) view: u64,
    pub(super) changes: Changes,
    /// The members, in the order of their numbers.
    pub(super) members: Vec<MemberRecord>,
    pub(super) is_syncing: bool,
    pub(super) rounds: u64,
    /// The first member that has died since the last complete round, to be told at the end of the present or next one.
    /// `died_last` is that of the last complete round.
    pub(super) died: Option<u32>,
    pub(super) died_last: Option<u32>,
    pub(super) held: Vec<WaitingSender>,
    pub(super) cuts_made: u64,
    /// The first member of the last cut whose process has died.
    pub(super) died_of_cut: Option<u32>,
    /// The last two cuts that changed something, the older one first.
    pub(super) cuts: [Cut; 2],
    pub(super) server: Option<Server>,
    /// The number of servers so far.
    pub(super) epochs: u64,
    /// The number of broadcasts when the last server had ended.
    pub(super) unserved: u64,
}

impl State {
    /// Creates the state of a new group of a host, which has number 0.
    pub fn new(rules: Rules, home: SegmentId) -> Self {
        Self {
            rules,
            position: 0,
            broadcasts: 0,
            phase: Phase::Open,
            has_started: rules.minimum == 0,
            hosts: vec![home],
            view: 0,
            changes: Changes::default(),
            members: Vec::new(),
            is_syncing: false,
            rounds: 0,
            died: None,
            died_last: None,
            held: Vec::new(),
            cuts_made: 0,
            died_of_cut: None,
            cuts: Default::default(),
            server: None,
            epochs: 0,
            unserved: 0,
        }
    }

    /// The properties that were fixed at its creation.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// The number of entries so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The number of broadcasts so far.
    pub fn broadcasts(&self) -> u64 {
        self.broadcasts
    }

    /// The phase of the group's life.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether the group ever had as many members as it needs.
    pub fn has_started(&self) -> bool {
        self.has_started
    }

    /// The hosts that take part, in the order of their numbers. The first one is that of the log.
    pub fn hosts(&self) -> &[SegmentId] {
        &self.hosts
    }

    /// The number of a host.
    pub fn host_number(&self, host: SegmentId) -> Option<u16> {
        self.hosts.iter().position(|it| *it == host).map(|number| number as u16)
    }

    /// The number of the view, which every change of the members increments.
    pub fn view(&self) -> u64 {
        self.view
    }

    /// The first view after that with a number; none if there is no later one.
    pub fn view_after(&self, number: u64) -> Option<View> {
        let members = self.members.iter().map(MemberRecord::changed).collect();
        self.changes.view_after(number, (self.view, members))
    }

    /// The number of the view that a member made when it joined; none if that is forgotten.
    pub fn view_of_joining(&self, seat: Seat) -> Option<u64> {
        self.changes.view_of_joining(seat)
    }

    /// The members, in the order of their numbers.
    pub fn members(&self) -> &[MemberRecord] {
        &self.members
    }

    /// The member with this seat, if there is one.
    pub fn member(&self, seat: Seat) -> Option<&MemberRecord> {
        self.place(seat).map(|place| &self.members[place])
    }

    /// The processes that wait with a broadcast.
    pub fn held(&self) -> &[WaitingSender] {
        &self.held
    }

    /// Whether a round of synchronisation goes on.
    pub fn is_syncing(&self) -> bool {
        self.is_syncing
    }

    /// Whether a death is to be told at the end of the present or next round.
    pub fn has_untold_death(&self) -> bool {
        self.died.is_some()
    }

    /// The end of the round with this number: `None` while it goes on, otherwise the member that died in it or since the
    /// one before, if any.
    pub fn ended(&self, round: u64) -> Option<Option<u32>> {
        (self.rounds > round).then_some(if self.rounds == round + 1 {
            self.died_last
        } else {
            None
        })
    }

    /// The number of complete rounds, which is also the number of the present or next one.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The members that the present round waits for.
    pub fn awaited(&self) -> impl Iterator<Item = u32> + '_ {
        self.members.iter().filter(|member| member.sync == Coming::Awaited).map(|member| member.id)
    }

    /// The number of the last cut.
    pub fn cuts_made(&self) -> u64 {
        self.cuts_made
    }

    /// The cut that determines the members of the collective operation with this number; `None` if it is not made yet,
    /// or too old to be known.
    pub fn cut(&self, number: u64) -> Option<&Cut> {
        let is_made = number <= self.cuts_made;
        self.cuts.iter().rev().find(|cut| is_made && cut.number != 0 && cut.number <= number)
    }

    /// The holder of the server's seat.
    pub fn server(&self) -> Option<Server> {
        self.server
    }

    /// The number of servers so far, which is the epoch of the last one.
    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    /// The number up to which members find broadcasts by themselves, because the server that was to send them on has
    /// ended.
    pub fn unserved(&self) -> u64 {
        self.unserved
    }

    /// Folds the next entry.
    pub fn apply(&mut self, entry: GroupEntry) -> Outcome {
        let at = self.position;
        self.position += 1;
        match entry {
            GroupEntry::Broadcast { by: Some(epoch), .. } if !self.is_served(epoch) => {
                Outcome::Stale
            }
            GroupEntry::Broadcast { was_held, .. } => self.broadcast(was_held),
            GroupEntry::Asked(_, epoch) if !self.is_served(epoch) => Outcome::Stale,
            GroupEntry::Asked(asking, _) => self.apply_asked(asking, at),
            GroupEntry::Host(host) => self.add_host(host),
            GroupEntry::HostGone(host) => self.remove_host(host),
            GroupEntry::Join(joining) => self.join(joining, at),
            GroupEntry::Leave(seat) | GroupEntry::Departed(seat) => self.remove(seat, Gone::Left),
            GroupEntry::Died(seat) => self.remove(seat, Gone::Died),
            GroupEntry::Evict(seat) => self.remove(seat, Gone::Evicted),
            GroupEntry::Sync(seat) => self.come(seat),
            GroupEntry::Hold(process) => self.hold(process, at),
            GroupEntry::Release { ticket } => self.release(ticket),
            GroupEntry::Destroy => self.destroy(),
            GroupEntry::End => self.end(),
            GroupEntry::Cut { number } => self.make_cut(number),
            GroupEntry::Serve(who) => self.serve(who),
            GroupEntry::Vacate { epoch } => self.vacate(epoch),
        }
    }

    /// Folds an invalid entry: it counts, and changes nothing.
    pub fn skip(&mut self) {
        self.position += 1;
    }

    fn apply_asked(&mut self, Asking { process, what, .. }: Asking, at: u64) -> Outcome {
        match what {
            Ask::Join { context, place } => self.join(Joining { process, context, place }, at),
            Ask::Leave { seat, .. } => self.remove(seat, Gone::Left),
            Ask::Sync(seat) => self.come(seat),
            Ask::Destroy => self.destroy(),
            Ask::Hold => self.hold(process, at),
            Ask::Release { ticket } => self.release(ticket),
            Ask::Evict(seat) => self.remove(seat, Gone::Evicted),
            Ask::End => self.end(),
            Ask::Cut { number } => self.make_cut(number),
        }
    }

    fn add_host(&mut self, host: SegmentId) -> Outcome {
        match self.host_number(host) {
            Some(number) => Outcome::HostNumbered(number),
            None if self.hosts.len() >= HOSTS_MAX => Outcome::Full,
            None => {
                self.hosts.push(host);
                Outcome::HostNumbered(self.hosts.len() as u16 - 1)
            }
        }
    }

    fn broadcast(&mut self, was_held: bool) -> Outcome {
        let finishes = self.phase == Phase::Destroying && was_held && !self.held.is_empty();
        if !(self.phase == Phase::Open || finishes) || !self.has_started {
            return Outcome::Closed;
        }
        let number = self.broadcasts;
        self.broadcasts += 1;
        Outcome::Broadcast(number)
    }

    fn join(&mut self, joining: Joining, at: u64) -> Outcome {
        let Joining { process, context, place } = joining;
        if self.phase != Phase::Open {
            return Outcome::Closed;
        }
        let is_same =
            |member: &&MemberRecord| (member.process, member.context) == (process, context);
        if let Some(member) = self.members.iter().find(is_same) {
            return Outcome::AlreadyMember(member.id);
        }
        if self.members.len() >= MEMBERS_MAX {
            return Outcome::Full;
        }
        let free = self.members.iter().zip(0..).find(|(member, number)| member.id != *number);
        let id = free.map_or(self.members.len() as u32, |(_, number)| number);
        let (first, sync) = (self.broadcasts, Coming::Apart);
        let member = MemberRecord { id, process, context, place, joined_at: at, first, sync };
        self.members.insert(id as usize, member);
        self.view += 1;
        self.note_change(&member, None);
        self.has_started |= self.members.len() >= self.rules.minimum as usize;
        Outcome::Joined(id)
    }

    fn remove(&mut self, seat: Seat, how: Gone) -> Outcome {
        let Some(place) = self.place(seat) else { return Outcome::Nothing };
        self.view += 1;
        let id = self.take_out(place, how);
        self.end_if_left();
        Outcome::Removed(id, how)
    }

    fn remove_host(&mut self, host: u16) -> Outcome {
        self.held.retain(|held| held.process.host != host);
        let is_on_it = |member: &MemberRecord| member.process.host == host;
        let is_changed = self.members.iter().any(is_on_it);
        self.view += u64::from(is_changed);
        while let Some(place) = self.members.iter().position(is_on_it) {
            self.take_out(place, Gone::HostLost);
        }
        if is_changed {
            self.end_if_left();
        }
        self.end_if_drained();
        if is_changed { Outcome::HostRemoved } else { Outcome::Nothing }
    }

    /// Removes the member at a place, in a view that is counted already.
    fn take_out(&mut self, place: usize, how: Gone) -> u32 {
        let member = self.members.remove(place);
        self.note_change(&member, Some(how));
        if matches!(how, Gone::Died | Gone::HostLost) {
            self.died = self.died.or(Some(member.id));
            if self.cuts[1].has(member.seat()) {
                self.died_of_cut = self.died_of_cut.or(Some(member.id));
            }
        }
        member.id
    }

    fn note_change(&mut self, member: &MemberRecord, gone: Option<Gone>) {
        let (view, after, member) = (self.view, self.broadcasts, member.changed());
        self.changes.add(MemberChange { view, after, gone, member });
    }

    /// Ends what members that have gone held up: the round, or the group.
    fn end_if_left(&mut self) {
        self.end_round();
        if self.members.is_empty() {
            self.died = None; // no member is left to be told
            if !self.rules.is_persistent && self.phase == Phase::Open {
                self.phase = Phase::Ended;
                self.held.clear();
            }
        }
    }

    fn come(&mut self, seat: Seat) -> Outcome {
        let Some(place) = self.place(seat) else { return Outcome::Nothing };
        if self.phase != Phase::Open || !self.has_started {
            return Outcome::Closed;
        }
        if !self.is_syncing {
            self.begin_round();
        }
        let sync = &mut self.members[place].sync;
        let round = match sync {
            Coming::Awaited | Coming::Come => {
                *sync = Coming::Come;
                self.rounds
            }
            Coming::Apart | Coming::ComeToNext => {
                *sync = Coming::ComeToNext;
                self.rounds + 1
            }
        };
        self.end_round();
        Outcome::Come(round)
    }

    fn begin_round(&mut self) {
        self.is_syncing = true;
        for member in &mut self.members {
            let has_come = member.sync == Coming::ComeToNext;
            member.sync = if has_come { Coming::Come } else { Coming::Awaited };
        }
    }

    /// Ends the round if it waits for no member; and the next one as well, if all have already come to that.
    fn end_round(&mut self) {
        while self.is_syncing && self.awaited().next().is_none() {
            self.rounds += 1;
            self.died_last = self.died.take();
            self.is_syncing = false;
            let mut is_next_begun = false;
            for member in &mut self.members {
                match member.sync {
                    Coming::ComeToNext => is_next_begun = true,
                    _ => member.sync = Coming::Apart,
                }
            }
            if is_next_begun {
                self.begin_round();
            }
        }
    }

    fn hold(&mut self, process: Party, ticket: u64) -> Outcome {
        if self.phase != Phase::Open {
            return Outcome::Closed;
        }
        if self.held.len() >= HELD_MAX {
            return Outcome::Full;
        }
        self.held.push(WaitingSender { ticket, process });
        Outcome::Held(ticket)
    }

    fn release(&mut self, ticket: u64) -> Outcome {
        let Some(place) = self.held.iter().position(|held| held.ticket == ticket) else {
            return Outcome::Nothing;
        };
        self.held.swap_remove(place);
        self.end_if_drained();
        Outcome::Released
    }

    fn destroy(&mut self) -> Outcome {
        if self.phase != Phase::Open {
            return Outcome::Closed;
        }
        self.phase = Phase::Destroying;
        self.end_if_drained();
        Outcome::Destroying
    }

    fn end(&mut self) -> Outcome {
        if self.phase != Phase::Destroying {
            return Outcome::Nothing;
        }
        self.held.clear();
        self.phase = Phase::Ended;
        Outcome::Destroying
    }

    fn end_if_drained(&mut self) {
        if self.phase == Phase::Destroying && self.held.is_empty() {
            self.phase = Phase::Ended;
        }
    }

    fn make_cut(&mut self, number: u64) -> Outcome {
        let next = self.cuts_made + 1;
        if next != number || self.phase != Phase::Open || !self.has_started {
            return Outcome::Nothing;
        }
        self.cuts_made = next;
        let record = |member: &MemberRecord| {
            let MemberRecord { id, process, joined_at, .. } = *member;
            CutMember { id, process, joined_at }
        };
        if self.cuts[1].number == 0 || self.cuts[1].view != self.view {
            let members = self.members.iter().map(record).collect();
            self.cuts.swap(0, 1);
            let died = self.died_of_cut.take();
            self.cuts[1] = Cut { number: next, view: self.view, died, members };
        }
        Outcome::Cut
    }

    fn serve(&mut self, who: Serving) -> Outcome {
        if self.server.is_some() || self.phase == Phase::Ended {
            return Outcome::Nothing;
        }
        self.epochs += 1;
        self.server = Some(Server { who, epoch: self.epochs, first: self.broadcasts });
        self.unserved = self.broadcasts;
        Outcome::Seated(self.epochs)
    }

    /// Whether the server of this epoch holds the seat.
    fn is_served(&self, epoch: u64) -> bool {
        self.server.is_some_and(|server| server.epoch == epoch)
    }

    fn vacate(&mut self, epoch: u64) -> Outcome {
        match self.server {
            Some(server) if server.epoch == epoch => {
                self.server = None;
                self.unserved = self.broadcasts;
                Outcome::Vacated
            }
            _ => Outcome::Nothing,
        }
    }

    fn place(&self, seat: Seat) -> Option<usize> {
        // Numbers are dense except for the gaps of members that have gone.
        let place = self.members.binary_search_by_key(&seat.id, |member| member.id).ok()?;
        (self.members[place].seat() == seat).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Asking;
    use super::*;

    fn group(minimum: u32) -> State {
        State::new(Rules { minimum, is_persistent: false }, SegmentId(9))
    }

    const fn process(slot: u32) -> Party {
        Party { host: 0, slot: slot as u16, incarnation: 1 }
    }

    fn joining(slot: u32) -> GroupEntry {
        GroupEntry::Join(Joining { process: process(slot), context: slot + 100, place: 64 })
    }

    fn seat(state: &State, id: u32) -> Seat {
        state.members().iter().find(|member| member.id == id).unwrap().seat()
    }

    fn with(minimum: u32, members: u32) -> State {
        let mut state = group(minimum);
        for slot in 0..members {
            assert_eq!(state.apply(joining(slot)), Outcome::Joined(slot));
        }
        state
    }

    fn sync(state: &mut State, id: u32) -> Outcome {
        let entry = GroupEntry::Sync(seat(state, id));
        state.apply(entry)
    }

    const MESSAGE: GroupEntry = message(false);
    const HOLD: GroupEntry = GroupEntry::Hold(process(5));

    const fn message(was_held: bool) -> GroupEntry {
        GroupEntry::Broadcast { was_held, by: None }
    }

    #[test]
    fn a_member_has_the_smallest_free_number_and_keeps_it() {
        let mut state = with(0, 4);
        let left = seat(&state, 1);
        assert_eq!(state.apply(GroupEntry::Leave(left)), Outcome::Removed(1, Gone::Left));
        assert_eq!(state.members().iter().map(|it| it.id).collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(state.apply(joining(9)), Outcome::Joined(1));
        assert_eq!(state.apply(joining(10)), Outcome::Joined(4));
        assert_eq!(state.apply(GroupEntry::Leave(left)), Outcome::Nothing, "another has it");
        assert_eq!(state.view(), 7);
    }

    #[test]
    fn a_host_has_one_number() {
        let mut state = group(0);
        assert_eq!(state.apply(GroupEntry::Host(SegmentId(9))), Outcome::HostNumbered(0));
        for _ in 0..2 {
            assert_eq!(state.apply(GroupEntry::Host(SegmentId(5))), Outcome::HostNumbered(1));
        }
        assert_eq!(state.hosts(), [SegmentId(9), SegmentId(5)]);
        assert_eq!(
            (state.host_number(SegmentId(5)), state.host_number(SegmentId(6))),
            (Some(1), None)
        );
        for host in 100..100 + HOSTS_MAX as u64 - 2 {
            assert!(matches!(
                state.apply(GroupEntry::Host(SegmentId(host))),
                Outcome::HostNumbered(_)
            ));
        }
        assert_eq!(state.apply(GroupEntry::Host(SegmentId(1))), Outcome::Full);
        assert_eq!(state.apply(GroupEntry::Host(SegmentId(100))), Outcome::HostNumbered(2));
    }

    #[test]
    fn one_mailbox_joins_once() {
        let mut state = with(0, 2);
        assert_eq!(state.apply(joining(1)), Outcome::AlreadyMember(1));
        assert_eq!((state.members().len(), state.view()), (2, 2));
    }

    #[test]
    fn the_minimum_is_a_latch() {
        let mut state = with(2, 1);
        assert!(!state.has_started());
        assert_eq!(state.apply(MESSAGE), Outcome::Closed);
        assert_eq!(sync(&mut state, 0), Outcome::Closed);
        assert_eq!(state.apply(GroupEntry::Cut { number: 1 }), Outcome::Nothing);
        state.apply(joining(1));
        assert!(state.has_started());
        let left = seat(&state, 0);
        state.apply(GroupEntry::Leave(left));
        assert!(state.has_started(), "later falls change nothing");
        assert_eq!(state.apply(MESSAGE), Outcome::Broadcast(0));
    }

    #[test]
    fn a_round_is_over_when_all_have_come_and_who_joined_meanwhile_is_in_the_next() {
        let mut state = with(0, 2);
        assert_eq!(sync(&mut state, 0), Outcome::Come(0));
        state.apply(joining(2));
        assert_eq!(sync(&mut state, 2), Outcome::Come(1), "it belongs to the next");
        assert_eq!(sync(&mut state, 0), Outcome::Come(0), "said twice, it counts once");
        assert_eq!(state.ended(0), None);
        assert_eq!(sync(&mut state, 1), Outcome::Come(0));
        assert_eq!((state.ended(0), state.ended(1)), (Some(None), None));
        assert_eq!(state.awaited().collect::<Vec<_>>(), [0, 1]);
        sync(&mut state, 1);
        assert_eq!(sync(&mut state, 0), Outcome::Come(1));
        assert_eq!(state.ended(1), Some(None));
    }

    #[test]
    fn a_leave_counts_as_come_and_a_death_is_told_to_all_who_took_part() {
        let mut state = with(0, 4);
        sync(&mut state, 0);
        let [left, died] = [1, 2].map(|id| seat(&state, id));
        state.apply(GroupEntry::Leave(left));
        state.apply(GroupEntry::Died(died));
        assert_eq!(state.apply(GroupEntry::Died(died)), Outcome::Nothing);
        assert_eq!(state.ended(0), None, "one is to come yet");
        sync(&mut state, 3);
        assert_eq!(state.ended(0), Some(Some(2)));
        sync(&mut state, 0);
        sync(&mut state, 3);
        assert_eq!(state.ended(1), Some(None), "the next one is well again");
    }

    #[test]
    fn a_round_ends_with_the_last_who_comes_leaves_or_dies() {
        for goes in [GroupEntry::Leave, GroupEntry::Evict, GroupEntry::Died] {
            let mut state = with(0, 2);
            sync(&mut state, 0);
            let last = goes(seat(&state, 1));
            let died = matches!(last, GroupEntry::Died(_)).then_some(1);
            state.apply(last);
            assert_eq!(state.ended(0), Some(died), "nobody is waited for any more");
            assert_eq!(sync(&mut state, 0), Outcome::Come(1), "and alone it has come to the next");
            assert_eq!(state.ended(1), Some(None));
        }
    }

    #[test]
    fn the_first_to_die_is_told_and_all_of_them_once() {
        let mut state = with(0, 3);
        sync(&mut state, 0);
        state.apply(joining(3));
        for dies in [3, 2, 1] {
            let died = seat(&state, dies);
            state.apply(GroupEntry::Died(died));
        }
        assert_eq!(state.ended(0), Some(Some(3)));
        sync(&mut state, 0);
        assert_eq!(state.ended(1), Some(None));
    }

    #[test]
    fn a_death_between_two_rounds_is_told_at_the_end_of_the_next() {
        let mut state = with(0, 3);
        for id in 0..3 {
            sync(&mut state, id);
        }
        assert_eq!(state.ended(0), Some(None));
        let died = seat(&state, 1);
        state.apply(GroupEntry::Died(died));
        assert!(state.has_untold_death() && !state.is_syncing());
        assert_eq!(state.ended(0), Some(None), "the last one is over");
        sync(&mut state, 0);
        sync(&mut state, 2);
        assert_eq!(state.ended(1), Some(Some(1)));
        assert!(!state.has_untold_death());
    }

    #[test]
    fn a_death_that_no_member_outlived_is_not_told() {
        let mut state = State::new(Rules { minimum: 1, is_persistent: true }, SegmentId(9));
        state.apply(joining(0));
        let died = seat(&state, 0);
        state.apply(GroupEntry::Died(died));
        state.apply(joining(1));
        sync(&mut state, 0);
        assert_eq!(state.ended(0), Some(None));
    }

    #[test]
    fn the_death_of_a_member_that_had_come_is_told_as_well() {
        let mut state = with(0, 2);
        sync(&mut state, 0);
        let died = seat(&state, 0);
        state.apply(GroupEntry::Died(died));
        sync(&mut state, 1);
        assert_eq!(state.ended(0), Some(Some(0)));
    }

    #[test]
    fn the_last_leave_ends_a_group_unless_it_is_persistent() {
        for is_persistent in [false, true] {
            let mut state = State::new(Rules { minimum: 1, is_persistent }, SegmentId(9));
            assert_eq!(state.phase(), Phase::Open, "nobody has to be a member at first");
            state.apply(joining(0));
            let last = seat(&state, 0);
            state.apply(GroupEntry::Died(last));
            let phase = if is_persistent { Phase::Open } else { Phase::Ended };
            assert_eq!(state.phase(), phase);
            let again = state.apply(joining(1));
            assert_eq!(again == Outcome::Joined(0), is_persistent);
        }
    }

    #[test]
    fn destruction_lets_those_finish_who_are_held_and_nobody_else() {
        let mut state = with(0, 2);
        let (Outcome::Held(one), Outcome::Held(other)) = (state.apply(HOLD), state.apply(HOLD))
        else {
            panic!("both are held");
        };
        assert_eq!(state.apply(GroupEntry::Destroy), Outcome::Destroying);
        assert_eq!(state.phase(), Phase::Destroying);
        assert_eq!(state.apply(GroupEntry::Destroy), Outcome::Closed);
        for refused in [MESSAGE, joining(7), HOLD] {
            assert_eq!(state.apply(refused), Outcome::Closed);
        }
        assert_eq!(sync(&mut state, 0), Outcome::Closed);
        assert_eq!(state.apply(message(true)), Outcome::Broadcast(0));
        state.apply(GroupEntry::Release { ticket: one });
        assert_eq!(state.phase(), Phase::Destroying, "the other one is held");
        state.apply(GroupEntry::Release { ticket: other });
        assert_eq!(state.phase(), Phase::Ended);
        assert_eq!(state.apply(message(true)), Outcome::Closed);
    }

    #[test]
    fn destruction_ends_whoever_is_held_when_that_is_said() {
        let mut state = with(0, 1);
        state.apply(HOLD);
        assert_eq!(state.apply(GroupEntry::End), Outcome::Nothing, "it is not being destroyed");
        state.apply(GroupEntry::Destroy);
        assert_eq!(state.apply(GroupEntry::End), Outcome::Destroying);
        assert_eq!((state.phase(), state.held().len()), (Phase::Ended, 0));
    }

    #[test]
    fn operations_go_by_the_cut_of_their_number() {
        let mut state = with(0, 2);
        assert!(state.cut(1).is_none());
        assert_eq!(state.apply(GroupEntry::Cut { number: 1 }), Outcome::Cut);
        state.apply(joining(2));
        assert_eq!(state.apply(GroupEntry::Cut { number: 1 }), Outcome::Nothing, "too late");
        assert_eq!(state.cut(1).unwrap().members.len(), 2);
        assert!(state.cut(2).is_none());
        state.apply(GroupEntry::Cut { number: 2 });
        state.apply(GroupEntry::Cut { number: 3 });
        let sizes = [1, 2, 3].map(|number| state.cut(number).unwrap().members.len());
        assert_eq!(sizes, [2, 3, 3]);
        assert_eq!(state.cut(3).unwrap().number, 2, "the third changed nothing");
    }

    #[test]
    fn a_cut_tells_of_the_first_death_among_the_members_of_the_one_before() {
        let mut state = with(0, 4);
        state.apply(GroupEntry::Cut { number: 1 });
        state.apply(joining(4));
        let [left, newcomer, first, second] = [0, 4, 2, 1].map(|id| seat(&state, id));
        state.apply(GroupEntry::Leave(left));
        state.apply(GroupEntry::Died(newcomer));
        state.apply(GroupEntry::Cut { number: 2 });
        assert_eq!(state.cut(2).unwrap().died, None, "who died was no member of the first cut");
        state.apply(GroupEntry::Died(first));
        state.apply(GroupEntry::Died(second));
        state.apply(GroupEntry::Cut { number: 3 });
        state.apply(joining(5));
        state.apply(GroupEntry::Cut { number: 4 });
        let died = [1, 2, 3, 4].map(|number| state.cut(number).map(|cut| cut.died));
        assert_eq!(died, [None, None, Some(Some(2)), Some(None)]);
    }

    #[test]
    fn the_seat_has_one_server_and_each_has_another_epoch() {
        let mut state = with(0, 1);
        let serving = |slot| GroupEntry::Serve(Serving { process: process(slot), context: 3 });
        assert_eq!(state.apply(serving(4)), Outcome::Seated(1));
        assert_eq!(state.apply(serving(5)), Outcome::Nothing, "it is taken");
        state.apply(MESSAGE);
        assert_eq!(state.apply(GroupEntry::Vacate { epoch: 2 }), Outcome::Nothing);
        assert_eq!(state.apply(GroupEntry::Vacate { epoch: 1 }), Outcome::Vacated);
        assert_eq!((state.server(), state.epochs(), state.unserved()), (None, 1, 1));
        assert_eq!(state.apply(GroupEntry::Vacate { epoch: 1 }), Outcome::Nothing);
        assert_eq!(state.apply(serving(5)), Outcome::Seated(2));
        let server = state.server().unwrap();
        assert_eq!((server.who.process.slot, server.epoch, server.first), (5, 2, 1));
    }

    #[test]
    fn entries_of_a_server_after_its_seat_was_taken_change_nothing() {
        let mut state = with(1, 2);
        let serving = |slot| GroupEntry::Serve(Serving { process: process(slot), context: 3 });
        let sync = Ask::Sync(seat(&state, 0));
        let asked = Asking { process: process(0), number: 1, what: sync };
        let message = |by| GroupEntry::Broadcast { was_held: false, by };
        assert_eq!(state.apply(message(Some(1))), Outcome::Stale, "nobody has the seat");
        state.apply(serving(4));
        assert_eq!(state.apply(message(Some(1))), Outcome::Broadcast(0));
        state.apply(GroupEntry::Vacate { epoch: 1 });
        assert_eq!(state.apply(GroupEntry::Asked(asked, 1)), Outcome::Stale);
        state.apply(serving(5));
        assert_eq!(state.apply(GroupEntry::Asked(asked, 1)), Outcome::Stale);
        assert_eq!(state.apply(message(Some(1))), Outcome::Stale);
        assert_eq!((state.broadcasts(), state.is_syncing()), (1, false));
        assert_eq!(state.apply(GroupEntry::Asked(asked, 2)), Outcome::Come(0));
        assert_eq!(state.apply(message(Some(2))), Outcome::Broadcast(1));
        assert_eq!(state.apply(message(None)), Outcome::Broadcast(2), "by nobody's server");
    }

    #[test]
    fn a_request_to_the_server_has_the_effect_of_the_clients_own_call() {
        let mut state = with(1, 2);
        state.apply(GroupEntry::Serve(Serving { process: process(4), context: 3 }));
        let seats = [0, 1].map(|id| seat(&state, id));
        let asking = |what| Asking { process: process(9), number: 1, what };
        let mut ask = |what| state.apply(GroupEntry::Asked(asking(what), 1));
        assert_eq!(ask(Ask::Join { context: 1, place: 8 }), Outcome::Joined(2));
        assert_eq!(ask(Ask::Sync(seats[0])), Outcome::Come(0));
        let leave = Ask::Leave { seat: seats[1], kept: 0 };
        assert_eq!(ask(leave), Outcome::Removed(1, Gone::Left));
        assert_eq!(ask(leave), Outcome::Nothing);
        assert_eq!(ask(Ask::Destroy), Outcome::Destroying);
        assert_eq!(ask(Ask::Join { context: 2, place: 8 }), Outcome::Closed);
    }
}
