//! The end of operations over boards that the caller has waited for by polling them.

use landeck_kernel::Area;

use super::Engine;
use crate::WaitError;
use crate::board::call::BoardCall;
use crate::oversize::long_instead;
use crate::wait_error::Ended;

impl Engine {
    /// A board call has ended like this, or was given up.
    #[inline]
    pub(crate) fn end_board_call(
        &mut self,
        context: u32,
        board_call: BoardCall,
        ended: &mut Ended,
    ) {
        if let Err(error) = ended {
            self.take_refused(context, &board_call, error);
        }
        if let Some(group) = self.groups.get_mut(&context) {
            group.end_board_call(board_call);
        }
    }

    /// Takes and drops the long blocks that have come in the place of short ones, lest their senders wait for ever.
    #[cold]
    fn take_refused(&mut self, context: u32, board_call: &BoardCall, error: &mut WaitError) {
        let (Some(group), WaitError::Collective(fault)) = (self.groups.get(&context), error) else {
            return;
        };
        let refused = board_call.refused();
        for wanted in long_instead(group, board_call.signature().tag(), &refused, fault) {
            let id = self.endpoint.receive(wanted, Area::EMPTY);
            self.release(id.into());
        }
    }
}
