//! The faults of plans.

use crate::plan::{Cells, Store};

/// The first fault found in the plans of a group: an error of an architecture, or of the derivation from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanFault {
    /// The plans are not one for each member, of one operation.
    #[error("plan {place} is not member {place}'s plan of this task in a group of {size}")]
    OtherPlan {
        /// Which of the plans.
        place: usize,
        /// The number of plans.
        size: usize,
    },
    /// A step waits for one that does not come before it.
    #[error("member {member}: step {step} waits for step {before}, which does not come before it")]
    WaitsForLater {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// The step it waits for.
        before: u32,
    },
    /// A step names the member itself, or a member that does not exist, as its peer.
    #[error("member {member}: step {step} talks to {peer}, which is nobody else in this group")]
    NoPeer {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// The peer.
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
    /// A block that the member does not have in this operation, or for which its plan declares no room.
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
        /// The peer.
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
    /// A send has no matching receive.
    #[error("member {from} sends {to} a message in step {step} that {to} does not receive")]
    NotReceived {
        /// The sender.
        from: u32,
        /// The receiver.
        to: u32,
        /// The sender's step.
        step: u32,
    },
    /// A receive has no matching send.
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
    /// A block is read before it has any content.
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
    /// A member receives a content that it has had already.
    #[error("member {member}: step {step} receives {value}, which it has had before")]
    Twice {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// The content received.
        value: String,
    },
    /// A contribution would count twice.
    #[error("member {member}: step {step} combines member {contributor}'s data with themselves")]
    CountedTwice {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// The member whose data would count twice.
        contributor: u32,
    },
    /// In late order a member sends a combined value that is no result.
    #[error("member {member}: step {step} sends {value}, combined too early for the late order")]
    Early {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// The value sent.
        value: String,
    },
    /// The result of a member is wrong.
    #[error("member {member}: output[{block}] is {has} in the end, not {wanted}")]
    WrongResult {
        /// The member.
        member: u32,
        /// The block.
        block: u32,
        /// The content found.
        has: String,
        /// The content expected.
        wanted: String,
    },
    /// A member may leave a barrier before all have entered.
    #[error("member {member} may leave the barrier before {missing} has come")]
    LeavesEarly {
        /// The member that leaves.
        member: u32,
        /// The member whose word has not reached it.
        missing: u32,
    },
    /// Members of one host differ in who shares their board, or in how often they go there.
    #[error("member {member} does not go to a board as the others of its host do")]
    OtherBoard {
        /// The member.
        member: u32,
    },
    /// Two steps of a member may be at the board at once.
    #[error("member {member}: steps {first} and {second} may both be at the board at once")]
    AtBoardTwice {
        /// The member.
        member: u32,
        /// The one step.
        first: u32,
        /// The other.
        second: u32,
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
    /// A member takes a block that another has not deposited, or for which it has not kept a place.
    #[error(
        "member {member}: step {step} takes block {block} of {from}, which does not offer it so"
    )]
    NotOffered {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// The member that deposited.
        from: u32,
        /// The block.
        block: u32,
    },
    /// A member may leave, and change its blocks, while another one reads them.
    #[error("member {member} does not wait for {reader}, which reads its blocks in step {step}")]
    LeavesReader {
        /// The member whose blocks are read.
        member: u32,
        /// The reader.
        reader: u32,
        /// The reader's step.
        step: u32,
    },
    /// A member reads after it has said that it reads nothing more.
    #[error("member {member}: step {step} reads after the member has said that it has read")]
    ReadsLate {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
    },
    /// A member writes a block while others may read it.
    #[error("member {member}: step {step} writes {store}[{block}], which others may be reading")]
    WrittenWhileTold {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// The store.
        store: Store,
        /// The block.
        block: u32,
    },
    /// Two members disagree about the layout of a deposit.
    #[error("member {member}: step {step} reads {from}'s deposit as {awaited}; it is {deposited}")]
    OtherDeposit {
        /// The member.
        member: u32,
        /// The step.
        step: u32,
        /// The member that deposited.
        from: u32,
        /// The blocks deposited.
        deposited: Cells,
        /// The blocks awaited.
        awaited: Cells,
    },
}

/// A step that cannot complete, or cannot begin, when no step can go on any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The member.
    pub member: u32,
    /// The step it is at.
    pub step: u32,
    /// The member it waits for; none for all members at the board.
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
