//! One member's hold on a board.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence, fence};

use landeck_memory::bytes::{Buffer, Bytes};
use landeck_memory::heap::Block;
use landeck_memory::membership::SlotState;
use landeck_memory::page::Tally;
use landeck_memory::plan::PAGE_BYTES;
use landeck_memory::segment::Segment;
use landeck_memory::waiter;

use super::deposits::Deposits;
use super::history::History;
use super::outcome::{Coming, Outcome};
use super::place::{LinesPlace, is_board, lines_at};
use super::room::Room;
use super::words::{Arrival, Epoch, IN_HEAP, Line, Lines, LongLine, NOTHING, Roster, Shared};
use super::{LINES_BYTES, PIECES_MAX, SHARED_BYTES, WINDOW};

mod agreement;
mod cells;
mod difference;
mod statement;
mod told;

use agreement::OwnPart;
use cells::Cells;
use statement::Stated;
use told::Reading;

pub use difference::Difference;
pub use told::{Exposed, Leave, Reader, Told};

/// One member's hold on a board. One thread at a time.
pub struct Board {
    segment: Segment,
    shared: NonNull<Shared>,
    members: Box<[Member]>,
    pub(super) own: u32,
    /// This member has completed all operations before this one.
    pub(super) over: u32,
    /// The later operations that it has completed.
    over_early: Vec<u32>,
    /// The operations that this member has called.
    pub(super) history: History,
    /// The member that has called something else, if the last check found one.
    pub(super) out_of_step: Option<Difference>,
    /// All members have completed all operations before this one.
    pub(super) settled: u32,
    /// A private copy of this member's lines, to restore them if another process overwrites them.
    pub(super) stated: [Stated; WINDOW],
    pub(super) deposits: Deposits,
    pub(super) cells: Cells,
    /// The group's members have handoff buffers.
    pub(super) has_cells: bool,
    /// Publishing needs a fence before sleepers are looked for.
    fenced: bool,
    pub(super) part: OwnPart,
    pub(super) ticket: u64,
    reading: Reading,
    tally: Tally,
}

#[derive(Clone, Copy)]
struct Member {
    slot: u32,
    /// The incarnation of the slot's process.
    incarnation: u32,
    lines: NonNull<Lines>,
    /// The slot is not given to its next process as long as this board is open. The first world stays open for ever,
    /// so the need for its slots is found out otherwise.
    is_held: bool,
}

// SAFETY: the shared memory is used through atomics and read as `Bytes`; the segment handle keeps
// it mapped, wherever the board goes.
unsafe impl Send for Board {}

/// A description of a board that cannot be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "member {member} describes its part of a board as lying where none can lie: its process is broken"
)]
pub struct BoardBroken {
    /// The member whose description is wrong.
    pub member: u32,
}

/// A member's arrival at an operation, as its line shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// Nothing yet.
    NotYet,
    /// It has come for the expected operation.
    Here,
    /// It has come with this other signature: for another operation, or after different ones.
    Otherwise(u32),
}

impl Drop for Board {
    fn drop(&mut self) {
        held(&self.members).for_each(|slot| self.segment.release(slot));
    }
}

/// The slots that a board holds.
fn held(members: &[Member]) -> impl Iterator<Item = u32> {
    members.iter().filter(|member| member.is_held).map(|member| member.slot)
}

const DONE: u32 = 1;
const DIFFERENT: u32 = 2;
const FAILED: u32 = 3;
const SPOILED: u32 = 4;
const WITHOUT_ROOM: u32 = 5;
const STATE_BITS: u32 = 8;

