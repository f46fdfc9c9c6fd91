//! Matching: finds the receive of each message.
//!
//! A receive names a context, and a source and a tag or *any* of either: four forms. Posted receives stand in lists by
//! form and key. An unexpected message stands in the four lists in which a receive could look for it. So both
//! directions cost a few look-ups, however many are pending. Among several matches the oldest wins: receives carry the
//! number of their posting, and a list is in order of arrival.
//!
//! The newest receives with equal arguments are kept in a queue beside the tables, as long as no receive with other
//! arguments is posted. That is the common case of one receive at a time, or of a window of them: then a match is a
//! comparison.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// The arguments of a receive or a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The context.
    pub context: u32,
    /// The sender; `None` means any.
    pub source: Option<u32>,
    /// The tag; `None` means any.
    pub tag: Option<u32>,
}

impl Wanted {
    /// Whether a message with this label matches.
    #[inline]
    pub fn accepts(&self, label: Label) -> bool {
        self.context == label.context
            && self.source.is_none_or(|source| source == label.source)
            && self.tag.is_none_or(|tag| tag == label.tag)
    }
}

/// The matching fields of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The context it was sent in.
    pub context: u32,
    /// Its sender.
    pub source: u32,
    /// Its tag.
    pub tag: u32,
}

/// The key of a list: a form, and the values that it fixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    form: u32,
    context: u32,
    source: u32,
    tag: u32,
}

const FORMS: usize = 4;
const ANY_SOURCE: u32 = 1;
const ANY_TAG: u32 = 2;

impl Key {
    fn of(wanted: &Wanted) -> Self {
        let any_source = if wanted.source.is_none() { ANY_SOURCE } else { 0 };
        let any_tag = if wanted.tag.is_none() { ANY_TAG } else { 0 };
        Self {
            form: any_source | any_tag,
            context: wanted.context,
            source: wanted.source.unwrap_or(0),
            tag: wanted.tag.unwrap_or(0),
        }
    }

    fn in_form(label: Label, form: usize) -> Self {
        let form = form as u32;
        let source = if form & ANY_SOURCE == 0 { label.source } else { 0 };
        let tag = if form & ANY_TAG == 0 { label.tag } else { 0 };
        Self { form, context: label.context, source, tag }
    }
}

/// A hash for keys of a few small numbers: multiply and fold, as in the Fx hash.
#[derive(Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let product = u128::from(self.0 ^ u64::from(number)) * u128::from(FACTOR);
        self.0 = (product >> 64) as u64 ^ (product as u64).rotate_left(23);
    }
}

type Lists = HashMap<Key, u32, BuildHasherDefault<KeyHasher>>;

const NONE: u32 = u32::MAX;

/// The ends of a list.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

const EMPTY: List = List { first: NONE, last: NONE };

/// A node's place in one list.
#[derive(Clone, Copy)]
struct QueueLink {
    list: u32,
    before: u32,
    after: u32,
}

const UNLINKED: QueueLink = QueueLink { list: NONE, before: NONE, after: NONE };

/// A node in up to `N` lists.
struct Node<T, const N: usize> {
    value: Option<T>,
    /// Grows with every node, so that the oldest can be found.
    number: u64,
    links: [QueueLink; N],
}

/// Nodes in lists by key. Lists that became empty stay for a while, since the next message often has the same key; they
/// are swept when most lists are empty.
struct Table<T, const N: usize> {
    lists: Lists,
    ends: Vec<List>,
    nodes: Vec<Node<T, N>>,
    free: Vec<u32>,
    free_lists: Vec<u32>,
    empty_lists: usize,
}

impl<T, const N: usize> Table<T, N> {
    fn new() -> Self {
        Self {
            lists: Lists::default(),
            ends: Vec::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            free_lists: Vec::new(),
            empty_lists: 0,
        }
    }

    fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    fn first(&self, key: &Key) -> Option<u32> {
        let list = *self.lists.get(key)?;
        let first = self.ends[list as usize].first;
        (first != NONE).then_some(first)
    }

    fn insert(&mut self, value: T, number: u64, keys: [Key; N]) -> u32 {
        self.sweep();
        let node = Node { value: Some(value), number, links: [UNLINKED; N] };
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        for (way, key) in keys.into_iter().enumerate() {
            self.put_in(at, way, key);
        }
        at
    }

