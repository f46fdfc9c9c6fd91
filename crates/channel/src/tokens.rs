//! Tokens for the fixed buffers of a receiver.
//!
//! Monteil, Garcia, Gauchard and Brun, "Communication Kernel for High Speed Networks in the Parallel Environment
//! LANDA-HSN" (1999), send over a network whose receiver provides buffers of a fixed length beforehand. A sender needs a
//! token for each, and each of two priorities has tokens of its own. For a message that is longer than a buffer they
//! compare two ways: *segmentation*, in chunks of one buffer each, and *reservation*, a request after which the receiver
//! makes room for the whole message. Chunks are copied out of their buffers. A reservation costs a round trip.
//!
//! [`Tokens`] is what a sender knows of the buffers of one receiver, [`FixedBuffers`] what the receiver knows of those for
//! one sender. A buffer is in use from the sending of its chunk until the receiver says that it is empty again.

/// The length of a buffer for messages of a group that wants tokens.
pub const BUFFER_BYTES: u64 = 16 << 10;

/// The priority of messages in tokens. Messages of each have buffers of their own, so they come also when those of the
/// others are full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Priority {
    /// The usual one.
    #[default]
    Low = 0,
    /// Chunks of it go before those of low priority.
    High = 1,
    /// Messages of groups that want no tokens, which leave in the call that sends them: nobody asks for them.
    Unasked = 2,
}

impl Priority {
    /// The priority with this number.
    #[must_use]
    pub const fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Low),
            1 => Some(Self::High),
            2 => Some(Self::Unasked),
            _ => None,
        }
    }

    /// The buffers that a receiver has for one sender.
    #[must_use]
    pub const fn buffers(self) -> u32 {
        match self {
            Self::Low => 8,
            Self::High => 4,
            Self::Unasked => 16,
        }
    }

    /// The length of each of these buffers.
    #[must_use]
    pub const fn buffer_bytes(self) -> u64 {
        match self {
            Self::Low | Self::High => BUFFER_BYTES,
            Self::Unasked => 4 * BUFFER_BYTES,
        }
    }
}

/// The way of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenWay {
    /// It fits into a buffer, and goes as it is.
    Whole,
    /// Segmentation: in chunks of one buffer each.
    Chunks,
    /// Reservation: the receiver makes room for all of it, and asks for it.
    Reservation,
}

/// The wish of a group whose messages need tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenWish {
    /// The longest message that goes in chunks; room is reserved for longer ones.
    pub chunks_up_to: u64,
    /// The priority of all messages.
    pub priority: Priority,
}

impl Default for TokenWish {
    /// Chooses by size: a message goes in chunks if the buffers hold all of it. A longer one would wait for empty buffers,
    /// which takes a round trip, as a reservation does.
    fn default() -> Self {
        Self::up_to(Priority::Low.buffers() as u64 * BUFFER_BYTES)
    }
}

impl TokenWish {
    /// All messages go in chunks.
    pub const SEGMENTATION: Self = Self::up_to(u64::MAX);
    /// Room is reserved for all messages.
    pub const RESERVATION: Self = Self::up_to(0);

    /// Messages of at most so many bytes go in chunks.
    #[must_use]
    pub const fn up_to(chunks_up_to: u64) -> Self {
        Self { chunks_up_to, priority: Priority::Low }
    }

    /// The way of a message of so many bytes.
    #[must_use]
    pub const fn way(self, bytes: u64) -> TokenWay {
        if bytes > self.chunks_up_to {
            TokenWay::Reservation
        } else if bytes > BUFFER_BYTES {
            TokenWay::Chunks
        } else {
            TokenWay::Whole
        }
    }
}

/// A sender's tokens for one receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    used: [u32; 3],
}

impl Tokens {
    /// Takes a token for one chunk, if fewer than `most` are in use and one is left.
    pub const fn take(&mut self, priority: Priority, most: u32) -> bool {
        let is_there = self.has(priority, most);
        self.used[priority as usize] += is_there as u32;
        is_there
    }

    /// Whether a token is left, and fewer than `most` are in use.
    pub const fn has(&self, priority: Priority, most: u32) -> bool {
        let all = priority.buffers();
        self.used[priority as usize] < if most < all { most } else { all }
    }