impl Board {
    /// The board whose shared words stand at `shared`, with its members' lines. Every member opens
    /// the same, as another `own`.
    ///
    /// # Errors
    /// [`BoardBroken`] when a place is none.
    pub fn open(
        segment: &Segment,
        shared: u64,
        members: &[LinesPlace],
        own: u32,
    ) -> Result<Self, BoardBroken> {
        if !is_board(segment.plan(), shared) {
            return Err(BoardBroken { member: 0 });
        }
        let open = |(member, place): (usize, &LinesPlace)| {
            let lines = lines_at(segment, *place).ok_or(BoardBroken { member: member as u32 })?;
            // The first world's members are the first processes of the slots, whichever processes have the slots now.
            let is_of_world = *place == LinesPlace::of_world(segment.plan(), place.slot);
            let incarnation = segment.slot_record(place.slot).incarnation;
            let incarnation = if is_of_world { incarnation.min(1) } else { incarnation };
            Ok(Member { slot: place.slot, incarnation, lines, is_held: !is_of_world })
        };
        let members = members.iter().enumerate().map(open).collect::<Result<Box<[_]>, _>>()?;
        if own as usize >= members.len() {
            return Err(BoardBroken { member: own });
        }
        held(&members).for_each(|slot| segment.hold(slot));
        let has_cells = cells::are_there(segment, shared);
        Ok(Self {
            tally: Tally::of(segment, members[own as usize].slot),
            shared: segment.place(shared, SHARED_BYTES).cast(),
            segment: segment.clone(),
            members,
            own,
            over: 1,
            over_early: Vec::new(),
            history: History::new(1),
            out_of_step: None,
            settled: 1,
            stated: [Stated::default(); WINDOW],
            deposits: Deposits::default(),
            cells: if has_cells { Cells::of_member(segment.plan(), own) } else { Cells::default() },
            has_cells,
            fenced: segment.plan().is_oversubscribed() || !waiter::is_registered(),
            part: OwnPart::default(),
            ticket: 0,
            reading: Reading::default(),
        })
    }

    /// How many members there are.
    #[inline]
    pub fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// Whether the group's members have handoff buffers, for deposits from one of them to one other.
    pub fn has_cells(&self) -> bool {
        self.has_cells
    }

    /// How many processors the processes of the segment may use together, as all of them know it.
    pub fn processors(&self) -> u32 {
        self.segment.plan().cpus
    }

    /// This member's number.
    #[inline]
    pub fn own(&self) -> u32 {
        self.own
    }

    /// Whether a member's process is gone, as the agent says. What it did before then counts.
    pub fn is_gone(&self, member: u32) -> bool {
        self.state(member).is_gone()
    }

    /// The agent's state of a member's process. The process is dead if its slot has a later incarnation.
    pub(super) fn state(&self, member: u32) -> SlotState {
        let Member { slot, incarnation, .. } = self.members[member as usize];
        let record = self.segment.slot_record(slot);
        if record.incarnation == incarnation { record.state } else { SlotState::Dead }
    }

    /// The slot of a member, if there is one.
    pub(super) fn slot_of(&self, member: u32) -> Option<u32> {
        self.members.get(member as usize).map(|member| member.slot)
    }

    /// The slot of a member.
    pub fn slot(&self, member: u32) -> u32 {
        self.members[member as usize].slot
    }

    /// The number of the next operation, in which this member calls `call` (of `CALL_BITS` bits),
    /// and its signature there. All members count alike; their signatures are equal if all that
    /// they have called so far is.
    #[inline]
    pub fn begin(&mut self, call: u32) -> (u32, u32) {
        self.history.add(call, self.settled)
    }

    /// A spare block for `bytes` bytes: at least so long, and at most twice as long.
    #[inline]
    pub fn spare(&mut self, bytes: usize) -> Option<Block> {
        if !Deposits::go_round(bytes) {
            self.collect();
        }
        self.deposits.spare(bytes)
    }

    /// A spare block for `bytes` bytes: the one that came back last, which is the likeliest to be in this core's cache.
    pub fn last_spare(&mut self, bytes: usize) -> Option<Block> {
        self.collect();
        self.deposits.last_spare(bytes)
    }

    /// Bytes of blocks that are kept for others.
    pub fn kept_bytes(&self) -> usize {
        self.deposits.kept_bytes()
    }

    /// Counts the blocks that are kept together with those of the process's other boards.
    pub fn share_room(&mut self, room: &Arc<Room>) {
        self.deposits.share(room);
    }

    /// The account of the blocks that all boards sharing it keep.
    pub fn room(&self) -> &Room {
        self.deposits.room()
    }

