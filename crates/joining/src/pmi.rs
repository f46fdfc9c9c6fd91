//! The process's side of PMI-1, the text protocol of `mpiexec` (hydra), Slurm and others.
//!
//! Each request has one reply, a line each, on a socket that the launcher left open (`PMI_FD`) or listens on
//! (`PMI_PORT`). A request is sent in one write. Only requests that every launcher knows are sent: an unknown one ends
//! the job under hydra. Every answer has a time limit except the answer to a fence, which waits for the other processes
//! of the job, whatever they do before they come.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use landeck_host::environment::own_text;
use landeck_host::say::quoted;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::inherited::{self, InheritError};

/// The request that waits for all processes.
const FENCE: &str = "barrier_in";
/// The longest line that is sent: the oldest servers read no more.
const SENT_LINE_BYTES: usize = 1024;
/// The longest line that is accepted.
const RECEIVED_LINE_BYTES: usize = 8192;
/// The most lines that are skipped while one reply is waited for.
const SKIPPED_LINES: usize = 16;
/// How long the launcher may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// How long the launcher may take to accept a connection.
const CONNECT_TIME: Duration = Duration::from_secs(20);
/// How long the launcher may take to end a job that was aborted.
const ABORT_TIME: Duration = Duration::from_secs(3);

/// A conversation with the launcher.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    /// Bytes that were received and not yet consumed: less than two lines.
    received: Vec<u8>,
    place: JobPlace,
    limits: Limits,
    key_space: String,
    answer_time: Duration,
}

/// The rank of this process and the size of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPlace {
    /// The rank.
    pub rank: u32,
    /// The number of processes.
    pub size: u32,
}

/// The address of the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A descriptor that this process inherited.
    Descriptor {
        /// The number as the environment states it.
        number: String,
        /// The rank and the size as the environment states them.
        place: JobPlace,
    },
    /// A TCP port, with an identity that the launcher gave.
    Port {
        /// `host:port`.
        port: String,
        /// The identity.
        identity: String,
    },
}

/// The error of a conversation over PMI-1.
#[derive(Debug, thiserror::Error)]
pub enum PmiError {
    /// A variable is missing or has no usable value.
    #[error("the launcher set {present}, but {name} is {}: start the program again with mpiexec or landeck run",
        value.as_ref().map_or_else(|| "not set".to_owned(), |value| quoted(value)))]
    Variable {
        /// The variable that is set.
        present: &'static str,
        /// The variable that is wrong.
        name: &'static str,
        /// Its value.
        value: Option<String>,
    },
    /// The rank is outside of the job.
    #[error(
        "PMI_RANK is {}, but PMI_SIZE is {}, so the last rank is {}: start the program again with mpiexec or \
         landeck run", .0.rank, .0.size, .0.size - 1
    )]
    Rank(JobPlace),
    /// The descriptor that the launcher named is not open or not a stream.
    #[error("PMI_FD does not lead to the launcher: {0}")]
    Descriptor(#[from] InheritError),
    /// The port that the launcher named does not answer.
    #[error("the launcher does not answer at PMI_PORT {}: {error}", quoted(port))]
    Port {
        /// The port.
        port: String,
        /// The system's error.
        error: io::Error,
    },
    /// The launcher closed the conversation: it has ended, or it ends the job.
    #[error("the launcher closed the conversation before it answered {request:?}")]
    LauncherGone {
        /// The request.
        request: &'static str,
    },
    /// The launcher runs, but does not answer.
    #[error(
        "the launcher has not answered {request:?} for {seconds} s: it is stopped or overloaded; \
         end it and start the program again"
    )]
    Silent {
        /// The request.
        request: &'static str,
        /// The time since the request.
        seconds: u64,
    },
    /// The conversation broke.
    #[error("the conversation with the launcher broke at {request:?}: {error}")]
    Broken {
        /// The request.
        request: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The launcher refused a request.
    #[error("the launcher refused {request:?}: it answered {answer:?}")]
    Refused {
        /// The request.
        request: &'static str,
        /// The whole answer.
        answer: String,
    },
    /// The launcher's answer does not belong to this protocol.
    #[error("the launcher's answer to {request:?} makes no sense: {answer:?}")]
    Senseless {
        /// The request.
        request: &'static str,
        /// The answer, or its beginning.
        answer: String,
    },
    /// A key or a value that the protocol cannot carry.
    #[error(
        "{text:?} cannot be sent to the launcher: it takes 1 to {limit} letters, digits and -._"
    )]
    Unsendable {
        /// The key or value.
        text: String,
        /// The longest text that the launcher accepts.
        limit: usize,
    },
    /// No process has put this key.
    #[error("the launcher knows no value of {0:?}: the process that should have put it has not")]
    NoSuchKey(String),
}

