//! Tests of lanes: keys against an independent computation, seals against every change.

use landeck_wire::preamble::{Purpose, set_code};
use landeck_wire::{HostNumber, Incarnation, JobId, MachineId, ProcessId, SegmentId, Slot};

use super::*;

const CIPHERS: [Cipher; 2] = [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];
const HEADER: [u8; HEADER_BYTES] = *b"header of 16 byt";
const SECRET: [u8; 32] = [3; 32];
const CHALLENGE: [u8; CHALLENGE_BYTES] = [4; CHALLENGE_BYTES];

fn preamble() -> Preamble {
    let of =
        |host| ProcessId { segment: SegmentId(host), slot: Slot(3), incarnation: Incarnation(2) };
    Preamble {
        purpose: Purpose::Lane,
        machine: MachineId(8),
        job: JobId(77),
        wanted: of(10),
        own: of(11),
        lane: 5,
        key_generation: 1,
        to: HostNumber(1),
        from: HostNumber(2),
        is_plain: false,
        is_passed: false,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sealed(sealer: &mut Sealer, data: &[u8]) -> Vec<u8> {
    let mut frame = data.to_vec();
    let tag = sealer.seal(&HEADER, &mut frame).unwrap();
    frame.extend(tag);
    frame
}

fn pair(cipher: Cipher) -> (Sealer, Opener) {
    (Sealer::new(&[7; 32], cipher).unwrap(), Opener::new(&[7; 32], cipher).unwrap())
}

/// The values were computed from RFC 5869 and RFC 2104 in another language. A change breaks daemons of other releases.
#[test]
fn keys_and_codes_are_those_of_every_release() {
    let encoded = preamble().encode();
    assert_eq!(
        hex(&preamble_code(&SECRET, &CHALLENGE, &encoded)),
        "e57e517e2a8c9a435256a380d3b58aeaa18a4e28c65d33a1113ad2532285bf09"
    );
    let keys = |cipher| lane_keys(&SECRET, &CHALLENGE, &preamble(), cipher, LaneEnd::Dialler);
    let aes = keys(Cipher::Aes256Gcm);
    assert_eq!(hex(&aes.send), "98f1c2dc74b5525ece21e996f5453b48d8dee9215145577d39cf73228ed9023e");
    assert_eq!(
        hex(&aes.receive),
        "b4331fdf7818646ff935c89f529ed0ef32008b73da6327f82669222058db9c11"
    );
    assert_eq!(
        hex(&keys(Cipher::ChaCha20Poly1305).send),
        "8867dd0578a041023631bffe0602ed231ceebe95ce463e914504190afdfdfeb9"
    );
    assert_eq!(
        hex(&derive(&[], &[7; 32], &[REKEY_LABEL])),
        "c420336fb1cfbdc448efaaec8ed15ed20420ff568d2bc541bae6f4b338423190"
    );
}

#[test]
fn a_code_holds_for_its_preamble_challenge_and_secret_alone() {
    let mut encoded = preamble().encode();
    let code = preamble_code(&SECRET, &CHALLENGE, &encoded);
    set_code(&mut encoded, &code);
    assert!(verify(&SECRET, &CHALLENGE, &encoded));
    assert!(!verify(&[4; 32], &CHALLENGE, &encoded));
    for bit in 0..8 * CHALLENGE_BYTES {
        let mut other = CHALLENGE;
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(!verify(&SECRET, &other, &encoded), "bit {bit} of the challenge");
    }
    for bit in 0..8 * PREAMBLE_BYTES {
        let mut other = encoded;
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(!verify(&SECRET, &CHALLENGE, &other), "bit {bit} of the preamble");
    }
}

#[test]
fn the_ends_of_a_lane_have_each_others_keys_and_no_other_lane_has_them() {
    let keys = lane_keys;
    let aes = Cipher::Aes256Gcm;
    let dialler = keys(&SECRET, &CHALLENGE, &preamble(), aes, LaneEnd::Dialler);
    let acceptor = keys(&SECRET, &CHALLENGE, &preamble(), aes, LaneEnd::Acceptor);
    assert_eq!((dialler.send, dialler.receive), (acceptor.receive, acceptor.send));
    let swapped = Preamble { wanted: preamble().own, own: preamble().wanted, ..preamble() };
    let others = [
        keys(&[9; 32], &CHALLENGE, &preamble(), aes, LaneEnd::Dialler),
        keys(&SECRET, &[9; 16], &preamble(), aes, LaneEnd::Dialler),
        keys(&SECRET, &CHALLENGE, &Preamble { lane: 6, ..preamble() }, aes, LaneEnd::Dialler),
        keys(
            &SECRET,
            &CHALLENGE,
            &Preamble { job: JobId(78), ..preamble() },
            aes,
            LaneEnd::Dialler,
        ),
        keys(&SECRET, &CHALLENGE, &swapped, aes, LaneEnd::Dialler),
        keys(&SECRET, &CHALLENGE, &preamble(), Cipher::ChaCha20Poly1305, LaneEnd::Dialler),
    ];
    let mut all: Vec<[u8; 32]> = others.iter().flat_map(|keys| [keys.send, keys.receive]).collect();
    all.extend([dialler.send, dialler.receive]);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 14);
}

#[test]
fn plain_lanes_have_neither_keys_nor_seals() {
    let keys = lane_keys(&SECRET, &CHALLENGE, &preamble(), Cipher::Plain, LaneEnd::Dialler);
    assert_eq!((keys.send, keys.receive), ([0; 32], [0; 32]));
    assert_eq!(Sealer::new(&keys.send, keys.cipher).unwrap_err(), TrustError::NoSeal);
    assert_eq!(Opener::new(&keys.send, keys.cipher).unwrap_err(), TrustError::NoSeal);
}

#[test]
fn hosts_use_aes_if_both_have_it_and_never_clear_frames() {
    let (aes, chacha) = (Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305);
    assert_eq!(common_cipher(aes, aes), aes);
    for pair in [(aes, chacha), (chacha, aes), (chacha, chacha), (Cipher::Plain, Cipher::Plain)] {
        assert_eq!(common_cipher(pair.0, pair.1), chacha);
    }
    assert_ne!(cipher_here(), Cipher::Plain);
}

/// Test case 14 of McGrew and Viega, and RFC 8439, A.1, test vector 2: zeros under the key and the nonce zero. A header
/// changes the tag and not the data.
#[test]
fn the_first_frame_is_sealed_as_published() {
    let seal = |cipher, bytes: usize| {
        let frame = sealed(&mut Sealer::new(&[0; 32], cipher).unwrap(), &vec![0; bytes]);
        hex(&frame[..bytes])
    };
    assert_eq!(seal(Cipher::Aes256Gcm, 16), "cea7403d4d606b6e074ec5d3baf39d18");
    assert_eq!(
        seal(Cipher::ChaCha20Poly1305, 32),
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
    );
}

#[test]
fn frames_open_in_their_order() {
    for cipher in CIPHERS {
        let (mut sealer, mut opener) = pair(cipher);
        for bytes in [0, 1, 16, 1000, 65_536] {
            let data: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
            let mut frame = sealed(&mut sealer, &data);
            assert_eq!(frame.len(), bytes + FRAME_TAG_BYTES);
            assert!(bytes < 16 || frame[..bytes] != data, "the data are in clear");
            assert_eq!(opener.open(&HEADER, &mut frame), Ok(bytes));
            assert!(frame[..bytes] == data);
        }
    }
}

#[test]
fn a_frame_with_one_changed_bit_is_refused() {
    for cipher in CIPHERS {
        let (mut sealer, _) = pair(cipher);
        let frame = sealed(&mut sealer, b"nineteen bytes long");
        let refused = |header: &[u8; HEADER_BYTES], mut frame: Vec<u8>| {
            Opener::new(&[7; 32], cipher).unwrap().open(header, &mut frame) == Err(TrustError::Seal)
        };
        assert!(!refused(&HEADER, frame.clone()));
        for bit in 0..8 * frame.len() {
            let mut changed = frame.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(refused(&HEADER, changed), "{cipher:?}: bit {bit} of data and tag");
        }
        for bit in 0..8 * HEADER_BYTES {
            let mut header = HEADER;
            header[bit / 8] ^= 1 << (bit % 8);
            assert!(refused(&header, frame.clone()), "{cipher:?}: bit {bit} of the header");
        }
        for bytes in 0..frame.len() {
            assert!(refused(&HEADER, frame[..bytes].to_vec()), "{cipher:?}: {bytes} bytes");
        }
    }
}

#[test]
fn frames_that_are_repeated_swapped_or_lost_are_refused() {
    for cipher in CIPHERS {
        let (mut sealer, _) = pair(cipher);
        let frames = [b"one", b"two", b"six", b"ten"].map(|data| sealed(&mut sealer, data));
        for order in [&[0, 0][..], &[1], &[0, 2], &[0, 1, 0]] {
            let (_, mut opener) = pair(cipher);
            let (last, good) = order.split_last().unwrap();
            for &frame in good {
                assert_eq!(opener.open(&HEADER, &mut frames[frame].clone()), Ok(3));
            }
            let wrong = opener.open(&HEADER, &mut frames[*last].clone());
            assert_eq!(wrong, Err(TrustError::Seal), "{order:?}");
            let next = opener.open(&HEADER, &mut frames[order.len()].clone());
            assert_eq!(next, Err(TrustError::Seal), "a broken opener opens again");
        }
    }
}

#[test]
fn both_ends_change_the_key_at_one_frame() {
    let limits = [Limits { frames: 3, bytes: 1 << 36 }, Limits { frames: 1 << 24, bytes: 30 }];
    for (cipher, limits) in CIPHERS.into_iter().flat_map(|cipher| limits.map(|one| (cipher, one))) {
        let mut sealer = Sealer::with_limits(&[7; 32], cipher, limits).unwrap();
        let mut opener = Opener::with_limits(&[7; 32], cipher, limits).unwrap();
        let next = derive(&[], &[7; 32], &[REKEY_LABEL]);
        let mut second = Opener::new(&next, cipher).unwrap();
        for count in 0..100 {
            let frame = sealed(&mut sealer, b"ten bytes.");
            assert_eq!(opener.open(&HEADER, &mut frame.clone()), Ok(10), "frame {count}");
            if (3..6).contains(&count) {
                assert_eq!(second.open(&HEADER, &mut frame.clone()), Ok(10), "frame {count}");
            }
        }
    }
}

#[test]
fn a_frame_above_the_limit_of_bytes_has_a_key_of_its_own() {
    let limits = Limits { frames: 1 << 24, bytes: 30 };
    let mut sealer = Sealer::with_limits(&[7; 32], Cipher::Aes256Gcm, limits).unwrap();
    let mut opener = Opener::with_limits(&[7; 32], Cipher::Aes256Gcm, limits).unwrap();
    for bytes in [40, 40, 1, 29, 1] {
        let mut frame = sealed(&mut sealer, &vec![1; bytes]);
        assert_eq!(opener.open(&HEADER, &mut frame), Ok(bytes));
    }
}

#[test]
fn nothing_shows_a_key() {
    let (sealer, opener) = pair(Cipher::Aes256Gcm);
    for text in [format!("{sealer:?}"), format!("{opener:?}")] {
        assert!(text.contains("Secret") && !text.contains("7, 7"), "{text}");
    }
}
