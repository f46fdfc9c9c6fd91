//! Tests of sessions in memory: both sides in one thread, bytes carried by hand.

use super::*;

impl Session {
    fn connect_without_application(own: &KeyPair, expected: KeyHash) -> Self {
        let (config, name) = verifier::client(own.identity(), expected, APPLICATION).unwrap();
        let mut config = (*config).clone();
        config.alpn_protocols.clear();
        let connection = ClientConnection::new(config.into(), name).unwrap();
        Self::over(Connection::Client(connection)).unwrap()
    }

    fn accept_without_application(own: &KeyPair) -> Self {
        let config = verifier::server(own.identity(), None, APPLICATION).unwrap();
        let mut config = (*config).clone();
        config.alpn_protocols.clear();
        Self::over(Connection::Server(ServerConnection::new(config.into()).unwrap())).unwrap()
    }
}

struct Keys {
    dialler: KeyPair,
    listener: KeyPair,
    stranger: KeyPair,
}

fn keys() -> Keys {
    let generate = || KeyPair::generate().unwrap();
    Keys { dialler: generate(), listener: generate(), stranger: generate() }
}

fn pair(keys: &Keys) -> (Session, Session) {
    let dialler = Session::connect(&keys.dialler, keys.listener.hash()).unwrap();
    (dialler, Session::accept(&keys.listener).unwrap())
}

/// Carries the output of one side to the other in pieces; whether there was any.
fn carry(from: &mut Session, to: &mut Session, piece: usize) -> Result<bool, TrustError> {
    let bytes = from.output().to_vec();
    from.sent(bytes.len());
    assert_eq!(from.output(), b"");
    for piece in bytes.chunks(piece) {
        to.receive(piece)?;
    }
    Ok(!bytes.is_empty())
}

/// Carries bytes until both sides are silent, and returns the first failure of each side.
fn run(dialler: &mut Session, listener: &mut Session, piece: usize) -> [Option<TrustError>; 2] {
    let mut failures = [None, None];
    for _ in 0..20 {
        if let Err(error) = carry(dialler, listener, piece) {
            failures[1].get_or_insert(error);
        }
        if let Err(error) = carry(listener, dialler, piece) {
            failures[0].get_or_insert(error);
        }
        if dialler.output().is_empty() && listener.output().is_empty() {
            break;
        }
    }
    failures
}

fn received(session: &mut Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    session.take_received(&mut bytes);
    bytes
}

#[test]
fn both_sides_know_each_other_and_share_a_secret() {
    let keys = keys();
    for piece in [usize::MAX, 1, 7] {
        let (mut dialler, mut listener) = pair(&keys);
        assert!(!dialler.is_open() && !listener.is_open() && dialler.peer_key().is_none());
        assert_eq!(dialler.export(b"landeck lanes", b""), Err(TrustError::NotOpen));
        dialler.send(b"early");
        assert_eq!(run(&mut dialler, &mut listener, piece), [None, None]);
        assert!(dialler.is_open() && listener.is_open());
        assert_eq!(dialler.peer_key(), Some(keys.listener.hash()));
        assert_eq!(listener.peer_key(), Some(keys.dialler.hash()));
        listener.send(b"answer");
        assert_eq!(run(&mut dialler, &mut listener, piece), [None, None]);
        assert_eq!(
            (received(&mut listener), received(&mut dialler)),
            (b"early".into(), b"answer".into())
        );

        let secret = dialler.export(b"landeck lanes", b"0").unwrap();
        assert_eq!(listener.export(b"landeck lanes", b"0"), Ok(secret));
        assert_ne!(listener.export(b"landeck lanes", b"1"), Ok(secret));
        assert_ne!(listener.export(b"landeck beats", b"0"), Ok(secret));
    }
}

#[test]
fn two_sessions_have_two_secrets() {
    let keys = keys();
    let secret = || {
        let (mut dialler, mut listener) = pair(&keys);
        run(&mut dialler, &mut listener, 4096);
        dialler.export(b"landeck lanes", b"").unwrap()
    };
    assert_ne!(secret(), secret());
}

