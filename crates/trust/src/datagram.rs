//! The seal of heartbeats, which are datagrams: they may be lost, swapped or repeated.
//!
//! The key of a direction follows from the secret of two hosts, with both host numbers in their order. The number of a
//! heartbeat is its nonce. A new trunk has a new secret, and numbers begin again with it.

use landeck_wire::HostNumber;
use landeck_wire::handover::Cipher;
use landeck_wire::heartbeat::{CLEAR_BYTES, DATAGRAM_BYTES, Envelope, Heartbeat, SEALED_BYTES};

use crate::crypto::{self, SealKey, derive};
use crate::error::TrustError;

/// How many numbers behind the greatest one still count: 64.
pub const WINDOW: u64 = 64;

const TAG_AT: usize = CLEAR_BYTES + SEALED_BYTES;

fn key(
    secret: &[u8; 32],
    from: HostNumber,
    to: HostNumber,
    cipher: Cipher,
) -> Result<SealKey, TrustError> {
    let label: &[u8] = match cipher {
        Cipher::Plain => return Err(TrustError::NoSeal),
        Cipher::Aes256Gcm => b"landeck/1 heartbeat aes-256-gcm",
        Cipher::ChaCha20Poly1305 => b"landeck/1 heartbeat chacha20-poly1305",
    };
    let mut key = derive(&[], secret, &[label, &from.0.to_le_bytes(), &to.0.to_le_bytes()]);
    let sealing = SealKey::new(&key, cipher);
    crypto::wipe(&mut key);
    sealing
}

/// Seals the heartbeats from one host to another.
#[derive(Debug)]
pub struct HeartbeatSealer {
    key: SealKey,
    from: HostNumber,
    to: HostNumber,
    /// The greatest number that was sealed.
    last: u64,
}

impl HeartbeatSealer {
    /// Begins with the first heartbeat under the secret of a trunk.
    ///
    /// # Errors
    /// [`TrustError::NoSeal`] for [`Cipher::Plain`]: heartbeats are always sealed.
    pub fn new(
        secret: &[u8; 32],
        from: HostNumber,
        to: HostNumber,
        cipher: Cipher,
    ) -> Result<Self, TrustError> {
        Ok(Self { key: key(secret, from, to, cipher)?, from, to, last: 0 })
    }

    /// Seals a heartbeat under its number, which must be greater than all before.
    ///
    /// # Errors
    /// [`TrustError::Repeated`].
    pub fn seal(
        &mut self,
        number: u64,
        heartbeat: &Heartbeat,
    ) -> Result<[u8; DATAGRAM_BYTES], TrustError> {
        if number <= self.last {
            return Err(TrustError::Repeated { number });
        }
        self.last = number;
        let clear = Envelope { from: self.from, to: self.to, number }.encode();
        let mut datagram = [0; DATAGRAM_BYTES];
        datagram[..CLEAR_BYTES].copy_from_slice(&clear);
        datagram[CLEAR_BYTES..TAG_AT].copy_from_slice(&heartbeat.encode());
        let tag = self.key.seal(number, &clear, &mut datagram[CLEAR_BYTES..TAG_AT])?;
        datagram[TAG_AT..].copy_from_slice(&tag);
        Ok(datagram)
    }
}

/// Opens the heartbeats from one host to another, each once.
#[derive(Debug)]
pub struct HeartbeatOpener {
    key: SealKey,
    from: HostNumber,
    to: HostNumber,
    window: Window,
}

impl HeartbeatOpener {
    /// Begins with the first heartbeat under the secret of a trunk.
    ///
    /// # Errors
    /// [`TrustError::NoSeal`] for [`Cipher::Plain`]: heartbeats are always sealed.
    pub fn new(
        secret: &[u8; 32],
        from: HostNumber,
        to: HostNumber,
        cipher: Cipher,
    ) -> Result<Self, TrustError> {
        Ok(Self { key: key(secret, from, to, cipher)?, from, to, window: Window::default() })
    }

    /// Opens a datagram, and returns its number and content. A refused datagram changes nothing.
    ///
    /// # Errors
    /// [`TrustError::NoHeartbeat`] if it is none between these hosts, [`TrustError::Repeated`] if its number has come
    /// or is [`WINDOW`] or more behind the greatest one, [`TrustError::Seal`] if it was changed.
    pub fn open(&mut self, datagram: &[u8]) -> Result<(u64, Heartbeat), TrustError> {
        let envelope = Envelope::decode(datagram).ok_or(TrustError::NoHeartbeat)?;
        if (envelope.from, envelope.to) != (self.from, self.to) || envelope.number == 0 {
            return Err(TrustError::NoHeartbeat);
        }
        let number = envelope.number;
        if !self.window.is_new(number) {
            return Err(TrustError::Repeated { number });
        }
        let mut sealed = [0; DATAGRAM_BYTES - CLEAR_BYTES];
        sealed.copy_from_slice(&datagram[CLEAR_BYTES..]);
        self.key.open(number, &datagram[..CLEAR_BYTES], &mut sealed)?;
        self.window.add(number);
        let content = std::array::from_fn(|at| sealed[at]);
        Ok((number, Heartbeat::decode(&content)))
    }
}