/// The limits of keys and values at the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    key_bytes: usize,
    value_bytes: usize,
}

#[derive(Debug)]
enum Stream {
    Inherited(UnixStream),
    Connected(TcpStream),
}

impl Address {
    /// The address of the launcher in the environment, if there is one.
    ///
    /// # Errors
    /// [`PmiError::Variable`].
    pub fn from_environment() -> Result<Option<Self>, PmiError> {
        Self::from_variables(own_text)
    }

    fn from_variables(
        variable: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Option<Self>, PmiError> {
        if let Some(number) = variable("PMI_FD") {
            let place = JobPlace {
                rank: numeric(&variable, "PMI_FD", "PMI_RANK")?,
                size: numeric(&variable, "PMI_FD", "PMI_SIZE")?,
            };
            if place.size == 0 {
                let value = variable("PMI_SIZE");
                return Err(PmiError::Variable { present: "PMI_FD", name: "PMI_SIZE", value });
            }
            if place.rank >= place.size {
                return Err(PmiError::Rank(place));
            }
            return Ok(Some(Self::Descriptor { number, place }));
        }
        let Some(port) = variable("PMI_PORT") else { return Ok(None) };
        let identity = variable("PMI_ID").filter(|identity| is_sendable(identity, 256)).ok_or(
            PmiError::Variable { present: "PMI_PORT", name: "PMI_ID", value: variable("PMI_ID") },
        )?;
        Ok(Some(Self::Port { port, identity }))
    }
}

impl Client {
    /// Opens the conversation.
    ///
    /// # Errors
    /// [`PmiError`].
    pub fn connect(address: &Address) -> Result<Self, PmiError> {
        match address {
            Address::Descriptor { number, place } => {
                let stream = UnixStream::from(inherited::take(number, is_stream)?);
                Self::introduce(Stream::Inherited(stream), Some(*place), None)
            }
            Address::Port { port, identity } => {
                let stream =
                    dial(port).map_err(|error| PmiError::Port { port: port.clone(), error })?;
                Self::introduce(Stream::Connected(stream), None, Some(identity))
            }
        }
    }

    /// Opens the conversation over a stream that leads to the launcher already.
    ///
    /// # Errors
    /// [`PmiError`].
    pub fn over(stream: UnixStream, place: JobPlace) -> Result<Self, PmiError> {
        Self::introduce(Stream::Inherited(stream), Some(place), None)
    }

    /// The rank of this process and the size of its job.
    pub fn place(&self) -> JobPlace {
        self.place
    }

    /// Duplicates the descriptor of the connection, for waiting for its end.
    ///
    /// # Errors
    /// If there are too many descriptors.
    pub fn connection(&self) -> io::Result<OwnedFd> {
        self.stream.as_fd().try_clone_to_owned()
    }

    /// Publishes a value, which the others can read after the next fence. Each key is put once.
    ///
    /// # Errors
    /// [`PmiError::Unsendable`], or an error of the conversation.
    pub fn put(&mut self, key: &str, value: &str) -> Result<(), PmiError> {
        check(key, self.limits.key_bytes)?;
        let line_start = format!("cmd=put kvsname={} key={key} value=", self.key_space);
        let room = SENT_LINE_BYTES.saturating_sub(line_start.len() + 1);
        check(value, self.limits.value_bytes.min(room))?;
        let answer = self.ask("put", &format!("{line_start}{value}\n"), "put_result")?;
        answer.expect_success("put")
    }

