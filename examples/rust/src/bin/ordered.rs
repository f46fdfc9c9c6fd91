//! Members of a group send numbered messages, and each writes a trace of all that it sees. `landeck group check` reads the
//! traces, and says whether the group kept its promises, also if members were killed meanwhile.
//!
//! ```text
//! landeck run -n 3 --output-dir out ./ordered --seconds 2
//! landeck group check out
//! ```
//!
//! - A send is written down before it begins, so a member that is killed leaves a trace that has it.
//! - A member that does not retrieve holds up the others. So all sends are tries: one that finds no room was not sent.
//! - The synchronisation at the end waits for all members. Then all messages are in the mailboxes, and each member retrieves
//!   them to the last.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use landeck::traces::{
    DepartureCause, MemberName, MessageName, TraceEnd, TraceEvent, TraceHead, TraceLevel,
    TraceWriter, TracedView, sum_of,
};
use landeck::{
    Error, ErrorKind, Gone, Group, GroupError, GroupOptions, HostOfJob, Job, Mailbox, MailboxEvent,
    Member, Message, ToldMessage, ToldView,
};
use landeck_examples::program::{self, Problem};

/// Sends numbered messages to a group, and writes a trace of what it sees.
#[derive(Debug, Parser)]
#[command(name = "ordered")]
struct Options {
    /// The seconds for which each member sends.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// The milliseconds between two messages of a member.
    #[arg(long, default_value_t = 2)]
    every: u64,
    /// The directory for the traces [default: each trace goes to the standard output of its process].
    #[arg(long, value_name = "DIRECTORY")]
    traces: Option<PathBuf>,
}

/// The name of the group.
const NAME: &str = "ord";
/// The number of the only synchronisation.
const LAST: u64 = 1;

fn main() -> ExitCode {
    program::run(ordered)
}

fn ordered(job: &Job, options: &Options) -> Result<(), Problem> {
    let seconds = Duration::try_from_secs_f64(options.seconds);
    let seconds = seconds.map_err(|error| Problem::Options(format!("--seconds: {error}")))?;
    let every = Duration::from_millis(options.every);
    let group = group(job)?;
    let mut inbox = job.create_mailbox()?;
    let member = group.join(&mut inbox)?;
    let mut sender = Sender::begin(job, options, (member, inbox))?;
    group.wait_started()?;
    let end = Instant::now() + seconds;
    while Instant::now() < end {
        sender.send()?;
        sender.take_for(every)?;
    }
    sender.end(every)
}

/// The group, which rank 0 makes: it starts when all processes have joined it.
fn group(job: &Job) -> landeck::Result<Group> {
    let world = job.world();
    let all = GroupOptions::default().minimum(world.size() as u32);
    let made = (world.rank() == 0).then(|| job.create_group(NAME, all)).transpose()?;
    world.barrier()?; // from here on the name is there
    made.map_or_else(|| job.open_group(NAME), Ok)
}

/// A member with its trace.
struct Sender {
    member: Member,
    inbox: Mailbox,
    name: MemberName,
    trace: TraceWriter<Box<dyn Write>>,
    /// The number of its messages.
    sent: u64,
}

impl Sender {
    /// Begins the trace with the first view, which tells when the member came.
    fn begin(
        job: &Job,
        options: &Options,
        (member, mut inbox): (Member, Mailbox),
    ) -> Result<Self, Problem> {
        let MailboxEvent::View(first) = inbox.next_event()? else {
            return Err(Problem::Wrong("the first event is no view".into()));
        };
        let name = MemberName { id: member.id(), since: first.number() };
        let own = job.hosts().into_iter().find(HostOfJob::is_own);
        let host = own.map_or_else(String::new, |host| host.name().to_owned());
        let rank = job.world().rank() as u32;
        let head = TraceHead { group: NAME.into(), member: name, rank, host };
        let to: Box<dyn Write> = match &options.traces {
            Some(directory) => {
                let path = directory.join(format!("{NAME}.{name}"));
                let opened = std::fs::create_dir_all(directory).and_then(|()| File::create(&path));
                let failed =
                    |error| Problem::Own(format!("cannot write {}: {error}", path.display()));
                Box::new(opened.map_err(failed)?)
            }
            None => Box::new(io::stdout()),
        };
        let trace = TraceWriter::begin(to, &head).map_err(unwritten)?;
        let mut sender = Self { member, inbox, name, trace, sent: 0 };
        sender.note(&TraceEvent::View(traced(&first)))?;
        Ok(sender)
    }