    /// Inserts a node into a list by its number, which is most often the greatest there.
    fn put_in(&mut self, at: u32, way: usize, key: Key) {
        let number = self.nodes[at as usize].number;
        let list = match self.lists.entry(key) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                self.empty_lists += 1;
                *entry.insert(self.free_lists.pop().unwrap_or_else(|| {
                    self.ends.push(EMPTY);
                    (self.ends.len() - 1) as u32
                }))
            }
        };
        let ends = &mut self.ends[list as usize];
        if ends.first == NONE {
            self.empty_lists -= 1;
        }
        let (mut before, mut after) = (ends.last, NONE);
        while before != NONE && self.nodes[before as usize].number > number {
            after = before;
            before = self.nodes[before as usize].links[way].before;
        }
        match before {
            NONE => ends.first = at,
            _ => self.nodes[before as usize].links[way].after = at,
        }
        match after {
            NONE => ends.last = at,
            _ => self.nodes[after as usize].links[way].before = at,
        }
        self.nodes[at as usize].links[way] = QueueLink { list, before, after };
    }

    fn remove(&mut self, at: u32) -> Option<T> {
        let links = self.nodes.get(at as usize)?.links;
        let value = self.nodes[at as usize].value.take()?;
        for (way, link) in links.into_iter().enumerate() {
            let ends = &mut self.ends[link.list as usize];
            if link.before == NONE {
                ends.first = link.after;
            }
            if link.after == NONE {
                ends.last = link.before;
            }
            if ends.first == NONE {
                self.empty_lists += 1;
            }
            if link.before != NONE {
                self.nodes[link.before as usize].links[way].after = link.after;
            }
            if link.after != NONE {
                self.nodes[link.after as usize].links[way].before = link.before;
            }
        }
        self.free.push(at);
        Some(value)
    }

    /// Removes empty lists once there are many and they are the majority.
    fn sweep(&mut self) {
        const MANY: usize = 1024;
        if self.empty_lists < MANY || self.empty_lists < self.lists.len() / 2 {
            return;
        }
        let (ends, free_lists) = (&self.ends, &mut self.free_lists);
        self.lists.retain(|_, &mut list| {
            let used = ends[list as usize].first != NONE;
            if !used {
                free_lists.push(list);
            }
            used
        });
        self.empty_lists = 0;
    }

    fn values(&self) -> impl Iterator<Item = (u32, &T)> {
        self.nodes
            .iter()
            .enumerate()
            .filter_map(|(at, node)| Some((at as u32, node.value.as_ref()?)))
    }
}

/// A posted receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted<R> {
    /// The arguments of the receive.
    pub wanted: Wanted,
    /// The identifier of the receive.
    pub receive: R,
}

/// An unexpected message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting<M> {
    /// The matching fields of the message.
    pub label: Label,
    /// The message.
    pub message: M,
    /// Its position among the others.
    pub number: u64,
}

/// Posted receives and unexpected messages.
pub struct Matching<R: Copy + PartialEq, M> {
    /// Receives that all want `newest_wanted`, and are newer than those in the table.
    newest: VecDeque<(u64, R)>,
    newest_wanted: Wanted,
    posted: Table<Posted<R>, 1>,
    unexpected: Table<(Label, M), FORMS>,
    /// The number of posted receives of each form in the table: forms without any need no look-up.
    posted_by_form: [usize; FORMS],
    next_number: u64,
}

impl<R: Copy + PartialEq, M> Default for Matching<R, M> {
    fn default() -> Self {
        Self {
            newest: VecDeque::new(),
            newest_wanted: Wanted { context: 0, source: None, tag: None },
            posted: Table::new(),
            unexpected: Table::new(),
            posted_by_form: [0; FORMS],
            next_number: 0,
        }
    }
}

impl<R: Copy + PartialEq, M> Matching<R, M> {
    /// Posts a receive, to be matched by later arrivals. The caller has looked for an unexpected message before.
    #[inline]
    pub fn post(&mut self, wanted: Wanted, receive: R) {
        if self.newest_wanted != wanted {
            self.shelve();
            self.newest_wanted = wanted;
        }
        let number = self.number();
        self.newest.push_back((number, receive));
    }

    /// Moves the newest receives into the table, to make room for a receive with other arguments.
    #[inline(never)]
    fn shelve(&mut self) {
        let wanted = self.newest_wanted;
        let key = Key::of(&wanted);
        for (number, receive) in self.newest.drain(..) {
            self.posted_by_form[key.form as usize] += 1;
            self.posted.insert(Posted { wanted, receive }, number, [key]);
        }
    }

    /// Removes and returns the oldest posted receive that matches a message with this label.
    #[inline]
    pub fn match_arrival(&mut self, label: Label) -> Option<R> {
        if self.posted.len() != 0
            && let Some(receive) = self.match_shelved(label)
        {
            return Some(receive);
        }
        if !self.newest_wanted.accepts(label) {
            return None;
        }
        self.newest.pop_front().map(|(_, receive)| receive)
    }

    fn match_shelved(&mut self, label: Label) -> Option<R> {
        let candidates = (0..FORMS)
            .filter(|&form| self.posted_by_form[form] != 0)
            .filter_map(|form| self.posted.first(&Key::in_form(label, form)));
        let oldest = candidates.min_by_key(|&at| self.posted.nodes[at as usize].number)?;
        self.unshelve(oldest)
    }

