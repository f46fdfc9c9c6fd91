//! The signature of a call, as it travels with the messages of a member.

use std::fmt;

use crate::operation::Operation;

/// A call: its number in the group, its operation, and its root or number of rounds, with the way that it takes and what
/// it is for where these are not the usual ones. Members whose calls differ in any of these never take each other's
/// messages.
///
/// A tag has room for the place of the number in a *span* of 8,192 calls. The span of a message is known from its sender,
/// which tells it by a message of its own ([`Signature::span_tag`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    number: u32,
    operation: u32,
    /// The root; where there is none, the rounds it is done in if these are several, or 0. Calls that state more are
    /// numbered from [`MAKINGS`], [`WAYS`] and [`DIRECT`] on.
    root_or_rounds: u32,
}

/// The group that members make together in an allgather of words about themselves. Each kind is a call of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Making {
    /// Groups by colors, of which a host may be one.
    Split,
    /// A group of the same members.
    Duplicate,
    /// A group of the same members, by a call that does not wait.
    StartedDuplicate,
    /// A group of some members.
    Subset,
    /// A group of the same members in other clusters.
    Clusters,
}

impl Making {
    const ALL: [Self; 5] =
        [Self::Split, Self::Duplicate, Self::StartedDuplicate, Self::Subset, Self::Clusters];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Duplicate => "duplicate",
            Self::StartedDuplicate => "started duplicate",
            Self::Subset => "subset",
            Self::Clusters => "duplicate in clusters",
        }
    }
}

const NUMBER_BITS: u32 = 13;
/// The calls of a span: numbers within one are told apart by tags.
pub const SPAN_CALLS: u32 = 1 << NUMBER_BITS;
const OPERATION_BITS: u32 = 5;
/// Bits of the root, or of the rounds: the lowest of a call and of a tag.
pub const ROOT_BITS: u32 = 14;
/// Bits of a call, as it stands on a board.
pub const CALL_BITS: u32 = OPERATION_BITS + ROOT_BITS;

/// Added to the number of an operation in checking mode, so that calls with and without checking never match.
const CHECKED: u32 = 1 << (OPERATION_BITS - 1);
/// The most members of a group whose started operations go directly to all members of other hosts.
pub const DIRECT_MEMBERS_MAX: u32 = 64;
/// The roots of such operations are numbered from here on, so only such calls match each other. Larger groups have none,
/// and groups with so many members are not told from them in texts.
const DIRECT: u32 = (1 << ROOT_BITS) - DIRECT_MEMBERS_MAX;
/// The roots or rounds of calls that go by another way than the shortest data do are numbered from here on: some bits for
/// the way, the others for the root or the rounds. So members whose lengths imply different plans find out. Larger groups
/// are not told from them in texts.
const WAYS: u32 = 1 << (ROOT_BITS - 1);
const BESIDE_WAY_BITS: u32 = 9;
/// Ways are told apart by so many numbers.
const WAYS_TOLD: u32 = 14;
/// The calls that make groups are numbered from here on.
const MAKINGS: u32 = WAYS - Making::ALL.len() as u32;
/// The operation of a message that tells of a mismatch.
const ALARM: u32 = (1 << OPERATION_BITS) - 1;
/// The operation of a message that names the call its sender is in.
const REMARK: u32 = ALARM - 1;
/// The operation of a message that tells the span of those behind it.
const SPAN: u32 = REMARK - 1;

impl Signature {
    /// A call. The root, or the rounds, are cut to their field.
    #[inline]
    pub fn new(number: u32, operation: Operation, root_or_rounds: u32) -> Self {
        Self { number, operation: operation as u32, root_or_rounds }.cut()
    }

    /// Returns the signature in checking mode.
    #[inline]
    pub fn checked(self) -> Self {
        Self { operation: self.operation | CHECKED, ..self }
    }

    /// Returns the signature of a started operation that goes directly to all members of other hosts.
    #[must_use]
    pub fn direct(self) -> Self {
        Self { root_or_rounds: DIRECT + self.root_or_rounds % DIRECT_MEMBERS_MAX, ..self }
    }

    /// Returns the signature of a call by another way than the shortest data go. `form` stands for the way, with all that
    /// decides the plans of its members; 0 for the usual one.
    #[must_use]
    pub fn by_way(self, form: u32) -> Self {
        if form == 0 {
            return self;
        }
        let way = 1 + form % WAYS_TOLD;
        let beside = self.root_or_rounds % (1 << BESIDE_WAY_BITS);
        Self { root_or_rounds: WAYS | way << BESIDE_WAY_BITS | beside, ..self }
    }