#[test]
fn much_data_arrives_whole_and_counts_as_unsent() {
    let keys = keys();
    let (mut dialler, mut listener) = pair(&keys);
    let data: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
    dialler.send(&data);
    assert!(dialler.unsent_bytes() > UNSENT_BYTES_LIMIT);
    assert_eq!(run(&mut dialler, &mut listener, 1448), [None, None]);
    assert!(received(&mut listener) == data, "the data differ");
    assert_eq!(dialler.unsent_bytes(), 0);
    dialler.send(&data);
    let unsent = dialler.unsent_bytes();
    assert!(unsent > data.len());
    let output = dialler.output().to_vec();
    dialler.sent(1000);
    assert_eq!((dialler.unsent_bytes(), dialler.output()), (unsent - 1000, &output[1000..]));
}

#[test]
fn a_listener_with_another_key_is_refused() {
    let keys = keys();
    let mut dialler = Session::connect(&keys.dialler, keys.listener.hash()).unwrap();
    let mut listener = Session::accept(&keys.stranger).unwrap();
    dialler.send(b"for the right listener alone");
    let [failure, told] = run(&mut dialler, &mut listener, 4096);
    let (expected, found) = (keys.listener.hash(), keys.stranger.hash());
    assert_eq!(failure, Some(TrustError::WrongKey { expected, found }));
    assert!(matches!(told, Some(TrustError::Refused(_))), "{told:?}");
    assert!(!dialler.is_open() && !listener.is_open());
    assert_eq!((received(&mut listener), listener.peer_key()), (Vec::new(), None));
}

#[test]
fn a_dialler_with_another_key_is_refused() {
    let keys = keys();
    let mut dialler = Session::connect(&keys.stranger, keys.listener.hash()).unwrap();
    let mut listener = Session::accept_from(&keys.listener, keys.dialler.hash()).unwrap();
    dialler.send(b"from a stranger");
    let [told, failure] = run(&mut dialler, &mut listener, 4096);
    let (expected, found) = (keys.dialler.hash(), keys.stranger.hash());
    assert_eq!(failure, Some(TrustError::WrongKey { expected, found }));
    assert!(matches!(told, Some(TrustError::Refused(_))), "{told:?}");
    assert!(!dialler.is_open() && !listener.is_open());
    assert_eq!((received(&mut listener), listener.peer_key()), (Vec::new(), None));
    assert_eq!(listener.receive(b"more"), Err(TrustError::WrongKey { expected, found }));
}

#[test]
fn a_listener_accepts_the_key_that_it_expects() {
    let keys = keys();
    let mut dialler = Session::connect(&keys.dialler, keys.listener.hash()).unwrap();
    let mut listener = Session::accept_from(&keys.listener, keys.dialler.hash()).unwrap();
    assert_eq!(run(&mut dialler, &mut listener, 4096), [None, None]);
    assert!(dialler.is_open() && listener.is_open());
}

/// A thief has the certificate of another daemon, which is public, and signs with a key of its own.
#[test]
fn a_certificate_without_its_private_key_is_refused() {
    let keys = keys();
    let thief = keys.stranger.with_certificate_of(&keys.listener);
    let mut dialler = Session::connect(&keys.dialler, keys.listener.hash()).unwrap();
    let mut listener = Session::accept(&thief).unwrap();
    let [failure, _] = run(&mut dialler, &mut listener, 4096);
    assert!(matches!(failure, Some(TrustError::Certificate)), "{failure:?}");
    assert!(!dialler.is_open());

    let thief = keys.stranger.with_certificate_of(&keys.dialler);
    let mut dialler = Session::connect(&thief, keys.listener.hash()).unwrap();
    let mut listener = Session::accept(&keys.listener).unwrap();
    let [_, failure] = run(&mut dialler, &mut listener, 4096);
    assert!(matches!(failure, Some(TrustError::Certificate)), "{failure:?}");
    assert_eq!((listener.is_open(), listener.peer_key()), (false, None));
}

#[test]
fn another_application_is_refused() {
    let keys = keys();
    for application in [&b"landeck/2"[..], b"http/1.1"] {
        let mut dialler =
            Session::connect_for(&keys.dialler, keys.listener.hash(), application).unwrap();
        let mut listener = Session::accept(&keys.listener).unwrap();
        let failures = run(&mut dialler, &mut listener, 4096);
        assert_eq!(failures, [Some(TrustError::Application), Some(TrustError::Application)]);
        assert!(!dialler.is_open() && !listener.is_open());
    }
}

