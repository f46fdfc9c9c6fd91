//! The forms in which words of a segment travel to other hosts.

use landeck_memory::membership::Replaced;
use landeck_memory::{Counters, Operation, Presence, SlotRecord, SlotState};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(remote = "SlotState")]
pub(crate) enum SlotStateForm {
    Free,
    Reserved,
    Alive,
    Departed,
    Dead,
    Left,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SlotRecord")]
pub(crate) struct SlotRecordForm {
    #[serde(with = "SlotStateForm")]
    state: SlotState,
    incarnation: u32,
    pid: u32,
    stopped: bool,
    status: i32,
    // The role of the process says it.
    #[serde(skip)]
    replaces: Option<Replaced>,
    returns: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Replaced")]
pub(crate) struct ReplacedForm {
    rank: u32,
    number: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Presence")]
pub(crate) enum PresenceForm {
    NotAttached,
    Attached,
    Finalized,
    Aborted(u8),
    Helping,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Operation")]
pub(crate) enum OperationForm {
    None,
    Send,
    Receive,
    Probe,
    Wait,
    Join,
    Leave,
    Accept,
    Collective,
    Semaphore,
    Group,
    Fetch,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Counters")]
pub(crate) struct CountersForm {
    messages_sent: u64,
    bytes_sent: u64,
    messages_received: u64,
    bytes_received: u64,
    waits: u64,
    waited_ns: u64,
    sleeps: u64,
    bytes_laid: u64,
}
