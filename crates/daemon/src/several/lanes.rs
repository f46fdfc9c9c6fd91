//! Lanes between fake processes: asked for, handed over, refused, broken.

use std::io::{IoSliceMut, Result as IoResult};
use std::mem::MaybeUninit;

use landeck_collectives::settings::Settings;
use landeck_memory::{FarProcess, FarRecord, Segment, SegmentPlan, SlotRecord, SlotState};
use landeck_testing::Watchdog;
use landeck_wire::handover::{Cipher, Handover, LaneKeys};
use landeck_wire::word::ProcessEnd;
use landeck_wire::{ControlMessage, Incarnation, ProcessId, SegmentId, Slot};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recvmsg, send, socket_with,
};

use super::*;
use crate::process_socket_name;

pub(super) mod next_run;

pub(super) const JOB: JobId = JobId(0x77);

/// A process of a test: its segment, and its connection to its daemon.
pub(super) struct Process {
    segment: Segment,
    socket: OwnedFd,
}

pub(super) fn id(host: u64) -> ProcessId {
    ProcessId { segment: SegmentId(host), slot: Slot(0), incarnation: Incarnation(1) }
}

/// Two parts of one process each on these daemons.
pub(super) fn parts(one: &Daemon, other: &Daemon) -> [Segment; 2] {
    parts_of(JOB, [one, other])
}

/// A part of one process on each of these daemons.
fn parts_of<const N: usize>(job: JobId, daemons: [&Daemon; N]) -> [Segment; N] {
    parts_with(&Settings::default(), job, daemons)
}

/// A part of one process on each of these daemons, in a job with these settings.
pub(super) fn parts_with<const N: usize>(
    settings: &Settings,
    job: JobId,
    daemons: [&Daemon; N],
) -> [Segment; N] {
    let hosts = std::array::from_fn::<_, N, _>(|_| crate::random::number().unwrap());
    std::array::from_fn(|own| {
        let elsewhere: Vec<usize> = (0..N).filter(|other| *other != own).collect();
        let (ranks, far) = (N as u32, elsewhere.len() as u32);
        let plan = SegmentPlan { heap_bytes_per_process: 0, ..SegmentPlan::new(hosts[own], 1) };
        let plan = SegmentPlan { settings: settings.to_words(), ..plan };
        let segment = Segment::local(&SegmentPlan { ranks, far, hosts: 8, job: job.0, ..plan });
        segment.set_peer_of_rank(own as u32, 0);
        let alive = SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
        segment.set_slot_record(0, alive);
        for (place, &other) in (0..).zip(&elsewhere) {
            segment.set_peer_of_rank(other as u32, segment.plan().slots() + place);
            let record = FarRecord {
                process: FarProcess { host: hosts[other], slot: 0, incarnation: 1 },
                host_number: daemons[other].entry.host.0,
                rank: Some(other as u32),
                state: SlotState::Alive,
                ..FarRecord::default()
            };
            segment.set_far_record(place, record);
        }
        let added = segment.clone();
        let far = elsewhere.iter().map(|&other| id(hosts[other])).collect();
        daemons[own].ask(move |context| context.add_part(job, added, far)).unwrap();
        segment
    })
}

impl Process {
    pub(super) fn hello(segment: &Segment) -> Self {
        Self::limited(segment, 0)
    }

    /// A process that can have so many lanes.
    fn limited(segment: &Segment, lanes_max: u32) -> Self {
        Self::in_slot(segment, 0, lanes_max)
    }

    fn in_slot(segment: &Segment, slot: u32, lanes_max: u32) -> Self {
        let process = Self::connected(segment);
        process.say(&Handover::Hello { slot, incarnation: 1, lanes_max });
        process
    }

    fn with_incarnation(segment: &Segment, slot: u32, incarnation: u32) -> Self {
        let process = Self::connected(segment);
        process.say(&Handover::Hello { slot, incarnation, lanes_max: 0 });
        process
    }

