//! A state as words, so that a process that comes later need not have seen all entries.
//!
//! The reader trusts nothing: words that no state has are refused.

use super::state::{Coming, Cut, MemberRecord, Phase, Server, State};
use super::{HELD_MAX, MEMBERS_MAX, Rules, Serving, WaitingSender};

const HEAD_WORDS: usize = 19;
const MEMBER_WORDS: usize = 5;
const HELD_WORDS: usize = 2;
const CUT_WORDS: usize = 4;
const CUT_MEMBER_WORDS: usize = 4;
const NONE: u64 = u64::MAX;

/// The largest number of words of a state.
pub const SNAPSHOT_WORDS_MAX: usize = HEAD_WORDS
    + MEMBERS_MAX * MEMBER_WORDS
    + HELD_MAX * HELD_WORDS
    + 2 * (CUT_WORDS + MEMBERS_MAX * CUT_MEMBER_WORDS);

impl State {
    /// Encodes the state as words.
    pub fn to_words(&self) -> Vec<u64> {
        let option = |id: Option<u32>| id.map_or(NONE, u64::from);
        let mut words = vec![
            self.position,
            self.broadcasts,
            u64::from(self.rules.minimum) | u64::from(self.rules.is_persistent) << 32,
            self.phase as u64,
            u64::from(self.has_started) | u64::from(self.is_syncing) << 1,
            self.view,
            self.rounds,
            option(self.died),
            option(self.died_last),
            self.cuts_made,
            self.members.len() as u64,
            self.held.len() as u64,
            self.epochs,
            self.unserved,
            option(self.died_of_cut),
        ];
        words.extend(server_words(self.server));
        for member in &self.members {
            words.extend([
                u64::from(member.id) | (member.sync as u64) << 16 | u64::from(member.slot) << 32,
                u64::from(member.incarnation) | u64::from(member.context) << 32,
                member.place,
                member.joined_at,
                member.first,
            ]);
        }
        for held in &self.held {
            words.extend([u64::from(held.ticket), pair(held.slot, held.incarnation)]);
        }
        for cut in &self.cuts {
            let count = cut.members.len() as u64;
            words.extend([cut.number, cut.view, option(cut.died), count]);
            words.extend(cut.members.iter().flatten());
        }
        words
    }

    /// Decodes the words of [`State::to_words`]; `None` if they are not valid. More words may follow.
    pub fn from_words(words: &[u64]) -> Option<Self> {
        let mut words = Reader(words);
        let head: [u64; HEAD_WORDS] = words.take()?;
        let option = |word: u64| u32::try_from(word).ok();
        let rules = Rules { minimum: head[2] as u32, is_persistent: head[2] >> 32 != 0 };
        let phases = [Phase::Open, Phase::Destroying, Phase::Ended];
        let mut state = Self {
            position: head[0],
            broadcasts: head[1],
            phase: phases.into_iter().find(|&phase| phase as u64 == head[3])?,
            has_started: head[4] & 1 != 0,
            is_syncing: head[4] & 2 != 0,
            view: head[5],
            rounds: head[6],
            died: option(head[7]),
            died_last: option(head[8]),
            cuts_made: head[9],
            epochs: head[12],
            unserved: head[13],
            died_of_cut: option(head[14]),
            server: server(head[15..].try_into().ok()?),
            ..Self::new(rules)
        };
        for _ in 0..at_most(head[10], MEMBERS_MAX)? {
            state.members.push(member(words.take()?)?);
        }
        let is_in_order = state.members.is_sorted_by(|one, next| one.id < next.id);
        for _ in 0..at_most(head[11], HELD_MAX)? {
            let [ticket, who]: [u64; HELD_WORDS] = words.take()?;
            let (slot, incarnation) = (who as u32, (who >> 32) as u32);
            state.held.push(WaitingSender { ticket: ticket as u32, slot, incarnation });
        }
        for cut in &mut state.cuts {
            let [number, view, died, members]: [u64; CUT_WORDS] = words.take()?;
            let members = (0..at_most(members, MEMBERS_MAX)?).map(|_| words.take());
            let died = option(died);
            *cut = Cut { number, view, died, members: members.collect::<Option<_>>()? };
        }
        is_in_order.then_some(state)
    }
}

