//! Raft among the voters of a machine: one arbiter per term, and one log of everything that it decides.
//!
//! A host that holds a copy of the log is a [`Voter`]. 1, 3 or 5 of them vote; the others learn. The voters elect a leader,
//! which is the *arbiter* once an entry of its term is committed. A leader steps down when no majority has answered it for T.
//! A voter votes for nobody else for T + 0.1 s after it has heard a leader. So the view of a former arbiter's own host is
//! over before another arbiter begins, and the log needs no clock to stay one.
//!
//! The machine keeps what must survive in a [`StoredVoter`]. Every change of it is a [`VoterRecord`] in the outputs, in front
//! of all messages that depend on it.
//!
//! | module | content |
//! |---|---|
//! | [`quorum`] | the voters that count, and what a majority of them has reached |
//! | [`log`] | entries, snapshots, and the log of both |
//! | [`stored`] | the state that outlives a daemon, and the records that change it |
//! | [`message`] | the messages between voters, and which of them are garbled |
//! | [`voter`] | the machine: its time, its role, its driver's calls |
//! | `role` | a follower, a candidate, or a leader with its peers |
//! | `election` | asking for votes and giving them |
//! | `replication` | a leader's peers, its lease, and what is committed |
//! | `following` | what a voter takes from a leader |

mod election;
mod following;
pub mod log;
pub mod message;
pub mod quorum;
mod replication;
mod role;
pub mod stored;
pub mod voter;

pub use log::{LogContent, LogEntry, LogPosition, LogSnapshot, VoterLog};
pub use message::{VoterAnswer, VoterContent, VoterMessage};
pub use quorum::{Voters, VotersError};
pub use stored::{StoredVoter, VoterRecord};
pub use voter::{MajorityLoss, ProposalError, Voter, VoterOutput};