/// A side that offers no application at all passes the library, so the session itself must refuse it.
#[test]
fn a_side_without_an_application_is_refused() {
    let keys = keys();
    for is_dialler in [true, false] {
        let (mut dialler, mut listener) = pair(&keys);
        if is_dialler {
            dialler = Session::connect_without_application(&keys.dialler, keys.listener.hash());
        } else {
            listener = Session::accept_without_application(&keys.listener);
        }
        dialler.send(b"data");
        let failures = run(&mut dialler, &mut listener, 4096);
        let honest = usize::from(is_dialler);
        assert_eq!(failures[honest], Some(TrustError::Application), "{is_dialler}");
        let session = if is_dialler { &mut listener } else { &mut dialler };
        assert!(!session.is_open() && received(session).is_empty());
    }
}

#[test]
fn garbage_is_refused_and_the_first_error_stays() {
    let keys = keys();
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 3000], &[0x16, 3, 1, 0xff, 0xff, 1]] {
        for mut session in [pair(&keys).0, pair(&keys).1] {
            let error = garbage.iter().find_map(|byte| session.receive(&[*byte]).err());
            let error = error.expect("garbage is refused");
            assert!(matches!(error, TrustError::Malformed(_)), "{error:?}");
            assert_eq!(session.receive(b"more"), Err(error));
            assert!(!session.is_open() && session.peer_key().is_none());
        }
    }
}

#[test]
fn a_changed_byte_ends_an_open_session() {
    let keys = keys();
    let (mut dialler, mut listener) = pair(&keys);
    run(&mut dialler, &mut listener, 4096);
    dialler.send(b"first");
    carry(&mut dialler, &mut listener, 4096).unwrap();
    dialler.send(b"second");
    let mut bytes = dialler.output().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    assert!(matches!(listener.receive(&bytes), Err(TrustError::Malformed(_))));
    assert_eq!((received(&mut listener), listener.is_open()), (Vec::new(), false));
    assert_eq!(listener.export(b"landeck lanes", b""), Err(TrustError::NotOpen));
    assert!(!listener.output().is_empty(), "the other side is told");
}

#[test]
fn a_stream_that_is_cut_is_not_one_that_was_closed() {
    let keys = keys();
    let (mut dialler, mut listener) = pair(&keys);
    run(&mut dialler, &mut listener, 4096);
    dialler.send(b"last words");
    dialler.close();
    dialler.send(b"too late");
    let bytes = dialler.output().to_vec();
    for cut in 0..bytes.len() {
        listener.receive(&bytes[cut..=cut]).unwrap();
        assert_eq!(listener.has_peer_closed(), cut + 1 == bytes.len(), "byte {cut}");
    }
    assert_eq!(received(&mut listener), b"last words");
    assert_eq!(listener.receive(b"behind the end"), Ok(()));
    listener.send(b"answer");
    listener.close();
    run(&mut dialler, &mut listener, 4096);
    assert_eq!((received(&mut dialler), dialler.has_peer_closed()), (b"answer".into(), true));
}

/// A handshake that stops at any byte leaves both sides waiting, without an error and without being open.
#[test]
fn a_handshake_that_is_cut_stays_closed() {
    let keys = keys();
    let (dialler, mut listener) = pair(&keys);
    let hello = dialler.output().to_vec();
    for byte in &hello[..hello.len() - 1] {
        assert_eq!(listener.receive(&[*byte]), Ok(()));
        assert!(listener.output().is_empty() && !listener.is_open());
    }
    listener.receive(&hello[hello.len() - 1..]).unwrap();
    assert!(!listener.output().is_empty() && !listener.is_open());
}

#[test]
fn nothing_is_kept_for_a_later_session() {
    let keys = keys();
    let (mut dialler, mut listener) = pair(&keys);
    run(&mut dialler, &mut listener, 4096);
    // Behind its handshake a listener that allowed resumption would send tickets.
    assert_eq!((dialler.output().len(), listener.output().len()), (0, 0));
    let Connection::Client(client) = &mut dialler.tls else { panic!("a dialler is a client") };
    assert_eq!(client.tls13_tickets_received(), 0);
    assert!(!client.is_early_data_accepted());
    assert_eq!(dialler.tls.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
}
