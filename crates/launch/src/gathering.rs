//! Gathering hosts into a machine: their daemons are started, introduce themselves, and are admitted. A daemon gathers the
//! hosts of its launcher's job, and a command those of a machine that is to stay.
//!
//! A remote shell starts the daemon of one host. One `srun` starts those of all hosts of an allocation, and then each
//! daemon says which host it is on.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use landeck_hostfile::host_list::is_this_host;
use landeck_wire::HostNumber;
use serde::{Deserialize, Serialize};

use crate::remote_start::{RemoteStart, STARTS_AT_ONCE, StartProgress, StartTool, StartWay};

/// How long a host that has introduced itself may take until its trunk is open.
const CONNECT_TIME: Duration = Duration::from_secs(20);
/// How long a host may wait for those over which a way leads to it.
const EARLY_TIME: Duration = Duration::from_secs(60);
/// When the user learns that the ports of a host that has introduced itself are not reached.
const PORTS_TOLD_AFTER: Duration = Duration::from_millis(4_500);
/// How long other hosts have to fail as well, so that one message names them all.
const FURTHER_FAILURES: Duration = Duration::from_secs(2);
/// When the user is told that hosts are waited for, and how often again.
const PROGRESS_AFTER: Duration = Duration::from_secs(3);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// How often a host is tried whose server has too many starting sessions, and how long it is left alone after the first
/// time; after the next ones longer.
const TRIES_MAX: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
/// The number of hosts that a message names.
const NAMED_MAX: usize = 8;

/// The machine that hosts are gathered into, and the loop that watches their remote shells.
pub trait Admission {
    /// Watches a descriptor for bytes that come.
    ///
    /// # Errors
    /// The kernel's error.
    fn watch(&mut self, what: BorrowedFd<'_>, token: u64) -> io::Result<()>;

    /// Watches a descriptor no longer.
    fn unwatch(&mut self, what: BorrowedFd<'_>);

    /// Has [`Gathering::go_on`] called after this time at the latest.
    fn wake_in(&mut self, time: Duration);

    /// The number of a host that needs no remote shell, because this is it.
    fn is_here(&self, name: &str) -> Option<HostNumber>;

    /// Admits the daemon that has introduced itself by this line. It is on one of these hosts.
    ///
    /// # Errors
    /// [`AdmissionRefusal`].
    fn admit(&mut self, names: &[&str], line: &str) -> Result<Admitted, AdmissionRefusal>;

    /// Takes the streams of a daemon that was admitted, behind the two lines that both sides have exchanged: its output, and
    /// its input.
    fn keep_streams(&mut self, host: HostNumber, output: OwnedFd, input: OwnedFd);

    /// The text of a token, by which a user admits one host.
    ///
    /// # Errors
    /// The reason why there is none.
    fn token(&mut self) -> Result<String, String>;

    /// The failures of the last attempts to reach a host.
    fn complaint(&self, host: HostNumber) -> String;

    /// The name of a host that takes part.
    fn name_of(&self, host: HostNumber) -> String;
}

/// A daemon that was admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    /// The place of its host among the names.
    pub place: usize,
    /// The number of its host.
    pub host: HostNumber,
    /// The line that it gets; `None` if its host is in the machine under another name, whose daemon serves both.
    pub answer: Option<String>,
}

/// The reason why a daemon is not admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdmissionRefusal {
    /// The place of its host among the names, if it is one of them.
    pub place: Option<usize>,
    /// The reason, with the name of the host.
    pub why: String,
    /// No way leads to the host yet. One may, once other hosts are there.
    pub is_early: bool,
}

/// The hosts of a list on their way into a machine.
#[derive(Debug)]
pub struct Gathering {
    way: StartWay,
    /// The first token of the remote shells: two for each.
    tokens: u64,
    /// The hosts of the list, in its order.
    places: Vec<HostPlace>,
    shells: Vec<Shell>,
    /// The remote shells whose daemons have introduced themselves early, with their lines.
    early: Vec<(usize, String)>,
    /// Whether the hosts of the list have been looked at.
    has_begun: bool,
    refusals: Vec<String>,
    /// When refusals are told, though other hosts may still be starting.
    refuse_at: Option<Instant>,
    progress_at: Instant,
    /// The texts for the user.
    said: Vec<String>,
}

