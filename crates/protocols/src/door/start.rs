//! Starting a process in a running job: the wish of a process, and the answer.

use landeck_wire::{HostNumber, ProcessId};
use serde::{Deserialize, Serialize};

/// The starts that may be under way at the agent of a host.
pub const STARTS_MAX: usize = 64;
/// The bytes of a wish, with everything in it.
pub const WISH_BYTES_MAX: usize = 32 << 10;
/// The bytes of a text in an answer.
const START_TEXT_BYTES_MAX: usize = 700;

/// A process that a process of the job wants to have started. Texts are bytes, as the system has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartWish {
    /// The process that asks.
    pub asker: ProcessId,
    /// The host where it is to run; none in a job on one host.
    pub host: HostNumber,
    /// The program: a path, or a name that is searched for in PATH.
    pub program: Vec<u8>,
    /// Its arguments, without the name.
    pub arguments: Vec<Vec<u8>>,
    /// Variables that it gets besides those of the job's processes.
    pub variables: Vec<(Vec<u8>, Vec<u8>)>,
    /// Its working directory; `None` is that of the job's program.
    pub directory: Option<Vec<u8>>,
    /// How long its joining is waited for, in milliseconds.
    pub join_ms: u64,
}

/// The answer to a wish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartAnswer {
    /// The process runs and has joined.
    Joined {
        /// Its identity.
        process: ProcessId,
        /// Its PID.
        pid: u32,
    },
    /// It was not started, or has not joined.
    Refused(StartRefusal),
}

/// The reason why a process was not started, or has not joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum StartRefusal {
    /// The asking process is not a living one of the job.
    #[error("the asking process is not a living one of this job")]
    NotAlive,
    /// The wish has more bytes than a message can have.
    #[error(
        "program, arguments and variables have {0} bytes together, and at most {WISH_BYTES_MAX} are possible: pass long \
         data in a message or a file"
    )]
    TooLong(usize),
    /// A text has a byte that no argument or variable can have.
    #[error(
        "a text has a zero byte, or a variable's name is empty or has an equals sign: leave them out"
    )]
    Text,
    /// Another launcher has started the job, or none.
    #[error("this job has no launcher that starts processes: start it with `landeck run`")]
    NoLauncher,
    /// The host has no part of the job and gets none.
    #[error("the host cannot take part in this job: {0}")]
    NoPart(String),
    /// The host is lost.
    #[error("host {0} is lost: choose another one of `Job::hosts`")]
    HostLost(String),
    /// The job has no slot there for one more process.
    #[error(
        "the job has as many further processes on this host as it can take: wait until one ends"
    )]
    NoSlot,
    /// Too many starts are under way.
    #[error("{STARTS_MAX} starts are under way on this host: wait until some are done")]
    TooMany,
    /// The job is ending.
    #[error("the job is ending")]
    Ending,
    /// There is no such program or directory, or it cannot be executed.
    #[error("{0}")]
    Program(String),
    /// The system refused a step.
    #[error("the process was not started: {0}")]
    System(String),
    /// The process ended before it had joined.
    #[error(
        "the process (pid {pid}) {how} before it joined the job: see what it printed, and have it call `Job::join`"
    )]
    Ended {
        /// Its PID.
        pid: u32,
        /// Its end, in words.
        how: String,
    },
    /// The process has not joined in time.
    #[error(
        "the process (pid {pid}) runs, but has not joined the job within {:.1} s: have it call `Job::join`, or wait longer \
         (`Executable::join_within`); it stays a process of the job", f64::from(*.waited_ms) / 1e3
    )]
    NotJoined {
        /// Its PID.
        pid: u32,
        /// The time that was waited, in milliseconds.
        waited_ms: u32,
    },
}

impl StartWish {
    /// Checks that the texts are such that a process can have.
    ///
    /// # Errors
    /// [`StartRefusal::Text`].
    pub fn check(&self) -> Result<(), StartRefusal> {
        let pairs = || self.variables.iter().flat_map(|(name, value)| [name, value]);
        let mut texts = [&self.program]
            .into_iter()
            .chain(&self.arguments)
            .chain(&self.directory)
            .chain(pairs());
        let is_name = |(name, _): &(Vec<u8>, Vec<u8>)| !name.is_empty() && !name.contains(&b'=');
        let is_good = texts.all(|text| !text.contains(&0)) && self.variables.iter().all(is_name);
        if is_good { Ok(()) } else { Err(StartRefusal::Text) }
    }
}

impl StartAnswer {
    /// A refusal whose text is short enough for a message.
    pub fn refused(refusal: StartRefusal) -> Self {
        Self::Refused(match refusal {
            StartRefusal::Program(text) => StartRefusal::Program(cut(text)),
            StartRefusal::System(text) => StartRefusal::System(cut(text)),
            StartRefusal::Ended { pid, how } => StartRefusal::Ended { pid, how: cut(how) },
            StartRefusal::NoPart(why) => StartRefusal::NoPart(cut(why)),
            StartRefusal::HostLost(name) => StartRefusal::HostLost(cut(name)),
            short => short,
        })
    }
}

