//! Collective operations on messages: those of one kind meet the operations on memory, all others
//! arrive as what was packed.

use landeck::unstable::arithmetic::Operation;
use landeck::unstable::collectives::Preset;
use landeck::{
    Error, ErrorKind, Job, Message, MessageError, MessageWorld, Options, Sum, ThreadMode,
};

use crate::support::{is_member, job_of, run_well};

const PROCESSES: usize = 3;
/// Which threads of a member may call.
const THREADS: &str = "LANDECK_TEST_THREADS";

#[test]
fn messages_go_to_everybody_and_come_from_everybody() {
    if !is_member() {
        run_well(&mut job_of(
            PROCESSES,
            "messages::messages_go_to_everybody_and_come_from_everybody",
            &[],
        ));
        return;
    }
    let job = Job::join().unwrap();
    let mut members = MessageWorld::new(job.world());
    let (rank, size) = (members.world().rank(), members.world().size());
    for name in ["", "board", "flat", "deck2003", "mpi2003"] {
        if name == "board" && job.spans_hosts() {
            continue;
        }
        members.go_by(name.parse::<Preset>().ok());
        for length in [1usize, 8, 8, 3000, 3000, 1, 20_000, 2] {
            let mut message = Message::new();
            if rank == length % size {
                message.pack_text("all").pack(&vec![length as u64; length]);
            }
            members.broadcast(&mut message, length % size).unwrap();
            message.rewind();
            assert_eq!(message.unpack_text().unwrap(), "all");
            assert_eq!(message.unpack_all::<u64>(), vec![length as u64; length]);
            let mut own = Message::new();
            own.pack(&vec![rank as u16; length]);
            let mut all = Message::new();
            members.gather(&own, &mut all, 0).unwrap();
            assert_eq!(all.len(), if rank == 0 { (size * length) as u64 } else { 0 });
            members.scatter(&all, &mut own, 0).unwrap();
            assert_eq!(own.unpack_all::<u16>(), vec![rank as u16; length]);
        }
        let mut own = Message::new();
        own.pack(&[1.5f64]);
        let mut sum = Message::new();
        members.reduce(&own, &mut sum, Operation::Sum, 1).unwrap();
        if rank == 1 {
            assert_eq!(sum.unpack_value::<f64>().unwrap(), 1.5 * size as f64);
        }
        own.pack_text("mixed");
        let refused = members.all_reduce(&own, &mut sum, Operation::Sum).unwrap_err();
        assert!(matches!(refused.kind, ErrorKind::Message(MessageError::NotOneKind)), "{refused}");
        let everybodys = members.all_gather_any(&own).unwrap();
        assert_eq!(everybodys.len(), size);
        assert!(everybodys.iter().all(|message| message.len() == 2));
    }
    job.leave().unwrap();
}

/// The root's way is another one for values of one kind than for others, as it is for lengths that do not fit
/// those of the last operation; the others cannot know. With one thread and with several.
#[test]
fn short_messages_of_any_form_and_length_follow_each_other() {
    const NAME: &str = "messages::short_messages_of_any_form_and_length_follow_each_other";
    if !is_member() {
        for processes in [2, PROCESSES] {
            for threads in ["single", "multiple"] {
                run_well(job_of(processes, NAME, &[]).env(THREADS, threads));
            }
        }
        return;
    }
    let is_single = std::env::var(THREADS).is_ok_and(|threads| threads == "single");
    let threads = if is_single { ThreadMode::Single } else { ThreadMode::Multiple };
    let job = Job::join_with(Options { threads, ..Options::default() }).unwrap();
    let mut members = MessageWorld::new(job.world());
    let (rank, size) = (members.world().rank(), members.world().size());
    let lengths =
        [13usize, 13, 14, 13, 1, 0, 3, 2, 4, 5, 1280, 1280, 1270, 13, 2047, 2048, 8200, 1];
    let (mut came, mut own) = (Message::new(), Message::new());
    for (turn, &length) in lengths.iter().chain(&lengths).enumerate() {
        let root = turn % size;
        // Every third message has two kinds of values.
        let is_mixed = turn % 3 == 0;
        let value = |at: usize| (turn * 10_000 + at) as u64;
        if rank == root {
            came.clear();
            came.pack(&(0..length).map(value).collect::<Vec<_>>());
            if is_mixed {
                came.pack_text("end");
            }
        }
        members.broadcast(&mut came, root).unwrap();
        came.rewind();
        assert_eq!(came.unpack_all::<u64>(), (0..length).map(value).collect::<Vec<_>>());
        if is_mixed {
            assert_eq!(came.unpack_text().unwrap(), "end");
        }
        assert!(came.is_unpacked());
        let mut all = Message::new();
        if rank == root {
            all.pack(&(0..length * size).map(value).collect::<Vec<_>>());
            if is_mixed {
                all.clear();
                for part in 0..size {
                    all.pack_text(&value(part).to_string().repeat(1 + length));
                }
            }
        }
        members.scatter(&all, &mut own, root).unwrap();
        if is_mixed {
            assert_eq!(own.unpack_text().unwrap(), value(rank).to_string().repeat(1 + length));
        } else {
            let first = rank * length;
            assert_eq!(
                own.unpack_all::<u64>(),
                (first..first + length).map(value).collect::<Vec<_>>()
            );
        }
        assert!(own.is_unpacked());
    }
    job.leave().unwrap();
}

#[test]
fn messages_and_memory_meet_in_one_operation() {
    if !is_member() {
        run_well(&mut job_of(
            PROCESSES,
            "messages::messages_and_memory_meet_in_one_operation",
            &[],
        ));
        return;
    }
    let job = Job::join().unwrap();
    let world = job.world();
    let size = world.size();
    for length in [1usize, 100, 30_000] {
        let sum = if world.rank() == 0 {
            let mut message = Message::new();
            message.pack(&vec![1i32; length]);
            let own = message.clone();
            MessageWorld::new(world.clone())
                .all_reduce(&own, &mut message, Operation::Sum)
                .unwrap();
            message.unpack_all::<i32>()
        } else {
            let mut values = vec![1i32; length];
            world.all_reduce_in_place(&mut values, Sum).unwrap();
            values
        };
        assert_eq!(sum, vec![size as i32; length]);
    }
    job.leave().unwrap();
}

#[test]
fn lengths_that_differ_are_told() {
    if !is_member() {
        run_well(&mut job_of(2, "messages::lengths_that_differ_are_told", &[]));
        return;
    }
    let job = Job::join().unwrap();
    let members = MessageWorld::new(job.world());
    let rank = members.world().rank();
    let mut own = Message::new();
    own.pack(&vec![0u8; 10 + 10 * rank]);
    let told = members.gather(&own, &mut Message::new(), 0);
    match rank {
        0 => assert!(
            matches!(told, Err(Error { kind: ErrorKind::LengthMismatch { .. }, .. })),
            "{told:?}"
        ),
        _ => told.unwrap(),
    }
    members.barrier().unwrap();
    job.leave().unwrap();
}
