//! Several starts of a command, one after the other: a program that runs where the command does, on the first host.

use std::process::Command;
use std::time::Duration;

use clap::Args;
use landeck_host::say::say;

use crate::launch;
use crate::problem::Problem;
use crate::sample::{Point, Sample};

/// The hidden command.
const NAME: &str = "starts";

#[derive(Debug, Args)]
pub(crate) struct StartsOptions {
    /// So many starts count; one more goes before them
    count: usize,
    /// A start that takes longer hangs, in milliseconds
    limit_ms: u64,
    /// The command with its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// The words that start a command so many times.
pub(crate) fn words(count: usize, limit: Duration, command: Vec<String>) -> Vec<String> {
    let own =
        std::env::current_exe().map_or("landeck-bench".into(), |own| own.display().to_string());
    let options = [NAME.to_owned(), count.to_string(), limit.as_millis().to_string(), "--".into()];
    [own].into_iter().chain(options).chain(command).collect()
}

/// Prints a sample for each start but the first one, which finds cold caches.
pub(crate) fn run(options: &StartsOptions) -> Result<(), Problem> {
    launch::adopt_orphans();
    let (program, arguments) = options.command.split_first().ok_or(Problem::Nobody)?;
    for start in 0..=options.count {
        let mut command = Command::new(program);
        let outcome = launch::run(command.args(arguments), Duration::from_millis(options.limit_ms));
        if let Some(trouble) = outcome.trouble {
            return Err(Problem::NotStarting { trouble });
        }
        if start > 0 {
            let point =
                Point { figure: NAME.to_owned(), form: String::new(), n: 1, bytes: 0, pending: 0 };
            let value = outcome.wall.as_secs_f64() * 1e3;
            let sample = Sample { point, unit: "ms".to_owned(), value };
            // A number and words are always written.
            say(&format!("{}\n", serde_json::to_string(&sample).unwrap_or_default()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_command_stay_its_own() {
        let command = ["landeck", "run", "-n", "4", "true"].map(str::to_owned).to_vec();
        let words = words(3, Duration::from_secs(20), command);
        assert_eq!(words[1..].join(" "), "starts 3 20000 -- landeck run -n 4 true");
    }
}
