//! Framing: finds where one frame on a lane ends and the next begins.
//!
//! A frame is a header of 16 bytes and as many bytes of data as the header says. On a sealed lane the data are
//! encrypted and a tag of 16 bytes follows them. Nothing here knows of sockets. The staging memory exists only while
//! bytes are in it. It comes from and returns to a [`Spare`] that all lanes of a process share.

use std::ops::{Deref, DerefMut};

use landeck_channel::{BrokenPeer, Traffic};
use landeck_memory::Bytes;
use landeck_wire::{HEADER_BYTES, Header, Kind};

use super::sealing::Opening;

/// The longest data of one frame.
pub const DATA_BYTES_MAX: usize = 64 * 1024;

/// The number of bytes that are read from a socket at once: one frame of full length, or many short ones.
pub const STAGING_BYTES: usize = 128 * 1024;

/// The number of unused memories of each sort that are kept for later use.
const SPARE_MAX: usize = 4;

/// The things that all lanes of a process share: unused memories, and the count of their traffic.
#[derive(Default)]
pub struct Spare {
    staging: Vec<Staging>,
    outgoing: Vec<Vec<u8>>,
    pub(super) traffic: Traffic,
}

/// The incoming half of a lane.
#[derive(Default)]
pub struct Framing {
    /// The staging memory; `None` while it would be empty.
    memory: Option<Staging>,
    begin: usize,
    end: usize,
    /// The header of the first frame, once it is whole and opened. The sink may hold a frame, which is opened only once.
    opened: Option<Header>,
}

/// The bounds of the first frame.
enum Extent {
    /// A frame with data of this length.
    Frame(Header, usize),
    /// A frame of an unknown kind that may be skipped.
    Skipped(usize),
}

/// A staging memory that begins with a page. The system lays what has come into pages of its own, mostly from their
/// beginnings on. It copies thirty times slower to memory that begins less than 32 bytes further behind a page, as
/// long memory of `malloc` does.
struct Staging {
    memory: Box<[u8]>,
    begin: usize,
}

impl Staging {
    fn new() -> Self {
        const PAGE: usize = 4096;
        let memory = vec![0; STAGING_BYTES + PAGE].into_boxed_slice();
        let begin = memory.as_ptr().addr().wrapping_neg() % PAGE;
        Self { memory, begin }
    }
}

impl Deref for Staging {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[self.begin..self.begin + STAGING_BYTES]
    }
}

impl DerefMut for Staging {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + STAGING_BYTES]
    }
}

impl Spare {
    fn lend_staging(&mut self) -> Staging {
        self.staging.pop().unwrap_or_else(Staging::new)
    }

    fn take_back_staging(&mut self, memory: Staging) {
        if self.staging.len() < SPARE_MAX {
            self.staging.push(memory);
        }
    }

    /// Counts a frame that is sent.
    #[inline]
    pub(super) fn count_frame(&mut self, header: &Header) {
        match header.kind {
            Kind::Received | Kind::Granted | Kind::Goodbye | Kind::EndMarker => {
                self.traffic.reports += 1;
            }
            _ => self.traffic.frames += 1,
        }
    }

    /// Counts a system call that has sent so many bytes.
    #[inline]
    pub(super) fn count_send(&mut self, bytes: usize) {
        self.traffic.sends += 1;
        self.traffic.bytes += bytes as u64;
    }

    /// An empty memory for bytes that are to be sent.
    pub(super) fn lend_outgoing(&mut self) -> Vec<u8> {
        self.outgoing.pop().unwrap_or_default()
    }

    pub(super) fn take_back_outgoing(&mut self, mut memory: Vec<u8>) {
        if self.outgoing.len() < SPARE_MAX && memory.capacity() > 0 {
            memory.clear();
            self.outgoing.push(memory);
        }
    }
}