    /// Sends the next message, if there is room for it.
    fn send(&mut self) -> Result<(), Problem> {
        self.sent += 1;
        let number = self.sent;
        let noise = (number + u64::from(self.name.id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let values = [self.name.since, number, noise];
        let (level, sum) = (TraceLevel::Total, sum_of_values(&values));
        self.note(&TraceEvent::Send { number, level, sum })?;
        match self.member.try_broadcast(Message::new().pack(&values)) {
            Ok(()) => self.note(&TraceEvent::Sent(number)),
            Err(Error { kind, .. }) if is_full(&kind) => self.note(&TraceEvent::Refused(number)),
            // Nobody knows whether it was sent, so the trace says neither.
            Err(Error { kind: ErrorKind::Group(GroupError::InDoubt { .. }), .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes messages and views for so long.
    fn take_for(&mut self, time: Duration) -> Result<(), Problem> {
        let end = Instant::now() + time;
        loop {
            match self.inbox.next_event_within(end.saturating_duration_since(Instant::now())) {
                Ok(event) => self.take(event)?,
                Err(Error { kind: ErrorKind::TimedOut(_), .. }) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn take(&mut self, event: MailboxEvent) -> Result<(), Problem> {
        let event = match event {
            MailboxEvent::Message(message) => delivered(message)?,
            MailboxEvent::View(view) => TraceEvent::View(traced(&view)),
        };
        self.note(&event)
    }

    /// Waits for all members, takes all messages, and leaves.
    fn end(mut self, every: Duration) -> Result<(), Problem> {
        self.note(&TraceEvent::Syncing(LAST))?;
        loop {
            match self.member.sync_within(every) {
                Err(Error { kind: ErrorKind::TimedOut(_), .. }) => self.take_for(every)?,
                // All others have come.
                Ok(())
                | Err(Error { kind: ErrorKind::Group(GroupError::MemberDied { .. }), .. }) => {
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.note(&TraceEvent::Synced(LAST))?;
        while let Some(event) = self.inbox.try_next_event()? {
            self.take(event)?;
        }
        self.note(&TraceEvent::Empty)?;
        self.member.leave()?;
        self.trace.note(&TraceEvent::Ended(TraceEnd::Left)).map_err(unwritten)
    }

    fn note(&mut self, event: &TraceEvent) -> Result<(), Problem> {
        self.trace.note(event).map_err(unwritten)
    }
}

/// The event of the trace for a message. It says by itself when its sender came, and its number there.
fn delivered(mut told: ToldMessage) -> Result<TraceEvent, Problem> {
    let mut values = [0; 3];
    let unpacked = told.message().unpack::<u64>(&mut values);
    unpacked.map_err(|error| Problem::Wrong(format!("a message of the group: {error}")))?;
    let [since, number, _] = values;
    let id = told.member().unwrap_or(u32::MAX);
    let message = MessageName { sender: MemberName { id, since }, number };
    let (level, sum) = (TraceLevel::Total, sum_of_values(&values));
    let at = told.number().map(|before| before + 1);
    Ok(TraceEvent::Delivered { message, level, sum, at })
}

/// A view for the trace.
fn traced(view: &ToldView) -> TracedView {
    let cause = |gone: Gone| match gone {
        Gone::Left => DepartureCause::Left,
        Gone::Died => DepartureCause::Died,
        Gone::Evicted => DepartureCause::Evicted,
        Gone::HostLost => DepartureCause::Lost,
    };
    TracedView {
        number: view.number(),
        after: Some(view.after()),
        members: view.members().iter().map(|member| member.id).collect(),
        joined: view.joined().iter().map(|member| member.id).collect(),
        departed: view.departed().iter().map(|(member, gone)| (member.id, cause(*gone))).collect(),
    }
}

fn sum_of_values(values: &[u64]) -> u32 {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    sum_of(&bytes)
}

/// Whether an error says that there was no room for a message.
fn is_full(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Group(GroupError::Full { .. }))
}

fn unwritten(error: io::Error) -> Problem {
    Problem::Own(format!("cannot write the trace: {error}"))
}
