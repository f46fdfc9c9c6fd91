//! The loop of a daemon. It holds no decision: it waits, and calls what decides.

use landeck_host::say;
use landeck_wire::word::WordContent;

use crate::context::{Context, JobHandler};
use crate::hub::{Hub, HubEnd, Incoming};
use crate::reactor::JOB_TOKENS;

/// The exit code of a daemon that was ended, or that lost what it depends on.
const ENDED: u8 = 1;

/// Runs the daemon until its jobs are over, or until it is asked to end. Returns the exit code.
pub(crate) fn run(mut hub: Hub, jobs: &mut impl JobHandler) -> u8 {
    let code = turn(&mut hub, jobs);
    hub.close();
    code
}

/// Turns the loop until the jobs are over, or the daemon is asked to end. Returns the exit code.
pub(crate) fn turn(hub: &mut Hub, jobs: &mut impl JobHandler) -> u8 {
    let mut ready = Vec::new();
    loop {
        let now = hub.now();
        let timeout = match hub.has_more() {
            true => Some(std::time::Duration::ZERO),
            false => hub.deadline().map(|at| at.saturating_sub(now)),
        };
        if let Err(error) = hub.reactor.wait(timeout, &mut ready) {
            say::complain(format_args!("landeckd cannot wait for its connections: {error}"));
            return ENDED;
        }
        for (token, events) in ready.drain(..) {
            match token {
                JOB_TOKENS.. => jobs.ready(&mut Context::new(hub), token, events),
                _ => hub.ready(token, events),
            }
        }
        hub.tick();
        let now = hub.now();
        hub.wake_at = hub.wake_at.filter(|at| now < *at);
        loop {
            deliver(hub, jobs);
            jobs.tick(&mut Context::new(hub));
            if hub.inbox.is_empty() {
                break;
            }
        }
        hub.write_out(|| jobs.founder());
        // What this daemon has still to say to itself may be an answer to a caller.
        if let Some(code) = jobs.is_over().filter(|_| !hub.has_more()) {
            return code;
        }
        match hub.end() {
            // The jobs have heard of it, and are over one turn later unless there are none.
            Some(HubEnd::Asked | HubEnd::StreamsEnded) => return ENDED,
            None => {}
        }
    }
}

/// Gives the jobs what has come for them. What they send to their own host comes in the next turn.
fn deliver(hub: &mut Hub, jobs: &mut impl JobHandler) {
    for incoming in hub.take_inbox() {
        let context = &mut Context::new(hub);
        match incoming {
            Incoming::Message(from, message) => jobs.message(context, from, message),
            Incoming::Said(from, text) => jobs.said(context, from, text),
            Incoming::Machine(from, message) => jobs.machine(context, from, message),
            Incoming::Given(word) => jobs.given(context, &word),
            Incoming::Own(message) => hub.take_own(message),
            Incoming::Word(word) => jobs.word(context, &word),
            Incoming::Verdict(content) => {
                if let WordContent::HostLost { host, silent_ms, .. } = content {
                    jobs.host_lost(context, host, silent_ms);
                }
                context.tell(content);
            }
            Incoming::Up(host) => jobs.host_up(context, host),
            Incoming::Restarted(host) => jobs.host_restarted(context, host),
            Incoming::Welcomed => {
                jobs.welcomed(context);
                context.resumed();
            }
            Incoming::Down(host, why) => jobs.host_down(context, host, why),
        }
    }
}
