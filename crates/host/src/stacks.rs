//! Where a process is, for somebody who asks why it does not end: the stacks of its threads.
//!
//! By gdb if there is one that may look; else what the kernel says in /proc.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The stacks of a process, in indented lines. A debugger that is not done by `deadline` is ended.
pub fn of_process(pid: u32, deadline: Instant) -> String {
    let stacks = by_debugger(pid, deadline).unwrap_or_else(|| by_kernel(pid));
    stacks.lines().map(|line| format!("    {line}\n")).collect()
}

fn by_debugger(pid: u32, deadline: Instant) -> Option<String> {
    let output = File::from(rustix::fs::memfd_create("stacks", MemfdFlags::CLOEXEC).ok()?);
    let mut debugger = Command::new("gdb");
    debugger.args(["-nx", "-batch", "-p", &pid.to_string()]);
    debugger.args(["-ex", "set debuginfod enabled off", "-ex", "thread apply all bt"]);
    debugger.stdin(Stdio::null()).stdout(output.try_clone().ok()?).stderr(Stdio::null());
    let mut child = debugger.spawn().ok()?;
    let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok()?;
    let remaining = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(remaining).ok();
    let ended = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], timeout.as_ref());
    if !matches!(ended, Ok(1)) {
        let _ = child.kill();
    }
    let _ = child.wait();
    let mut text = String::new();
    let mut output = output;
    output.rewind().ok()?;
    output.read_to_string(&mut text).ok()?;
    frames(&text)
}

/// The lines of the debugger that show threads and frames; `None` if there are none.
fn frames(text: &str) -> Option<String> {
    let is_shown = |line: &&str| line.starts_with('#') || line.starts_with("Thread ");
    let shown: Vec<&str> = text.lines().filter(is_shown).collect();
    shown.iter().any(|line| line.starts_with('#')).then(|| shown.join("\n"))
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
    use std::time::Duration;

    #[test]
    fn a_debuggers_frames_are_kept() {
        let text =
            "[New LWP 7]\nThread 1 (LWP 3):\n#0  read () at x.c:1\n#1  main ()\n[Inferior]\n";
        assert_eq!(frames(text).unwrap(), "Thread 1 (LWP 3):\n#0  read () at x.c:1\n#1  main ()");
        assert_eq!(frames("ptrace: Operation not permitted.\nThread 1\n"), None);
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
    fn a_real_process_is_somewhere() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let text = of_process(child.id(), Instant::now() + Duration::from_secs(20));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(text.contains('#') || text.contains("state "), "{text}");
    }
}
