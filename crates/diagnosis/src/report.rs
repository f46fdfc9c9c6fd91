//! Explains in words why a job is stuck: one line of verdict, then the activity of each process.

use std::fmt::Write;
use std::time::Duration;

use landeck_collectives::Signature;
use landeck_host::report::{duration, size};
use landeck_host::signals;
use landeck_memory::{JobState, Operation, SlotRecord, SlotState};
use landeck_wire::way::{MessageWay, OneCopySource};
use landeck_wire::{ContextId, ProcessId};

use crate::conduct::{Conducts, LASTING, conducts, lasting};
use crate::host_picture::{BoardProgress, LanePicture, ObservedWait};
use crate::names::NAMED_MAX;
use crate::picture::{BoardPlace, Doing, Member, Picture};
use crate::verdict::{Conduct, Needs, Verdict, WaitMismatch, verdict};

/// The report on a job.
#[derive(Clone, Debug)]
pub struct Report {
    verdict: Verdict,
    sentence: String,
    advice: Option<String>,
    lines: Vec<Line>,
    lanes: Vec<LaneLine>,
    /// The hosts without a picture.
    hosts: Vec<String>,
    /// The places of the processes in the verdict.
    concerned: Vec<u32>,
}

/// Processes with the same activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Their places in the picture, in order.
    pub places: Vec<u32>,
    /// Their names.
    pub who: String,
    /// Their activity.
    pub what: String,
    /// The longest wait among them; `None` if they do not wait.
    pub since: Option<Duration>,
}

/// A lane between two hosts on which bytes wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneLine {
    /// The place in the picture of the process that sends.
    pub place: u32,
    /// The lane, as its process describes it.
    pub lane: LanePicture,
    /// For how long no byte has moved.
    pub since: Duration,
    /// The sentence about it.
    pub text: String,
}

impl Report {
    /// Creates the report from two pictures of a job, taken some milliseconds apart. If processes seem to wait for nobody,
    /// a third picture is taken, at least [`LASTING`] later.
    pub fn of(before: &Picture, now: &Picture, look_again: &mut dyn FnMut() -> Picture) -> Self {
        let Conducts { all, mismatches } = conducts(before, now, look_again);
        let words = Words { before, now, conducts: &all };
        let verdict = verdict(&all, &mismatches).behind_silence(words.silent_senders());
        let missing =
            now.hosts.iter().filter_map(|host| Some((&host.name, host.missing.as_ref()?)));
        Self {
            sentence: words.sentence(&verdict),
            advice: words.advice(&verdict),
            lines: words.lines(),
            lanes: words.lanes(),
            hosts: missing.map(|(name, why)| format!("host {name}: {why}")).collect(),
            concerned: words.concerned(&verdict),
            verdict,
        }
    }

    /// The verdict in one sentence: why the job is stuck, or that it is not.
    pub fn verdict(&self) -> &str {
        &self.sentence
    }

    /// The verdict for programs. Processes are identified by their places in the picture.
    pub const fn reason(&self) -> &Verdict {
        &self.verdict
    }

    /// Whether the job can continue by itself, as far as that can be seen.
    pub const fn goes_on(&self) -> bool {
        matches!(self.verdict, Verdict::Fine | Verdict::Awaited { .. } | Verdict::Elsewhere(_))
    }

    /// The advice, if there is any.
    pub fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    /// The activity of all processes; those with the same activity share a line.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The lanes between hosts on which bytes wait that do not move, those with the most bytes first.
    pub fn lanes(&self) -> &[LaneLine] {
        &self.lanes
    }

    /// The hosts whose pictures are missing, each with the reason.
    pub fn missing_hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The places in the picture of the processes in the verdict.
    pub fn concerned(&self) -> &[u32] {
        &self.concerned
    }

