//! Hostile guests of a job's agent: garbage, halves of questions, silence, floods, unexpected descriptors. The agent
//! must refuse them, forget them, and serve all others.

#![allow(clippy::unwrap_used, reason = "a panic is how the helpers of a test report")]

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use landeck_joining::agent_thread::{AgentThread, serve_in_thread};
use landeck_joining::objects::{self, Name, ObjectKind};
use landeck_joining::socket;
use landeck_memory::{Segment, SegmentPlan, SlotState};
use landeck_protocols::door::{ObjectQuestion, ObjectRequest, Question, StartWish};
use landeck_testing::{Random, Watchdog, seed};
use landeck_wire::{ControlMessage, HostNumber, Incarnation, ProcessId, SegmentId, Slot};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, send, sendmsg, socket_with,
};

/// How long an honest guest may wait for its answer.
const PATIENCE: Duration = Duration::from_secs(100);
const LIMIT: Duration = Duration::from_secs(400);
const GUESTS: u32 = 4;
/// The longest message sent; all questions but those for a start have at most 144 bytes.
const BYTES_MAX: u64 = 300;

/// A job of one with an agent in this process.
fn job() -> (Segment, AgentThread) {
    let mut number = [0; 8];
    rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty()).unwrap();
    let plan = SegmentPlan { guests: GUESTS, ..SegmentPlan::new(u64::from_ne_bytes(number), 1) };
    let segment = Segment::create(&plan).unwrap();
    let agent = serve_in_thread(&segment, 0, None).unwrap();
    (segment, agent)
}

fn host(segment: &Segment) -> SegmentId {
    SegmentId(segment.plan().host)
}

fn own(segment: &Segment) -> ProcessId {
    ProcessId { segment: host(segment), slot: Slot(0), incarnation: Incarnation(1) }
}

/// A connection without a question.
fn connected(segment: &Segment) -> OwnedFd {
    let kind = SocketType::SEQPACKET;
    let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    let uid = rustix::process::geteuid().as_raw();
    let name = format!("landeck-{uid}-{}", host(segment));
    connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
    socket
}

/// Sends; returns whether the other end still listens.
fn say(socket: &OwnedFd, bytes: &[u8]) -> bool {
    send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_ok()
}

/// Waits for an answer or the end of the connection.
fn hear(socket: &OwnedFd) {
    let limit = Timespec::try_from(PATIENCE).unwrap();
    assert_eq!(poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&limit)), Ok(1));
    let _ = recv(socket, &mut [0; 256][..], RecvFlags::DONTWAIT);
}

/// Checks that an honest guest is let in, and that the agent forgets it when it leaves.
fn assert_serves(segment: &Segment) {
    let give_up = Instant::now() + PATIENCE;
    let joined = loop {
        match socket::join(host(segment), PATIENCE) {
            Ok(joined) => break joined,
            // The agent closes the connections of the hostile guests one after the other.
            Err(error) => assert!(Instant::now() < give_up, "{error}"),
        }
    };
    let slot = joined.process.slot.0;
    assert_eq!(segment.slot_record(slot).state, SlotState::Alive);
    drop(joined);
    while segment.slot_record(slot).state == SlotState::Alive {
        assert!(Instant::now() < give_up, "it is still there");
        std::thread::yield_now();
    }
    let name = Name::new("of an honest one").unwrap();
    let kind = ObjectKind::Semaphore;
    let (object, _memory) = objects::make(own(segment), kind, Some(&name), 4_096, [1, 0]).unwrap();
    objects::close(own(segment), kind, object.number).unwrap();
}

/// Random bytes that may look like a question, to a degree that depends on luck.
fn garbage(random: &mut Random, host: SegmentId) -> Vec<u8> {
    let mut bytes = match random.below(8) {
        0 => (0..random.below(BYTES_MAX)).map(|_| random.bits() as u8).collect(),
        1 | 2 => {
            let questions = questions(random.below(3), host);
            random.pick(&questions).encode()
        }
        _ => Question::Object(about_object(random, host)).encode(),
    };
    for _ in 0..random.below(4).min(bytes.len() as u64) {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = random.bits() as u8;
    }
    if random.once_in(8) {
        bytes.resize(random.below(BYTES_MAX) as usize + 1, 0);
    }
    bytes
}