    /// Frees blocks that no member reads any more.
    pub fn collect(&mut self) {
        if !self.deposits.is_empty() {
            self.look_at_all(self.history.next());
            self.deposits.settle(self.settled);
        }
    }

    /// Returns the place of this member's deposit in an operation, to be filled further. It may be used until the
    /// operation is complete for this member.
    pub fn kept(&mut self, number: u32) -> Option<Buffer> {
        match self.deposits.of(number) {
            // SAFETY: the block is kept until all members have completed the operation, and nothing else of this
            // process uses it meanwhile.
            Some(block) => Some(unsafe { Buffer::of_mut(&mut block[..]) }),
            None => self.open_cell(number),
        }
    }

    /// Takes the block of this member's deposit in an operation out of the board's hands; to be given back with
    /// [`Board::put_kept`].
    pub fn take_kept(&mut self, number: u32) -> Option<Block> {
        self.deposits.take(number)
    }

    /// Gives back what [`Board::take_kept`] took: others may be reading it.
    pub fn put_kept(&mut self, number: u32, block: Block) {
        self.deposits.put_back(number, block);
    }

    /// Completes an operation for this member: it reads nothing of it any more. Wakes only members that wait for room;
    /// a member that gives up an operation wakes the others.
    #[inline]
    pub fn end(&mut self, number: u32) {
        self.cells.end(number);
        self.end_reading(number);
        let early = number.wrapping_sub(self.over);
        if early != 0 {
            if early as i32 > 0 {
                self.over_early.push(number);
            }
            return;
        }
        self.over = self.over.wrapping_add(1);
        while let Some(at) = self.over_early.iter().position(|&early| early == self.over) {
            self.over_early.swap_remove(at);
            self.over = self.over.wrapping_add(1);
        }
        self.own_lines().progress.store(self.progress(), Ordering::Release);
        self.wake_if(&self.shared().head.room_sleepers.0);
    }

    /// Comes to an operation with short data (none is allowed), at most
    /// [`INLINE_BYTES`](super::INLINE_BYTES).
    #[inline]
    pub fn come(&mut self, number: u32, signature: u32, check: u32, data: Bytes<'_>) {
        let own = self.long_line(self.own, number);
        own.set_inline(data, check);
        own.line.publish(number, signature);
        if !data.is_empty() {
            self.tally.laid(data.len() as u64);
        }
        self.stated[number as usize % WINDOW] =
            Stated { has_come: true, number, signature, block: None };
    }

    /// Lays some of the short data down with which this member is about to come.
    #[inline]
    pub fn lay(&mut self, number: u32, at: usize, data: Bytes<'_>) {
        self.long_line(self.own, number).write(at, data);
    }

    /// Comes to an operation with so many deposited bytes.
    #[inline]
    pub fn come_with_laid(&mut self, number: u32, signature: u32, check: u32, bytes: usize) {
        let own = self.long_line(self.own, number);
        own.set_length(bytes, check);
        own.line.publish(number, signature);
        self.tally.laid(bytes as u64);
        self.stated[number as usize % WINDOW] =
            Stated { has_come: true, number, signature, block: None };
    }

    /// Comes to an operation without its data, and says so with words about the reason.
    #[cold]
    pub fn come_without(&mut self, number: u32, (signature, check): (u32, u32), why: [u64; 3]) {
        let line = self.own_line(number);
        for (place, word) in line.data.iter().zip(why) {
            place.store(word, Ordering::Relaxed);
        }
        line.about.store(u64::from(NOTHING) | u64::from(check) << 32, Ordering::Relaxed);
        line.publish(number, signature);
        self.stated[number as usize % WINDOW] =
            Stated { has_come: true, number, signature, block: None };
    }

    /// Comes to an operation with the first `length` bytes of a block of this member's heap, of
    /// which `filled` bytes are there by now. The block is kept.
    pub fn come_with(
        &mut self,
        number: u32,
        (signature, check): (u32, u32),
        block: Block,
        (length, filled): (usize, usize),
    ) {
        let offset = block.offset();
        // Moving the block after the line is written would wait for the members that poll the line.
        self.deposits.keep(number, block);
        self.come_where(number, (signature, check), (IN_HEAP, offset), (length, filled));
    }

