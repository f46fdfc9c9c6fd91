//! The heap's tests: once as `tests_in_front`, and once as `tests_apart`, where control lines lie as in
//! a hardened job.

use super::*;
use crate::plan::{PAGE_BYTES, SegmentPlan};
use crate::private::bytes::Bytes;
use crate::segment::Segment;
use landeck_testing::Watchdog;
use std::sync::atomic::Ordering;
use std::time::Duration;

const HEAP_BYTES: u64 = 1 << 20;

/// A heap whose common part has so many bytes.
const fn with_reserve(bytes: u64) -> u64 {
    bytes / 2 * 3 + 2 * PAGE_BYTES
}

fn is_apart() -> bool {
    module_path!().ends_with("apart")
}

fn heap() -> (Segment, Heap) {
    let plan = SegmentPlan {
        heap_bytes_per_process: with_reserve(HEAP_BYTES),
        guests: 0,
        is_hardened: is_apart(),
        ..SegmentPlan::new(1, 3)
    };
    let segment = Segment::local(&plan);
    let heap = Heap::of(&segment, 0).expect("slot 0 is there and nobody has its heap");
    (segment, heap)
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

#[test]
fn long_blocks_begin_in_the_middle_of_a_page_where_there_is_room() {
    let (segment, mut heap) = heap();
    let page = PAGE_BYTES as usize;
    let blocks: Vec<_> = [1, 9000, 65_536, 64, 100_000]
        .into_iter()
        .flat_map(|bytes| heap.allocate(bytes))
        .filter(|block| block.len() > 8192)
        .collect();
    assert_eq!(blocks.len(), 3);
    assert!(blocks.iter().all(|block| block.offset() % PAGE_BYTES == PAGE_BYTES / 2));
    assert!(blocks.iter().all(|block| block.as_ptr().addr() % page == page / 2));
    drop((blocks, segment));
    assert!(heap.allocate(900_000).is_ok(), "all the room is there again");
}

#[test]
fn a_loan_is_read_in_place_and_comes_back() {
    let (segment, mut heap) = heap();
    let mut block = heap.allocate(1000).unwrap();
    block.copy_from_slice(&pattern(1000));
    let first = block.as_ptr();
    let lent = heap.lend(block, &[1], 1000).unwrap();
    let borrowed = Borrowed::open(&segment, lent.place(0)).unwrap();
    assert_eq!((borrowed.owner(), borrowed.filled()), (0, 1000));
    assert_eq!(borrowed.piece(0, 1000).to_vec(), pattern(1000));
    assert_eq!(borrowed.piece(990, 1000).to_vec(), pattern(1000)[990..]);
    drop(lent);
    let other = heap.allocate(1000).unwrap();
    let second = other.as_ptr();
    assert_ne!(second, first, "a reader has it still");
    drop(borrowed);
    heap.collect();
    drop(other);
    heap.collect();
    assert_eq!(heap.bytes_in_use(), 0);
    let again = [heap.allocate(1000).unwrap(), heap.allocate(1000).unwrap()];
    let places = again.each_ref().map(|block| block.as_ptr());
    assert_eq!(places, [second, first], "the last one back is the next one out");
}

#[test]
fn a_block_returns_when_its_last_holder_is_gone() {
    let (segment, mut heap) = heap();
    let block = heap.allocate(10).unwrap();
    let lent = heap.lend(block, &[1, 2, 2], 10).unwrap();
    let readers = [0, 1, 2].map(|reader| Borrowed::open(&segment, lent.place(reader)).unwrap());
    let [first, second, third] = readers;
    let stale = lent.place(1);
    drop((first, second));
    assert_eq!(
        Borrowed::open(&segment, stale).unwrap_err(),
        BlockRangeError::Stale { owner: 0 },
        "given back already"
    );
    assert!(!lent.is_returned());
    drop(third);
    assert!(lent.is_returned());
    heap.collect();
    assert!(heap.bytes_in_use() > 0, "the owner has it still");
    drop(lent);
    heap.collect();
    assert_eq!(heap.bytes_in_use(), 0);
}

#[test]
fn a_transfer_larger_than_its_window_goes_round() {
    let (segment, mut heap) = heap();
    for (window, total) in [(100, 1000), (64, 64), (100_000, 300_000), (7, 100), (50_000, 10)] {
        let data = pattern(total);
        let block = heap.allocate(window).unwrap();
        let mut lent = heap.lend(block, &[1], 0).unwrap();
        let borrowed = Borrowed::open(&segment, lent.place(0)).unwrap();
        let (mut sent, mut received) = (0, Vec::new());
        while received.len() < total {
            sent += lent.fill(Bytes::from(&data[sent..]));
            assert!(sent - received.len() <= window);
            let piece = borrowed.piece(received.len() as u64, 40_000);
            received.extend(piece.to_vec());
            borrowed.set_drained(received.len() as u64);
        }
        assert_eq!((received == data, lent.drained()), (true, total as u64), "{window}");
        assert_eq!(lent.fill(Bytes::from(&data[..1])), 1, "there is room after it");
    }
}

#[test]
fn a_pipeline_keeps_its_bytes_between_threads() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let (segment, mut heap) = heap();
    let data = pattern(3_000_000);
    let block = heap.allocate(70_000).unwrap();
    let mut lent = heap.lend(block, &[1], 0).unwrap();
    let place = lent.place(0);
    let expected = data.clone();
    let reader = std::thread::spawn(move || {
        let borrowed = Borrowed::open(&segment, place).unwrap();
        let mut received = Vec::new();
        while received.len() < expected.len() {
            let piece = borrowed.piece(received.len() as u64, usize::MAX);
            if piece.is_empty() {
                std::thread::yield_now();
            }
            received.extend(piece.to_vec());
            borrowed.set_drained(received.len() as u64);
        }
        assert!(received == expected);
    });
    let mut sent = 0;
    while sent < data.len() {
        let taken = lent.fill(Bytes::from(&data[sent..]));
        if taken == 0 {
            std::thread::yield_now();
        }
        sent += taken;
    }
    reader.join().unwrap();
    assert!(lent.is_returned());
}

