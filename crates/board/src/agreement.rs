//! Agreement: all surviving members learn the same outcome, whichever members die and whenever.
//!
//! Each member brings its part in a word of its own lines. A member that sees that each member has brought its
//! part or is gone makes a *proposal*: the combined parts and the members that are gone. It writes the proposal
//! in its own memory, and then puts its own number into the board's outcome word by one exchange. The first such
//! exchange decides. So the proposal is complete before it counts, it stays readable if its maker dies right
//! after, and all members read the same one.
//!
//! | step of a member | if it dies right after |
//! |---|---|
//! | brings its part | the part may count or not: the decided proposal tells |
//! | sees that all parts are in | another member sees it |
//! | writes its proposal | no member reads it |
//! | decides | the proposal holds |
//!
//! The next agreement is decided once all living members have brought their part to it, and by then they have all
//! read the outcome of this one. So one outcome word and one proposal of each member are enough. Parts alternate
//! between two places: a member may bring its next one while others still read its offer in this one. A waiting
//! member sleeps; the decider wakes all, and a death wakes all.

use landeck_memory::sync::{AtomicU64, Ordering};
use landeck_protocols::agreement::{Agreed, MemberStanding};

use super::words::{Line, Vote};

/// A member's part of an agreement: its flags, the deaths it has acknowledged, and its offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The outcome keeps the bits that are set in all parts.
    pub flags: u32,
    /// How many deaths among the members this one has acknowledged.
    pub acknowledged: u32,
    /// Its offer for a group of the living members; empty when it wants none.
    pub offer: Offer,
}

/// A member's offer for a new group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The context, if the new group takes this member's; 0 offers nothing.
    pub context: u32,
    /// Where its lines would be; 0 for nowhere.
    pub lines: u64,
    /// Where the shared words would be; 0 for nowhere.
    pub board: u64,
}

impl Vote {
    /// Brings a part; it is final.
    pub(crate) fn bring(&self, number: u32, part: &Part) {
        let about = u64::from(part.acknowledged) | u64::from(part.offer.context) << 32;
        self.about.store(about, Ordering::Relaxed);
        self.lines.store(part.offer.lines, Ordering::Relaxed);
        self.board.store(part.offer.board, Ordering::Relaxed);
        self.word.store(u64::from(number) | u64::from(part.flags) << 32, Ordering::Release);
    }

    /// The part that the member brought to agreement `number`; none if it has not.
    pub(crate) fn brought(&self, number: u32) -> Option<Part> {
        let word = self.word.load(Ordering::Acquire);
        if word as u32 != number {
            return None;
        }
        let about = self.about.load(Ordering::Relaxed);
        let offer = Offer {
            context: (about >> 32) as u32,
            lines: self.lines.load(Ordering::Relaxed),
            board: self.board.load(Ordering::Relaxed),
        };
        Some(Part { flags: (word >> 32) as u32, acknowledged: about as u32, offer })
    }
}

/// Where the words of an agreement are.
pub(crate) trait Ballot {
    fn size(&self) -> u32;
    fn own(&self) -> u32;
    /// Where a member's part in the agreement with this number is.
    fn vote(&self, member: u32, number: u32) -> Option<&Vote>;
    fn life(&self, member: u32) -> MemberStanding;
    fn outcome_word(&self) -> &Line;
    /// A word of a member's proposal; none when the member names a place that cannot be.
    fn proposal(&self, member: u32, at: u32) -> Option<&AtomicU64>;
}

const ACKNOWLEDGED: u64 = 1 << 32;
const MIXED: u64 = 1 << 33;

/// Words of a proposal among so many members: one, and a bit for each.
pub(crate) const fn proposal_words(size: u32) -> u32 {
    1 + size.div_ceil(u64::BITS)
}

/// Whether every member has brought its part or is gone. Those before `seen` were found so before.
pub(crate) fn all_are_in(ballot: &impl Ballot, number: u32, seen: &mut u32) -> bool {
    while *seen < ballot.size() {
        let brought = ballot.vote(*seen, number).and_then(|vote| vote.brought(number));
        if brought.is_none() && ballot.life(*seen) == MemberStanding::Lives {
            return false;
        }
        *seen += 1;
    }
    true
}

