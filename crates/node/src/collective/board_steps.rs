//! Steps of a plan that go over the board of a host.

use super::fault::Fault;
use super::running::{Running, Stepped};

impl Running {
    /// Does one such step, or goes on with it.
    pub(super) fn board_step(&mut self, _step: u32) -> Result<Stepped, Fault> {
        Err(Fault::NoBoard)
    }
}
