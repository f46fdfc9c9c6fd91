//! The agent as a thread of the process that has none above it: under another launcher, or alone.

use std::io;
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use landeck_groups::membership::{Input, OnFailure, Plan};
use landeck_memory::Segment;
use landeck_wire::{HostId, Slot};
use rustix::event::epoll::EventFlags;
use rustix::event::{EventfdFlags, eventfd};

use crate::agent::{Agent, presence_of};
use crate::process;

/// An agent that runs in a thread of this process. It ends when this is dropped, and for the other
/// processes the job is over then.
#[derive(Debug)]
pub struct AgentThread {
    orders: OwnedFd,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread: a fork of it has not.
    pid: u32,
}

/// Why no agent can run here.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The segment is private memory of this process.
    #[error("an agent needs a segment that other processes can attach, not a local one")]
    LocalSegment,
    /// A system call that the agent cannot do without was refused.
    #[error("the agent of the job cannot be started: {0}")]
    System(#[from] io::Error),
}

/// Lets this process be the agent of a segment that it made, in a thread of its own. This process
/// has `own_slot`; the other processes of the plan, if any, come by [`crate::socket::join_as`].
/// Whoever started them all is at the other end of `launcher`, if anybody did: when that end is
/// closed, nobody is left who could end the job in good order, and it is over.
///
/// # Errors
/// [`AgentError`].
pub fn serve_in_thread(
    segment: &Segment,
    own_slot: u32,
    launcher: Option<OwnedFd>,
) -> Result<AgentThread, AgentError> {
    if segment.descriptor().is_none() {
        return Err(AgentError::LocalSegment);
    }
    let plan = Plan {
        host: HostId(segment.plan().host),
        processes: segment.plan().processes,
        guests: segment.plan().guests,
        // Whoever started the processes ends them, not we.
        on_failure: OnFailure::Notify,
        grace: Duration::ZERO,
    };
    let agent = Agent::new(segment.clone(), plan, Instant::now())?;
    start_thread(agent, own_slot, launcher)
}

pub(crate) fn start_thread(
    mut agent: Agent,
    own_slot: u32,
    launcher: Option<OwnedFd>,
) -> Result<AgentThread, AgentError> {
    agent.tell(Input::Started { slot: Slot(own_slot), pid: std::process::id() });
    agent.announce();
    let orders =
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?;
    agent.watch(&orders, ORDERS, EventFlags::IN)?;
    if let Some(launcher) = &launcher {
        // What it says is for the process itself; only its end is for the agent, and once.
        agent.watch(launcher, LAUNCHER, EventFlags::RDHUP | EventFlags::ONESHOT)?;
    }
    let heard = orders.try_clone()?;
    // The program's signals are for the program's threads.
    let mask = process::block_all_signals()?;
    let thread = std::thread::Builder::new().name("landeck-agent".into()).spawn(move || {
        serve(agent, &heard, own_slot);
        drop(launcher);
    });
    process::restore_signals(&mask);
    Ok(AgentThread { orders, thread: Some(thread?), pid: std::process::id() })
}

impl AgentThread {
    /// Waits until every other process of the job has left, then ends the agent. To be called when
    /// this process has said its own goodbye.
    pub fn finish(mut self) {
        self.order(LEAVE_LAST);
    }

    fn order(&mut self, order: u64) {
        let Some(thread) = self.thread.take() else { return };
        if self.pid != std::process::id() {
            std::mem::forget(thread);
            return;
        }
        // A counter this small always takes another number.
        let _ = rustix::io::write(&self.orders, &order.to_ne_bytes());
        // It has said what it died of, if it did.
        let _ = thread.join();
    }
}

impl Drop for AgentThread {
    fn drop(&mut self) {
        self.order(LEAVE_NOW);
    }
}

const ORDERS: u64 = 0;
const LAUNCHER: u64 = 1;
const LEAVE_LAST: u64 = 1;
const LEAVE_NOW: u64 = 2;

fn serve(mut agent: Agent, orders: &OwnedFd, own_slot: u32) {
    let mut order = 0;
    // In a job that is over nobody waits for anybody.
    let is_over = |agent: &Agent, order| match order {
        LEAVE_NOW => true,
        LEAVE_LAST => !agent.is_running() || !agent.has_other_processes(own_slot),
        _ => false,
    };
    while !is_over(&agent, order) {
        let Ok(ready) = agent.wait(None) else { break };
        if ready.contains(&ORDERS) {
            let mut number = [0; 8];
            if let Ok(8) = rustix::io::read(orders, &mut number) {
                order = u64::from_ne_bytes(number);
            }
        }
        if ready.contains(&LAUNCHER) {
            agent.tell(Input::Kill);
        }
        // Processes are not ours to end.
        agent.take_effects();
        agent.write_end();
    }
    agent.tell(Input::Kill);
    let presence = presence_of(agent.segment().presence(own_slot));
    agent.tell(Input::Ended { slot: Slot(own_slot), status: 0, presence });
    agent.write_end();
}
