//! Framing: finds where one message ends on a stream and the next begins.
//!
//! A message is its header, 16 bytes, and as many bytes of data as the header says. A process that leaves in good order
//! ends the stream with a goodbye, which is a header of its own kind; a stream that ends without one was cut off.
//! Nothing here knows of sockets. The staging memory exists only while bytes are in it. It comes from and returns to a
//! [`Staging`] that all connections share.

use landeck_channel::BrokenPeer;
use landeck_wire::{HEADER_BYTES, Header, Kind};

/// The longest data of one message.
pub const DATA_BYTES_MAX: usize = 64 * 1024;

/// The number of bytes that are read from a socket at once: one message of full length, or many short ones.
pub const STAGING_BYTES: usize = 128 * 1024;

/// The number of unused staging memories that are kept for later connections.
const SPARE_MAX: usize = 4;

/// Unused staging memories.
#[derive(Default)]
pub struct Staging {
    spare: Vec<Box<[u8]>>,
}

/// The incoming half of one stream.
#[derive(Default)]
pub struct Framing {
    /// The staging memory; `None` while it would be empty.
    memory: Option<Box<[u8]>>,
    begin: usize,
    end: usize,
}

impl Staging {
    fn lend(&mut self) -> Box<[u8]> {
        self.spare.pop().unwrap_or_else(|| vec![0; STAGING_BYTES].into_boxed_slice())
    }

    fn take_back(&mut self, memory: Box<[u8]>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(memory);
        }
    }
}

impl Framing {
    /// The room to read into. It is empty only while there is a message that the sink has not taken.
    pub fn room(&mut self, staging: &mut Staging) -> &mut [u8] {
        let memory = self.memory.get_or_insert_with(|| staging.lend());
        if self.begin > 0 && self.end > STAGING_BYTES / 2 {
            memory.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
        }
        &mut memory[self.end..]
    }