    /// Says that this member has come, where its data lie, and how many of them are there.
    #[inline]
    pub(super) fn come_where(
        &mut self,
        number: u32,
        (signature, check): (u32, u32),
        (kind, place): (u32, u64),
        (length, filled): (usize, usize),
    ) {
        let (length, filled) = (length as u64, filled as u64);
        let line = self.own_line(number);
        line.about.store(u64::from(kind) | u64::from(check) << 32, Ordering::Relaxed);
        for (word, value) in line.data.iter().zip([place, length, filled, 0, 0, 0]) {
            word.store(value, Ordering::Relaxed);
        }
        line.publish(number, signature);
        self.tally.laid(length);
        let stated = Stated { has_come: true, number, signature, block: Some((filled, 0)) };
        self.stated[number as usize % WINDOW] = stated;
    }

    /// Says how much of the block is filled, from its start.
    #[inline]
    pub fn set_filled(&mut self, number: u32, bytes: u64) {
        self.own_line(number).data[2].store(bytes, Ordering::Release);
        if let Some((filled, _)) = &mut self.stated[number as usize % WINDOW].block {
            *filled = bytes;
        }
        self.cells.are_filled(number, bytes as usize);
        self.wake();
    }

    /// Says how many bytes of a result stand in the place kept for it.
    pub fn set_resolved(&mut self, number: u32, bytes: u64) {
        self.own_line(number).data[3].store(bytes, Ordering::Release);
        if let Some((_, resolved)) = &mut self.stated[number as usize % WINDOW].block {
            *resolved = bytes;
        }
        self.wake();
    }

    /// Says that this member comes to no operation from this one on: its group is broken.
    #[cold]
    pub fn refuse(&mut self, number: u32) {
        let refused = &self.own_lines().refused;
        if refused.load(Ordering::Relaxed) == 0 {
            refused.store(1 << 32 | u64::from(number), Ordering::Release);
        }
        self.wake();
    }

    /// Says that this member comes to no operation from the next one on, which it does not begin.
    #[cold]
    pub fn refuse_next(&mut self) {
        self.refuse(self.history.next());
    }

    /// Whether a member said that it does not come.
    pub fn refuses(&self, member: u32, number: u32) -> bool {
        let refused = self.lines(member).refused.load(Ordering::Acquire);
        refused >> 32 != 0 && number.wrapping_sub(refused as u32) as i32 >= 0
    }

    /// Counts this member in, after it has come, in an operation that all wait for.
    #[inline]
    pub fn count(&self, number: u32, signature: u32) -> Coming {
        match self.epoch(number).arrivals.come(self.size(), signature) {
            Arrival::NotLast => Coming::NotLast,
            Arrival::Last => Coming::Last,
            Arrival::LastOfDifferent => {
                self.decide(number, Outcome::Different);
                Coming::Different
            }
        }
    }

    /// Wakes members that sleep in an operation on this board, after something was published.
    #[inline]
    pub fn wake(&self) {
        self.wake_if(&self.shared().head.sleepers.0);
    }

    /// Wakes them if some of these sleep.
    #[inline]
    fn wake_if(&self, sleepers: &AtomicU32) {
        if self.fenced {
            fence(Ordering::SeqCst);
        } else {
            compiler_fence(Ordering::SeqCst);
        }
        if sleepers.load(Ordering::Relaxed) != 0 {
            self.wake_all();
        }
    }

    #[cold]
    pub(super) fn wake_all(&self) {
        let own = self.members[self.own as usize].slot;
        self.members.iter().filter(|member| member.slot != own).for_each(|member| {
            self.segment.wake(member.slot);
        });
    }

