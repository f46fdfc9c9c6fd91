//! A named group below its faces: the log, what a process has folded of it, sending, coming together, serving.
//!
//! | module | what |
//! |---|---|
//! | [`options`] | how a group is made |
//! | [`live`] | a group as this process sees it |
//! | [`joining`] | having a mailbox become a member |
//! | [`sending`] | sending to a group: waiting for room |
//! | [`inbox`] | what a mailbox retrieves from a group |
//! | [`coming`] | coming to a synchronisation |
//! | [`gathering`] | waiting for the others of one |
//! | [`cuts`] | who takes part in collective operations |
//! | [`everybody`] | all members, as they stand on the roll |
//! | [`asking`] | what a client asks of a server |
//! | [`answer`] | what comes of that |
//! | [`desk`] | where the replies come |
//! | [`employment`] | the thread of a process that serves groups |
//! | [`serving`] | what it does |

pub(crate) mod answer;
pub(crate) mod asking;
pub(crate) mod coming;
pub(crate) mod cuts;
mod everybody;
mod gathering;
mod inbox;
mod joining;
pub(crate) mod live;
pub(crate) mod options;
pub(crate) mod sending;
pub(crate) mod server_client;
mod server_handle;
mod serving;

pub(crate) use inbox::{Front, Subscription};
pub(crate) use server_client::bytes_of;
pub(crate) use server_handle::ServerHandle;
pub(crate) use serving::FORWARDED;
