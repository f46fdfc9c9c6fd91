//! What a process knows of a group for its collective operations.

use std::sync::Arc;

use landeck_channel::Peer;
use landeck_collectives::architecture::{Butterfly, Flat, Knomial};
use landeck_collectives::{Group, GroupError, Operation, Way};
use landeck_wire::ContextId;

use super::call::Call;
use super::fault::Mismatch;
use super::plans::{Plans, Prepared};
use super::running::Place;
use super::signature::Signature;

/// A group and its collective operations so far. All members keep it alike: they call the same
/// operations in the same order.
pub(crate) struct Circle {
    pub(crate) place: Place,
    shape: Group,
    plans: Plans,
    next_number: u32,
    /// The last calls, to recognise what others called in their place.
    called: [Option<Signature>; CALLS_KEPT],
    /// Members are out of step: nothing that follows can be right.
    pub(crate) mismatch: Option<Mismatch>,
}

const CALLS_KEPT: usize = 32;

/// Data of a member above this are divided among all on the way.
const SPLIT_BYTES: u64 = 32 << 10;

impl Circle {
    /// A group that has done nothing yet.
    ///
    /// # Errors
    /// [`GroupError::Empty`].
    pub(crate) fn new(context: u32, members: Arc<[Peer]>, member: u32) -> Result<Self, GroupError> {
        let shape = Group::whole(members.len() as u32)?;
        let place = Place { context, twin: twin_of(context), members, member };
        let (plans, called) = (Plans::default(), [None; CALLS_KEPT]);
        Ok(Self { place, shape, plans, next_number: 0, called, mismatch: None })
    }

    /// How many members there are.
    pub(crate) fn size(&self) -> u32 {
        self.shape.size()
    }

    /// The plan for a call, and in how many segments it has the data.
    pub(crate) fn plan(&mut self, call: &Call) -> (Prepared, u32) {
        let way = match &call.manner.way {
            Some(way) => way.clone(),
            None => self.usual_way(call),
        };
        let is_split = matches!(way, Way::Messages { split: true, .. });
        let segments = if is_split && call.operation.has_segments() { self.size() } else { 1 };
        let task = call.task(segments);
        let prepared = self.plans.of(&task, &way, &self.shape, self.place.member);
        (prepared.clone(), segments)
    }

    /// The way that nobody has asked for. It follows from what all members know alike.
    fn usual_way(&self, call: &Call) -> Way {
        let is_long = call.known_bytes() > SPLIT_BYTES;
        match call.operation {
            Operation::AllReduce | Operation::Broadcast if is_long => Way::split_by(Butterfly),
            Operation::Gather | Operation::Scatter if call.is_varying => Way::by(Flat),
            Operation::AllToAll => Way::by(Flat),
            Operation::Broadcast | Operation::Gather | Operation::Scatter | Operation::Reduce => {
                Way::by(Knomial::BINOMIAL)
            }
            _ => Way::by(Butterfly),
        }
    }

    /// Counts a call.
    pub(crate) fn count(&mut self, operation: Operation, root: u32) -> Signature {
        let signature = Signature::new(self.next_number, operation, root);
        self.next_number = self.next_number.wrapping_add(1);
        self.called[signature.number() as usize % CALLS_KEPT] = Some(signature);
        signature
    }

    /// What a message of another member says of its call, if that is not what this one called (or
    /// is what it has heard of such a thing).
    pub(crate) fn contradicts(&self, theirs: Signature) -> Option<Signature> {
        let ours = self.called[theirs.number() as usize % CALLS_KEPT]?;
        (ours.number() == theirs.number() && ours != theirs).then_some(ours)
    }
}

/// The context of a group's collective operations.
pub(crate) fn twin_of(context: u32) -> u32 {
    context | 1 << (ContextId::INDEX_BITS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_call_of_the_same_number_is_a_contradiction() {
        let mut circle = Circle::new(5, [Peer(0), Peer(1)].into(), 0).unwrap();
        let first = circle.count(Operation::Broadcast, 1);
        let theirs = Signature::new(0, Operation::Broadcast, 0);
        assert_eq!((circle.contradicts(theirs), circle.contradicts(first)), (Some(first), None));
        let ahead = Signature::new(1, Operation::Barrier, 0);
        assert_eq!(circle.contradicts(ahead), None);
        (0..CALLS_KEPT).for_each(|_| {
            circle.count(Operation::Barrier, 0);
        });
        assert_eq!(circle.contradicts(theirs), None, "long ago");
    }

    #[test]
    fn a_twin_is_another_context() {
        let context = ContextId::new(7, 3).0;
        assert_eq!(ContextId(twin_of(context)).generation(), 3);
        assert_ne!(twin_of(context), context);
    }
}