    /// The whole report.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.sentence);
        let width = self.lines.iter().map(|line| line.who.chars().count()).max().unwrap_or(0);
        for Line { who, what, since, .. } in &self.lines {
            let since = since.map(duration).unwrap_or_default();
            let _ = writeln!(text, "  {who:<width$}  {since:>8}  {what}");
        }
        for lane in self.lanes.iter().take(NAMED_MAX) {
            let _ = writeln!(text, "  {}", lane.text);
        }
        if let Some(left @ 1..) = self.lanes.len().checked_sub(NAMED_MAX) {
            let _ = writeln!(text, "  and unsent bytes on {left} more connections");
        }
        for host in &self.hosts {
            let _ = writeln!(text, "  {host}");
        }
        if let Some(advice) = &self.advice {
            let _ = writeln!(text, "{advice}");
        }
        text
    }
}

/// The name of the call that a process waits in.
pub fn call_name(wait: &ObservedWait) -> String {
    match (wait.operation, wait.tag) {
        (Operation::Collective, Some(tag)) => Signature::of_tag(tag).to_string(),
        (Operation::Collective, None) => "agreement".to_owned(),
        (operation, _) => operation.as_str().to_owned(),
    }
}

/// A lane of which nothing was acknowledged for so long is one that the network carries nothing on: a packet that was lost
/// is sent again after 0.2 s.
const SILENT: Duration = Duration::from_millis(700);

/// How long the network has carried nothing on a lane.
fn silence(member: &Member, lane: &LanePicture) -> Duration {
    let since_ns = if lane.silent_since_ns == 0 { member.at_ns } else { lane.silent_since_ns };
    Duration::from_nanos(member.at_ns.saturating_sub(since_ns))
}

struct Words<'a> {
    before: &'a Picture,
    now: &'a Picture,
    conducts: &'a [Conduct],
}

