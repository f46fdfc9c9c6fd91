//! A state as words, so that a process that comes later need not have seen all entries.
//!
//! The reader trusts nothing: words that no state has are refused.

use landeck_wire::SegmentId;

use super::changes::{CHANGES_MAX, ChangedMember, Changes, Gone, MemberChange};
use super::cut::{Cut, CutMember};
use super::member::{Coming, MemberRecord};
use super::state::{Phase, Server, State};
use super::{HELD_MAX, HOSTS_MAX, MEMBERS_MAX, Party, Rules, Serving, WaitingSender};

const HEAD_WORDS: usize = 22;
const MEMBER_WORDS: usize = 5;
const HELD_WORDS: usize = 2;
const CHANGE_WORDS: usize = 6;
const CUT_WORDS: usize = 4;
const CUT_MEMBER_WORDS: usize = 3;
const NONE: u64 = u64::MAX;

/// The largest number of words of a state.
pub const SNAPSHOT_WORDS_MAX: usize = HEAD_WORDS
    + HOSTS_MAX
    + MEMBERS_MAX * MEMBER_WORDS
    + CHANGES_MAX * CHANGE_WORDS
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
            self.hosts.len() as u64,
            self.changes.kept().len() as u64,
            self.changes.forgotten(),
        ];
        words.extend(server_words(self.server));
        words.extend(self.hosts.iter().map(|host| host.0));
        for member in &self.members {
            words.extend([
                u64::from(member.id) | (member.sync as u64) << 16 | u64::from(member.context) << 32,
                member.process.to_word(),
                member.place,
                member.joined_at,
                member.first,
            ]);
        }
        for held in &self.held {
            words.extend([held.ticket, held.process.to_word()]);
        }
        words.extend(self.changes.kept().iter().flat_map(change_words));
        for cut in &self.cuts {
            let count = cut.members.len() as u64;
            words.extend([cut.number, cut.view, option(cut.died), count]);
            for CutMember { id, process, joined_at } in &cut.members {
                words.extend([u64::from(*id), process.to_word(), *joined_at]);
            }
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
            server: server(head[18..].try_into().ok()?),
            ..Self::new(rules, SegmentId(0))
        };
        let hosts = (0..at_most(head[15], HOSTS_MAX)?).map(|_| words.take());
        state.hosts =
            hosts.map(|host| host.map(|[host]| SegmentId(host))).collect::<Option<_>>()?;
        for _ in 0..at_most(head[10], MEMBERS_MAX)? {
            state.members.push(member(words.take()?)?);
        }
        let is_in_order = state.members.is_sorted_by(|one, next| one.id < next.id);
        for _ in 0..at_most(head[11], HELD_MAX)? {
            let [ticket, process]: [u64; HELD_WORDS] = words.take()?;
            state.held.push(WaitingSender { ticket, process: Party::from_word(process) });
        }
        let changes = (0..at_most(head[16], CHANGES_MAX)?).map(|_| change(words.take()?));
        state.changes = Changes::new(changes.collect::<Option<_>>()?, head[17]);
        for cut in &mut state.cuts {
            let [number, view, died, members]: [u64; CUT_WORDS] = words.take()?;
            let members = (0..at_most(members, MEMBERS_MAX)?).map(|_| words.take().map(cut_member));
            let died = option(died);
            *cut = Cut { number, view, died, members: members.collect::<Option<_>>()? };
        }
        is_in_order.then_some(state)
    }
}

fn cut_member([id, process, joined_at]: [u64; CUT_MEMBER_WORDS]) -> CutMember {
    CutMember { id: id as u32, process: Party::from_word(process), joined_at }
}

fn member(
    [first, process, place, joined_at, broadcast]: [u64; MEMBER_WORDS],
) -> Option<MemberRecord> {
    let coming = [Coming::Apart, Coming::Awaited, Coming::Come, Coming::ComeToNext];
    let id = first as u32 & 0xffff;
    (id < MEMBERS_MAX as u32).then_some(MemberRecord {
        id,
        process: Party::from_word(process),
        context: (first >> 32) as u32,
        place,
        joined_at,
        first: broadcast,
        sync: coming.into_iter().find(|&it| it as u64 == first >> 16 & 0xffff)?,
    })
}

