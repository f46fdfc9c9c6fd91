//! Jobs that go on without a terminal: their output, and the message that they have begun.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use landeck_host::detached;
use landeck_memory::JobName;
use landeck_wire::HostNumber;

use super::{HostState, Job};
use crate::output::JobOutput;
use crate::output_files::DetachedFile;
use crate::record::Record;
use crate::request::{LaunchError, system};

impl Job<'_> {
    /// The first host of a job of which this host has no picture: it has no part here, and no machine that stays.
    fn only_elsewhere(&self) -> Option<&str> {
        let is_here =
            |host: &HostState| [HostNumber::NONE, HostNumber::ARBITER].contains(&host.number);
        let is_seen = self.launch.machine.is_some() || self.hosts.iter().any(is_here);
        self.record.as_ref().filter(|_| !is_seen).map(|record| record.host(0))
    }

    /// Lets the process that was started go, when all processes of a detached job run.
    pub(super) fn leave_starter(&mut self) -> Result<(), LaunchError> {
        let has_begun = self.record.as_ref().is_some_and(Record::has_begun);
        let Some(mut file) = self.detached.take_if(|_| has_begun) else { return Ok(()) };
        file.keep();
        let places = self.launch.output_directory.as_ref().and(file.path().parent());
        let name = JobName::new(&self.launch.job_name()).to_string();
        let job = self.job.map(|job| job.to_string()).unwrap_or_default();
        let text = begun_text(&name, &job, places.unwrap_or(file.path()), self.only_elsewhere());
        self.output.leave_starter();
        detached::is_ready(&text, Some(file.as_fd())).map_err(system("leave its terminal"))
    }
}

/// The output of a job: in the launcher's own streams, or in the file of a detached one.
pub(super) fn own_output(processes: usize, file: Option<&DetachedFile>) -> io::Result<JobOutput> {
    let own = |stream: BorrowedFd<'_>| stream.try_clone_to_owned();
    Ok(match file {
        Some(file) => JobOutput::of_detached(processes, file.descriptor()?, file.descriptor()?),
        None => JobOutput::new(processes, own(io::stdout().as_fd())?, own(io::stderr().as_fd())?),
    })
}

/// The message that a detached job has begun. `elsewhere` is the host that has a picture of it, if this one has none.
fn begun_text(name: &str, job: &str, output: &Path, elsewhere: Option<&str>) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let word = if name.chars().all(is_plain) { name } else { job };
    let (pid, output) = (std::process::id(), output.display());
    let place = elsewhere.map_or_else(String::new, |host| format!(" on {host}"));
    format!(
        "{name} ({job}) has begun, launcher pid {pid}. Output: {output}\n\
         See it by: landeck ps {word}{place}. End it by: landeck end {word}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detached_job_tells_the_words_that_reach_it() {
        let text = |name, elsewhere| begun_text(name, "00ff", Path::new("/o"), elsewhere);
        let pid = std::process::id();
        let first = |name| format!("{name} (00ff) has begun, launcher pid {pid}. Output: /o\n");
        let lines = "See it by: landeck ps heat. End it by: landeck end heat\n";
        assert_eq!(text("heat", None), first("heat") + lines);
        let lines = "See it by: landeck ps 00ff. End it by: landeck end 00ff\n";
        assert_eq!(text("a b", None), first("a b") + lines);
        let lines = "See it by: landeck ps heat on n2. End it by: landeck end heat\n";
        assert_eq!(text("heat", Some("n2")), first("heat") + lines);
    }
}
