//! Whether all that has come fits what was called here, in any group of the process.

use crate::Engine;
use crate::fault::Fault;
use crate::mismatch::Mismatch;

/// After so many operations over messages all that has arrived is looked at.
const CALLS_PER_LOOK: u32 = 8;

impl Engine {
    /// After an operation over messages: whether all that has come so far fits what was called here.
    pub(super) fn in_step(&mut self, context: u32) -> Result<(), Fault> {
        let Some(group) = self.groups.get_mut(&context) else { return Ok(()) };
        if group.next_number.is_multiple_of(CALLS_PER_LOOK) {
            self.endpoint.progress();
        }
        let Some(mismatch) = group.look_at_oldest(&mut self.endpoint) else { return Ok(()) };
        group.note_mismatch(&mut self.endpoint, mismatch);
        Err(Fault::Mismatch(mismatch))
    }

    /// Before this process leaves: a mismatch in one of its groups that nobody here was told of.
    #[cold]
    pub(crate) fn unnoticed_mismatch(&mut self) -> Option<Mismatch> {
        self.endpoint.progress_thoroughly();
        let mut contexts: Vec<u32> = self.groups.iter().map(|(context, _)| context).collect();
        contexts.sort_unstable();
        let (endpoint, groups) = (&mut self.endpoint, &mut self.groups);
        let mut unnoticed = |context| groups.get_mut(&context)?.unnoticed(endpoint);
        contexts.into_iter().find_map(&mut unnoticed).or(self.estate.unnoticed)
    }
}
