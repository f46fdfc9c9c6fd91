//! Why an operation at the board cannot be done.

use landeck_arithmetic::ReductionError;
use landeck_board::{Board, BoardBroken, Difference, Leave, NoDeposit, Outcome};
use landeck_memory::NoMemory;
use landeck_memory::heap::HeapFull;

use crate::call::check::Check;
use crate::combine::CombineError;
use crate::lack::Lack;

/// Why an operation at the board cannot be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BoardError {
    /// This member is gone, and did not bring what is needed.
    Gone(u32),
    /// This member has called something else.
    Different(Difference),
    /// This member's call does not agree with ours, as far as that is checked.
    Disagrees { member: u32, theirs: Check, ours: Check },
    /// This member could not do its part for all.
    Spoiled(u32),
    /// This member's data have another length than ours.
    Lengths { member: u32, theirs: usize, ours: usize },
    /// This member had no room for its data.
    NoRoom(u32),
    /// This member came without data, for a reason that names ranks.
    Lack { member: u32, lack: Lack },
    /// The group was revoked.
    Revoked,
    /// A member's words cannot be.
    Broken(u32),
    /// There is no room for what this member brings.
    Heap(HeapFull),
    /// There is no memory for what this member does.
    NoMemory(NoMemory),
    /// The data were not combined.
    Combine(CombineError),
}

impl From<BoardBroken> for BoardError {
    fn from(broken: BoardBroken) -> Self {
        Self::Broken(broken.member)
    }
}

impl From<NoDeposit> for BoardError {
    #[cold]
    fn from(nothing: NoDeposit) -> Self {
        match nothing {
            NoDeposit::Broken(broken) => broken.into(),
            NoDeposit::Nothing { member, why } => match Lack::from_words(why) {
                Some(lack) => Self::Lack { member, lack },
                None => Self::Broken(member),
            },
            // Members whose lengths agree read it.
            NoDeposit::Told { member, bytes } => {
                let theirs = usize::try_from(bytes).unwrap_or(usize::MAX);
                Self::Lengths { member, theirs, ours: 0 }
            }
        }
    }
}

impl From<CombineError> for BoardError {
    fn from(error: CombineError) -> Self {
        match error {
            CombineError::NoMemory(no_memory) => Self::NoMemory(no_memory),
            error => Self::Combine(error),
        }
    }
}

impl From<NoMemory> for BoardError {
    fn from(no_memory: NoMemory) -> Self {
        Self::NoMemory(no_memory)
    }
}

impl From<HeapFull> for BoardError {
    fn from(full: HeapFull) -> Self {
        Self::Heap(full)
    }
}

impl BoardError {
    /// There is nothing to combine with: no operator was given.
    pub(crate) const NO_OPERATOR: Self =
        Self::Combine(CombineError::Reduction(ReductionError::NoInputs));

    /// A member has come with another signature: what it called otherwise, now or before.
    #[cold]
    pub(crate) fn otherwise(board: &Board, member: u32) -> Self {
        board.difference(member).map_or(Self::Broken(member), Self::Different)
    }

    /// Data that cannot be taken since their length is another one, where so many bytes were expected.
    #[cold]
    pub(crate) fn expecting(self, bytes: usize) -> Self {
        match self {
            Self::Lengths { member, theirs, .. } => Self::Lengths { member, theirs, ours: bytes },
            error => error,
        }
    }

    /// The reason why member `own` has nothing to pass on, behind an error that leaves the group whole.
    #[cold]
    pub(crate) fn lack(&self, own: u32) -> Lack {
        match *self {
            Self::Lack { lack, .. } => lack,
            Self::Heap(_) | Self::NoMemory(_) => Lack::Memory { member: own },
            Self::NoRoom(member) => Lack::Memory { member },
            Self::Spoiled(member) => Lack::Part { member },
            Self::Lengths { member, theirs, ours } => Lack::Length {
                member,
                by: own,
                message_bytes: theirs as u64,
                expected_bytes: ours as u64,
            },
            _ => Lack::Part { member: own },
        }
    }

    /// Why member `own` leaves its readers.
    pub(crate) fn leave(&self, own: u32) -> Leave {
        match self {
            Self::Gone(member) => Leave::Gone(*member),
            Self::Heap(_) | Self::NoMemory(_) => Leave::NoRoom(own),
            Self::NoRoom(member) | Self::Lack { member, lack: Lack::Memory { .. } } => {
                Leave::NoRoom(*member)
            }
            _ => Leave::Failed,
        }
    }

    /// How an operation ends for all that is lost by this, for member `own`.
    #[cold]
    pub(crate) fn outcome(&self, own: u32) -> Outcome {
        match self {
            Self::Heap(_) | Self::NoMemory(_) => Outcome::NoRoom(own),
            Self::NoRoom(member) | Self::Lack { member, lack: Lack::Memory { .. } } => {
                Outcome::NoRoom(*member)
            }
            _ => Outcome::Spoiled(own),
        }
    }

    /// After a death this member comes to nothing that it has not begun. It says so at once, since members that did not
    /// need the dead may wait for this one in the next operation.
    #[cold]
    pub(crate) fn give_up(&self, board: &mut Board) {
        // Members out of step find out by what each of them has called.
        if !matches!(self, Self::Different(_)) {
            board.refuse_next();
        }
    }

    /// Whether this member brings nothing for want of memory.
    pub(crate) fn is_want_of_memory(&self) -> bool {
        matches!(self, Self::Heap(_) | Self::NoMemory(_))
    }

    /// Whether a member, this one or another, had no memory for its part.
    pub(crate) fn is_about_memory(&self) -> bool {
        self.is_want_of_memory()
            || matches!(self, Self::NoRoom(_) | Self::Lack { lack: Lack::Memory { .. }, .. })
    }

    /// Whether the operation alone is lost, which this member has come to: the group goes on.
    pub(crate) fn leaves_group_whole(&self) -> bool {
        matches!(
            self,
            Self::Disagrees { .. }
                | Self::Spoiled(_)
                | Self::Lengths { .. }
                | Self::NoRoom(_)
                | Self::Lack { .. }
                | Self::NoMemory(_)
                | Self::Combine(_)
                | Self::Broken(_)
        )
    }
}
