//! A plan: the actions of one member in a collective operation, as a value.
//!
//! A plan is a small graph of steps. Data are named by [`Cells`]: blocks, numbered alike by all
//! members (see [`crate::Operation`]), in one of a member's stores. The executor knows a block's length and address.

use std::fmt;

use crate::operation::Operation;

/// A store: a place in which a member has data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Store {
    /// The member's contribution, unless it is in place; never written.
    Input,
    /// The member's result.
    Output,
    /// Intermediate storage, by number.
    Scratch(u32),
}

/// Consecutive blocks in one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cells {
    /// The store.
    pub store: Store,
    /// The first block.
    pub first: u32,
    /// The number of blocks.
    pub count: u32,
}

impl Cells {
    /// `count` blocks from `first` on.
    pub const fn new(store: Store, first: u32, count: u32) -> Self {
        Self { store, first, count }
    }

    /// Returns these blocks in another store.
    #[must_use]
    pub const fn at(self, store: Store) -> Self {
        Self { store, ..self }
    }

    /// The numbers of the blocks.
    pub const fn blocks(self) -> std::ops::Range<u32> {
        self.first..self.first + self.count
    }
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends these blocks, in this order, as one message.
    Send {
        /// The receiver.
        to: u32,
        /// The blocks.
        cells: Vec<Cells>,
    },
    /// Receives one message into these blocks.
    Receive {
        /// The sender.
        from: u32,
        /// The blocks.
        cells: Vec<Cells>,
    },
    /// Copies blocks.
    Copy {
        /// The blocks copied.
        from: Cells,
        /// The blocks written.
        into: Cells,
    },
    /// Combines blocks, block by block: `into = left op right`. The result may take the place of
    /// either.
    Combine {
        /// The left operand, which comes first in the order of members.
        left: Cells,
        /// The right operand, which comes after it.
        right: Cells,
        /// The blocks in which the result is stored.
        into: Cells,
    },
    /// Deposits blocks on the board, where all members can read them, and announces that this member has arrived. A plan
    /// over hosts may go to the board twice: each deposit begins a visit, which the steps after it belong to.
    Deposit {
        /// The blocks; none is allowed.
        cells: Cells,
        /// A block that no other member needs: its place stays empty.
        except: Option<u32>,
    },
    /// Tells on the board where blocks lie in this member's memory, and announces that this member has arrived. It begins
    /// a visit, as a deposit does. The blocks stay as they are until [`Action::AwaitReaders`] is over.
    Tell {
        /// The blocks; none is allowed.
        cells: Cells,
        /// A block that no other member needs. The same block of this member's output may become a result that others
        /// read there: see [`Action::Resolve`].
        except: Option<u32>,
    },
    /// Waits until all members have come to the board.
    Await,
    /// Copies blocks that another member has deposited.
    Take {
        /// The member.
        from: u32,
        /// All blocks that it deposited, or kept a place for.
        deposited: Cells,
        /// The blocks to take, and where they go.
        into: Cells,
        /// They are a result that the member has put there with [`Action::Resolve`].
        resolved: bool,
    },
    /// Copies blocks out of the memory of another member, which has told of them.
    Read {
        /// The member.
        from: u32,
        /// All blocks that it has told of.
        told: Cells,
        /// The blocks to read, and where they go.
        into: Cells,
        /// They are a result that the member has made in its output with [`Action::Resolve`].
        resolved: bool,
    },
    /// Says that this member reads nothing more in this visit, and waits until the members that read its blocks have said
    /// so too.
    AwaitReaders {
        /// These members.
        readers: Readers,
    },
    /// Combines deposits of the first `members` members at the board, in the canonical order. Where a member has told of
    /// its blocks, they are read in its memory.
    CombineDeposits {
        /// The number of members.
        members: u32,
        /// All blocks that each of them deposited. This member's own contribution is read from
        /// where it lies: the same blocks in this store.
        deposited: Cells,
        /// The blocks to combine, and where the result goes.
        into: Cells,
    },
    /// Combines one block of all deposits, in the canonical order, into this member's output and
    /// into the place that its deposit has kept for it, and says that it is there. A member that has told of its blocks
    /// keeps no such place: others read its output.
    Resolve {
        /// All blocks that each member deposited.
        deposited: Cells,
        /// The block.
        block: u32,
    },
    /// Combines all deposits jointly: each member present takes the next piece until none is left. The step is complete
    /// when the whole result is there.
    Together {
        /// The blocks that each member deposited.
        deposited: Cells,
    },
    /// Copies the result of [`Action::Together`].
    TakeResult {
        /// The blocks in which the result is stored.
        into: Cells,
    },
}

/// The members that read the blocks of which a member has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// No member.
    Nobody,
    /// One member.
    One(u32),
    /// All other members.
    Others,
}

impl Readers {
    /// Whether a member other than the one that has told is among them.
    pub fn contains(self, member: u32) -> bool {
        match self {
            Self::Nobody => false,
            Self::One(reader) => reader == member,
            Self::Others => true,
        }
    }
}

impl Action {
    /// Whether the member comes to the board with it, which begins a visit.
    pub const fn comes(&self) -> bool {
        matches!(self, Self::Deposit { .. } | Self::Tell { .. })
    }
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The action.
    pub action: Action,
    /// Steps that must be complete before it begins; all have smaller numbers.
    pub after: Vec<u32>,
    /// A step that must have begun before it begins: messages between two members are matched in
    /// the order in which they begin.
    pub behind: Option<u32>,
}