    /// Records that so many bytes were read.
    pub fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(STAGING_BYTES);
    }

    /// The first whole message. `None` if there is none (yet), or only a goodbye.
    ///
    /// # Errors
    /// [`BrokenPeer`] if no sender sends such bytes, or if bytes follow a goodbye; nothing behind them is valid.
    pub fn first(&self) -> Result<Option<(Header, &[u8])>, BrokenPeer> {
        let Some((head, rest)) = self.staged().split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let header = Header::decode(head)?;
        if header.kind == Kind::Goodbye {
            return match (header == Header::GOODBYE, rest.is_empty()) {
                (true, true) => Ok(None),
                (true, false) => Err(BrokenPeer::AfterGoodbye),
                (false, _) => Err(BrokenPeer::Form),
            };
        }
        let length = header.length as usize;
        if length > DATA_BYTES_MAX {
            return Err(BrokenPeer::TooLong { length: length as u64, most: DATA_BYTES_MAX as u64 });
        }
        Ok(rest.get(..length).map(|data| (header, data)))
    }

    /// Whether the only content is a goodbye. It stays, and is the last thing that may come.
    pub fn says_goodbye(&self) -> bool {
        self.staged() == Header::GOODBYE.encode()
    }

    fn staged(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], |memory| &memory[self.begin..self.end])
    }

    /// Continues behind the first message, which has data of this length.
    pub fn consume(&mut self, data_bytes: usize) {
        self.begin = (self.begin + HEADER_BYTES + data_bytes).min(self.end);
    }

    /// Whether no bytes wait here, not even a part of a message.
    pub fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// Whether there is no room for more bytes.
    pub fn is_full(&self) -> bool {
        self.begin == 0 && self.end == STAGING_BYTES
    }

    /// Returns the memory if it is empty.
    pub fn rest(&mut self, staging: &mut Staging) {
        if self.is_empty() {
            self.clear(staging);
        }
    }

    /// Drops the content.
    pub fn clear(&mut self, staging: &mut Staging) {
        if let Some(memory) = self.memory.take() {
            staging.take_back(memory);
        }
        (self.begin, self.end) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_testing::{Random, seed};

    fn put(framing: &mut Framing, staging: &mut Staging, bytes: &[u8]) -> usize {
        let room = framing.room(staging);
        let count = bytes.len().min(room.len());
        room[..count].copy_from_slice(&bytes[..count]);
        framing.filled(count);
        count
    }

    fn message(length: usize, tag: u32) -> Vec<u8> {
        let mut bytes = Header::user(Kind::Eager, length as u32, 1, tag).encode().to_vec();
        bytes.extend((0..length).map(|at| (at as u32 ^ tag) as u8));
        bytes
    }

    #[test]
    fn messages_come_out_whole_whatever_the_pieces() {
        let mut random = Random::new(seed());
        let lengths: Vec<usize> = (0..400)
            .map(|_| match random.below(10) {
                0 => DATA_BYTES_MAX,
                1 => random.below(DATA_BYTES_MAX as u64) as usize,
                _ => random.below(100) as usize,
            })
            .collect();
        let stream: Vec<u8> =
            (0..).zip(&lengths).flat_map(|(tag, length)| message(*length, tag)).collect();
        let (mut framing, mut staging) = (Framing::default(), Staging::default());
        let (mut fed, mut seen) = (0, 0);
        while seen < lengths.len() {
            let most = 1 + random.below(*random.clone().pick(&[3, 100, 200_000])) as usize;
            fed += put(&mut framing, &mut staging, &stream[fed..stream.len().min(fed + most)]);
            while let Some((header, data)) = framing.first().unwrap() {
                assert_eq!((header.tag, data.len()), (seen as u32, lengths[seen]));
                let whole = message(lengths[seen], seen as u32);
                assert!(data == &whole[HEADER_BYTES..]);
                framing.consume(lengths[seen]);
                seen += 1;
                if random.once_in(3) {
                    break; // as if a sink held the next one
                }
            }
            framing.rest(&mut staging);
        }
        assert!(framing.is_empty() && framing.memory.is_none() && fed == stream.len());
        assert_eq!(staging.spare.len(), 1, "the memory was given back");
    }

    #[test]
    fn there_is_always_room_for_the_rest_of_a_message() {
        let (mut framing, mut staging) = (Framing::default(), Staging::default());
        let long = message(DATA_BYTES_MAX, 1);
        for before in (0..STAGING_BYTES).step_by(4_000) {
            let mut fed = 0;
            for _ in 0..before / 1_000 {
                put(&mut framing, &mut staging, &message(984, 0));
                framing.consume(984);
            }
            while fed < long.len() {
                let step = put(&mut framing, &mut staging, &long[fed..]);
                assert!(step > 0, "no room after {before} bytes");
                fed += step;
            }
            assert!(framing.first().unwrap().is_some());
            framing.consume(DATA_BYTES_MAX);
            framing.rest(&mut staging);
        }
    }

    #[test]
    fn what_no_sender_sends_is_an_error() {
        let (mut framing, mut staging) = (Framing::default(), Staging::default());
        let header = Header::user(Kind::Part, DATA_BYTES_MAX as u32 + 1, 0, 0);
        put(&mut framing, &mut staging, &header.encode());
        assert!(matches!(framing.first(), Err(BrokenPeer::TooLong { .. })));
        framing.clear(&mut staging);
        put(&mut framing, &mut staging, &[0xff; HEADER_BYTES]);
        assert!(matches!(framing.first(), Err(BrokenPeer::Header(_))));
    }

    #[test]
    fn a_goodbye_is_the_last_and_is_whole_or_none() {
        let goodbye = Header::GOODBYE.encode();
        for before in [0, 2] {
            let (mut framing, mut staging) = (Framing::default(), Staging::default());
            for _ in 0..before {
                put(&mut framing, &mut staging, &message(40, 1));
            }
            for byte in goodbye {
                assert!(!framing.says_goodbye());
                put(&mut framing, &mut staging, &[byte]);
            }
            for _ in 0..before {
                assert!(!framing.says_goodbye(), "messages come before it");
                assert!(framing.first().unwrap().is_some());
                framing.consume(40);
            }
            assert!(framing.says_goodbye() && framing.first() == Ok(None));
            put(&mut framing, &mut staging, &[0]);
            assert!(!framing.says_goodbye());
            assert_eq!(framing.first(), Err(BrokenPeer::AfterGoodbye));
        }
        for wrong in [
            Header { length: 1, ..Header::GOODBYE },
            Header { tag: 1, ..Header::GOODBYE },
            Header::user(Kind::Goodbye, 0, 0, 0),
        ] {
            let (mut framing, mut staging) = (Framing::default(), Staging::default());
            put(&mut framing, &mut staging, &wrong.encode());
            assert!(!framing.says_goodbye());
            assert_eq!(framing.first(), Err(BrokenPeer::Form), "{wrong:?}");
        }
    }

    #[test]
    fn a_part_of_a_message_is_no_message() {
        let (mut framing, mut staging) = (Framing::default(), Staging::default());
        let whole = message(30, 5);
        for piece in whole.chunks(1).take(whole.len() - 1) {
            put(&mut framing, &mut staging, piece);
            assert_eq!(framing.first(), Ok(None));
        }
        assert!(!framing.is_empty());
    }
}