/// Writes this member's proposal once all parts are in. None when there is no room for it.
///
/// A member's life is read before its part, so the part of a member found dead is final. Lives are read after all
/// parts were seen, so each death that a member has acknowledged is found here too: equal counts mean equal sets.
pub(crate) fn propose(ballot: &impl Ballot, number: u32) -> Option<()> {
    let word_of = |at| ballot.proposal(ballot.own(), at);
    let (mut flags, mut died, mut wants, mut living) = (u32::MAX, 0, 0, Vec::new());
    for bits_at in 1..proposal_words(ballot.size()) {
        let first = (bits_at - 1) * u64::BITS;
        let mut bits = 0;
        for member in first..ballot.size().min(first + u64::BITS) {
            let life = ballot.life(member);
            let part = ballot.vote(member, number).and_then(|vote| vote.brought(number));
            flags &= part.map_or(u32::MAX, |part| part.flags);
            match (life, part) {
                (MemberStanding::Lives, Some(part)) => {
                    wants += u32::from(part.offer.context != 0);
                    living.push(part.acknowledged);
                }
                _ => bits |= 1 << (member - first),
            }
            died += u32::from(life == MemberStanding::Died);
        }
        word_of(bits_at)?.store(bits, Ordering::Relaxed);
    }
    let are_acknowledged = living.iter().all(|&acknowledged| acknowledged == died);
    let is_mixed = wants != 0 && wants != living.len() as u32;
    let marks = [(are_acknowledged, ACKNOWLEDGED), (is_mixed, MIXED)];
    let marks = marks.iter().filter(|(is_set, _)| *is_set).fold(0, |marks, (_, mark)| marks | mark);
    word_of(0)?.store(u64::from(flags) | marks, Ordering::Relaxed);
    Some(())
}

/// Makes this member's proposal hold, unless another one does by now; says whose holds.
pub(crate) fn decide(ballot: &impl Ballot, number: u32) -> u32 {
    ballot.outcome_word().decide(number, ballot.own())
}

