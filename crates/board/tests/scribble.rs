//! A process that writes random words anywhere in the segment harms the others' data at worst:
//! no panic, no access out of bounds, no endless loop.
//!
//! Two seconds, or 60 with `LANDECK_SOAK=1`. The segment lies in this process's own memory, so an
//! address sanitizer sees every access outside it:
//! `RUSTFLAGS=-Zsanitizer=address cargo +nightly test -p landeck-board --test scribble --target x86_64-unknown-linux-gnu`
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use landeck_board::{Board, Coming, Deposit, INLINE_BYTES, LinesPlace, Outcome, PIECES_MAX};
use landeck_memory::mailbox_queue::{MailboxMemory, MailboxReceiver, MailboxSender};
use landeck_memory::ring::{RingMemory, RingReceiver, RingSender};
use landeck_memory::system::now_ns;
use landeck_memory::waiter::{Doorbell, Waiting};
use landeck_memory::{
    Block, Borrowed, Buffer, Bytes, End, Heap, InCell, Lent, MessageCells, Operation, Segment,
    SegmentPlan, WaitRecord, Waiter,
};
use landeck_testing::{Random, Watchdog, seed};

const PROCESSES: u32 = 3;
const HEAP_BYTES: u64 = 512 * 1024;
/// How long a segment is used: what is lost to the scribbles is lost for its life.
const EPISODE: Duration = Duration::from_millis(50);

#[test]
fn scribbles_lead_to_wrong_data_and_nothing_else() {
    let soak = std::env::var_os("LANDECK_SOAK").is_some();
    let length = Duration::from_secs(if soak { 60 } else { 2 });
    let _watchdog = Watchdog::start(length + Duration::from_secs(200));
    let mut random = Random::new(seed());
    let (began, mut sums) = (Instant::now(), [0; 7]);
    while began.elapsed() < length {
        let counts = run_episode(&mut random);
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let [scribbles, rung, posted, blocks, waits, operations, cells] = sums;
    println!(
        "{scribbles} words overwritten under {rung} ring messages, {posted} posts, {blocks} blocks, {waits} waits, {operations} operations on a board, {cells} messages in cells"
    );
    assert!(sums.iter().all(|&sum| sum > 0), "every part has done something: {sums:?}");
}

fn run_episode(random: &mut Random) -> [u64; 7] {
    let segment = Segment::local(&SegmentPlan {
        heap_bytes_per_process: HEAP_BYTES,
        guests: 0,
        cpus: 1 + random.below(4) as u32,
        is_hardened: random.once_in(2),
        ..SegmentPlan::new(random.bits(), PROCESSES)
    });
    let over = AtomicBool::new(false);
    let parts = [scribble, use_rings, use_mailbox, use_heap, wait_and_wake, use_board, use_cells];
    thread::scope(|scope| {
        let threads = parts.map(|part| {
            let (segment, over, random) = (&segment, &over, Random::new(random.bits()));
            scope.spawn(move || part(segment, over, random))
        });
        thread::sleep(EPISODE);
        over.store(true, Ordering::Relaxed);
        threads.map(|thread| thread.join().expect("a part panicked: its message stands above"))
    })
}

/// Overwrites words: anywhere, and more often where control words lie close together.
fn scribble(segment: &Segment, over: &AtomicBool, mut random: Random) -> u64 {
    let words = segment.bytes().len() as u64 / 8;
    let (mut written, mut near) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        if random.once_in(16) {
            near = random.below(words);
            thread::yield_now();
        }
        let index = if random.once_in(4) { random.below(words) } else { near + random.below(64) };
        let place = segment.bytes().part(index as usize * 8, 8);
        if place.len() == 8 {
            // SAFETY: eight bytes of the segment, aligned, which stays mapped meanwhile.
            let word = unsafe { AtomicU64::from_ptr(place.start().as_ptr().cast()) };
            word.store(garbage(&mut random, word.load(Ordering::Relaxed)), Ordering::Relaxed);
            written += 1;
        }
    }
    written
}

/// Random bits, or something that looks more like what was there.
fn garbage(random: &mut Random, before: u64) -> u64 {
    match random.below(6) {
        0 => random.bits(),
        1 => before ^ 1 << random.below(64),
        2 => before.wrapping_add(random.below(7)).wrapping_sub(3),
        3 => random.below(300),
        4 => u64::MAX << random.below(64),
        _ => 0,
    }
}