/// A host of the launcher's list.
#[derive(Debug)]
struct HostPlace {
    name: String,
    /// Its remote shell, as a place in the list of them.
    shell: Option<usize>,
    state: PlaceState,
    since: Instant,
    /// How often its remote shell was refused by a busy server, and when the next one may begin.
    refused: u32,
    not_before: Instant,
    /// The user knows that its ports are not reached.
    is_told: bool,
}

/// A remote shell.
#[derive(Debug)]
struct Shell {
    /// `None` once it has been stopped.
    start: Option<RemoteStart>,
    /// The hosts whose daemons it starts, as places in the list.
    places: Vec<usize>,
    /// Whether its standard output is watched, and its standard error.
    watched: [bool; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceState {
    /// Its turn has not come.
    Waiting,
    /// Its daemon is being started.
    Starting,
    /// It has this number, and its trunk is awaited.
    Admitted(HostNumber),
    /// It takes part.
    Up(HostNumber),
    Failed,
}

impl Gathering {
    /// The hosts with these names, of which none has been looked at. Descriptors are watched under these tokens and
    /// those above.
    pub fn new(way: StartWay, names: Vec<String>, tokens: u64) -> Self {
        let now = Instant::now();
        let place = |name| HostPlace {
            name,
            shell: None,
            state: PlaceState::Waiting,
            since: now,
            refused: 0,
            not_before: now,
            is_told: false,
        };
        Self {
            way,
            tokens,
            places: names.into_iter().map(place).collect(),
            shells: Vec::new(),
            early: Vec::new(),
            has_begun: false,
            refusals: Vec::new(),
            refuse_at: None,
            progress_at: now + PROGRESS_AFTER,
            said: Vec::new(),
        }
    }

    /// Takes the texts for the user.
    pub fn take_said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    /// Whether a remote shell may still say something: it runs, and its standard error is open. Takes the last words of those
    /// that have ended.
    pub fn may_say_more(&mut self, machine: &mut impl Admission) -> bool {
        let mut some_may = false;
        for number in 0..self.shells.len() {
            let start = self.shells[number].start.as_mut();
            let Some(start) = start.filter(|start| start.errors().is_some()) else { continue };
            match start.is_running() {
                true => some_may = true,
                false => self.ready(machine, self.tokens + 2 * number as u64 + 1),
            }
        }
        some_may
    }

    /// Handles a descriptor of a remote shell, which is ready.
    pub fn ready(&mut self, machine: &mut impl Admission, token: u64) {
        let number = (token - self.tokens) as usize;
        let (number, at) = (number / 2, number % 2);
        let Some(shell) = self.shells.get_mut(number) else { return };
        let Some(start) = &mut shell.start else { return };
        let ended = if at == 1 { start.read_errors() } else { start.read_output() };
        if let Some(ended) = ended {
            shell.watched[at] = false;
            machine.unwatch(ended.as_fd());
        }
        if start.deadline().is_none()
            && let Some(lines) = start.take_complaints()
        {
            let own = match shell.places[..] {
                [place] => format!("host {}: ", self.places[place].name),
                // srun says itself which host a line is about.
                _ => String::new(),
            };
            self.said.extend(lines.lines().map(|line| format!("{own}{line}")));
        }
        self.take_progress(machine, number);
    }

    /// Goes on with what is due. Returns the outcome once there is one: the number of each host, or the reasons why the
    /// job is impossible.
    pub fn go_on(
        &mut self,
        machine: &mut impl Admission,
    ) -> Option<Result<Vec<HostNumber>, Vec<String>>> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.find_own_host(machine);
        }
        self.begin_starts(machine);
        for (shell, line) in std::mem::take(&mut self.early) {
            self.take_introduction(machine, shell, &line);
        }
        self.look_at_clock(machine);
        let is_settled =
            |place: &HostPlace| matches!(place.state, PlaceState::Up(_) | PlaceState::Failed);
        if !self.refusals.is_empty() {
            let is_waiting = |place: &HostPlace| place.state == PlaceState::Waiting;
            let all = self.places.iter().all(|place| is_settled(place) || is_waiting(place));
            let is_time = all || self.refuse_at.is_none_or(|at| Instant::now() >= at);
            return is_time.then(|| Err(std::mem::take(&mut self.refusals)));
        }
        let up = self.places.iter().map(|place| match place.state {
            PlaceState::Up(host) => Some(host),
            _ => None,
        });
        up.collect::<Option<Vec<HostNumber>>>().map(Ok)
    }