#[test]
fn blocks_come_back_from_many_threads() {
    let _watchdog = Watchdog::start(Duration::from_secs(200));
    let (segment, mut heap) = heap();
    let (to_readers, for_readers) = std::sync::mpsc::channel::<[BlockRange; 2]>();
    let (to_second, for_second) = std::sync::mpsc::channel::<BlockRange>();
    let check = |segment: &Segment, place| {
        let borrowed = Borrowed::open(segment, place).unwrap();
        let mut copy = borrowed.piece(0, 300).to_vec();
        copy.dedup();
        assert_eq!(copy.len(), 1, "a block was used anew while it was read");
    };
    let second_segment = segment.clone();
    let threads = [
        std::thread::spawn(move || {
            for [mine, other] in for_readers {
                to_second.send(other).unwrap();
                check(&segment, mine);
            }
        }),
        std::thread::spawn(move || {
            for_second.into_iter().for_each(|place| check(&second_segment, place));
        }),
    ];
    for round in 0..20_000u32 {
        let bytes = 300 + round as usize % 5 * 100;
        let mut block = loop {
            match heap.allocate(bytes) {
                Ok(block) => break block,
                Err(_) => std::thread::yield_now(),
            }
        };
        block.fill(round as u8);
        let lent = heap.lend(block, &[1, 2], bytes as u64).unwrap();
        to_readers.send([lent.place(0), lent.place(1)]).unwrap();
    }
    drop(to_readers);
    for thread in threads {
        thread.join().unwrap();
    }
    heap.collect();
    // A block that was swept and lent anew before its old entry came may have cost other entries.
    heap.sweep();
    assert_eq!(heap.bytes_in_use(), 0);
}

#[test]
fn a_block_that_a_dead_reader_held_comes_back() {
    let (segment, mut heap) = heap();
    let dead = heap.allocate(10).unwrap();
    let dead = heap.lend(dead, &[2], 10).unwrap();
    drop(dead);
    let both = heap.allocate(10).unwrap();
    let both = heap.lend(both, &[2, 1, 2], 10).unwrap();
    let living = Borrowed::open(&segment, both.place(1)).unwrap();
    // It had given one of its two references back before it died.
    drop(Borrowed::open(&segment, both.place(0)).unwrap());
    heap.reclaim_from(2);
    assert!(!both.is_returned(), "the living reader has it");
    heap.reclaim_from(2);
    drop(both);
    drop(living);
    heap.collect();
    assert_eq!(heap.bytes_in_use(), 0);
}

#[test]
fn a_reader_that_died_before_its_push_loses_nothing() {
    let (segment, mut heap) = heap();
    let block = heap.allocate(10).unwrap();
    let lent = heap.lend(block, &[2], 10).unwrap();
    drop(Borrowed::open(&segment, lent.place(0)).unwrap());
    drop(lent);
    segment.return_word(0).store(0, Ordering::Relaxed);
    heap.collect();
    assert!(heap.bytes_in_use() > 0);
    heap.reclaim_from(2);
    assert_eq!(heap.bytes_in_use(), 0);
}

