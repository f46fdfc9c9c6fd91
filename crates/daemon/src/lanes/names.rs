//! Questions of processes about the names of their job, which the arbiter answers.

use std::collections::HashMap;

use landeck_joining::job_names::pid_of_asker;
use landeck_protocols::door::{ObjectAnswer, ObjectQuestion, Reply};
use landeck_wire::{ControlMessage, SegmentId};

use super::{LaneTools, Lanes, LanesEvent};

/// The questions that wait for the arbiter.
#[derive(Debug, Default)]
pub(super) struct NamesAsked {
    last: u64,
    /// The connection of each question, and the segment of its process.
    waiting: HashMap<u64, (u64, SegmentId)>,
}

impl Lanes {
    /// Passes a question on to the arbiter. `Err` if no process asks so.
    pub(super) fn name_asked(
        &mut self,
        tools: &LaneTools,
        token: u64,
        question: ObjectQuestion,
    ) -> Result<(), ()> {
        let Some(one) = self.residents.get(&token) else { return Ok(()) };
        let job = one.job;
        let part = tools.parts.get(job).ok_or(())?;
        let pid = pid_of_asker(&part.segment, &question).ok_or(())?;
        self.names.last += 1;
        let request = self.names.last;
        self.names.waiting.insert(request, (token, part.segment_id()));
        self.events.push(LanesEvent::NameAsked { job, pid, request, question });
        Ok(())
    }

    /// The segment of the process that has asked a question.
    pub(crate) fn asker_of_name(&self, request: u64) -> Option<SegmentId> {
        self.names.waiting.get(&request).map(|(_, host)| *host)
    }

    /// The arbiter has answered a question.
    pub(crate) fn name_answered(&mut self, tools: &LaneTools, request: u64, answer: ObjectAnswer) {
        let Some((token, _)) = self.names.waiting.remove(&request) else { return };
        let Some(one) = self.residents.get_mut(&token) else { return };
        let bytes = Reply::Object(answer).encode();
        if one.socket.send_bytes(tools.reactor, token, bytes, None).is_err() {
            self.leave(token);
        }
    }
}