    /// A host is connected.
    pub fn host_up(&mut self, machine: &impl Admission, host: HostNumber) {
        let joined = machine.name_of(host);
        let mut is_known = false;
        for place in &mut self.places {
            let is_by_hand = place.state == PlaceState::Starting
                && place.shell.is_none()
                && is_this_host(&place.name, &joined);
            if place.state == PlaceState::Admitted(host) || is_by_hand {
                place.state = PlaceState::Up(host);
            }
            is_known |= place.state == PlaceState::Up(host);
        }
        if !is_known && self.way.tool == StartTool::ByHand {
            self.said.push(format!(
                "Host {joined} has joined, and no host of this job has that name: --name says which one it is."
            ));
        }
    }

    /// A host takes no part any more.
    pub fn lose(&mut self, host: HostNumber, why: &str) {
        for place in &mut self.places {
            if [PlaceState::Admitted(host), PlaceState::Up(host)].contains(&place.state) {
                place.state = PlaceState::Failed;
                self.refusals.push(format!("host {}: {why}", place.name));
            }
        }
    }

    /// Recognises the names of this host, which needs no remote shell.
    fn find_own_host(&mut self, machine: &impl Admission) {
        for place in &mut self.places {
            if let Some(own) = machine.is_here(&place.name) {
                place.state = PlaceState::Up(own);
            }
        }
    }

    /// Begins to start daemons, as many at a time as is good for this host.
    fn begin_starts(&mut self, machine: &mut impl Admission) {
        let starting = |place: &HostPlace| place.state == PlaceState::Starting;
        let mut running = self.places.iter().filter(|place| starting(place)).count();
        if self.way.is_shared() {
            let waiting = |place: &usize| self.places[*place].state == PlaceState::Waiting;
            let all: Vec<usize> = (0..self.places.len()).filter(waiting).collect();
            if !all.is_empty() {
                self.begin_shell(machine, all);
            }
            return;
        }
        for number in 0..self.places.len() {
            if running == STARTS_AT_ONCE || !self.refusals.is_empty() {
                return;
            }
            let place = &self.places[number];
            if place.state == PlaceState::Waiting && Instant::now() >= place.not_before {
                running += 1;
                self.begin_shell(machine, vec![number]);
            }
        }
    }

    /// Starts a remote shell for these hosts, or asks the user for it.
    fn begin_shell(&mut self, machine: &mut impl Admission, places: Vec<usize>) {
        for &number in &places {
            self.places[number].state = PlaceState::Starting;
            self.places[number].since = Instant::now();
        }
        if self.way.tool == StartTool::ByHand {
            return places.into_iter().for_each(|number| self.ask_user(machine, number));
        }
        let names: Vec<&str> = places.iter().map(|&at| self.places[at].name.as_str()).collect();
        match RemoteStart::begin(&self.way, &names) {
            Ok(start) => {
                let shell = self.shells.len();
                places.iter().for_each(|&number| self.places[number].shell = Some(shell));
                self.shells.push(Shell { start: Some(start), places, watched: [false; 2] });
                self.watch_shell(machine, shell);
            }
            Err(why) => self.refuse(&places, why),
        }
    }

    /// Tells the user what to type on a host.
    fn ask_user(&mut self, machine: &mut impl Admission, number: usize) {
        let name = self.places[number].name.clone();
        let daemon = self.way.daemon_elsewhere();
        let own: String = self.way.arguments.iter().map(|word| format!(" '{word}'")).collect();
        match machine.token() {
            Ok(token) => self.said.push(format!(
                "On host {name}, type within 15 minutes:\n  echo '{token}' | {} join --name '{name}'{own} --token-file -",
                daemon.display()
            )),
            Err(error) => self.refuse(&[number], format!("host {name}: {error}")),
        }
    }

    fn watch_shell(&mut self, machine: &mut impl Admission, number: usize) {
        let shell = &mut self.shells[number];
        let Some(start) = &shell.start else { return };
        let token = self.tokens + 2 * number as u64;
        for (at, stream) in [start.output(), start.errors()].into_iter().enumerate() {
            if let Some(stream) = stream.filter(|_| !shell.watched[at]) {
                shell.watched[at] = machine.watch(stream, token + at as u64).is_ok();
            }
        }
    }