/// In this test a ring message's head is: sequence | bulk flag at bit 16 | length in the high half.
fn ring_head(sequence: u16, length: usize, bulk: bool) -> u64 {
    u64::from(sequence) | u64::from(bulk) << 16 | 1 << 17 | (length as u64) << 32
}

fn ring_length(head: u64) -> (usize, bool) {
    ((head >> 32) as usize, head >> 16 & 1 != 0)
}

fn use_rings(segment: &Segment, over: &AtomicBool, mut random: Random) -> u64 {
    let data = vec![7; 20_000];
    let mut received = 0;
    while !over.load(Ordering::Relaxed) {
        let memory = || RingMemory::of(segment, 0, 1).expect("slot 0 has a ring 1");
        let (mut sender, mut receiver) = (RingSender::new(memory()), RingReceiver::new(memory()));
        let (mut sent, mut expected) = (1u16, 1u16);
        for _ in 0..2_000 {
            if random.once_in(2) {
                let bulk = random.once_in(4);
                let most = if bulk { sender.data_bytes_max() } else { 48 };
                let length = random.below(most as u64 + 1) as usize;
                let (head, data) = (ring_head(sent, length, bulk), Bytes::from(&data[..length]));
                let pushed = match bulk {
                    true => sender.push_bulk(head, 0, data),
                    false => sender.push_inline(head, 0, data),
                };
                sent = sent.wrapping_add(u16::from(pushed.is_ok()));
            }
            let Ok(message) = receiver.peek(expected, ring_length) else { break };
            let Some(message) = message else { continue };
            let (length, bulk) = ring_length(message.head);
            assert_eq!((message.data.len(), message.data.to_vec().len()), (length, length));
            receiver.consume(if bulk { length } else { 0 });
            expected = expected.wrapping_add(1);
            received += 1;
        }
    }
    received
}

fn use_mailbox(segment: &Segment, over: &AtomicBool, mut random: Random) -> u64 {
    let memory = || MailboxMemory::of(segment, 1).expect("slot 1 has a mailbox");
    let mut receiver = MailboxReceiver::new(memory());
    let mut senders = [0, 2].map(|slot| MailboxSender::new(memory(), slot));
    let mut received = 0;
    while !over.load(Ordering::Relaxed) {
        let sender = &mut senders[random.below(2) as usize];
        let _ = sender.post(random.bits(), 0, Bytes::from(&[1; 48][..]));
        let _ = (receiver.has_next(), receiver.is_empty_again());
        let everywhere = random.once_in(8);
        let (dead, held) = (random.below(9) as u32, random.below(9) as u32);
        let post = receiver.peek(everywhere, |slot| slot == dead, |slot, _| slot == held);
        let Some(post) = post else { continue };
        assert_eq!(post.data.to_vec().len(), 48);
        let position = post.position();
        receiver.consume(position);
        received += 1;
    }
    received
}

/// One thread is all members of a board by turns; the first member has no heap here.
fn use_board(segment: &Segment, over: &AtomicBool, mut random: Random) -> u64 {
    let lines: Vec<_> =
        (0..PROCESSES).map(|slot| LinesPlace::of_world(segment.plan(), slot)).collect();
    let open = |own| {
        Board::open(segment, segment.plan().world_board(), &lines, own)
            .expect("the first world's board")
    };
    let mut boards: Vec<Board> = (0..PROCESSES).map(open).collect();
    let mut heaps = [1, 2].map(|slot| Heap::of(segment, slot).expect("nobody has its heap"));
    let mut operations = 0;
    while !over.load(Ordering::Relaxed) {
        for (member, board) in boards.iter_mut().enumerate() {
            let (number, _) = board.begin(7);
            let heap = member.checked_sub(1).map(|at| &mut heaps[at]);
            if board.has_room(number) {
                lay_down(board, heap, number, &mut random);
            }
            take_part(board, number, &mut random);
            board.collect();
            let _ = board.has_room(number);
            board.end(number);
            operations += 1;
        }
    }
    operations
}

/// Writes ones from `start` on.
fn write_ones(room: &Buffer, start: usize) {
    room.write(start, Bytes::from(&vec![1; room.len() - start][..]));
}