/// The plan of one member for a collective operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The operation.
    pub operation: Operation,
    /// The number of members.
    pub size: u32,
    /// The member whose plan this is.
    pub member: u32,
    /// The root, where there is one.
    pub root: u32,
    /// The number of segments of the data, in operations whose blocks are segments.
    pub segments: u32,
    /// The steps; each comes after those that it depends on.
    pub steps: Vec<Step>,
    /// The blocks that each scratch store has room for.
    pub scratch: Vec<Vec<Cells>>,
    /// The members that share a board with this one, itself among them, in rising order: those of its host. Empty where
    /// all members share one.
    pub board: Vec<u32>,
    /// The members in the order in which blocks of members are numbered: those of one host have consecutive numbers, whatever
    /// their ranks. Empty where the numbers are those of the members.
    pub order: Vec<u32>,
}

impl Plan {
    /// The number of messages that the member sends.
    pub fn messages_sent(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.action, Action::Send { .. })).count()
    }

    /// How often the member goes to the board: each deposit begins a visit, which is an operation of its own there.
    pub fn visits(&self) -> u32 {
        self.steps.iter().filter(|step| step.action.comes()).count() as u32
    }

    /// Whether members tell where their blocks lie, and others read them there.
    pub fn tells(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.action, Action::Tell { .. }))
    }

    /// The place of a member of this host on the board; its number where all members share one.
    pub fn place_on_board(&self, member: u32) -> Option<u32> {
        if self.board.is_empty() {
            return Some(member);
        }
        self.board.binary_search(&member).ok().map(|place| place as u32)
    }

    /// The member that has this place among the blocks of members.
    pub fn member_of(&self, place: u32) -> u32 {
        self.order.get(place as usize).copied().unwrap_or(place)
    }

    /// The place of a member among the blocks of members.
    pub fn place_among_blocks(&self, member: u32) -> u32 {
        let place = self.order.iter().position(|&other| other == member);
        place.map_or(member, |place| place as u32)
    }

    /// Whether blocks of members do not stand as members number them: in another order, or each in several segments.
    pub fn renumbers_blocks(&self) -> bool {
        !self.order.is_empty() || self.segments > 1 && !self.operation.has_segments()
    }

    /// Whether it needs the board.
    pub fn uses_board(&self) -> bool {
        self.steps.iter().any(|step| {
            !matches!(
                step.action,
                Action::Send { .. }
                    | Action::Receive { .. }
                    | Action::Copy { .. }
                    | Action::Combine { .. }
            )
        })
    }
}

impl fmt::Display for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input => formatter.write_str("input"),
            Self::Output => formatter.write_str("output"),
            Self::Scratch(number) => write!(formatter, "scratch {number}"),
        }
    }
}

impl fmt::Display for Cells {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            0 => write!(formatter, "nothing"),
            1 => write!(formatter, "{}[{}]", self.store, self.first),
            _ => write!(formatter, "{}[{}..{}]", self.store, self.first, self.first + self.count),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |cells: &[Cells]| {
            let texts: Vec<String> = cells.iter().map(Cells::to_string).collect();
            texts.join(", ")
        };
        match self {
            Self::Send { to, cells } => write!(formatter, "send {} to {to}", list(cells)),
            Self::Receive { from, cells } => {
                write!(formatter, "receive {} from {from}", list(cells))
            }
            Self::Copy { from, into } => write!(formatter, "copy {from} to {into}"),
            Self::Combine { left, right, into } => {
                write!(formatter, "combine {left} and {right} into {into}")
            }
            Self::Deposit { cells, except: None } => write!(formatter, "deposit {cells}"),
            Self::Deposit { cells, except: Some(block) } => {
                write!(formatter, "deposit {cells} without {block}")
            }
            Self::Tell { cells, except: None } => write!(formatter, "tell of {cells}"),
            Self::Tell { cells, except: Some(block) } => {
                write!(formatter, "tell of {cells} without {block}")
            }
            Self::Await => formatter.write_str("await all"),
            Self::Take { from, into, .. } => write!(formatter, "take {into} of {from}"),
            Self::Read { from, into, .. } => write!(formatter, "read {into} of {from}"),
            Self::AwaitReaders { readers: Readers::Nobody } => formatter.write_str("have read"),
            Self::AwaitReaders { readers: Readers::One(reader) } => {
                write!(formatter, "await reader {reader}")
            }
            Self::AwaitReaders { readers: Readers::Others } => {
                formatter.write_str("await all readers")
            }
            Self::CombineDeposits { members, into, .. } => {
                write!(formatter, "combine deposits of 0..{members} into {into}")
            }
            Self::Resolve { block, .. } => write!(formatter, "resolve block {block}"),
            Self::Together { deposited } => write!(formatter, "combine {deposited} together"),
            Self::TakeResult { into } => write!(formatter, "take the result into {into}"),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "member {} of {}: {}", self.member, self.size, self.operation)?;
        for (number, step) in self.steps.iter().enumerate() {
            write!(formatter, "  {number:>3}  {}", step.action)?;
            if !step.after.is_empty() {
                let after: Vec<String> = step.after.iter().map(u32::to_string).collect();
                write!(formatter, "  (after {})", after.join(", "))?;
            }
            writeln!(formatter)?;
        }
        Ok(())
    }
}