    /// Says that this member is about to sleep in an operation, for room or later: from now on
    /// others wake it. Not where it has forgotten the board.
    pub fn sleeps(&self, awaits_room: bool) {
        if !self.is_held() {
            return;
        }
        let head = &self.shared().head;
        head.sleepers.0.fetch_add(1, Ordering::SeqCst);
        if awaits_room {
            head.room_sleepers.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Says that this member sleeps no more; its argument is the one of [`Board::sleeps`]. A member that has forgotten
    /// the board meanwhile stays counted.
    pub fn wakes(&self, awaited_room: bool) {
        if !self.is_held() {
            return;
        }
        let head = &self.shared().head;
        // A stray write must not make it negative.
        let one_less = |count: u32| count.checked_sub(1);
        let less = |sleepers: &AtomicU32| {
            let _ = sleepers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
        };
        less(&head.sleepers.0);
        if awaited_room {
            less(&head.room_sleepers.0);
        }
    }

    /// Reads a member's arrival at an operation from its line.
    #[inline]
    pub fn came(&self, member: u32, number: u32, signature: u32) -> Came {
        match self.line(member, number).published(number) {
            Some(theirs) if theirs == signature => Came::Here,
            Some(theirs) => Came::Otherwise(theirs),
            None => Came::NotYet,
        }
    }

    /// Whether a member has completed an operation. If so, and its word does not show its arrival, the word was
    /// overwritten.
    pub fn is_past(&self, member: u32, number: u32) -> bool {
        let progress = self.lines(member).progress.load(Ordering::Acquire) as u32;
        progress.wrapping_sub(number) as i32 > 0
    }

    /// The check word that a member compares with the others'; valid only after it came.
    pub fn check(&self, member: u32, number: u32) -> u32 {
        (self.line(member, number).about.load(Ordering::Relaxed) >> 32) as u32
    }

    /// How an operation that all wait for has ended.
    #[inline]
    pub fn outcome(&self, number: u32) -> Outcome {
        match self.epoch(number).commit.published(number) {
            Some(state) => decode(state),
            None => Outcome::Open,
        }
    }

    /// Decides how an operation has ended, unless a member has already; returns the decision that holds.
    #[inline]
    pub fn decide(&self, number: u32, outcome: Outcome) -> Outcome {
        let held = self.epoch(number).commit.decide(number, encode(outcome));
        self.wake();
        decode(held)
    }

    /// Writes a short result that all take; to be decided afterwards. For the last to come.
    #[inline]
    pub fn set_result(&self, number: u32, data: &[u8]) {
        self.epoch(number).commit.set_inline(data, 0);
    }

    /// Names a block of this member's heap as the result; as [`Board::set_result`]. It is kept.
    pub fn set_result_block(&mut self, number: u32, block: Block, length: usize) {
        let commit = &self.epoch(number).commit;
        commit.about.store(u64::from(IN_HEAP) | u64::from(self.own) << 32, Ordering::Relaxed);
        let length = length as u64;
        for (word, value) in commit.data.iter().zip([block.offset(), length, length, 0]) {
            word.store(value, Ordering::Relaxed);
        }
        self.deposits.keep(number, block);
    }

    /// Lets all members take pieces of the work; the last member to come calls it.
    pub fn open_pieces(&self, number: u32) {
        self.epoch(number).pieces.open(number);
        self.wake();
    }

    /// Takes the next of `count` pieces (at most [`PIECES_MAX`]); none when there is none to take.
    pub fn claim_piece(&self, number: u32, count: u32) -> Option<u32> {
        self.epoch(number).pieces.claim(number, count.min(PIECES_MAX as u32))
    }

    /// A piece is done and stands in this member's block; true when it was the last one.
    pub fn finish_piece(&self, number: u32, piece: u32, count: u32) -> bool {
        let Epoch { pieces, owners, .. } = self.epoch(number);
        pieces.finish(owners, piece, self.own, count)
    }

    /// In whose block a finished piece stands.
    ///
    /// # Errors
    /// [`BoardBroken`].
    pub fn piece_owner(&self, number: u32, piece: u32) -> Result<u32, BoardBroken> {
        let owner = self.epoch(number).owners.of(piece);
        owner.filter(|&member| member < self.size()).ok_or(BoardBroken { member: self.own })
    }

    /// Revokes the group: every member finds out, also when this process ends before it has told
    /// them all.
    pub fn revoke(&self) {
        self.shared().head.revoked.0.store(1, Ordering::SeqCst);
        self.members.iter().for_each(|member| self.segment.tell_revocation(member.slot));
    }

    /// Whether the group was revoked.
    #[inline]
    pub fn is_revoked(&self) -> bool {
        self.shared().head.revoked.0.load(Ordering::Relaxed) != 0
    }

    /// Whether this member may forget the board: no member reads its data any more.
    pub fn is_settled(&mut self) -> bool {
        self.look_at_all(self.history.next());
        self.deposits.settle(self.settled);
        self.settled == self.history.next()
    }

    pub(super) fn segment(&self) -> &Segment {
        &self.segment
    }

    pub(super) fn outcome_of_agreement(&self) -> &Line {
        &self.shared().head.agreement
    }

    pub(super) fn roster(&self) -> &Roster {
        &self.shared().head.roster
    }

    #[inline]
    pub(super) fn shared(&self) -> &Shared {
        // SAFETY: `open` checked the place; it stays mapped while `segment` lives and is only used
        // atomically.
        unsafe { self.shared.as_ref() }
    }

    #[inline]
    pub(super) fn epoch(&self, number: u32) -> &Epoch {
        &self.shared().epochs[number as usize % WINDOW]
    }

    #[inline]
    pub(super) fn lines(&self, member: u32) -> &Lines {
        // SAFETY: `open` checked the place; it stays mapped while `segment` lives and is only used
        // atomically.
        unsafe { self.members[member as usize].lines.as_ref() }
    }

    #[inline]
    pub(super) fn line(&self, member: u32, number: u32) -> &Line {
        &self.long_line(member, number).line
    }

    #[inline]
    pub(super) fn long_line(&self, member: u32, number: u32) -> &LongLine {
        &self.lines(member).lines[number as usize % WINDOW]
    }

    #[inline]
    pub(super) fn own_lines(&self) -> &Lines {
        self.lines(self.own)
    }

    pub(super) fn own_long_line(&self, number: u32) -> &LongLine {
        self.long_line(self.own, number)
    }

    #[inline]
    pub(super) fn own_line(&self, number: u32) -> &Line {
        self.line(self.own, number)
    }
}

fn encode(outcome: Outcome) -> u32 {
    match outcome {
        Outcome::Open | Outcome::Done => DONE,
        Outcome::Different => DIFFERENT,
        Outcome::Failed(member) => FAILED | member << STATE_BITS,
        Outcome::Spoiled(member) => SPOILED | member << STATE_BITS,
        Outcome::NoRoom(member) => WITHOUT_ROOM | member << STATE_BITS,
    }
}

fn decode(state: u32) -> Outcome {
    match state & ((1 << STATE_BITS) - 1) {
        DONE => Outcome::Done,
        DIFFERENT => Outcome::Different,
        SPOILED => Outcome::Spoiled(state >> STATE_BITS),
        WITHOUT_ROOM => Outcome::NoRoom(state >> STATE_BITS),
        _ => Outcome::Failed(state >> STATE_BITS),
    }
}

const _: () = assert!(LINES_BYTES + 512 <= PAGE_BYTES);

#[cfg(test)]
mod tests {
    use super::super::Deposit;
    use super::super::fixture::boards;
    use super::*;
    use landeck_memory::heap::Heap;

    const SIGNATURE: u32 = 7;

    #[test]
    fn a_deposit_of_one_member_is_found_by_all() {
        let (segment, mut boards) = boards(3);
        let begun: Vec<_> = boards.iter_mut().map(|board| board.begin(SIGNATURE)).collect();
        assert!(begun[0].0 == 1 && begun.iter().all(|other| *other == begun[0]));
        assert_eq!(boards[0].came(2, 1, SIGNATURE), Came::NotYet);
        boards[2].come(1, SIGNATURE, 9, Bytes::from(&b"hello"[..]));
        assert_eq!(boards[0].came(2, 1, SIGNATURE), Came::Here);
        assert_eq!(boards[0].came(2, 1, 8), Came::Otherwise(SIGNATURE));
        assert_eq!(boards[0].check(2, 1), 9);
        let Ok(Deposit::Inline { bytes }) = boards[0].deposit(2, 1) else {
            panic!("five bytes in the line")
        };
        assert_eq!(bytes.to_vec(), b"hello");
        let mut heap = Heap::of(&segment, 1).unwrap();
        let mut block = heap.allocate(1000).unwrap();
        block.fill(3);
        boards[1].come_with(1, (SIGNATURE, 0), block, (1000, 0));
        boards[1].set_filled(1, 400);
        let Ok(Deposit::Block { bytes, filled, resolved }) = boards[0].deposit(1, 1) else {
            panic!("a block")
        };
        assert_eq!((bytes.len(), filled, resolved), (1000, 400, 0));
        assert_eq!(bytes.part(999, 1).to_vec(), [3]);
    }

    #[test]
    fn the_last_to_come_knows_it_and_whether_all_came_for_the_same() {
        let (_segment, mut boards) = boards(3);
        for round in 1..50 {
            for board in &mut boards {
                assert_eq!(board.begin(SIGNATURE).0, round);
                assert!(board.has_room(round));
                board.come(round, SIGNATURE, 0, Bytes::EMPTY);
            }
            assert_eq!(boards[0].count(round, SIGNATURE), Coming::NotLast);
            assert_eq!(boards[2].count(round, SIGNATURE), Coming::NotLast);
            assert_eq!(boards[1].outcome(round), Outcome::Open);
            assert_eq!(boards[1].count(round, SIGNATURE), Coming::Last);
            assert_eq!(boards[1].decide(round, Outcome::Done), Outcome::Done);
            for board in &mut boards {
                assert_eq!(board.outcome(round), Outcome::Done);
                board.end(round);
            }
        }
        boards[0].count(50, 1);
        boards[1].count(50, 3);
        assert_eq!(boards[2].count(50, 2), Coming::Different, "their sum is that of 2, 2, 2");
        assert_eq!(boards[0].outcome(50), Outcome::Different);
    }

    #[test]
    fn the_first_member_to_decide_decides_for_all() {
        let (_segment, boards) = boards(2);
        assert_eq!(boards[0].decide(1, Outcome::Failed(1)), Outcome::Failed(1));
        assert_eq!(boards[1].decide(1, Outcome::Done), Outcome::Failed(1));
        assert_eq!(boards[1].outcome(1), Outcome::Failed(1));
        assert_eq!(boards[1].outcome(2), Outcome::Open);
        assert_eq!(boards[1].decide(2, Outcome::Spoiled(0)), Outcome::Spoiled(0));
        assert_eq!(boards[0].decide(2, Outcome::Done), Outcome::Spoiled(0));
    }

    #[test]
    fn a_member_that_refuses_a_call_refuses_all_later_ones() {
        let (_segment, mut boards) = boards(2);
        boards[1].refuse(u32::MAX);
        boards[1].refuse(3);
        let refused = [u32::MAX - 1, u32::MAX, 0, 7].map(|number| boards[0].refuses(1, number));
        assert_eq!(refused, [false, true, true, true]);
        assert!(!boards[1].refuses(0, 7));
    }

    #[test]
    fn numbers_go_round() {
        let (_segment, mut boards) = boards(2);
        for board in &mut boards {
            board.history = History::new(u32::MAX - 2);
            (board.over, board.settled) = (u32::MAX - 2, u32::MAX - 2);
            board.own_lines().progress.store(board.progress(), Ordering::Relaxed);
        }
        for _ in 0..20 {
            for board in &mut boards {
                let (number, _) = board.begin(SIGNATURE);
                assert!(board.has_room(number));
                board.come(number, SIGNATURE, 0, Bytes::EMPTY);
                board.end(number);
            }
        }
        assert_eq!(boards[0].history.next(), 17);
    }

    #[test]
    fn nobody_is_further_than_this_member_whatever_words_say() {
        let (segment, mut boards) = boards(2);
        let mut heap = Heap::of(&segment, 0).unwrap();
        let (number, _) = boards[0].begin(SIGNATURE);
        let block = heap.allocate(100).unwrap();
        boards[0].come_with(number, (SIGNATURE, 0), block, (100, 100));
        for board in &boards {
            board.own_lines().progress.store(u64::from(number) + 3, Ordering::Relaxed);
        }
        boards[0].collect();
        assert!(boards[0].has_room(number));
        assert_eq!(boards[0].kept_bytes(), 100, "it is not over here");
    }

    #[test]
    fn operations_over_early_are_counted_however_many_go_on() {
        let (_segment, mut boards) = boards(1);
        let numbers: Vec<u32> = (0..200).map(|_| boards[0].begin(1).0).collect();
        for &number in numbers[1..].iter().rev() {
            boards[0].end(number);
            assert_eq!(boards[0].over, numbers[0]);
        }
        boards[0].end(numbers[0]);
        assert_eq!(boards[0].over, numbers[199] + 1);
        boards[0].end(numbers[7]);
        assert!(boards[0].over_early.is_empty(), "it was over");
    }

    #[test]
    fn pieces_are_taken_once_each() {
        let (_segment, boards) = boards(3);
        assert_eq!(boards[0].claim_piece(5, 4), None, "not open");
        boards[2].open_pieces(5);
        let taken: Vec<_> = (0..5).map(|turn| boards[turn % 3].claim_piece(5, 4)).collect();
        assert_eq!(taken, [Some(0), Some(1), Some(2), Some(3), None]);
        let last: Vec<bool> =
            (0..4).map(|piece| boards[piece % 3].finish_piece(5, piece as u32, 4)).collect();
        assert_eq!(last, [false, false, false, true]);
        assert_eq!(boards[0].piece_owner(5, 2), Ok(2));
        assert!(boards[0].piece_owner(6, 2).is_err() && boards[0].piece_owner(5, 99).is_err());
    }

    #[test]
    fn places_that_are_none_are_refused() {
        let (segment, _boards) = boards(2);
        let good = [0, 1].map(|slot| LinesPlace::of_world(segment.plan(), slot));
        let open = |shared, lines: &[LinesPlace], own| {
            Board::open(&segment, shared, lines, own).map(|_| ())
        };
        let world = segment.plan().world_board();
        assert_eq!(open(world, &good, 1), Ok(()));
        assert_eq!(open(world + 64, &good, 1), Err(BoardBroken { member: 0 }));
        assert_eq!(open(u64::MAX, &good, 1), Err(BoardBroken { member: 0 }));
        assert_eq!(open(world, &good, 2), Err(BoardBroken { member: 2 }));
        for bad in [0, 64, u64::MAX - 63, segment.plan().heap(1) + 1] {
            let lines = [good[0], LinesPlace { slot: 1, offset: bad }];
            assert_eq!(open(world, &lines, 0), Err(BoardBroken { member: 1 }), "{bad}");
        }
    }

    #[test]
    fn scribbled_lines_are_broken_or_wrong_and_no_more() {
        let (segment, mut boards) = boards(2);
        boards[1].come(1, SIGNATURE, 0, Bytes::from(&b"x"[..]));
        for garbage in [u64::MAX, u64::from(IN_HEAP), 113, 49, 1 << 63] {
            for word in 1..16 {
                let line = segment.plan().world_lines(1) + 128;
                segment.long(line + word * 8).store(garbage, Ordering::Relaxed);
            }
            if let Ok(Deposit::Block { bytes, filled, .. }) = boards[0].deposit(1, 1) {
                assert!(filled <= bytes.len());
            }
        }
        for at in (0..SHARED_BYTES).step_by(8) {
            segment.long(segment.plan().world_board() + at).store(u64::MAX, Ordering::Relaxed);
        }
        boards[0].outcome(1);
        boards[0].count(1, SIGNATURE);
        boards[0].decide(1, Outcome::Done);
        boards[0].claim_piece(1, 4);
        boards[0].finish_piece(1, 0, 4);
        boards[0].wakes(true);
        boards[0].end(1);
        assert!(boards[0].result(1).is_err() || boards[0].outcome(1) != Outcome::Open);
    }
}
