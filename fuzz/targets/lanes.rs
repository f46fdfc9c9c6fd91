//! Bytes of a peer on a lane, in any pieces: frames that were sealed come out as they went in, changed ones end the
//! lane, and rubbish costs no more memory than the staging of one lane.

#![no_main]

use arbitrary::Arbitrary;
use landeck_transports::lanes::framing::{Framing, Spare};
use landeck_transports::lanes::sealing::{Opening, Sealing};
use landeck_transports::lanes::{DATA_BYTES_MAX, STAGING_BYTES};
use landeck_wire::handover::{Cipher, LaneKeys};
use landeck_wire::{Header, Kind};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    cipher: u8,
    frames: Vec<Frame>,
    /// The lengths of the pieces in which the bytes come.
    pieces: Vec<u16>,
    /// A byte that is changed on its way.
    change: Option<(u32, u8)>,
    /// How many frames are looked at before one is taken.
    looks: u8,
}

#[derive(Arbitrary, Debug)]
enum Frame {
    /// A frame that a sender makes: its tag and its length.
    Good(u32, u16),
    /// A frame of an unknown kind, whose header says that it may be skipped.
    Skippable(u16),
    /// Bytes of no frame.
    Bytes(Vec<u8>),
}

fn data(length: usize, tag: u32) -> impl Iterator<Item = u8> {
    (0..length).map(move |at| (at as u32 ^ tag) as u8)
}

/// A frame that must come out: its tag, its length, and where it ends on the wire.
type Expected = (u32, usize, usize);

/// The bytes on the wire, and the frames that must come out before anything is wrong.
fn stream(input: &Input, sealing: &mut Sealing) -> (Vec<u8>, Vec<Expected>) {
    let (mut bytes, mut good, mut is_right) = (Vec::new(), Vec::new(), true);
    for frame in input.frames.iter().take(64) {
        match frame {
            Frame::Good(tag, length) => {
                let length = usize::from(*length).min(DATA_BYTES_MAX);
                bytes.extend(Header::user(Kind::Eager, length as u32, 1, *tag).encode());
                bytes.extend(data(length, *tag));
                sealing.seal_last(&mut bytes, length).expect("it can be sealed");
                if is_right {
                    good.push((*tag, length, bytes.len()));
                }
            }
            Frame::Skippable(length) => {
                let length = usize::from(*length).min(DATA_BYTES_MAX);
                let begin = bytes.len();
                bytes.extend(Header::user(Kind::Eager, length as u32, 1, 0).encode());
                (bytes[begin + 2], bytes[begin + 3]) = (0x3e, 4);
                bytes.extend(data(length, 0));
                sealing.seal_last(&mut bytes, length).expect("it can be sealed");
            }
            Frame::Bytes(rubbish) => {
                bytes.extend(rubbish);
                is_right &= rubbish.is_empty();
            }
        }
    }
    (bytes, good)
}

fuzz_target!(|input: Input| {
    let ciphers = [Cipher::Plain, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];
    let cipher = ciphers[usize::from(input.cipher) % ciphers.len()];
    let keys = LaneKeys { cipher, send: [7; 32], receive: [7; 32] };
    let mut sealing = Sealing::new(&keys).expect("keys");
    let mut opening = Opening::new(&keys).expect("keys");
    let (mut bytes, good) = stream(&input, &mut sealing);
    let is_plain = matches!(cipher, Cipher::Plain);
    let mut changed_at = usize::MAX;
    if let Some((at, change)) = input.change
        && !bytes.is_empty()
        && change != 0
    {
        changed_at = at as usize % bytes.len();
        bytes[changed_at] ^= change;
    }
    let (mut framing, mut spare) = (Framing::default(), Spare::default());
    let (mut fed, mut seen) = (0, 0);
    let mut pieces = input.pieces.iter().cycle();
    let mut is_over = false;
    while fed < bytes.len() && !is_over {
        let piece = pieces.next().map_or(usize::MAX, |piece| usize::from(*piece).max(1));
        let room = framing.room(&mut spare);
        assert!(
            !room.is_empty() && room.len() <= STAGING_BYTES,
            "there is room for the next bytes"
        );
        let count = room.len().min(piece).min(bytes.len() - fed);
        room[..count].copy_from_slice(&bytes[fed..fed + count]);
        framing.filled(count);
        fed += count;
        loop {
            for _ in 0..input.looks % 3 {
                let _ = framing.first(&mut opening);
            }
            match framing.first(&mut opening) {
                Ok(Some((header, found))) => {
                    assert_eq!(header.length as usize, found.len());
                    if let Some((tag, length, end)) = good.get(seen)
                        && *end <= changed_at
                    {
                        assert_eq!((header.tag, found.len()), (*tag, *length));
                        assert!(found.iter().copied().eq(data(*length, *tag)));
                    } else {
                        assert!(is_plain, "a frame that nobody sealed came out");
                    }
                    seen += 1;
                    framing.consume(&opening);
                }
                Ok(None) => break,
                Err(_) => {
                    is_over = true;
                    break;
                }
            }
        }
        framing.rest(&mut spare);
    }
    let is_clean = changed_at == usize::MAX;
    assert!(!is_clean || seen >= good.len(), "{seen} of {} frames", good.len());
});
