//! A process elsewhere that sends messages over this relay: what it may send.
//!
//! This is pure. Nothing that comes is trusted: the source is the process to which the connection belongs, and each
//! frame must name its receiver, have a message that processes send, come in order, and be granted.

use std::collections::HashMap;

use landeck_channel::pair::{LaneError, Pair, Positions};
use landeck_memory::SegmentPlan;
use landeck_wire::relayed::{
    RELAYED_URGENT_MORE, RelayedError, RelayedPiece, relayed_piece_bytes, relayed_window,
};
use landeck_wire::{Class, Header, Kind, POSITION_BYTES};

/// The directions from one process elsewhere to processes of this host.
#[derive(Debug)]
pub(super) struct RelaySource {
    slots: u32,
    window: u64,
    piece_max: usize,
    /// The number of the process's connections so far.
    connections: u32,
    /// By the slot of the receiver.
    directions: HashMap<u32, SourceDirection>,
    /// The process has sent over the relay of an earlier run of the daemon, and has not connected to this one: grants say how
    /// many pieces came.
    is_resuming: bool,
}

#[derive(Debug)]
struct SourceDirection {
    /// The incarnation of the receiver.
    incarnation: u32,
    /// The pieces, urgent messages included. They are granted [`RELAYED_URGENT_MORE`] further than ordered ones may go.
    pair: Pair<()>,
}

