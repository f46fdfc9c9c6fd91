//! Figures of Landeck, measured inside one job.
//!
//! ```text
//! landeck run -n N landeck-points FIGURE [setting=value ...]
//! ```
//!
//! The figures, the settings and the lines that are printed are those of bench/points.c and
//! bench/collectives.c, which measure the peers: see their heads. These are of Landeck alone:
//!
//! | figure | what |
//! |---|---|
//! | `loan` | ranks 0 and 1 pass loans to and fro; half of the round trip |
//! | `mailbox` | one word to and fro: matched by rank, as values and as a message through named mailboxes |
//! | `put` | one word to and fro: matched, and put into the other's memory with a notification |
//! | `urgent` | one word to and fro under bulk: urgent, and in line |
//! | `counting` | one word to and fro: as it is, and with eight more counts of each message |
//! | `joining` | the call that joins a running job, in processes that rank 0 starts for it |
//! | `why` | `landeck why` of this job, all of which waits for rank 0 |
//! | `shared` | the memory that the whole job shares, when everybody has talked to four neighbours |
//! | `delivery` | broadcasts by the `ways`, from the root's call to the last return |
//! | `service` | `iterations` times a broadcast and a barrier |
//! | `group_served` | as `group`, with a server that is asked by messages |
//! | `group_rounds`, `group_rounds_served` | synchronisations one after the other: the first and the last ones |
//! | `group_members` | a join or a leave of a named group, when all processes join and leave at once |
//! | `group_join`, `group_join_served` | a join while another process broadcasts a gigabyte to the group |
//! | `copies` | the copies of broadcast, gather, allgather and alltoall, while nobody waits for anybody |
//! | `service_group`, `service_served` | the same over a named group; with a server, as in the paper of 2000 |
//! | `service_joins` | a join while rank 0 broadcasts `bytes` to such groups, and how long the broadcast takes |
//! | `service_paper` | the same as the paper describes it, with rank 0 as the server, and the messages of each call |
//! | `service_calls` | the messages of each call of a group with a server, and of one without; one process on each host |
//! | `roots` | a round of root finding: all tell each other, or a master and messages through a hypercube |
//! | `stored` | long messages to hosts that are reached and to others, whose data go to the receiver or wait elsewhere |
//! | `unstored` | the same with data that go to the receiver |
//! | `traffic` | frames, bytes and system calls of connections between hosts, of all processes in one operation |
//! | `collective` | `iterations` times scatter and gather, reduce, barrier |

#![forbid(unsafe_code)]

mod batches;
mod collective;
mod copies;
mod cost;
mod counting;
mod delivery;
mod exchange;
mod group;
mod matching;
mod objects;
mod outside;
mod overlap;
mod paper2000;
mod repeated;
mod report;
mod reproducible;
mod roots;
mod settings;
mod stored;
mod stream;
mod traffic;
mod words;

use std::process::ExitCode;
use std::time::Instant;

use landeck::{GroupOptions, Job, Options, Progress};
use landeck_memory::processors;

use crate::collective::Operation;
use crate::overlap::Share;
use crate::settings::Settings;

/// The job that a figure measures with, and its settings.
struct Bench {
    job: Job,
    world: landeck::World,
    settings: Settings,
}

fn main() -> ExitCode {
    match Settings::parse(std::env::args().skip(1)).map_err(Trouble::Usage).and_then(measure) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("landeck-points: {trouble}");
            ExitCode::from(3)
        }
    }
}