    /// Puts tokens back: the receiver has so many empty buffers more, or their chunks were not sent. False if no sender
    /// has used so many.
    pub const fn put_back(&mut self, priority: Priority, count: u32) -> bool {
        let used = &mut self.used[priority as usize];
        let is_right = count <= *used;
        *used = used.saturating_sub(count);
        is_right
    }
}

/// A receiver's buffers for one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedBuffers {
    full: [u32; 3],
}

impl FixedBuffers {
    /// Fills a buffer. False if none is empty: then its sender had no token.
    pub const fn fill(&mut self, priority: Priority) -> bool {
        let full = &mut self.full[priority as usize];
        let has_room = *full < priority.buffers();
        *full += has_room as u32;
        has_room
    }

    /// Empties buffers, whose number the sender is to be told.
    pub const fn empty(&mut self, priority: Priority, count: u32) {
        let full = &mut self.full[priority as usize];
        *full = full.saturating_sub(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Priority; 3] = [Priority::Low, Priority::High, Priority::Unasked];

    #[test]
    fn the_way_follows_from_the_size() {
        let at = |wish: TokenWish| {
            [0, 1, 16 << 10, (16 << 10) + 1, 128 << 10, (128 << 10) + 1, 1 << 30]
                .map(|b| wish.way(b))
        };
        use TokenWay::{Chunks, Reservation, Whole};
        assert_eq!(
            at(TokenWish::default()),
            [Whole, Whole, Whole, Chunks, Chunks, Reservation, Reservation]
        );
        assert_eq!(at(TokenWish::SEGMENTATION)[3..], [Chunks; 4]);
        assert_eq!(at(TokenWish::RESERVATION)[1..], [Reservation; 6]);
        assert_eq!(TokenWish::RESERVATION.way(0), Whole, "nothing needs no room");
    }

    #[test]
    fn each_priority_has_tokens_of_its_own() {
        let mut tokens = Tokens::default();
        let count = |tokens: &mut Tokens, priority, most| {
            std::iter::repeat_with(|| tokens.take(priority, most))
                .take_while(|taken| *taken)
                .count()
        };
        assert_eq!(count(&mut tokens, Priority::Low, 3), 3);
        assert_eq!(count(&mut tokens, Priority::Low, u32::MAX), 5, "the rest");
        assert_eq!(count(&mut tokens, Priority::High, u32::MAX), 4);
        assert!(tokens.put_back(Priority::Low, 2) && !tokens.take(Priority::High, u32::MAX));
        assert_eq!(count(&mut tokens, Priority::Low, u32::MAX), 2);
        assert!(!tokens.put_back(Priority::High, 5), "more than were used");
    }

    /// A sender that keeps to its tokens never finds the buffers full, whatever the delays are.
    #[test]
    fn a_sender_with_a_token_finds_an_empty_buffer() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut tokens = Tokens::default();
        let mut buffers = FixedBuffers::default();
        // Chunks on their way, chunks in their buffers, empty buffers that the sender does not know yet.
        let mut counts = [[0; 3]; 3];
        let mut most = [0; 3];
        for _ in 0..100_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let priority = ALL[(random >> 40) as usize % 3];
            let [sent, full, empty] = &mut counts[priority as usize];
            match (random >> 50) % 4 {
                0 => *sent += u32::from(tokens.take(priority, u32::MAX)),
                1 if *sent > 0 => {
                    assert!(buffers.fill(priority), "{counts:?}");
                    (*sent, *full) = (*sent - 1, *full + 1);
                }
                2 if *full > 0 => {
                    buffers.empty(priority, 1);
                    (*full, *empty) = (*full - 1, *empty + 1);
                }
                _ => assert!(tokens.put_back(priority, std::mem::take(empty))),
            }
            let seen = &mut most[priority as usize];
            *seen = (*seen).max(counts[priority as usize].iter().sum());
        }
        assert_eq!(most, ALL.map(Priority::buffers), "all of them are used, and no more");
    }

    #[test]
    fn a_sender_without_a_token_finds_no_buffer() {
        let mut buffers = FixedBuffers::default();
        assert!((0..8).all(|_| buffers.fill(Priority::Low)) && !buffers.fill(Priority::Low));
        assert!(buffers.fill(Priority::High));
        buffers.empty(Priority::Low, 1);
        assert!(buffers.fill(Priority::Low) && !buffers.fill(Priority::Low));
    }
}
