//! Proves the knowledge of a job's secret without showing it: a keyed hash of both greetings.
//!
//! SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012), a pseudorandom function
//! under a 128-bit key.

use std::fmt;
use std::hint::black_box;
use std::str::FromStr;

/// The length of a proof.
pub(super) const PROOF_BYTES: usize = 16;

/// The secret that only the processes of a job share.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; 16]);

impl Token {
    /// Creates a secret from the system's randomness.
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn random() -> Result<Self, std::io::Error> {
        let mut bytes = [0; 16];
        fill_random(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The secret as 32 hexadecimal digits: to be handed to the job's processes, not to be shown.
    pub fn to_secret_text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(super) fn prove(&self, parts: &[&[u8]]) -> [u8; PROOF_BYTES] {
        sip_hash_128(&self.0, parts)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(secret)")
    }
}

/// The error for a text that is no token. It does not repeat the text, which may be a secret with a misprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the job's secret is not a text of 32 hexadecimal digits: take the one that the job gave")]
pub struct TokenError;

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = if is_hex { u128::from_str_radix(text, 16).ok() } else { None };
        number.map(|number| Self(number.to_be_bytes())).ok_or(TokenError)
    }
}

/// Fills a buffer with the system's randomness.
pub(super) fn fill_random(bytes: &mut [u8]) -> Result<(), std::io::Error> {
    let mut filled = 0;
    while filled < bytes.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::rand::getrandom(&mut bytes[filled..], flags)?;
    }
    Ok(())
}

/// Compares in a time that does not depend on where the two differ.
pub(super) fn is_same(one: &[u8; PROOF_BYTES], other: &[u8; PROOF_BYTES]) -> bool {
    let different =
        one.iter().zip(other).fold(0, |all, (one, other)| black_box(all | (one ^ other)));
    different == 0
}

fn sip_hash_128(key: &[u8; 16], parts: &[&[u8]]) -> [u8; 16] {
    let key_words = [word(&key[..8]), word(&key[8..])];
    let bytes = parts.concat();
    let mut state = [
        key_words[0] ^ 0x736f_6d65_7073_6575,
        key_words[1] ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        key_words[0] ^ 0x6c79_6765_6e65_7261,
        key_words[1] ^ 0x7465_6462_7974_6573,
    ];
    let chunks = bytes.chunks_exact(8);
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    last[7] = bytes.len() as u8;
    for chunk in chunks.chain([&last[..]]) {
        let message = word(chunk);
        state[3] ^= message;
        rounds(&mut state, 2);
        state[0] ^= message;
    }
    let mut hash = [0; 16];
    for (half, (place, mark)) in [(2, 0xee), (1, 0xdd)].into_iter().enumerate() {
        state[place] ^= mark;
        rounds(&mut state, 4);
        let word = state[0] ^ state[1] ^ state[2] ^ state[3];
        hash[half * 8..][..8].copy_from_slice(&word.to_le_bytes());
    }
    hash
}

fn rounds(state: &mut [u64; 4], count: u32) {
    let [a, b, c, d] = state;
    for _ in 0..count {
        *a = a.wrapping_add(*b);
        *b = b.rotate_left(13) ^ *a;
        *a = a.rotate_left(32);
        *c = c.wrapping_add(*d);
        *d = d.rotate_left(16) ^ *c;
        *a = a.wrapping_add(*d);
        *d = d.rotate_left(21) ^ *a;
        *c = c.wrapping_add(*b);
        *b = b.rotate_left(17) ^ *c;
        *c = c.rotate_left(32);
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        let key: [u8; 16] = std::array::from_fn(|at| at as u8);
        let hex = |hash: [u8; 16]| Token(hash).to_secret_text();
        assert_eq!(hex(sip_hash_128(&key, &[])), "a3817f04ba25a8e66df67214c7550293");
        assert_eq!(hex(sip_hash_128(&key, &[&[0]])), "da87c1d86b99af44347659119b22fc45");
        let message: Vec<u8> = (0..63).collect();
        let (one, other) = message.split_at(20);
        let whole = sip_hash_128(&key, &[&message]);
        assert_eq!(hex(whole), "5150d1772f50834a503e069a973fbd7c");
        assert_eq!(sip_hash_128(&key, &[one, other]), whole);
    }

    #[test]
    fn comparison_sees_every_bit() {
        let proof = [0x5a; PROOF_BYTES];
        assert!(is_same(&proof, &proof));
        for bit in 0..128 {
            let mut other = proof;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_same(&proof, &other));
        }
    }

    #[test]
    fn a_token_survives_its_text_and_hides_in_debug_output() {
        let token = Token::random().unwrap();
        assert_eq!(token.to_secret_text().parse(), Ok(token.clone()));
        assert_ne!(token, Token::random().unwrap());
        assert_eq!(format!("{token:?}"), "Token(secret)");
        for text in ["", "+0000000000000000000000000000000", "zz", &"0".repeat(33)] {
            assert_eq!(text.parse::<Token>(), Err(TokenError));
        }
    }
}
