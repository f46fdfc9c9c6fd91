//! How an operation on a board ends, and whether a member arrives last.

/// The state of an operation that all members wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has not ended.
    Open,
    /// It has succeeded for all members.
    Done,
    /// This member is gone, or has refused.
    Failed(u32),
    /// The members' calls differ.
    Different,
    /// This member lives, and could not do its part for all.
    Spoiled(u32),
    /// This member lives, and had no room for what it was to bring.
    NoRoom(u32),
}

/// The result of a member's arrival at an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coming {
    /// Other members are still to come, or the operation counts no arrivals.
    NotLast,
    /// It is the last, and decides.
    Last,
    /// It is the last, and the members' calls differ; that is decided.
    Different,
}
