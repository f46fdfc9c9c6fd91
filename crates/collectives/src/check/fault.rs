//! What can be wrong with plans.

use crate::plan::{Cells, Store};

/// The first thing found wrong with the plans of a group. Whoever made them has made a mistake: an
/// architecture, or the derivation from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The plans are not one for each member, of one operation.
    #[error("plan {place} is not member {place}'s plan of this task in a group of {size}")]
    OtherPlan {
        /// Which of the plans.
        place: usize,
        /// How many plans there are.
        size: usize,
    },
    /// A step waits for one that does not come before it.
    #[error("member {member}: step {step} waits for step {before}, which does not come before it")]
    WaitsForLater {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// What it waits for.
        before: u32,
    },
    /// A message to or from itself, or somebody who is not there.
    #[error("member {member}: step {step} talks to {peer}, which is nobody else in this group")]
    NoPeer {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// With whom it talks.
        peer: u32,
    },
    /// The input is the user's: it is never written.
    #[error(
        "member {member}: step {step} writes input[{block}]; write to the output or to scratch"
    )]
    InputWritten {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// The block.
        block: u32,
    },
    /// A block that the member has not in this operation, or no room declared for it.
    #[error("member {member}: step {step} uses {store}[{block}], for which this plan has no room")]
    NoRoom {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// The store.
        store: Store,
        /// The block.
        block: u32,
    },
    /// A step works on blocks of different numbers: these may differ in length.
    #[error("member {member}: step {step} takes one block for another of a different number")]
    OtherBlock {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
    },
    /// Two steps may be in flight at once and touch one block, and one of them writes it.
    #[error("member {member}: steps {first} and {second} may both be at {store}[{block}] at once")]
    Race {
        /// The member.
        member: u32,
        /// The one step.
        first: u32,
        /// The other.
        second: u32,
        /// The store.
        store: Store,
        /// The block.
        block: u32,
    },
    /// Messages between two members are matched in the order in which they begin: here that order
    /// is not fixed.
    #[error("member {member}: messages {first} and {second} with {peer} may begin in either order")]
    NoOrder {
        /// The member.
        member: u32,
        /// The one step.
        first: u32,
        /// The other.
        second: u32,
        /// With whom.
        peer: u32,
    },
    /// The two ends of a message see different blocks in it.
    #[error(
        "a message from {from} (step {sent_at}) to {to} (step {received_at}): {sent:?} are sent, {received:?} awaited"
    )]
    EndsDiffer {
        /// The sender.
        from: u32,
        /// Its step.
        sent_at: u32,
        /// The receiver.
        to: u32,
        /// Its step.
        received_at: u32,
        /// The numbers of the blocks sent.
        sent: Vec<u32>,
        /// The numbers of the blocks awaited.
        received: Vec<u32>,
    },
    /// Nobody receives a message.
    #[error("member {from} sends {to} a message in step {step} that {to} does not receive")]
    NotReceived {
        /// The sender.
        from: u32,
        /// The receiver.
        to: u32,
        /// The sender's step.
        step: u32,
    },
    /// Nobody sends a message.
    #[error("member {to} receives a message of {from} in step {step} that {from} does not send")]
    NotSent {
        /// The sender.
        from: u32,
        /// The receiver.
        to: u32,
        /// The receiver's step.
        step: u32,
    },
    /// Members wait for each other.
    #[error("a deadlock: {}", list(.0))]
    Deadlock(Vec<Wait>),
    /// A block is read before anything is there.
    #[error("member {member}: step {step} reads {store}[{block}], where nothing is yet")]
    Empty {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// The store.
        store: Store,
        /// The block.
        block: u32,
    },
    /// A member is told what it has had already.
    #[error("member {member}: step {step} receives {value}, which it has had before")]
    Twice {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// What it receives.
        value: String,
    },
    /// A contribution would count twice.
    #[error("member {member}: step {step} combines member {contributor}'s data with themselves")]
    CountedTwice {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// Whose data.
        contributor: u32,
    },
    /// In late order nobody combines but those who have the result.
    #[error("member {member}: step {step} sends {value}, combined too early for the late order")]
    Early {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// What it sends.
        value: String,
    },
    /// In the end a member has something else than it should have.
    #[error("member {member}: output[{block}] is {has} in the end, not {wanted}")]
    WrongResult {
        /// The member.
        member: u32,
        /// The block.
        block: u32,
        /// What is there.
        has: String,
        /// What should be.
        wanted: String,
    },
    /// A barrier lets somebody go before all have come.
    #[error("member {member} may leave the barrier before {missing} has come")]
    LeavesEarly {
        /// Who leaves.
        member: u32,
        /// Whose word has not reached it.
        missing: u32,
    },
    /// A member deposits on the board twice.
    #[error("member {member}: step {step} deposits, and it has done so before")]
    DepositsTwice {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
    },
    /// A member uses the board before it has deposited.
    #[error("member {member}: step {step} uses the board before the member has deposited")]
    NoDeposit {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
    },
    /// A member takes what another has not deposited, or has not kept a place for.
    #[error(
        "member {member}: step {step} takes block {block} of {from}, which does not offer it so"
    )]
    NotOffered {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// Whose deposit.
        from: u32,
        /// The block.
        block: u32,
    },
    /// Two who use the board agree not on how a deposit is laid out.
    #[error("member {member}: step {step} reads {from}'s deposit as {awaited}; it is {deposited}")]
    OtherDeposit {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// Whose deposit.
        from: u32,
        /// What is there.
        deposited: Cells,
        /// What is awaited.
        awaited: Cells,
    },
}

/// A step that has begun, or may not begin, when nothing goes on any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The member.
    pub member: u32,
    /// The step it is at.
    pub step: u32,
    /// For whom it waits; none for all at the board.
    pub peer: Option<u32>,
}

fn list(waits: &[Wait]) -> String {
    let text = |wait: &Wait| match wait.peer {
        Some(peer) => format!("member {} (step {}) waits for {peer}", wait.member, wait.step),
        None => format!("member {} (step {}) waits at the board", wait.member, wait.step),
    };
    let texts: Vec<String> = waits.iter().map(text).collect();
    if texts.is_empty() { "steps wait for each other".into() } else { texts.join("; ") }
}