/// The numbers that have come: the greatest, and one bit for each of the [`WINDOW`] numbers that end with it.
#[derive(Debug, Default)]
struct Window {
    greatest: u64,
    /// Bit n says that the number n below the greatest has come.
    come: u64,
}

impl Window {
    fn is_new(&self, number: u64) -> bool {
        match self.greatest.checked_sub(number) {
            None => true,
            Some(behind) => behind < WINDOW && self.come >> behind & 1 == 0,
        }
    }

    fn add(&mut self, number: u64) {
        if number > self.greatest {
            let step = u32::try_from(number - self.greatest).unwrap_or(u32::MAX);
            self.come = self.come.checked_shl(step).unwrap_or(0) | 1;
            self.greatest = number;
        } else {
            self.come |= 1 << (self.greatest - number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use landeck_wire::HostIncarnation;
    use proptest::prelude::*;

    use super::*;

    const BEAT: Heartbeat =
        Heartbeat { echo: 4, incarnation: HostIncarnation(5), word: 6, boot: 7 };
    const ARBITER: HostNumber = HostNumber::ARBITER;
    const HOST: HostNumber = HostNumber(2);

    fn sealer() -> HeartbeatSealer {
        HeartbeatSealer::new(&[3; 32], HOST, ARBITER, Cipher::Aes256Gcm).unwrap()
    }

    fn opener() -> HeartbeatOpener {
        HeartbeatOpener::new(&[3; 32], HOST, ARBITER, Cipher::Aes256Gcm).unwrap()
    }

    #[test]
    fn heartbeats_open_once() {
        for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
            let mut sealer = HeartbeatSealer::new(&[3; 32], HOST, ARBITER, cipher).unwrap();
            let mut opener = HeartbeatOpener::new(&[3; 32], HOST, ARBITER, cipher).unwrap();
            let datagram = sealer.seal(1, &BEAT).unwrap();
            assert_eq!(opener.open(&datagram), Ok((1, BEAT)));
            assert_eq!(opener.open(&datagram), Err(TrustError::Repeated { number: 1 }));
            assert_eq!(sealer.seal(1, &BEAT), Err(TrustError::Repeated { number: 1 }));
            assert_eq!(opener.open(&sealer.seal(2, &BEAT).unwrap()), Ok((2, BEAT)));
        }
        let plain = HeartbeatSealer::new(&[3; 32], HOST, ARBITER, Cipher::Plain);
        assert_eq!(plain.unwrap_err(), TrustError::NoSeal);
    }

    #[test]
    fn a_heartbeat_with_one_changed_bit_changes_nothing() {
        let (datagram, mut opener) = (sealer().seal(70, &BEAT).unwrap(), opener());
        for bit in 0..8 * DATAGRAM_BYTES {
            let mut changed = datagram;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(opener.open(&changed).is_err(), "bit {bit}");
        }
        assert_eq!(opener.open(&datagram[..71]), Err(TrustError::NoHeartbeat));
        assert_eq!(opener.open(&datagram), Ok((70, BEAT)));
    }

    #[test]
    fn a_heartbeat_sent_back_is_refused() {
        let mut datagram = sealer().seal(1, &BEAT).unwrap();
        let mut back = HeartbeatOpener::new(&[3; 32], ARBITER, HOST, Cipher::Aes256Gcm).unwrap();
        assert_eq!(back.open(&datagram), Err(TrustError::NoHeartbeat));
        let clear = Envelope { from: ARBITER, to: HOST, number: 1 }.encode();
        datagram[..CLEAR_BYTES].copy_from_slice(&clear);
        assert_eq!(back.open(&datagram), Err(TrustError::Seal));
    }

    /// The key is computed from RFC 5869 in another language: a change breaks daemons of other releases.
    #[test]
    fn the_key_is_that_of_every_release() {
        let hex = "b7941d7e7c5456916f47a742fe7b4c6b36b388931eb5ce69a4b13737f10ee559";
        let key = crate::key_hash::parse_hex::<32>(hex).unwrap();
        let key = SealKey::new(&key, Cipher::Aes256Gcm).unwrap();
        let mut datagram = sealer().seal(9, &BEAT).unwrap();
        let (clear, sealed) = datagram.split_at_mut(CLEAR_BYTES);
        assert_eq!(key.open(9, clear, sealed), Ok(SEALED_BYTES));
        assert_eq!(sealed[..SEALED_BYTES], BEAT.encode());
    }

    #[test]
    fn the_window_has_64_numbers() {
        let mut window = Window::default();
        window.add(100);
        assert!(window.is_new(37) && !window.is_new(36) && !window.is_new(100));
        window.add(37);
        assert!(!window.is_new(37) && window.is_new(38) && window.is_new(u64::MAX));
        window.add(u64::MAX);
        assert!(window.is_new(u64::MAX - 63) && !window.is_new(u64::MAX - 64));
    }

    proptest! {
        #[test]
        fn a_window_is_a_set_of_numbers(numbers in prop::collection::vec(1_u64..200, 1..300)) {
            let (mut window, mut set, mut greatest) = (Window::default(), BTreeSet::new(), 0);
            for number in numbers {
                let is_new = !set.contains(&number) && number + WINDOW > greatest;
                prop_assert_eq!(window.is_new(number), is_new);
                if is_new {
                    window.add(number);
                    set.insert(number);
                    greatest = greatest.max(number);
                }
            }
        }
    }
}
