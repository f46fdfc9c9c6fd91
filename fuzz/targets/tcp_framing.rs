//! Bytes from a socket in pieces of any length: the same messages come out whatever the pieces,
//! none is longer than a message may be, what no sender sends ends the stream, and nothing follows a
//! goodbye.

#![no_main]

use arbitrary::Arbitrary;
use landeck_transports::tcp::framing::{DATA_BYTES_MAX, Framing, Staging};
use landeck_wire::{HEADER_BYTES, Header};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Stream {
    /// The valid messages at the start of the stream: their tags and lengths.
    good: Vec<(u32, u16)>,
    /// It says goodbye then, so that anything more breaks the stream.
    leaves: bool,
    bytes: Vec<u8>,
    pieces: Vec<u16>,
    /// For each message, whether the sink holds it once before it takes it.
    holds: Vec<bool>,
}

/// The result of framing a stream.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    messages: Vec<(Header, Vec<u8>)>,
    is_broken: bool,
    has_left: bool,
}

fuzz_target!(|stream: Stream| {
    let mut bytes = Vec::new();
    for (tag, length) in stream.good.iter().take(8) {
        let kind = landeck_wire::Kind::Eager;
        bytes.extend(Header::user(kind, u32::from(*length), 1, *tag).encode());
        bytes.resize(bytes.len() + usize::from(*length), *tag as u8);
    }
    if stream.leaves {
        bytes.extend(Header::GOODBYE.encode());
    }
    bytes.extend(&stream.bytes);
    let whole = frame(&bytes, &[], &[]);
    let in_pieces = frame(&bytes, &stream.pieces, &stream.holds);
    assert_eq!(whole, in_pieces, "the pieces decide what the bytes mean");
    let used: usize = whole.messages.iter().map(|(_, data)| HEADER_BYTES + data.len()).sum();
    assert!(used <= bytes.len() && !(whole.has_left && whole.is_broken));
    if stream.leaves {
        assert_eq!(whole.messages.len(), stream.good.len().min(8), "what came before it counts");
        let is_last = stream.bytes.is_empty();
        assert_eq!((whole.has_left, whole.is_broken), (is_last, !is_last), "a goodbye is the last");
    }
});

/// Feeds bytes in pieces, the last of which is all the rest, and takes the messages out.
fn frame(bytes: &[u8], pieces: &[u16], holds: &[bool]) -> Outcome {
    let (mut framing, mut staging) = (Framing::default(), Staging::default());
    let mut outcome = Outcome { messages: Vec::new(), is_broken: false, has_left: false };
    let (mut rest, mut pieces, mut holds) = (bytes, pieces.iter(), holds.iter());
    while !rest.is_empty() {
        let room = framing.room(&mut staging);
        let piece = pieces.next().map_or(rest.len(), |piece| usize::from(*piece).max(1));
        let fed = piece.min(room.len()).min(rest.len());
        room[..fed].copy_from_slice(&rest[..fed]);
        framing.filled(fed);
        rest = &rest[fed..];
        if !take(&mut framing, &mut outcome, &mut holds) {
            return outcome;
        }
        framing.rest(&mut staging);
    }
    take(&mut framing, &mut outcome, &mut [].iter());
    outcome.has_left = framing.says_goodbye();
    outcome
}

/// Takes messages until there is none, or the sink holds one. False when the stream is broken.
fn take(
    framing: &mut Framing,
    outcome: &mut Outcome,
    holds: &mut std::slice::Iter<'_, bool>,
) -> bool {
    loop {
        match framing.first() {
            Ok(Some((header, data))) => {
                assert!(data.len() <= DATA_BYTES_MAX && data.len() == header.length as usize);
                if holds.next() == Some(&true) {
                    return true;
                }
                let data = data.to_vec();
                framing.consume(data.len());
                outcome.messages.push((header, data));
            }
            Ok(None) => return true,
            Err(_) => {
                outcome.is_broken = true;
                return false;
            }
        }
    }
}
