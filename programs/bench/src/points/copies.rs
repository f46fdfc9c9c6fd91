//! The floor of collective operations with long data: the copies alone.
//!
//! Private buffers can only be copied into shared memory and out of it. Here each process copies what it would bring
//! to an operation, and what it would take, and then gives its processor away; nobody waits for anybody, so what
//! is taken is whatever lies there. What one process lays down for one other lies in the place of the two, which
//! both write in turns: each writes where it has just read. Of operations with a root each process does as
//! many in a turn as there are processes, in one of which it is the root.

use std::thread;
use std::time::{Duration, Instant};

use landeck::{Result, SharedSegment};
use landeck_measure::{PAGE_BYTES, Paged};

use crate::batches::Batches;
use crate::{Bench, Measured};

/// The kind of copies that are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Broadcast,
    Gather,
    AllGather,
    AllToAll,
}

const FORMS: [(&str, Form); 4] = [
    ("broadcast", Form::Broadcast),
    ("gather", Form::Gather),
    ("allgather", Form::AllGather),
    ("alltoall", Form::AllToAll),
];

/// Data do not begin with a page, as private ones do.
const HEAD_BYTES: usize = 256;

impl Form {
    fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Gather)
    }

    /// Whether what one lays down all others take.
    fn is_shared(self) -> bool {
        matches!(self, Self::Broadcast | Self::AllGather)
    }
}

/// Each form with every size.
pub(crate) fn measure(bench: &Bench) -> Measured {
    bench.needs(bench.world.size() >= 2, "two processes or more")?;
    for &bytes in &bench.settings.bytes {
        for (name, form) in FORMS {
            let mut turns = Turns::new(bench, form, bytes)?;
            let size = bench.world.size() as u64;
            let batches = Batches { step: size, ..bench.batches(name, bytes) };
            let in_a_turn = if form.has_root() { size } else { 1 };
            batches.run(|iterations| {
                bench.world.barrier()?;
                turns.take(iterations / in_a_turn)
            })?;
        }
    }
    Ok(())
}

/// The turns of one process.
struct Turns {
    form: Form,
    bytes: usize,
    own: usize,
    size: usize,
    shared: SharedSegment,
    outgoing: Paged<u8>,
    incoming: Paged<u8>,
}

impl Turns {
    fn new(bench: &Bench, form: Form, bytes: usize) -> Result<Self> {
        let (own, size) = (bench.world.rank(), bench.world.size());
        let length = (size * size * stride(bytes)) as u64;
        let made = if own == 0 { Some(bench.job.create_unnamed_segment(length)?) } else { None };
        let mut number = [made.as_ref().map_or(0, SharedSegment::number)];
        bench.world.broadcast(&mut number, 0)?;
        let shared = made.map_or_else(|| bench.job.open_segment_by_number(number[0]), Ok)?;
        let memory = || Paged::new(1, bytes * size, bench.settings.offset);
        let (outgoing, incoming) = (memory(), memory());
        Ok(Self { form, bytes, own, size, shared, outgoing, incoming })
    }

    fn take(&mut self, turns: u64) -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..turns {
            self.one()?;
            thread::yield_now();
        }
        Ok(start.elapsed())
    }

    fn one(&mut self) -> Result<()> {
        let (own, bytes) = (self.own, self.bytes);
        let block = |at: usize| at * bytes..(at + 1) * bytes;
        for other in (0..self.size).filter(|&other| other != own) {
            let into = if self.form == Form::Broadcast { 0 } else { other };
            self.shared.read(self.place(other), &mut self.incoming[block(into)])?;
            if !self.form.is_shared() {
                let from = if self.form == Form::Gather { 0 } else { other };
                self.shared.write(self.place(other), &self.outgoing[block(from)])?;
            }
        }
        if self.form.is_shared() {
            self.shared.write(self.place(own), &self.outgoing[block(0)])?;
        }
        if self.form != Form::Broadcast {
            let from = if self.form == Form::AllToAll { own } else { 0 };
            self.incoming[block(own)].copy_from_slice(&self.outgoing[block(from)]);
        }
        Ok(())
    }

    /// Where lies what another one brings: in its place, or in that of the two.
    fn place(&self, other: usize) -> usize {
        let place = match self.form.is_shared() {
            true => other,
            false => self.own.min(other) * self.size + self.own.max(other),
        };
        place * stride(self.bytes) + HEAD_BYTES
    }
}

/// Bytes from one place to the next.
fn stride(bytes: usize) -> usize {
    (bytes + HEAD_BYTES).next_multiple_of(PAGE_BYTES) + PAGE_BYTES
}
