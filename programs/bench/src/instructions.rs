//! How many instructions sending and receiving take, counted by callgrind inside the two calls only.
//!
//! One process sends a burst of messages and waits for the answer; the other sleeps until the burst
//! has been sent, so that receiving does not wait. A short and a long run are counted: their
//! difference is free of everything that happens once.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use landeck_host::say::say;

use crate::candidate::{ALL, Candidate, Places};
use crate::launch;
use crate::problem::Problem;

/// The functions of the measuring programs that wrap one call each: a send and a receive.
const CALLS: [&str; 2] = ["counted_send", "counted_receive"];
const SHORT_BURSTS: u64 = 50;
const LONG_BURSTS: u64 = 250;
const MESSAGES_IN_A_BURST: u64 = 8;

/// Prints the instructions for one message of 8 bytes, for everybody who is there.
pub(crate) fn count(places: &Places) -> Result<(), Problem> {
    let version = Command::new("valgrind").arg("--version").output();
    let version = version.map_err(|_| Problem::NoValgrind)?;
    launch::adopt_orphans();
    say(&format!(
        "\nInstructions for one message of 8 bytes ({})\n  {:<18} {:>8} {:>8}\n",
        String::from_utf8_lossy(&version.stdout).trim(),
        "",
        "send",
        "receive"
    ))?;
    let counted = |candidate: &Candidate| {
        !matches!(candidate, Candidate::Bare | Candidate::MpichThrottled)
            && places.missing(*candidate).is_none()
    };
    for candidate in ALL.into_iter().filter(counted) {
        let counts = CALLS.map(|function| instructions(places, candidate, function));
        let [send, receive] = counts
            .each_ref()
            .map(|count| count.as_ref().map_or("-".to_owned(), |count| format!("{count:.0}")));
        let mut text = format!("  {:<18} {send:>8} {receive:>8}\n", candidate.name());
        for trouble in counts.into_iter().filter_map(Result::err) {
            text += &format!("    {trouble}\n");
        }
        say(&text)?;
    }
    Ok(())
}

fn instructions(places: &Places, candidate: Candidate, function: &str) -> Result<f64, String> {
    let short = total(places, candidate, function, SHORT_BURSTS)?;
    let long = total(places, candidate, function, LONG_BURSTS)?;
    Ok((long as f64 - short as f64) / ((LONG_BURSTS - SHORT_BURSTS) * MESSAGES_IN_A_BURST) as f64)
}

/// The instructions inside the function, in all processes together: only one of them calls it.
fn total(
    places: &Places,
    candidate: Candidate,
    function: &str,
    bursts: u64,
) -> Result<u64, String> {
    let folder = std::env::temp_dir().join(format!("landeck-callgrind-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let arguments = vec![
        "--quiet".to_owned(),
        "--tool=callgrind".to_owned(),
        "--collect-atstart=no".to_owned(),
        format!("--toggle-collect=*{function}*"),
        format!("--callgrind-out-file={}/%p", folder.display()),
        places.points(candidate).display().to_string(),
        "burst".to_owned(),
        format!("batches={bursts}"),
        format!("flag={}", folder.join("sent").display()),
    ];
    let mut command = places.command(candidate, 2, Path::new("valgrind"), &arguments);
    let outcome = launch::run(&mut command, Duration::from_secs(120));
    let counted = read_totals(&folder);
    let _ = fs::remove_dir_all(&folder);
    match outcome.trouble {
        Some(trouble) => Err(trouble),
        None => counted.ok_or_else(|| "callgrind wrote no totals".to_owned()),
    }
}

fn read_totals(folder: &Path) -> Option<u64> {
    let files = fs::read_dir(folder).ok()?.flatten();
    let totals: Vec<u64> =
        files.filter_map(|file| totals_of(&fs::read_to_string(file.path()).ok()?)).collect();
    (!totals.is_empty()).then(|| totals.iter().sum())
}

fn totals_of(profile: &str) -> Option<u64> {
    let line = profile.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_totals_of_a_profile() {
        assert_eq!(totals_of("events: Ir\nfn=(1) main\n5 70\ntotals: 1234\n"), Some(1234));
        assert_eq!(totals_of("events: Ir\n"), None);
    }
}
