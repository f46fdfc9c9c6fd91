//! `landeck tune --hosts`: the links between hosts, and the ways that operations take over them.
//!
//! The figures are those of a job that this command starts on these hosts: its daemons measure the links, and its members
//! choose by them. So what is shown is what jobs use, and not another measurement.

use super::instruments::{TAG, job};
use super::{JOB_S, TuneError};
use landeck::unstable::JobInternals;
use landeck::{Job, Result, World};
use landeck_collectives::{Link, Settings};
use landeck_host::say::say;
use landeck_memory::Segment;
use landeck_memory::plan::LINK_HOSTS_MAX;
use std::path::PathBuf;
use std::process::Stdio;

/// The hosts of `landeck tune --hosts`, and how they are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TunedHosts {
    /// The hosts with their slots, as `landeck run --host` takes them.
    pub(crate) list: String,
    /// The command that reaches another host.
    pub(crate) rsh: Option<String>,
    /// The platform file to write.
    pub(crate) save: Option<PathBuf>,
}

impl TunedHosts {
    /// The options of `landeck run` for jobs on these hosts, with one process on each.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut options = ["--host", &self.list, "--ppn", "1"].map(str::to_owned).to_vec();
        options.extend(self.rsh.iter().flat_map(|command| ["--rsh".to_owned(), command.clone()]));
        options
    }

    /// The number of hosts.
    pub(crate) fn count(&self) -> u64 {
        self.list.split(',').count() as u64
    }
}

/// The longest text about ways.
const WAYS_BYTES: usize = 32 << 10;

/// Starts a job on the hosts, and shows what it says.
pub(crate) fn show(hosts: &TunedHosts) -> std::result::Result<(), TuneError> {
    Ok(say(&output_of(hosts, &[], "hosts")?)?)
}

