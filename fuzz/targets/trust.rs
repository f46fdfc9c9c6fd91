//! Bytes from a stranger, or changed on their way: no session opens by them, no frame or heartbeat opens but the one
//! that was sealed, and a text is a token only if it is the token's own text.

#![no_main]

use std::sync::OnceLock;

use arbitrary::Arbitrary;
use landeck_trust::{
    HeartbeatOpener, HeartbeatSealer, JoinToken, KeyPair, Opener, Sealer, Session, TrustError,
};
use landeck_wire::handover::Cipher;
use landeck_wire::heartbeat::Heartbeat;
use landeck_wire::{HostIncarnation, HostNumber};
use libfuzzer_sys::fuzz_target;

const KEY: [u8; 32] = [7; 32];

#[derive(Arbitrary, Debug)]
enum Input {
    /// A stranger's bytes in place of a peer's.
    Stranger { is_listener: bool, bytes: Vec<u8>, piece: u8 },
    /// A handshake of which one flight is changed.
    Changed { flight: u8, at: u16, change: u8, cut: Option<u16> },
    /// Frames of which the last is changed.
    Frame { is_aes: bool, good: u8, header: [u8; 16], data: Vec<u8>, changes: Vec<(u16, u8)> },
    /// Bytes in place of a frame.
    AnyFrame { header: [u8; 16], bytes: Vec<u8> },
    /// A heartbeat that is changed.
    Datagram { number: u64, changes: Vec<(u8, u8)>, bytes: Vec<u8> },
    /// A text in place of a token.
    Token { address: Option<std::net::SocketAddr>, text: String },
}

fuzz_target!(|input: Input| match input {
    Input::Stranger { is_listener, bytes, piece } => stranger(is_listener, &bytes, piece),
    Input::Changed { flight, at, change, cut } => changed(flight, at, change, cut),
    Input::Frame { is_aes, good, header, data, changes } => {
        let cipher = if is_aes { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 };
        frame(cipher, good, header, &data, &changes);
    }
    Input::AnyFrame { header, mut bytes } => {
        let mut opener = Opener::new(&KEY, Cipher::Aes256Gcm).expect("a cipher with a seal");
        assert_eq!(opener.open(&header, &mut bytes), Err(TrustError::Seal));
    }
    Input::Datagram { number, changes, bytes } => datagram(number, &changes, &bytes),
    Input::Token { address, text } => token(address, &text),
});

/// The keys of both sides, made once.
fn keys() -> &'static [KeyPair; 2] {
    static KEYS: OnceLock<[KeyPair; 2]> = OnceLock::new();
    KEYS.get_or_init(|| [(); 2].map(|()| KeyPair::generate().expect("a key pair")))
}

fn sessions() -> [Session; 2] {
    let [dialler, listener] = keys();
    let dialling = Session::connect(dialler, listener.hash()).expect("a session");
    [dialling, Session::accept(listener).expect("a session")]
}

fn stranger(is_listener: bool, bytes: &[u8], piece: u8) {
    let mut session = sessions().into_iter().nth(usize::from(is_listener)).expect("one of two");
    let mut failure = None;
    for piece in bytes.chunks(usize::from(piece).max(1)) {
        let result = session.receive(piece);
        if failure.is_some() {
            assert_eq!(result.clone().err(), failure, "the first failure stays");
        }
        failure = result.err();
    }
    let mut received = Vec::new();
    session.take_received(&mut received);
    assert!(!session.is_open() && session.peer_key().is_none() && received.is_empty());
    assert!(session.export(b"fuzz", b"").is_err());
    let error = failure.map_or(0, |error| error.to_string().len());
    assert!(error < 1_000 && session.unsent_bytes() < 1 << 16);
}

