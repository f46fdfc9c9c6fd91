//! Shows the stacks of a process's threads, for a user who asks why it does not end.
//!
//! Uses gdb if it is installed and allowed; otherwise the kernel's figures in /proc.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::output::pipe;

/// The time limit for finding all stacks of a part together.
pub(crate) const STACKS_MAX: Duration = Duration::from_secs(30);
/// The length of the stacks of one process: those of many must fit into one message.
const STACKS_BYTES_MAX: usize = 128 * 1024;
/// The debugger that is looked for in PATH.
const DEBUGGER: &str = "gdb";
/// The marks of Landeck's functions in a frame: source files, libraries, or names.
const OWN_PLACES: [&str; 17] = [
    "crates/memory/src/",
    "crates/board/src/",
    "crates/objects/src/",
    "crates/channel/src/",
    "crates/transports/src/",
    "crates/kernel/src/",
    "crates/collectives/src/",
    "crates/protocols/src/",
    "crates/host/src/",
    "crates/diagnosis/src/",
    "crates/node/src/",
    "fronts/c_boundary/src/",
    "fronts/deck/src/",
    "fronts/mpi/src/",
    "/libmpi_abi.so",
    "/libdeck.so",
    " in landeck_",
];
/// The marks of the C library's and Rust's functions.
const SYSTEM_PLACES: [&str; 4] = ["/rustc/", "/sysdeps/", "/libc.so", "/ld-linux"];

/// Starts a thread that writes the stacks of these processes into a pipe: a debugger is slow, and a daemon must not
/// wait. [`read_stacks`] understands what the pipe contains when it has ended.
///
/// # Errors
/// The kernel's error.
pub fn search_stacks(pids: Vec<u32>) -> io::Result<OwnedFd> {
    let (reader, writer) = pipe()?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    let work = move || {
        let give_up = Instant::now() + STACKS_MAX;
        let texts: Vec<String> = pids.into_iter().map(|pid| of_process(pid, give_up)).collect();
        // If nobody reads it, nobody misses it.
        let _ = File::from(writer).write_all(&postcard::to_stdvec(&texts).unwrap_or_default());
    };
    thread::Builder::new().name("landeck-stacks".to_owned()).spawn(work)?;
    Ok(reader)
}

/// The stacks of each process, from the bytes that [`search_stacks`] has written.
pub fn read_stacks(bytes: &[u8]) -> Vec<String> {
    postcard::from_bytes(bytes).unwrap_or_default()
}

/// The stacks of a process, in indented lines. A debugger that has not finished by `deadline` is ended, which the last line
/// says.
pub fn of_process(pid: u32, deadline: Instant) -> String {
    by_either(DEBUGGER, pid, deadline)
}

fn by_either(debugger: &str, pid: u32, deadline: Instant) -> String {
    let mut stacks = String::new();
    let end = by_debugger(debugger, pid, deadline, &mut stacks);
    if stacks.is_empty() {
        stacks = by_kernel(pid);
    }
    if end == Some(DebuggerEnd::Late) {
        stacks +=
            "\n(the rest is missing: the debugger was ended, as the time for all stacks was over)";
    }
    limited(stacks.lines().map(|line| format!("    {line}\n")))
}

/// The first lines, as many as there is room for; the last one says how many are missing.
fn limited(lines: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    let mut missing = 0;
    for line in lines {
        match text.len() + line.len() <= STACKS_BYTES_MAX {
            true => text += &line,
            false => missing += 1,
        }
    }
    if missing > 0 {
        text += &format!("    ({missing} lines of these stacks are left out)\n");
    }
    text
}

/// How a debugger has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DebuggerEnd {
    Itself,
    /// It was killed at the deadline, or not even started.
    Late,
}