    fn connected(segment: &Segment) -> Self {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE)).unwrap();
        let name = process_socket_name(SegmentId(segment.plan().host));
        connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
        Self { segment: segment.clone(), socket }
    }

    /// The process after its daemon has answered, if no lane had come before.
    pub(super) fn welcomed(segment: &Segment) -> Self {
        let process = Self::hello(segment);
        let heard = process.hear().unwrap().0;
        assert!(matches!(heard, Some(Handover::Welcome { silence_ms: 3_000 })), "{heard:?}");
        process
    }

    pub(super) fn say(&self, message: &Handover) {
        send(&self.socket, &message.encode(), SendFlags::NOSIGNAL).unwrap();
    }

    fn hear(&self) -> IoResult<(Option<Handover>, Option<OwnedFd>)> {
        let mut bytes = [0; Handover::BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let slices = &mut [IoSliceMut::new(&mut bytes)];
        let length = recvmsg(&self.socket, slices, &mut control, flags)?.bytes;
        let mut passed = None;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(mut sockets) = message {
                passed = sockets.next();
            }
        }
        Ok((Handover::decode(&bytes[..length]).ok(), passed))
    }

    /// The first lane, and the daemon's welcome before or behind it. A socket that is closed with something unread loses what
    /// the daemon has not read.
    pub(super) fn lane(&self) -> (u32, LaneKeys, TcpStream) {
        self.next_lane(false)
    }

    /// The next lane of a process that is welcome.
    pub(super) fn further_lane(&self) -> (u32, LaneKeys, TcpStream) {
        self.next_lane(true)
    }

    fn next_lane(&self, mut is_welcome: bool) -> (u32, LaneKeys, TcpStream) {
        let mut found = None;
        while found.is_none() || !is_welcome {
            match self.hear().unwrap() {
                (Some(Handover::Welcome { .. }), None) => is_welcome = true,
                (Some(Handover::Lane { far: 0, lane, keys, .. }), Some(socket)) => {
                    let stream = TcpStream::from(socket);
                    stream.set_nonblocking(false).unwrap();
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    found = Some((lane, keys, stream));
                }
                other => panic!("{other:?}"),
            }
        }
        found.unwrap()
    }
}

pub(super) fn assert_connected(
    one: &mut (u32, LaneKeys, TcpStream),
    other: &mut (u32, LaneKeys, TcpStream),
) {
    assert_eq!(one.0, other.0);
    assert_ne!(one.1.cipher, Cipher::Plain);
    assert_eq!((one.1.send, one.1.receive), (other.1.receive, other.1.send));
    assert_ne!(one.1.send, one.1.receive);
    one.2.write_all(b"from one").unwrap();
    other.2.write_all(b"from another").unwrap();
    let mut bytes = [0; 8];
    other.2.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"from one");
    let mut bytes = [0; 12];
    one.2.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"from another");
}

/// The arbiter and two other hosts, all connected.
pub(super) fn three() -> [Daemon; 3] {
    let mut zero = arbiter();
    let mut one = host(&mut zero, Way::default());
    let mut two = host(&mut zero, Way::default());
    one.wait_up(0);
    two.wait_up(0);
    zero.wait_up(1);
    zero.wait_up(2);
    // Both know of each other.
    one.wait_word(|content| matches!(content, WordContent::HostJoined(entry) if entry.host.0 == 2));
    two.wait_word(|content| matches!(content, WordContent::HostJoined(entry) if entry.host.0 == 2));
    [zero, one, two]
}

#[test]
fn a_lane_is_handed_to_both_processes() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let daemons = three();
    // Once between the arbiter's host and another one, and once between two others, which need a trunk for it.
    for (one, other) in [(0, 1), (1, 2)] {
        let segments = parts(&daemons[one], &daemons[other]);
        for asks in [0, 1] {
            let first = Process::hello(&segments[asks]);
            first.say(&Handover::Want { far: 0 });
            let mut lane = first.lane();
            // The other process was computing, and says hello only now.
            let second = Process::hello(&segments[1 - asks]);
            let mut other_lane = second.lane();
            assert_connected(&mut lane, &mut other_lane);
            first.say(&Handover::Broken { far: 0, incarnation: 1, lane: lane.0, errno: 104 });
            second.say(&Handover::Broken { far: 0, incarnation: 1, lane: lane.0, errno: 0 });
        }
        for daemon in [one, other] {
            daemons[daemon].ask(|context| context.remove_part(JOB));
        }
    }
}

