//! A word about options of `landeck run` that stand behind the program, where they are the program's own.

use crate::hosts::HostsAsked;
use landeck_launch::request::{Launch, ProgramRequest};
use std::ffi::OsString;

/// Options that name hosts, each with a value behind it.
const HOSTS: [&str; 10] = [
    "--host",
    "--hosts",
    "-host",
    "-hosts",
    "-H",
    "--hostfile",
    "-hostfile",
    "--machinefile",
    "-machinefile",
    "--ppn",
];
/// Options that say how many processes.
const NUMBERS: [&str; 3] = ["-n", "-np", "--np"];

/// The note for a line whose program has such options, if none of them stands before it. `--` before the program says
/// that it is meant so.
pub(crate) fn note(line: &[OsString], launch: &Launch, hosts: &HostsAsked) -> Option<String> {
    let mut programs = launch.programs.iter();
    let (program, None) = (programs.next()?, programs.next()) else { return None };
    let before = line.len().checked_sub(program.arguments.len() + 1)?;
    if line.get(before.checked_sub(1)?)? == "--" {
        return None;
    }
    let words = misplaced(program, !hosts.arguments.names_hosts());
    (!words.is_empty()).then(|| {
        let (words, name) = (words.join(" "), program.name.display());
        format!(
            "note: \"{words}\" stands behind the program and goes to it; options of landeck run stand before it. If it is \
             meant so: landeck run -- {name} ..."
        )
    })
}

/// The words among a program's arguments that look like ours.
fn misplaced(program: &ProgramRequest, misses_hosts: bool) -> Vec<String> {
    let words: Vec<_> = program.arguments.iter().map(|word| word.to_string_lossy()).collect();
    let is_number = |word: &str| word.parse::<u32>().is_ok();
    let pairs = words.windows(2).filter(|pair| {
        let (option, value) = (&*pair[0], &*pair[1]);
        let is_count = NUMBERS.contains(&option) && is_number(value) && program.processes.is_none();
        is_count || (HOSTS.contains(&option) && misses_hosts)
    });
    pairs.flatten().map(|word| word.clone().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Command, parse};

    fn note_of(line: &str) -> Option<String> {
        let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let Ok(Command::Run(launch, _, hosts)) = parse(line.clone()) else { panic!("{line:?}") };
        note(&line, &launch, &hosts)
    }

    #[test]
    fn our_options_behind_the_program_deserve_a_word() {
        let said = note_of("landeck run ./first -n 4 --host a,b").unwrap();
        assert!(said.starts_with("note: \"-n 4 --host a,b\" stands behind the program"), "{said}");
        let said = note_of("landeck run -n 2 ./first -n 4 -H a,b").unwrap();
        assert!(said.contains("\"-H a,b\""), "{said}");
        for line in [
            "landeck run -- ./first -n 4 --host a,b",
            "landeck run -n 2 ./first -n 4",
            "landeck run ./first -n four -x 4",
            "landeck run --host a ./first --host b",
            "landeck run ./first -n 4 : ./second",
            "landeck run ./first",
        ] {
            assert_eq!(note_of(line), None, "{line}");
        }
    }
}
