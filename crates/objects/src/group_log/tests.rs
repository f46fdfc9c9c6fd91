//! Senders that stop at every step, memory that comes back, and words that no process wrote.

use landeck_memory::membership::{SlotRecord, SlotState};
use landeck_memory::plan::SegmentPlan;
use landeck_memory::shared_area;

use super::*;

const SLOTS: u32 = 4;
const SNAPSHOT: u32 = 32;

fn set(segment: &Segment, slot: u32, state: SlotState) {
    let record = SlotRecord { state, incarnation: 1, ..SlotRecord::default() };
    segment.set_slot_record(slot, record);
}

struct Fixture {
    segment: Segment,
    area: SharedArea,
    views: Vec<GroupLog>,
}

fn fixture(messages: u32, bytes: u64) -> Fixture {
    let plan = SegmentPlan { heap_bytes_per_process: 0, guests: 0, ..SegmentPlan::new(1, SLOTS) };
    let segment = Segment::local(&plan);
    (0..SLOTS).for_each(|slot| set(&segment, slot, SlotState::Alive));
    let shape = GroupShape::new(messages, bytes, SNAPSHOT).unwrap();
    let file = shared_area::file(shape.memory_bytes(SLOTS)).unwrap();
    let area = SharedArea::map(&file, shape.memory_bytes(SLOTS)).unwrap();
    let view = |slot| GroupLog::open(area.clone(), &segment, slot, shape).unwrap();
    Fixture { views: (0..SLOTS).map(view).collect(), segment, area }
}

const NOTHING: Passed = Passed { messages: 0, entries: 0 };

/// The first empty place of the log. A message is the cell's number here.
fn end_of(log: &GroupLog) -> u64 {
    (0..).find(|&place| log.look(place) == Look::Empty).unwrap()
}

#[test]
fn a_sender_that_stops_at_any_step_has_sent_nothing_or_all() {
    let data: Vec<u8> = (0..9_000u32).map(|at| at as u8).collect();
    for bytes in [10, 9_000] {
        for steps in 0..=5 {
            let Fixture { segment, views, .. } = fixture(8, 5 * PAGE_BYTES);
            let claims = Claims::default();
            // The dead takes all steps but the last ones.
            let mut claim = None;
            if steps >= 1 {
                claim = views[1].claim(&claims, bytes, &NOTHING, Reach::All);
            }
            if let (true, Some(claim)) = (steps >= 2, &claim) {
                claim.fill(3, [1, 2, 4], Bytes::from(&data[..bytes as usize]));
            }
            if let (true, Some(claim)) = (steps >= 3, &claim) {
                assert!(views[1].accept(0, claim.cell()));
                if steps >= 4 {
                    views[1].put_broadcast(0, claim.cell());
                }
            }
            match claim {
                Some(claim) if steps >= 5 => claim.becomes_message(0),
                claim => std::mem::forget(claim),
            }
            set(&segment, 1, SlotState::Dead);
            check_survivor(&views[2], steps >= 3, &data[..bytes as usize]);
        }
    }
}

/// Checks that an accepted message is read whole, and that all other memory comes back.
fn check_survivor(log: &GroupLog, is_accepted: bool, data: &[u8]) {
    let end = end_of(log);
    assert_eq!(end, u64::from(is_accepted));
    if let Look::There(cell) = log.look(0) {
        log.put_broadcast(0, cell);
    }
    assert_eq!(log.broadcast(0).is_some(), is_accepted);
    if log.is_claimed_by_the_dead() {
        log.sweep(0..end, &[]);
    }
    assert!(!log.is_claimed_by_the_dead());
    if let Some(cell) = log.broadcast(0) {
        let described = log.described(cell).unwrap();
        assert_eq!((described.tag, described.words), (3, [1, 2, 4]));
        assert_eq!(log.data(cell, &described).unwrap().to_vec(), data);
        assert!(log.is_of(cell, 0), "it is settled whose it is");
    }
    // There are five pages; the message has three of them, or none.
    let claims = Claims::default();
    let is_long = data.len() > CELL_BYTES;
    let all = 5 * PAGE_BYTES;
    let free = log.claim(&claims, all, &NOTHING, Reach::All).is_some();
    assert_eq!(free, !(is_accepted && is_long));
    let passed = Passed { messages: 1, entries: 0 };
    assert!(log.claim(&claims, all, &passed, Reach::All).is_some(), "all have taken it");
}

