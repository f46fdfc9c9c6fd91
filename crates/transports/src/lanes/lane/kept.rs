//! The frames that a lane has sent and that are not known to be received. The next lane of the pair sends them again.
//!
//! A frame is copied when it is sent, because its memory belongs to the program again. The data of a part stay in the
//! memory of their send, which ends only when they are received.

use landeck_channel::pair::Pair;
use landeck_channel::{Peer, Sink};
use landeck_memory::Bytes;
use landeck_wire::{Class, Header, Kind};

use super::super::framing::DATA_BYTES_MAX;

/// The longest data that are kept inside the list.
const SHORT_BYTES_MAX: usize = 62;
/// The bytes of the list's own that a kept frame is counted with.
const ENTRY_BYTES: usize = 64;

/// A frame that was sent.
#[derive(Clone, Debug)]
pub(super) struct KeptFrame {
    header: Header,
    data: KeptData,
}

#[derive(Clone, Debug)]
enum KeptData {
    Short(u8, [u8; SHORT_BYTES_MAX]),
    Long(Vec<u8>),
    /// In the memory of its send.
    Elsewhere,
}

/// The number of bytes that a frame is counted with while it is kept. Urgent messages do not wait for room: there are as
/// many as the network takes.
#[inline]
pub(super) fn cost(header: &Header) -> usize {
    match (header.class, header.kind) {
        (Class::Urgent, _) => 0,
        (_, Kind::Part) => ENTRY_BYTES,
        _ => ENTRY_BYTES + header.length as usize,
    }
}

impl KeptFrame {
    /// Copies a frame.
    #[inline]
    pub(super) fn new(header: &Header, data: Bytes<'_>) -> Self {
        let data = match data.len() {
            _ if header.kind == Kind::Part => KeptData::Elsewhere,
            length @ ..=SHORT_BYTES_MAX => {
                let mut short = [0; SHORT_BYTES_MAX];
                data.copy_to_slice(&mut short);
                KeptData::Short(length as u8, short)
            }
            _ => KeptData::Long(data.to_vec()),
        };
        Self { header: *header, data }
    }

    fn is_part_of(&self, part: &Header) -> bool {
        let (own, other) = (&self.header, part);
        own.kind == Kind::Part && (own.context, own.tag) == (other.context, other.tag)
    }
}

/// The header of the next frame that goes again, with its data in `data`. A part whose send has ended goes without its
/// content, and names no receive.
pub(super) fn next_again<S: Sink + ?Sized>(
    pair: &mut Pair<KeptFrame>,
    to: Peer,
    sink: &mut S,
    data: &mut Vec<u8>,
) -> Option<Header> {
    let first = pair.waiting().next()?;
    let header = first.header;
    data.clear();
    let is_whole = match &first.data {
        KeptData::Short(length, short) => {
            data.extend_from_slice(&short[..usize::from(*length)]);
            true
        }
        KeptData::Long(long) => {
            data.extend_from_slice(long);
            true
        }
        KeptData::Elsewhere => {
            let parts = pair.waiting().filter(|frame| frame.is_part_of(&header));
            let behind = parts.map(|part| u64::from(part.header.length)).sum();
            sink.append_part(to, &header, behind, data) && data.len() == header.length as usize
        }
    };
    let (position, _) = pair.next_to_send()?;
    let header = Header { sequence: position as u16, ..header };
    if is_whole {
        return Some(header);
    }
    debug_assert!(header.length as usize <= DATA_BYTES_MAX);
    data.clear();
    data.resize(header.length as usize, 0);
    Some(Header { context: u32::MAX, tag: u32::MAX, ..header })
}