/// Adds the stacks that a debugger finds, as far as it gets by the deadline; `None` if there is no debugger.
fn by_debugger(
    program: &str,
    pid: u32,
    deadline: Instant,
    stacks: &mut String,
) -> Option<DebuggerEnd> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    if remaining.is_zero() {
        return Some(DebuggerEnd::Late);
    }
    let output = File::from(rustix::fs::memfd_create("stacks", MemfdFlags::CLOEXEC).ok()?);
    let mut debugger = Command::new(program);
    debugger.args(["-nx", "-batch", "-p", &pid.to_string()]);
    debugger.args(["-ex", "set debuginfod enabled off", "-ex", "thread apply all bt"]);
    debugger.stdin(Stdio::null()).stdout(output.try_clone().ok()?).stderr(Stdio::null());
    let mut child = debugger.spawn().ok()?;
    let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok()?;
    let timeout = Timespec::try_from(remaining).ok();
    let ended = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], timeout.as_ref());
    let end = if matches!(ended, Ok(1)) { DebuggerEnd::Itself } else { DebuggerEnd::Late };
    if end == DebuggerEnd::Late {
        let _ = child.kill();
    }
    let _ = child.wait();
    let mut text = String::new();
    let mut output = output;
    output.rewind().ok()?;
    output.read_to_string(&mut text).ok()?;
    *stacks += &frames(&text).unwrap_or_default();
    Some(end)
}

/// The lines of the debugger that show threads and frames; `None` if there are none.
fn frames(text: &str) -> Option<String> {
    let is_shown = |line: &&str| line.starts_with('#') || line.starts_with("Thread ");
    let shown: Vec<&str> = text.lines().filter(is_shown).collect();
    shown.iter().any(|line| line.starts_with('#')).then(|| folded(&shown).join("\n"))
}

/// Folds successive frames inside Landeck into one line, except the outermost one: by that call the program entered
/// Landeck.
fn folded(lines: &[&str]) -> Vec<String> {
    let mut text = Vec::new();
    let mut rest = lines;
    while let [first, others @ ..] = rest {
        let within = rest.iter().take_while(|line| origin(line) != Origin::Program);
        let inside = within.enumerate().filter(|(_, line)| origin(line) == Origin::Landeck);
        match inside.last() {
            Some((last, _)) if last > 1 => {
                let number = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
                let (from, to) = (number(first), number(rest[last - 1]));
                text.push(format!("{from} to {to}  inside Landeck"));
                text.push(rest[last].to_owned());
                rest = &rest[last + 1..];
            }
            _ => {
                text.push((*first).to_owned());
                rest = others;
            }
        }
    }
    text
}

/// The origin of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A function of Landeck.
    Landeck,
    /// A function of the C library or of Rust's, which all others call.
    System,
    /// A function of anything else, or the line that begins a thread.
    Program,
}

fn origin(line: &str) -> Origin {
    let is_in = |places: &[&str]| places.iter().any(|place| line.contains(place));
    match () {
        () if !line.starts_with('#') => Origin::Program,
        () if is_in(&OWN_PLACES) => Origin::Landeck,
        () if is_in(&SYSTEM_PLACES) => Origin::System,
        () => Origin::Program,
    }
}

fn by_kernel(pid: u32) -> String {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    describe(&read("status"), &read("wchan"), &read("syscall"), &read("stack"))
}