#[test]
fn a_lane_whose_other_end_is_broken_ends_the_job_unless_a_word_explains_it() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [mut zero, mut one, _two] = three();
    let segments = parts(&zero, &one);
    let process = Process::hello(&segments[1]);
    process.say(&Handover::Want { far: 0 });
    let (lane, ..) = process.lane();
    process.say(&Handover::Broken { far: 0, incarnation: 1, lane, errno: 71 });
    let ends = |content: &WordContent| matches!(content, WordContent::JobEnds { job: JOB, .. });
    let WordContent::JobEnds { cause, .. } = one.wait_word(ends).content else { unreachable!() };
    for part in ["rank 1 on h1", "rank 0 on h0", "Protocol error"] {
        assert!(cause.contains(part), "{cause}");
    }
    zero.wait_word(ends);
}

#[test]
fn a_process_that_ends_is_told_to_the_others_and_explains_its_lane() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [zero, mut one, mut two] = three();
    let segments = parts(&one, &two);
    let process = Process::hello(&segments[0]);
    process.say(&Handover::Want { far: 0 });
    let (lane, ..) = process.lane();
    process.say(&Handover::Broken { far: 0, incarnation: 1, lane, errno: 104 });
    let ended = id(segments[1].plan().host);
    let end = ProcessEnd::Died { pid: 4711, status: 9 };
    two.ask(move |context| {
        context.tell(WordContent::ProcessEnded { job: JOB, process: ended, end });
    });
    one.wait_word(
        |content| matches!(content, WordContent::ProcessEnded { process, .. } if *process == ended),
    );
    let record = process.segment.far_record(0);
    assert_eq!((record.state, record.pid, record.status), (SlotState::Dead, 4711, 9));
    std::thread::sleep(Duration::from_millis(options().host_timeout_ms + 500));
    let broken = |seen: &Seen| matches!(seen, Seen::Word(word) if matches!(word.content, WordContent::JobEnds { .. }));
    assert!(!one.seen_so_far().iter().any(broken), "the word explains the lane's end");
    assert!(!two.seen_so_far().iter().any(broken));
    drop(zero);
}

#[test]
fn a_job_is_over_behind_its_last_part_and_what_that_had_to_say() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [mut zero, mut one, two] = three();
    let segments = parts(&one, &two);
    // A guest, whose end no guardian reports.
    let guest = SlotRecord { state: SlotState::Alive, incarnation: 1, ..SlotRecord::default() };
    segments[0].set_slot_record(1, guest);
    let process = Process::in_slot(&segments[0], 1, 0);
    process.hear().unwrap();
    zero.ask(|context| context.tell(WordContent::JobOver { job: JOB }));
    two.ask(|context| context.remove_part(JOB));
    one.ask(|context| context.remove_part(JOB));
    let is_over = |content: &WordContent| matches!(content, WordContent::JobOver { job: JOB });
    let of_guest = |content: &WordContent| matches!(content, WordContent::ProcessEnded { process, .. } if process.slot == Slot(1));
    for daemon in [&mut zero, &mut one] {
        assert!(daemon.wait_word(of_guest).number < daemon.wait_word(is_over).number);
    }
}

#[test]
fn a_lost_host_stands_in_the_far_records() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [_zero, mut one, mut two] = three();
    let segments = parts(&one, &two);
    two.end(End::Killed);
    one.wait_word(|content| matches!(content, WordContent::HostLost { .. }));
    let record = segments[0].far_record(0);
    assert!(record.is_host_lost && record.state == SlotState::Dead);
    assert_eq!(segments[0].host_name(2).to_string(), "h2");
}

#[test]
fn a_job_ends_before_its_host_is_lost() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [_zero, mut one, mut two] = three();
    let segments = parts_of(FRAGILE, [&one, &two]);
    two.end(End::Killed);
    let lost = one.wait_word(|content| matches!(content, WordContent::HostLost { .. }));
    let ends = |content: &WordContent| matches!(content, WordContent::JobEnds { .. });
    assert!(one.wait_word(ends).number < lost.number);
    // The calls of its processes fail because of the job's end.
    assert_eq!(segments[0].far_record(0).state, SlotState::Alive);
}

#[test]
fn a_broken_lane_ends_no_job_while_its_host_may_be_lost() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [_zero, mut one, mut two] = three();
    let segments = parts(&one, &two);
    let process = Process::hello(&segments[0]);
    process.say(&Handover::Want { far: 0 });
    let (lane, ..) = process.lane();
    process.say(&Handover::Broken { far: 0, incarnation: 1, lane, errno: 71 });
    // The report is due before the host is lost, and after it has been silent for long.
    std::thread::sleep(Duration::from_millis(options().host_timeout_ms / 5));
    two.end(End::Killed);
    one.wait_word(|content| matches!(content, WordContent::HostLost { .. }));
    let ends = |seen: &Seen| matches!(seen, Seen::Word(word) if matches!(word.content, WordContent::JobEnds { job: JOB, .. }));
    assert!(!one.seen_so_far().iter().any(ends));
}