    fn take_progress(&mut self, machine: &mut impl Admission, shell: usize) {
        while let Some(next) =
            self.shells[shell].start.as_mut().and_then(RemoteStart::take_progress)
        {
            match next {
                StartProgress::Failed(why) => {
                    let its = self.shells[shell].places.clone();
                    self.refuse(&its, why);
                }
                StartProgress::Busy(why) => self.try_again(machine, shell, why),
                StartProgress::Introduced(line) => self.take_introduction(machine, shell, &line),
            }
        }
        let shell = &mut self.shells[shell];
        let Some(start) = shell.start.as_ref().filter(|start| start.deadline().is_none()) else {
            return;
        };
        // Nothing more comes from it that anybody reads.
        if let Some(output) = start.output().filter(|_| shell.watched[0]) {
            machine.unwatch(output);
            shell.watched[0] = false;
        }
    }

    /// Lets a host wait for its next turn whose server was busy, unless it has had enough of them.
    fn try_again(&mut self, machine: &mut impl Admission, shell: usize, why: String) {
        let its = self.shells[shell].places.clone();
        for &number in &its {
            self.stop_shell(machine, number);
            let place = &mut self.places[number];
            place.refused += 1;
            if place.refused == TRIES_MAX {
                let why = format!(
                    "{why}\n  It was tried {TRIES_MAX} times: its MaxStartups may be too low"
                );
                return self.refuse(&its, why);
            }
            place.state = PlaceState::Waiting;
            place.not_before = Instant::now() + PAUSE * place.refused;
        }
    }

    fn take_introduction(&mut self, machine: &mut impl Admission, shell: usize, line: &str) {
        let its = self.shells[shell].places.clone();
        let names: Vec<&str> = its.iter().map(|&place| self.places[place].name.as_str()).collect();
        let outcome = machine.admit(&names, line);
        let (place, outcome) = match outcome {
            Ok(Admitted { place, host, answer }) => {
                (Some(place), self.admitted(machine, its[place], host, answer))
            }
            Err(AdmissionRefusal { place: Some(place), is_early: true, .. })
                if Instant::now() < self.places[its[place]].since + EARLY_TIME =>
            {
                return self.early.push((shell, line.to_owned()));
            }
            Err(AdmissionRefusal { place, why, .. }) => (place, Err(why)),
        };
        if let Err(why) = outcome {
            let places = place.map_or(its.clone(), |place| vec![its[place]]);
            self.refuse(&places, why);
        }
    }

    /// Passes the answer of the machine to the daemon that has introduced itself on a host.
    fn admitted(
        &mut self,
        machine: &mut impl Admission,
        number: usize,
        host: HostNumber,
        answer: Option<String>,
    ) -> Result<(), String> {
        let Some(answer) = answer else {
            // Two names of one host: the daemon that was started first serves both.
            self.stop_shell(machine, number);
            self.places[number].state = self.state_of(host);
            return Ok(());
        };
        let place = &mut self.places[number];
        place.state = PlaceState::Admitted(host);
        place.since = Instant::now();
        let Some(shell) = place.shell.and_then(|shell| self.shells.get_mut(shell)) else {
            return Ok(());
        };
        let Some(start) = &mut shell.start else { return Ok(()) };
        let told = |error| format!("host {}: {error}", place.name);
        start.answer(&format!("{answer}\n")).map_err(told)?;
        if self.way.is_shared() {
            return Ok(());
        }
        if let Some(output) = start.output().filter(|_| shell.watched[0]) {
            machine.unwatch(output);
            shell.watched[0] = false;
        }
        if let Some((output, input)) = start.take_streams() {
            machine.keep_streams(host, output, input);
        }
        Ok(())
    }

    /// The state of a host that is known under another name: it takes part already, or is on its way under that name.
    fn state_of(&self, host: HostNumber) -> PlaceState {
        let is_its = |place: &&HostPlace| place.state == PlaceState::Admitted(host);
        self.places.iter().find(is_its).map_or(PlaceState::Up(host), |place| place.state)
    }