fn describe(status: &str, channel: &str, call: &str, stack: &str) -> String {
    let field = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(value.trim_start_matches(':').trim().to_owned())
    };
    let mut text = format!(
        "state {}, {} threads",
        field("State").unwrap_or_else(|| "unknown".to_owned()),
        field("Threads").unwrap_or_else(|| "?".to_owned()),
    );
    let mut add = |name: &str, value: &str| {
        if !matches!(value.trim(), "" | "0") {
            text += &format!(", {name} {}", value.trim());
        }
    };
    add("in kernel function", channel);
    add("system call", call.split(' ').next().unwrap_or_default());
    for line in stack.lines() {
        text += &format!("\n{line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    #[test]
    fn a_debuggers_frames_are_kept() {
        let text =
            "[New LWP 7]\nThread 1 (LWP 3):\n#0  read () at x.c:1\n#1  main ()\n[Inferior]\n";
        assert_eq!(frames(text).unwrap(), "Thread 1 (LWP 3):\n#0  read () at x.c:1\n#1  main ()");
        assert_eq!(frames("ptrace: Operation not permitted.\nThread 1\n"), None);
    }

    #[test]
    fn frames_of_ours_are_one_line() {
        let text = "\
Thread 1 (LWP 3):
#0  syscall () at ../sysdeps/unix/sysv/linux/x86_64/syscall.S:38
#1  0x00007ff8 in futex_wait () at crates/memory/src/system.rs:142
#2  call_once () at /rustc/59/library/core/src/panic/unwind_safe.rs:274
#3  0x00007ff8 in entered () at fronts/mpi/src/entry.rs:93
#4  MPI_Recv () at fronts/mpi/src/entry.rs:34
#5  0x00005616 in main (c=1) at dead.c:2
Thread 2 (LWP 4):
#0  read () from /lib/x86_64-linux-gnu/libc.so.6
#1  work () at dead.c:9
#2  0x00007ff8 in ?? () from /usr/local/lib/libmpi_abi.so.1
#3  MPI_Allreduce () from /usr/local/lib/libmpi_abi.so.1
#4  main () at dead.c:20
";
        let wanted = "\
Thread 1 (LWP 3):
#0 to #3  inside Landeck
#4  MPI_Recv () at fronts/mpi/src/entry.rs:34
#5  0x00005616 in main (c=1) at dead.c:2
Thread 2 (LWP 4):
#0  read () from /lib/x86_64-linux-gnu/libc.so.6
#1  work () at dead.c:9
#2  0x00007ff8 in ?? () from /usr/local/lib/libmpi_abi.so.1
#3  MPI_Allreduce () from /usr/local/lib/libmpi_abi.so.1
#4  main () at dead.c:20";
        assert_eq!(frames(text).unwrap(), wanted);
    }

    #[test]
    fn the_kernel_says_something() {
        let status = "Name:\tx\nState:\tS (sleeping)\nThreads:\t3\n";
        let text = describe(status, "futex_wait_queue", "202 0x7f", "[<0>] futex_wait+0x1/0x2\n");
        assert_eq!(
            text,
            "state S (sleeping), 3 threads, in kernel function futex_wait_queue, \
             system call 202\n[<0>] futex_wait+0x1/0x2"
        );
        assert_eq!(describe("", "0", "", ""), "state unknown, ? threads");
    }

    #[test]
    fn a_debugger_that_is_ended_leaves_a_word() {
        let slow = std::env::temp_dir().join(format!("landeck-slow-gdb-{}", std::process::id()));
        let script = "#!/bin/sh\necho 'Thread 1 (LWP 3):'\necho '#0  read ()'\nexec sleep 60\n";
        fs::write(&slow, script).unwrap();
        fs::set_permissions(&slow, fs::Permissions::from_mode(0o700)).unwrap();
        let until = |ms| Instant::now() + Duration::from_millis(ms);
        let by = |until| by_either(slow.to_str().unwrap(), std::process::id(), until);
        let text = by(until(500));
        // On a busy machine it may have written nothing yet.
        assert!(text.contains("#0  read ()") || text.contains("state "), "{text}");
        assert!(text.ends_with("as the time for all stacks was over)\n"), "{text}");
        let text = by(until(0));
        assert!(text.contains("state ") && text.contains("the rest is missing"), "{text}");
        fs::remove_file(&slow).unwrap();
        let text = by(until(500));
        assert!(text.contains("state ") && !text.contains("the rest"), "{text}");
    }

    #[test]
    fn stacks_that_are_too_long_say_so() {
        let lines = |count: usize| limited((0..count).map(|_| format!("{}\n", "x".repeat(1023))));
        assert_eq!(lines(128).len(), STACKS_BYTES_MAX);
        assert!(lines(130).ends_with("x\n    (2 lines of these stacks are left out)\n"));
    }

    #[test]
    fn a_real_process_is_somewhere() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let text = of_process(child.id(), Instant::now() + Duration::from_secs(50));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(text.contains('#') || text.contains("state "), "{text}");
    }
}