#[test]
fn a_full_heap_finds_what_the_stack_lost_and_joins_what_is_free() {
    let (segment, mut heap) = heap();
    let blocks: Vec<_> = std::iter::from_fn(|| heap.allocate(1000).ok()).collect();
    assert!(blocks.len() as u64 > HEAP_BYTES / 1300);
    let full = heap.allocate(1000).unwrap_err();
    assert_eq!((full.wanted, full.limit), (1000, HEAP_BYTES));
    drop(blocks);
    let whole = heap.allocate(900_000).unwrap();
    assert!(heap.allocate(200_000).is_err());
    drop(whole);
    let half = heap.allocate(500_000).unwrap();
    drop(half);
    segment.return_word(0).store(7_000, Ordering::Relaxed);
    assert!(heap.allocate(900_000).is_err(), "its place may be written to yet");
    assert!(heap.allocate(500_000).is_ok(), "but it is used again as it is");
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let (_segment, mut heap) = heap();
    for bytes in [usize::MAX, isize::MAX as usize, HEAP_BYTES as usize, 1 << 41] {
        assert_eq!(heap.allocate(bytes).unwrap_err().wanted, bytes as u64);
    }
    assert!(heap.allocate(HEAP_BYTES as usize - 192).unwrap().len() > 1_000_000);
    let empty = heap.allocate(0).unwrap();
    assert!(empty.is_empty());
    let mut lent = heap.lend(empty, &[1], 9).unwrap();
    assert_eq!((lent.filled(), lent.fill(Bytes::from(&[1u8][..]))), (0, 0));
    heap.set_limit(10_000);
    assert_eq!((heap.limit(), heap.allocate(20_000).is_err()), (10_000, true));
}

#[test]
fn a_block_that_cannot_be_lent_is_an_error() {
    let (segment, mut heap) = heap();
    let mut other = Heap::of(&segment, 1).unwrap();
    let block = other.allocate(1).unwrap();
    assert_eq!(heap.lend(block, &[1], 1).err(), Some(LendError::AnotherHeap));
    let block = heap.allocate(1).unwrap();
    let error = heap.lend(block, &[1; 32], 1).err();
    assert_eq!(error, Some(LendError::TooManyReaders(32)));
    assert!(Heap::of(&segment, 0).is_none() && Heap::of(&segment, 99_999).is_none());
    other.collect();
    heap.collect();
    assert_eq!((heap.bytes_in_use(), other.bytes_in_use()), (0, 0));
}

#[test]
fn a_block_that_was_given_away_is_its_readers_alone() {
    let (segment, mut heap) = heap();
    let mut block = heap.allocate(1000).unwrap();
    block.copy_from_slice(&pattern(1000));
    let given = heap.give(block, 1).unwrap();
    let place = given.place();
    drop(given);
    heap.sweep();
    assert!(heap.bytes_in_use() > 0, "the reader has it");
    let borrowed = Borrowed::open(&segment, place).unwrap();
    assert_eq!(borrowed.piece(0, 1000).to_vec(), pattern(1000));
    drop(borrowed);
    heap.collect();
    assert_eq!(heap.bytes_in_use(), 0);
    let unread = heap.allocate(1000).unwrap();
    drop(heap.give(unread, 2).unwrap());
    heap.reclaim_from(2);
    assert_eq!(heap.bytes_in_use(), 0, "who died before it looked has nothing");
}

#[test]
fn a_gift_that_never_reached_anybody_is_the_owners_again() {
    let (segment, mut heap) = heap();
    let block = heap.allocate(100).unwrap();
    let given = heap.give(block, 1).unwrap();
    let place = given.place();
    let block = heap.withdraw(given);
    heap.collect();
    heap.sweep();
    assert!(heap.bytes_in_use() > 0, "the owner has it");
    drop(block);
    assert!(Borrowed::open(&segment, place).is_err());
    heap.collect();
    assert_eq!(heap.bytes_in_use(), 0);
}

#[test]
fn a_block_that_was_prepared_is_the_next_one_out() {
    let (segment, mut heap) = heap();
    let first = heap.allocate(1000).unwrap();
    let place = first.as_ptr();
    let given = heap.give(first, 1).unwrap();
    let borrowed = Borrowed::open(&segment, given.place()).unwrap();
    drop(given);
    let in_use = heap.bytes_in_use();
    heap.prepare(1000);
    assert_eq!(heap.bytes_in_use(), in_use, "nobody has the new one");
    drop(borrowed);
    let second = heap.allocate(1000).unwrap();
    assert_ne!(second.as_ptr(), place, "the prepared one");
    drop(heap.give(second, 1).unwrap());
    heap.prepare(1000);
    assert_eq!(heap.allocate(1000).unwrap().as_ptr(), place, "the one that came back");
    heap.prepare(usize::MAX);
}

