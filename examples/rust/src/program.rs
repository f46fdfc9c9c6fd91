//! How every example starts and ends: it joins its job, reads its options, and turns a problem
//! into a message and an exit code.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use landeck::Job;

/// Why an example ends early.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Messages do not arrive any more.
    #[error(transparent)]
    Landeck(#[from] landeck::Error),
    /// The options ask for something impossible. Every process finds that out by itself.
    #[error("{0}")]
    Options(String),
    /// Something that this process alone has found, such as a file that cannot be written.
    #[error("{0}")]
    Own(String),
    /// The result is wrong.
    #[error("{0}")]
    Wrong(String),
}

/// The exit code for options that make no sense, as in most programs.
const EXIT_OPTIONS: u8 = 2;

/// Runs `body` in the job that this process was started for.
///
/// Every process of a job gets the same command line, and finds the same mistakes in it. Rank 0 alone
/// says so and fails; if the others failed too, the launcher might end rank 0 before it has spoken.
pub fn run<Options: Parser>(body: fn(&Job, &Options) -> Result<(), Problem>) -> ExitCode {
    let name = Options::command().get_name().to_owned();
    let job = match Job::join() {
        Ok(job) => job,
        Err(error) => {
            eprintln!("{name}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let rank = job.world().rank();
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) if rank == 0 => {
            // Nobody is left to tell if this fails. It is no mistake when it was help.
            let _ = error.print();
            return leave(job, ExitCode::from(error.exit_code() as u8));
        }
        Err(_) => return leave(job, ExitCode::SUCCESS),
    };
    match body(&job, &options) {
        Ok(()) => leave(job, ExitCode::SUCCESS),
        Err(Problem::Options(_)) if rank != 0 => leave(job, ExitCode::SUCCESS),
        Err(problem @ Problem::Options(_)) => {
            eprintln!("{name}: {problem}");
            leave(job, ExitCode::from(EXIT_OPTIONS))
        }
        // The others wait for messages of this process that will not come: end the whole job.
        Err(problem) => {
            let message = format!("{name}: rank {rank}: {problem}");
            eprintln!("{message}");
            job.abort(1, &message)
        }
    }
}

/// Prints a line. That nobody reads it any more, as behind `| head`, is no problem.
///
/// # Errors
/// [`Problem::Own`] when the standard output cannot be written, as on a full disk.
pub fn say(line: impl fmt::Display) -> Result<(), Problem> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Problem::Own(format!(
            "cannot write to the standard output: {error}. Send it to where there is room"
        ))),
        _ => Ok(()),
    }
}

/// Leaves the job in good order, whatever the exit code.
fn leave(job: Job, code: ExitCode) -> ExitCode {
    match job.leave() {
        Ok(()) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