/// Questions about the job and its names, by a process that lives, has ended or was never there.
fn questions(slot: u64, host: SegmentId) -> [Question; 8] {
    let process = ProcessId { segment: host, slot: Slot(slot as u32), incarnation: Incarnation(1) };
    let name = Name::new(format!("of a hostile one {}", std::process::id())).unwrap();
    let start = StartWish {
        asker: process,
        host: HostNumber::NONE,
        program: b"/bin/true".to_vec(),
        arguments: vec![vec![b'x'; 40]; 3],
        variables: vec![(b"A".to_vec(), b"B".to_vec())],
        directory: None,
        join_ms: u64::MAX,
    };
    [
        Question::Start(Box::new(start)),
        Question::Join { wanted: Some(process.slot) },
        Question::Publish { process, context: 1, name: name.clone() },
        Question::Unpublish { process, name },
        Question::LookUp,
        Question::Observe,
        Question::Presence { process },
        Question::Found { process },
    ]
}

/// A question about an object, with small numbers and few names.
fn about_object(random: &mut Random, host: SegmentId) -> ObjectQuestion {
    let kinds =
        [ObjectKind::Mailbox, ObjectKind::Segment, ObjectKind::Semaphore, ObjectKind::Group];
    let (slot, incarnation) = (Slot(random.below(2) as u32), Incarnation(random.below(3) as u32));
    let process = ProcessId { segment: host, slot, incarnation };
    let question =
        ObjectQuestion::new(process, *random.pick(&kinds), *random.pick(&ObjectRequest::ALL));
    let bytes = *random.pick(&[0, 64, u64::MAX]);
    let question = ObjectQuestion { number: random.below(5), bytes, ..question };
    match random.once_in(2) {
        true => question.named(&Name::new(random.pick(&["a", "b", "c"])).unwrap()),
        false => question,
    }
}

#[test]
fn garbage_is_refused_and_harms_nobody() {
    let _watchdog = Watchdog::start(LIMIT);
    let (segment, _agent) = job();
    let mut random = Random::new(seed());
    for _ in 0..3_000 {
        let socket = connected(&segment);
        if say(&socket, &garbage(&mut random, host(&segment))) {
            hear(&socket);
        }
    }
    assert_serves(&segment);
}

#[test]
fn half_a_question_is_none() {
    let _watchdog = Watchdog::start(LIMIT);
    let (segment, _agent) = job();
    let [_, whole, ..] = questions(3, host(&segment)).map(|question| question.encode());
    for length in 1..BYTES_MAX as usize {
        let socket = connected(&segment);
        let mut bytes = whole.clone();
        bytes.resize(length, 0);
        assert!(say(&socket, &bytes));
        hear(&socket);
    }
    assert_serves(&segment);
}

#[test]
fn a_guest_that_chatters_is_put_out_and_its_slot_is_free() {
    let _watchdog = Watchdog::start(LIMIT);
    let (segment, _agent) = job();
    let mut random = Random::new(seed());
    for _ in 0..3 * GUESTS {
        let joined = socket::join(host(&segment), PATIENCE).unwrap();
        let slot = joined.process.slot.0;
        let give_up = Instant::now() + PATIENCE;
        // It sends as fast as it can, whether or not the agent reads.
        while say(&joined.connection, &garbage(&mut random, host(&segment))) {
            assert!(Instant::now() < give_up, "the agent still takes what it says");
        }
        while segment.slot_record(slot).state == SlotState::Alive {
            assert!(Instant::now() < give_up, "its slot is still taken");
            std::thread::yield_now();
        }
    }
    assert_serves(&segment);
}

#[test]
fn answers_that_nobody_takes_hold_nobody_up() {
    let _watchdog = Watchdog::start(LIMIT);
    let (segment, _agent) = job();
    let mut random = Random::new(seed());
    // Some wait for ever, and their number is bounded; some close at once, with their answer unread.
    let mut silent = Vec::new();
    for number in 0..500 {
        let socket = connected(&segment);
        if number % 20 == 0 {
            silent.push(socket);
            continue;
        }
        for _ in 0..4 {
            say(&socket, &garbage(&mut random, host(&segment)));
        }
    }
    assert_serves(&segment);
}

#[test]
fn descriptors_that_come_along_are_not_kept() {
    let _watchdog = Watchdog::start(LIMIT);
    let (segment, _agent) = job();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert_serves(&segment);
    let before = open();
    let null = std::fs::File::open("/dev/null").unwrap();
    for _ in 0..200 {
        let socket = connected(&segment);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut along = SendAncillaryBuffer::new(&mut space);
        let passed = [null.as_fd(); 4];
        assert!(along.push(SendAncillaryMessage::ScmRights(&passed)));
        let bytes = IoSlice::new(b"LDK\x02 and four descriptors");
        sendmsg(&socket, &[bytes], &mut along, SendFlags::NOSIGNAL).unwrap();
        hear(&socket);
    }
    drop(null);
    let give_up = Instant::now() + PATIENCE;
    while open() > before {
        assert!(Instant::now() < give_up, "{} of {before} descriptors", open());
        std::thread::yield_now();
    }
}
