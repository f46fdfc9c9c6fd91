//! The cryptographic library, and the few functions of it that this crate uses.
//!
//! Every other module reaches the library through this one, so that another library needs changes in this file alone.

pub(crate) use rustls::crypto::ring as tls;

use std::fmt;

use landeck_wire::handover::Cipher;
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::{digest, hkdf, hmac, rand};

use crate::error::TrustError;

/// The length of the tag behind sealed data.
pub(crate) const TAG_BYTES: usize = 16;

/// Derives 32 bytes from a secret by HKDF-SHA256 (RFC 5869).
pub(crate) fn derive(salt: &[u8], secret: &[u8], info: &[&[u8]]) -> [u8; 32] {
    let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(secret);
    let mut derived = [0; 32];
    prk.expand(info, hkdf::HKDF_SHA256)
        .and_then(|output| output.fill(&mut derived))
        .expect("HKDF-SHA256 yields up to 8,160 bytes, and 32 are asked for");
    derived
}

/// Computes HMAC-SHA256 over the parts in their order.
pub(crate) fn code(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    for part in parts {
        context.update(part);
    }
    let mut code = [0; 32];
    code.copy_from_slice(context.sign().as_ref());
    code
}

/// Computes SHA-256.
pub(crate) fn hash(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

/// Compares two codes in a time that does not depend on where they differ.
pub(crate) fn equal(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let difference = one.iter().zip(other).fold(0, |sum, (one, other)| sum | (one ^ other));
    // The compiler must assume that every value can follow, so it does not end the loop early.
    std::hint::black_box(difference) == 0
}

/// Fills an array with random bytes of the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], TrustError> {
    let mut bytes = [0; N];
    let source = rand::SystemRandom::new();
    rand::SecureRandom::fill(&source, &mut bytes).map_err(|_| TrustError::Randomness)?;
    Ok(bytes)
}

/// Overwrites a key that is no longer needed.
pub(crate) fn wipe(key: &mut [u8; 32]) {
    key.fill(0);
    // The compiler must assume that the zeros are read, so it keeps the stores.
    std::hint::black_box(key);
}

/// A key of an AEAD cipher (RFC 5116). Its nonces are 32 zero bits and a number of 64 bits, big-endian.
pub(crate) struct SealKey(LessSafeKey);

impl SealKey {
    pub(crate) fn new(key: &[u8; 32], cipher: Cipher) -> Result<Self, TrustError> {
        let algorithm = match cipher {
            Cipher::Plain => return Err(TrustError::NoSeal),
            Cipher::Aes256Gcm => &aead::AES_256_GCM,
            Cipher::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        };
        UnboundKey::new(algorithm, key)
            .map(|key| Self(LessSafeKey::new(key)))
            .map_err(|_| TrustError::NoSeal)
    }

    /// Seals the data in place. The caller never repeats a number under one key.
    pub(crate) fn seal(
        &self,
        number: u64,
        clear: &[u8],
        data: &mut [u8],
    ) -> Result<[u8; TAG_BYTES], TrustError> {
        self.seal_under(nonce(number), clear, data)
    }

    fn seal_under(
        &self,
        nonce: [u8; 12],
        clear: &[u8],
        data: &mut [u8],
    ) -> Result<[u8; TAG_BYTES], TrustError> {
        let sealed = self.0.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(clear),
            data,
        );
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(sealed.map_err(|_| TrustError::TooLong)?.as_ref());
        Ok(tag)
    }

    /// Opens data and tag in place, and returns the length of the data. The bytes mean nothing after an error.
    pub(crate) fn open(
        &self,
        number: u64,
        clear: &[u8],
        data_and_tag: &mut [u8],
    ) -> Result<usize, TrustError> {
        let nonce = Nonce::assume_unique_for_key(nonce(number));
        let opened = self.0.open_in_place(nonce, Aad::from(clear), data_and_tag);
        opened.map(|data| data.len()).map_err(|_| TrustError::Seal)
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SealKey").finish_non_exhaustive()
    }
}

fn nonce(number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pair = |pair: &[u8]| {
            u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).expect("hex digits")
        };
        digits.chunks(2).map(pair).collect()
    }

    /// RFC 5869, A.1 and A.3: the first 32 of 42 bytes.
    #[test]
    fn hkdf_gives_the_published_bytes() {
        let salt = bytes("000102030405060708090a0b0c");
        let info = bytes("f0f1f2f3f4f5f6f7f8f9");
        let wanted = bytes("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
        assert_eq!(derive(&salt, &[0x0b; 22], &[&info[..3], &info[3..]]).to_vec(), wanted);
        let wanted = bytes("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d");
        assert_eq!(derive(&[], &[0x0b; 22], &[]).to_vec(), wanted);
    }

    /// RFC 4231, 4.2 and 4.3.
    #[test]
    fn hmac_gives_the_published_bytes() {
        let wanted = bytes("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        assert_eq!(code(&[0x0b; 20], &[b"Hi ", b"There"]).to_vec(), wanted);
        let wanted = bytes("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        assert_eq!(code(b"Jefe", &[b"what do ya want for nothing?"]).to_vec(), wanted);
    }

    /// FIPS 180-4, the message "abc".
    #[test]
    fn sha_256_gives_the_published_bytes() {
        let wanted = bytes("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hash(b"abc").to_vec(), wanted);
    }

    /// Test cases 13 and 14 of "The Galois/Counter Mode of Operation" (McGrew and Viega): key and nonce are zero.
    #[test]
    fn aes_256_gcm_gives_the_published_bytes() {
        let key = SealKey::new(&[0; 32], Cipher::Aes256Gcm).unwrap();
        let tag = key.seal(0, &[], &mut []).unwrap();
        assert_eq!(tag.to_vec(), bytes("530f8afbc74536b9a963b4f1c4cb738b"));
        let mut data = [0; 16];
        let tag = key.seal(0, &[], &mut data).unwrap();
        assert_eq!(data.to_vec(), bytes("cea7403d4d606b6e074ec5d3baf39d18"));
        assert_eq!(tag.to_vec(), bytes("d0d1c8a799996bf0265b98b5d48ab919"));
    }

    /// RFC 8439, 2.8.2.
    #[test]
    fn chacha20_poly1305_gives_the_published_bytes() {
        let key: [u8; 32] = std::array::from_fn(|at| 0x80 + u8::try_from(at).unwrap());
        let key = SealKey::new(&key, Cipher::ChaCha20Poly1305).unwrap();
        let nonce = bytes("070000004041424344454647").try_into().unwrap();
        let clear = bytes("50515253c0c1c2c3c4c5c6c7");
        let mut data =
            *b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for \
            the future, sunscreen would be it.";
        let tag = key.seal_under(nonce, &clear, &mut data).unwrap();
        assert_eq!(data[..16].to_vec(), bytes("d31a8d34648e60db7b86afbc53ef7ec2"));
        assert_eq!(data[112..].to_vec(), bytes("6116"));
        assert_eq!(tag.to_vec(), bytes("1ae10b594f09e26a7e902ecbd0600691"));
    }

    #[test]
    fn a_number_is_the_end_of_its_nonce() {
        assert_eq!(nonce(0x0102), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(nonce(u64::MAX)[..5], [0, 0, 0, 0, 255]);
    }

    #[test]
    fn clear_data_have_no_seal() {
        assert_eq!(SealKey::new(&[0; 32], Cipher::Plain).unwrap_err(), TrustError::NoSeal);
    }
}