#[test]
fn a_process_that_gets_no_lane_for_the_others_limit_has_the_relay_at_once() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [mut zero, one, two] = three();
    let segments = parts_of(JOB, [&zero, &one, &two]);
    let limited = Process::limited(&segments[0], 1);
    limited.say(&Handover::Want { far: 0 });
    let _lane = limited.lane();
    let other = Process::welcomed(&segments[2]);
    other.say(&Handover::Want { far: 0 });
    assert!(matches!(other.hear().unwrap(), (Some(Handover::Unreachable { far: 0 }), None)));
    let host = u32::from(zero.entry.host.0);
    other.say(&Handover::Relay { host });
    let heard = other.hear().unwrap();
    assert!(matches!(heard, (Some(Handover::Relayed { .. }), Some(_))), "{heard:?}");
    // What the hosts had to say is here before this.
    one.send(&zero, "over");
    zero.wait_text();
    let said = zero.seen_so_far();
    assert!(!said.iter().any(|seen| matches!(seen, Seen::Said(_))), "{:?}", zero.kept);
}

#[test]
fn a_process_that_has_not_said_hello_has_no_more_lanes_than_its_job_allows() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [zero, one, two] = three();
    let settings = Settings { paths: [1 << Settings::LANES_BIT, 0, 0], ..Settings::default() };
    let segments = parts_with(&settings, JOB, [&zero, &one, &two]);
    let first = Process::hello(&segments[1]);
    first.say(&Handover::Want { far: 0 });
    // Its end would be seen on the other side before that has heard of it.
    let _lane = first.lane();
    let second = Process::welcomed(&segments[2]);
    second.say(&Handover::Want { far: 0 });
    assert!(matches!(second.hear().unwrap(), (Some(Handover::Unreachable { far: 0 }), None)));
    Process::hello(&segments[0]).lane();
}

#[test]
fn a_caller_for_a_job_that_is_over_is_no_stranger() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [mut zero, one, _two] = three();
    // The process with the lower number dials, so both sides call in some of the rounds.
    for round in 0..6 {
        let job = JobId(JOB.0 + round);
        let segments = parts_of(job, [&zero, &one]);
        let (own, over) = if round % 2 == 0 { (1, &zero) } else { (0, &one) };
        over.ask(move |context| context.remove_part(job));
        let process = Process::welcomed(&segments[own]);
        process.say(&Handover::Want { far: 0 });
        assert!(matches!(process.hear().unwrap(), (Some(Handover::Unreachable { .. }), None)));
        drop(process);
        for daemon in [&zero, &one] {
            daemon.ask(move |context| context.remove_part(job));
        }
    }
    // What the hosts had to say is here before this.
    one.send(&zero, "over");
    zero.wait_text();
    assert!(
        !zero.seen_so_far().iter().any(|seen| matches!(seen, Seen::Said(_))),
        "{:?}",
        zero.kept
    );
}

#[test]
fn segments_get_numbers_that_no_other_host_has() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [zero, one, _two] = three();
    let segments = parts(&zero, &one);
    let give_up = Instant::now() + PATIENCE;
    let taken = segments.map(|segment| {
        loop {
            if let Some(number) = segment.take_group_number() {
                return number;
            }
            assert!(Instant::now() < give_up);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    assert_ne!(taken[0] / 4_096, taken[1] / 4_096, "{taken:?}");
}

#[test]
fn a_process_that_talks_nonsense_is_sent_away() {
    let _watchdog = Watchdog::start(Duration::from_secs(170));
    let [zero, one, _two] = three();
    let segments = parts(&zero, &one);
    for nonsense in [
        Handover::Hello { slot: 0, incarnation: 1, lanes_max: 0 },
        Handover::Want { far: 9 },
        Handover::Unreachable { far: 0 },
    ] {
        let process = Process::welcomed(&segments[0]);
        process.say(&nonsense);
        let answer = process.hear();
        assert!(matches!(answer, Ok((None, None)) | Err(_)), "{answer:?}");
    }
}
