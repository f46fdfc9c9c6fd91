//! The end of a job by its time limit: the hosts say first where their processes are.

use std::time::{Duration, Instant};

use super::Job;
use crate::messages::{PartCommand, Whereabouts};
use crate::request::Explanation;
use crate::stacks::STACKS_MAX;

/// How long hosts have to say where their processes are.
const PLACES_TIME: Duration = Duration::from_secs(5);

/// The question where all processes are.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) until: Instant,
    /// The time that the job had when it was asked. A debugger needs its own.
    elapsed: Duration,
    /// The answers, by host.
    pub(super) places: Vec<Option<Vec<Whereabouts>>>,
    /// The reason why the job does not end, from the pictures of all hosts.
    explanation: Option<Explanation>,
}

impl Job<'_> {
    /// Handles the timeout: asks all hosts where their processes are. The job is ended when they have answered.
    pub(super) fn ask_for_places(&mut self) {
        let Some(record) = &mut self.record else {
            self.output.say("The job is ended before its start (--timeout).");
            self.is_over = true;
            return;
        };
        record.take_timeout();
        let elapsed = self.began.elapsed();
        let stacks = self.launch.stacks;
        let time = if stacks { STACKS_MAX + PLACES_TIME } else { PLACES_TIME };
        let places = self.hosts.iter().map(|host| host.is_over.then(Vec::new)).collect();
        // A debugger stops processes, so this comes before the stacks.
        let job = self.job.map(|job| job.to_string());
        let explanation = self.launch.explain.zip(job).and_then(|(explain, job)| explain(&job));
        let until = Instant::now() + time;
        self.question = Some(Question { until, elapsed, places, explanation });
        self.command(None, PartCommand::Places { stacks });
    }

    pub(super) fn take_places(&mut self, place: usize, places: Vec<Whereabouts>) {
        let Some(question) = &mut self.question else { return };
        question.places[place] = Some(places);
        if question.places.iter().all(Option::is_some) {
            self.end_for_time();
        }
    }

    pub(super) fn end_for_time(&mut self) {
        let (Some(question), Some(record)) = (self.question.take(), &self.record) else { return };
        let text = record.timeout_text(question.elapsed, question.explanation, question.places);
        self.output.say(&text);
        let grace = self.launch.grace;
        self.command(None, PartCommand::End { grace });
    }
}
