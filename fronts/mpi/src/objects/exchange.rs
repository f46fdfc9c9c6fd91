//! Messages to and from several others that are one operation of the program.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use landeck::raw::message::{self, Mode};
use landeck::raw::{self, Memory};
use landeck::{Tag, World};

use crate::abi::Status;
use crate::mistake::Mistake;
use crate::objects::communicator::Communicator;
use crate::objects::completion::End;
use crate::objects::neighbours::Way;
use crate::objects::request::WaitsFor;

/// Messages that go on.
pub(crate) struct Exchange {
    communicator: Arc<Communicator>,
    operations: Vec<raw::Operation>,
    /// The first ones, which were seen to be over.
    over: AtomicUsize,
    /// The mistake of an operation that could not begin.
    mistake: Option<Mistake>,
}

/// A message of an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeMessage<I> {
    pub(crate) rank: usize,
    pub(crate) way: Way,
    pub(crate) items: I,
}

impl<I> ExchangeMessage<I> {
    /// The message with other items.
    pub(crate) fn with<J>(&self, items: J) -> ExchangeMessage<J> {
        ExchangeMessage { rank: self.rank, way: self.way, items }
    }
}

/// The exchanges of a communicator between which messages are not to be mixed up: those that follow
/// each other, and each of those that are started again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Series(u32);

impl Series {
    /// Of an operation that is kept, with its number from 1 on.
    pub(crate) fn kept(number: u32) -> Self {
        Self(number)
    }

    /// The tag of its messages. Tags 0 and 1 are for other things that the library says.
    fn tag(self, way: Way) -> Tag {
        let way = match way {
            Way::Down => 0,
            Way::Up => 1,
        };
        Tag(self.0.wrapping_add(1).wrapping_mul(2) | way)
    }
}

impl Exchange {
    /// Begins with all messages. What cannot begin is told at the end, when the others are over:
    /// they wait for this process.
    ///
    /// # Safety
    /// The items are left to the exchange until it is over.
    pub(crate) unsafe fn begin<'a>(
        communicator: &Arc<Communicator>,
        series: Series,
        incoming: impl ExactSizeIterator<Item = ExchangeMessage<Memory<'a>>>,
        outgoing: impl ExactSizeIterator<Item = ExchangeMessage<Memory<'a>>>,
    ) -> Result<Self, Mistake> {
        let world = communicator.inside()?;
        let mut begun = Self {
            communicator: Arc::clone(communicator),
            operations: Vec::with_capacity(incoming.len() + outgoing.len()),
            over: AtomicUsize::new(0),
            mistake: None,
        };
        for ExchangeMessage { rank, way, items } in incoming {
            let tag = series.tag(way);
            // SAFETY: the caller's promise.
            begun.note(unsafe { message::start_receive(world, &items, rank, tag) });
        }
        for ExchangeMessage { rank, way, items } in outgoing {
            let (tag, mode) = (series.tag(way), Mode::Standard);
            // SAFETY: the caller's promise.
            begun.note(unsafe { message::start_send(world, &items, rank, tag, mode) });
        }
        Ok(begun)
    }

    fn note(&mut self, started: landeck::Result<raw::Operation>) {
        match started {
            Ok(operation) => self.operations.push(operation),
            Err(error) => {
                let communicator = &self.communicator;
                self.mistake.get_or_insert_with(|| Mistake::from(error).on(communicator));
            }
        }
    }

    /// A world of this process, to wait in.
    pub(crate) fn world(&self) -> &World {
        &self.communicator.world
    }

    /// The first message that is not over.
    pub(crate) fn waits_for(&self) -> Result<WaitsFor, Mistake> {
        let mut over = self.over.load(Ordering::Relaxed);
        while let Some(&operation) = self.operations.get(over) {
            if !raw::are_over(self.world(), &[Some(operation)])? {
                return Ok(WaitsFor::Operation(operation));
            }
            over += 1;
            self.over.store(over, Ordering::Relaxed);
        }
        Ok(WaitsFor::Nothing)
    }

    /// Waits until all messages are over. It ends once.
    pub(crate) fn end(&self) -> End {
        let mut mistake = self.mistake.clone();
        for &operation in &self.operations {
            if let Err(failed) = self.wait(operation) {
                mistake.get_or_insert(failed);
            }
        }
        End { status: Status::empty(), mistake }
    }

    fn wait(&self, operation: raw::Operation) -> Result<(), Mistake> {
        raw::wait(self.communicator.inside()?, operation)
            .map(drop)
            .map_err(|error| Mistake::from(error).on(&self.communicator))
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Exchange")
            .field("operations", &self.operations)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_and_ways_have_tags_of_their_own() {
        let series = [Series::default(), Series::kept(1), Series::kept(2)];
        let tags = series.map(|series| [series.tag(Way::Down).0, series.tag(Way::Up).0]);
        assert_eq!(tags.concat(), [2, 3, 4, 5, 6, 7]);
    }
}
