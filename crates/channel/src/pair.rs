//! The positions of a pair of ends on different hosts.
//!
//! Each direction has two positions, counted in whole frames: *granted*, up to which the sender may send, and
//! *received*. Both have 64 bits. A frame's header has the low 16 bits of its position.
//!
//! A grant is not a receipt. An eager frame is kept until it is received, because the sender's memory was reused at
//! once. So a lane that breaks loses nothing: each side of the next lane says *received*, and the other goes on from
//! there. A lane with a lower number is refused. A pair changes its path only when everything sent is received.
//!
//! Three uses have this rule. The ends of a lane are two processes. A process and a relay are the ends of relayed
//! messages to one receiver. Two daemons are the ends of the contents of trunks, which have no limits here.
//!
//! The pair holds frames as a type parameter, so that a channel keeps bytes or references, and the simulator numbers.

use std::collections::VecDeque;

/// The most bytes of eager frames that a pair keeps until they are received.
pub const KEPT_MAX: usize = 256 << 10;
/// The most frames that are granted ahead of *received*, so that 16 bits name each of them.
pub const AHEAD_MAX: u64 = 1 << 14;

/// The positions that one side tells the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positions {
    /// The position up to which the teller has received.
    pub received: u64,
    /// The position up to which the listener may send.
    pub granted: u64,
}

/// The reason why a frame cannot be sent now. It is handed back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushError<F> {
    /// The receiver has granted no more.
    NoGrant(F),
    /// The frames that are kept fill their room.
    KeptFull(F),
}

/// The reason why a lane must end, or is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// A lane with this number or a higher one was there before.
    #[error("lane {lane} of a pair is not newer than lane {newest}")]
    Old {
        /// The lane.
        lane: u32,
        /// The newest one.
        newest: u32,
    },
    /// A frame came that does not follow the last one, or the other side named a position that cannot be.
    #[error("a lane continues at position {found}, not at {expected}: its sender is broken")]
    Position {
        /// The position that was expected.
        expected: u64,
        /// The position that came.
        found: u64,
    },
}

/// The positions of one side of a pair.
#[derive(Clone, Debug)]
pub struct Pair<F> {
    /// The newest lane. 0 before the first.
    lane: u32,
    path: Path,
    /// The position of the next frame to be pushed.
    pushed: u64,
    /// The position of the next frame to go onto the path.
    sent: u64,
    /// The highest position that *sent* has had. A new lane begins below it.
    sent_most: u64,
    /// The position up to which this side may send.
    granted: u64,
    /// The frames from *received there* to *pushed*, with the bytes that each keeps.
    kept: VecDeque<(F, usize)>,
    kept_bytes: usize,
    /// The most bytes that are kept.
    room: usize,
    /// The position up to which this side has received.
    received: u64,
    /// The position up to which the other side may send.
    granted_there: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    /// There is no lane.
    None,
    /// A lane is open, and the other side has not said yet which of the kept frames it has received.
    Opening,
    /// Frames go.
    Open,
}

impl<F> Pair<F> {
    /// Creates a pair that has exchanged nothing and has no lane. Both sides grant so many frames at first.
    #[must_use]
    pub fn new(grant: u64) -> Self {
        Self::at(0, grant)
    }

    /// Creates a pair both of whose directions are at this position.
    #[must_use]
    pub fn at(position: u64, grant: u64) -> Self {
        Self::with_limits(position, position + grant.min(AHEAD_MAX), KEPT_MAX)
    }