impl Words<'_> {
    fn sentence(&self, verdict: &Verdict) -> String {
        match verdict {
            Verdict::Circle(circle) => {
                let youngest = circle.iter().filter_map(|&at| self.waited(at)).min();
                format!("Stuck for {}: {}", said(youngest), self.circle(circle))
            }
            Verdict::Mismatch(mismatch) => self.mismatch(mismatch),
            Verdict::Stopped { whom, waiting } => format!(
                "Stuck for {}: {} {} stopped by a signal or a debugger, and {} for {}.",
                said(self.longest(waiting)),
                self.names(whom),
                are(whom),
                self.wait(waiting),
                them(whom),
            ),
            Verdict::Gone { whom, waiting } => format!(
                "Stuck for {}: {} {}, and {} for {}.",
                said(self.longest(waiting)),
                self.names(whom),
                self.how_gone(whom),
                self.wait(waiting),
                them(whom),
            ),
            Verdict::Held { whom, waiting } => self.held(whom, waiting),
            Verdict::Silent(senders) => self.silent(senders),
            Verdict::NobodyActs(waiting) => format!(
                "Stuck for {}: {}, and nobody is left who could send anything.",
                said(self.longest(waiting)),
                self.wait(waiting),
            ),
            Verdict::Awaited { whom, waiting } => format!(
                "Not stuck: {}, for {} now, for {}, which {}.",
                self.wait(waiting),
                said(self.longest(waiting)),
                self.names(whom),
                self.how_busy(whom),
            ),
            Verdict::Unseen { whom, waiting } => format!(
                "Not known: {}, for {} now, for {}, which cannot be seen ({}).",
                self.wait(waiting),
                said(self.longest(waiting)),
                self.names(whom),
                self.why_unseen(whom),
            ),
            Verdict::Elsewhere(waiting) => format!(
                "Not stuck, as far as can be seen: {}, for {} now, for what any of several may do, or \
                 nobody of this job.",
                self.wait(waiting),
                said(self.longest(waiting)),
            ),
            Verdict::Fine if !self.now.is_alive() => "The job is over.".to_owned(),
            Verdict::Fine if self.now.state == JobState::Ending => {
                "The job is being ended.".to_owned()
            }
            Verdict::Fine => "Not stuck: nobody waits for anybody longer than 0.1 s.".to_owned(),
        }
    }

    fn silent(&self, senders: &[u32]) -> String {
        let lanes = senders.iter().filter_map(|&at| self.member(at)).filter_map(|member| {
            let lane = member.lanes.iter().find(|lane| silence(member, lane) >= SILENT)?;
            Some((member, lane))
        });
        let each: Vec<String> = lanes
            .map(|(member, lane)| {
                format!(
                    "of {} from {} to {} nothing has been acknowledged for {}",
                    size(lane.unsent_bytes),
                    self.now.names.one(member.process),
                    self.now.names.one(lane.to),
                    duration(silence(member, lane)),
                )
            })
            .collect();
        let more = each.len().saturating_sub(NAMED_MAX);
        let said = each[..each.len() - more].join(", ");
        let more =
            if more > 0 { format!(", and so on {more} more connections") } else { String::new() };
        format!("The network carries nothing: {said}{more}.")
    }

    /// The places of the processes that the network carries nothing for.
    fn silent_senders(&self) -> Vec<u32> {
        let is_silent = |member: &Member| {
            let mut lanes = member.lanes.iter();
            let lives = member.is_seen && lasting(self.before, member).is_some();
            lives && lanes.any(|lane| silence(member, lane) >= SILENT)
        };
        let all = (0u32..).zip(&self.now.members);
        all.filter(|(_, member)| is_silent(member)).map(|(at, _)| at).collect()
    }

    fn held(&self, whom: &[u32], waiting: &[u32]) -> String {
        let concerned = [whom, waiting].concat();
        let (since, names) = (said(self.longest(&concerned)), self.names(whom));
        let (goes, waits) = if whom.len() == 1 { ("does", "waits") } else { ("do", "wait") };
        let others = match waiting.is_empty() {
            true => String::new(),
            false => format!(", and {} for {}", self.wait(waiting), them(whom)),
        };
        format!(
            "Stuck for {since}: {names} {goes} not go on, although nobody is missing where {} {waits}{others}.",
            if whom.len() == 1 { "it" } else { "they" },
        )
    }

    fn circle(&self, circle: &[u32]) -> String {
        let mut sorted = circle.to_vec();
        sorted.sort_unstable();
        match circle {
            [one] => format!("{} waits for itself.", self.names(&[*one])),
            [_, _] => format!("{} wait for each other.", self.names(&sorted)),
            _ if circle.len() > NAMED_MAX => {
                format!("{} wait for each other in a circle.", self.names(&sorted))
            }
            _ => {
                let next = circle.iter().cycle().skip(1);
                let name = |at: u32| self.names(&[at]);
                let steps = circle
                    .iter()
                    .zip(next)
                    .map(|(&at, &next)| format!("{} for {}", name(at), name(next)));
                let steps = steps.collect::<Vec<_>>().join(", ");
                format!("{} wait for each other in a circle: {steps}.", self.names(&sorted))
            }
        }
    }

    fn mismatch(&self, mismatch: &WaitMismatch) -> String {
        let signature = |call: u32| Signature::of_tag(call);
        let first = mismatch.calls.first().map(|(call, _)| signature(*call).call());
        let differ_now =
            mismatch.calls.iter().any(|(call, _)| Some(signature(*call).call()) != first);
        let after = if differ_now { "" } else { " after other operations" };
        let calls = mismatch.calls.iter().map(|(call, processes)| {
            format!("{} called {}{after}", self.names(processes), signature(*call))
        });
        let calls = calls.collect::<Vec<_>>().join(", ");
        let all: Vec<u32> =
            mismatch.calls.iter().flat_map(|(_, processes)| processes.iter().copied()).collect();
        let since = said(self.longest(&all));
        let group = self.group(mismatch.board);
        format!(
            "Stuck for {since}: members of {group} are out of step: {calls}. \
             All members call the same operations in the same order."
        )
    }

    /// The advice for a verdict.
    fn advice(&self, verdict: &Verdict) -> Option<String> {
        let operation = |&at: &u32| self.member(at).map(|member| member.wait.operation);
        match verdict {
            Verdict::Circle(circle) => {
                let all = |wanted| circle.iter().all(|at| operation(at) == Some(wanted));
                let together =
                    circle.iter().filter(|at| operation(at) == Some(Operation::Collective));
                let advice = match () {
                    () if all(Operation::Send) => {
                        "Nobody of them receives, and what they send does not fit without a \
                         receiver. Use a non-blocking send, or send and receive in one call."
                    }
                    () if all(Operation::Receive) => {
                        "All of them receive and none sends: one of them has to send first."
                    }
                    () if all(Operation::Group) => {
                        "Their mailboxes are full, or they synchronise in different groups: retrieve \
                         before broadcasting, make the groups with more room, or put out who does \
                         not retrieve."
                    }
                    () if together.clone().count() == circle.len() => {
                        "They are in operations of different groups: call them in the same order."
                    }
                    () if together.count() > 0 => {
                        "Somebody is in an operation of a group while another member waits for a \
                         message from it: send before the operation, or receive after it."
                    }
                    () => return None,
                };
                Some(advice.to_owned())
            }
            Verdict::Stopped { whom, .. } => Some(self.let_go(whom)),
            Verdict::Silent(_) => Some(
                "Landeck opens another connection when this has lasted for three quarters of --host-timeout. If it comes \
                 again, packets are lost on the way: a firewall that forgets connections, or a way that long packets do \
                 not pass (MTU)."
                    .to_owned(),
            ),
            Verdict::Held { whom, .. } => Some(format!(
                "Look where {}: landeck why --stacks. A handler of a signal that does not return, a debugger or a \
                 frozen container holds a process so, and a program that died below a shell looks so. If it is \
                 none of these, this is a fault of Landeck: report it.",
                if whom.len() == 1 { "it is" } else { "they are" },
            )),
            _ => None,
        }
    }

    /// The command that lets stopped processes continue.
    fn let_go(&self, whom: &[u32]) -> String {
        let mut hosts: Vec<(&str, Vec<String>)> = Vec::new();
        for member in whom.iter().filter_map(|&at| self.member(at)).take(NAMED_MAX) {
            let (host, pid) = (self.now.names.host(member.process), member.record.pid.to_string());
            match hosts.iter_mut().find(|(known, _)| *known == host) {
                Some((_, pids)) => pids.push(pid),
                None => hosts.push((host, vec![pid])),
            }
        }
        let spans = self.now.names.span_hosts();
        let command = |(host, pids): (&str, Vec<String>)| match spans {
            true => format!("on {host}, kill -CONT {}", pids.join(" ")),
            false => format!("kill -CONT {}", pids.join(" ")),
        };
        let commands: Vec<String> = hosts.into_iter().map(command).collect();
        format!("Let go on what was stopped: {}", commands.join("; "))
    }

    fn lines(&self) -> Vec<Line> {
        let now = self.now;
        let mut lines: Vec<Line> = Vec::new();
        let mut known = std::collections::HashMap::new();
        for (at, member) in (0u32..).zip(&now.members) {
            let (what, since) = self.line(at, member);
            let place = *known.entry(what.clone()).or_insert(lines.len());
            if place == lines.len() {
                lines.push(Line { places: Vec::new(), who: String::new(), what, since });
            }
            lines[place].places.push(at);
            lines[place].since = lines[place].since.max(since);
        }
        for line in &mut lines {
            line.who = self.names(&line.places);
        }
        lines
    }

    fn line(&self, at: u32, member: &Member) -> (String, Option<Duration>) {
        let wait = member.wait;
        let is_alive = member.is_seen && member.record.state == SlotState::Alive;
        // A momentary call does not count: it may have ended by now.
        let is_waiting = is_alive
            && (lasting(self.before, member).is_some()
                || member.is_stopped() && wait.operation != Operation::None);
        let call = is_waiting.then(|| self.call(at, member));
        let since = is_waiting.then(|| since(member));
        let what = match (member.doing(), call) {
            (Doing::Stopped, Some(call)) => {
                format!("stopped (by a signal or a debugger) in {call}")
            }
            (Doing::Stopped, None) => "stopped (by a signal or a debugger)".to_owned(),
            (_, Some(call)) => call,
            (Doing::Expected, None) => "has not started".to_owned(),
            (Doing::Left, None) => "has left".to_owned(),
            (Doing::Dead, None) => how_dead(member),
            (Doing::Unseen, None) => "cannot be seen".to_owned(),
            (_, None) => busy(member).to_owned(),
        };
        (what, since)
    }

    /// The lanes whose bytes do not move, of the processes that wait.
    fn lanes(&self) -> Vec<LaneLine> {
        let mut lines: Vec<LaneLine> = Vec::new();
        for (place, member) in (0u32..).zip(&self.now.members) {
            if !member.is_seen || lasting(self.before, member).is_none() {
                continue;
            }
            let since = |lane: &LanePicture| {
                Duration::from_nanos(member.at_ns.saturating_sub(lane.since_ns))
            };
            let stalled = member.lanes.iter().filter(|lane| since(lane) >= LASTING);
            lines.extend(stalled.filter_map(|lane| {
                let since = since(lane);
                let text = self.lane(member, lane, since)?;
                Some(LaneLine { place, lane: *lane, since, text })
            }));
        }
        lines.sort_by_key(|line| std::cmp::Reverse(line.lane.unsent_bytes));
        lines
    }

    /// The sentence about a lane; `None` if the process at its other end is gone.
    fn lane(&self, member: &Member, lane: &LanePicture, since: Duration) -> Option<String> {
        let names = &self.now.names;
        let reader = match self.now.member(lane.to) {
            Some(reader) if reader.record.state.is_gone() => return None,
            Some(reader) if !reader.is_seen => String::new(),
            Some(reader) if reader.is_stopped() => {
                ", which does not read: it is stopped by a signal or a debugger".to_owned()
            }
            Some(reader) => match lasting(self.before, reader) {
                Some(wait) => format!(", which waits in: {}", call_name(wait)),
                None => format!(", which does not read: it {}", busy(reader)),
            },
            None => String::new(),
        };
        let reader = match silence(member, lane) >= SILENT {
            true => ": the network carries nothing there".to_owned(),
            false => reader,
        };
        Some(format!(
            "{}: {} unsent to {} for {}{reader}",
            names.one(member.process),
            size(lane.unsent_bytes),
            names.one(lane.to),
            duration(since),
        ))
    }

    /// The call that a process waits in, and the function of a front, if that is known.
    fn call(&self, at: u32, member: &Member) -> String {
        let Member { wait, call, any_of, .. } = member;
        let mut text = call.as_ref().map_or_else(String::new, |function| format!("{function}: "));
        text += &call_name(wait);
        if !any_of.is_empty() {
            let _ = write!(text, " for any of {}", self.now.names.many(any_of));
        }
        let preposition = match wait.operation {
            Operation::Send => "to",
            Operation::Group => "for",
            _ => "from",
        };
        match wait.peer {
            Some(peer) => {
                let _ = write!(text, " {preposition} {}", self.now.names.one(peer));
            }
            None if wait.operation.has_message() && wait.operation != Operation::Fetch => {
                let _ = write!(text, " {preposition} anybody");
            }
            None => {}
        }
        if matches!(wait.operation, Operation::Send | Operation::Fetch) && wait.bytes > 0 {
            let _ = write!(text, ", {}", size(wait.bytes));
        }
        text += &self.way(member);
        if wait.operation.has_message() {
            text += &self.talk(member);
        }
        if wait.operation == Operation::Collective {
            let board = self.now.board_place(member.process, wait);
            let _ = write!(text, ", {}", self.group(board));
            text += &self.missing(at, member);
        }
        text
    }

    /// The channel of a message in a job on several hosts, and on one host that of a send whose receiver reads the data.
    fn way(&self, member: &Member) -> String {
        let names = &self.now.names;
        let way = MessageWay::with_source(member.wait.way);
        if let (Operation::Send, Some((MessageWay::OneCopy, source))) = (member.wait.operation, way)
        {
            return format!(", in one copy{}", decided_by(source));
        }
        if let Some((MessageWay::Store, _)) = way {
            return self.store(member);
        }
        let (Some(peer), true) = (member.wait.peer, names.span_hosts()) else {
            return String::new();
        };
        let receiver = if member.wait.operation == Operation::Send { peer } else { member.process };
        let gateways = match self.now.gateways_between(member.process, peer) {
            none if none.is_empty() => String::new(),
            some => format!(", through {}", some.join(", ")),
        };
        match way.map(|(way, _)| way) {
            Some(MessageWay::Ring | MessageWay::Heap | MessageWay::OneCopy) => {
                ", through memory".to_owned()
            }
            Some(MessageWay::Lane) => ", over a lane".to_owned() + &gateways,
            Some(MessageWay::Relay) => {
                format!(", over the relay of {}{gateways}", names.host(receiver))
            }
            Some(MessageWay::Daemons) => {
                format!(", through the daemons of both hosts{gateways}")
            }
            // It has its own words.
            Some(MessageWay::Store) | None => String::new(),
        }
    }

    /// The host where the data of a message are, or to which they go, and the way there.
    fn store(&self, member: &Member) -> String {
        let host = member.wait.number as u16;
        let its = self.now.hosts.iter().find(|sight| sight.number == host);
        let name = its.map_or("another host", |sight| &sight.name);
        let goes = if member.wait.operation == Operation::Send { "to be " } else { "" };
        match self.now.gateways_to_host(member.process, host) {
            none if none.is_empty() => format!(", {goes}stored on {name}"),
            some => format!(", {goes}stored on {name}, through {}", some.join(", ")),
        }
    }

    /// The group of a message, with the program's tag or with the purpose of the message.
    fn talk(&self, member: &Member) -> String {
        let wait = &member.wait;
        let context = ContextId(wait.context);
        let group = match wait.board {
            0 if context.of_group() == ContextId::WORLD => "world".to_owned(),
            _ => self.group(self.now.board_place(member.process, wait)),
        };
        match (context.purpose(), wait.tag) {
            (Some(purpose), _) => format!(", {purpose}, {group}"),
            (None, Some(tag)) => format!(", tag {tag}, {group}"),
            (None, None) => format!(", {group}"),
        }
    }

    /// The members that are missing in a process's operation.
    fn missing(&self, at: u32, member: &Member) -> String {
        let is_behind = matches!(self.own_progress(member), Some(BoardProgress::NotYet { .. }));
        let needed = match self.conducts.get(at as usize) {
            Some(Conduct::Waits(Needs::All(needed))) => needed,
            Some(Conduct::Held) => return ", missing nobody".to_owned(),
            _ => return String::new(),
        };
        let needed = self.processes(needed);
        match needed.is_empty() {
            true => String::new(),
            false if is_behind => format!(
                ", which it may not begin before {} is over with earlier ones",
                self.now.names.many(&needed)
            ),
            false => format!(", missing {}", self.now.names.many(&needed)),
        }
    }

    /// The member's own progress in the operation in which it waits, if that has a number.
    fn own_progress(&self, member: &Member) -> Option<BoardProgress> {
        let group = self.now.board(self.now.board_place(member.process, &member.wait))?;
        let own = group.members.iter().position(|process| *process == member.process)?;
        let mut operations = group.operations.iter();
        let (_, progress) = operations.find(|(number, _)| *number == member.wait.number)?;
        progress.get(own).copied()
    }

    fn group(&self, board: BoardPlace) -> String {
        match self.now.board(board) {
            None => "a group".to_owned(),
            Some(group) if group.is_world => "world".to_owned(),
            Some(group) => {
                let mut members = group.members.clone();
                members.sort_unstable();
                format!("the group of {}", self.now.names.many(&members))
            }
        }
    }

    /// The places of the processes in a verdict.
    fn concerned(&self, verdict: &Verdict) -> Vec<u32> {
        let mut places: Vec<u32> = match verdict {
            Verdict::Circle(all)
            | Verdict::Silent(all)
            | Verdict::NobodyActs(all)
            | Verdict::Elsewhere(all) => all.clone(),
            Verdict::Mismatch(mismatch) => {
                mismatch.calls.iter().flat_map(|(_, all)| all.clone()).collect()
            }
            Verdict::Stopped { whom, waiting }
            | Verdict::Gone { whom, waiting }
            | Verdict::Held { whom, waiting }
            | Verdict::Unseen { whom, waiting }
            | Verdict::Awaited { whom, waiting } => [whom.clone(), waiting.clone()].concat(),
            Verdict::Fine => Vec::new(),
        };
        places.sort_unstable();
        places
    }

    fn member(&self, at: u32) -> Option<&Member> {
        self.now.members.get(at as usize)
    }

    fn processes(&self, places: &[u32]) -> Vec<ProcessId> {
        places.iter().filter_map(|&at| self.member(at)).map(|member| member.process).collect()
    }

    fn names(&self, places: &[u32]) -> String {
        let mut places = places.to_vec();
        places.sort_unstable();
        self.now.names.many(&self.processes(&places))
    }

    fn why_unseen(&self, whom: &[u32]) -> String {
        let first = whom.first().and_then(|&at| self.member(at));
        let host = first.and_then(|member| self.now.host_of(member.process));
        let why = host.and_then(|host| host.missing.as_ref());
        why.map_or_else(|| "its host is not known".to_owned(), ToString::to_string)
    }

    /// A phrase that says that these processes wait.
    fn wait(&self, places: &[u32]) -> String {
        format!("{} {}", self.names(places), if places.len() == 1 { "waits" } else { "wait" })
    }

    fn waited(&self, at: u32) -> Option<Duration> {
        let member = self.member(at)?;
        (member.wait.operation != Operation::None).then(|| since(member))
    }

    fn longest(&self, places: &[u32]) -> Option<Duration> {
        places.iter().filter_map(|&at| self.waited(at)).max()
    }

    fn how_gone(&self, whom: &[u32]) -> String {
        match whom {
            [one] => {
                self.member(*one).map_or_else(String::new, |member| match member.record.state {
                    SlotState::Left | SlotState::Departed => "has left".to_owned(),
                    _ => how_dead(member),
                })
            }
            _ => "are gone".to_owned(),
        }
    }

    fn how_busy(&self, whom: &[u32]) -> &'static str {
        match whom {
            [one] => self.member(*one).map_or("runs", busy),
            _ => "run",
        }
    }
}

