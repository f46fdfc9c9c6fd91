//! A reference to data that did not travel with their header.

/// The length of an encoded reference; it fits the 48 bytes beside a header.
pub const REFERENCE_BYTES: usize = 32;

/// A place in the shared heap of some process (segment, owner, generation, offset), and a length.
///
/// The value comes from outside. Code that dereferences it checks the bounds against its own private copy of the
/// segment's plan, and the generation against the block's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The slot whose heap contains the block.
    pub owner: u32,
    /// The generation, which says which use of the block is meant.
    pub generation: u32,
    /// The beginning of the block's data, in bytes from the start of the owner's heap.
    pub offset: u64,
    /// The number of data bytes.
    pub length: u64,
    /// The room of the block in bytes; it is less than `length` if the data come in pieces.
    pub window: u64,
}

/// The reason why bytes are no reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// Another number of bytes arrived.
    #[error("a reference has {REFERENCE_BYTES} bytes, {0} arrived: its sender is broken")]
    WrongLength(usize),
}

impl Reference {
    /// Encodes the reference.
    pub fn encode(&self) -> [u8; REFERENCE_BYTES] {
        let mut bytes = [0; REFERENCE_BYTES];
        bytes[..4].copy_from_slice(&self.owner.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.generation.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.length.to_le_bytes());
        bytes[24..].copy_from_slice(&self.window.to_le_bytes());
        bytes
    }

    /// Decodes a reference. Nothing of it is trusted yet.
    ///
    /// # Errors
    /// [`ReferenceError::WrongLength`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ReferenceError> {
        let bytes: &[u8; REFERENCE_BYTES] =
            bytes.try_into().map_err(|_| ReferenceError::WrongLength(bytes.len()))?;
        let long = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let first = long(0);
        Ok(Self {
            owner: first as u32,
            generation: (first >> 32) as u32,
            offset: long(8),
            length: long(16),
            window: long(24),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_survives_its_encoding() {
        let reference =
            Reference { owner: 3, generation: 9, offset: 1 << 40, length: 77, window: u64::MAX };
        assert_eq!(Reference::decode(&reference.encode()), Ok(reference));
        assert_eq!(Reference::decode(&[0; 31]), Err(ReferenceError::WrongLength(31)));
    }
}