    /// Creates a pair whose frames need no grant, and keep as many bytes as they have.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::with_limits(0, u64::MAX, usize::MAX)
    }

    /// Creates a pair without limits that goes on where another one was: `received_there` is the position of the first of these
    /// frames, each with the bytes that it keeps. The other side may have received any of them.
    #[must_use]
    pub fn resumed(
        received_there: u64,
        kept: impl IntoIterator<Item = (F, usize)>,
        received: u64,
    ) -> Self {
        let mut pair = Self { received, ..Self::with_limits(received_there, u64::MAX, usize::MAX) };
        pair.kept.extend(kept);
        pair.kept_bytes = pair.kept.iter().map(|(_, keeps)| keeps).sum();
        pair.pushed += pair.kept.len() as u64;
        pair.sent_most = pair.pushed;
        pair
    }

    /// The frames that the other side has not received, as far as it has said.
    pub fn kept(&self) -> impl Iterator<Item = &F> {
        self.kept.iter().map(|(frame, _)| frame)
    }

    const fn with_limits(position: u64, granted: u64, room: usize) -> Self {
        Self {
            lane: 0,
            path: Path::None,
            pushed: position,
            sent: position,
            sent_most: position,
            granted,
            kept: VecDeque::new(),
            kept_bytes: 0,
            room,
            received: position,
            granted_there: granted,
        }
    }

    /// Accepts a frame for sending, and returns its position. `keeps` is the number of bytes that are copied until the
    /// frame is received. It is 0 if they stay in the sender's memory, or if grants alone bound them.
    ///
    /// # Errors
    /// [`PushError`] with the frame, if it has to wait.
    pub fn push(&mut self, frame: F, keeps: usize) -> Result<u64, PushError<F>> {
        if self.pushed >= self.granted {
            return Err(PushError::NoGrant(frame));
        }
        if self.kept_bytes + keeps > self.room {
            return Err(PushError::KeptFull(frame));
        }
        let position = self.pushed;
        self.kept.push_back((frame, keeps));
        self.kept_bytes += keeps;
        self.pushed += 1;
        Ok(position)
    }

    /// The next frame for the path, with its position.
    pub fn next_to_send(&mut self) -> Option<(u64, &F)> {
        if self.path != Path::Open || self.sent >= self.pushed {
            return None;
        }
        let position = self.sent;
        let place = (position - self.received_there()) as usize;
        self.sent += 1;
        self.sent_most = self.sent_most.max(self.sent);
        self.kept.get(place).map(|(frame, _)| (position, frame))
    }

    /// Takes a lane that has just been opened or accepted. Returns the positions to tell the other side on it first; the
    /// lane before is to be closed unread.
    ///
    /// # Errors
    /// [`LaneError::Old`] if the pair has had this lane or a later one.
    pub fn open(&mut self, lane: u32) -> Result<Positions, LaneError> {
        if lane <= self.lane {
            return Err(LaneError::Old { lane, newest: self.lane });
        }
        self.lane = lane;
        // Where nothing is kept, the other side can only have received everything.
        self.path = if self.kept.is_empty() { Path::Open } else { Path::Opening };
        self.sent = self.sent.max(self.received_there());
        Ok(self.positions())
    }

    /// The lane has ended. Frames that are not received stay here for the next one.
    pub fn close(&mut self, lane: u32) {
        if lane == self.lane {
            self.path = Path::None;
        }
    }

    /// Takes the positions of the other side. The first ones on a lane say where to go on. Returns the position up to
    /// which the other side has received: all sends below it are complete.
    ///
    /// # Errors
    /// [`LaneError`] if the lane is not the newest one, or if the positions cannot be.
    pub fn told(&mut self, lane: u32, positions: Positions) -> Result<u64, LaneError> {
        self.check_lane(lane)?;
        let before = self.received_there();
        if !(before..=self.sent_most).contains(&positions.received) {
            return Err(LaneError::Position { expected: before, found: positions.received });
        }
        for _ in before..positions.received {
            self.kept_bytes -= self.kept.pop_front().map_or(0, |(_, bytes)| bytes);
        }
        if self.path == Path::Opening {
            self.path = Path::Open;
            self.sent = positions.received;
        }
        self.sent = self.sent.max(positions.received);
        self.granted = self.granted.max(positions.granted.min(positions.received + AHEAD_MAX));
        Ok(positions.received)
    }

    /// Takes a frame's header from the lane, and returns its position. Its data are taken then.
    ///
    /// # Errors
    /// [`LaneError`] if the lane is not the newest one, or if the frame does not follow the last one.
    pub fn arrive(&mut self, lane: u32, low: u16) -> Result<u64, LaneError> {
        self.arrive_at(lane, full_position(low, self.received))
    }

    /// Takes a frame with this position from the lane, as [`Pair::arrive`] does.
    ///
    /// # Errors
    /// [`LaneError`], as [`Pair::arrive`].
    pub fn arrive_at(&mut self, lane: u32, found: u64) -> Result<u64, LaneError> {
        self.check_lane(lane)?;
        if found != self.received || found >= self.granted_there {
            return Err(LaneError::Position { expected: self.received, found });
        }
        self.received += 1;
        Ok(found)
    }

    /// Grants the other side so many frames beyond those received. A grant is never taken back. Returns whether there is
    /// something to tell.
    pub fn grant(&mut self, frames: u64) -> bool {
        let granted = self.received + frames.min(AHEAD_MAX);
        let is_more = granted > self.granted_there;
        self.granted_there = self.granted_there.max(granted);
        is_more
    }

    /// The positions to tell the other side.
    #[must_use]
    pub const fn positions(&self) -> Positions {
        Positions { received: self.received, granted: self.granted_there }
    }

    /// Whether the other side has received everything that was sent: only then may the pair change its path.
    #[must_use]
    pub fn may_change_path(&self) -> bool {
        self.kept.is_empty()
    }

    /// Leaves the lane for another path, a relay's. Returns whether the pair may.
    pub fn leave_lane(&mut self) -> bool {
        let may = self.may_change_path();
        if may {
            self.path = Path::None;
        }
        may
    }

    /// The number of the newest lane.
    #[must_use]
    pub const fn lane(&self) -> u32 {
        self.lane
    }

    /// The position behind everything that was accepted for sending.
    #[must_use]
    pub const fn pushed(&self) -> u64 {
        self.pushed
    }

    /// The position behind everything that went onto a path, whichever it was.
    #[must_use]
    pub const fn sent_most(&self) -> u64 {
        self.sent_most
    }

    /// How many further frames are granted.
    #[must_use]
    pub const fn ahead(&self) -> u64 {
        self.granted.saturating_sub(self.pushed)
    }

    /// Whether a further frame that keeps so many bytes is accepted.
    #[must_use]
    pub const fn has_room(&self, keeps: usize) -> bool {
        self.pushed < self.granted && self.kept_bytes + keeps <= self.room
    }

    /// Whether frames wait to go onto the path, or for the other side's word where to go on.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.path != Path::Open || self.sent < self.pushed
    }

    /// Whether a lane is open on which the other side has still to say where to go on.
    #[must_use]
    pub fn is_opening(&self) -> bool {
        self.path == Path::Opening
    }

    /// The frames that [`Pair::next_to_send`] would give now, one after the other.
    pub fn waiting(&self) -> impl Iterator<Item = &F> {
        let first = match self.path {
            Path::Open => self.sent - self.received_there(),
            _ => self.kept.len() as u64,
        };
        self.kept.iter().skip(first as usize).map(|(frame, _)| frame)
    }

    /// The bytes that are kept.
    #[must_use]
    pub const fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// The position up to which the other side is known to have received.
    #[must_use]
    pub fn received_there(&self) -> u64 {
        self.pushed - self.kept.len() as u64
    }

    const fn check_lane(&self, lane: u32) -> Result<(), LaneError> {
        if lane == self.lane && !matches!(self.path, Path::None) {
            return Ok(());
        }
        Err(LaneError::Old { lane, newest: self.lane })
    }
}

