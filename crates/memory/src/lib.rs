//! Shared memory between the processes of one host.
//!
//! A [`Segment`] is one sealed anonymous file of a job; `docs/memory-layout.md` names every word
//! of it, and which process may write it in which state. Each shared control word is loaded once,
//! atomically, and checked; bounds come from a private copy of the plan; every walk is bounded;
//! payload never decides control flow. So a stray write of another process leads to wrong data
//! at worst.
//!
//! | module | what |
//! |---|---|
//! | [`plan`] | how a segment is divided |
//! | [`segment`] | making, attaching, finding things in it |
//! | [`membership`] | the words of the agent: the state of each slot |
//! | [`far`] | processes on other hosts, ranks of the first world, names of hosts |
//! | `links` | what messages between hosts cost |
//! | [`group_numbers`] | the numbers that groups get |
//! | [`abort`] | which process says why the job is aborted |
//! | [`observed`] | a segment as observers see it |
//! | [`page`] | the page of each process: presence, current wait, counters |
//! | [`relay_words`] | between the relay of this host and its receivers |
//! | [`ring`] | from one process to one other: a line per message |
//! | [`mailbox_queue`] | from any process to one process |
//! | [`heap`] | blocks whose reference travels instead of their bytes |
//! | [`message_cells`] | handoff buffers for messages |
//! | [`remark`] | details that a process publishes of a long wait |
//! | [`shared_area`] | memory apart from the segment, that lives by itself |
//! | [`scheduler_order`] | the order of turns of the tasks on one core |
//! | [`waiter`] | the one way to wait |
//! | [`sleep_word`] | the word that a process sleeps on |
//! | [`slot_reference`] | the processes that may still need the memory of a vacant slot |
//! | [`hardening`] | pages that a process only reads |
//! | [`gate`] | one thread at a time, or one thread only |
//! | [`fork`] | children made by fork, which are no members |
//! | [`passing`] | descriptors passed to another process |
//! | [`process_memory`] | private memory of another process, read by the kernel |
//! | [`processors`] | how many processors there are for how many processes |
//! | [`bytes`] | places to read from and to write to |
//! | [`blocks`] | many of them at once, at equal distances |
//! | [`plain`] | values that are their bytes |
//! | [`room`] | private memory whose size another process has said |
//! | `fixture` | segments for tests in which one process plays several |
//! | [`sync`] | atomics, which the model checker replaces |

// The model checker's build leaves out what it has no models of.
#![cfg_attr(loom, allow(dead_code, unreachable_pub))]

mod filled;
#[cfg(not(loom))]
#[doc(hidden)]
pub mod fixture;
#[cfg(not(loom))]
pub mod hardening;
pub mod heap;
#[cfg(not(loom))]
mod holdings;
#[cfg(not(loom))]
pub mod lanes_page;
pub mod mailbox_queue;
#[cfg(not(loom))]
pub mod message_cells;
#[cfg(not(loom))]
pub mod observed;
mod other_hosts;
#[cfg(not(loom))]
pub mod plan;
mod private;
mod processes;
#[cfg(not(loom))]
pub mod remark;
pub mod ring;
#[cfg(not(loom))]
pub mod segment;
#[cfg(not(loom))]
pub mod shared_area;
pub mod sleep_word;
mod slots;
pub mod sync;
#[cfg(not(loom))]
pub mod system;
mod waiting;

pub use private::blocks::{Beside, Blocks, Spread, copy_spread};
pub use private::bytes::{Buffer, Bytes};
pub use private::room::NoMemory;
pub use private::{blocks, bytes, plain, room};
#[cfg(not(loom))]
pub use {
    heap::{Block, BlockRange, Borrowed, Heap, HeapFull, Lent, Mark, MarkView},
    lanes_page::LaneRecord,
    message_cells::{InCell, MessageCells},
    observed::Observed,
    other_hosts::far::{FarProcess, FarRecord},
    other_hosts::relay_words::RelayWords,
    other_hosts::stored::StoredRecord,
    plan::{JobName, SegmentPlan},
    private::plain::Plain,
    processes::process_memory::{ProcessMark, ReadRefused, RemoteBytes},
    segment::{Segment, SegmentError},
    shared_area::SharedArea,
    slots::membership::{JobState, SlotRecord, SlotState},
    slots::page::{Counters, Operation, Presence, Tally, WaitRecord, WaitedFor},
    waiting::gate::{Gate, GateError, ThreadMode},
    waiting::waiter::{End, Waiter},
};
#[cfg(not(loom))]
pub use {
    other_hosts::{far, relay_words, stored},
    processes::{fork, passing, process_memory, processors},
    slots::{abort, group_numbers, membership, page, process_names, slot_reference},
    waiting::{gate, scheduler_order, waiter},
};
