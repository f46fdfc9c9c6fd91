//! `landeck vm`: machines that stay.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, Subcommand};
use landeck_host::say::{SayError, complain, say};
use landeck_hostfile::HostListError;
use landeck_hostfile::host_list::from_words;
use landeck_launch::hosts_options::HostsOptions;
use landeck_launch::machine::{
    HostStatus, JobStatus, MachineError, MachineName, MachineNameError, MachineQuestion,
    MachineStatus, VARIABLE,
};
use landeck_launch::machine_call::{self, MachineCall};
use landeck_launch::machine_hosts::{self, Added};
use landeck_launch::request::LaunchError;

use crate::hosts::ReachArguments;
use crate::seeing::why::log_lines;

mod check;
mod map;
mod routes;
mod status;
mod watch;

/// Start, enlarge, show and stop a virtual machine: hosts that stay connected, and run many jobs.
///
/// `landeck run` on a host of a machine runs its job there: on this host first, and then where processors are free.
#[derive(Debug, Args)]
pub(crate) struct VmArguments {
    #[command(subcommand)]
    action: VmAction,
}

#[derive(Debug, Subcommand)]
enum VmAction {
    /// Start a machine on this host and others. It ends with this host, or by `landeck vm stop`.
    Start {
        /// The other hosts, by their names; ada@a logs in as ada. Or a file that describes them, such as lab.toml
        #[arg(value_name = "HOST")]
        hosts: Vec<String>,
        /// The name of the machine [default: that of the file, or of this host]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Start nothing unless all hosts join
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        reach: ReachArguments,
    },
    /// Add hosts to a machine.
    Add {
        /// The hosts, by their names; ada@a logs in as ada
        #[arg(value_name = "HOST", required = true)]
        hosts: Vec<String>,
        #[command(flatten)]
        which: WhichMachine,
        #[command(flatten)]
        reach: ReachArguments,
    },
    /// Check a file that describes a machine: its switches, interfaces, networks and sites.
    ///
    /// A right file is summed up: its hosts by sites, its gateways, and the hosts that share the uplink of a switch. A wrong one
    /// has its errors printed with their lines, and the exit code is 1.
    Check {
        /// The file, in TOML
        file: PathBuf,
    },
    /// Draw a machine: its sites, hosts, networks and switches.
    ///
    /// Without --svg, a map in text is printed. Hosts that take no part are shown with their state.
    Map {
        /// A file that describes a machine, in TOML [default: the running machine]
        #[arg(value_name = "FILE", conflicts_with = "machine")]
        file: Option<PathBuf>,
        #[command(flatten)]
        which: WhichMachine,
        /// Draw a picture into this SVG file
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
    /// Show which ways lead from a host to the others, with the reason for each.
    ///
    /// The first line for a host is the way that connections take. Others are taken when a step of that is broken. 1 MiB takes as
    /// long as the description says of the links, and the figures at the end were measured by a job.
    Routes {
        /// The host that they begin at [default: this one]
        from: Option<String>,
        #[command(flatten)]
        which: WhichMachine,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Let no further job come to a host.
    Drain {
        /// The host
        host: String,
        /// The reason, which `landeck vm status` shows
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
        #[command(flatten)]
        which: WhichMachine,
    },
    /// Let jobs come to a host again.
    Resume {
        /// The host
        host: String,
        #[command(flatten)]
        which: WhichMachine,
    },
    /// Take a host out of a machine, when the jobs there are over.
    Remove {
        /// The host
        host: String,
        /// End the jobs there
        #[arg(long)]
        now: bool,
        #[command(flatten)]
        which: WhichMachine,
    },
    /// Show what the daemon of this host has noted.
    Log {
        #[command(flatten)]
        which: WhichMachine,
    },
    /// Show the hosts and the jobs of a machine.
    ///
    /// RUNNING: tasks that run or wait for a processor, over the last seconds; LOAD: the load average of a minute; CPU%, MEM%,
    /// DISK%: the share of the last ten seconds in which some task waited for a processor, for memory or for a disk.
    Status {
        #[command(flatten)]
        which: WhichMachine,
        /// Write JSON; with --watch, one line a second
        #[arg(long)]
        json: bool,
        /// Show it again each second. On a terminal, q leaves
        #[arg(long)]
        watch: bool,
    },
    /// Watch how busy the hosts of a machine are, the busiest first.
    ///
    /// RUNNING: tasks that run or wait for a processor, over the last seconds; LOAD: the load average of a minute; CPU%, MEM%,
    /// DISK%: the share of the last ten seconds in which some task waited for a processor, for memory or for a disk. Keys: up
    /// and down move, q leaves. Without a terminal, a table is printed each second.
    Top {
        #[command(flatten)]
        which: WhichMachine,
        /// Print one table and exit
        #[arg(long)]
        once: bool,
    },
    /// End a machine on all its hosts.
    Stop {
        #[command(flatten)]
        which: WhichMachine,
        /// End its jobs, too. Without this, a machine with jobs stays.
        #[arg(long)]
        now: bool,
    },
}

/// The machine that is meant.
#[derive(Debug, Args)]
struct WhichMachine {
    /// The machine [default: the one that this host is in; also LANDECK_MACHINE]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
}

/// The reason why a command about a machine fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VmError {
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error("--name {0}")]
    Name(#[from] MachineNameError),
    #[error(
        "a machine {0} of this user is on this host already: landeck vm stop --machine {0} ends it"
    )]
    Taken(MachineName),
    #[error("{0}")]
    Hosts(#[from] HostListError),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(
        "this terminal cannot be used: {0}; into a pipe or a file, a table is printed each second"
    )]
    Terminal(std::io::Error),
    #[error("{path} cannot be read: {reason}; give a file that describes a machine")]
    Unreadable { path: String, reason: String },
    #[error("{path} cannot be written: {reason}; choose another file for --svg")]
    Unwritable { path: String, reason: String },
    #[error(transparent)]
    Say(#[from] SayError),
}

