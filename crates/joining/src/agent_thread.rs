//! The agent as a thread of a process that has no guardian: under another launcher, or alone.

use std::io;
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use landeck_host::process;
use landeck_memory::Segment;
use landeck_protocols::door::{StartAnswer, StartRefusal};
use landeck_protocols::membership::{Input, MembershipPlan, OnFailure};
use landeck_wire::{SegmentId, Slot};
use rustix::event::epoll::EventFlags;
use rustix::event::{EventfdFlags, eventfd};

use crate::agent::{Agent, Effect, presence_of};

/// An agent that runs in a thread of this process. Dropping this ends the agent, and with it the job for the other
/// processes.
#[derive(Debug)]
pub struct AgentThread {
    orders: OwnedFd,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread; a fork of it does not have it.
    pid: u32,
}

/// The reason why no agent can run in this process.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The segment is private memory of this process.
    #[error("an agent needs a segment that other processes can attach, not a local one")]
    LocalSegment,
    /// A necessary system call was refused.
    #[error("the agent of the job cannot be started: {0}")]
    System(#[from] io::Error),
}

/// Makes this process the agent of a segment that it created, in a thread of its own. This process has `own_slot`; the
/// other processes of the plan, if any, come by [`crate::socket::join_as`]. If a launcher started them all, it holds
/// the other end of `launcher`. When that end closes, nobody is left who could end the job in good order, so the job
/// ends.
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
    let plan = MembershipPlan {
        host: SegmentId(segment.plan().host),
        processes: segment.plan().processes,
        guests: segment.plan().guests,
        keeps_ranks: false,
        is_held: false,
        // The launcher that started the processes ends them, not the agent.
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
        // Data from the launcher are for the process itself. The agent only needs the end of the connection, and once.
        agent.watch(launcher, LAUNCHER, EventFlags::RDHUP | EventFlags::ONESHOT)?;
    }
    let heard = orders.try_clone()?;
    // Signals to the program are for the program's own threads.
    let mask = process::block_all_signals()?;
    let thread = std::thread::Builder::new().name("landeck-agent".into()).spawn(move || {
        serve(agent, &heard, own_slot);
        drop(launcher);
    });
    process::restore_signals(&mask);
    Ok(AgentThread { orders, thread: Some(thread?), pid: std::process::id() })
}

impl AgentThread {
    /// Waits until every other process of the job has left, then ends the agent. This process must have said its own
    /// goodbye before.
    pub fn finish(mut self) {
        self.order(LEAVE_LAST);
    }

    fn order(&mut self, order: u64) {
        let Some(thread) = self.thread.take() else { return };
        if self.pid != std::process::id() {
            std::mem::forget(thread);
            return;
        }
        // A counter this small always accepts another number.
        let _ = rustix::io::write(&self.orders, &order.to_ne_bytes());
        // A thread that panicked has already printed why.
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
    // Once the job has ended, no process waits for another.
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
        // This agent neither ends processes nor starts any.
        for effect in agent.take_effects() {
            if let Effect::StartAsked { request, .. } = effect {
                agent.answer_start(request, &StartAnswer::Refused(StartRefusal::NoLauncher));
            }
        }
        agent.write_end();
    }
    agent.tell(Input::Kill);
    let presence = presence_of(agent.segment().presence(own_slot));
    agent.tell(Input::Ended { slot: Slot(own_slot), status: 0, presence });
    agent.write_end();
}
