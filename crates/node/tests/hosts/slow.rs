//! Receivers that take nothing for a while: they hold up their senders alone, and nothing is lost.

use landeck::{Job, Loan, Tag};

use crate::job::{EACH, RANKS, on_hosts, run};
use crate::relayed::stop_and_go;
use crate::support::{is_member, text};

#[test]
fn a_stopped_receiver_of_a_lane_holds_up_its_senders_alone() {
    let test = "slow::a_stopped_receiver_of_a_lane_holds_up_its_senders_alone";
    if is_member() {
        return on_hosts(test, stop_and_go);
    }
    let Some(ended) = run(test, &["--path", "lane"]) else { return };
    assert!(ended.status.success(), "{}", text(&ended));
}

#[test]
fn a_receiver_with_a_full_heap_holds_up_its_senders_alone() {
    let test = "slow::a_receiver_with_a_full_heap_holds_up_its_senders_alone";
    on_hosts(test, fill_and_receive);
}

/// Fills the heap of this process.
fn fill(job: &Job) -> Vec<Loan<u8>> {
    let mut loans = Vec::new();
    for bytes in [16 << 20, 1 << 20, 64 << 10, 4 << 10, 64] {
        while let Ok(loan) = job.loan::<u8>(bytes) {
            loans.push(loan);
        }
    }
    loans
}

/// Numbered data.
fn numbered(number: u64, length: usize) -> Vec<u64> {
    (0..length as u64).map(|at| number << 32 | at).collect()
}

/// Rank 0 sends more than the last rank keeps, whose heap is full. That one talks to all others meanwhile.
fn fill_and_receive(job: &Job) {
    const MESSAGES: u64 = 800;
    const SHORT: usize = 2_000;
    const LONG: usize = 100_000;
    const ROUNDS: u64 = 100;
    const LAST: usize = RANKS - 1;
    const { assert!(RANKS == 4 && EACH == 2) }
    let world = job.world();
    let length = |number: u64| if number % 100 == 99 { LONG } else { SHORT };
    let talk = |other: usize| {
        for round in 0..ROUNDS {
            let (sent, mut got) = ([round, world.rank() as u64], [0; 2]);
            let with = (other, Tag(1));
            world.send_receive(&sent, with, &mut got, with).unwrap();
            assert_eq!(got, [round, other as u64]);
        }
    };
    match world.rank() {
        0 => {
            assert_eq!(world.receive::<u8>(LAST, Tag(2)).unwrap().0, 1, "the heap is full");
            for number in 0..MESSAGES {
                world.send(&numbered(number, length(number)), LAST, Tag(3)).unwrap();
            }
        }
        LAST => {
            let loans = fill(job);
            assert!(loans.len() > 3, "{}", loans.len());
            world.send(&[1u8], 0, Tag(2)).unwrap();
            (1..LAST).for_each(talk);
            drop(loans);
            for number in 0..MESSAGES {
                let (got, _) = world.receive_vec::<u64>(0, Tag(3)).unwrap();
                assert!(got == numbered(number, length(number)), "message {number}");
            }
        }
        _ => {
            talk(LAST);
            talk(LAST - world.rank()); // the two of the middle
        }
    }
    world.barrier().unwrap();
}