#[test]
fn a_message_may_be_written_in_parts_with_other_things_between() {
    let Fixture { views, .. } = fixture(8, 5 * PAGE_BYTES);
    let data: Vec<u8> = (0..9_000u32).map(|at| (at * 7) as u8).collect();
    let bytes = data.len() as u64;
    let claims = Claims::default();
    let claim = views[1].claim(&claims, bytes, &NOTHING, Reach::All).unwrap();
    claim.describe(3, [1, 2, 4], bytes);
    let mut aside = claim.put_aside();
    for from in [0, 4_000, 8_000] {
        let claim = views[1].take_up(aside);
        claim.fill_part(bytes, from as u64, Bytes::from(&data[from..(from + 4_000).min(9_000)]));
        claim.fill_part(bytes, bytes - 10, Bytes::from(&[0; 11][..]));
        assert!(views[1].claim(&claims, 3 * PAGE_BYTES, &NOTHING, Reach::All).is_none(), "kept");
        aside = claim.put_aside();
    }
    let claim = views[1].take_up(aside);
    let cell = claim.cell();
    claim.becomes_message(0);
    let described = views[2].described(cell).unwrap();
    assert_eq!(views[2].data(cell, &described).unwrap().to_vec(), data);
    assert!(views[2].is_of(cell, 0));
}

#[test]
fn details_of_an_entry_are_there_until_a_snapshot_covers_it() {
    let Fixture { segment, views, .. } = fixture(1, 0);
    let claim = views[0].claim(&Claims::default(), 0, &NOTHING, Reach::Home).unwrap();
    let cell = claim.cell();
    claim.fill(0, [5, 6, 7], Bytes::EMPTY);
    assert!(views[0].accept(0, cell));
    std::mem::forget(claim);
    set(&segment, 0, SlotState::Dead);
    views[1].sweep(0..0, &[(0, cell)]);
    assert_eq!(views[1].described(cell).unwrap().words, [5, 6, 7]);
    let all = |passed| {
        let claims = Claims::default();
        let mut held = Vec::new();
        while let Some(claim) = views[1].claim(&claims, 0, &passed, Reach::All) {
            held.push(claim);
        }
        held.len() as u64
    };
    let cells = views[1].shape().cells();
    assert_eq!(all(NOTHING), cells - 1);
    assert_eq!(all(Passed { messages: 0, entries: 1 }), cells);
}

#[test]
fn the_log_goes_round_when_a_snapshot_covers_it() {
    let Fixture { views, .. } = fixture(1, 0);
    for place in 0..LOG_ENTRIES {
        assert!(views[0].accept(place, 7));
    }
    assert!(!views[0].accept(LOG_ENTRIES, 8), "nobody has written down what was");
    assert!(views[1].set_snapshot(2, &[1, 2, 3]));
    assert_eq!((views[0].snapshot(), views[0].snapshot_place()), (Some(vec![1, 2, 3]), 2));
    assert!(views[0].accept(LOG_ENTRIES, 8) && views[0].accept(LOG_ENTRIES + 1, 8));
    assert!(!views[0].accept(LOG_ENTRIES + 2, 8));
    assert_eq!(views[0].look(1), Look::Overwritten);
    assert_eq!(views[0].look(2), Look::There(7));
}

#[test]
fn the_newest_snapshot_counts_and_the_dead_keep_no_buffer() {
    let Fixture { segment, views, .. } = fixture(1, 0);
    assert_eq!(views[0].snapshot(), None);
    for place in 1..100 {
        let writer = &views[(place % 4) as usize];
        assert!(writer.set_snapshot(place, &vec![place; (place % 32) as usize]));
        assert!(writer.set_snapshot(place - 1, &[0]), "there is a newer one");
        assert_eq!(views[0].snapshot().unwrap(), vec![place; (place % 32) as usize]);
    }
    assert!(!views[0].set_snapshot(200, &[0; SNAPSHOT as usize + 1]), "too long");
    // A process that stops while it writes keeps a buffer, until it is dead.
    let mut stopped = 0;
    while views[1].claim_buffer().is_some() {
        stopped += 1;
    }
    assert_eq!(stopped, 15, "all but the one that counts");
    assert!(!views[0].set_snapshot(300, &[1]));
    set(&segment, 1, SlotState::Dead);
    assert!(views[0].set_snapshot(300, &[1]));
    assert_eq!(views[2].snapshot(), Some(vec![1]));
}

#[test]
fn a_mark_of_taken_broadcasts_is_not_that_of_a_successor() {
    let Fixture { views, .. } = fixture(1, 0);
    assert_eq!(views[0].taken(3, 9), None);
    views[0].set_taken(3, 9, 41);
    assert_eq!((views[1].taken(3, 9), views[1].taken(3, 10)), (Some(41), None));
    views[0].set_taken(MARKS, 0, 1);
    assert_eq!(views[0].taken(MARKS, 0), None);
}

