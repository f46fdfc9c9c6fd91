//! Receives among many other messages that are waiting, or among many other posted receives.

use std::time::{Duration, Instant};

use landeck::{Any, Result, Tag, World};

use crate::words::{receive_value, receive_word, send_value, send_word, tags};
use crate::{Bench, Measured, Trouble, report};

/// Messages in a timed batch.
const TIMED: usize = 256;

/// The four forms, each with messages that came before anybody asked and with receives that were
/// posted first.
pub(crate) fn measure(bench: &Bench) -> Measured {
    bench.needs(bench.world.size() == 2, "exactly 2 processes")?;
    for &pending in &bench.settings.pending {
        if !(TIMED..tags::CONTROL.0 as usize).contains(&pending) {
            return Err(Trouble::Usage(format!(
                "pending={pending}: it must lie between 256 and 29999"
            )));
        }
        for posted in [false, true] {
            for form in FORMS {
                if bench.world.rank() == 0 {
                    feed_and_print(bench, form, posted, pending)?;
                } else {
                    take_and_report(bench, form, posted, pending)?;
                }
            }
        }
    }
    Ok(())
}

/// The parts of a receive that are named: its source, its tag, both or none.
#[derive(Clone, Copy)]
struct Form {
    by_source: bool,
    by_tag: bool,
    name: &'static str,
}

const FORMS: [Form; 4] = [
    Form { by_source: true, by_tag: true, name: "exact" },
    Form { by_source: false, by_tag: true, name: "any source" },
    Form { by_source: true, by_tag: false, name: "any tag" },
    Form { by_source: false, by_tag: false, name: "any" },
];

impl Form {
    fn receive(self, world: &World, into: &mut [u64], tag: Tag) -> Result<()> {
        match (self.by_source, self.by_tag) {
            (true, true) => world.receive_into(into, 0, tag),
            (false, true) => world.receive_into(into, Any, tag),
            (true, false) => world.receive_into(into, 0, Any),
            (false, false) => world.receive_into(into, Any, Any),
        }
        .map(drop)
    }

    fn post<'scope, 'env>(
        self,
        scope: &'scope landeck::Scope<'scope, 'env>,
        into: &'env mut [u64],
        tag: Tag,
    ) -> Result<landeck::Request<'scope>> {
        match (self.by_source, self.by_tag) {
            (true, true) => scope.receive_into(into, 0, tag),
            (false, true) => scope.receive_into(into, Any, tag),
            (true, false) => scope.receive_into(into, 0, Any),
            (false, false) => scope.receive_into(into, Any, Any),
        }
    }
}

/// Rank 0: sends what rank 1 names, until it names nothing; then what rank 1 measured is printed.
fn feed_and_print(bench: &Bench, form: Form, posted: bool, pending: usize) -> Result<()> {
    let world = &bench.world;
    let send_every_tag =
        || (0..pending).try_for_each(|tag| send_word(world, tag as u64, 1, Tag(tag as u32)));
    let mark = || send_word(world, 0, 1, tags::MARKER);
    if !posted {
        send_every_tag()?;
        mark()?;
    }
    loop {
        let mut wanted = [0; TIMED + 1];
        world.receive_into(&mut wanted, 1, tags::LIST)?;
        if wanted[TIMED] == 0 {
            break;
        }
        wanted[..TIMED].iter().try_for_each(|&tag| send_word(world, tag, 1, Tag(tag as u32)))?;
        if !posted {
            mark()?;
        }
    }
    if posted {
        send_every_tag()?;
    }
    let name = format!("{}, {}", if posted { "posted first" } else { "unexpected" }, form.name);
    for _ in 0..receive_word(world, 1, tags::REPORT)? {
        report::print("matching", &name, 2, 8, pending, "ns", receive_value(world, 1)?);
    }
    Ok(())
}

fn take_and_report(bench: &Bench, form: Form, posted: bool, pending: usize) -> Measured {
    let measured = if posted {
        take_posted(bench, form, pending)?
    } else {
        take_unexpected(bench, form, pending)?
    };
    send_word(&bench.world, measured.len() as u64, 0, tags::REPORT)?;
    Ok(measured.into_iter().try_for_each(|value| send_value(&bench.world, value, 0))?)
}

