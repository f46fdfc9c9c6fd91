//! Parts that a lane brings straight into the memory of their receive: the same bytes as any, and no byte that a hostile
//! sender, a lost lane or the end of the receive forbids.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use landeck_channel::incast::Incast;
use landeck_kernel::{Area, Endpoint, Failure, Peer, RequestId, Wanted};
use landeck_layout::{Kind as Element, Layout};
use landeck_memory::{Buffer, FarProcess, FarRecord, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_transports::lanes::sealing::{Opening, Sealing};
use landeck_transports::lanes::{DATA_BYTES_MAX, framing};
use landeck_transports::{Lanes, SharedMemory};
use landeck_wire::handover::{Cipher, Handover, LaneKeys};
use landeck_wire::{ContextId, ControlMessage, HEADER_BYTES, Header, Kind};
use rustix::net::{self, AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

const CIPHERS: [Cipher; 3] = [Cipher::Plain, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];
const CONTEXT: u32 = 1;
const TAG: u32 = 4;
/// The number of an offered send, which the other side may choose.
const SEND: u64 = 77;
const UNTOUCHED: u8 = 0xee;

/// An endpoint with a lane whose other end is in the test's hands.
struct Possessed {
    segment: Segment,
    kernel: Endpoint<SharedMemory>,
    far: Peer,
    stream: TcpStream,
    sealing: Sealing,
    opening: Opening,
    framing: framing::Framing,
    spare: framing::Spare,
    /// The position of the next frame.
    position: u16,
    /// The daemon's end of its socket.
    _daemon: OwnedFd,
}

impl Possessed {
    fn new(cipher: Cipher) -> Self {
        let plan = SegmentPlan {
            heap_bytes_per_process: 4 << 20,
            cpus: 2,
            far: 1,
            ..SegmentPlan::new(7, 2)
        };
        let segment = Segment::local(&plan);
        let record =
            SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
        (0..2).for_each(|slot| segment.set_slot_record(slot, record));
        segment.announce_membership();
        let near = SharedMemory::new(&segment, 0).unwrap();
        let mut kernel = Endpoint::new(near, &segment, 0).unwrap();
        let far = Peer(segment.plan().slots());
        let (daemon, own) = net::socketpair(
            AddressFamily::UNIX,
            net::SocketType::SEQPACKET,
            net::SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        kernel.set_network(Box::new(Lanes::new(own, 0, 1, far.0, 1).unwrap()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let theirs = listener.accept().unwrap().0;
        let keys = LaneKeys { cipher, send: [1; 32], receive: [2; 32] };
        let turned = LaneKeys { send: keys.receive, receive: keys.send, ..keys.clone() };
        hand(&daemon, &Handover::Lane { far: 0, incarnation: 0, lane: 1, keys }, &theirs);
        stream.set_nonblocking(true).unwrap();
        let mut possessed = Self {
            segment,
            kernel,
            far,
            stream,
            sealing: Sealing::new(&turned).unwrap(),
            opening: Opening::new(&turned).unwrap(),
            framing: framing::Framing::default(),
            spare: framing::Spare::default(),
            position: 0,
            _daemon: daemon,
        };
        possessed.put_far(SlotState::Alive);
        possessed
    }

    fn put_far(&mut self, state: SlotState) {
        let process = FarProcess { host: 9, slot: 0, incarnation: 1 };
        self.segment.set_far_record(0, FarRecord { process, state, ..FarRecord::default() });
        self.segment.announce_membership();
        self.kernel.refresh();
    }

    /// Lets the endpoint look until something is so.
    fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_so(self) {
            self.kernel.progress_thoroughly();
            self.kernel.refresh();
            assert!(Instant::now() < deadline, "waited in vain until {what}");
        }
    }

    /// The next frame of the other side.
    fn frame(&mut self, header: Header, data: &[u8]) -> Vec<u8> {
        let header = Header { sequence: self.position, length: data.len() as u32, ..header };
        self.position = self.position.wrapping_add(1);
        let mut bytes = header.encode().to_vec();
        bytes.extend_from_slice(data);
        self.sealing.seal_last(&mut bytes, data.len()).unwrap();
        bytes
    }

    /// Writes while the endpoint reads.
    fn write(&mut self, bytes: &[u8]) {
        let mut left = bytes;
        self.until("the bytes are out", |it| {
            match it.stream.write(left) {
                Ok(count) => left = &left[count..],
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
            left.is_empty()
        });
    }

    /// Waits until all that was written has left the system, as far as the endpoint reads it.
    fn let_read(&mut self) {
        for _ in 0..200 {
            self.kernel.progress_thoroughly();
        }
    }

    /// Offers a message of so many bytes, and returns the number of the receive that has accepted it.
    fn offer(&mut self, bytes: usize) -> u64 {
        self.offer_in(CONTEXT, bytes).0
    }

    fn offer_in(&mut self, context: u32, bytes: usize) -> (u64, Option<u64>) {
        let frame = self.offer_frame(context, bytes);
        self.write(&frame);
        self.acceptance()
    }

    fn offer_frame(&mut self, context: u32, bytes: usize) -> Vec<u8> {
        let offer = [(bytes as u64).to_le_bytes(), SEND.to_le_bytes()].concat();
        self.frame(Header::user(Kind::Offer, 0, context, TAG), &offer)
    }

    /// The receive of the next acceptance, and the position up to which it allows to send, if not to the end.
    fn acceptance(&mut self) -> (u64, Option<u64>) {
        self.acceptances(1)[0]
    }

    /// The next acceptances, which are so many.
    fn acceptances(&mut self, count: usize) -> Vec<(u64, Option<u64>)> {
        let mut all = Vec::new();
        self.until("the offers are accepted", |it| {
            let room = it.framing.room(&mut it.spare);
            let more = it.stream.read(room).unwrap_or(0);
            it.framing.filled(more);
            while let Some((header, data)) = it.framing.first(&mut it.opening).unwrap() {
                if header.kind == Kind::Accept {
                    let word = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
                    assert_eq!(word(0), SEND);
                    all.push((word(8), (data.len() > 16).then(|| word(16))));
                }
                it.framing.consume(&it.opening);
            }
            all.len() >= count
        });
        assert_eq!(all.len(), count, "{all:?}");
        all
    }

    fn part(&mut self, receive: u64, data: &[u8]) -> Vec<u8> {
        let (low, high) = (receive as u32, (receive >> 32) as u32);
        self.frame(Header::user(Kind::Part, 0, low, high), data)
    }

    fn receive(&mut self, area: Area) -> RequestId {
        let wanted = Wanted { context: CONTEXT, source: Some(self.far.0), tag: Some(TAG) };
        self.kernel.receive(wanted, area)
    }

    fn result(&mut self, id: RequestId) -> Result<u64, Failure> {
        self.until("the receive has ended", |it| it.kernel.is_done(id));
        self.kernel.take(id).unwrap().result.map(|status| status.bytes)
    }

    /// Sends a message that comes whole, and expects it.
    fn expect_next(&mut self) {
        let memory = [0u8; 3];
        let id = self.receive(area(&memory));
        let frame = self.frame(Header::user(Kind::Eager, 0, CONTEXT, TAG), b"end");
        self.write(&frame);
        assert_eq!((self.result(id), &memory), (Ok(3), b"end"));
    }
}

fn hand(daemon: &OwnedFd, message: &Handover, socket: &TcpStream) {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [socket.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    let bytes = message.encode();
    let parts = [std::io::IoSlice::new(&bytes)];
    net::sendmsg(daemon, &parts, &mut control, SendFlags::NOSIGNAL).unwrap();
}

/// The memory of a slice that outlives its requests in these tests.
fn area(values: &[u8]) -> Area {
    // SAFETY: the tests keep the memory until its requests are complete.
    Area::contiguous(unsafe { Buffer::new(NonNull::from(values).cast(), values.len()) })
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + (at >> 8) * 7) as u8).collect()
}

fn watchdog() -> Watchdog {
    Watchdog::start(Duration::from_secs(200))
}

/// The content of the memory; the compiler does not know that the endpoint writes there.
fn content(memory: &[u8]) -> Vec<u8> {
    std::hint::black_box(memory).to_vec()
}

#[test]
fn parts_of_every_length_come_in_any_pieces() {
    let _watchdog = watchdog();
    for cipher in CIPHERS {
        for piece in [1_000, 7_001, 65_536, 1 << 20] {
            let mut it = Possessed::new(cipher);
            let (data, memory) = (pattern(300_000), vec![UNTOUCHED; 300_000]);
            let id = it.receive(area(&memory));
            let receive = it.offer(data.len());
            let (mut bytes, mut at) = (Vec::new(), 0);
            for length in [1, DATA_BYTES_MAX, 0, 15, 40_000, DATA_BYTES_MAX, 100, DATA_BYTES_MAX] {
                bytes.extend(it.part(receive, &data[at..at + length]));
                at += length;
            }
            while at < data.len() {
                let length = DATA_BYTES_MAX.min(data.len() - at);
                bytes.extend(it.part(receive, &data[at..at + length]));
                at += length;
            }
            for piece in bytes.chunks(piece) {
                assert!(!it.kernel.is_done(id));
                it.write(piece);
            }
            assert_eq!(it.result(id), Ok(300_000));
            assert!(content(&memory) == data, "{cipher:?} in pieces of {piece}");
            it.expect_next();
        }
    }
}

#[test]
fn a_message_of_a_step_with_several_senders_comes_by_grants() {
    const KIB: usize = 1 << 10;
    let _watchdog = watchdog();
    let collective = CONTEXT | ContextId::COLLECTIVE;
    for ends in [false, true] {
        let mut it = Possessed::new(Cipher::Aes256Gcm);
        it.kernel.set_incast(Incast::Credit(32 << 10));
        let (data, memory, other) = (pattern(100 * KIB), vec![UNTOUCHED; 100 * KIB], [0; 8]);
        let wanted = Wanted { context: collective, source: Some(it.far.0), tag: Some(TAG) };
        let id = it.kernel.receive(wanted, area(&memory));
        // A receive from anybody may be one from another sender.
        let of_others = Wanted { source: None, tag: Some(TAG + 1), ..wanted };
        let others = it.kernel.receive(of_others, area(&other));
        let (receive, upto) = it.offer_in(collective, data.len());
        assert_eq!(upto, Some(32 << 10));
        let part = it.part(receive, &data[..32 * KIB]);
        it.write(&part);
        assert_eq!(it.acceptance(), (receive, Some(64 << 10)));
        if ends {
            // Its sender waits for the rest of the grant, and may send it.
            it.kernel.abandon(id);
            assert_eq!(it.acceptance(), (receive, None));
        } else {
            let part = it.part(receive, &data[32 * KIB..64 * KIB]);
            it.write(&part);
            assert_eq!(it.acceptance(), (receive, Some(96 << 10)));
        }
        let from = if ends { 32 } else { 64 } * KIB;
        for piece in data[from..].chunks(32 * KIB) {
            let part = it.part(receive, piece);
            it.write(&part);
        }
        if !ends {
            assert_eq!(it.result(id), Ok(100 << 10));
            assert!(content(&memory) == data);
        }
        it.kernel.abandon(others);
        it.expect_next();
        // A message that comes alone is accepted whole.
        let id = it.kernel.receive(wanted, area(&memory));
        assert_eq!(it.offer_in(collective, 100 * KIB).1, None);
        it.kernel.abandon(id);
        // So is one beside receives from its own sender, from this host, or of another group.
        for (source, context) in
            [(Some(it.far.0), collective), (Some(1), collective), (None, collective + 1)]
        {
            let beside = Wanted { context, source, tag: Some(TAG + 1) };
            let beside = it.kernel.receive(beside, area(&other));
            let id = it.kernel.receive(wanted, area(&memory));
            let accepted = it.offer_in(collective, 100 * KIB).1;
            assert_eq!(accepted, None, "{source:?} in {context}");
            it.kernel.abandon(id);
            it.kernel.abandon(beside);
        }
    }
}

#[test]
fn messages_of_one_sender_share_the_credit_of_their_step() {
    const KIB: usize = 1 << 10;
    let _watchdog = watchdog();
    let collective = CONTEXT | ContextId::COLLECTIVE;
    let mut it = Possessed::new(Cipher::Plain);
    it.kernel.set_incast(Incast::Credit(64 << 10));
    let (data, other) = (pattern(100 * KIB), [0; 8]);
    let memory = [vec![UNTOUCHED; 100 * KIB], vec![UNTOUCHED; 100 * KIB]];
    let wanted = Wanted { context: collective, source: Some(it.far.0), tag: Some(TAG) };
    let ids = [0, 1].map(|at| it.kernel.receive(wanted, area(&memory[at])));
    let of_others = Wanted { source: None, tag: Some(TAG + 1), ..wanted };
    let others = it.kernel.receive(of_others, area(&other));
    let (first, upto) = it.offer_in(collective, data.len());
    assert_eq!(upto, Some(64 << 10));
    // The step goes on while messages come by grants, though nothing is expected from others.
    it.kernel.abandon(others);
    let offer = it.offer_frame(collective, data.len());
    let part = it.part(first, &data[..32 * KIB]);
    it.write(&[offer, part].concat());
    let (second, upto) = it.acceptance();
    assert_eq!(upto, Some(32 << 10));
    // What comes of both at once counts for each.
    let parts = [it.part(first, &data[32 * KIB..64 * KIB]), it.part(second, &data[..32 * KIB])];
    it.write(&parts.concat());
    assert_eq!(it.acceptances(2), [(first, Some(96 << 10)), (second, Some(64 << 10))]);
    ids.into_iter().for_each(|id| it.kernel.abandon(id));
    assert_eq!(it.acceptances(2), [(first, None), (second, None)]);
}

#[test]
fn a_receive_with_a_layout_gets_the_same_bytes() {
    let _watchdog = watchdog();
    for cipher in CIPHERS {
        let mut it = Possessed::new(cipher);
        let (data, memory) = (pattern(150_000), vec![UNTOUCHED; 300_000]);
        let every_other = Layout::vector(150_000, 1, 2, &Layout::element(Element::BYTE)).unwrap();
        let buffer = area(&memory).as_buffer().unwrap();
        let id = it.receive(Area::with_layout(buffer, 0, &every_other, 1).unwrap());
        let receive = it.offer(data.len());
        for piece in data.chunks(DATA_BYTES_MAX) {
            let part = it.part(receive, piece);
            it.write(&part);
        }
        assert_eq!(it.result(id), Ok(150_000));
        let memory = content(&memory);
        assert!(memory.iter().step_by(2).eq(&data), "{cipher:?}");
        assert!(memory.iter().skip(1).step_by(2).all(|&byte| byte == UNTOUCHED));
        it.expect_next();
    }
}

#[test]
fn a_part_longer_than_its_place_writes_nothing_and_breaks_its_sender() {
    let _watchdog = watchdog();
    for cipher in CIPHERS {
        let mut it = Possessed::new(cipher);
        let memory = vec![UNTOUCHED; 200_000];
        let id = it.receive(area(&memory[..150_000]));
        let receive = it.offer(100_000);
        let first = it.part(receive, &pattern(50_000));
        it.write(&first);
        let longer = it.part(receive, &[1; 50_001]);
        it.write(&longer);
        let broken = it.result(id);
        assert!(matches!(broken, Err(Failure::PeerBroken { .. })), "{cipher:?}: {broken:?}");
        assert!(content(&memory[50_000..]).iter().all(|&byte| byte == UNTOUCHED));
    }
}

#[test]
fn a_part_out_of_order_writes_nothing() {
    let _watchdog = watchdog();
    for cipher in CIPHERS {
        for skipped in [1, 0xfffe] {
            let mut it = Possessed::new(cipher);
            let memory = vec![UNTOUCHED; 100_000];
            let id = it.receive(area(&memory));
            let receive = it.offer(memory.len());
            let first = it.part(receive, &pattern(50_000));
            it.write(&first);
            it.position = it.position.wrapping_add(skipped);
            let second = it.part(receive, &[1; 50_000]);
            it.write(&second[..60]);
            it.let_read();
            it.write(&second[60..]);
            let broken = it.result(id);
            assert!(matches!(broken, Err(Failure::PeerBroken { .. })), "{cipher:?}: {broken:?}");
            assert!(content(&memory[50_000..]).iter().all(|&byte| byte == UNTOUCHED));
        }
    }
}

#[test]
fn a_part_for_nobody_or_for_another_sender_is_dropped() {
    let _watchdog = watchdog();
    let mut it = Possessed::new(Cipher::Plain);
    let memory = vec![UNTOUCHED; 100_000];
    let wanted = Wanted { context: CONTEXT, source: Some(1), tag: Some(TAG) };
    let neighbours = it.kernel.receive(wanted, area(&memory));
    for receive in [neighbours.to_bits(), neighbours.to_bits() + 1, u64::MAX, 0] {
        let part = it.part(receive, &[1; 60_000]);
        it.write(&part);
        it.let_read();
    }
    assert!(!it.kernel.is_done(neighbours));
    assert!(content(&memory).iter().all(|&byte| byte == UNTOUCHED));
    it.expect_next();
}

#[test]
fn a_lane_that_ends_within_a_part_completes_nothing() {
    let _watchdog = watchdog();
    for cipher in CIPHERS {
        for length in [100_000, 50_000] {
            let mut it = Possessed::new(cipher);
            let memory = vec![UNTOUCHED; length];
            let id = it.receive(area(&memory));
            let receive = it.offer(length);
            if length > 50_000 {
                let first = it.part(receive, &pattern(50_000));
                it.write(&first);
            }
            let last = it.part(receive, &[1; 50_000]);
            it.write(&last[..last.len() - 1]);
            it.let_read();
            it.stream.shutdown(Shutdown::Both).unwrap();
            it.let_read();
            assert!(!it.kernel.is_done(id), "{cipher:?}: a broken lane is no end");
            it.put_far(SlotState::Dead);
            it.until("the death is noticed", |it| {
                let _ = it.kernel.verdict(id);
                it.kernel.is_done(id)
            });
            let gone = Failure::PeerGone { peer: it.far, died: true };
            assert_eq!(it.result(id), Err(gone));
        }
    }
}

#[test]
fn a_sealed_part_that_was_changed_completes_nothing() {
    let _watchdog = watchdog();
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        for changed in [12, HEADER_BYTES, 40_000, 60_000 + HEADER_BYTES] {
            let mut it = Possessed::new(cipher);
            let memory = vec![UNTOUCHED; 60_000];
            let id = it.receive(area(&memory));
            let receive = it.offer(memory.len());
            let mut part = it.part(receive, &pattern(60_000));
            part[changed] ^= 1;
            it.write(&part);
            let broken = it.result(id);
            assert!(matches!(broken, Err(Failure::PeerBroken { .. })), "{broken:?}");
        }
    }
}

/// The ways in which a receive ends while a part of its message is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Its time has passed; the next receive gets the message.
    PutBack,
    /// Its memory is gone.
    Abandoned,
    /// Its context is revoked.
    Revoked,
}

#[test]
fn nothing_is_written_after_the_receive_has_ended() {
    let _watchdog = watchdog();
    for cipher in CIPHERS {
        for ending in [Ending::PutBack, Ending::Abandoned, Ending::Revoked] {
            for cut in [3, HEADER_BYTES, HEADER_BYTES + 1, 30_000, 60_000] {
                let mut it = Possessed::new(cipher);
                let (data, mut memory) = (pattern(130_000), vec![0; 130_000]);
                let id = it.receive(area(&memory));
                let receive = it.offer(data.len());
                let first = it.part(receive, &data[..DATA_BYTES_MAX]);
                it.write(&first);
                let second = it.part(receive, &data[DATA_BYTES_MAX..2 * DATA_BYTES_MAX - 2_000]);
                it.write(&second[..cut]);
                it.let_read();
                match ending {
                    Ending::PutBack => assert!(it.kernel.put_back(id)),
                    Ending::Abandoned => it.kernel.abandon(id),
                    Ending::Revoked => it.kernel.revoke(CONTEXT),
                }
                memory.fill(UNTOUCHED);
                it.write(&second[cut..]);
                it.let_read();
                let rest = it.part(receive, &data[2 * DATA_BYTES_MAX - 2_000..]);
                it.write(&rest);
                it.let_read();
                let written = content(&memory).iter().any(|&byte| byte != UNTOUCHED);
                assert!(!written, "{cipher:?} {ending:?} {cut}");
                if ending == Ending::PutBack {
                    let again = vec![0; 130_000];
                    let id = it.receive(area(&again));
                    assert_eq!(it.result(id), Ok(130_000));
                    assert!(content(&again) == data, "{cipher:?} {cut}");
                }
                if ending != Ending::Revoked {
                    it.expect_next();
                }
            }
        }
    }
}

#[test]
fn a_message_longer_than_its_receive_writes_nothing_behind_it() {
    let _watchdog = watchdog();
    for cipher in CIPHERS {
        for room in [0, 1, DATA_BYTES_MAX, DATA_BYTES_MAX + 9, 199_999] {
            let mut it = Possessed::new(cipher);
            let (data, memory) = (pattern(200_000), vec![UNTOUCHED; 200_000]);
            let id = it.receive(area(&memory[..room]));
            let receive = it.offer(data.len());
            for piece in data.chunks(DATA_BYTES_MAX) {
                let part = it.part(receive, piece);
                it.write(&part);
            }
            let truncated = it.result(id);
            assert!(matches!(truncated, Err(Failure::Truncated { .. })), "{truncated:?}");
            let memory = content(&memory);
            assert!(memory[..room] == data[..room], "{cipher:?} {room}");
            assert!(memory[room..].iter().all(|&byte| byte == UNTOUCHED), "{cipher:?} {room}");
            it.expect_next();
        }
    }
}