#[test]
fn a_withdrawn_loan_is_the_owners_again() {
    let (segment, mut heap) = heap();
    let block = heap.allocate(100).unwrap();
    let lent = heap.lend(block, &[1, 2], 0).unwrap();
    let place = lent.place(0);
    let block = lent.withdraw();
    assert!(Borrowed::open(&segment, place).is_err());
    drop(block);
    heap.collect();
    assert_eq!(heap.bytes_in_use(), 0);
}

#[test]
fn places_that_cannot_be_are_errors() {
    let (segment, mut heap) = heap();
    let block = heap.allocate(100).unwrap();
    let lent = heap.lend(block, &[1], 100).unwrap();
    let good = lent.place(0);
    let bad = [
        BlockRange { owner: 99_999, ..good },
        BlockRange { owner: u32::MAX, ..good },
        BlockRange { offset: 0, ..good },
        BlockRange { offset: u64::MAX, ..good },
        BlockRange { offset: with_reserve(HEAP_BYTES) - 64, ..good },
        BlockRange { offset: good.offset + 32, ..good },
        BlockRange { window: u64::MAX, ..good },
        BlockRange { window: with_reserve(HEAP_BYTES), ..good },
    ];
    for place in bad {
        let error = Borrowed::open(&segment, place).unwrap_err();
        assert!(matches!(error, BlockRangeError::Impossible { .. }), "{place:?}");
    }
    let stale = [
        BlockRange { generation: good.generation.wrapping_sub(1), ..good },
        BlockRange { offset: good.offset + 1, ..good },
        BlockRange { offset: good.offset + 64, ..good },
        BlockRange { owner: 1, ..good },
    ];
    for place in stale {
        let error = Borrowed::open(&segment, place).unwrap_err();
        assert!(matches!(error, BlockRangeError::Stale { .. }), "{place:?}");
    }
    assert!(Borrowed::open(&segment, good).is_ok());
}

#[test]
fn scribbled_words_cost_no_more_than_blocks() {
    for garbage in [u64::MAX, 0, 1, 0x8000_0000, 0xdead_beef_dead_beef] {
        let (segment, mut heap) = heap();
        let lents: Vec<_> = (0..8)
            .map(|_| {
                let block = heap.allocate(100).unwrap();
                heap.lend(block, &[1], 50).unwrap()
            })
            .collect();
        let readers: Vec<_> =
            lents.iter().map(|lent| Borrowed::open(&segment, lent.place(0)).unwrap()).collect();
        for at in (0..8192).step_by(8) {
            segment.long(segment.plan().heap(0) + at).store(garbage, Ordering::Relaxed);
            if is_apart() {
                segment.long(segment.plan().controls(0) + at).store(garbage, Ordering::Relaxed);
            }
        }
        segment.return_word(0).store(garbage as u32, Ordering::Relaxed);
        for (mut lent, reader) in lents.into_iter().zip(readers) {
            assert!(lent.drained() <= 50 && lent.fill(Bytes::from(&[0u8; 500][..])) <= 100);
            assert!(reader.filled() <= 100 && reader.piece(3, 1000).len() <= 100);
            reader.set_drained(u64::MAX);
            let _ = lent.is_returned();
        }
        heap.collect();
        heap.reclaim_from(1);
        let rest: Vec<_> = std::iter::from_fn(|| heap.allocate(100).ok()).collect();
        assert!((3000..4000).contains(&rest.len()), "{}", rest.len());
    }
}

#[test]
fn deposits_have_a_reserve_whatever_fills_the_heap() {
    let (segment, mut heap) = heap();
    let most = segment.plan().deposit_bytes() as usize;
    let rest: Vec<_> = std::iter::from_fn(|| heap.allocate(1000).ok()).collect();
    let long = heap.allocate_deposit(most).unwrap();
    assert!(long.is_reserved());
    let full = heap.allocate_deposit(10_000).unwrap_err();
    assert_eq!((full.limit, full.in_use), (with_reserve(HEAP_BYTES), heap.bytes_in_use()));
    drop(long);
    assert!(heap.allocate(1000).is_err(), "nothing else gets there");
    let short: Vec<_> = (0..10).map(|_| heap.allocate_deposit(most / 11).unwrap()).collect();
    assert!(short.iter().all(Block::is_reserved));
    drop(short);
    assert!(heap.allocate_deposit(most).is_ok(), "all the room is there again");
    drop(rest);
    assert!(!heap.allocate_deposit(10_000).unwrap().is_reserved());
    heap.collect();
    assert_eq!(heap.bytes_in_use(), 0);
}