impl WhichMachine {
    fn call(&self) -> Result<MachineCall, VmError> {
        let named = self.machine.clone().or_else(|| std::env::var(VARIABLE).ok());
        Ok(MachineCall::begin(machine_call::find(named.as_deref())?)?)
    }
}

impl VmArguments {
    pub(crate) fn run(self) -> Result<ExitCode, VmError> {
        match self.action {
            VmAction::Start { hosts, name, all, reach } => start(&hosts, name, all, &reach),
            VmAction::Add { hosts, which, reach } => add(which.call()?, &hosts, &reach),
            VmAction::Status { which, json, watch } => show(which.call()?, json, watch),
            VmAction::Top { which, once } => top(which.call()?, once),
            VmAction::Check { file } => check::run(&file),
            VmAction::Map { file: Some(file), svg, .. } => {
                map::show_described(&file, svg.as_deref())
            }
            VmAction::Map { file: None, which, svg } => {
                map::show_running(which.call()?, svg.as_deref())
            }
            VmAction::Routes { from, which, json } => show_routes(which.call()?, from, json),
            VmAction::Drain { host, reason, which } => {
                let drain = MachineQuestion::Drain { host, reason };
                done(which.call()?.ask_to(drain)?)
            }
            VmAction::Resume { host, which } => {
                done(which.call()?.ask_to(MachineQuestion::Resume { host })?)
            }
            VmAction::Remove { host, now, which } => {
                done(which.call()?.remove(&host, now, |jobs| {
                    let jobs: Vec<String> = jobs.iter().map(running).collect();
                    let cure = if now { "" } else { "; --now ends jobs" };
                    complain(format_args!("landeck: waiting: {}{cure}", jobs.join(", ")));
                })?)
            }
            VmAction::Log { which } => {
                let host = own_name();
                let lines = which.call()?.log()?.into_iter();
                say(&log_lines(lines.map(|(at_ns, line)| (at_ns, host.clone(), line)).collect()))?;
                Ok(ExitCode::SUCCESS)
            }
            VmAction::Stop { which, now } => stop(which.call()?, now),
        }
    }
}

