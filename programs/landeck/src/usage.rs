//! Messages about a wrong command line: the wrong word, and the words that are possible instead.

use crate::mpiexec;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use landeck_launch::program::is_near;
use std::error::Error as _;
use std::ffi::OsString;

/// Words by which users try to end a job.
const ENDING: [&str; 6] = ["stop", "kill", "cancel", "abort", "terminate", "quit"];
/// The way to end a job.
const HOW_TO_END: &str = "`landeck end JOB` ends a job, and `landeck ps` lists them";

/// A wrong command line of `landeck`.
pub(crate) struct Usage<'a> {
    error: &'a Error,
    line: &'a [OsString],
    /// The definition of the subcommand in the line, or of the whole command.
    command: &'a Command,
    /// Its name, such as `landeck run`.
    name: String,
}

/// The message about a wrong line. `runs` tells whether a line of `landeck run` would be understood.
pub(crate) fn text(
    error: &Error,
    line: &[OsString],
    definition: &Command,
    runs: impl Fn(Vec<OsString>) -> bool,
) -> String {
    let (mut command, mut name) = (definition, "landeck".to_owned());
    for word in line.iter().skip(1) {
        let Some(below) = command.find_subcommand(word) else { break };
        name += &format!(" {}", below.get_name());
        command = below;
    }
    let is_named = !std::ptr::eq(command, definition);
    let usage = Usage { error, line, command, name };
    let as_run = || usage.as_run().filter(|_| !is_named);
    match as_run().filter(|line| runs(line.clone())) {
        Some(line) => {
            let words: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
            format!("a command is missing; did you mean `{}`?", words.join(" "))
        }
        None => usage.text(),
    }
}

impl Usage<'_> {
    fn text(&self) -> String {
        let argument = self.strings(ContextKind::InvalidArg).join(", ");
        let value = self.strings(ContextKind::InvalidValue).concat();
        let see = format!("`{} -h` lists those there are", self.name);
        match self.error.kind() {
            ErrorKind::UnknownArgument if argument.is_empty() => first_words(self.error),
            ErrorKind::UnknownArgument => self.unknown(&argument, see),
            ErrorKind::InvalidSubcommand => {
                let near = self.strings(ContextKind::SuggestedSubcommand);
                let word = self.strings(ContextKind::InvalidSubcommand).concat();
                if ENDING.contains(&word.as_str()) {
                    return format!("there is no command {word}; {HOW_TO_END}");
                }
                let is_meant = |near: &&String| near.starts_with(&word) || is_near(near, &word);
                let near = did_you_mean(near.first().filter(is_meant));
                format!("there is no command {word}; {}", near.unwrap_or(see))
            }
            ErrorKind::InvalidValue if value.is_empty() => {
                let (option, name) = (self.written(&argument), value_name(&argument));
                format!("{option} needs {name} after it{}", self.choice())
            }
            ErrorKind::InvalidValue => {
                let option = self.written(&argument);
                let near = self.strings(ContextKind::SuggestedValue);
                let near = did_you_mean(near.first()).map(|near| format!("; {near}"));
                let near = near.unwrap_or_default();
                format!("{option} {value}: there is no such choice{}{near}", self.choice())
            }
            ErrorKind::ValueValidation if !argument.is_empty() => {
                let wanted = self.error.source().map(ToString::to_string).unwrap_or_default();
                let value = if value.is_empty() { "\"\"" } else { &value };
                format!("{} {value}: {wanted}", self.written(&argument))
            }
            ErrorKind::MissingRequiredArgument if argument.contains("PROGRAM") => {
                "a program is needed, as in `landeck run -n 4 ./program`".to_owned()
            }
            ErrorKind::MissingRequiredArgument => match argument.contains(", ") {
                true => format!("{argument} are needed; `{} -h` says what they mean", self.name),
                false => format!("{argument} is needed; `{} -h` says what it means", self.name),
            },
            ErrorKind::ArgumentConflict => {
                let prior = self.strings(ContextKind::PriorArg).join(", ");
                match prior.is_empty() || prior == argument {
                    true => format!("{} can be given once only", self.written(&argument)),
                    false => {
                        format!("{argument} cannot be used with {prior}; leave one of them out")
                    }
                }
            }
            _ => first_words(self.error),
        }
    }

    /// The message about an unknown option.
    fn unknown(&self, option: &str, see: String) -> String {
        if !option.starts_with('-') {
            return format!(
                "{option} is one word too many; `{} -h` says what is wanted",
                self.name
            );
        }
        let is_run = self.command.get_name() == "run";
        if let Some(known) = mpiexec::elsewhere(option).filter(|_| is_run) {
            return known;
        }
        let near = self.strings(ContextKind::SuggestedArg);
        let is_meant = |near: &&String| near.starts_with(option) || is_near(near, option);
        let near = did_you_mean(near.first().filter(is_meant));
        format!("there is no option {option}; {}", near.unwrap_or(see))
    }

    /// The line with `run` behind the command's name, if it begins with an option or a path.
    fn as_run(&self) -> Option<Vec<OsString>> {
        let kind = self.error.kind();
        if !matches!(kind, ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) {
            return None;
        }
        let (_, words) = self.line.split_first()?;
        let first = words.first()?.to_string_lossy();
        (first.starts_with('-') || first.contains('/')).then(|| {
            [OsString::from("landeck"), "run".into()]
                .into_iter()
                .chain(words.iter().cloned())
                .collect()
        })
    }

    /// An option in the user's spelling, without the placeholder of its value.
    fn written(&self, argument: &str) -> String {
        let bare = argument.split(['<', '[', '=']).next().unwrap_or_default().trim();
        let Some(long) = bare.strip_prefix("--") else {
            return if bare.is_empty() { value_name(argument) } else { bare.to_owned() };
        };
        let is_written = self.line.iter().any(|word| word.to_string_lossy().starts_with(bare));
        let is_it = |candidate: &&Arg| candidate.get_long() == Some(long);
        let short = self.command.get_arguments().find(is_it).and_then(Arg::get_short);
        match short.filter(|_| !is_written) {
            Some(short) => format!("-{short}"),
            None => bare.to_owned(),
        }
    }

    /// The possible values.
    fn choice(&self) -> String {
        match self.strings(ContextKind::ValidValue).join(", ") {
            none if none.is_empty() => String::new(),
            values => format!("; choose one of {values}"),
        }
    }

    fn strings(&self, kind: ContextKind) -> Vec<String> {
        match self.error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        }
    }
}