    fn unshelve(&mut self, at: u32) -> Option<R> {
        let posted = self.posted.remove(at)?;
        self.posted_by_form[Key::of(&posted.wanted).form as usize] -= 1;
        Some(posted.receive)
    }

    /// Withdraws a posted receive; returns false if it is not posted (any more).
    pub fn withdraw(&mut self, receive: R) -> bool {
        if let Some(at) = self.newest.iter().position(|&(_, newest)| newest == receive) {
            self.newest.remove(at);
            return true;
        }
        let found = self.posted.values().find(|(_, posted)| posted.receive == receive);
        let Some(at) = found.map(|(at, _)| at) else { return false };
        self.unshelve(at).is_some()
    }

    /// The posted receives.
    pub fn posted(&self) -> impl Iterator<Item = Posted<R>> {
        let wanted = self.newest_wanted;
        let newest = self.newest.iter().map(move |&(_, receive)| Posted { wanted, receive });
        newest.chain(self.posted.values().map(|(_, posted)| *posted))
    }

    /// Keeps an unexpected message.
    pub fn keep(&mut self, label: Label, message: M) {
        let number = self.number();
        self.keep_again(Waiting { label, message, number });
    }

    /// Keeps a message again that was taken out, or one with a number of its own: at the position that this number has.
    pub fn keep_again(&mut self, Waiting { label, message, number }: Waiting<M>) {
        let keys = [0, 1, 2, 3].map(|form| Key::in_form(label, form));
        self.unexpected.insert((label, message), number, keys);
    }

    /// Removes and returns the oldest unexpected message that matches.
    #[inline]
    pub fn take(&mut self, wanted: &Wanted) -> Option<Waiting<M>> {
        if self.unexpected.len() == 0 {
            return None;
        }
        let at = self.unexpected.first(&Key::of(wanted))?;
        let number = self.unexpected.nodes[at as usize].number;
        let (label, message) = self.unexpected.remove(at)?;
        Some(Waiting { label, message, number })
    }

    /// The oldest unexpected message that matches; it stays.
    pub fn peek(&self, wanted: &Wanted) -> Option<&(Label, M)> {
        let at = self.unexpected.first(&Key::of(wanted))?;
        self.unexpected.nodes[at as usize].value.as_ref()
    }

    /// Removes and returns the first unexpected message that satisfies `is_it`.
    pub fn take_out(&mut self, is_it: impl Fn(Label, &M) -> bool) -> Option<Waiting<M>> {
        let found = self.unexpected.values().find(|(_, (label, message))| is_it(*label, message));
        let at = found?.0;
        let number = self.unexpected.nodes[at as usize].number;
        let (label, message) = self.unexpected.remove(at)?;
        Some(Waiting { label, message, number })
    }

