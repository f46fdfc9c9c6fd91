//! Tools of measurements in the processes of a job: the job itself, round trips, what all members found, what rank 0 says.

use landeck::{Plain, Result, Tag, World};
use landeck_host::say::say;
use landeck_measure::{least, median};
use std::io;
use std::process::{Command, Output, Stdio};

pub(crate) const TAG: Tag = Tag(0);

/// A job of this command, whose processes measure: `options` are those of `landeck run`, `words` those of each process.
pub(crate) fn job<'a>(
    timeout_s: &str,
    options: impl IntoIterator<Item = &'a str>,
    words: &[&str],
) -> io::Result<Command> {
    let own = std::env::current_exe()?;
    let mut job = Command::new(&own);
    job.args(["run", "--stdin", "none", "--timeout", timeout_s]).args(options);
    job.arg("--").arg(own).args(words).stdin(Stdio::null());
    Ok(job)
}

/// All that a job has said, its errors at the end.
pub(crate) fn said_by(job: &Output) -> String {
    let [said, errors] = [&job.stdout, &job.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{said}{errors}").trim_end().to_owned()
}

/// One message to another member and back.
pub(crate) fn round_trip<T: Plain>(
    world: &World,
    (is_first, peer): (bool, usize),
    data: &mut [T],
) -> Result<()> {
    if is_first {
        world.send(data, peer, TAG)?;
    }
    world.receive_into(data, peer, TAG)?;
    if !is_first {
        world.send(data, peer, TAG)?;
    }
    Ok(())
}

/// The median of what was found in some batches; 0 of none.
pub(crate) fn usual(found: &[f64]) -> f64 {
    median(found).unwrap_or(0.0)
}

/// The medians of the findings of all members, beginning with rank `from`, each of which is a median. Rank 0 knows them.
pub(crate) fn usual_of_all<const N: usize>(
    world: &World,
    found: [Vec<f64>; N],
    from: usize,
) -> Result<[f64; N]> {
    let own = found.map(|found| usual(&found));
    let mut all = vec![0.0; N * world.size()];
    world.gather(&own, &mut all, 0)?;
    let of = |which| all.iter().skip(N * from + which).step_by(N).copied().collect::<Vec<_>>();
    Ok(std::array::from_fn(|which| usual(&of(which))))
}

/// The time of the second way in those of the first one, by rank 0's clock. The least of some batches of each counts.
pub(super) fn share_of(
    ways: [&World; 2],
    batches: usize,
    mut batch: impl FnMut(&World) -> Result<f64>,
) -> Result<f64> {
    let mut all = [(); 2].map(|()| Vec::with_capacity(batches));
    for _ in 0..batches {
        for (all, world) in all.iter_mut().zip(ways) {
            all.push(batch(world)?);
        }
    }
    let [usual, other] = all.map(least);
    let mut share = [other / usual];
    ways[0].broadcast(&mut share, 0)?;
    Ok(share[0])
}

/// Says a finding of a job: rank 0 prints it.
pub(super) fn report(world: &World, name: &str, ps: f64) {
    if world.rank() == 0 {
        // A process whose output has no reader has nothing else to do.
        let _ = say(&format!("{name} {}\n", ps.max(1.0) as u64));
    }
}