/// Encodes a change: its view; the broadcasts before it; the member's number, way of going and context; its process, place
/// and beginning.
fn change_words(change: &MemberChange) -> [u64; CHANGE_WORDS] {
    let MemberChange { view, after, gone, member } = *change;
    let ChangedMember { id, process, context, place, joined_at } = member;
    let gone = gone.map_or(0, |gone| gone as u64);
    let about = u64::from(id) | gone << 16 | u64::from(context) << 32;
    [view, after, about, process.to_word(), place, joined_at]
}

fn change(
    [view, after, about, process, place, joined_at]: [u64; CHANGE_WORDS],
) -> Option<MemberChange> {
    let ways = [Gone::Left, Gone::Died, Gone::Evicted, Gone::HostLost];
    let gone = match about >> 16 & 0xffff {
        0 => None,
        way => Some(ways.into_iter().find(|&it| it as u64 == way)?),
    };
    let (id, context) = (about as u32 & 0xffff, (about >> 32) as u32);
    let member =
        ChangedMember { id, process: Party::from_word(process), context, place, joined_at };
    Some(MemberChange { view, after, gone, member })
}

/// Encodes the server: its presence and context; its process; its epoch; its first broadcast.
fn server_words(server: Option<Server>) -> [u64; 4] {
    let Some(Server { who, epoch, first }) = server else { return [0; 4] };
    [1 | u64::from(who.context) << 32, who.process.to_word(), epoch, first]
}

fn server([about, process, epoch, first]: [u64; 4]) -> Option<Server> {
    let who = Serving { process: Party::from_word(process), context: (about >> 32) as u32 };
    (about & 1 != 0).then_some(Server { who, epoch, first })
}

fn at_most(count: u64, most: usize) -> Option<usize> {
    usize::try_from(count).ok().filter(|&count| count <= most)
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
    use super::super::{GroupEntry, Joining};
    use super::*;

    /// The first word of the members, behind two hosts.
    const MEMBERS: usize = HEAD_WORDS + 2;

    fn new(rules: Rules) -> State {
        State::new(rules, SegmentId(9))
    }

    fn busy() -> State {
        let mut state = new(Rules { minimum: 2, is_persistent: true });
        let process = |host, slot| Party { host, slot, incarnation: 3 };
        state.apply(GroupEntry::Host(SegmentId(u64::MAX)));
        for slot in 0..7 {
            let process = process(slot % 2, slot);
            state.apply(GroupEntry::Join(Joining { process, context: 9, place: 64 }));
        }
        for entry in [
            GroupEntry::Sync(state.members[0].seat()),
            GroupEntry::Cut { number: 1 },
            GroupEntry::Died(state.members[1].seat()),
            GroupEntry::Cut { number: 2 },
            GroupEntry::Died(state.members[2].seat()),
            GroupEntry::HostGone(1),
            GroupEntry::Hold(process(1, 7)),
            GroupEntry::Broadcast { was_held: false, by: None },
        ] {
            state.apply(entry);
        }
        let who = Serving { process: process(0, 3), context: u32::MAX };
        state.apply(GroupEntry::Serve(who));
        state.apply(GroupEntry::Vacate { epoch: 1 });
        state.apply(GroupEntry::Serve(who));
        state
    }

    #[test]
    fn states_are_read_as_they_were_written() {
        for state in [new(Rules { minimum: 5, is_persistent: false }), busy()] {
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
        for (at, word) in [
            (3, 3),
            (10, 1025),
            (11, 257),
            (10, u64::MAX),
            (15, 1025),
            (16, 257),
            (MEMBERS, 5 << 16),
        ] {
            let mut bad = words.clone();
            bad[at] = word;
            assert!(State::from_words(&bad).is_none(), "{at}");
        }
        let mut twice = words.clone();
        twice[MEMBERS] = words[MEMBERS + MEMBER_WORDS];
        assert!(State::from_words(&twice).is_none(), "one number twice");
    }
}
