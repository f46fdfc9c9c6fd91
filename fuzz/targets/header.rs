//! Bytes from a peer as a header, as a relayed frame and as a reference: they are refused, or they are exactly what
//! encoding gives back.

#![no_main]

use landeck_wire::relayed::{RELAYED_PIECE_BYTES_MAX, RelayedPiece};
use landeck_wire::{HEADER_BYTES, Header, Reference};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(first) = bytes.first_chunk::<HEADER_BYTES>()
        && let Ok(header) = Header::decode(first)
    {
        assert_eq!(header.encode(), *first, "a decoded header encodes to other bytes");
        assert_eq!(Header::from_words(header.head(), header.label()), Ok(header));
        assert_eq!(Header::sequence_of(header.head()), header.sequence);
        let data = &bytes[HEADER_BYTES..];
        if let Ok(piece) = RelayedPiece::decode(&header, data, RELAYED_PIECE_BYTES_MAX) {
            assert!(piece.data.len() <= RELAYED_PIECE_BYTES_MAX);
            assert!(piece.data.len() <= piece.message.length as usize);
            assert_eq!([&piece.message.encode()[..], piece.data].concat(), data);
        }
    }
    if let Ok(reference) = Reference::decode(bytes) {
        assert_eq!(reference.encode()[..], *bytes, "a decoded reference encodes to other bytes");
    }
});
