//! Whether all that has come fits what was called here, in any group of the process.

use super::Engine;
use crate::engine::collective::fault::Fault;
use crate::engine::collective::mismatch::Mismatch;

/// After so many operations over messages all that has arrived is looked at.
const CALLS_PER_LOOK: u32 = 8;

impl Engine {
    /// After an operation over messages: whether all that has come so far fits what was called here.
    pub(super) fn in_step(&mut self, context: u32) -> Result<(), Fault> {
        let Some(circle) = self.circles.get_mut(&context) else { return Ok(()) };
        if circle.next_number.is_multiple_of(CALLS_PER_LOOK) {
            self.endpoint.progress();
        }
        let Some(mismatch) = circle.look_at_oldest(&mut self.endpoint) else { return Ok(()) };
        circle.note_mismatch(&mut self.endpoint, mismatch);
        Err(Fault::Mismatch(mismatch))
    }

    /// Before this process leaves: a mismatch in one of its groups that nobody here was told of.
    #[cold]
    pub(crate) fn unnoticed_mismatch(&mut self) -> Option<Mismatch> {
        self.endpoint.progress_thoroughly();
        let mut contexts: Vec<u32> = self.circles.iter().map(|(context, _)| context).collect();
        contexts.sort_unstable();
        let (endpoint, circles) = (&mut self.endpoint, &mut self.circles);
        let mut unnoticed = |context| circles.get_mut(&context)?.unnoticed(endpoint);
        contexts.into_iter().find_map(&mut unnoticed).or(self.estate.unnoticed)
    }
}
