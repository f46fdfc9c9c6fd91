//! Mailboxes, urgent messages and one-sided writes, each beside the plain messages that they are
//! compared with, in the same job.

use std::time::{Duration, Instant};

use landeck::unstable::JobInternals;
use landeck::{Any, Mailbox, Message, Outbox, RegionAddress, Result, World};
use landeck_memory::Tally;

use crate::batches::Batches;
use crate::words::tags;
use crate::{Bench, Measured};

/// Half of a round trip of one word: as a message to a rank, as values and as a packed message
/// through two named mailboxes.
pub(crate) fn mailbox(bench: &Bench) -> Measured {
    bench.needs(bench.world.size() == 2, "exactly 2 processes")?;
    let rank = bench.world.rank();
    let mut inbox = bench.job.create_mailbox()?;
    inbox.register(format!("points {rank}"))?;
    bench.world.barrier()?;
    let outbox = bench.job.open_mailbox(format!("points {}", rank ^ 1))?;
    matched(bench)?;
    batches(bench, "values").run(|iterations| {
        to_and_fro(
            rank,
            iterations,
            |word| outbox.post_values(&[word]),
            || {
                let mut word = [0];
                inbox.retrieve_values(&mut word).map(|_| word[0])
            },
        )
    })?;
    packed(bench, &mut inbox, &outbox)?;
    Ok(bench.world.barrier()?)
}

fn packed(bench: &Bench, inbox: &mut Mailbox, outbox: &Outbox) -> Result<()> {
    let (mut outgoing, mut incoming) = (Message::with_capacity(64), Message::with_capacity(64));
    batches(bench, "messages").run(|iterations| {
        to_and_fro(
            bench.world.rank(),
            iterations,
            |word| {
                outgoing.clear();
                outbox.post(outgoing.pack(&[word]))
            },
            || {
                inbox.retrieve_into(&mut incoming)?;
                Ok(incoming.unpack_value()?)
            },
        )
    })
}

/// Half of a round trip of one word: as a message, and put into the other's memory with a
/// notification.
pub(crate) fn put(bench: &Bench) -> Measured {
    bench.needs(bench.world.size() == 2, "exactly 2 processes")?;
    let (world, rank) = (&bench.world, bench.world.rank());
    let mut own = bench.job.create_region(4096)?;
    world.send(&own.address().to_words(), rank ^ 1, tags::DATA)?;
    let words = world.receive(rank ^ 1, tags::DATA)?.0;
    let other = bench.job.open_region(RegionAddress::from_words(words))?;
    matched(bench)?;
    batches(bench, "put").run(|iterations| {
        to_and_fro(
            rank,
            iterations,
            |word| other.put_and_notify(0, &[word]),
            || {
                own.wait_notified(1)?;
                let mut word = [0];
                own.read(0, &mut word).map(|()| word[0])
            },
        )
    })?;
    // Nobody's memory goes while the other still writes to it.
    Ok(world.barrier()?)
}

/// A form of [`urgent`], and that of its 99th percentiles.
struct UrgentForm {
    name: &'static str,
    late: &'static str,
    is_urgent: bool,
    /// The time that rank 1 computes for each bulk message.
    work: Duration,
}

const URGENT_FORMS: [UrgentForm; 4] = {
    const WORK: Duration = Duration::from_micros(100);
    const fn form(
        name: &'static str,
        late: &'static str,
        is_urgent: bool,
        work: Duration,
    ) -> UrgentForm {
        UrgentForm { name, late, is_urgent, work }
    }
    [
        form("urgent", "99% of urgent", true, Duration::ZERO),
        form("in line", "99% of in line", false, Duration::ZERO),
        form("busy receiver, urgent", "99% of busy receiver, urgent", true, WORK),
        form("busy receiver, in line", "99% of busy receiver, in line", false, WORK),
    ]
};

/// Half of a round trip of one word while rank 0 sends rank 1 as much as it takes: past that, and
/// in line with it. The median of each batch, and its 99th percentile.
pub(crate) fn urgent(bench: &Bench) -> Measured {
    bench.needs(bench.world.size() == 2, "exactly 2 processes")?;
    for form in &URGENT_FORMS {
        for _ in 0..bench.settings.batches {
            if bench.world.rank() > 0 {
                answer(&bench.world, form)?;
                continue;
            }
            let mut halves = flood(bench, form.is_urgent)?;
            halves.sort_unstable();
            for (name, percent) in [(form.name, 50), (form.late, 99)] {
                let half = halves[halves.len() * percent / 100].as_nanos() as f64;
                bench.print(name, 8, "ns", half);
            }
        }
    }
    Ok(())
}