fn member(
    [first, second, place, joined_at, broadcast]: [u64; MEMBER_WORDS],
) -> Option<MemberRecord> {
    let coming = [Coming::Apart, Coming::Awaited, Coming::Come, Coming::ComeToNext];
    let id = first as u32 & 0xffff;
    (id < MEMBERS_MAX as u32).then_some(MemberRecord {
        id,
        slot: (first >> 32) as u32,
        incarnation: second as u32,
        context: (second >> 32) as u32,
        place,
        joined_at,
        first: broadcast,
        sync: coming.into_iter().find(|&it| it as u64 == first >> 16 & 0xffff)?,
    })
}

/// Encodes the server: its presence and context; slot and incarnation; its epoch; its first broadcast.
fn server_words(server: Option<Server>) -> [u64; 4] {
    let Some(Server { who, epoch, first }) = server else { return [0; 4] };
    [1 | u64::from(who.context) << 32, pair(who.slot, who.incarnation), epoch, first]
}

fn server([about, who, epoch, first]: [u64; 4]) -> Option<Server> {
    let (slot, incarnation, context) = (who as u32, (who >> 32) as u32, (about >> 32) as u32);
    (about & 1 != 0).then_some(Server { who: Serving { slot, incarnation, context }, epoch, first })
}

fn at_most(count: u64, most: usize) -> Option<usize> {
    usize::try_from(count).ok().filter(|&count| count <= most)
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

struct Reader<'a>(&'a [u64]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u64; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EntryWord, GroupEntry, Joining};
    use super::*;

    fn busy() -> State {
        let mut state = State::new(Rules { minimum: 2, is_persistent: true });
        for slot in 0..4 {
            state.apply(GroupEntry::Join(Joining { slot, incarnation: 3, context: 9, place: 64 }));
        }
        for entry in [
            EntryWord::Sync(state.members[0].seat()),
            EntryWord::Cut { number: 1 },
            EntryWord::Died(state.members[1].seat()),
            EntryWord::Cut { number: 2 },
            EntryWord::Died(state.members[2].seat()),
        ] {
            state.apply(GroupEntry::Plain(entry));
        }
        state.apply(GroupEntry::Plain(EntryWord::Hold { slot: 7, incarnation: 8 }));
        state.apply(GroupEntry::Plain(EntryWord::Broadcast { cell: 3, was_held: false, by: 0 }));
        let who = Serving { slot: 3, incarnation: 7, context: u32::MAX };
        state.apply(GroupEntry::Serve(who));
        state.apply(GroupEntry::Plain(EntryWord::Vacate { epoch: 1 }));
        state.apply(GroupEntry::Serve(who));
        state
    }

    #[test]
    fn states_are_read_as_they_were_written() {
        for state in [State::new(Rules { minimum: 5, is_persistent: false }), busy()] {
            let mut words = state.to_words();
            assert!(words.len() <= SNAPSHOT_WORDS_MAX);
            words.extend([7; 5]);
            assert_eq!(State::from_words(&words), Some(state));
        }
    }

    #[test]
    fn words_of_no_state_are_none() {
        let words = busy().to_words();
        for length in 0..words.len() {
            assert!(State::from_words(&words[..length]).is_none(), "{length}");
        }
        for (at, word) in [(3, 3), (10, 1025), (11, 257), (10, u64::MAX), (HEAD_WORDS, 5 << 16)] {
            let mut bad = words.clone();
            bad[at] = word;
            assert!(State::from_words(&bad).is_none(), "{at}");
        }
        let mut twice = words.clone();
        twice[HEAD_WORDS] = words[HEAD_WORDS + MEMBER_WORDS];
        assert!(State::from_words(&twice).is_none(), "one number twice");
    }
}