fn lay_down(board: &mut Board, heap: Option<&mut Heap>, number: u32, random: &mut Random) {
    let length = random.below(5_000) as usize;
    let filled = random.below(length as u64 + 1) as usize;
    if random.once_in(3)
        && board.come_in_cell(number, (7, 0), (length, filled, false), |room| write_ones(&room, 0))
    {
        if let Some(cell) = board.kept(number) {
            write_ones(&cell, filled);
        }
        board.set_filled(number, length as u64);
        board.count(number, 7);
        return;
    }
    let block = heap.filter(|_| random.once_in(2)).and_then(|heap| heap.allocate(length).ok());
    match block {
        Some(block) => {
            let filled = random.below(length as u64 + 1) as usize;
            board.come_with(number, (7, 0), block, (length, filled));
            board.set_filled(number, length as u64);
            if let Some(block) = board.take_kept(number) {
                board.put_kept(number, block);
            }
        }
        None => {
            board.come(number, 7, 0, Bytes::from(&[1; INLINE_BYTES][..length.min(INLINE_BYTES)]));
        }
    }
    if board.count(number, 7) == Coming::Last {
        board.set_result(number, &[2; 20]);
        board.open_pieces(number);
        board.decide(number, Outcome::Done);
    }
    board.wake();
}

/// Looks at all deposits of other members, wherever they may be by now.
fn take_part(board: &mut Board, number: u32, random: &mut Random) {
    for member in 0..PROCESSES {
        let _ = (board.came(member, number, 7), board.check(member, number));
        let _ = (board.refuses(member, number), board.is_gone(member));
        if let Ok(Deposit::Block { bytes, filled, resolved }) = board.deposit(member, number) {
            assert!(filled <= bytes.len() && resolved <= bytes.len());
            let place = random.below(bytes.len() as u64 + 1) as usize;
            assert!(bytes.part(place, 100).to_vec().len() <= 100);
            board.take_over(member, number);
        }
    }
    let count = 1 + random.below(PIECES_MAX as u64) as u32;
    if let Some(piece) = board.claim_piece(number, count) {
        assert!(piece < count);
        board.finish_piece(number, piece, count);
    }
    if let Ok(owner) = board.piece_owner(number, random.below(70) as u32) {
        assert!(owner < PROCESSES);
    }
    let _ = (board.outcome(number), board.result(number).is_ok(), board.is_revoked());
    board.sleeps(true);
    board.wakes(true);
}

/// The blocks that the user of a heap holds.
#[derive(Default)]
struct Holdings {
    blocks: VecDeque<Block>,
    lent: VecDeque<Lent>,
    borrowed: VecDeque<Borrowed>,
}

/// Two processes that answer each other in cells; what one is told can be overwritten too.
fn use_cells(segment: &Segment, over: &AtomicBool, mut random: Random) -> u64 {
    let mut both = [0, 1].map(|slot| MessageCells::of(segment, slot));
    let (data, mut received) = (vec![7; 100_000], 0);
    while !over.load(Ordering::Relaxed) {
        let (from, magnitude) = (random.below(2) as usize, random.below(17));
        let bytes = Bytes::from(&data[..random.below(1 << magnitude) as usize]);
        let Some(filling) = both[from].begin(bytes) else { continue };
        let mut place = filling.place();
        both[from].finish(filling, bytes);
        if random.once_in(4) {
            let (cell, bytes) = (place.cell.into(), place.bytes.into());
            let [cell, bytes] = [cell, bytes].map(|word| garbage(&mut random, word) as u32);
            place = InCell { cell, bytes };
        }
        let mut copied = 0;
        both[1 - from].copy_out(place, |at, piece| {
            copied += piece.to_vec().len() as u64;
            assert!(at + piece.len() as u64 <= u64::from(place.bytes));
        });
        both[1 - from].take_over(place);
        received += u64::from(copied > 0);
    }
    received
}

fn use_heap(segment: &Segment, over: &AtomicBool, mut random: Random) -> u64 {
    let mut heap = Heap::of(segment, 0).expect("nobody has the heap of slot 0");
    let (mut holdings, mut allocated) = (Holdings::default(), 0);
    while !over.load(Ordering::Relaxed) {
        match random.below(10) {
            0 | 1 => allocated += u64::from(allocate(&mut heap, &mut holdings, &mut random)),
            2 => lend(segment, &mut heap, &mut holdings, &mut random),
            3 => read(&holdings, &mut random),
            4 => drop(holdings.borrowed.pop_front()),
            5 => drop(holdings.lent.pop_front()),
            6 => fill(&mut holdings, &mut random),
            7 => give(segment, &mut heap, &mut holdings, &mut random),
            8 => heap.prepare(random.below(100_000) as usize),
            _ if random.once_in(32) => heap.reclaim_from(1),
            _ => heap.collect(),
        }
        assert!(heap.bytes_in_use() <= heap.limit());
    }
    allocated
}

