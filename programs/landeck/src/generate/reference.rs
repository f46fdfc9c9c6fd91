//! The book's chapter about the command: every subcommand with its options, from the help.

use clap::{Arg, Command};

const HEAD: &str = "\
# The command

<!-- Made by `cargo xtask book` from the definition that the help and the manual pages come from. -->

Every subcommand prints this with `--help`, and has a manual page: `man landeck-run`.

| command | effect |
|---|---|
";

/// The text of the chapter.
pub(super) fn text(mut definition: Command) -> String {
    definition = definition.term_width(100);
    definition.build();
    let shown = || definition.get_subcommands().filter(|command| is_shown(command));
    let mut text = HEAD.to_owned();
    for command in shown() {
        let (name, about) = (command.get_name(), styled(command.get_about()));
        text += &format!("| [`landeck {name}`](#landeck-{name}) | {} |\n", cell(&about));
    }
    for command in shown() {
        text += &section(command);
    }
    text
}

fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

fn section(command: &Command) -> String {
    let about = styled(command.get_long_about().or(command.get_about()));
    let usage = command.clone().render_usage().to_string();
    let mut text = format!("\n## landeck {}\n\n{about}\n\n", command.get_name());
    text += &format!("```text\n{usage}\n```\n");
    text += &options(command, command.get_name());
    let notes = styled(command.get_after_long_help().or(command.get_after_help()));
    if !notes.is_empty() {
        text += &format!("\n```text\n{notes}\n```\n");
    }
    text
}

/// A table of options under each heading, or of the subcommands' options if there are any.
fn options(command: &Command, name: &str) -> String {
    let mut text = String::new();
    for below in command.get_subcommands().filter(|command| is_shown(command)) {
        let name = format!("{name} {}", below.get_name());
        text += &format!("\n`landeck {name}`: {}\n", cell(&styled(below.get_about())));
        text += &options(below, &name);
    }
    let is_shown = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "help";
    let shown: Vec<&Arg> = command.get_arguments().filter(is_shown).collect();
    let mut headings: Vec<Option<&str>> = Vec::new();
    for heading in shown.iter().map(|argument| argument.get_help_heading()) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for heading in headings {
        text += &format!("\n| {} | effect |\n|---|---|\n", heading.unwrap_or("option"));
        for argument in shown.iter().filter(|argument| argument.get_help_heading() == heading) {
            text += &format!("| {} | {} |\n", names(argument), cell(&meaning(argument)));
        }
    }
    text
}

/// The forms of an option, such as `-n`, `--np N`.
fn names(argument: &Arg) -> String {
    let values: Vec<&str> =
        argument.get_value_names().into_iter().flatten().map(|name| name.as_str()).collect();
    let takes_value = argument.get_action().takes_values();
    let value = match takes_value {
        true if argument.is_require_equals_set() => format!("[={}]", values.join(" ")),
        true => format!(" {}", values.join(" ")),
        false => String::new(),
    };
    let short = argument.get_short().map(|letter| format!("`-{letter}`, "));
    match argument.get_long() {
        Some(long) => format!("{}`--{long}{}`", short.unwrap_or_default(), value.trim_end()),
        None => match argument.get_short() {
            Some(letter) => format!("`-{letter}{}`", value.trim_end()),
            None => format!("`{}`", value.trim()),
        },
    }
}

/// The help, the possible values, and the default.
fn meaning(argument: &Arg) -> String {
    let mut text = styled(argument.get_long_help().or(argument.get_help()));
    let possible: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if argument.get_action().takes_values() && !possible.is_empty() {
        text += &format!(" [{}]", possible.join(", "));
    }
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if argument.get_action().takes_values()
        && !defaults.is_empty()
        && !argument.is_hide_default_value_set()
    {
        text += &format!(" [default: {}]", defaults.join(" "));
    }
    text
}

fn styled(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default().trim().to_owned()
}

/// The text on one line of a table.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chapter_is_what_the_command_says() {
        let chapter = include_str!("../../../../docs/launcher.md");
        let text = text(crate::cli::definition());
        assert!(chapter == text, "docs/launcher.md is out of date: run `cargo xtask book`");
        for word in
            ["## landeck run", "| `-n`, `--np N` |", "## landeck why", "`--on-failure WHAT`"]
        {
            assert!(chapter.contains(word), "{word}");
        }
        assert!(!chapter.contains("generate") && !chapter.contains("measure-way"));
    }
}