    /// Waits until every process of the job has called this. Values that were put before are readable then.
    ///
    /// # Errors
    /// An error of the conversation.
    pub fn fence(&mut self) -> Result<(), PmiError> {
        self.ask(FENCE, "cmd=barrier_in\n", "barrier_out")?.expect_success(FENCE)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`PmiError::NoSuchKey`], or an error of the conversation.
    pub fn get(&mut self, key: &str) -> Result<String, PmiError> {
        check(key, self.limits.key_bytes)?;
        let line = format!("cmd=get kvsname={} key={key}\n", self.key_space);
        let answer = self.ask("get", &line, "get_result")?;
        if answer.value("rc").is_some_and(|code| code != "0") {
            return Err(PmiError::NoSuchKey(key.to_owned()));
        }
        answer.value("value").map(str::to_owned).ok_or_else(|| answer.senseless("get"))
    }

    /// Asks the launcher to end the whole job with this exit code. There is no answer.
    ///
    /// # Errors
    /// If the request cannot be sent.
    pub fn abort(&mut self, exit_code: i32, message: &str) -> Result<(), PmiError> {
        let mut line = format!("cmd=abort exitcode={exit_code} message=");
        // A space ends a value, and older launchers know no escapes.
        line.extend(message.chars().take(512).map(|letter| match letter {
            ' ' => '_',
            letter if letter.is_ascii_graphic() && !matches!(letter, '=' | '\\') => letter,
            _ => '?',
        }));
        line.push('\n');
        self.send("abort", &line)
    }

    /// Waits until the launcher ends this process, as it does with all processes of an aborted job. If that does not
    /// happen in time, or the launcher has ended, this returns, and the caller must exit.
    ///
    /// A process that exits at once is seen by the others to be gone, and their exit codes may reach the launcher
    /// first.
    pub fn wait_for_end(&mut self) {
        let give_up = Instant::now() + ABORT_TIME;
        // Any line that comes now is ignored.
        while self.wait_readable(Some(give_up)).is_ok_and(|ready| ready) {
            if self.receive("abort").is_err() {
                break;
            }
            self.received.clear();
        }
    }

    /// Ends the conversation, after which this process may exit without ending the job.
    ///
    /// # Errors
    /// An error of the conversation.
    pub fn finalize(mut self) -> Result<(), PmiError> {
        self.ask("finalize", "cmd=finalize\n", "finalize_ack")?.expect_success("finalize")
    }

    /// Introduces this process, and learns what every later request needs.
    fn introduce(
        stream: Stream,
        place: Option<JobPlace>,
        identity: Option<&str>,
    ) -> Result<Self, PmiError> {
        let mut client = Self {
            stream,
            received: Vec::new(),
            place: place.unwrap_or(JobPlace { rank: 0, size: 1 }),
            limits: Limits { key_bytes: 64, value_bytes: 256 },
            key_space: String::new(),
            answer_time: ANSWER_TIME,
        };
        if let Some(identity) = identity {
            client.place = client.identify(identity)?;
        }
        // Exactly these bytes in one write: Slurm reads its first line with a fixed pattern.
        let hello = "cmd=init pmi_version=1 pmi_subversion=1\n";
        client.ask("init", hello, "response_to_init")?.expect_success("init")?;
        let maxes = client.ask("get_maxes", "cmd=get_maxes\n", "maxes")?;
        maxes.expect_success("get_maxes")?;
        client.limits = Limits {
            key_bytes: maxes.number("get_maxes", "keylen_max")?,
            value_bytes: maxes.number("get_maxes", "vallen_max")?,
        };
        let answer = client.ask("get_my_kvsname", "cmd=get_my_kvsname\n", "my_kvsname")?;
        answer.expect_success("get_my_kvsname")?;
        client.key_space = answer
            .value("kvsname")
            .filter(|name| !name.is_empty() && name.len() <= 256)
            .ok_or_else(|| answer.senseless("get_my_kvsname"))?
            .to_owned();
        Ok(client)
    }

