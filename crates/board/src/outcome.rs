//! How an operation on a board ends, and what the one who comes finds.

/// How an operation that all wait for has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has not.
    Open,
    /// All have what they came for.
    Done,
    /// This member is gone, or has refused.
    Failed(u32),
    /// Not all came for the same thing.
    Different,
    /// This member lives, and could not do its part for all.
    Spoiled(u32),
    /// This member lives, and had no room for what it was to bring.
    NoRoom(u32),
}

/// What the one who comes finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coming {
    /// Others are to come, or nobody counts.
    NotLast,
    /// It is the last, and decides.
    Last,
    /// It is the last, and not all came for the same thing; that is decided.
    Different,
}