/// The reason why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SourceError {
    /// The frame is none that a process sends.
    #[error(transparent)]
    Frame(#[from] RelayedError),
    /// There is no such slot.
    #[error("a relayed frame is for slot {slot}, and there are {slots}: its sender is broken")]
    NoSlot {
        /// The slot.
        slot: u32,
        /// Their number.
        slots: u32,
    },
    /// A piece is missing or came twice, or the receiver has granted less.
    #[error(transparent)]
    Position(#[from] LaneError),
    /// The receiver has granted less to ordered pieces.
    #[error("a process sent more than the {granted} pieces that were granted over a relay")]
    NotGranted {
        /// The position up to which it may send.
        granted: u64,
    },
}

impl RelaySource {
    /// A process that has sent nothing to the processes of a segment.
    pub(super) fn new(plan: &SegmentPlan) -> Self {
        Self {
            slots: plan.slots(),
            window: relayed_window(plan.ranks),
            piece_max: relayed_piece_bytes(plan.ranks),
            connections: 0,
            directions: HashMap::new(),
            is_resuming: false,
        }
    }

    /// A process that has sent over the relay of an earlier run of the daemon.
    pub(super) fn resumed(plan: &SegmentPlan) -> Self {
        Self { is_resuming: true, ..Self::new(plan) }
    }

    /// Whether the process has sent over the relay of an earlier run, and has not connected to this one.
    pub(super) const fn is_resuming(&self) -> bool {
        self.is_resuming
    }

    /// The process has said goodbye, and sends nothing more.
    pub(super) fn leave(&mut self) {
        self.slots = 0;
    }

    /// Whether the process has said goodbye.
    pub(super) const fn has_left(&self) -> bool {
        self.slots == 0
    }

    /// Goes on over a further connection. Returns the frames that tell the process how many pieces came over earlier
    /// ones, and how far it may send.
    pub(super) fn connected(&mut self) -> Vec<(Header, [u8; POSITION_BYTES])> {
        self.connections += 1;
        self.is_resuming = false;
        let mut frames = Vec::new();
        for (slot, direction) in &mut self.directions {
            // It is the newest, and nothing is sent that way.
            let _ = direction.pair.open(self.connections);
            let Positions { received, granted } = direction.pair.positions();
            let receiver = (*slot, direction.incarnation);
            frames.push(frame(Kind::Received, receiver, received));
            frames.push(frame(Kind::Granted, receiver, granted - RELAYED_URGENT_MORE));
        }
        frames
    }

    /// Checks a frame, and counts it. Returns the receiver's slot and incarnation.
    ///
    /// # Errors
    /// [`SourceError`]: the connection must end.
    pub(super) fn take(&mut self, frame: &Header, data: &[u8]) -> Result<(u32, u32), SourceError> {
        let message = RelayedPiece::decode(frame, data, self.piece_max)?.message;
        let (slot, incarnation, slots) = (frame.context, frame.tag, self.slots);
        if slot >= slots {
            return Err(SourceError::NoSlot { slot, slots });
        }
        let new = || SourceDirection::new(incarnation, self.window, self.connections);
        let direction = self.directions.entry(slot).or_insert_with(new);
        if direction.incarnation != incarnation {
            *direction = new();
        }
        let Positions { received, granted } = direction.pair.positions();
        if message.class != Class::Urgent && received + RELAYED_URGENT_MORE >= granted {
            return Err(SourceError::NotGranted { granted: granted - RELAYED_URGENT_MORE });
        }
        direction.pair.arrive(self.connections, frame.sequence)?;
        Ok((slot, incarnation))
    }

    /// A receiver has granted a position. Returns the frame that tells the source, if it is one that can be.
    pub(super) fn grant(
        &mut self,
        (slot, incarnation): (u32, u32),
        position: u64,
    ) -> Option<(Header, [u8; POSITION_BYTES])> {
        if self.is_resuming && slot < self.slots {
            let granted = self.window + RELAYED_URGENT_MORE;
            let pair = Pair::at(position.checked_sub(self.window)?, granted);
            self.directions.insert(slot, SourceDirection { incarnation, pair });
            return None;
        }
        let direction =
            self.directions.get_mut(&slot).filter(|it| it.incarnation == incarnation)?;
        let Positions { received, .. } = direction.pair.positions();
        if self.slots == 0 || position > received + self.window {
            return None;
        }
        let ahead = (position + RELAYED_URGENT_MORE).saturating_sub(received);
        let is_more = direction.pair.grant(ahead);
        is_more.then(|| frame(Kind::Granted, (slot, incarnation), position))
    }
}

impl SourceDirection {
    fn new(incarnation: u32, window: u64, connection: u32) -> Self {
        let mut pair = Pair::new(window + RELAYED_URGENT_MORE);
        // It is the first.
        let _ = pair.open(connection);
        Self { incarnation, pair }
    }
}

/// The frame that tells a position of the direction to a receiver.
fn frame(kind: Kind, (context, tag): (u32, u32), position: u64) -> (Header, [u8; POSITION_BYTES]) {
    (Header { context, tag, ..Header::position(kind) }, position.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> RelaySource {
        let plan = SegmentPlan::new(1, 2);
        let mut source = RelaySource::new(&SegmentPlan { ranks: 64, far: 62, hosts: 2, ..plan });
        assert!(source.connected().is_empty());
        source
    }

    fn frame(
        kind: Kind,
        class: Class,
        sequence: u16,
        length: usize,
        slot: u32,
    ) -> (Header, Vec<u8>) {
        let message = Header { class, ..Header::user(kind, length as u32, 7, 9) };
        let bytes = [&message.encode()[..], &vec![5; length]].concat();
        (Header { sequence, ..RelayedPiece::frame(class, length, (slot, 3)) }, bytes)
    }

    #[test]
    fn frames_in_order_pass_as_far_as_they_are_granted() {
        let mut source = source();
        assert_eq!(source.window, 4);
        for slot in [0, 1] {
            for sequence in 0..4 {
                let (header, data) = frame(Kind::Eager, Class::User, sequence, 100, slot);
                assert_eq!(source.take(&header, &data), Ok((slot, 3)));
            }
        }
        let (header, data) = frame(Kind::Eager, Class::User, 4, 100, 1);
        let refused = Err(SourceError::NotGranted { granted: 4 });
        assert_eq!(source.take(&header, &data), refused);
        assert_eq!(source.grant((1, 3), 4), None, "nothing new");
        assert_eq!(source.grant((1, 2), 6), None, "a former process");
        assert_eq!(source.grant((1, 3), 9), None, "more than a window beyond what was sent");
        let (told, position) = source.grant((1, 3), 6).expect("a grant");
        assert_eq!((told.kind, told.context, told.tag), (Kind::Granted, 1, 3));
        assert_eq!(u64::from_le_bytes(position), 6);
        assert_eq!(source.take(&header, &data), Ok((1, 3)));
    }

    #[test]
    fn a_further_connection_is_told_where_to_go_on() {
        let mut source = source();
        for sequence in 0..3 {
            let (header, data) = frame(Kind::Eager, Class::User, sequence, 100, 1);
            assert_eq!(source.take(&header, &data), Ok((1, 3)));
        }
        assert!(source.grant((1, 3), 6).is_some());
        let told = |source: &mut RelaySource| -> Vec<_> {
            let told = source.connected().into_iter();
            told.map(|(it, data)| (it.kind, it.context, it.tag, u64::from_le_bytes(data))).collect()
        };
        let expected = [(Kind::Received, 1, 3, 3), (Kind::Granted, 1, 3, 6)];
        assert_eq!(told(&mut source), expected);
        source.leave();
        assert_eq!(told(&mut source), expected, "the goodbye may not have been answered");
        let (header, data) = frame(Kind::Eager, Class::User, 3, 100, 1);
        assert!(matches!(source.take(&header, &data), Err(SourceError::NoSlot { .. })));
    }

    #[test]
    fn a_process_of_an_earlier_run_goes_on_behind_what_its_receivers_have() {
        let plan = SegmentPlan { ranks: 64, far: 62, hosts: 2, ..SegmentPlan::new(1, 2) };
        let mut source = RelaySource::resumed(&plan);
        assert_eq!(source.grant((1, 3), 7 + source.window), None);
        assert_eq!(source.grant((0, 3), source.window - 1), None, "none that can be");
        assert_eq!(source.grant((plan.slots(), 3), 90), None, "no slot");
        let told = source.connected().into_iter();
        let told: Vec<_> = told
            .map(|(it, data)| (it.kind, it.context, it.tag, u64::from_le_bytes(data)))
            .collect();
        assert_eq!(told, [(Kind::Received, 1, 3, 7), (Kind::Granted, 1, 3, 11)]);
        for position in 7..11 {
            let (header, data) = frame(Kind::Eager, Class::User, position, 100, 1);
            assert_eq!(source.take(&header, &data), Ok((1, 3)));
        }
        let (header, data) = frame(Kind::Eager, Class::User, 11, 100, 1);
        assert!(source.take(&header, &data).is_err(), "not granted");
        let (header, data) = frame(Kind::Eager, Class::User, 0, 100, 0);
        assert_eq!(source.take(&header, &data), Ok((0, 3)), "nothing came there");
        assert!(source.grant((1, 3), 13).is_some());
    }

    #[test]
    fn urgent_messages_go_a_little_further() {
        let mut source = source();
        let most = 4 + RELAYED_URGENT_MORE as u16;
        for position in 0..most {
            let (header, data) = frame(Kind::Eager, Class::Urgent, position, 8, 0);
            assert_eq!(source.take(&header, &data), Ok((0, 3)));
        }
        let (header, data) = frame(Kind::Eager, Class::Urgent, most, 8, 0);
        assert!(matches!(source.take(&header, &data), Err(SourceError::Position(_))));
        assert!(source.grant((0, 3), 13).is_some());
        let (header, data) = frame(Kind::Eager, Class::User, most, 8, 0);
        assert_eq!(source.take(&header, &data), Ok((0, 3)), "the first of the ordered ones");
    }

    #[test]
    fn a_frame_that_no_process_sends_ends_the_connection() {
        let refused = |header: &Header, data: &[u8]| source().take(header, data).err();
        let (header, data) = frame(Kind::Eager, Class::User, 0, 100, 18);
        assert_eq!(refused(&header, &data), Some(SourceError::NoSlot { slot: 18, slots: 18 }));
        let (header, data) = frame(Kind::Eager, Class::User, 1, 100, 0);
        let missing = LaneError::Position { expected: 0, found: 1 };
        assert_eq!(refused(&header, &data), Some(missing.into()));
        let (header, data) = frame(Kind::Goodbye, Class::User, 0, 100, 0);
        assert_eq!(refused(&header, &data), Some(RelayedError::Form.into()));
        let (header, data) = frame(Kind::Eager, Class::User, 0, 16_321, 0);
        assert_eq!(refused(&header, &data), Some(RelayedError::TooLong(16_321).into()));
        let (header, data) = frame(Kind::Eager, Class::User, 0, 100, 0);
        assert_eq!(refused(&header, &data[..15]), Some(RelayedError::Short(15).into()));
        let put = Header { kind: Kind::RelayPut, ..header };
        assert_eq!(refused(&put, &data), Some(RelayedError::Form.into()));
    }
}