    /// Returns the signature of a call that makes a group.
    #[must_use]
    pub fn making(self, making: Making) -> Self {
        Self { root_or_rounds: MAKINGS + making as u32, ..self }
    }

    /// The root or the rounds, and the further statements of the call.
    fn called(self) -> (u32, Further) {
        let stated = self.root_or_rounds;
        if let Some(root) = stated.checked_sub(DIRECT) {
            return (root, Further::Direct);
        }
        if let Some(further) = stated.checked_sub(WAYS) {
            let beside = further % (1 << BESIDE_WAY_BITS);
            return (beside, Further::Way(further >> BESIDE_WAY_BITS));
        }
        let making = stated.checked_sub(MAKINGS).and_then(|at| Making::ALL.get(at as usize));
        match making.filter(|_| self.operation() == Some(Operation::AllGather)) {
            Some(making) => (0, Further::Making(*making)),
            None => (stated, Further::Nothing),
        }
    }

    #[inline]
    fn cut(self) -> Self {
        Self { root_or_rounds: self.root_or_rounds % (1 << ROOT_BITS), ..self }
    }

    /// The tag of all its messages. The number is cut to its place in its span.
    #[inline]
    pub fn tag(self) -> u32 {
        let called = self.operation << ROOT_BITS | self.root_or_rounds;
        self.number << CALL_BITS | called
    }

    /// The call of a message of the first span.
    #[inline]
    pub fn of_tag(tag: u32) -> Self {
        Self {
            number: tag >> CALL_BITS,
            operation: tag >> ROOT_BITS & ((1 << OPERATION_BITS) - 1),
            root_or_rounds: tag & ((1 << ROOT_BITS) - 1),
        }
    }

    /// Returns the call of a message of this span.
    #[inline]
    #[must_use]
    pub fn in_span(self, span: u32) -> Self {
        let place = self.number % SPAN_CALLS;
        Self { number: span << NUMBER_BITS | place, ..self }
    }

    /// The span of the call: how often 8,192 calls were counted before it.
    #[inline]
    pub fn span(self) -> u32 {
        self.number >> NUMBER_BITS
    }

    /// The tag of the message without data that tells a span: the messages of its sender behind it are of that span.
    pub fn span_tag(span: u32) -> u32 {
        Self { number: span, operation: SPAN, root_or_rounds: span >> NUMBER_BITS }.tag()
    }

    /// The span that a message with this tag tells, if it tells one.
    pub fn told_span(tag: u32) -> Option<u32> {
        let Self { number, operation, root_or_rounds } = Self::of_tag(tag);
        let span = root_or_rounds << NUMBER_BITS | number;
        (operation == SPAN && span <= u32::MAX >> NUMBER_BITS).then_some(span)
    }

    /// The call without its number, as it stands on a board.
    #[inline]
    pub fn call(self) -> u32 {
        self.tag() % (1 << CALL_BITS)
    }

    /// Returns the signature of a call with this number: the rest as it stands on a board.
    #[inline]
    pub fn of_call(number: u32, call: u32) -> Self {
        Self { number, ..Self::of_tag(call) }
    }

    /// Returns the signature of the call with this number on a board. Boards count from 1.
    #[inline]
    pub fn at_board(number: u32, call: u32) -> Self {
        Self::of_call(number.wrapping_sub(1), call)
    }

    /// The operation of the call, if it is one.
    #[inline]
    pub fn operation(self) -> Option<Operation> {
        Operation::from_number((self.operation & !CHECKED) as u8)
    }

    /// The root of the call, where an operation with one is called.
    #[inline]
    pub fn root(self) -> Option<u32> {
        self.operation()?.has_root().then(|| self.called().0)
    }

    /// The message that tells of a mismatch at this call.
    #[inline]
    pub fn alarm(self) -> Self {
        Self { operation: ALARM, root_or_rounds: 0, ..self }
    }

    /// Whether it is that message.
    #[inline]
    pub fn is_alarm(self) -> bool {
        self.operation == ALARM
    }

    /// The message that says that its sender is in this call.
    #[inline]
    pub fn remark(self) -> Self {
        Self { operation: REMARK, root_or_rounds: 0, ..self }
    }

    /// Whether it is such a message.
    #[inline]
    pub fn is_remark(self) -> bool {
        self.operation == REMARK
    }

    /// The number of the operation in its group. Of the call of a tag it is the place in its span.
    #[inline]
    pub fn number(self) -> u32 {
        self.number
    }
}

/// The statements of a call besides its root or rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Further {
    Nothing,
    /// It goes directly to all members of other hosts.
    Direct,
    /// The number of another way than that of the shortest data.
    Way(u32),
    /// It makes a group.
    Making(Making),
}