/// `pending` messages have arrived before anybody asks for them; some of them are received, timed,
/// and sent again.
fn take_unexpected(bench: &Bench, form: Form, pending: usize) -> Measured<Vec<f64>> {
    let (world, settings) = (&bench.world, &bench.settings);
    let mut draw = Draw::new(pending);
    let mut values = Vec::with_capacity(settings.batches);
    let stop = Instant::now() + Duration::from_secs_f64(settings.limit_s);
    receive_word(world, 0, tags::MARKER)?;
    while values.len() < settings.batches && Instant::now() < stop {
        if form.by_tag {
            draw.next();
        }
        let mut got = [[0; 1]; TIMED];
        let start = Instant::now();
        for (into, &tag) in got.iter_mut().zip(&draw.tags) {
            form.receive(world, into, Tag(tag as u32))?;
        }
        values.push(start.elapsed().as_nanos() as f64 / TIMED as f64);
        if form.by_tag && got.iter().zip(&draw.tags).any(|([got], tag)| got != tag) {
            return Err(bench.wrong("another message than it asked for"));
        }
        want(world, got.as_flattened(), true)?;
        receive_word(world, 0, tags::MARKER)?;
    }
    want(world, &[], false)?;
    for &tag in &draw.tags {
        form.receive(world, &mut [0], Tag(tag as u32))?;
    }
    Ok(values)
}

/// `pending` receives are posted before anything arrives; messages for some of them arrive, timed,
/// and these receives are posted again.
fn take_posted(bench: &Bench, form: Form, pending: usize) -> Measured<Vec<f64>> {
    let (world, settings) = (&bench.world, &bench.settings);
    let mut draw = Draw::new(pending);
    let mut values = Vec::with_capacity(settings.batches);
    let mut expected = Vec::new();
    let mut slots = vec![u64::MAX; pending + settings.batches * TIMED];
    let stop = Instant::now() + Duration::from_secs_f64(settings.limit_s);
    world.scope(|scope| {
        let mut free = slots.chunks_exact_mut(1).enumerate();
        let mut post = |tag: usize| match free.next() {
            Some((slot, into)) => Ok((slot, form.post(scope, into, Tag(tag as u32))?)),
            None => Err(landeck::ErrorKind::WouldBlock.into()),
        };
        let mut receives =
            (0..pending).map(|tag| post(tag).map(Some)).collect::<Result<Vec<_>>>()?;
        let mut oldest = 0;
        while values.len() < settings.batches && Instant::now() < stop {
            draw.next();
            let place = |turn: usize, tag: u64| {
                if form.by_tag { tag as usize } else { (oldest + turn) % pending }
            };
            let places: Vec<usize> = draw.tags[..TIMED]
                .iter()
                .enumerate()
                .map(|(turn, &tag)| place(turn, tag))
                .collect();
            let chosen: Vec<_> =
                places.iter().filter_map(|&place| receives[place].take()).collect();
            expected.extend(chosen.iter().zip(&draw.tags).map(|((slot, _), &tag)| (*slot, tag)));
            want(world, &draw.tags[..TIMED], true)?;
            let start = Instant::now();
            for (_, receive) in chosen {
                receive.wait()?;
            }
            values.push(start.elapsed().as_nanos() as f64 / TIMED as f64);
            for place in places {
                receives[place] = Some(post(place)?);
            }
            oldest = (oldest + TIMED) % pending;
        }
        want(world, &[], false)?;
        scope.wait_all()
    })?;
    if expected.iter().any(|&(slot, tag)| slots[slot] != tag) {
        return Err(bench.wrong("a message into another receive than the one it matches"));
    }
    Ok(values)
}

/// Names the messages that are to be sent again; nothing more if there are none.
fn want(world: &World, tags: &[u64], more: bool) -> Result<()> {
    let mut wanted = [0; TIMED + 1];
    wanted[..tags.len()].copy_from_slice(tags);
    wanted[TIMED] = u64::from(more);
    world.send(&wanted, 0, tags::LIST)
}

/// All tags, the next ones to be used in front, in random order (xorshift, fixed seed).
struct Draw {
    tags: Vec<u64>,
    state: u64,
}

impl Draw {
    fn new(pending: usize) -> Draw {
        Draw { tags: (0..pending as u64).collect(), state: 88_172_645_463_325_252 }
    }

    fn next(&mut self) {
        for place in 0..TIMED {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let rest = self.tags.len() - place;
            self.tags.swap(place, place + (self.state % rest as u64) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawing_keeps_every_tag() {
        let mut draw = Draw::new(1_000);
        draw.next();
        let front = draw.tags[..TIMED].to_vec();
        draw.next();
        assert_ne!(front, draw.tags[..TIMED]);
        draw.tags.sort_unstable();
        assert!(draw.tags.iter().copied().eq(0..1_000));
    }
}