/// The source that has decided for one copy, in parentheses.
fn decided_by(source: OneCopySource) -> &'static str {
    match source {
        OneCopySource::Nothing => "",
        OneCopySource::Probe => " (the probe of this host decides)",
        OneCopySource::Tuned => " (the figures of landeck tune decide)",
        OneCopySource::Asked => " (as asked for)",
    }
}

fn since(member: &Member) -> Duration {
    Duration::from_nanos(member.at_ns.saturating_sub(member.wait.since_ns))
}

fn said(time: Option<Duration>) -> String {
    duration(time.unwrap_or_default())
}

fn are(whom: &[u32]) -> &'static str {
    if whom.len() == 1 { "is" } else { "are" }
}

fn them(whom: &[u32]) -> &'static str {
    if whom.len() == 1 { "it" } else { "them" }
}

/// The activity of a process that does not wait for another of the job.
fn busy(member: &Member) -> &'static str {
    match (member.doing(), member.presence) {
        (_, landeck_memory::Presence::NotAttached) => "runs, and has not joined the job",
        (_, landeck_memory::Presence::Finalized) => "runs, and has left the job",
        (Doing::Wait, _) => "sleeps outside all waits of ours (for a file, the network, a timer)",
        (Doing::Run, _) => "computes, outside all waits",
        _ if member.figures.is_some_and(|figures| figures.threads > 1) => {
            "computes, or is in a call that began a moment ago"
        }
        _ => "is in a call that began a moment ago",
    }
}

fn how_dead(member: &Member) -> String {
    let status = member.record.status;
    match () {
        () if member.is_host_lost => "was lost with its host".to_owned(),
        () if status == SlotRecord::UNKNOWN_STATUS => "has died".to_owned(),
        () if libc::WIFSIGNALED(status) => {
            let signal = libc::WTERMSIG(status);
            let (_, meaning) = signals::name(signal);
            format!("was killed by signal {signal} ({meaning})")
        }
        () if libc::WEXITSTATUS(status) == 0 => "ended without leaving the job".to_owned(),
        () => format!("ended with exit code {}", libc::WEXITSTATUS(status)),
    }
}

#[cfg(test)]
mod tests;