    /// Whether there are no posted receives and no unexpected messages.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty() && self.posted.len() == 0 && self.unexpected.len() == 0
    }

    /// Whether any receive is posted.
    #[inline]
    pub fn has_posted(&self) -> bool {
        !self.newest.is_empty() || self.posted.len() != 0
    }

    /// Whether all posted receives, if any, have these arguments, and there are no unexpected messages.
    #[inline]
    pub fn are_all_like(&self, wanted: &Wanted) -> bool {
        self.newest_wanted == *wanted && self.posted.len() == 0 && self.unexpected.len() == 0
    }

    /// The number of unexpected messages.
    pub fn waiting(&self) -> usize {
        self.unexpected.len()
    }

    /// The labels of the unexpected messages of a context, in the order in which they came.
    pub fn waiting_in(&self, context: u32) -> impl Iterator<Item = Label> {
        let key = Key::of(&Wanted { context, source: None, tag: None });
        let way = key.form as usize;
        let first = self.unexpected.first(&key);
        let after = move |&at: &u32| {
            let after = self.unexpected.nodes[at as usize].links[way].after;
            (after != NONE).then_some(after)
        };
        let nodes = std::iter::successors(first, after);
        nodes.filter_map(|at| Some(self.unexpected.nodes[at as usize].value.as_ref()?.0))
    }

    /// The unexpected messages, in no particular order.
    pub fn waiting_messages(&self) -> impl Iterator<Item = &M> {
        self.unexpected.values().map(|(_, (_, message))| message)
    }

    /// Removes the unexpected messages that satisfy `doomed`, and hands each to `drop_one`.
    pub fn discard(&mut self, doomed: impl Fn(Label) -> bool, mut drop_one: impl FnMut(Label, M)) {
        let doomed: Vec<u32> = self
            .unexpected
            .values()
            .filter(|(_, (label, _))| doomed(*label))
            .map(|(at, _)| at)
            .collect();
        for at in doomed {
            if let Some((label, message)) = self.unexpected.remove(at) {
                drop_one(label, message);
            }
        }
    }

    /// Creates a number greater than all before.
    #[inline]
    pub fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Matching as the MPI standard describes it: two lists, searched from the front.
    #[derive(Default)]
    struct Naive {
        posted: Vec<(Wanted, u32)>,
        waiting: Vec<(Label, u32)>,
        taken: Vec<(Label, u32)>,
    }

    #[derive(Clone, Debug)]
    enum Action {
        Receive(Wanted),
        Arrive(Label),
        Withdraw(usize),
        Peek(Wanted),
        Discard(u32),
        /// Keeps one of the messages again that were taken.
        KeepAgain(usize),
    }

    fn wanted() -> impl Strategy<Value = Wanted> {
        (0..2u32, proptest::option::of(0..3u32), proptest::option::of(0..3u32))
            .prop_map(|(context, source, tag)| Wanted { context, source, tag })
    }

    fn label() -> impl Strategy<Value = Label> {
        (0..2u32, 0..3u32, 0..3u32).prop_map(|(context, source, tag)| Label {
            context,
            source,
            tag,
        })
    }

    fn action() -> impl Strategy<Value = Action> {
        prop_oneof![
            6 => wanted().prop_map(Action::Receive),
            6 => label().prop_map(Action::Arrive),
            1 => (0..50usize).prop_map(Action::Withdraw),
            1 => wanted().prop_map(Action::Peek),
            1 => (0..3u32).prop_map(Action::Discard),
            2 => (0..50usize).prop_map(Action::KeepAgain),
        ]
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_naive_model(actions in proptest::collection::vec(action(), 1..200)) {
            let mut naive = Naive::default();
            let mut matching = Matching::<u32, u32>::default();
            let mut taken = Vec::new();
            for (number, action) in (0u32..).zip(actions) {
                match action {
                    Action::Receive(wanted) => {
                        let at = naive.waiting.iter().position(|(label, _)| wanted.accepts(*label));
                        let expected = at.map(|at| naive.waiting.remove(at));
                        let found = matching.take(&wanted);
                        prop_assert_eq!(found.map(|it| (it.label, it.message)), expected);
                        naive.taken.extend(expected);
                        taken.extend(found);
                        if expected.is_none() {
                            naive.posted.push((wanted, number));
                            matching.post(wanted, number);
                        }
                    }
                    Action::Arrive(label) => {
                        let at = naive.posted.iter().position(|(wanted, _)| wanted.accepts(label));
                        let expected = at.map(|at| naive.posted.remove(at).1);
                        prop_assert_eq!(matching.match_arrival(label), expected);
                        if expected.is_none() {
                            naive.waiting.push((label, number));
                            matching.keep(label, number);
                        }
                    }
                    Action::Withdraw(which) => {
                        let receive = naive.posted.get(which).map_or(u32::MAX, |posted| posted.1);
                        let was_there = which < naive.posted.len();
                        if was_there {
                            naive.posted.remove(which);
                        }
                        prop_assert_eq!(matching.withdraw(receive), was_there);
                    }
                    Action::Peek(wanted) => {
                        let expected = naive.waiting.iter().find(|(label, _)| wanted.accepts(*label));
                        prop_assert_eq!(matching.peek(&wanted), expected);
                    }
                    Action::KeepAgain(which) if which < taken.len() => {
                        let again = naive.taken.remove(which);
                        let at = naive.waiting.iter().position(|(_, number)| *number > again.1);
                        naive.waiting.insert(at.unwrap_or(naive.waiting.len()), again);
                        matching.keep_again(taken.remove(which));
                    }
                    Action::KeepAgain(_) => {}
                    Action::Discard(source) => {
                        naive.waiting.retain(|(label, _)| label.source != source);
                        matching.discard(|label| label.source == source, |_, _| ());
                    }
                }
                prop_assert_eq!(matching.waiting(), naive.waiting.len());
                let in_context = naive.waiting.iter().map(|(label, _)| *label);
                let in_context = in_context.filter(|label| label.context == 1);
                prop_assert!(matching.waiting_in(1).eq(in_context));
                prop_assert_eq!(matching.posted().count(), naive.posted.len());
            }
        }
    }

    #[test]
    fn lists_of_names_never_used_again_are_forgotten() {
        let mut matching = Matching::<u32, u32>::default();
        matching.keep(Label { context: 9, source: 0, tag: 0 }, 0);
        for tag in 0..100_000 {
            matching.keep(Label { context: 0, source: 0, tag }, tag);
            assert!(
                matching.take(&Wanted { context: 0, source: Some(0), tag: Some(tag) }).is_some()
            );
        }
        assert!(matching.unexpected.ends.len() < 10_000, "{}", matching.unexpected.ends.len());
    }
}