    /// Identifies this process on a fresh connection, and learns its rank.
    fn identify(&mut self, identity: &str) -> Result<JobPlace, PmiError> {
        let line = format!("cmd=initack pmiid={identity}\n");
        let answer = self.ask("initack", &line, "initack")?;
        answer.expect_success("initack")?;
        let place = JobPlace {
            rank: answer.number("initack", "rank")?,
            size: answer.number("initack", "size")?,
        };
        if place.rank >= place.size {
            return Err(answer.senseless("initack"));
        }
        Ok(place)
    }

    /// Sends a request and waits for the answer of this name. Lines of the kind `cmd=set`, which a launcher sends
    /// unasked after it has identified a process, are skipped.
    fn ask(
        &mut self,
        request: &'static str,
        line: &str,
        reply: &'static str,
    ) -> Result<Answer, PmiError> {
        self.send(request, line)?;
        let give_up = (request != FENCE).then(|| Instant::now() + self.answer_time);
        for _ in 0..SKIPPED_LINES {
            let answer = Answer { line: self.next_line(request, give_up)? };
            match answer.value("cmd") {
                Some(name) if name == reply => return Ok(answer),
                Some("set") => {}
                _ => return Err(answer.senseless(request)),
            }
        }
        Err(PmiError::Senseless { request, answer: "cmd=set again and again".to_owned() })
    }