/// The position nearest to another one that has these low 16 bits.
#[must_use]
pub const fn full_position(low: u16, near: u64) -> u64 {
    let ahead = low.wrapping_sub(near as u16) as i16;
    near.wrapping_add_signed(ahead as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sides whose frames are numbers, connected by lane 1.
    fn pairs(position: u64) -> (Pair<u64>, Pair<u64>) {
        let (mut a, mut b) = (Pair::at(position, 4), Pair::at(position, 4));
        reopen(&mut a, &mut b, 1);
        (a, b)
    }

    fn reopen(a: &mut Pair<u64>, b: &mut Pair<u64>, lane: u32) {
        let (from_a, from_b) = (a.open(lane).expect("new"), b.open(lane).expect("new"));
        a.told(lane, from_b).expect("a position");
        b.told(lane, from_a).expect("a position");
    }

    #[test]
    fn sixteen_bits_name_the_nearest_position() {
        for (near, ahead) in
            [(0, 0), (65_535, 1), (70_000, -4_464), (1 << 40, 32_767), (1 << 40, -32_768)]
        {
            let position = u64::wrapping_add_signed(near, ahead);
            assert_eq!(full_position(position as u16, near), position);
        }
    }

    #[test]
    fn frames_go_on_behind_the_last_received_on_the_next_lane() {
        let (mut a, mut b) = pairs(65_534);
        for frame in 0..4 {
            assert_eq!(a.push(frame, 100), Ok(65_534 + frame));
        }
        assert_eq!(a.push(4, 100), Err(PushError::NoGrant(4)));
        let sent: Vec<_> =
            std::iter::from_fn(|| a.next_to_send().map(|(low, frame)| (low, *frame))).collect();
        assert_eq!(sent, [(65_534, 0), (65_535, 1), (65_536, 2), (65_537, 3)]);
        assert_eq!((b.arrive(1, 65_534), b.arrive(1, 65_535)), (Ok(65_534), Ok(65_535)));
        assert!(matches!(b.arrive(1, 1), Err(LaneError::Position { .. })), "a gap");
        assert!(matches!(b.arrive(1, 65_535), Err(LaneError::Position { .. })), "twice");
        a.close(1);
        assert_eq!(a.next_to_send(), None);
        reopen(&mut a, &mut b, 3);
        assert_eq!(a.kept_bytes(), 200);
        assert_eq!(a.next_to_send(), Some((65_536, &2)));
        assert_eq!(b.arrive(1, 0), Err(LaneError::Old { lane: 1, newest: 3 }));
        assert_eq!(b.arrive(3, 0), Ok(65_536));
        assert_eq!(b.open(2), Err(LaneError::Old { lane: 2, newest: 3 }));
    }

    #[test]
    fn a_lane_is_open_at_once_where_nothing_is_kept() {
        let (mut a, mut b) = (Pair::<char>::at(7, 4), Pair::<char>::at(7, 4));
        let _ = (a.open(1), b.open(1));
        assert_eq!((a.push('x', 1), a.is_behind()), (Ok(7), true));
        assert_eq!(a.waiting().collect::<String>(), "x");
        assert_eq!(a.next_to_send(), Some((7, &'x')));
        assert!(!a.is_behind());
        let _ = (a.open(2), b.open(2));
        assert!(a.is_behind() && a.waiting().next().is_none(), "the other side may have it");
        a.told(2, b.positions()).expect("a position");
        assert_eq!(a.waiting().collect::<String>(), "x");
        assert!(a.has_room(KEPT_MAX - 1) && !a.has_room(KEPT_MAX));
    }

    #[test]
    fn a_pair_without_limits_accepts_everything() {
        let (mut a, mut b) = (Pair::unlimited(), Pair::<()>::unlimited());
        let _ = (a.open(1), b.open(1));
        for frame in 0..2 * AHEAD_MAX {
            assert_eq!(a.push(frame, KEPT_MAX), Ok(frame));
            let (position, _) = a.next_to_send().expect("the lane is open");
            assert_eq!(b.arrive_at(1, position), Ok(frame));
        }
        assert_eq!(a.told(1, b.positions()), Ok(2 * AHEAD_MAX));
        assert!(a.may_change_path() && a.has_room(usize::MAX));
    }

    #[test]
    fn grants_and_receipts_are_different() {
        let (mut a, mut b) = pairs(0);
        a.push(0, KEPT_MAX).expect("room");
        assert_eq!(a.push(1, 1), Err(PushError::KeptFull(1)));
        a.push(1, 0).expect("it stays in the sender's memory");
        a.next_to_send();
        b.arrive(1, 0).expect("in order");
        assert!(b.grant(8) && !b.grant(2));
        assert!(!a.may_change_path() && !a.leave_lane());
        assert_eq!(a.told(1, b.positions()), Ok(1));
        assert_eq!((a.kept_bytes(), a.may_change_path()), (0, false));
        a.next_to_send();
        b.arrive(1, 1).expect("in order");
        assert_eq!(a.told(1, b.positions()), Ok(2));
        assert!(a.leave_lane());
        let never = Positions { received: 9, granted: 9 };
        assert!(matches!(b.told(1, never), Err(LaneError::Position { .. })));
    }
}
