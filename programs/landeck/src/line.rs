//! The words of a line of `landeck run` before they are parsed: programs are marked, so that their arguments stay theirs,
//! and options of other launchers get the spelling that is known here, or a hint.

use crate::mpiexec;
use crate::values::TagWith;
use clap::ValueEnum;
use clap::error::ErrorKind;
use std::ffi::{OsStr, OsString};

/// Splits a command line at the colons between programs. `run` defines `landeck run`.
pub(crate) fn split(
    line: Vec<OsString>,
    run: &clap::Command,
) -> Result<(Vec<OsString>, Vec<Vec<OsString>>), clap::Error> {
    let mut parts = line.split(|word| word == ":").map(<[OsString]>::to_vec);
    let first = parts.next().unwrap_or_default();
    let first = match first.get(..2) {
        Some([command, name]) if name == "run" => {
            let head = [command.clone(), name.clone()];
            head.into_iter().chain(with_program_marked(first[2..].to_vec(), run, run)?).collect()
        }
        _ => first,
    };
    Ok((first, parts.collect()))
}

/// Puts `--` before the program, whose arguments are its own. Options of other launchers such as `-np` and `-wdir`
/// get their second dash. `definition` is that of this part of a line, and `run` that of the first one.
pub(crate) fn with_program_marked(
    mut words: Vec<OsString>,
    definition: &clap::Command,
    run: &clap::Command,
) -> Result<Vec<OsString>, clap::Error> {
    const SINGLE: [&str; 7] =
        ["-np", "-wdir", "-ppn", "-host", "-hosts", "-hostfile", "-machinefile"];
    let mut at = 0;
    while at < words.len() && words[at].as_encoded_bytes().starts_with(b"-") {
        if words[at] == "--" {
            return Ok(words);
        }
        check_tag(&words[at..])?;
        if SINGLE.iter().any(|single| words[at] == *single) {
            let mut double = OsString::from("-");
            double.push(&words[at]);
            words[at] = double;
        } else if let Some(spelled) = with_number_apart(&words[at]) {
            words[at] = spelled;
        }
        check_place(&words[at], definition, run)?;
        at += if takes_next(&words[at], definition) { 2 } else { 1 };
    }
    if at < words.len() {
        words.insert(at, "--".into());
    }
    Ok(words)
}

/// The word `--np=2` for `-np2`, whose number would be read as one of `-n`.
fn with_number_apart(word: &OsStr) -> Option<OsString> {
    let word = word.to_str()?;
    let numbers = ["np", "ppn"].into_iter().filter_map(|name| {
        let digits = word.strip_prefix('-')?.strip_prefix(name)?;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| format!("--{name}={digits}").into())
    });
    numbers.into_iter().next()
}

/// Rejects an option of the whole job behind a colon, and an option of other launchers with one dash, which would be
/// read as several short ones.
fn check_place(
    word: &OsStr,
    definition: &clap::Command,
    run: &clap::Command,
) -> Result<(), clap::Error> {
    let Some(word) = word.to_str() else { return Ok(()) };
    let option = word.split('=').next().unwrap_or_default();
    let refused = |text: String| Err(clap::Error::raw(ErrorKind::UnknownArgument, text));
    if argument(option, definition).is_some() {
        return Ok(());
    }
    if argument(option, run).is_some() {
        return refused(format!(
            "{option} is for the whole job: write it before the first program\n"
        ));
    }
    let is_single = !option.starts_with("--") && option.len() > 2;
    match mpiexec::elsewhere(option).filter(|_| is_single) {
        Some(hint) => refused(format!("{hint}\n")),
        None => Ok(()),
    }
}

/// Rejects `--tag rank`, which may mean the value or a program of that name.
fn check_tag(words: &[OsString]) -> Result<(), clap::Error> {
    let [option, word, ..] = words else { return Ok(()) };
    let is_value = TagWith::value_variants()
        .iter()
        .any(|value| value.to_possible_value().is_some_and(|possible| word == possible.get_name()));
    if option != "--tag" || !is_value {
        return Ok(());
    }
    let word = word.to_string_lossy();
    let text = format!(
        "--tag {word}: write --tag={word} for what stands before each line, or --tag -- {word} for a \
         program that is called {word}\n"
    );
    Err(clap::Error::raw(ErrorKind::ValueValidation, text))
}

/// Whether the word after this option is its value.
fn takes_next(word: &OsStr, definition: &clap::Command) -> bool {
    word.to_str().and_then(|word| argument(word, definition)).is_some_and(|argument| {
        argument.get_action().takes_values() && !argument.is_require_equals_set()
    })
}

/// The definition of an option.
fn argument<'a>(option: &str, definition: &'a clap::Command) -> Option<&'a clap::Arg> {
    let is_it = |argument: &&clap::Arg| match option.strip_prefix("--") {
        Some(long) => {
            let others = argument.get_all_aliases().unwrap_or_default();
            argument.get_long() == Some(long) || others.contains(&long)
        }
        None => argument.get_short().is_some_and(|short| option[1..] == *short.to_string()),
    };
    definition.get_arguments().find(is_it)
}