fn allocate(heap: &mut Heap, holdings: &mut Holdings, random: &mut Random) -> bool {
    let magnitude = random.below(18);
    let bytes = random.below(1 << magnitude) as usize;
    let Ok(mut block) = heap.allocate(bytes) else {
        holdings.blocks.pop_front();
        return false;
    };
    let range = |block: &Block| (block.as_ptr() as usize, block.as_ptr() as usize + block.len());
    let (start, end) = range(&block);
    let overlaps = holdings.blocks.iter().map(range).any(|(from, to)| start < to && from < end);
    assert!(!overlaps || start == end, "two blocks of one owner share memory");
    block.fill(1);
    holdings.blocks.push_back(block);
    true
}

fn lend(segment: &Segment, heap: &mut Heap, holdings: &mut Holdings, random: &mut Random) {
    let Some(block) = holdings.blocks.pop_front() else { return };
    let lent = heap.lend(block, &[1, 2], random.below(3_000)).expect("two readers, its own block");
    for reader in 0..2 {
        let mut place = lent.place(reader);
        if random.once_in(4) {
            // Messages can be overwritten as well.
            place.owner ^= random.below(2) as u32;
            place.offset = garbage(random, place.offset);
            place.window = garbage(random, place.window);
        }
        if let Ok(borrowed) = Borrowed::open(segment, place) {
            holdings.borrowed.push_back(borrowed);
        }
    }
    if random.once_in(16) {
        holdings.blocks.push_back(lent.withdraw());
    } else {
        holdings.lent.push_back(lent);
    }
}

fn give(segment: &Segment, heap: &mut Heap, holdings: &mut Holdings, random: &mut Random) {
    let Some(block) = holdings.blocks.pop_front() else { return };
    let given = heap.give(block, 1).expect("its own block");
    if random.once_in(8) {
        return holdings.blocks.push_back(heap.withdraw(given));
    }
    if let Ok(borrowed) = Borrowed::open(segment, given.place()) {
        holdings.borrowed.push_back(borrowed);
    }
}

fn read(holdings: &Holdings, random: &mut Random) {
    for borrowed in holdings.borrowed.iter().take(4) {
        let position = random.below(borrowed.filled() + 2);
        let piece = borrowed.piece(position, random.below(5_000) as usize);
        assert_eq!(piece.to_vec().len(), piece.len());
        borrowed.set_drained(position + piece.len() as u64);
    }
}

fn fill(holdings: &mut Holdings, random: &mut Random) {
    let data = [3; 4_000];
    for lent in holdings.lent.iter_mut().take(4) {
        let wanted = random.below(4_000) as usize;
        assert!(lent.fill(Bytes::from(&data[..wanted])) <= wanted);
        assert!(lent.drained() <= lent.filled());
        let _ = lent.is_returned();
    }
}

/// Waits for nothing: it ends by its deadline, or because the scribbles say so.
struct Nothing<'a>(&'a Segment);

impl Waiting for Nothing<'_> {
    fn poll(&mut self) -> bool {
        false
    }

    fn verdict(&mut self) -> Option<End> {
        self.0.slot_record(1).state.is_gone().then_some(End::PeerFailed)
    }

    fn record(&self) -> WaitRecord {
        WaitRecord { operation: Operation::Receive, peer: Some(1), ..WaitRecord::default() }
    }
}

fn wait_and_wake(segment: &Segment, over: &AtomicBool, mut random: Random) -> u64 {
    let mut waiter = Waiter::new(segment, 2);
    let bells = [0, 1, 2].map(|slot| Doorbell::of(segment, slot).expect("there are three slots"));
    let mut waits = 0;
    while !over.load(Ordering::Relaxed) {
        bells.iter().for_each(Doorbell::ring);
        let end = waiter.wait(&mut Nothing(segment), Some(now_ns() + random.below(3_000_000)));
        assert!(end != End::Ready, "nothing is never there");
        for slot in [0, 1, 2, u32::MAX] {
            let _ = (segment.wait_record(slot), segment.counters(slot), segment.presence(slot));
        }
        waits += 1;
    }
    waits
}