    fn send(&mut self, request: &'static str, line: &str) -> Result<(), PmiError> {
        send_quietly(&self.stream, line.as_bytes()).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                PmiError::LauncherGone { request }
            }
            _ => PmiError::Broken { request, error },
        })
    }

    /// The next line without its end.
    fn next_line(
        &mut self,
        request: &'static str,
        give_up: Option<Instant>,
    ) -> Result<String, PmiError> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let rest = self.received.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.received, rest);
                line.truncate(end);
                return String::from_utf8(line).map_err(|error| PmiError::Senseless {
                    request,
                    answer: beginning(&String::from_utf8_lossy(error.as_bytes())),
                });
            }
            if self.received.len() > RECEIVED_LINE_BYTES {
                let answer = beginning(&String::from_utf8_lossy(&self.received));
                return Err(PmiError::Senseless { request, answer });
            }
            match self.wait_readable(give_up) {
                Ok(true) => self.receive(request)?,
                Ok(false) => {
                    let seconds = self.answer_time.as_secs();
                    return Err(PmiError::Silent { request, seconds });
                }
                Err(error) => return Err(PmiError::Broken { request, error }),
            }
        }
    }

    /// Waits until there is something to read, or the end. Returns false when the time has passed.
    fn wait_readable(&self, give_up: Option<Instant>) -> io::Result<bool> {
        loop {
            let left = give_up.map(|at| at.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], left.as_ref()) {
                Ok(ready) => return Ok(ready > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn receive(&mut self, request: &'static str) -> Result<(), PmiError> {
        let mut buffer = [0; 1024];
        let length = loop {
            let read = match &mut self.stream {
                Stream::Inherited(stream) => stream.read(&mut buffer),
                Stream::Connected(stream) => stream.read(&mut buffer),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break 0,
                read => break read.map_err(|error| PmiError::Broken { request, error })?,
            }
        };
        if length == 0 {
            return Err(PmiError::LauncherGone { request });
        }
        self.received.extend_from_slice(&buffer[..length]);
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Inherited(stream) => stream.as_fd(),
            Self::Connected(stream) => stream.as_fd(),
        }
    }
}

/// One line of the launcher: `cmd=NAME key=value ...`.
struct Answer {
    line: String,
}

impl Answer {
    /// The value of a key.
    fn value(&self, key: &str) -> Option<&str> {
        self.line
            .split_ascii_whitespace()
            .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn number<N: std::str::FromStr>(
        &self,
        request: &'static str,
        key: &str,
    ) -> Result<N, PmiError> {
        self.value(key).and_then(parse_number).ok_or_else(|| self.senseless(request))
    }

    /// Fails unless the return code is a success. An absent one is a success: not every launcher sends it.
    fn expect_success(&self, request: &'static str) -> Result<(), PmiError> {
        match self.value("rc") {
            None | Some("0") => Ok(()),
            Some(_) => Err(PmiError::Refused { request, answer: beginning(&self.line) }),
        }
    }

    fn senseless(&self, request: &'static str) -> PmiError {
        PmiError::Senseless { request, answer: beginning(&self.line) }
    }
}

/// Parses a number of digits alone, without a sign.
fn parse_number<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Connects to `host:port`, to the first of its addresses that answers.
fn dial(port: &str) -> io::Result<TcpStream> {
    let mut outcome = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in port.to_socket_addrs()? {
        outcome = TcpStream::connect_timeout(&address, CONNECT_TIME);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Whether a descriptor is a stream socket.
fn is_stream(descriptor: BorrowedFd<'_>) -> bool {
    rustix::net::sockopt::socket_type(descriptor) == Ok(rustix::net::SocketType::STREAM)
}

/// Sends everything; a closed peer is an error, not a signal.
fn send_quietly(stream: &impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    use rustix::net::{SendFlags, send};
    while !bytes.is_empty() {
        match send(stream, bytes, SendFlags::NOSIGNAL) {
            Ok(length) => bytes = &bytes[length..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn numeric(
    variable: impl Fn(&'static str) -> Option<String>,
    present: &'static str,
    name: &'static str,
) -> Result<u32, PmiError> {
    let value = variable(name);
    value.as_deref().and_then(parse_number).ok_or(PmiError::Variable { present, name, value })
}

/// Fails unless the protocol can carry the text.
fn check(text: &str, limit: usize) -> Result<(), PmiError> {
    if is_sendable(text, limit) {
        return Ok(());
    }
    Err(PmiError::Unsendable { text: beginning(text), limit })
}

/// Whether a text needs no escape. Older launchers know no escapes, so no other text is sent.
fn is_sendable(text: &str, limit: usize) -> bool {
    (1..=limit).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

/// The beginning of a text, short enough for a message.
fn beginning(text: &str) -> String {
    let mut shown: String = text.chars().take(200).collect();
    if shown.len() < text.len() {
        let _ = write!(shown, "... ({} bytes)", text.len());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};
    use std::time::Duration;

    use landeck_testing::Watchdog;

    const LIMIT: Duration = Duration::from_secs(200);

    /// Answers one process as hydra does, until it finalizes, aborts or disconnects.
    fn serve(stream: impl Read + Write, replies: fn(&str) -> Option<String>) -> Vec<String> {
        let mut reader = BufReader::new(stream);
        let mut values = BTreeMap::new();
        let mut seen = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return seen;
            }
            let line = line.trim_end().to_owned();
            let answer = Answer { line: line.clone() };
            let word = |key| answer.value(key).unwrap_or_default().to_owned();
            let command = word("cmd");
            seen.push(line.clone());
            let reply = replies(&command).unwrap_or_else(|| match command.as_str() {
                "initack" => "cmd=initack rc=0 rank=1 size=2 appnum=0 debug=0\ncmd=set size=2\n\
                     cmd=set rank=1\ncmd=set debug=0\n"
                    .to_owned(),
                "init" => "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n".to_owned(),
                "get_maxes" => {
                    "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n".to_owned()
                }
                "get_my_kvsname" => "cmd=my_kvsname rc=0 kvsname=kvs_1_0_2_vm\n".to_owned(),
                "put" => {
                    values.insert(word("key"), word("value"));
                    "cmd=put_result rc=0\n".to_owned()
                }
                "barrier_in" => "cmd=barrier_out tag=0\n".to_owned(),
                "get" => match values.get(&word("key")) {
                    Some(value) => format!("cmd=get_result rc=0 value={value}\n"),
                    None => "cmd=get_result rc=1\n".to_owned(),
                },
                "finalize" => "cmd=finalize_ack rc=0\n".to_owned(),
                _ => String::new(),
            });
            if reader.get_mut().write_all(reply.as_bytes()).is_err() || reply.is_empty() {
                return seen;
            }
        }
    }

    fn launched(
        replies: fn(&str) -> Option<String>,
    ) -> (Result<Client, PmiError>, JoinHandle<Vec<String>>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let server = thread::spawn(move || serve(theirs, replies));
        let place = JobPlace { rank: 0, size: 2 };
        (Client::over(ours, place), server)
    }

    #[test]
    fn a_conversation_from_hello_to_goodbye() {
        let _watchdog = Watchdog::start(LIMIT);
        let (client, server) = launched(|_| None);
        let mut client = client.unwrap();
        assert_eq!(client.place(), JobPlace { rank: 0, size: 2 });
        client.put("landeck-0", "00ff.host-1").unwrap();
        client.fence().unwrap();
        assert_eq!(client.get("landeck-0").unwrap(), "00ff.host-1");
        assert!(matches!(client.get("nothing"), Err(PmiError::NoSuchKey(key)) if key == "nothing"));
        client.finalize().unwrap();
        let seen = server.join().unwrap();
        assert_eq!(seen[0], "cmd=init pmi_version=1 pmi_subversion=1");
        assert_eq!(seen[3], "cmd=put kvsname=kvs_1_0_2_vm key=landeck-0 value=00ff.host-1");
        assert_eq!(seen.last().unwrap(), "cmd=finalize");
    }

    #[test]
    fn a_conversation_over_a_port() {
        let _watchdog = Watchdog::start(LIMIT);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || serve(listener.accept().unwrap().0, |_| None));
        let mut client = Client::connect(&Address::Port { port, identity: "7".into() }).unwrap();
        assert_eq!(client.place(), JobPlace { rank: 1, size: 2 });
        client.fence().unwrap();
        client.finalize().unwrap();
        assert_eq!(server.join().unwrap()[0], "cmd=initack pmiid=7");
    }

    #[test]
    fn a_place_that_cannot_be_is_refused() {
        let _watchdog = Watchdog::start(LIMIT);
        let places = [
            "rank=0 size=0",
            "rank=2 size=2",
            "rank=-1 size=2",
            "rank=0",
            "rank=0 size=4294967296",
        ];
        for place in places {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().to_string();
            let answer = format!("cmd=initack rc=0 {place}\n");
            let server = thread::spawn(move || {
                let mut stream = listener.accept().unwrap().0;
                stream.write_all(answer.as_bytes()).unwrap();
                stream.read_to_end(&mut Vec::new())
            });
            let address = Address::Port { port, identity: "7".into() };
            let error = Client::connect(&address).unwrap_err();
            assert!(
                matches!(error, PmiError::Senseless { request: "initack", .. }),
                "{place}: {error}"
            );
            server.join().unwrap().unwrap();
        }
    }

    #[test]
    fn an_abort_is_one_line_of_safe_letters() {
        let _watchdog = Watchdog::start(LIMIT);
        let (client, server) = launched(|_| None);
        let (mut client, began) = (client.unwrap(), Instant::now());
        client.abort(3, "rank 0: x=1\nnow").unwrap();
        client.wait_for_end();
        assert!(began.elapsed() < ABORT_TIME, "the launcher closed the conversation");
        assert_eq!(
            server.join().unwrap().last().unwrap(),
            "cmd=abort exitcode=3 message=rank_0:_x?1?now"
        );
    }

    #[test]
    fn a_launcher_that_goes_away_is_named() {
        let _watchdog = Watchdog::start(LIMIT);
        let (client, _server) = launched(|command| (command == "get_maxes").then(String::new));
        let error = client.unwrap_err();
        assert!(matches!(error, PmiError::LauncherGone { request: "get_maxes" }), "{error}");
    }

    #[test]
    fn a_refusal_and_nonsense_are_told_apart() {
        let _watchdog = Watchdog::start(LIMIT);
        let (client, _server) = launched(|command| {
            (command == "init").then(|| "cmd=response_to_init rc=-1 msg=no\n".to_owned())
        });
        assert!(matches!(client.unwrap_err(), PmiError::Refused { request: "init", .. }));
        let (client, _server) =
            launched(|command| (command == "init").then(|| "HTTP/1.1 400\n".to_owned()));
        assert!(matches!(client.unwrap_err(), PmiError::Senseless { request: "init", .. }));
        let (client, _server) = launched(|command| {
            (command == "get_maxes").then(|| "cmd=maxes keylen_max=-3 vallen_max=9\n".to_owned())
        });
        assert!(matches!(client.unwrap_err(), PmiError::Senseless { request: "get_maxes", .. }));
    }

    #[test]
    fn a_line_without_end_is_cut_off() {
        let _watchdog = Watchdog::start(LIMIT);
        let (client, _server) = launched(|command| {
            (command == "init").then(|| "cmd=".to_owned() + &"x".repeat(100_000))
        });
        let error = client.unwrap_err();
        assert!(matches!(error, PmiError::Senseless { .. }));
        assert!(error.to_string().len() < 400, "{error}");
    }

    #[test]
    fn a_launcher_that_says_nothing_is_not_waited_for() {
        let _watchdog = Watchdog::start(LIMIT);
        let (client, server) = launched(|_| None);
        let mut client = client.unwrap();
        // Single bytes without an end of the line are no answer either.
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let served = std::mem::replace(&mut client.stream, Stream::Inherited(ours));
        client.answer_time = Duration::from_millis(50);
        theirs.write_all(b"cmd=get_result rc=0").unwrap();
        let error = client.get("landeck-0").unwrap_err();
        assert!(matches!(error, PmiError::Silent { request: "get", .. }), "{error}");
        drop(served);
        server.join().unwrap();
    }

    #[test]
    fn hostile_answers_end_the_conversation_in_good_order() {
        let _watchdog = Watchdog::start(LIMIT);
        let hello = "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n";
        let maxes = "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n";
        let name = "cmd=my_kvsname rc=0 kvsname=k\n";
        let of = |parts: &[&str]| conversation(parts.concat().as_bytes());
        assert!(of(&[hello, maxes, name]).is_err(), "nothing but a name");
        for number in ["+64", "-64", "0x40", "64.0", "", "99999999999999999999", "\u{664}"] {
            let error = of(&[hello, &maxes.replace("64", number), name]).unwrap_err();
            assert!(matches!(error, PmiError::Senseless { request: "get_maxes", .. }), "{error}");
        }
        let error = of(&[hello, &maxes.replace("64", "3"), name]).unwrap_err();
        assert!(matches!(error, PmiError::Unsendable { limit: 3, .. }), "{error}");
        let long = format!("cmd=my_kvsname rc=0 kvsname={}\n", "k".repeat(257));
        for name in ["cmd=my_kvsname rc=0\n", "cmd=my_kvsname kvsname=\n", long.as_str()] {
            let error = of(&[hello, maxes, name]).unwrap_err();
            assert!(matches!(error, PmiError::Senseless { request: "get_my_kvsname", .. }));
        }
        let error = of(&["cmd=set x=1\n".repeat(1000).as_str()]).unwrap_err();
        assert!(error.to_string().contains("again and again"), "{error}");
        let put = "cmd=put_result rc=0\n";
        let error = of(&[hello, maxes, name, put, "cmd=barrier_out rc=-1\n"]).unwrap_err();
        assert!(matches!(error, PmiError::Refused { request: "barrier_in", .. }), "{error}");
        let whole = [hello, maxes, name, put, "cmd=barrier_out\n", "cmd=get_result rc=0 value=v\n"];
        let error = of(&whole).unwrap_err();
        assert!(matches!(error, PmiError::LauncherGone { request: "finalize" }), "{error}");
    }

    #[test]
    fn no_answer_whatever_does_harm() {
        let _watchdog = Watchdog::start(LIMIT);
        let good = b"cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n\
            cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n\
            cmd=my_kvsname rc=0 kvsname=kvs_1\ncmd=put_result rc=0\ncmd=barrier_out tag=0\n\
            cmd=get_result rc=0 value=v\ncmd=finalize_ack rc=0\n";
        assert!(conversation(good).is_ok());
        let mut random = landeck_testing::Random::new(landeck_testing::seed());
        for _ in 0..2_000 {
            let mut bytes = good.to_vec();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(4) {
                    _ if bytes.is_empty() => bytes.push(b'c'),
                    0 => bytes[at] = random.below(256) as u8,
                    1 => drop(bytes.remove(at)),
                    2 => bytes.insert(at, b" =\n\\"[random.below(4) as usize]),
                    _ => bytes.truncate(at),
                }
            }
            if let Err(error) = conversation(&bytes) {
                assert!(error.to_string().len() < 2_000, "{error}");
            }
        }
    }

    /// Everything that a process sends to a launcher that gives these answers and then disconnects.
    fn conversation(answers: &[u8]) -> Result<String, PmiError> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(answers).unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        let mut client = Client::over(ours, JobPlace { rank: 0, size: 2 })?;
        client.put("landeck-0", "v")?;
        client.fence()?;
        let value = client.get("landeck-0")?;
        client.finalize()?;
        Ok(value)
    }

    #[test]
    fn keys_and_values_are_checked() {
        let _watchdog = Watchdog::start(LIMIT);
        let (client, _server) = launched(|_| None);
        let mut client = client.unwrap();
        for value in ["", "a b", "a=b", "a\\", "a\n", "ä", &"x".repeat(1000)] {
            assert!(matches!(client.put("key", value), Err(PmiError::Unsendable { .. })));
        }
        assert!(matches!(client.get(&"k".repeat(65)), Err(PmiError::Unsendable { .. })));
    }

    #[test]
    fn the_environment_is_checked() {
        let address = |pairs: &'static [(&str, &str)]| {
            Address::from_variables(move |name| {
                let found = pairs.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(address(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]).unwrap().is_none());
        let place = JobPlace { rank: 1, size: 2 };
        assert_eq!(
            address(&[("PMI_FD", "7"), ("PMI_RANK", "1"), ("PMI_SIZE", "2")]).unwrap(),
            Some(Address::Descriptor { number: "7".into(), place })
        );
        let error = address(&[("PMI_FD", "7"), ("PMI_RANK", "2"), ("PMI_SIZE", "2")]).unwrap_err();
        assert!(error.to_string().contains("PMI_RANK is 2, but PMI_SIZE is 2"), "{error}");
        let error = address(&[("PMI_FD", "7"), ("PMI_RANK", "0"), ("PMI_SIZE", "0")]).unwrap_err();
        assert!(error.to_string().contains("but PMI_SIZE is \"0\""), "{error}");
        for rank in ["-1", "+1", " 1", "one", ""] {
            let variables = [("PMI_FD", "7"), ("PMI_RANK", rank), ("PMI_SIZE", "2")];
            let error = Address::from_variables(|name| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            });
            assert!(matches!(error, Err(PmiError::Variable { name: "PMI_RANK", .. })), "{rank:?}");
        }
        let error = address(&[("PMI_PORT", "a:1")]).unwrap_err();
        assert!(error.to_string().contains("PMI_ID is not set"), "{error}");
    }
}