fn did_you_mean(near: Option<&String>) -> Option<String> {
    near.map(|near| format!("did you mean {near}?"))
}

/// The placeholder of the value in `--np <N>` or `[JOB]`.
fn value_name(argument: &str) -> String {
    let name = argument.split(['<', '[']).nth(1).unwrap_or("a value");
    name.trim_end_matches(['.', '>', ']']).trim_end_matches(['>', ']', '.']).to_owned()
}

/// The first paragraph of clap's message, without its first word.
fn first_words(error: &Error) -> String {
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use crate::cli;
    use std::ffi::OsString;

    /// The error text for a command line of `landeck`.
    fn said(line: &str) -> String {
        let words = std::iter::once("landeck").chain(line.split(' ')).map(OsString::from);
        let words: Vec<OsString> = words.collect();
        cli::parse(words.clone()).unwrap_err().text(&words)
    }

    #[test]
    fn a_wrong_word_is_named_with_what_is_wanted() {
        for (line, text) in [
            (
                "run --verbose ./p",
                "--verbose is not supported: landeck run --dry-run and --report-bindings say",
            ),
            ("run --timout 3 ./p", "there is no option --timout; did you mean --timeout?"),
            (
                "run --rankmap h ./p",
                "--rankmap is not supported: ranks are placed by --ppn and --map-by; leave",
            ),
            ("run -l ./p", "-l is an option of mpiexec; write --tag"),
            ("run -pernode ./p", "-pernode is an option of mpiexec; write --ppn 1"),
            ("run -genv A 1 ./p", "-genv is an option of mpiexec; write -x NAME=VALUE"),
            ("run --mca btl self ./p", "--mca is not supported: it sets parameters of another"),
            ("run --display-map ./p", "--display-map is not supported: landeck run --dry-run"),
            ("run --ntasks 4 ./p", "--ntasks is not supported: it is an option of srun: -n gives"),
            (
                "run --host a,b -n 1 ./x : -n 1 --host b ./y",
                "--host is for the whole job: write it before the first program",
            ),
            ("run --rsh ssh' ./p", "--rsh ssh': a quote or a backslash stands open at its end"),
            ("stop", "there is no command stop; `landeck end JOB` ends a job"),
            ("kill 123", "there is no command kill; `landeck end JOB` ends a job"),
            ("why --tsacks", "there is no option --tsacks; did you mean --stacks?"),
            ("run --output d ./p", "there is no option --output; did you mean --output-dir?"),
            ("why one two", "two is one word too many; `landeck why -h` says what is wanted"),
            ("group show", "<GROUP> is needed; `landeck group show -h` says what it means"),
            ("run -n two ./p", "-n two: a whole number is wanted, from 1 to 16,368, such as 4"),
            ("run --np 0 ./p", "--np 0: a whole number is wanted, from 1 to 16,368, such as 4"),
            ("run -n 2", "a program is needed, as in `landeck run -n 4 ./program`"),
            (
                "run --bind-to board x",
                "--bind-to board: there is no such choice; choose one of none, hwthread",
            ),
            ("run --tag rank ./p", "--tag rank: write --tag=rank for what stands before each line"),
            ("run --timeout", "--timeout needs TIME after it"),
            ("run --stacks ./p", "--timeout <TIME> is needed; `landeck run -h` says what it means"),
            ("-n 2 ./p", "a command is missing; did you mean `landeck run -n 2 ./p`?"),
            ("./p -n 2", "a command is missing; did you mean `landeck run ./p -n 2`?"),
            (
                "--frobnicate ./p",
                "there is no option --frobnicate; `landeck -h` lists those there are",
            ),
            ("runn ./p", "there is no command runn; did you mean run?"),
            ("nosuch", "there is no command nosuch; `landeck -h` lists those there are"),
            ("run", "a program is needed, as in `landeck run -n 4 ./program`"),
            (
                "generate",
                "<WHAT>, <DIRECTORY> are needed; `landeck generate -h` says what they mean",
            ),
            ("why --json --stacks", "--json cannot be used with --stacks; leave one of them out"),
            (
                "plan brodcast -a ring -n 3",
                "OPERATION brodcast: there is no such choice; choose one of barrier, broadcast, ",
            ),
        ] {
            let said = said(line);
            assert!(said.starts_with(text), "{line}: {said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }
}