impl Framing {
    /// The room to read into. It is empty only while there is a frame that the sink has not taken.
    pub fn room(&mut self, spare: &mut Spare) -> &mut [u8] {
        let memory = self.memory.get_or_insert_with(|| spare.lend_staging());
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

    /// The first whole frame, opened. `None` if there is none (yet). Unknown frames that may be skipped are skipped.
    ///
    /// # Errors
    /// [`BrokenPeer`] if no sender sends such bytes; nothing behind them is valid.
    #[inline]
    pub fn first(&mut self, opening: &mut Opening) -> Result<Option<(Header, &[u8])>, BrokenPeer> {
        let header = loop {
            if let Some(header) = self.opened {
                break header;
            }
            let Some(extent) = self.extent()? else { return Ok(None) };
            let (Extent::Frame(_, length) | Extent::Skipped(length)) = extent;
            let whole = HEADER_BYTES + length + opening.tag_bytes();
            if self.end - self.begin < whole {
                return Ok(None);
            }
            if let Some(memory) = &mut self.memory {
                let frame = &mut memory[self.begin..self.begin + whole];
                opening.open(frame, length)?;
            }
            match extent {
                Extent::Frame(header, _) => self.opened = Some(header),
                Extent::Skipped(_) => self.begin += whole,
            }
        };
        let data = self.begin + HEADER_BYTES;
        let data = data..data + header.length as usize;
        Ok(self.memory.as_ref().map(|memory| (header, &memory[data])))
    }

    /// Continues behind the first frame, which [`Framing::first`] has returned.
    #[inline]
    pub fn consume(&mut self, opening: &Opening) {
        if let Some(header) = self.opened.take() {
            let whole = HEADER_BYTES + header.length as usize + opening.tag_bytes();
            self.begin = (self.begin + whole).min(self.end);
        }
    }

    /// The bounds of the first frame, once its header is there.
    fn extent(&self) -> Result<Option<Extent>, BrokenPeer> {
        let Some(head) = self.staged().first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let bounded = |length: u32| match length as usize {
            length @ ..=DATA_BYTES_MAX => Ok(length),
            length => {
                Err(BrokenPeer::TooLong { length: length as u64, most: DATA_BYTES_MAX as u64 })
            }
        };
        Ok(Some(match Header::skippable_length(head) {
            Some(length) => Extent::Skipped(bounded(length)?),
            None => {
                let header = Header::decode(head)?;
                Extent::Frame(header, bounded(header.length)?)
            }
        }))
    }

    /// The bytes that were read and not consumed.
    #[inline]
    pub(super) fn staged(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], |memory| &memory[self.begin..self.end])
    }

    /// The header of the first frame, if that is there and the frame is not whole yet.
    #[inline]
    pub(super) fn begun(&self, opening: &Opening) -> Option<Header> {
        if self.opened.is_some() || self.is_empty() {
            return None;
        }
        let Ok(Some(Extent::Frame(header, length))) = self.extent() else { return None };
        let whole = HEADER_BYTES + length + opening.tag_bytes();
        (self.end - self.begin < whole).then_some(header)
    }

    /// The header of the first frame, if that is there.
    ///
    /// # Errors
    /// [`BrokenPeer`] if no sender sends such bytes.
    pub(super) fn header(&self) -> Result<Option<Header>, BrokenPeer> {
        Ok(match self.extent()? {
            Some(Extent::Frame(header, _)) => Some(header),
            Some(Extent::Skipped(_)) => return Err(BrokenPeer::Form),
            None => None,
        })
    }

    /// Continues behind so many bytes, which went elsewhere.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.begin = (self.begin + bytes).min(self.end);
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
    }

    /// Appends bytes that were read elsewhere, as far as there is room.
    pub(super) fn append(&mut self, bytes: Bytes<'_>, spare: &mut Spare) {
        if !bytes.is_empty() {
            let appended = bytes.copy_to_slice(self.room(spare));
            self.filled(appended);
        }
    }

    /// Whether no bytes wait here, not even a part of a frame.
    pub fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// Whether there is no room for more bytes.
    pub fn is_full(&self) -> bool {
        self.begin == 0 && self.end == STAGING_BYTES
    }

    /// Returns the memory if it is empty.
    #[inline]
    pub fn rest(&mut self, spare: &mut Spare) {
        if self.is_empty() {
            self.clear(spare);
        }
    }

    /// Drops the content.
    pub fn clear(&mut self, spare: &mut Spare) {
        if let Some(memory) = self.memory.take() {
            spare.take_back_staging(memory);
        }
        (self.begin, self.end, self.opened) = (0, 0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::sealing::Sealing;
    use landeck_testing::{Random, seed};
    use landeck_wire::Kind;
    use landeck_wire::handover::{Cipher, LaneKeys};

    fn put(framing: &mut Framing, spare: &mut Spare, bytes: &[u8]) -> usize {
        let room = framing.room(spare);
        let count = bytes.len().min(room.len());
        room[..count].copy_from_slice(&bytes[..count]);
        framing.filled(count);
        count
    }

    fn ends(cipher: Cipher) -> (Sealing, Opening) {
        let keys = LaneKeys { cipher, send: [7; 32], receive: [7; 32] };
        (Sealing::new(&keys).unwrap(), Opening::new(&keys).unwrap())
    }

    fn plain(length: usize, tag: u32) -> Vec<u8> {
        let mut bytes = Header::user(Kind::Eager, length as u32, 1, tag).encode().to_vec();
        bytes.extend((0..length).map(|at| (at as u32 ^ tag) as u8));
        bytes
    }

    fn frame(sealing: &mut Sealing, length: usize, tag: u32) -> Vec<u8> {
        let mut bytes = plain(length, tag);
        sealing.seal_last(&mut bytes, length).unwrap();
        bytes
    }

    #[test]
    fn frames_come_out_whole_whatever_the_pieces() {
        for cipher in [Cipher::Plain, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
            let mut random = Random::new(seed());
            let lengths: Vec<usize> = (0..200)
                .map(|_| match random.below(10) {
                    0 => DATA_BYTES_MAX,
                    1 => random.below(DATA_BYTES_MAX as u64) as usize,
                    _ => random.below(100) as usize,
                })
                .collect();
            let (mut sealing, mut opening) = ends(cipher);
            let frames = (0..).zip(&lengths);
            let stream: Vec<u8> =
                frames.flat_map(|(tag, length)| frame(&mut sealing, *length, tag)).collect();
            let (mut framing, mut spare) = (Framing::default(), Spare::default());
            let (mut fed, mut seen) = (0, 0);
            while seen < lengths.len() {
                let most = 1 + random.below(*random.clone().pick(&[3, 100, 200_000])) as usize;
                fed += put(&mut framing, &mut spare, &stream[fed..stream.len().min(fed + most)]);
                while let Some((header, data)) = framing.first(&mut opening).unwrap() {
                    assert_eq!((header.tag, data.len()), (seen as u32, lengths[seen]));
                    assert!(data == &plain(lengths[seen], seen as u32)[HEADER_BYTES..]);
                    if random.once_in(3) {
                        break; // as if a sink held it
                    }
                    framing.consume(&opening);
                    seen += 1;
                }
                framing.rest(&mut spare);
            }
            assert!(framing.is_empty() && framing.memory.is_none() && fed == stream.len());
            assert_eq!(spare.staging.len(), 1, "the memory was given back");
        }
    }

    #[test]
    fn there_is_always_room_for_the_rest_of_a_frame() {
        let (mut sealing, mut opening) = ends(Cipher::Aes256Gcm);
        let (mut framing, mut spare) = (Framing::default(), Spare::default());
        for before in (0..STAGING_BYTES).step_by(8_000) {
            for _ in 0..before / 1_000 {
                put(&mut framing, &mut spare, &frame(&mut sealing, 968, 0));
                assert!(framing.first(&mut opening).unwrap().is_some());
                framing.consume(&opening);
            }
            let (long, mut fed) = (frame(&mut sealing, DATA_BYTES_MAX, 1), 0);
            while fed < long.len() {
                let step = put(&mut framing, &mut spare, &long[fed..]);
                assert!(step > 0, "no room after {before} bytes");
                fed += step;
            }
            assert!(framing.first(&mut opening).unwrap().is_some());
            framing.consume(&opening);
            framing.rest(&mut spare);
        }
    }

    #[test]
    fn a_header_that_no_sender_sends_is_an_error() {
        let (_, mut opening) = ends(Cipher::Plain);
        let (mut framing, mut spare) = (Framing::default(), Spare::default());
        let header = Header::user(Kind::Part, DATA_BYTES_MAX as u32 + 1, 0, 0);
        put(&mut framing, &mut spare, &header.encode());
        assert!(matches!(framing.first(&mut opening), Err(BrokenPeer::TooLong { .. })));
        framing.clear(&mut spare);
        put(&mut framing, &mut spare, &[0xff; HEADER_BYTES]);
        assert!(matches!(framing.first(&mut opening), Err(BrokenPeer::TooLong { .. })));
        framing.clear(&mut spare);
        put(&mut framing, &mut spare, &[0xf3; HEADER_BYTES]);
        assert!(matches!(framing.first(&mut opening), Err(BrokenPeer::Header(_))));
    }

    #[test]
    fn an_unknown_frame_is_skipped_if_its_header_allows_it() {
        for cipher in [Cipher::Plain, Cipher::Aes256Gcm] {
            let (mut sealing, mut opening) = ends(cipher);
            let unknown = |sealing: &mut Sealing, flags| {
                let mut bytes = plain(500, 0);
                (bytes[2], bytes[3]) = (0x3e, flags);
                sealing.seal_last(&mut bytes, 500).unwrap();
                bytes
            };
            let mut stream = unknown(&mut sealing, 4);
            stream.extend(frame(&mut sealing, 30, 9));
            stream.extend(unknown(&mut sealing, 0));
            let (mut framing, mut spare) = (Framing::default(), Spare::default());
            for byte in &stream[..510] {
                put(&mut framing, &mut spare, &[*byte]);
                assert_eq!(framing.first(&mut opening), Ok(None));
            }
            put(&mut framing, &mut spare, &stream[510..]);
            let first = framing.first(&mut opening).unwrap().map(|(header, _)| header.tag);
            assert_eq!(first, Some(9));
            framing.consume(&opening);
            assert!(matches!(framing.first(&mut opening), Err(BrokenPeer::Header(_))));
        }
    }

    #[test]
    fn a_changed_byte_anywhere_in_a_sealed_frame_is_noticed() {
        for at in [0, 3, 12, 16, 40, 46, 61] {
            let (mut sealing, mut opening) = ends(Cipher::Aes256Gcm);
            let mut bytes = frame(&mut sealing, 30, 5);
            bytes[at] ^= 1;
            let (mut framing, mut spare) = (Framing::default(), Spare::default());
            put(&mut framing, &mut spare, &bytes);
            assert_eq!(framing.first(&mut opening), Err(BrokenPeer::Seal), "byte {at}");
        }
    }

    #[test]
    fn a_part_of_a_frame_is_no_frame() {
        let (mut sealing, mut opening) = ends(Cipher::ChaCha20Poly1305);
        let (mut framing, mut spare) = (Framing::default(), Spare::default());
        let whole = frame(&mut sealing, 30, 5);
        for piece in whole.chunks(1).take(whole.len() - 1) {
            put(&mut framing, &mut spare, piece);
            assert_eq!(framing.first(&mut opening), Ok(None));
        }
        assert!(!framing.is_empty());
    }
}
