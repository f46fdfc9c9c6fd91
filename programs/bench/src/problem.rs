//! Why nothing could be measured, and what to do about it.

use std::io;
use std::path::PathBuf;

/// One reason, in words for whoever started the benchmark.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("there is no figure '{name}'. There are {known}.")]
    NoSuchFigure { name: String, known: String },
    #[error(
        "there is no peer '{name}'. There are mpich, ompi, impi, queues and iceoryx2; none stands for no peer at all."
    )]
    NoSuchPeer { name: String },
    #[error(
        "cargo build --release failed. Its messages above say where; --no-build measures what was built before."
    )]
    DoesNotBuild,
    #[error("the peers could not be built: {script} failed. Its messages above say why.")]
    NoPeers { script: PathBuf },
    #[error(
        "{program} cannot be started: {error}. Install it, or measure what is there with --no-build."
    )]
    NotStarted { program: PathBuf, error: io::Error },
    #[error("nobody can be measured: neither Landeck nor a peer is built. Run without --no-build.")]
    Nobody,
    #[error(
        "there is nothing to compare with below {prefix}. Give the prefix of an installation (make install)."
    )]
    NoInstallation { prefix: PathBuf },
    #[error("figure '{name}' needs several hosts: add --hosts {hosts}.")]
    NeedsHosts { name: String, hosts: u32 },
    #[error("figure '{name}' is one of one host: leave --hosts out.")]
    NeedsOneHost { name: String },
    #[error("study '{name}' needs several hosts: add --hosts 4.")]
    StudyNeedsHosts { name: &'static str },
    #[error(
        "study '{name}' is one of one host: leave --hosts out. Over hosts, sizes has 24 and 48 processes, and the simulator the others."
    )]
    StudyNeedsOneHost { name: &'static str },
    #[error(
        "{wrong} of {all} counts of messages are not those of the paper or of the plan: {first}. All stand in report.txt."
    )]
    OtherCounts { wrong: usize, all: usize, first: String },
    #[error("study '{name}' needs two sites of two hosts each: add --hosts 4.")]
    StudyNeedsSites { name: &'static str },
    #[error("{trouble}")]
    NotStarting { trouble: String },
    #[error("{troubles} launches did not end well. They are named in report.txt.")]
    Troubles { troubles: usize },
    #[error("there are no hosts to measure on: {why}")]
    NoHosts { why: String },
    #[error("{path} is not there: run without --no-build.")]
    NotBuilt { path: PathBuf },
    #[error("{path} cannot be written: {error}. Choose another folder with --output.")]
    NotWritten { path: PathBuf, error: io::Error },
    #[error("{path} cannot be drawn: {error}. The values are in the .json file beside it.")]
    NotDrawn { path: PathBuf, error: String },
    #[error(transparent)]
    NotSaid(#[from] landeck_host::say::SayError),
    #[error(
        "valgrind is not installed, and it counts the instructions. Install it: apt-get install valgrind."
    )]
    NoValgrind,
}
