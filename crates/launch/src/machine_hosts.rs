//! Making a machine that stays, and adding hosts to it: the command itself runs the remote shells, in its user's terminal.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use landeck_hostfile::host_list::is_this_host;
use landeck_wire::HostNumber;
use rustix::event::epoll::EventFlags;

use crate::arbiter::way_of;
use crate::gathering::{Admission, AdmissionRefusal, Admitted, Gathering};
use crate::hosts_options::HostsOptions;
use crate::machine::{
    HostStatus, MachineAnswer, MachineError, MachineName, MachineQuestion, MachineStatus,
};
use crate::machine_call::MachineCall;
use crate::remote_start::{STARTS_AT_ONCE, find_daemon};
use crate::request::{LaunchError, system};
use crate::watch::Watch;

/// How often the machine is asked which hosts have come.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a remote shell has to pass on the last words of a daemon that is ready. The shell ends then.
const WORDS_TIME: Duration = Duration::from_secs(2);
/// Each host has so many tokens for its remote shell.
const TOKENS: u64 = 2;

/// The outcome for a host that was to be added: its number, or the reason why it takes no part.
pub type Added = Result<HostNumber, String>;

/// Founds a machine on this host. It has no other host yet.
///
/// # Errors
/// [`LaunchError::NoDaemon`]; [`LaunchError::MachineNotFounded`], whose reason the daemon has written to the standard error.
pub fn found(name: &MachineName, options: &HostsOptions) -> Result<MachineCall, LaunchError> {
    let way = way_of(options)?;
    let mut daemon = Command::new(&way.daemon);
    let timeout_ms = options.host_timeout.as_millis().to_string();
    daemon.args(["found", "--machine", &name.to_string(), "--host-timeout", &timeout_ms]);
    if options.is_plain {
        daemon.arg("--plain");
    }
    let is_found = daemon.args(&way.arguments).stdin(Stdio::null()).status();
    match is_found.map_err(system("start landeckd"))?.success() {
        true => Ok(MachineCall::begin(name.clone())?),
        false => Err(LaunchError::MachineNotFounded),
    }
}

/// Adds hosts to a machine, all at the same time, and waits until each has joined or failed. `say` gets texts for the user.
///
/// # Errors
/// The machine does not answer; this process cannot watch the remote shells.
pub fn add(
    call: &mut MachineCall,
    options: &HostsOptions,
    mut say: impl FnMut(&str),
) -> Result<Vec<Added>, LaunchError> {
    find_daemon().ok_or(LaunchError::NoDaemon { folder: None })?;
    let mut way = way_of(options)?;
    way.arguments.extend(["--machine".to_owned(), call.name().to_string()]);
    let mut outcomes = Vec::with_capacity(options.list.len());
    for hosts in options.list.chunks(STARTS_AT_ONCE) {
        let status = call.status()?;
        let watch = Watch::new().map_err(system("watch the remote shells"))?;
        let mut admission = CommandAdmission { call, watch, status };
        let one = |(number, name): (u64, String)| {
            Gathering::new(way.clone(), vec![name], number * TOKENS)
        };
        let names = hosts.iter().map(|host| host.name.clone());
        outcomes.extend(gather(&mut admission, (0..).zip(names).map(one).collect(), &mut say)?);
    }
    Ok(outcomes)
}

/// Goes on with each host until it has joined or failed.
fn gather(
    admission: &mut CommandAdmission<'_>,
    mut hosts: Vec<Gathering>,
    say: &mut impl FnMut(&str),
) -> Result<Vec<Added>, LaunchError> {
    let mut outcomes: Vec<Option<Added>> = vec![None; hosts.len()];
    let mut words_until = None;
    loop {
        for (host, outcome) in hosts.iter_mut().zip(&mut outcomes) {
            if outcome.is_none() {
                *outcome = host.go_on(admission).map(|outcome| match outcome {
                    Ok(numbers) => numbers.first().copied().ok_or_else(String::new),
                    Err(texts) => Err(texts.join("\n")),
                });
            }
        }
        let has_all = outcomes.iter().all(Option::is_some);
        let until = has_all.then(|| *words_until.get_or_insert(Instant::now() + WORDS_TIME));
        let each = hosts.iter_mut().map(|host| host.may_say_more(admission));
        let may_say_more = each.fold(false, |some_may, one_may| some_may | one_may);
        hosts.iter_mut().flat_map(Gathering::take_said).for_each(|text| say(&text));
        if until.is_some_and(|until| !may_say_more || Instant::now() >= until) {
            return Ok(outcomes.into_iter().flatten().collect());
        }
        let ready = admission.watch.wait(Some(LOOK_INTERVAL));
        for token in ready.map_err(system("watch the remote shells"))? {
            if let Some(host) = hosts.get_mut((token / TOKENS) as usize) {
                host.ready(admission, token);
            }
        }
        admission.status = admission.call.status()?;
        let up = admission.status.hosts.iter().filter(|host| host.state.is_up());
        for number in up.map(|host| host.number).collect::<Vec<_>>() {
            hosts.iter_mut().for_each(|host| host.host_up(admission, number));
        }
    }
}

/// The machine, as the command has it that adds hosts.
struct CommandAdmission<'a> {
    call: &'a mut MachineCall,
    watch: Watch,
    /// The machine's state at the last look.
    status: MachineStatus,
}

impl Admission for CommandAdmission<'_> {
    fn watch(&mut self, what: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.watch.set(token, &what, EventFlags::IN)
    }

    fn unwatch(&mut self, what: BorrowedFd<'_>) {
        self.watch.forget(&what);
    }

    /// The loop looks often enough.
    fn wake_in(&mut self, _: Duration) {}

    fn is_here(&self, name: &str) -> Option<HostNumber> {
        let is_it = |host: &&HostStatus| is_this_host(name, &host.name);
        let mut up = self.status.hosts.iter().filter(|host| host.state.is_up());
        up.find(is_it).map(|host| host.number)
    }

    fn admit(&mut self, names: &[&str], line: &str) -> Result<Admitted, AdmissionRefusal> {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let question = MachineQuestion::Admit { names, line: line.to_owned() };
        let refuse = |error: MachineError| {
            let why = error.to_string();
            AdmissionRefusal { place: None, why, is_early: false }
        };
        match self.call.ask(question).map_err(refuse)? {
            MachineAnswer::Admitted(outcome) => outcome,
            _ => Err(refuse(self.call.confused())),
        }
    }

    /// The daemon leaves its streams when it has read its line.
    fn keep_streams(&mut self, _: HostNumber, _: OwnedFd, _: OwnedFd) {}

    fn token(&mut self) -> Result<String, String> {
        Err("hosts are added to a machine by a remote shell: use --rsh, or ssh".to_owned())
    }

    fn complaint(&self, host: HostNumber) -> String {
        let known = self.status.hosts.iter().find(|known| known.number == host);
        known.map_or_else(String::new, |known| known.why.clone())
    }

    fn name_of(&self, host: HostNumber) -> String {
        let known = self.status.hosts.iter().find(|known| known.number == host);
        known.map_or_else(String::new, |known| known.name.clone())
    }
}