/// Why a figure could not be measured.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{0}")]
    Usage(String),
    #[error("{figure} needs {wanted}; this job has {size}. Start it with another -n.")]
    Size { figure: String, wanted: &'static str, size: usize },
    #[error("rank {rank} received {what}: the data path is broken")]
    Wrong { rank: usize, what: &'static str },
    #[error(transparent)]
    Landeck(#[from] landeck::Error),
    #[error(transparent)]
    NotSaid(#[from] landeck_host::say::SayError),
    #[error("{path} cannot be used: {error}")]
    NotUsed { path: std::path::PathBuf, error: std::io::Error },
}

/// The outcome of a figure, or of a part of it.
type Measured<T = ()> = Result<T, Trouble>;

/// Returns the options of a figure: a thread makes progress beside a computation if a processor is free for it.
fn options_of(figure: &str) -> Options {
    let progress = match figure {
        "overlap" | "overlap_call" if processors::of_parent() > overlap::PROCESSES => {
            Progress::Thread
        }
        _ => Progress::Callers,
    };
    Options { progress, ..Options::default() }
}

fn measure(settings: Settings) -> Result<(), Trouble> {
    if outside::measure(&settings)? {
        return Ok(());
    }
    let job = Job::join_with(options_of(&settings.figure))?;
    let world = job.world();
    let bench = Bench { job, world, settings };
    measure_figure(&bench)?;
    Ok(bench.job.leave()?)
}

fn measure_figure(bench: &Bench) -> Result<(), Trouble> {
    match bench.settings.figure.as_str() {
        "round" => exchange::round(bench),
        "crowd" => exchange::crowd(bench),
        "pairs" => exchange::pairs(bench),
        "loan" => exchange::loan(bench),
        "mailbox" => objects::mailbox(bench),
        "put" => objects::put(bench),
        "counting" => objects::counting(bench),
        "urgent" => objects::urgent(bench),
        "joining" => outside::joining(bench),
        "why" => outside::why(bench),
        "stream" => stream::measure(bench),
        "matching" => matching::measure(bench),
        "wait" => cost::wait(bench),
        "memory" => cost::memory(bench),
        "shared" => cost::shared(bench),
        "burst" => cost::burst(bench),
        "join" => Ok(()),
        "copies" => copies::measure(bench),
        "growth" => collective::growth(bench),
        "reproducible" => reproducible::measure(bench),
        "overlap" => overlap::measure(bench, Share::NotHidden),
        "overlap_call" => overlap::measure(bench, Share::Call),
        "delivery" => delivery::measure(bench),
        "service" => repeated::service(bench),
        "collective" => repeated::collective(bench),
        "roots" => roots::measure(bench),
        "stored" => stored::measure(bench, &stored::ALL),
        "unstored" => stored::measure(bench, &stored::TO_RECEIVER),
        "traffic" => traffic::measure(bench),
        "service_group" => group::service(bench, GroupOptions::default()),
        "service_served" => group::service(bench, group::served_by_creator()),
        "service_joins" => group::service_joins(bench),
        "service_paper" => paper2000::measure(bench),
        "service_calls" => group::calls(bench),
        "group" => group::broadcast(bench, GroupOptions::default()),
        "group_served" => group::broadcast(bench, group::served(bench)),
        "group_rounds" => group::rounds(bench, GroupOptions::default()),
        "group_rounds_served" => group::rounds(bench, group::served(bench)),
        "group_members" => group::members(bench),
        "group_join" => group::join_beside(bench, GroupOptions::default()),
        "group_join_served" => group::join_beside(bench, group::served(bench)),
        name => match Operation::by_name(name) {
            Some(operation) => collective::measure(bench, operation),
            None => Err(Trouble::Usage(format!(
                "there is no figure '{name}'; they stand at the heads of bench/points.c and bench/collectives.c"
            ))),
        },
    }
}

impl Bench {
    fn needs(&self, fits: bool, wanted: &'static str) -> Result<(), Trouble> {
        let figure = self.settings.figure.clone();
        if fits { Ok(()) } else { Err(Trouble::Size { figure, wanted, size: self.world.size() }) }
    }

    /// Whether there is time for another batch, as the first one began `since` then: rank 0 says so to all.
    fn goes_on(&self, since: Instant) -> landeck::Result<bool> {
        let mut goes_on = [u8::from(since.elapsed().as_secs_f64() < self.settings.limit_s)];
        self.world.broadcast(&mut goes_on, 0)?;
        Ok(goes_on == [1])
    }

    /// Prints a value of a batch.
    fn print(&self, form: &str, bytes: usize, unit: &str, value: f64) {
        report::print(&self.settings.figure, form, self.world.size(), bytes, 0, unit, value);
    }

    /// A batch of `iterations` times the same in all processes. Rank 0 prints the mean time.
    fn repeat(
        &self,
        form: &str,
        bytes: usize,
        mut once: impl FnMut() -> landeck::Result<()>,
    ) -> landeck::Result<()> {
        self.world.barrier()?;
        let start = Instant::now();
        (0..self.settings.iterations).try_for_each(|_| once())?;
        let mean_ns = start.elapsed().as_nanos() as f64 / self.settings.iterations as f64;
        if self.world.rank() == 0 {
            self.print(form, bytes, "ns", mean_ns);
        }
        Ok(())
    }

    fn wrong(&self, what: &'static str) -> Trouble {
        Trouble::Wrong { rank: self.world.rank(), what }
    }
}