/// The output of a job on the hosts, whose processes measure `subject`. It says itself why it failed.
pub(super) fn output_of(
    hosts: &TunedHosts,
    options: &[&str],
    subject: &str,
) -> std::result::Result<String, TuneError> {
    let rsh = hosts.rsh.iter().flat_map(|command| ["--rsh", command]);
    let options = ["--host", &hosts.list].into_iter().chain(rsh).chain(options.iter().copied());
    let mut job = job(JOB_S, options, &["measure", subject]).map_err(TuneError::Start)?;
    let output = job.stderr(Stdio::inherit()).output().map_err(TuneError::Start)?;
    if !output.status.success() {
        let (list, status) = (hosts.list.clone(), output.status.to_string());
        return Err(TuneError::Hosts { list, status });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A member of the job. Rank 0 prints the links and the ways, and compares the ways of all members.
pub(crate) fn member() -> Result<()> {
    let job = Job::join()?;
    let world = job.world();
    let ways = job.ways(&world)?;
    let others = others_than(&world, &ways)?;
    if world.rank() == 0 {
        let agreement = match &others[..] {
            [] => format!("All {} members choose these ways.\n", world.size()),
            others => {
                let ranks: Vec<String> = others.iter().map(usize::to_string).collect();
                format!("Other ways are chosen by rank {}: report this.\n", ranks.join(", "))
            }
        };
        let sizes = "sizes of what each member has for another or for all";
        let head = format!("\n{} processes; {sizes}:\n", world.size());
        let text = links_text(job.segment(), world.size() as u32) + &head + &ways + &agreement;
        // A process whose output has no reader has nothing else to do.
        let _ = say(&text);
    }
    job.leave()
}

/// The ranks whose ways differ from those of rank 0; known to rank 0 alone.
fn others_than(world: &World, ways: &str) -> Result<Vec<usize>> {
    let mut own = ways.as_bytes().to_vec();
    own.resize(WAYS_BYTES, 0);
    let mut others = Vec::new();
    if world.rank() > 0 {
        world.send(&own, 0, TAG)?;
        return Ok(others);
    }
    let mut theirs = vec![0u8; WAYS_BYTES];
    for rank in 1..world.size() {
        world.receive_into(&mut theirs, rank, TAG)?;
        if theirs != own {
            others.push(rank);
        }
    }
    Ok(others)
}

/// A table of the links between the hosts of a job, in the order of their first ranks.
fn links_text(segment: &Segment, ranks: u32) -> String {
    let slots = segment.plan().slots();
    let number_of = |rank: u32| match segment.peer_of_rank(rank).checked_sub(slots) {
        Some(far) => Some(segment.far_record(far).host_number),
        None => segment.own_host_number(),
    };
    let mut numbers: Vec<u16> = Vec::new();
    for number in (0..ranks).filter_map(number_of) {
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    if numbers.len() < 2 {
        return "All processes are on one host, which has no links.\n".to_owned();
    }
    if numbers.len() as u64 > LINK_HOSTS_MAX {
        return format!(
            "More than {LINK_HOSTS_MAX} hosts: no link is measured, and a common network is assumed.\n"
        );
    }
    let figures = Settings::from_words(&segment.plan().settings).figures;
    let mut lines = Vec::new();
    let mut is_any_assumed = false;
    for (place, &one) in numbers.iter().enumerate() {
        for &other in &numbers[place + 1..] {
            let words = segment.link(one, other);
            let link = Link::from_words(words, &figures);
            let is_measured = words.map(|word| word != 0 && link.is_some());
            is_any_assumed |= is_measured.contains(&false);
            let link = link.unwrap_or_else(|| Link::assumed(&figures));
            let us = |ps: u64| ps as f64 / 1e6;
            let values = [us(link.latency_ps), us(link.gap_ps), link.rate_mb_s()];
            let [latency, gap, rate] = [0, 1, 2].map(|at: usize| {
                let mark = if is_measured[at] { ' ' } else { '?' };
                format!("{:.*}{mark}", [1, 2, 0][at], values[at])
            });
            let hosts =
                format!("{} - {}", segment.host_in_words(one), segment.host_in_words(other));
            lines.push(format!("  {hosts:<32}{latency:>12}{gap:>10}{rate:>12}\n"));
        }
    }
    let count = numbers.len();
    let note = match is_any_assumed {
        true => "Figures with ? were not found in time: those of a common network are assumed.\n",
        false => "",
    };
    format!(
        "The links of {count} hosts:\n  {:<32}{:>12}{:>10}{:>12}\n",
        "", "latency us ", "gap us ", "rate MB/s "
    ) + &lines.concat()
        + note
}

#[cfg(test)]
mod tests {
    use super::*;
    use landeck_memory::{FarRecord, JobName, SegmentPlan};

    #[test]
    fn links_that_were_not_measured_are_marked() {
        let plan = SegmentPlan { heap_bytes_per_process: 0, ranks: 3, ..SegmentPlan::new(1, 1) };
        let segment = Segment::local(&plan);
        segment.set_own_host(0, 0);
        segment.set_peer_of_rank(0, 0);
        for number in [0u16, 1, 2] {
            segment.set_host_name(number, JobName::new(&format!("n{number}")));
        }
        for far in [0u32, 1] {
            let host_number = far as u16 + 1;
            let record = FarRecord { host_number, rank: Some(far + 1), ..FarRecord::default() };
            segment.set_far_record(far, record);
            segment.set_peer_of_rank(far + 1, plan.slots() + far);
        }
        segment.set_link(0, 1, [23_400_000, 1_500_000, 512_000]);
        segment.set_link(0, 2, [50_000_000, 2_000_000, 0]);
        let text = links_text(&segment, 3);
        let fields = |hosts: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.contains(hosts)).unwrap_or_default();
            line.replace(hosts, "").split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(fields("n0 - n1"), ["23.4", "1.50", "2000"], "{text}");
        assert_eq!(fields("n0 - n2")[2], "1177?", "{text}");
        assert!(fields("n1 - n2").iter().all(|field| field.ends_with('?')), "{text}");
        assert!(text.contains("common network"), "{text}");
        assert!(links_text(&segment, 1).contains("one host"));
    }
}
