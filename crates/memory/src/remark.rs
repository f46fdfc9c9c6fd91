//! Remarks: details of a long wait that a process publishes for observers.
//!
//! A process writes its wait record as soon as it waits for more than a moment. Some details take time to
//! find out: the function of a front that the program has called, and the peers any of which would end the
//! wait, or the members of a group that has no board, because it spans hosts. The process adds them only when
//! the wait has lasted so long that an observer may ask, so short calls pay nothing for them.
//!
//! ```text
//! own page, byte 2688   since (64 bits): the wait that the rest is said of
//!               2696   the function, 40 bytes of text, zero behind it
//!               2752   how many peers, or runs of members (32 bits) | whether they are runs (32)
//!               2760   the peers, 32 bits each, at most 30; or the runs, at most 15:
//!                      first peer (32) | number (16) | distance of neighbours (16, signed)
//! ```

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use crate::segment::Segment;

/// Where it begins in the own page.
pub const REMARK: u64 = 2688;
/// Words from there to the function's name and to the slots.
const CALL_AT: usize = 1;
const COUNT_AT: usize = 8;
const SLOTS_AT: usize = 9;
const CALL_WORDS: usize = 5;
/// Words up to its end, from the start of the page.
pub(crate) const REMARK_END_WORDS: usize = (REMARK as usize / 8) + SLOTS_AT + SLOTS_MAX / 2;
/// Most slots that it names.
pub const SLOTS_MAX: usize = 30;
/// Most runs of members that it has room for.
const RUNS_MAX: usize = SLOTS_MAX / 2;
/// Most members of a group that are read.
const MEMBERS_MAX: usize = 1 << 16;

/// The name of a function, cut where it is too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallName([u64; CALL_WORDS]);

impl CallName {
    /// Most bytes of a name.
    pub const BYTES_MAX: usize = CALL_WORDS * 8;

    /// The name in this text: its letters, digits and underscores.
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; Self::BYTES_MAX];
        let is_part = |letter: &u8| letter.is_ascii_alphanumeric() || *letter == b'_';
        let letters = text.bytes().filter(is_part);
        bytes.iter_mut().zip(letters).for_each(|(place, letter)| *place = letter);
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at * 8 + byte]));
        Self(std::array::from_fn(word))
    }

    /// The name in these words, which may be anything; none where there is no name.
    fn from_words(words: &[u64]) -> Option<Self> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let name = Self::new(&String::from_utf8_lossy(&bytes[..end]));
        (name != Self::default()).then_some(name)
    }
}

impl std::fmt::Display for CallName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.0.map(u64::to_ne_bytes);
        let bytes = bytes.as_flattened();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        formatter.pad(&String::from_utf8_lossy(&bytes[..end]))
    }
}

/// The published details of one wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remark {
    /// When the wait began, in nanoseconds of the monotonic clock; this names the wait.
    pub since_ns: u64,
    /// The function that the program has called.
    pub call: Option<CallName>,
    /// Any of these slots can end the wait; empty where that is not known.
    pub any_of: Vec<u32>,
    /// The members of the group of the wait, in the order of their ranks; empty if its board knows them, if `any_of`
    /// names peers, or if they do not fit.
    pub members: Vec<u32>,
}

/// Peers in order at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u32,
    count: u16,
    distance: i16,
}

impl Run {
    /// The runs of these peers.
    fn of(peers: &[u32]) -> Vec<Self> {
        let mut runs: Vec<Self> = Vec::new();
        for &peer in peers {
            if !runs.last_mut().is_some_and(|last| last.take(peer)) {
                runs.push(Self { first: peer, count: 1, distance: 0 });
            }
        }
        runs
    }

    /// Takes the next peer, if it is at the same distance.
    fn take(&mut self, peer: u32) -> bool {
        let end = self.peers().last().unwrap_or(self.first);
        let Ok(distance) = i16::try_from(i64::from(peer) - i64::from(end)) else { return false };
        let fits = self.count == 1 || self.distance == distance;
        if fits && self.count < u16::MAX {
            (self.count, self.distance) = (self.count + 1, distance);
            return true;
        }
        false
    }

    fn peers(self) -> impl Iterator<Item = u32> {
        let at = move |number: u16| {
            self.first.wrapping_add_signed(i32::from(self.distance) * i32::from(number))
        };
        (0..self.count).map(at)
    }

    fn to_word(self) -> u64 {
        u64::from(self.first)
            | u64::from(self.count) << 32
            | u64::from(self.distance.cast_unsigned()) << 48
    }

    const fn from_word(word: u64) -> Self {
        let distance = ((word >> 48) as u16).cast_signed();
        Self { first: word as u32, count: (word >> 32) as u16, distance }
    }
}

impl Remark {
    /// Decodes the remark of the wait that began at `since_ns` from the words of an own page, which may hold anything.
    pub(crate) fn of_wait(page: &[u64], since_ns: u64) -> Option<Self> {
        let words = page.get(REMARK as usize / 8..REMARK_END_WORDS)?;
        if words[0] != since_ns || since_ns == 0 {
            return None;
        }
        let count = (words[COUNT_AT] as u32 as usize).min(SLOTS_MAX);
        let has_runs = words[COUNT_AT] >> 32 != 0;
        let runs = words[SLOTS_AT..].iter().take(count).filter(|_| has_runs);
        let members = runs.flat_map(|&word| Run::from_word(word).peers()).take(MEMBERS_MAX);
        let count = if has_runs { 0 } else { count };
        let slots = words[SLOTS_AT..].iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]);
        Some(Self {
            since_ns,
            call: CallName::from_words(&words[CALL_AT..CALL_AT + CALL_WORDS]),
            any_of: slots.take(count).collect(),
            members: members.collect(),
        })
    }
}