#[test]
fn a_request_is_answered_once_whoever_answers_it_and_however_often_it_is_asked() {
    let Fixture { views, .. } = fixture(1, 0);
    let (client, server, next) = (&views[0], &views[1], &views[2]);
    let first = client.ask(1);
    assert_eq!(client.progress(first), Progress::Asked);
    assert!(!server.take_request(0, 2, first, 1), "of another user of the slot");
    assert!(!next.take_request(0, 1, first, 2), "asked of another server");
    assert!(server.take_request(0, 1, first, 1) && !server.take_request(0, 1, first, 1));
    assert!(server.begin_request(0, 1, first, 1) && !client.withdraw(first, false), "too late");
    assert_eq!(client.progress(first), Progress::Taken);
    // The first server is gone: it is asked for again, and taken again.
    client.ask_again(first, 2);
    assert!(!server.take_request(0, 1, first, 1) && !server.begin_request(0, 1, first, 1));
    server.refuse(0, 1, first, 1, 6);
    assert_eq!(client.progress(first), Progress::Asked, "who lost the seat refuses nothing");
    assert!(next.begin_request(0, 1, first, 2));
    next.answer(0, 1, first, 7);
    server.answer(0, 1, first, 8);
    assert_eq!(client.progress(first), Progress::Answered(7));
    client.ask_again(first, 3);
    assert!(!next.take_request(0, 1, first, 3), "it was done");
    let second = client.ask(2);
    assert_eq!((client.progress(first), second), (Progress::None, first + 1));
    next.answer(0, 1, first, 9);
    assert_eq!(client.progress(second), Progress::Asked, "late answers change nothing");
    assert!(client.withdraw(second, false) && !next.take_request(0, 1, second, 2));
    let third = client.ask(2);
    assert!(next.take_request(0, 1, third, 2) && client.withdraw(third, false), "not begun");
    assert!(!next.begin_request(0, 1, third, 2), "it was taken back");
    let fourth = client.ask(2);
    assert!(next.begin_request(0, 1, fourth, 2) && client.withdraw(fourth, true));
    let fifth = client.ask(2);
    assert!(next.take_request(0, 1, fifth, 2));
    next.refuse(0, 1, fifth, 2, 5);
    assert_eq!(client.progress(fifth), Progress::Answered(5));
    assert!(!next.take_request(SLOTS, 1, fifth, 2), "there is no such slot");
}

#[test]
fn two_threads_claim_different_memory() {
    let Fixture { views, .. } = fixture(64, 64 * PAGE_BYTES);
    let claimed: Vec<u32> = std::thread::scope(|threads| {
        let claimers = views[..2].iter().map(|log| {
            threads.spawn(move || {
                let (claims, mut pages) = (Claims::default(), Vec::new());
                while let Some(claim) = log.claim(&claims, 2 * PAGE_BYTES, &NOTHING, Reach::All) {
                    pages.push(log.described(claim.cell()).map_or(0, |_| claim.first_page()));
                    std::mem::forget(claim);
                }
                pages
            })
        });
        let claimers: Vec<_> = claimers.collect();
        claimers.into_iter().flat_map(|claimer| claimer.join().unwrap()).collect()
    });
    let mut pages: Vec<u32> = claimed.iter().flat_map(|&page| [page, page + 1]).collect();
    let all = pages.len();
    pages.sort_unstable();
    pages.dedup();
    assert_eq!(pages.len(), all, "no page twice");
    assert!(all > 48, "{all} of 64");
}

#[test]
fn words_that_nobody_wrote_lead_to_wrong_data_at_worst() {
    let mut random = landeck_testing::Random::new(landeck_testing::seed());
    for _ in 0..40 {
        let Fixture { segment, area, views } = fixture(16, 8 * PAGE_BYTES);
        set(&segment, 3, SlotState::Dead);
        let claims = Claims::default();
        let touched = (area.len() / 8).min(1 << 17) as u64;
        for step in 0..300 {
            for _ in 0..20 {
                let word = if random.below(2) == 0 { random.bits() } else { random.below(40) };
                area.words()[random.below(touched) as usize].store(word, Ordering::Relaxed);
            }
            let log = &views[(step % 3) as usize];
            let passed = Passed { messages: random.below(20), entries: random.below(20) };
            let number = random.below(40);
            let _ = log.snapshot();
            log.set_snapshot(number, &[random.bits(); 7]);
            log.accept(number, random.bits() as u32);
            log.put_broadcast(number, random.bits() as u32);
            if let Some(cell) = log.broadcast(number)
                && let Some(described) = log.described(cell)
                && let Some(data) = log.data(cell, &described)
            {
                assert!(data.len() <= log.area.len());
                let _ = (data.part(0, 100).to_vec(), log.is_of(cell, number));
            }
            if let Some(claim) =
                log.claim(&claims, random.below(3 * PAGE_BYTES), &passed, Reach::All)
            {
                claim.fill(0, [0; 3], Bytes::from(&[1; 100][..]));
                if random.below(2) == 0 {
                    claim.becomes_message(number);
                }
            }
            if step % 100 == 0 && log.is_claimed_by_the_dead() {
                log.sweep(0..16, &[(number, random.bits() as u32)]);
            }
            log.set_taken(random.bits() as u32, 1, number);
            log.answer(random.below(9) as u32, 1, log.ask(1), random.bits() as u32);
            log.wake(WaitsFor::Messages);
        }
    }
}
