//! The use that a lane makes of the secret of two hosts: the code of its preamble, its keys, and the seal of its frames.
//!
//! The secret is what both daemons export from their trunk ([`crate::Session::export`]). Each use has a label of its own, so
//! no two uses have a key in common. Labels and order of the parts are decided for good.

use landeck_wire::handover::{Cipher, LaneKeys};
use landeck_wire::preamble::{
    CHALLENGE_BYTES, CODE_BYTES, PREAMBLE_BYTES, Preamble, code, signed_part,
};

use crate::crypto::{self, SealKey, TAG_BYTES, derive};
use crate::error::TrustError;

/// The length of a frame's header, which is authenticated and not encrypted.
pub const HEADER_BYTES: usize = landeck_wire::HEADER_BYTES;
/// The length of the tag behind the data of a sealed frame.
pub const FRAME_TAG_BYTES: usize = TAG_BYTES;

const PREAMBLE_LABEL: &[u8] = b"landeck/1 preamble";
const STREAM_LABEL: &[u8] = b"landeck/1 tunnel stream";
const REKEY_LABEL: &[u8] = b"landeck/1 lane next";

/// The code of an encoded preamble: HMAC-SHA256 over the challenge and everything before the code.
#[must_use]
pub fn preamble_code(
    secret: &[u8; 32],
    challenge: &[u8; CHALLENGE_BYTES],
    preamble: &[u8; PREAMBLE_BYTES],
) -> [u8; CODE_BYTES] {
    let mut key = derive(&[], secret, &[PREAMBLE_LABEL]);
    let code = crypto::code(&key, &[challenge, signed_part(preamble)]);
    crypto::wipe(&mut key);
    code
}

/// Whether the code at the end of an encoded preamble is right. The time that this takes says nothing about the code.
#[must_use]
pub fn verify(
    secret: &[u8; 32],
    challenge: &[u8; CHALLENGE_BYTES],
    preamble: &[u8; PREAMBLE_BYTES],
) -> bool {
    crypto::equal(&preamble_code(secret, challenge, preamble), &code(preamble))
}

/// The challenge for a stream in the tunnel of two daemons, by the challenge and the number of the tunnel. So a recorded
/// opening of a stream is worth nothing for another one, or in another tunnel.
#[must_use]
pub fn stream_challenge(
    secret: &[u8; 32],
    challenge: &[u8; CHALLENGE_BYTES],
    (tunnel, stream): (u32, u32),
) -> [u8; CHALLENGE_BYTES] {
    let numbers = [tunnel.to_le_bytes(), stream.to_le_bytes()];
    let bytes = derive(challenge, secret, &[STREAM_LABEL, &numbers[0], &numbers[1]]);
    std::array::from_fn(|at| bytes[at])
}

/// One of the two ends of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneEnd {
    /// The end whose daemon has dialled and written the preamble.
    Dialler,
    /// The end whose daemon listened and gave the challenge.
    Acceptor,
}

/// Derives the keys of a lane for one of its ends. Keys in clear are zeros.
///
/// The caller decides the cipher: [`Cipher::Plain`] if the preamble says so and this host allows it, otherwise
/// [`common_cipher`] of both hosts.
#[must_use]
pub fn lane_keys(
    secret: &[u8; 32],
    challenge: &[u8; CHALLENGE_BYTES],
    preamble: &Preamble,
    cipher: Cipher,
    end: LaneEnd,
) -> LaneKeys {
    let label: &[u8] = match cipher {
        Cipher::Plain => return LaneKeys { cipher, send: [0; 32], receive: [0; 32] },
        Cipher::Aes256Gcm => b"landeck/1 lane aes-256-gcm",
        Cipher::ChaCha20Poly1305 => b"landeck/1 lane chacha20-poly1305",
    };
    let bytes = preamble.encode();
    let (processes, lane, job) = (&bytes[16..48], &bytes[48..52], &bytes[64..72]);
    let key =
        |direction: u8| derive(challenge, secret, &[label, job, processes, lane, &[direction]]);
    let (from_dialler, to_dialler) = (key(0), key(1));
    match end {
        LaneEnd::Dialler => LaneKeys { cipher, send: from_dialler, receive: to_dialler },
        LaneEnd::Acceptor => LaneKeys { cipher, send: to_dialler, receive: from_dialler },
    }
}

/// The cipher that this processor computes faster: AES-256-GCM if it has instructions for it.
#[must_use]
pub fn cipher_here() -> Cipher {
    #[cfg(target_arch = "x86_64")]
    let has_aes = std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    let has_aes = std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let has_aes = false;
    if has_aes { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 }
}

/// The cipher of two hosts, each of which said what [`cipher_here`] says there. It is never [`Cipher::Plain`].
#[must_use]
pub fn common_cipher(one: Cipher, other: Cipher) -> Cipher {
    match (one, other) {
        (Cipher::Aes256Gcm, Cipher::Aes256Gcm) => Cipher::Aes256Gcm,
        _ => Cipher::ChaCha20Poly1305,
    }
}