/// Reads the proposal that holds. The error is the member whose words are broken.
pub(crate) fn read(ballot: &impl Ballot, decider: u32) -> Result<Agreed, u32> {
    if decider >= ballot.size() {
        return Err(ballot.own());
    }
    let word = |at| match ballot.proposal(decider, at) {
        Some(word) => Ok(word.load(Ordering::Relaxed)),
        None => Err(decider),
    };
    let first = word(0)?;
    let mut gone = Vec::new();
    for member in 0..ballot.size() {
        let bits = word(1 + member / u64::BITS)?;
        if bits >> (member % u64::BITS) & 1 != 0 {
            gone.push(member);
        }
    }
    Ok(Agreed {
        flags: first as u32,
        gone,
        are_acknowledged: first & ACKNOWLEDGED != 0,
        is_mixed: first & MIXED != 0,
    })
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{Board, LINES_BYTES, LinesPlace, SHARED_BYTES};
    use landeck_memory::heap::Heap;
    use landeck_memory::membership::{SlotRecord, SlotState};
    use landeck_memory::plan::SegmentPlan;
    use landeck_memory::segment::Segment;

    /// The members of a board, all in one thread.
    struct Members {
        segment: Segment,
        boards: Vec<Board>,
        heaps: Vec<Heap>,
    }

    impl Members {
        fn new(members: u32) -> Self {
            let plan = SegmentPlan {
                heap_bytes_per_process: 1 << 20,
                guests: 0,
                ..SegmentPlan::new(1, members)
            };
            let segment = Segment::local(&plan);
            let heaps = (0..members).map(|slot| Heap::of(&segment, slot).unwrap()).collect();
            let mut members = Self { segment, boards: Vec::new(), heaps };
            members.begin_anew();
            members
        }

        /// All live, on a board where nothing has happened.
        fn begin_anew(&mut self) {
            let (segment, count) = (&self.segment, self.heaps.len() as u32);
            let lines: Vec<_> =
                (0..count).map(|slot| LinesPlace::of_world(segment.plan(), slot)).collect();
            let zero = |start: u64, bytes: u64| {
                (start..start + bytes).step_by(8).for_each(|at| {
                    segment.long(at).store(0, Ordering::Relaxed);
                });
            };
            lines.iter().for_each(|place| zero(place.offset, LINES_BYTES));
            zero(segment.plan().world_board(), SHARED_BYTES);
            let open =
                |own| Board::open(segment, segment.plan().world_board(), &lines, own).unwrap();
            self.boards = (0..count).map(open).collect();
            (0..count).for_each(|slot| segment.set_slot_record(slot, SlotRecord::default()));
        }

        fn ends(&self, member: usize, state: SlotState) {
            self.segment.set_slot_record(member as u32, SlotRecord { state, ..Default::default() });
        }

        fn bring(&mut self, member: usize, part: Part) {
            let heap = &mut self.heaps[member];
            self.boards[member].bring(&part, |bytes| heap.allocate(bytes)).unwrap();
        }

        fn agreed(&mut self, member: usize) -> Option<Agreed> {
            self.boards[member].agreed().unwrap()
        }
    }

    fn flags(flags: u32) -> Part {
        Part { flags, ..Part::default() }
    }

    #[test]
    fn the_outcome_has_the_bits_that_all_have() {
        let mut members = Members::new(3);
        for round in 0..5u32 {
            for member in 0..3 {
                assert!(!members.boards[member].is_agreeing());
                members.bring(member, flags(round << 8 | 1 << member));
                let last = member == 2;
                assert_eq!(members.agreed(member).is_some(), last, "round {round}");
            }
            for member in 0..2 {
                let agreed = members.agreed(member).unwrap();
                assert_eq!((agreed.flags, agreed.gone.len()), (round << 8, 0));
                assert!(agreed.are_acknowledged && !agreed.is_mixed);
            }
        }
    }

    #[test]
    fn deaths_are_agreed_on_and_whether_all_knew_of_them() {
        let mut members = Members::new(70);
        members.ends(3, SlotState::Dead);
        members.ends(69, SlotState::Dead);
        members.ends(64, SlotState::Departed);
        let living: Vec<usize> = (0..70).filter(|member| ![3, 64, 69].contains(member)).collect();
        for (round, unaware) in [Some(5), None].into_iter().enumerate() {
            for &member in &living {
                let acknowledged = if unaware == Some(member) { 1 } else { 2 };
                members.bring(member, Part { flags: 6, acknowledged, offer: Offer::default() });
            }
            for &member in &living {
                let agreed = members.agreed(member).unwrap();
                assert_eq!((agreed.flags, &agreed.gone[..]), (6, &[3, 64, 69][..]));
                assert_eq!(agreed.are_acknowledged, round == 1);
            }
        }
    }

    #[test]
    fn offers_are_read_after_the_outcome_and_who_offers_nothing_is_noticed() {
        let mut members = Members::new(3);
        let offer = |member: u64| Offer { context: 9, lines: 64 * member, board: member };
        for member in 0..3 {
            let part = Part { offer: offer(member as u64), ..Part::default() };
            members.bring(member, part);
        }
        for member in 0..3 {
            assert!(!members.agreed(member).unwrap().is_mixed);
            assert_eq!(members.boards[member].offer(2), offer(2));
            if member == 0 {
                members.bring(0, Part { offer: offer(5), ..Part::default() });
            } else {
                assert_eq!(members.boards[member].offer(0), offer(0), "though it goes on");
            }
        }
        members.bring(1, flags(0));
        members.bring(2, flags(0));
        assert!((0..3).all(|member| members.agreed(member).unwrap().is_mixed));
    }

    /// A member of an agreement gets no further than so many steps: it brings its part, it writes
    /// its proposal, it decides.
    fn dies_after(members: &mut Members, member: usize, steps: usize) {
        if steps > 0 {
            members.bring(member, flags(1));
        }
        let board = &members.boards[member];
        if steps > 1 && all_are_in(board, 1, &mut 0) {
            propose(board, 1).unwrap();
            if steps > 2 {
                decide(board, 1);
            }
        }
        members.ends(member, SlotState::Dead);
    }

    /// Two of four die, each at any step, in any order with what the two others do.
    #[test]
    fn whoever_dies_at_whatever_step_the_others_learn_the_same() {
        let mut members = Members::new(4);
        for case in 0..4 * 4 * 24 {
            let (steps, order) = ([case % 4, case / 4 % 4], case / 16);
            members.begin_anew();
            let mut turns: Vec<usize> = vec![0, 1, 2, 3];
            let order: Vec<usize> = [4, 3, 2, 1]
                .iter()
                .scan(order, |rest, &left| {
                    let at = *rest % left;
                    *rest /= left;
                    Some(turns.remove(at))
                })
                .collect();
            for member in order {
                match member {
                    0 | 1 => dies_after(&mut members, member, steps[member]),
                    _ => members.bring(member, flags(3)),
                }
            }
            let [ours, theirs] = [2, 3].map(|member| members.agreed(member));
            assert_eq!(ours, theirs, "case {case}");
            let agreed = ours.unwrap();
            assert!(agreed.flags & 1 == 1 && agreed.gone.len() <= 2, "case {case}: {agreed:?}");
            // And the next one goes on without them.
            members.bring(2, flags(8));
            assert_eq!(members.agreed(2), None);
            members.bring(3, flags(8));
            let next = [2, 3].map(|member| members.agreed(member).unwrap());
            assert!(next.iter().all(|agreed| (agreed.flags, &agreed.gone[..]) == (8, &[0, 1][..])));
        }
    }

    #[test]
    fn scribbled_words_are_named_or_do_no_harm() {
        let mut members = Members::new(2);
        members.bring(0, flags(1));
        members.bring(1, flags(1));
        assert!(members.agreed(1).is_some());
        for garbage in [0, 64, u64::MAX, u64::MAX - 63] {
            members.boards[1].lines(1).proposal.store(garbage, Ordering::Relaxed);
            let broken = members.boards[0].agreed().unwrap_err();
            assert_eq!(broken.member, 1);
        }
        members.boards[0].outcome_word().publish(1, u32::MAX);
        assert!(members.boards[0].agreed().is_err());
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;
    use loom::thread;

    const MEMBERS: u32 = 3;

    struct Words {
        votes: [Vote; MEMBERS as usize],
        proposals: [[AtomicU64; 2]; MEMBERS as usize],
        has_died: [AtomicU32; MEMBERS as usize],
        outcome: Line,
    }

    struct Member {
        words: Arc<Words>,
        own: u32,
    }

    impl Ballot for Member {
        fn size(&self) -> u32 {
            MEMBERS
        }

        fn own(&self) -> u32 {
            self.own
        }

        fn vote(&self, member: u32, _number: u32) -> Option<&Vote> {
            self.words.votes.get(member as usize)
        }

        fn life(&self, member: u32) -> MemberStanding {
            match self.words.has_died[member as usize].load(Ordering::Acquire) {
                0 => MemberStanding::Lives,
                _ => MemberStanding::Died,
            }
        }

        fn outcome_word(&self) -> &Line {
            &self.words.outcome
        }

        fn proposal(&self, member: u32, at: u32) -> Option<&AtomicU64> {
            self.words.proposals.get(member as usize)?.get(at as usize)
        }
    }

    impl Member {
        fn bring(&self) {
            let part = Part { flags: 8 | 1 << self.own, ..Part::default() };
            self.words.votes[self.own as usize].bring(1, &part);
            landeck_memory::sync::fence(Ordering::SeqCst);
        }

        /// As far as `steps` of: see that all are in, propose, decide.
        fn walk(&self, steps: u32) -> Option<Agreed> {
            if let Some(decider) = self.outcome_word().published(1) {
                return Some(read(self, decider).unwrap());
            }
            if steps == 0 || !all_are_in(self, 1, &mut 0) {
                return None;
            }
            propose(self, 1)?;
            (steps > 2).then(|| read(self, decide(self, 1)).unwrap())
        }
    }

    fn members() -> [Member; MEMBERS as usize] {
        let zero = || AtomicU64::new(0);
        let words = Arc::new(Words {
            votes: Default::default(),
            proposals: std::array::from_fn(|_| [zero(), zero()]),
            has_died: std::array::from_fn(|_| AtomicU32::new(0)),
            outcome: Line::zero(),
        });
        [0, 1, 2].map(|own| Member { words: words.clone(), own })
    }

    /// One dies after each step of its own; those that live learn the same, and at least one of
    /// them without looking twice, or the agent's news of the death makes them look.
    fn all_who_live_learn_the_same(dies_after: u32) {
        landeck_memory::sync::model(move || {
            let [first, second, third] = members();
            let dying = thread::spawn(move || {
                if dies_after > 0 {
                    third.bring();
                    third.walk(dies_after - 1);
                }
                third.words.has_died[2].store(1, Ordering::Release);
            });
            let other = thread::spawn(move || {
                second.bring();
                (second.walk(3), second)
            });
            first.bring();
            let ours = first.walk(3);
            dying.join().unwrap();
            let (theirs, second) = other.join().unwrap();
            let ours = ours.or_else(|| first.walk(3)).unwrap();
            assert_eq!(ours, theirs.or_else(|| second.walk(3)).unwrap());
            let everybody = if dies_after == 0 { 8 } else { ours.flags };
            assert!(ours.flags == everybody && ours.flags & !8 == 0);
        });
    }

    #[test]
    fn a_death_before_the_part_is_brought_in_any_schedule() {
        all_who_live_learn_the_same(0);
    }

    #[test]
    fn a_death_after_the_part_is_brought_in_any_schedule() {
        all_who_live_learn_the_same(1);
    }

    #[test]
    fn a_death_after_the_proposal_in_any_schedule() {
        all_who_live_learn_the_same(3);
    }

    #[test]
    fn a_death_after_the_decision_in_any_schedule() {
        all_who_live_learn_the_same(4);
    }

    /// Of members that bring their parts at once, one sees that all are in: none waits for ever.
    #[test]
    fn somebody_decides_in_any_schedule() {
        landeck_memory::sync::model(|| {
            let [first, second, third] = members();
            third.bring();
            let other = thread::spawn(move || {
                second.bring();
                second.walk(3)
            });
            first.bring();
            let ours = first.walk(3);
            assert!(ours.is_some() | other.join().unwrap().is_some());
        });
    }
}
