//! The helper of a machine on this host: it publishes the load of the host, and serves the groups whose logs lie here.

use std::io::{self, BufRead as _};
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use landeck::unstable::Helper;
use landeck::{
    Error, ErrorKind, Group, GroupError, GroupOptions, Job, LOAD_GROUP, LoadReport, Message,
    Options, Result, ThreadMode, WhenFull,
};

/// A member whose mailbox has no room for a load is evicted after this time.
const EVICTS_AFTER: Duration = Duration::from_millis(500);
/// How long a load may take to be accepted.
const TELLS_WITHIN: Duration = Duration::from_secs(2);
/// The bytes of all loads that members have not retrieved.
const BYTES: u64 = 1 << 20;

/// Helps a job until that ends, or the daemon does.
pub(crate) fn run(job: &str) -> ExitCode {
    let options = Options { threads: ThreadMode::Multiple, ..Options::default() };
    let helped = Helper::join(job, options).and_then(|helper| {
        let helper = Arc::new(helper);
        let server = helper.clone();
        // It ends with this process, and this process with its failure: the next helper may do better.
        thread::spawn(move || server.serve_groups().unwrap_or_else(|error| fail(&error)));
        publish(helper.job())
    });
    match helped {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Ends this process, and says why; the daemon notes it.
fn fail(error: &Error) -> ! {
    eprintln!("landeckd: the helper of this host ends: {error}");
    process::exit(1)
}

/// Publishes each load that the daemon writes to standard input, until the daemon or the job ends.
fn publish(job: &Job) -> Result<()> {
    let mut group = None;
    for line in io::stdin().lock().lines().map_while(io::Result::ok) {
        let Ok(report) = line.parse::<LoadReport>() else { continue };
        let open = group.take().map_or_else(|| open(job, &report), Ok);
        let told = open.and_then(|open| tell(&open, &line).map(|()| open));
        match told {
            Ok(open) => group = Some(open),
            Err(Error { kind: ErrorKind::Ended, .. }) => break,
            // The group has ended, or is not there yet: the next load looks for it again.
            Err(_) => {}
        }
    }
    Ok(())
}

/// Opens the group. The founder's helper makes it, so that it ends with the machine alone.
fn open(job: &Job, report: &LoadReport) -> Result<Group> {
    match job.open_group(LOAD_GROUP) {
        Err(Error { kind: ErrorKind::Object(_), .. }) if report.number.0 == 0 => {
            let options = GroupOptions::default().persistent(true).bytes(BYTES);
            job.create_group(LOAD_GROUP, options.when_full(WhenFull::Evict(EVICTS_AFTER)))
        }
        opened => opened,
    }
}

/// Broadcasts a load. One that is not accepted in time is followed by the next one.
fn tell(group: &Group, line: &str) -> Result<()> {
    let mut message = Message::new();
    match group.broadcast_within(message.pack_text(line), TELLS_WITHIN) {
        Err(Error {
            kind: ErrorKind::Group(GroupError::Full { .. }) | ErrorKind::TimedOut(_),
            ..
        }) => Ok(()),
        told => told,
    }
}