/// How much is sealed under one key.
#[derive(Clone, Copy, Debug)]
struct Limits {
    frames: u64,
    bytes: u64,
}

/// AES-GCM is safe for 2^24.5 records of 16 KiB under one key (RFC 8446, 5.5). 2^36 bytes are 2^32 blocks of it.
const LIMITS: Limits = Limits { frames: 1 << 24, bytes: 1 << 36 };

/// The keys of one direction, one after the other.
///
/// A key seals at most [`LIMITS`] frames and bytes of data. The frame that would exceed one of them is sealed under the
/// next key, which follows from the current one by HKDF-SHA256 with an own label, and is number 0 there. Both ends count
/// alike, so they change at one frame without a message.
#[derive(Debug)]
struct Chain {
    secret: Secret,
    cipher: Cipher,
    key: SealKey,
    frames: u64,
    bytes: u64,
    limits: Limits,
}

impl Chain {
    fn new(key: &[u8; 32], cipher: Cipher, limits: Limits) -> Result<Self, TrustError> {
        let first = SealKey::new(key, cipher)?;
        Ok(Self { secret: Secret(*key), cipher, key: first, frames: 0, bytes: 0, limits })
    }

    /// The number of the next frame under the key that is now current.
    fn next(&mut self, data_bytes: usize) -> Result<u64, TrustError> {
        let bytes = data_bytes as u64;
        let is_over = self.frames >= self.limits.frames
            || bytes > self.limits.bytes.saturating_sub(self.bytes);
        if is_over && self.frames > 0 {
            let next = Secret(derive(&[], &self.secret.0, &[REKEY_LABEL]));
            self.key = SealKey::new(&next.0, self.cipher)?;
            self.secret = next;
            (self.frames, self.bytes) = (0, 0);
        }
        let number = self.frames;
        self.frames += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(number)
    }
}

/// A key that is overwritten when it is dropped, and that no debug output shows.
struct Secret([u8; 32]);

impl Drop for Secret {
    fn drop(&mut self) {
        crypto::wipe(&mut self.0);
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret")
    }
}

/// Seals the frames of one direction of a lane.
///
/// The nonce of a frame is its number under the current key. So a sealer is neither cloned nor used in two processes.
#[derive(Debug)]
pub struct Sealer {
    chain: Chain,
}

impl Sealer {
    /// Begins with the first frame of a lane.
    ///
    /// # Errors
    /// [`TrustError::NoSeal`] for [`Cipher::Plain`].
    pub fn new(key: &[u8; 32], cipher: Cipher) -> Result<Self, TrustError> {
        Self::with_limits(key, cipher, LIMITS)
    }

    fn with_limits(key: &[u8; 32], cipher: Cipher, limits: Limits) -> Result<Self, TrustError> {
        Chain::new(key, cipher, limits).map(|chain| Self { chain })
    }

    /// Seals the next frame in place, and returns the tag that follows its data.
    ///
    /// # Errors
    /// [`TrustError::TooLong`] for data of 64 GiB. The frame then counts, and the lane must end.
    pub fn seal(
        &mut self,
        header: &[u8; HEADER_BYTES],
        data: &mut [u8],
    ) -> Result<[u8; FRAME_TAG_BYTES], TrustError> {
        let number = self.chain.next(data.len())?;
        self.chain.key.seal(number, header, data)
    }
}

/// Opens the frames of one direction of a lane.
#[derive(Debug)]
pub struct Opener {
    chain: Chain,
    is_broken: bool,
}

impl Opener {
    /// Begins with the first frame of a lane.
    ///
    /// # Errors
    /// [`TrustError::NoSeal`] for [`Cipher::Plain`].
    pub fn new(key: &[u8; 32], cipher: Cipher) -> Result<Self, TrustError> {
        Self::with_limits(key, cipher, LIMITS)
    }

    fn with_limits(key: &[u8; 32], cipher: Cipher, limits: Limits) -> Result<Self, TrustError> {
        Chain::new(key, cipher, limits).map(|chain| Self { chain, is_broken: false })
    }

    /// Opens the next frame in place, and returns the length of its data, which stand at the beginning. After an error
    /// the bytes mean nothing, nothing opens any more, and the lane must end.
    ///
    /// # Errors
    /// [`TrustError::Seal`] if header, data or tag were changed, or if this is not the next frame.
    pub fn open(
        &mut self,
        header: &[u8; HEADER_BYTES],
        data_and_tag: &mut [u8],
    ) -> Result<usize, TrustError> {
        let opened = self.open_next(header, data_and_tag);
        self.is_broken |= opened.is_err();
        opened
    }

    fn open_next(
        &mut self,
        header: &[u8; HEADER_BYTES],
        data_and_tag: &mut [u8],
    ) -> Result<usize, TrustError> {
        let data_bytes = data_and_tag.len().checked_sub(FRAME_TAG_BYTES);
        let Some(data_bytes) = data_bytes.filter(|_| !self.is_broken) else {
            return Err(TrustError::Seal);
        };
        let number = self.chain.next(data_bytes)?;
        self.chain.key.open(number, header, data_and_tag)
    }
}

#[cfg(test)]
mod tests;
