//! The `landeck` command.
#![forbid(unsafe_code)]

mod bench;
mod cli;
mod clusters;
mod doctor;
mod end;
mod generate;
mod hosts;
mod line;
mod misplaced;
mod mpiexec;
mod picture;
mod plan;
mod seeing;
mod simulate;
mod tune;
mod usage;
mod values;
mod vm;
mod wishes;

use clap::error::ErrorKind;
use cli::{Command, Usage};
use hosts::{HostsAsked, Surroundings};
use landeck::settings::SettingError;
use landeck::tuning;
use landeck_collectives::Settings;
use landeck_host::say::{complain, heard, say};
use landeck_host::start_signals;
use landeck_launch::request::{LAUNCHER_FAILED, Launch};
use mpiexec::Asked;
use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;
use wishes::Wishes;

/// The exit code of a wrong command line.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    start_signals::take_over();
    let line: Vec<OsString> = std::env::args_os().collect();
    match mpiexec::read(&line, |name| std::env::var_os(name)) {
        Ok(Asked::Nothing) => follow(line),
        Ok(Asked::Run(translated)) => follow(translated),
        Ok(Asked::Help) => print(mpiexec::HELP),
        Ok(Asked::Version) => print(concat!("mpiexec (Landeck) ", env!("CARGO_PKG_VERSION"), "\n")),
        Err(error) => {
            complain(format_args!("mpiexec: {error}"));
            ExitCode::from(WRONG_USAGE)
        }
    }
}

/// Executes a command line of `landeck`.
fn follow(line: Vec<OsString>) -> ExitCode {
    let written = line.clone();
    match cli::parse(line) {
        Ok(Command::Run(launch, wishes, hosts)) => {
            if let Some(note) = misplaced::note(&written, &launch, &hosts) {
                complain(format_args!("landeck: {note}"));
            }
            run(*launch, &wishes, &hosts)
        }
        Ok(Command::Tune { is_forced }) => said(tune::run(is_forced)),
        Ok(Command::TuneHosts(hosts)) => said(tune::several(&hosts)),
        Ok(Command::ShowTuning { processes, wishes }) => said(tune::show(processes, &wishes)),
        Ok(Command::Measure(subject)) => said(tune::measure::run(subject)),
        Ok(Command::MeasureWay(way)) => said(simulate::measured::run(&way)),
        Ok(Command::Plan(plan)) => {
            plan.run().map_or_else(|error| failed(error, WRONG_USAGE), |()| ExitCode::SUCCESS)
        }
        Ok(Command::Doctor(doctor)) => shown(doctor.run()),
        Ok(Command::Ps(ps)) => shown(ps.run()),
        Ok(Command::Top(top)) => shown(top.run()),
        Ok(Command::Why(why)) => shown(why.run()),
        Ok(Command::End(end)) => end.run(),
        Ok(Command::Group(group)) => shown(group.run()),
        Ok(Command::Simulate(simulate)) => shown(simulate.run()),
        Ok(Command::Vm(vm)) => vm.run().unwrap_or_else(|error| failed(error, LAUNCHER_FAILED)),
        Ok(Command::Bench(bench)) => failed(bench.run(), 1),
        Ok(Command::Generate { what, directory }) => {
            let place = directory.display().to_string();
            said(generate::write(what, &directory).map_err(|error| format!("{place}: {error}")))
        }
        Err(usage) => answer(&usage, &written),
    }
}

/// Prints the help, or the fault of a command line.
fn answer(usage: &Usage, line: &[OsString]) -> ExitCode {
    let Usage(error) = usage;
    if !error.use_stderr() {
        return said(heard(error.print()));
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(WRONG_USAGE);
    }
    failed(usage.text(line), WRONG_USAGE)
}

/// Starts a job with the settings of this host. The user's wishes override them.
fn run(mut launch: Launch, wishes: &Wishes, hosts: &HostsAsked) -> ExitCode {
    if let Err(error) = hosts.settle(&mut launch, &Surroundings::real()) {
        return failed(&error, error.exit_code());
    }
    match settings(&launch, wishes) {
        Ok(settings) => {
            launch.settings = settings.to_words();
            launch.store = landeck::settings::store(&settings);
        }
        Err(error) => return failed(error, LAUNCHER_FAILED),
    }
    match launch.run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => failed(&error, error.exit_code()),
    }
}

/// The settings of a job. The host is probed where the finding may decide for its processes.
fn settings(launch: &Launch, wishes: &Wishes) -> Result<Settings, SettingError> {
    let exports = launch.programs.iter().flat_map(|program| &program.exports);
    let asked = wishes.settings(
        exports.filter_map(|export| Some((export.name.as_os_str(), export.value.as_deref()?))),
    )?;
    let is_alone = matches!(&launch.programs[..], [only] if only.processes == Some(1));
    if !launch.dry_run && !is_alone {
        tuning::probe(&asked);
    }
    let (settings, trouble) = tuning::with_figures(asked);
    if let Some(trouble) = trouble {
        complain(format_args!("landeck: {trouble}"));
    }
    Ok(settings)
}

/// Prints a text.
fn print(text: &str) -> ExitCode {
    said(say(text))
}

fn said<T, E: Display>(result: Result<T, E>) -> ExitCode {
    result.map_or_else(|error| failed(error, 1), |_| ExitCode::SUCCESS)
}

fn shown<E: Display>(result: Result<ExitCode, E>) -> ExitCode {
    result.unwrap_or_else(|error| failed(error, WRONG_USAGE))
}

fn failed(error: impl Display, exit_code: u8) -> ExitCode {
    complain(format_args!("landeck: {error}"));
    ExitCode::from(exit_code)
}
