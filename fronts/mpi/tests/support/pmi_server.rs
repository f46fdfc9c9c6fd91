//! A launcher for tests: starts programs and answers them in PMI-1, well or not.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use landeck_testing::Trail;

use super::{GONE_LIMIT, RUN_LIMIT, tools};

/// How a launcher answers what it does not answer as hydra does: given the rank and the command.
pub(crate) type Manner = fn(rank: u32, command: &str) -> Reply;

/// The reply to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    /// It is answered as hydra answers.
    AsHydra,
    /// This is answered.
    Line(&'static str),
    /// This is answered, and then the launcher is gone.
    Last(&'static str),
    /// The launcher closes all connections and is gone.
    Gone,
}

/// The end of a job.
pub(crate) struct Ended {
    /// The output and exit status of each process.
    pub(crate) processes: Vec<Output>,
    /// The lines that each process sent to the launcher.
    pub(crate) said: Vec<Vec<String>>,
}

/// The state that all connections share.
struct Server {
    state: Mutex<State>,
    changed: Condvar,
    manner: Manner,
    size: u32,
}

#[derive(Default)]
struct State {
    values: BTreeMap<String, String>,
    /// How many have come to the present fence, and how many fences are over.
    at_fence: u32,
    fences: u32,
    is_gone: bool,
    connections: Vec<UnixStream>,
}

/// Runs a program in so many processes, to the end of all.
pub(crate) fn run(size: u32, program: &Path, arguments: &[&str], manner: Manner) -> Ended {
    let size_text = size.to_string();
    let places: Vec<_> = (0..size).map(|rank| (rank.to_string(), size_text.clone())).collect();
    run_told(&places, program, arguments, manner)
}

/// Runs a program in as many processes as there are places: the ranks and sizes that they are told.
pub(crate) fn run_told(
    places: &[(String, String)],
    program: &Path,
    arguments: &[&str],
    manner: Manner,
) -> Ended {
    let size = places.len() as u32;
    let trail = Trail::new();
    let server =
        Arc::new(Server { state: Mutex::default(), changed: Condvar::new(), manner, size });
    let (mut children, mut threads) = (Vec::new(), Vec::new());
    for (rank, told) in (0..).zip(places) {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        server.lock().connections.push(ours.try_clone().expect("a descriptor"));
        children.push(trail.spawn(command(told, program, theirs).args(arguments)));
        let server = server.clone();
        threads.push(thread::spawn(move || server.serve(rank, ours)));
    }
    let processes = children.into_iter().map(|child| trail.finish(child, RUN_LIMIT)).collect();
    let said = threads.into_iter().map(|thread| thread.join().expect("it serves")).collect();
    trail.assert_gone(GONE_LIMIT);
    Ended { processes, said }
}

/// The program with its connection under number 7: a shell moves it there from the standard input.
fn command((rank, size): &(String, String), program: &Path, connection: UnixStream) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "exec 7<&0 </dev/null; exec \"$0\" \"$@\""]).arg(program);
    command.env("PMI_FD", "7").env("PMI_RANK", rank).env("PMI_SIZE", size);
    command.env("LD_LIBRARY_PATH", &tools().libraries);
    command.stdin(Stdio::from(OwnedFd::from(connection)));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Server {
    /// Answers one process until it has finalized or is gone, and returns what it said.
    fn serve(&self, rank: u32, mut stream: UnixStream) -> Vec<String> {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        let mut said = Vec::new();
        let mut is_over = false;
        while !is_over {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                break;
            }
            said.push(line.clone());
            let command = word(&line, "cmd");
            let manner = (self.manner)(rank, &command);
            let reply = match manner {
                Reply::AsHydra => self.reply(&command, &line),
                Reply::Line(reply) | Reply::Last(reply) => Some(reply.to_owned()),
                Reply::Gone => None,
            };
            match reply {
                // Who is gone does not listen.
                Some(reply) => drop(stream.write_all(reply.as_bytes())),
                None => self.go(),
            }
            if matches!(manner, Reply::Last(_)) {
                self.go();
            }
            is_over = command == "finalize";
        }
        if !is_over {
            // As launchers do when a process goes without a word: the job is over.
            self.go();
        }
        let _ = reader.read_to_end(&mut Vec::new());
        said
    }

    /// Returns the answer of hydra; `None` when it ends the job.
    fn reply(&self, command: &str, line: &str) -> Option<String> {
        Some(match command {
            "init" => "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n".to_owned(),
            "get_maxes" => "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n".into(),
            "get_my_kvsname" => "cmd=my_kvsname rc=0 kvsname=kvs_1_0_2_test\n".to_owned(),
            "put" => {
                self.lock().values.insert(word(line, "key"), word(line, "value"));
                "cmd=put_result rc=0\n".to_owned()
            }
            "get" => match self.lock().values.get(&word(line, "key")) {
                Some(value) => format!("cmd=get_result rc=0 value={value}\n"),
                None => "cmd=get_result rc=1\n".to_owned(),
            },
            "barrier_in" => {
                self.fence()?;
                "cmd=barrier_out tag=0\n".to_owned()
            }
            "finalize" => "cmd=finalize_ack rc=0\n".to_owned(),
            _ => return None,
        })
    }

    fn fence(&self) -> Option<()> {
        let mut state = self.lock();
        let fence = state.fences;
        state.at_fence += 1;
        if state.at_fence == self.size {
            state.at_fence = 0;
            state.fences += 1;
            self.changed.notify_all();
        }
        while state.fences == fence && !state.is_gone {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (!state.is_gone).then_some(())
    }

    fn go(&self) {
        let mut state = self.lock();
        state.is_gone = true;
        for connection in &state.connections {
            let _ = connection.shutdown(Shutdown::Both);
        }
        self.changed.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The value of a key in a line.
fn word(line: &str, key: &str) -> String {
    let mut words = line.split_ascii_whitespace();
    let value = words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    value.unwrap_or_default().to_owned()
}
