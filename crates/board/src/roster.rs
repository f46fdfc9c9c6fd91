//! The list of a group's members. The leading member writes it for observers outside the job
//! ([`super::roster_of`]). The first world needs no list.
//!
//! A member takes eight bytes: its slot in the highest 16 bits, and the place of its lines, counted in lines, in
//! the others.

use std::sync::atomic::Ordering;

use landeck_memory::heap::Block;
use landeck_memory::plan::LINE_BYTES;

use super::handle::Board;
use super::place::LinesPlace;

const PLACE_BITS: u32 = 48;

/// Bytes of a list of so many members.
pub const fn roster_bytes(members: usize) -> usize {
    members * 8
}

impl Board {
    /// Writes the list of members and its place; the leading member calls it. The block has at least
    /// [`roster_bytes`] bytes, and stays as long as the board is used.
    pub fn enroll(&self, context: u32, members: &[LinesPlace], block: &mut Block) {
        for (place, member) in block.chunks_exact_mut(8).zip(members) {
            place.copy_from_slice(&encode(*member).to_ne_bytes());
        }
        let roster = self.roster();
        roster.place.store(block.offset(), Ordering::Relaxed);
        let about = u64::from(context) | (members.len() as u64) << 32;
        roster.about.store(about, Ordering::Release);
    }
}

fn encode(LinesPlace { slot, offset }: LinesPlace) -> u64 {
    (u64::from(slot) << PLACE_BITS) | (offset / LINE_BYTES)
}

/// The member in a word, which may be anything: nothing is said of the places.
pub(crate) fn decode(word: u64) -> LinesPlace {
    let offset = (word & ((1 << PLACE_BITS) - 1)) * LINE_BYTES;
    LinesPlace { slot: (word >> PLACE_BITS) as u32, offset }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_survive_their_words() {
        for place in [
            LinesPlace { slot: 0, offset: 64 },
            LinesPlace { slot: 16_383, offset: (1 << 54) - 64 },
        ] {
            assert_eq!(decode(encode(place)), place);
        }
    }
}
