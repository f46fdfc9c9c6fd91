//! Bytes in place of a preamble, a handover, a question at a joining socket, a heartbeat, a request to a relay or the chunks
//! of a tunnel: they are refused, or they are exactly what encoding gives back.

#![no_main]

use landeck_protocols::door::{Question, Reply};
use landeck_wire::handover::Handover;
use landeck_wire::heartbeat::{Envelope, Heartbeat, SEALED_BYTES};
use landeck_wire::preamble::{PREAMBLE_BYTES, Preamble, code, set_code};
use landeck_wire::relay::{RELAY_PART_BYTES, RelayOperation, RelayRequest};
use landeck_wire::tunnel::{CHUNK_HEAD_BYTES, ChunkHead, ChunkKind, ChunkReader, TunnelChunk};
use landeck_wire::{ControlMessage, HEADER_BYTES, Header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(first) = bytes.first_chunk::<PREAMBLE_BYTES>()
        && let Ok(preamble) = Preamble::decode(first)
    {
        let mut again = preamble.encode();
        set_code(&mut again, &code(first));
        assert_eq!(again, *first, "a decoded preamble encodes to other bytes");
    }
    is_whole::<Handover>(bytes);
    is_whole::<Question>(bytes);
    is_whole::<Reply>(bytes);
    if let Some(clear) = Envelope::decode(bytes) {
        let again = clear.encode();
        assert_eq!(again, bytes[..again.len()], "a decoded datagram encodes to other bytes");
    }
    if let Some(first) = bytes.first_chunk::<SEALED_BYTES>() {
        assert_eq!(Heartbeat::decode(first).encode(), *first);
    }
    if let Some((head, data)) = bytes.split_first_chunk::<HEADER_BYTES>()
        && let Ok(header) = Header::decode(head)
        && let Some((request, rest)) = RelayRequest::decode(&header, data)
    {
        assert!(rest.len() <= RELAY_PART_BYTES);
        assert!(rest.is_empty() || matches!(request.operation, RelayOperation::Put { .. }));
        let (_, again) = request.encode(header.context, rest.len());
        let (same, _) = RelayRequest::decode(&header, &again).expect("it can be decoded again");
        assert_eq!(same, request);
    }
    let whole = chunks(bytes, bytes.len().max(1));
    assert_eq!(chunks(bytes, 7), whole, "pieces give other chunks");
});

/// The bytes of the chunks that come out of bytes in pieces of this length.
fn chunks(bytes: &[u8], most: usize) -> Vec<u8> {
    let (mut reader, mut out) = (ChunkReader::default(), Vec::new());
    let put = |stream, kind, length| -> [u8; CHUNK_HEAD_BYTES] {
        ChunkHead { stream, kind, length }.encode()
    };
    for mut piece in bytes.chunks(most) {
        loop {
            match reader.next(&mut piece) {
                Ok(None) => break,
                Err(_) => return out,
                Ok(Some(TunnelChunk::Open(stream, preamble))) => {
                    out.extend(put(stream, ChunkKind::Open, preamble.len() as u32));
                    out.extend(preamble);
                }
                // A chunk's data may come in parts, so their number is not compared.
                Ok(Some(TunnelChunk::Data(_, data))) => out.extend(data),
                Ok(Some(TunnelChunk::Taken(stream, taken))) => {
                    out.extend(put(stream, ChunkKind::Taken, taken));
                }
                Ok(Some(TunnelChunk::Close(stream))) => {
                    out.extend(put(stream, ChunkKind::Close, 0))
                }
            }
        }
    }
    out
}

fn is_whole<Message: ControlMessage + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    if let Ok(message) = Message::decode(bytes) {
        assert_eq!(Message::decode(&message.encode()), Ok(message), "a message is another one");
    }
}