/// Shows the state of a machine, once or until it ends.
fn show(mut call: MachineCall, is_json: bool, watches: bool) -> Result<ExitCode, VmError> {
    match (watches, is_json) {
        (true, true) => watch::print(call, |status| format!("{}\n", status::value(status)))?,
        (true, false) if std::io::stdout().is_terminal() => watch::show(call, status::table)?,
        (true, false) => watch::print(call, |status| status::table(status) + "\n")?,
        (false, true) => say(&format!("{:#}\n", status::value(&call.status()?)))?,
        (false, false) => say(&status::table(&call.status()?))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the routes from a host to the others.
fn show_routes(
    mut call: MachineCall,
    from: Option<String>,
    is_json: bool,
) -> Result<ExitCode, VmError> {
    let routes = match call.routes(from)? {
        Ok(routes) => routes,
        Err(why) => return done(Err(why)),
    };
    let status = call.status()?;
    match is_json {
        true => say(&format!("{:#}\n", routes::value(&status, &routes)))?,
        false => say(&routes::text(&status, &routes))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows how busy the hosts of a machine are, once or until it ends.
fn top(mut call: MachineCall, is_once: bool) -> Result<ExitCode, VmError> {
    let text = status::busiest_first;
    match is_once {
        true => say(&text(&call.status()?))?,
        false if std::io::stdout().is_terminal() => watch::show(call, text)?,
        false => watch::print(call, |status| text(status) + "\n")?,
    }
    Ok(ExitCode::SUCCESS)
}

fn start(
    hosts: &[String],
    name: Option<String>,
    needs_all: bool,
    reach: &ReachArguments,
) -> Result<ExitCode, VmError> {
    let described = match hosts {
        [file] if file.ends_with(".toml") => Some(check::read(Path::new(file))?),
        _ => None,
    };
    if let Some(Err(errors)) = &described {
        errors.iter().for_each(complain);
        return Ok(ExitCode::FAILURE);
    }
    let described = described.and_then(Result::ok);
    let name = name.or_else(|| described.as_ref().map(|described| described.name.clone()));
    let name: MachineName = name.unwrap_or_else(own_name).parse()?;
    if machine_call::find(Some(&name.to_string())).is_ok() {
        return Err(VmError::Taken(name));
    }
    let others = described.as_ref().map(|described| described.hosts_but(&own_name()));
    let options = options(others.as_deref().unwrap_or(hosts), reach)?;
    let mut call = machine_hosts::found(&name, &options)?;
    if let Some(described) = described {
        let question = MachineQuestion::Describe { text: described.text };
        if let Err(why) = call.ask_to(question)? {
            complain(format_args!("landeck: {why}"));
            let _ = call.stop(true)?;
            return Ok(ExitCode::FAILURE);
        }
    }
    let outcomes = machine_hosts::add(&mut call, &options, |text| complain(text))?;
    let failed = tell_failures(&outcomes);
    if failed > 0 && needs_all {
        complain(format_args!("landeck: {name} was not started, since not all hosts have joined."));
        // It has no jobs.
        let _ = call.stop(true)?;
        return Ok(ExitCode::FAILURE);
    }
    let status = call.status()?;
    let founder = status.hosts.first().map_or("", |host| &host.name);
    say(&format!(
        "{name}: {}{}, founder {founder}: it ends with {founder}. Stop it by: landeck vm stop\n",
        size(&status),
        status::sites_and_gateways(&status)
    ))?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn add(
    mut call: MachineCall,
    hosts: &[String],
    reach: &ReachArguments,
) -> Result<ExitCode, VmError> {
    let options = options(hosts, reach)?;
    let before: Vec<_> = up(&call.status()?).map(|host| host.number).collect();
    let began = Instant::now();
    let outcomes = machine_hosts::add(&mut call, &options, |text| complain(text))?;
    let time = began.elapsed().as_secs_f64();
    let status = call.status()?;
    for (asked, outcome) in options.list.iter().zip(&outcomes) {
        let Ok(number) = outcome else { continue };
        let Some(host) = status.hosts.iter().find(|host| host.number == *number) else { continue };
        let name = &asked.name;
        let text = match before.contains(number) {
            true if *name == host.name => format!("{name} is in {} already\n", status.name),
            true => format!("{name} is {}, which is in {}\n", host.name, status.name),
            false => {
                format!("{name} has joined ({time:.1} s): {}\n", processors(host.cores.into()))
            }
        };
        say(&text)?;
    }
    let failed = tell_failures(&outcomes);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn stop(call: MachineCall, ends_jobs: bool) -> Result<ExitCode, VmError> {
    match call.stop(ends_jobs)? {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(jobs) => {
            let jobs: Vec<String> = jobs.iter().map(running).collect();
            complain(format_args!("landeck: {}: --now ends jobs", jobs.join(", ")));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The exit code of what was done, or not.
fn done(outcome: Result<(), String>) -> Result<ExitCode, VmError> {
    Ok(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            complain(format_args!("landeck: {why}"));
            ExitCode::FAILURE
        }
    })
}

fn running(job: &JobStatus) -> String {
    format!("{} runs ({})", job.name, job.host_names())
}

/// Says why hosts have not joined. Returns the number of those.
fn tell_failures(outcomes: &[Added]) -> usize {
    let failed: Vec<&String> =
        outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    failed.iter().for_each(|why| complain(format_args!("landeck: {why}")));
    failed.len()
}

/// The hosts to add, and how they are reached.
fn options(hosts: &[String], reach: &ReachArguments) -> Result<HostsOptions, VmError> {
    let list = if hosts.is_empty() { Vec::new() } else { from_words(&hosts.join(","))? };
    Ok(reach.apply(HostsOptions::new(list)))
}

fn own_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.split('.').next().unwrap_or_default().to_owned()
}

fn up(status: &MachineStatus) -> impl Iterator<Item = &HostStatus> {
    status.hosts.iter().filter(|host| host.state.is_up())
}

fn processors(cores: u32) -> String {
    format!("{cores} processor{}", if cores == 1 { "" } else { "s" })
}

fn size(status: &MachineStatus) -> String {
    let hosts = up(status).count();
    let cores = up(status).map(|host| u32::from(host.cores)).sum();
    format!("{hosts} host{}, {}", if hosts == 1 { "" } else { "s" }, processors(cores))
}