/// Half of a round trip of one word: as it is, and with eight more counts of each message, in words that
/// nobody else uses, not even the other rank. An eighth of the difference is what counting costs.
pub(crate) fn counting(bench: &Bench) -> Measured {
    const MORE: usize = 8;
    bench.needs(bench.world.size() == 2, "exactly 2 processes")?;
    let (world, rank) = (&bench.world, bench.world.rank());
    let segment = bench.job.segment();
    let guests = (segment.plan().processes..segment.plan().slots()).skip(rank * MORE);
    let tallies: Vec<Tally> = guests.take(MORE).map(|slot| Tally::of(segment, slot)).collect();
    bench.needs(tallies.len() == MORE, "16 slots for guests")?;
    matched(bench)?;
    batches(bench, "counted eight times more").run(|iterations| {
        to_and_fro(
            rank,
            iterations,
            |word| {
                tallies.iter().for_each(|tally| tally.sent(8));
                world.send(&[word], rank ^ 1, tags::DATA)
            },
            || {
                let mut word = [0u64];
                world.receive_into(&mut word, rank ^ 1, tags::DATA)?;
                tallies.iter().for_each(|tally| tally.received(8));
                Ok(word[0])
            },
        )
    })?;
    Ok(world.barrier()?)
}

/// Longest data that go beside a ring's lines, so that four messages fill it.
const BULK_BYTES: usize = 16 * 1024;

/// The bulk before each word, in messages: between hosts the receiver may take it as fast as it is sent.
const BULK_MOST: usize = 64;

/// A batch: as many round trips of a word as are wanted, and as last so long. Returns half of each.
fn flood(bench: &Bench, is_urgent: bool) -> Result<Vec<Duration>> {
    let (world, settings) = (&bench.world, &bench.settings);
    let bulk = vec![1u8; BULK_BYTES];
    let long_enough = Instant::now() + Duration::from_secs_f64(settings.batch_ms * 1e-3);
    let mut halves = Vec::new();
    while halves.len() < settings.iterations || Instant::now() < long_enough {
        // The first message that finds no room ends the filling.
        let _ = (0..BULK_MOST).try_for_each(|_| world.try_send(&bulk, 1, tags::DATA));
        let start = Instant::now();
        say(world, halves.len() as u64, 1, is_urgent)?;
        while world.try_probe(1, tags::MARKER)?.is_none() {
            // Nothing to do when there is no room: then there is bulk in front of the answer.
            let _ = world.try_send(&bulk, 1, tags::DATA);
        }
        world.receive::<u64>(1, tags::MARKER)?;
        halves.push(start.elapsed() / 2);
    }
    world.send(&[0u64], 1, tags::LIST)?;
    Ok(halves)
}

fn answer(world: &World, form: &UrgentForm) -> Result<()> {
    let mut room = vec![0u8; BULK_BYTES];
    loop {
        match world.receive_into(&mut room, 0, Any)?.tag() {
            tags::MARKER => say(world, 0, 0, form.is_urgent)?,
            tags::LIST => return Ok(()),
            _ => compute(form.work),
        }
    }
}

fn compute(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {}
}

fn say(world: &World, word: u64, to: usize, is_urgent: bool) -> Result<()> {
    match is_urgent {
        true => world.send_urgent(&[word], to, tags::MARKER),
        false => world.send(&[word], to, tags::MARKER),
    }
}

/// The plain messages.
fn matched(bench: &Bench) -> Result<()> {
    let (world, other) = (&bench.world, bench.world.rank() ^ 1);
    batches(bench, "matched").run(|iterations| {
        to_and_fro(
            world.rank(),
            iterations,
            |word| world.send(&[word], other, tags::DATA),
            || {
                let mut word = [0u64];
                world.receive_into(&mut word, other, tags::DATA).map(|_| word[0])
            },
        )
    })
}

/// Passes words to and fro, rank 0 first.
fn to_and_fro(
    rank: usize,
    iterations: u64,
    mut send: impl FnMut(u64) -> Result<()>,
    mut receive: impl FnMut() -> Result<u64>,
) -> Result<Duration> {
    let start = Instant::now();
    let mut word = 0;
    for _ in 0..iterations {
        if rank == 0 {
            send(word)?;
            word = receive()?;
        } else {
            word = receive()?;
            send(word + 1)?;
        }
    }
    Ok(start.elapsed())
}

fn batches<'a>(bench: &'a Bench, form: &'a str) -> Batches<'a> {
    Batches { followers: 1, slowest_counts: false, divisor: 2.0, ..bench.batches(form, 8) }
}