fn changed(flight: u8, at: u16, change: u8, cut: Option<u16>) {
    let mut sides = sessions();
    sides[0].send(b"for the listener");
    for number in 0..6 {
        let from = usize::from(number % 2);
        let mut bytes = sides[from].output().to_vec();
        sides[from].sent(bytes.len());
        if number == flight && !bytes.is_empty() {
            let at = usize::from(at) % bytes.len();
            bytes[at] ^= change;
            bytes.truncate(cut.map_or(bytes.len(), usize::from));
        }
        // A failure shows in the session, which is looked at below.
        let _ = sides[1 - from].receive(&bytes);
    }
    let [dialler, listener] = &mut sides;
    let mut received = Vec::new();
    listener.take_received(&mut received);
    assert!(received.is_empty() || received == b"for the listener");
    if dialler.is_open() && listener.is_open() {
        assert_eq!(dialler.export(b"fuzz", b""), listener.export(b"fuzz", b""));
    }
    let [own, other] = keys();
    assert!(dialler.peer_key().is_none_or(|key| key == other.hash()));
    assert!(listener.peer_key().is_none_or(|key| key == own.hash()));
}

fn frame(cipher: Cipher, good: u8, header: [u8; 16], data: &[u8], changes: &[(u16, u8)]) {
    let mut sealer = Sealer::new(&KEY, cipher).expect("a cipher with a seal");
    let mut opener = Opener::new(&KEY, cipher).expect("a cipher with a seal");
    let mut seal = || {
        let mut sealed = data.to_vec();
        let tag = sealer.seal(&header, &mut sealed).expect("short data");
        sealed.extend(tag);
        sealed
    };
    for _ in 0..good % 4 {
        assert_eq!(opener.open(&header, &mut seal()), Ok(data.len()));
    }
    let sealed = seal();
    let (mut other_header, mut other) = (header, sealed.clone());
    for (at, change) in changes {
        let at = usize::from(*at) % (16 + other.len());
        if at < 16 {
            other_header[at] ^= change;
        } else {
            other[at - 16] ^= change;
        }
    }
    let is_same = other_header == header && other == sealed;
    let opened = opener.open(&other_header, &mut other);
    if is_same {
        assert_eq!(opened, Ok(data.len()));
        assert_eq!(other[..data.len()], *data);
    } else {
        assert_eq!(opened, Err(TrustError::Seal));
        assert_eq!(opener.open(&header, &mut sealed.clone()), Err(TrustError::Seal));
    }
}

fn datagram(number: u64, changes: &[(u8, u8)], bytes: &[u8]) {
    let (from, to) = (HostNumber(3), HostNumber::ARBITER);
    let cipher = Cipher::ChaCha20Poly1305;
    let mut sealer = HeartbeatSealer::new(&KEY, from, to, cipher).expect("a cipher with a seal");
    let mut opener = HeartbeatOpener::new(&KEY, from, to, cipher).expect("a cipher with a seal");
    assert!(opener.open(bytes).is_err());
    let beat = Heartbeat { echo: 1, incarnation: HostIncarnation(2), word: 3, boot: 4 };
    let Ok(sealed) = sealer.seal(number, &beat) else {
        assert_eq!(number, 0);
        return;
    };
    let mut other = sealed;
    for (at, change) in changes {
        other[usize::from(*at) % sealed.len()] ^= change;
    }
    assert!(other == sealed || opener.open(&other).is_err());
    assert_eq!(opener.open(&sealed), Ok((number, beat)));
    assert_eq!(opener.open(&sealed), Err(TrustError::Repeated { number }));
}

fn token(address: Option<std::net::SocketAddr>, text: &str) {
    if let Some(address) = address {
        let token = JoinToken { address, founder: keys()[0].hash(), secret: [9; 16] };
        // A text of IPv6 has no flow label.
        let again: JoinToken = token.text().parse().expect("a token's own text");
        assert_eq!(again.text(), token.text());
    }
    if let Ok(token) = text.parse::<JoinToken>() {
        assert_eq!(token.text().parse(), Ok(token));
    }
}
