//! `landeck group`: the named groups of a job, their members, joins and leaves, and the check of traces.

use super::{SeeingError, traces};
use clap::{Args, Subcommand};
use landeck::unstable::JobInternals;
use landeck::{
    Error, ErrorKind, Gone, Group, GroupError, GroupMember, GroupView, Job, Options, ToldView,
    ViewMember,
};
use landeck_host::say::say;
use landeck_joining::observe;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// How often it checks whether the job still runs.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Show the named groups of a job, and check what they have delivered.
///
/// But for `check`, the command joins the job as a guest while it runs, and is no member of any group.
#[derive(Debug, Args)]
pub(crate) struct GroupArguments {
    #[command(subcommand)]
    asked: Asked,
}

#[derive(Debug, Subcommand)]
enum Asked {
    /// List the groups of a job
    Ls {
        /// The job: its name, or the first digits of its identity [default: the only one that runs]
        #[arg(value_name = "JOB")]
        job: Option<String>,
    },
    /// Show the members of a group, and the number of broadcasts that each has not retrieved
    Show(One),
    /// Show each view, with the members that have joined or gone, until the group ends
    Watch(One),
    /// Check what the members of groups saw, from the traces that they wrote
    ///
    /// Reads all traces in a directory, such as that of `landeck run --output-dir`, and judges what groups promise:
    /// order, views, what stays when processes and hosts are lost. Exit code 1 if a promise was broken, or if a trace was
    /// edited or cut.
    Check {
        /// The directory with the traces
        #[arg(value_name = "DIRECTORY")]
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
struct One {
    /// The name of the group
    #[arg(value_name = "GROUP")]
    group: String,
    /// The job: its name, or the first digits of its identity [default: the only one that runs]
    #[arg(value_name = "JOB")]
    job: Option<String>,
}

impl GroupArguments {
    /// Runs the subcommand.
    pub(crate) fn run(&self) -> Result<ExitCode, SeeingError> {
        match &self.asked {
            Asked::Ls { job } => list(&visit(job.as_deref())?),
            Asked::Show(One { group, job }) => {
                let job = visit(job.as_deref())?;
                let group = job.open_group(group)?;
                tell(&format!("{}{}", headline(&group)?, rows(&job, &group.view()?)))
            }
            Asked::Watch(One { group, job }) => {
                let job = visit(job.as_deref())?;
                watch(&job, &job.open_group(group)?)
            }
            Asked::Check { directory } => return Ok(traces::check_directory(directory)?),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

/// Joins a job as a guest, which leaves when it is dropped.
fn visit(job: Option<&str>) -> Result<Job, SeeingError> {
    let found = observe::find(job)?;
    Ok(Job::join_running(&found.host.to_string(), Options::default())?)
}

fn list(job: &Job) -> Result<(), SeeingError> {
    let names = job.group_names()?;
    if names.is_empty() {
        return tell("No named group is in this job.\n");
    }
    for name in names {
        match job.open_group(&name) {
            Ok(group) => tell(&headline(&group)?)?,
            // The job has ended since.
            Err(Error {
                kind: ErrorKind::Object(_) | ErrorKind::Group(GroupError::GroupDestroyed { .. }),
                ..
            }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn headline(group: &Group) -> Result<String, SeeingError> {
    let view = group.view()?;
    let minimum = match view.has_started {
        true => String::new(),
        false => format!(", starts with {}", group.options().members_to_start()),
    };
    let members = counted(view.members.len() as u64, "member");
    let sent = counted(group.broadcasts()?, "broadcast");
    Ok(format!("{}: {members}{minimum}, view {}, {sent}\n", group.name(), view.number))
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn rows(job: &Job, view: &GroupView) -> String {
    let row = |member: &GroupMember| {
        let process = job.process_in_words(member.mailbox.process());
        format!("  {:>4}  {process}, {} not retrieved\n", member.id, member.waiting)
    };
    view.members.iter().map(row).collect()
}

fn watch(job: &Job, group: &Group) -> Result<(), SeeingError> {
    let view = group.view()?;
    tell(&format!("{}{}", headline(group)?, rows(job, &view)))?;
    let mut number = view.number;
    loop {
        match group.next_view_within(number, LOOK_EVERY) {
            Ok(next) => {
                tell(&changes(job, &next))?;
                number = next.number();
            }
            Err(Error { kind: ErrorKind::TimedOut(_), .. }) => {}
            Err(Error {
                kind: ErrorKind::Group(GroupError::GroupDestroyed { .. }) | ErrorKind::Ended,
                ..
            }) => {
                return tell(&format!("{} is no more\n", group.name()));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The members that have joined or gone with a view, a line each.
fn changes(job: &Job, view: &ToldView) -> String {
    let line = |member: &ViewMember, what: &str| {
        let (number, after) = (view.number(), counted(view.after(), "message"));
        let process = job.process_in_words(member.mailbox.process());
        format!("view {number} after {after}: member {} ({process}) {what}\n", member.id)
    };
    let gone = view.departed().iter().map(|(member, how)| line(member, how_in_words(*how)));
    gone.chain(view.joined().iter().map(|member| line(member, "has joined"))).collect()
}

fn how_in_words(how: Gone) -> &'static str {
    match how {
        Gone::Left => "has left",
        Gone::Died => "has died",
        Gone::Evicted => "was evicted",
        Gone::HostLost => "was lost with its host",
    }
}

fn tell(text: &str) -> Result<(), SeeingError> {
    Ok(say(text)?)
}
