//! Sealer and opener of frames, until the crate `trust` has them.

use aws_lc_rs::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use landeck_wire::handover::Cipher;

/// Seals frames.
pub struct Sealer(LessSafeKey, u64);
/// Opens frames.
pub struct Opener(LessSafeKey, u64);

fn key(key: &[u8; 32], cipher: Cipher) -> Result<LessSafeKey, ()> {
    let algorithm = match cipher {
        Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        _ => &AES_256_GCM,
    };
    UnboundKey::new(algorithm, key).map(LessSafeKey::new).map_err(|_| ())
}

fn next(counter: &mut u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&counter.to_be_bytes());
    *counter += 1;
    Nonce::assume_unique_for_key(nonce)
}

impl Sealer {
    /// Creates the sealer of a lane.
    pub fn new(bytes: &[u8; 32], cipher: Cipher) -> Result<Self, ()> {
        Ok(Self(key(bytes, cipher)?, 0))
    }

    /// Encrypts data in place; returns the tag.
    pub fn seal(&mut self, header: &[u8; 16], data: &mut [u8]) -> Result<[u8; 16], ()> {
        let tag = self.0.seal_in_place_separate_tag(next(&mut self.1), Aad::from(header), data);
        let tag = tag.map_err(|_| ())?;
        Ok(std::array::from_fn(|at| tag.as_ref()[at]))
    }
}

impl Opener {
    /// Creates the opener of a lane.
    pub fn new(bytes: &[u8; 32], cipher: Cipher) -> Result<Self, ()> {
        Ok(Self(key(bytes, cipher)?, 0))
    }

    /// Decrypts data in place; returns their length.
    ///
    /// # Errors
    /// If the tag does not match.
    pub fn open(&mut self, header: &[u8; 16], data_and_tag: &mut [u8]) -> Result<usize, ()> {
        let opened = self.0.open_in_place(next(&mut self.1), Aad::from(header), data_and_tag);
        opened.map(|data| data.len()).map_err(|_| ())
    }
}
