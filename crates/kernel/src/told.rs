//! The words of an offer about the data that its receiver may read: where they lie in the sender's memory.

use landeck_memory::{Bytes, ProcessMark, RemoteBytes};

use crate::area::Area;
use crate::transfer::{PAIR_BYTES, decode_pair};

/// The most places of a message's data: their words go with the offer.
const PLACES_MAX: usize = 1_000;

/// The sender's word about the data of an offer: where they lie, in the order of the message.
pub(crate) struct Told {
    pub(crate) mark: ProcessMark,
    places: Places,
}

/// One place, as most messages have, needs no list.
enum Places {
    One(RemoteBytes),
    Several(Vec<RemoteBytes>),
}

impl Places {
    fn as_slice(&self) -> &[RemoteBytes] {
        match self {
            Self::One(place) => std::slice::from_ref(place),
            Self::Several(places) => places,
        }
    }
}

impl Told {
    /// Tells of the data in an area; `None` if they lie in too many places.
    pub(crate) fn of(area: &Area) -> Option<Self> {
        let places = match area.one_piece() {
            Some(bytes) => Places::One(place_of(bytes)),
            None => {
                let places = area.places(0, area.packed_bytes(), PLACES_MAX)?;
                Places::Several(places.iter().map(|place| place_of(place.bytes())).collect())
            }
        };
        Some(Self { mark: ProcessMark::own(), places })
    }

    /// The places, in the order of the message.
    pub(crate) fn places(&self) -> &[RemoteBytes] {
        self.places.as_slice()
    }

    /// Decodes an offer: the length of the message, the number of its send, and what is told of the data. `None` if no
    /// process sends this.
    pub(crate) fn decode(data: Bytes<'_>) -> Option<(u64, u64, Option<Self>)> {
        let (length, send) = decode_pair(data.part(0, PAIR_BYTES))?;
        if data.len() == PAIR_BYTES {
            return Some((length, send, None));
        }
        let mut words = vec![0; data.len()];
        data.copy_to_slice(&mut words);
        let words: Vec<u64> = words[PAIR_BYTES..]
            .chunks(8)
            .map(|word| word.try_into().map(u64::from_le_bytes))
            .collect::<Result<_, _>>()
            .ok()?;
        let [pid, address, word, ref places @ ..] = *words else { return None };
        let mark = ProcessMark { pid: u32::try_from(pid).ok()?, address, word };
        let places = match *places {
            [address] => Places::One(RemoteBytes { address, length }),
            ref places if places.len() % 2 == 0 && places.len() <= 2 * PLACES_MAX => {
                let pairs = places.chunks(2);
                let place = |pair: &[u64]| RemoteBytes { address: pair[0], length: pair[1] };
                Places::Several(pairs.map(place).collect())
            }
            _ => return None,
        };
        // The places have as many bytes as were announced: no more are ever read.
        let mut left = length;
        for place in places.as_slice() {
            left = left.checked_sub(place.length).filter(|_| place.length > 0)?;
        }
        (left == 0).then_some((length, send, Some(Self { mark, places })))
    }

    /// Appends the words that follow those of any offer.
    pub(crate) fn encode_to(&self, data: &mut Vec<u8>) {
        let ProcessMark { pid, address, word } = self.mark;
        let mut put = |word: u64| data.extend_from_slice(&word.to_le_bytes());
        [u64::from(pid), address, word].into_iter().for_each(&mut put);
        match &self.places {
            Places::One(place) => put(place.address),
            Places::Several(places) => {
                places
                    .iter()
                    .for_each(|place| [place.address, place.length].into_iter().for_each(&mut put));
            }
        }
    }
}

fn place_of(bytes: Bytes<'_>) -> RemoteBytes {
    RemoteBytes { address: bytes.start().addr().get() as u64, length: bytes.len() as u64 }
}