static NAMER: OnceLock<fn() -> Option<CallName>> = OnceLock::new();

/// Has this function asked which function the program has called, by a thread that has waited in that
/// call for long. The first one that is given stays.
pub fn name_calls(by: fn() -> Option<CallName>) {
    let _ = NAMER.set(by); // a second one names the same calls
}

/// The function that this thread is in, if a front can tell.
pub(crate) fn call_of_this_thread() -> Option<CallName> {
    NAMER.get().and_then(|name| name())
}

impl Segment {
    /// Publishes the remark of a slot's process on its wait; for that process only. A list of slots that has no room
    /// counts as empty.
    pub fn set_remark(&self, slot: u32, remark: &Remark) {
        let place = self.plan().own_page(slot) + REMARK;
        let set =
            |at: usize, value| self.long(place + at as u64 * 8).store(value, Ordering::Release);
        set(0, 0);
        for (at, word) in (CALL_AT..).zip(remark.call.unwrap_or_default().0) {
            set(at, word);
        }
        let slots = if remark.any_of.len() <= SLOTS_MAX { &remark.any_of[..] } else { &[] };
        for (at, pair) in (SLOTS_AT..).zip(slots.chunks(2)) {
            let second = pair.get(1).copied().unwrap_or(0);
            set(at, u64::from(pair[0]) | u64::from(second) << 32);
        }
        let runs = if slots.is_empty() { Run::of(&remark.members) } else { Vec::new() };
        let runs = if runs.len() <= RUNS_MAX { &runs[..] } else { &[] };
        (SLOTS_AT..).zip(runs).for_each(|(at, run)| set(at, run.to_word()));
        let counts = slots.len() as u64 | runs.len() as u64 | u64::from(!runs.is_empty()) << 32;
        set(COUNT_AT, counts);
        set(0, remark.since_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SegmentPlan;

    fn page(segment: &Segment, slot: u32) -> Vec<u64> {
        let start = segment.plan().own_page(slot);
        let words = (0..REMARK_END_WORDS as u64).map(|at| segment.long(start + at * 8));
        words.map(|word| word.load(Ordering::Relaxed)).collect()
    }

    fn segment() -> Segment {
        Segment::local(&SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(1, 2) })
    }

    #[test]
    fn a_remark_is_read_as_it_was_said_and_of_its_wait_alone() {
        let segment = segment();
        let call = Some(CallName::new("MPI_Waitany"));
        for any_of in [vec![], vec![7], (0..SLOTS_MAX as u32).collect()] {
            let remark = Remark { since_ns: 5, call, any_of, members: vec![] };
            segment.set_remark(1, &remark);
            assert_eq!(Remark::of_wait(&page(&segment, 1), 5), Some(remark));
            assert_eq!(Remark::of_wait(&page(&segment, 1), 6), None);
        }
        let any_of = vec![1; SLOTS_MAX + 1];
        let many = Remark { since_ns: 5, any_of, ..Remark::default() };
        segment.set_remark(1, &many);
        let read = Remark::of_wait(&page(&segment, 1), 5).unwrap();
        assert_eq!((read.call, read.any_of), (None, vec![]));
        assert_eq!(Remark::of_wait(&page(&segment, 0), 0), None);
    }

    #[test]
    fn members_of_a_group_are_read_in_their_order() {
        let segment = segment();
        let read = |members: &[u32]| {
            let remark = Remark { since_ns: 5, members: members.to_vec(), ..Remark::default() };
            segment.set_remark(1, &remark);
            Remark::of_wait(&page(&segment, 1), 5).unwrap().members
        };
        let even = (0..4_000).map(|at| at * 2);
        let over_hosts: Vec<u32> = even.chain((9_000..9_500).rev()).collect();
        let squares: Vec<u32> = (0..SLOTS_MAX as u32).map(|at| at * at).collect();
        for members in [&[7][..], &[3, 70_000, 1], &over_hosts, &squares] {
            assert_eq!(read(members), members);
        }
        let too_many: Vec<u32> = (0..100).map(|at| at * at).collect();
        assert_eq!(read(&too_many), []);
        let any_of = vec![4];
        let both = Remark { since_ns: 5, any_of, members: vec![1, 2], ..Remark::default() };
        segment.set_remark(1, &both);
        let both = Remark::of_wait(&page(&segment, 1), 5).unwrap();
        assert_eq!((both.any_of, both.members), (vec![4], vec![]));
        let nonsense = Remark::of_wait(&[u64::MAX; REMARK_END_WORDS], u64::MAX).unwrap();
        assert_eq!(nonsense.members.len(), MEMBERS_MAX, "bounded, whatever stands there");
    }

    #[test]
    fn names_are_plain_whatever_stands_there() {
        assert_eq!(CallName::new("MPI_Recv\u{1b}[1m").to_string(), "MPI_Recv1m");
        assert_eq!(CallName::new(&"x".repeat(99)).to_string().len(), CallName::BYTES_MAX);
        assert_eq!(CallName::from_words(&[0; CALL_WORDS]), None);
        let all_set = CallName::from_words(&[u64::MAX; CALL_WORDS]);
        assert_eq!(all_set, None, "nothing of that is a letter");
    }
}