    fn refuse(&mut self, places: &[usize], why: String) {
        for &number in places {
            self.places[number].state = PlaceState::Failed;
        }
        self.refusals.push(why);
        self.refuse_at.get_or_insert(Instant::now() + FURTHER_FAILURES);
    }

    /// Ends the remote shell of a host, unless other hosts have it too.
    fn stop_shell(&mut self, machine: &mut impl Admission, number: usize) {
        let Some(shell) = self.places[number].shell else { return };
        let shell = &mut self.shells[shell];
        if shell.places.len() > 1 {
            return;
        }
        let Some(start) = shell.start.take() else { return };
        for (at, stream) in [start.output(), start.errors()].into_iter().enumerate() {
            if let Some(stream) = stream.filter(|_| shell.watched[at]) {
                machine.unwatch(stream);
            }
        }
        shell.watched = [false; 2];
    }

    fn look_at_clock(&mut self, machine: &mut impl Admission) {
        let now = Instant::now();
        for shell in 0..self.shells.len() {
            if let Some(start) = &mut self.shells[shell].start {
                start.look_at_clock(now);
                self.take_progress(machine, shell);
            }
        }
        for number in 0..self.places.len() {
            let place = &mut self.places[number];
            let PlaceState::Admitted(host) = place.state else { continue };
            if now > place.since + CONNECT_TIME {
                let why = not_reached(&place.name, self.way.is_shared());
                self.refuse(&[number], why);
            } else if now > place.since + PORTS_TOLD_AFTER
                && !std::mem::replace(&mut place.is_told, true)
            {
                self.said.push(not_reached_so_far(&place.name, &machine.complaint(host)));
            }
        }
        let is_awaited =
            |place: &&HostPlace| !matches!(place.state, PlaceState::Up(_) | PlaceState::Failed);
        let awaited = self.places.iter().filter(is_awaited).count();
        if now >= self.progress_at && awaited > 0 && self.refusals.is_empty() {
            self.progress_at = now + PROGRESS_INTERVAL;
            let names = self.names(self.places.iter().filter(is_awaited));
            let (there, all) = (self.places.len() - awaited, self.places.len());
            self.said.push(format!("landeck: waiting for {names} ({there} of {all} are there)."));
        }
        machine.wake_in(Duration::from_millis(500));
    }

    /// The names of hosts, as far as a message has room for them.
    fn names<'a>(&self, places: impl Iterator<Item = &'a HostPlace>) -> String {
        let mut names: Vec<&str> = places.map(|place| place.name.as_str()).collect();
        let more = names.len().saturating_sub(NAMED_MAX);
        names.truncate(NAMED_MAX);
        match more {
            0 => names.join(", "),
            _ => format!("{} and {more} more", names.join(", ")),
        }
    }
}

/// The text about a host whose daemon has started and is not reached yet.
fn not_reached_so_far(host: &str, complaint: &str) -> String {
    format!(
        "landeck: host {host}: its daemon has started, and none of its ports is reached so far ({complaint}). Do firewalls \
         let them through, for TCP and UDP? --port-range names ports."
    )
}

/// The reason why a host takes no part whose daemon was not connected in time.
fn not_reached(host: &str, has_shared_streams: bool) -> String {
    let time_s = CONNECT_TIME.as_secs();
    match has_shared_streams {
        false => format!(
            "host {host}: its daemon has started, and no connection to it was made within {time_s} s. May firewalls \
             let its port through, for TCP and UDP? --port-range names ports"
        ),
        true => format!(
            "host {host}: its daemon was started by srun, and no connection to it was made within {time_s} s. The \
             streams of srun carry none, so a port is needed: open the ports of --port-range for TCP and UDP, or use \
             --start ssh"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_not_reached_is_named_with_a_cure() {
        assert!(not_reached("b", false).starts_with("host b: its daemon has started"));
        let so_far = not_reached_so_far("b", "10.0.0.2:40000: no answer");
        assert!(
            so_far.contains("host b: ") && so_far.contains("so far (10.0.0.2:40000: no answer)")
        );
        assert!(so_far.contains("--port-range"), "{so_far}");
        let srun = not_reached("b", true);
        let words = ["host b: ", "srun", "a port is needed", "--port-range", "--start ssh"];
        assert!(words.iter().all(|word| srun.contains(word)), "{srun}");
    }
}