/// The beginning of a text that a message has room for.
pub(super) fn cut(mut text: String) -> String {
    let end =
        (0..=START_TEXT_BYTES_MAX.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text.truncate(end.unwrap_or(0));
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::{House, process};
    use super::super::{DoorAction, Input, Question, Reply, Visitor};
    use super::*;
    use landeck_wire::{ControlMessage, Incarnation};

    fn wish(asker: ProcessId) -> StartWish {
        StartWish {
            asker,
            host: HostNumber(3),
            program: b"./worker".to_vec(),
            arguments: vec![b"-n".to_vec(), vec![0xff, 0xfe]],
            variables: vec![(b"A".to_vec(), b"b=c".to_vec())],
            directory: Some(b"/tmp".to_vec()),
            join_ms: u64::MAX,
        }
    }

    fn asks(house: &mut House, wish: StartWish) -> (Visitor, Vec<DoorAction>) {
        house.asks(None, &Question::Start(Box::new(wish)))
    }

    fn refused(actions: &[DoorAction]) -> StartRefusal {
        match actions {
            [DoorAction::Answer { reply: Reply::Start(StartAnswer::Refused(why)), .. }] => {
                why.clone()
            }
            _ => panic!("{actions:?}"),
        }
    }

    #[test]
    fn a_wish_is_passed_on_and_answered_once() {
        let mut house = House::new();
        let (visitor, actions) = asks(&mut house, wish(process(0)));
        let passed = DoorAction::Start { visitor, wish: Box::new(wish(process(0))) };
        assert_eq!(actions, [passed]);
        let answer = StartAnswer::Joined { process: process(2), pid: 77 };
        let told = house.tell(Input::Started { visitor, answer: &answer });
        let reply = Reply::Start(answer.clone());
        assert_eq!(told, [DoorAction::Answer { visitor, reply, memory: None }]);
        assert_eq!(house.tell(Input::Started { visitor, answer: &answer }), []);
    }

    #[test]
    fn senseless_wishes_and_those_of_strangers_are_refused() {
        let mut house = House::new();
        let next = ProcessId { incarnation: Incarnation(2), ..process(0) };
        assert_eq!(refused(&asks(&mut house, wish(next)).1), StartRefusal::NotAlive);
        assert_eq!(refused(&asks(&mut house, wish(process(2))).1), StartRefusal::NotAlive);
        let good = || wish(process(0));
        let pair = |name: &[u8]| vec![(name.to_vec(), Vec::new())];
        for bad in [
            StartWish { program: b"a\0b".to_vec(), ..good() },
            StartWish { directory: Some(b"\0".to_vec()), ..good() },
            StartWish { variables: pair(b""), ..good() },
            StartWish { variables: pair(b"A=B"), ..good() },
        ] {
            assert_eq!(refused(&asks(&mut house, bad).1), StartRefusal::Text);
        }
    }

    #[test]
    fn askers_that_go_away_leave_no_more_than_so_many_starts() {
        let mut house = House::new();
        let mut passed = Vec::new();
        for _ in 0..STARTS_MAX {
            let (visitor, actions) = asks(&mut house, wish(process(0)));
            assert!(matches!(actions[..], [DoorAction::Start { .. }]), "{actions:?}");
            house.tell(Input::Gone { visitor });
            passed.push(visitor);
        }
        assert_eq!(refused(&asks(&mut house, wish(process(1))).1), StartRefusal::TooMany);
        let answer = StartAnswer::Refused(StartRefusal::NoSlot);
        assert_eq!(house.tell(Input::Started { visitor: passed[0], answer: &answer }), []);
        let (_, actions) = asks(&mut house, wish(process(1)));
        assert!(matches!(actions[..], [DoorAction::Start { .. }]), "{actions:?}");
    }

    #[test]
    fn wishes_and_the_longest_answers_survive_their_encoding() {
        let question = Question::Start(Box::new(wish(process(0))));
        assert_eq!(Question::decode(&question.encode()), Ok(question));
        let text = || "\u{fc}".repeat(WISH_BYTES_MAX);
        let last = u32::MAX;
        for refusal in [
            StartRefusal::Program(text()),
            StartRefusal::System(text()),
            StartRefusal::NoPart(text()),
            StartRefusal::HostLost(text()),
            StartRefusal::Ended { pid: last, how: text() },
            StartRefusal::NotJoined { pid: last, waited_ms: last },
        ] {
            let reply = Reply::Start(StartAnswer::refused(refusal));
            assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
        }
    }
}
