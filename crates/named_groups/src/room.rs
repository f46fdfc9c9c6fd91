//! Memory and credit for messages.

use landeck_memory::Bytes;
use landeck_objects::group_log::entries::{Details, details_cell};
use landeck_objects::group_log::{CELL_BYTES, Claim, LOG_ENTRIES, Look, Passed, Reach, WaitsFor};
use landeck_protocols::service::{MemberRecord, Phase};

use crate::error::Result;
use crate::replica::{LocalState, Replica};
use crate::thread_members;

/// The members that have retrieved least.
pub(crate) struct Slowest {
    pub(crate) members: Vec<MemberRecord>,
    /// How many messages wait for each of them.
    pub(crate) waiting: u64,
}

impl Slowest {
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.members.iter().map(|member| member.id).collect()
    }
}

impl Replica {
    /// Claims memory for a message or for the details of an entry; none when there is none now.
    pub(crate) fn claim(&self, local: &mut LocalState, bytes: u64) -> Result<Option<Claim<'_>>> {
        let look =
            |local: &LocalState, reach| self.log.claim(&self.claims, bytes, &local.passed, reach);
        if let Some(claim) = look(local, Reach::Home) {
            return Ok(Some(claim));
        }
        self.refresh_passed(local);
        for reach in [Reach::Home, Reach::All] {
            if let Some(claim) = look(local, reach) {
                return Ok(Some(claim));
            }
        }
        self.fold(local)?;
        self.snapshot(local);
        if self.log.is_claimed_by_the_dead() {
            self.fold(local)?;
            let messages = self.least_taken(local)..local.state.broadcasts();
            self.log.sweep(messages, &self.entries_with_cells(local));
        }
        self.refresh_passed(local);
        Ok(look(local, Reach::All))
    }

    /// Claims a cell for the next short message, if some member has not retrieved a broadcast of this process.
    pub(crate) fn reserve_cell(&self, local: &mut LocalState) {
        if local.reserved_cell.is_none() && !local.own_broadcasts.is_empty() {
            let claim = self.log.claim(&self.claims, 0, &local.passed, Reach::Home);
            local.reserved_cell = claim.map(Claim::put_aside);
        }
    }

    /// Claims memory for a message, from the reserved cell if the message fits there.
    pub(crate) fn claim_for_message(
        &self,
        local: &mut LocalState,
        bytes: u64,
    ) -> Result<Option<Claim<'_>>> {
        match local.reserved_cell.take_if(|_| bytes <= CELL_BYTES as u64) {
            Some(reserved) => Ok(Some(self.log.take_up(reserved))),
            None => self.claim(local, bytes),
        }
    }

    /// Claims a cell for the details of an entry.
    pub(crate) fn claim_details(
        &self,
        local: &mut LocalState,
        details: Details,
    ) -> Result<Claim<'_>> {
        let claim = self.claim(local, 0)?;
        let claim = claim.ok_or_else(|| self.broken("all its cells are in use"))?;
        claim.fill(0, details, Bytes::EMPTY);
        Ok(claim)
    }

    /// Whether a broadcast of this process has room, and the process has credit for it.
    pub(crate) fn has_room(&self, local: &mut LocalState) -> bool {
        self.has_room_with(local, self.options.credit())
    }

    /// Whether a broadcast that a server appends for a client has room.
    pub(crate) fn has_room_without_credit(&self, local: &mut LocalState) -> bool {
        self.has_room_with(local, u64::MAX)
    }

    fn has_room_with(&self, local: &mut LocalState, credit: u64) -> bool {
        for is_fresh in [false, true] {
            if is_fresh {
                self.refresh_passed(local);
            }
            let LocalState { state, passed, own_broadcasts, .. } = local;
            while own_broadcasts.front().is_some_and(|&number| number < passed.messages) {
                own_broadcasts.pop_front();
            }
            let waiting = state.broadcasts().saturating_sub(passed.messages);
            let messages = u64::from(self.log.shape().messages());
            if waiting < messages && (own_broadcasts.len() as u64) < credit {
                return true;
            }
        }
        false
    }

    /// Records that a held broadcast found no room, when this process looked last.
    pub(crate) fn report_no_room(&self, local: &LocalState) {
        let is_last_chance = local.state.phase() == Phase::Destroying;
        let is_news = self.log.found_no_room(local.passed.messages, is_last_chance);
        if is_news && is_last_chance {
            self.wake(WaitsFor::Others);
        }
    }

    /// Whether a broadcast of the calling thread has no room because that thread has not retrieved.
    pub(crate) fn blocks_itself(&self, local: &LocalState) -> bool {
        self.this_thread_has_taken(local, |taken| taken == local.passed.messages)
    }

    /// Whether held broadcasts have no room because the calling thread has not retrieved.
    pub(crate) fn blocks_held_broadcasts(&self, local: &LocalState) -> bool {
        self.this_thread_has_taken(local, |taken| self.log.has_no_room(taken))
    }

    /// Whether some mailbox of the calling thread, from which no other thread retrieves, has messages waiting and
    /// `is_late` holds for the number that it has retrieved.
    fn this_thread_has_taken(&self, local: &LocalState, is_late: impl Fn(u64) -> bool) -> bool {
        let (all, own) = (local.state.broadcasts(), self.own_party(&local.state));
        let is_own_and_late = |member: &MemberRecord| {
            let taken = self.taken(local, member);
            member.process == own
                && taken < all
                && is_late(taken)
                && thread_members::has(self, member.seat())
        };
        local.state.members().iter().any(is_own_and_late)
    }

    /// The members that have retrieved least, if messages wait for them.
    pub(crate) fn slowest(&self, local: &LocalState) -> Slowest {
        let (least, all) = (self.least_taken(local), local.state.broadcasts());
        let is_slow = |member: &&MemberRecord| self.taken(local, member) == least && least < all;
        let members = local.state.members().iter().filter(is_slow).copied().collect();
        Slowest { members, waiting: all - least }
    }

    /// How many broadcasts a member has retrieved, counted as their numbers.
    pub(crate) fn taken(&self, local: &LocalState, member: &MemberRecord) -> u64 {
        let taken = self.log.taken(member.id, member.seat().stamp);
        let least = member.first.min(local.state.broadcasts());
        taken.unwrap_or(least).clamp(least, local.state.broadcasts())
    }

    /// The first message that some member has not retrieved.
    fn least_taken(&self, local: &LocalState) -> u64 {
        let taken = local.state.members().iter().map(|member| self.taken(local, member));
        taken.min().unwrap_or(local.state.broadcasts()).min(local.state.broadcasts())
    }

    fn refresh_passed(&self, local: &mut LocalState) {
        local.passed =
            Passed { messages: self.least_taken(local), entries: self.log.snapshot_place() };
    }

    /// Lets the log wrap around: no process needs the entries that a snapshot covers.
    pub(crate) fn make_room(&self, local: &LocalState) -> Result<()> {
        let place = local.state.position();
        if place.saturating_sub(self.log.snapshot_place()) < LOG_ENTRIES / 2 {
            return Ok(());
        }
        self.snapshot(local);
        match self.log.has_room(place) {
            true => Ok(()),
            false => Err(self.broken("no buffer of its snapshots is free")),
        }
    }

    fn snapshot(&self, local: &LocalState) {
        self.log.set_snapshot(local.state.position(), &local.state.to_words());
    }

    /// The places and cells of entries that no snapshot covers.
    fn entries_with_cells(&self, local: &LocalState) -> Vec<(u64, u32)> {
        let places = self.log.snapshot_place()..local.state.position();
        let entry = |place| match self.log.look(place) {
            Look::There(word) => Some((place, details_cell(word)?)),
            _ => None,
        };
        places.take(LOG_ENTRIES as usize).filter_map(entry).collect()
    }
}