impl fmt::Display for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (root_or_rounds, further) = self.called();
        if further == Further::Direct {
            formatter.write_str("started ")?;
        }
        if let Further::Making(making) = further {
            return formatter.write_str(making.as_str());
        }
        match self.operation() {
            Some(operation) if operation.has_root() => {
                write!(formatter, "{operation} with root {root_or_rounds}")
            }
            Some(operation) if root_or_rounds > 1 => {
                write!(formatter, "{operation} of much data, in {root_or_rounds} rounds")
            }
            Some(operation) => write!(formatter, "{operation}"),
            None => write!(formatter, "operation {}, which is unknown here", self.operation),
        }?;
        if let Further::Way(way) = further {
            write!(formatter, ", of a length that goes by way {way}")?;
        }
        formatter.write_str(if self.operation & CHECKED != 0 { " in checking mode" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_survives_its_tag() {
        let signature = Signature::new(8_191, Operation::ExclusiveScan, 16_383);
        assert_eq!(Signature::of_tag(signature.tag()), signature);
        assert!(Signature::of_tag(signature.alarm().tag()).is_alarm());
        let checked = Signature::of_tag(signature.checked().tag());
        assert!(checked != signature && !checked.is_remark() && !checked.is_alarm());
        assert_eq!(checked.to_string(), format!("{signature} in checking mode"));
        assert_eq!(Signature::at_board(8_192, checked.call()), checked);
    }

    #[test]
    fn a_span_makes_the_number_of_a_tag_whole() {
        for number in [0, 3, 8_191, 8_192, 3 * 8_192 + 3, u32::MAX] {
            let call = Signature::new(number, Operation::Gather, 7);
            assert_eq!(Signature::of_tag(call.tag()).in_span(call.span()), call);
            assert_eq!(Signature::told_span(Signature::span_tag(call.span())), Some(call.span()));
            assert_eq!(Signature::told_span(call.tag()), None);
            assert_eq!(Signature::told_span(call.remark().tag()), None);
        }
        let highest_root = (1 << ROOT_BITS) - 1;
        let beyond = Signature::span_tag(0) | highest_root;
        assert_eq!(Signature::told_span(beyond), None, "no call is so far ahead");
    }

    #[test]
    fn a_started_operation_that_goes_directly_is_another_call() {
        let waited_for = Signature::new(3, Operation::Broadcast, 5);
        let started = waited_for.direct();
        assert!(started != waited_for && Signature::of_tag(started.tag()) == started);
        assert_eq!((started.root(), started.number()), (Some(5), 3));
        assert_eq!(started.to_string(), "started broadcast with root 5");
        let barrier = Signature::new(3, Operation::Barrier, 0).direct();
        assert_eq!(barrier.to_string(), "started barrier");
    }

    #[test]
    fn another_way_is_another_call_with_the_same_root() {
        let usual = Signature::new(3, Operation::Broadcast, 5);
        let mut stated = vec![usual, usual.direct()];
        for form in 1..=WAYS_TOLD {
            let other = usual.by_way(form);
            assert!(!stated.contains(&other) && Signature::of_tag(other.tag()) == other);
            assert_eq!(other.root(), Some(5));
            stated.push(other);
        }
        assert_eq!(usual.by_way(0), usual);
        let text = "broadcast with root 5, of a length that goes by way 3";
        assert_eq!(usual.by_way(2).to_string(), text);
        let allreduce = Signature::new(3, Operation::AllReduce, 4).by_way(2);
        let text = "allreduce of much data, in 4 rounds, of a length that goes by way 3";
        assert_eq!(allreduce.to_string(), text);
    }

    #[test]
    fn a_call_that_makes_a_group_is_named_split_or_duplicate() {
        let gathered = Signature::new(3, Operation::AllGather, 0);
        let [split, duplicate] =
            [Making::Split, Making::Duplicate].map(|making| gathered.making(making));
        assert!(split != duplicate && split != gathered);
        assert_eq!(
            (split.to_string(), duplicate.to_string()),
            ("split".into(), "duplicate".into())
        );
        assert_eq!(Signature::of_tag(split.tag()), split);
    }

    #[test]
    fn a_root_is_told_only_where_there_is_one() {
        let broadcast = Signature::new(0, Operation::Broadcast, 3);
        assert_eq!(
            (broadcast.root(), broadcast.to_string()),
            (Some(3), "broadcast with root 3".into())
        );
        let exchange = Signature::new(0, Operation::AllToAll, 4);
        let text = "alltoall of much data, in 4 rounds";
        assert_eq!((exchange.root(), exchange.to_string()), (None, text.into()));
    }
}
