//! Starts one process and observes its changes and its end.
//!
//! A start shares the parent's memory until the new program begins (as `vfork` and `posix_spawn` do): it copies no page
//! tables and reports a failed step at once.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::cpu_set::CpuSet;
use crate::start_signals::{self, StartSignals};

/// The standard input, output and error of a process.
pub type Streams = [OwnedFd; 3];

/// A program with everything it is started with, apart from its streams.
#[derive(Debug, Serialize, Deserialize)]
pub struct Image {
    /// The file to execute; no search path is used.
    pub program: CString,
    /// The arguments, beginning with the name of the program as it sees it.
    pub arguments: Vec<CString>,
    /// The whole environment, each as `NAME=value`.
    pub environment: Vec<CString>,
    /// Its working directory.
    pub directory: CString,
    /// The processors that it may use; `None` leaves the parent's.
    pub cpus: Option<CpuSet>,
}

/// A step between the creation of a process and its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum StartStep {
    /// Creating the process.
    Create = 1,
    /// Tying its life to the parent's, which had already ended.
    Parent = 2,
    /// Creating its process group.
    Group = 3,
    /// Binding it to its processors.
    Processors = 4,
    /// Changing to its working directory.
    Directory = 5,
    /// Placing its descriptors.
    Descriptors = 6,
    /// Executing the program.
    Execute = 7,
}

/// The reason why a process did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("cannot {}: {}", .step.attempt(), io::Error::from_raw_os_error(*.errno))]
pub struct StartError {
    /// The step that failed.
    pub step: StartStep,
    /// The kernel's error.
    pub errno: i32,
}

/// A started process. Dropping this does not wait for it.
#[derive(Debug)]
pub struct Child {
    /// Its PID, which is also the number of its process group.
    pub pid: u32,
    /// The process itself: unlike a reused PID, this never means another one.
    pub pidfd: OwnedFd,
}

/// Starts processes, each in a process group of its own. Signals that this process handles have their default action
/// there. Signals that its parent had ignored or blocked are so there too ([`crate::start_signals`]).
///
/// Each process is killed when the *thread* that started it ends, so starts belong in a thread that lives as long as
/// the processes may.
#[derive(Debug)]
pub struct Starter {
    parent: libc::pid_t,
    stack: Stack,
    /// Signals that the child must reset before it can unblock them.
    handled: Vec<c_int>,
}

/// A change of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It ended, with this raw wait status. It stays a zombie until [`settle`] is called.
    Ended(i32),
    /// It was stopped.
    Stopped,
    /// It continues.
    Continued,
}

/// The answer to a look at all children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildLook {
    /// This child changed; the answer repeats until it is settled.
    Changed(u32, Change),
    /// There are children, and nothing new about them.
    Quiet,
    /// There is no child.
    Childless,
}

/// Looks for a child that changed, without waiting and without reaping it. Its PID and its process group stay valid
/// until [`settle`].
///
/// # Errors
/// The kernel's error.
pub fn look() -> io::Result<ChildLook> {
    let changes = libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED;
    match wait_id(libc::P_ALL, 0, changes | libc::WNOWAIT | libc::WNOHANG) {
        Ok(None) => Ok(ChildLook::Quiet),
        Ok(Some((pid, change))) => Ok(ChildLook::Changed(pid, change)),
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(ChildLook::Childless),
        Err(error) => Err(error),
    }
}

/// The raw wait status of a child, if it has ended; it is not reaped.
///
/// # Errors
/// The kernel's error: the process is no child of this one.
pub fn end_of(pid: u32) -> io::Result<Option<i32>> {
    let looked = wait_id(libc::P_PID, pid, libc::WEXITED | libc::WNOWAIT | libc::WNOHANG)?;
    Ok(match looked {
        Some((_, Change::Ended(status))) => Some(status),
        _ => None,
    })
}

/// Settles a change: an ended child is reaped.
///
/// # Errors
/// The kernel's error.
pub fn settle(pid: u32, change: Change) -> io::Result<()> {
    let kind = match change {
        Change::Ended(_) => libc::WEXITED,
        Change::Stopped => libc::WSTOPPED,
        Change::Continued => libc::WCONTINUED,
    };
    wait_id(libc::P_PID, pid, kind | libc::WNOHANG).map(|_| ())
}

/// Waits until a child has ended, reaps it, and returns its raw wait status.
///
/// # Errors
/// The kernel's error: the process is no child of this one.
pub fn wait_for_end(pid: u32) -> io::Result<i32> {
    loop {
        match wait_id(libc::P_PID, pid, libc::WEXITED) {
            Ok(Some((_, Change::Ended(status)))) => return Ok(status),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

/// Waits until the process of this descriptor has ended, which need be no child; returns whether it has within this time.
pub fn has_ended_within(process: BorrowedFd<'_>, time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        let rest = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], rest.as_ref()) {
            Err(Errno::INTR) => {}
            outcome => return matches!(outcome, Ok(1)),
        }
    }
}

/// Sends a signal to a process and to the others in the process group that it leads.
///
/// The caller knows that `pid` is a child that is not reaped yet, so the number is not reused.
pub fn signal_group(pid: u32, signal: i32) {
    let Ok(pid) = libc::pid_t::try_from(pid) else { return };
    if pid <= 1 {
        return; // 0 and 1 negated mean other things than a group
    }
    // SAFETY: kill reads no memory.
    let missed = unsafe { libc::kill(-pid, signal) } != 0;
    if missed {
        signal_process(pid.cast_unsigned(), signal); // it left its group
    }
}

/// Sends a signal to a process that the caller knows to be a child not yet reaped.
pub fn signal_process(pid: u32, signal: i32) {
    match libc::pid_t::try_from(pid) {
        // SAFETY: kill reads no memory.
        Ok(pid) if pid > 1 => drop(unsafe { libc::kill(pid, signal) }),
        _ => {}
    }
}

/// The process group of a process; `None` if there is no such process.
pub fn group_of(pid: u32) -> Option<u32> {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed())?;
    let group = rustix::process::getpgid(Some(pid)).ok()?;
    Some(group.as_raw_nonzero().get().cast_unsigned())
}

impl StartStep {
    /// The attempted action, in words that follow "cannot".
    pub const fn attempt(self) -> &'static str {
        match self {
            Self::Create => "create a process",
            Self::Parent => "start: the parent has ended",
            Self::Group => "make a process group",
            Self::Processors => "bind to the chosen processors",
            Self::Directory => "enter the working directory",
            Self::Descriptors => "set up standard input and output",
            Self::Execute => "execute the program",
        }
    }

    /// The step with this number.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Create,
            2 => Self::Parent,
            3 => Self::Group,
            4 => Self::Processors,
            5 => Self::Directory,
            6 => Self::Descriptors,
            7 => Self::Execute,
            _ => return None,
        })
    }
}

impl Starter {
    /// Prepares starts by this thread.
    ///
    /// # Errors
    /// If there is no memory for the stack that a child needs before its program begins.
    pub fn new() -> io::Result<Self> {
        // SAFETY: getpid has no preconditions.
        let parent = unsafe { libc::getpid() };
        Ok(Self { parent, stack: Stack::new()?, handled: handled_signals() })
    }

    /// Starts a process. `inherited` keeps its number in the child and survives into the program, whatever its
    /// close-on-exec flag is here.
    ///
    /// # Errors
    /// The step that failed, with the kernel's error. No process is left in that case.
    pub fn start(
        &mut self,
        image: &Image,
        streams: &Streams,
        inherited: Option<BorrowedFd<'_>>,
    ) -> Result<Child, StartError> {
        let errno_of = |error: io::Error| error.raw_os_error().unwrap_or(libc::EINVAL);
        let unprepared = |step: StartStep| move |errno: i32| StartError { step, errno };
        let mut moved = Vec::new();
        let mut standard = [0; 3];
        for (place, stream) in standard.iter_mut().zip(streams) {
            *place = above_standard(stream, &mut moved)
                .map_err(|error| unprepared(StartStep::Descriptors)(errno_of(error)))?;
        }
        let arguments = pointers(&image.arguments);
        let environment = pointers(&image.environment);
        let plan = Plan {
            parent: self.parent,
            program: image.program.as_ptr(),
            arguments: arguments.as_ptr(),
            environment: environment.as_ptr(),
            directory: image.directory.as_ptr(),
            cpus: image.cpus.as_ref().map(CpuSet::words),
            standard,
            inherited: inherited.map(|descriptor| descriptor.as_raw_fd()),
            handled: &self.handled,
            signals: start_signals::of_programs(),
            failed_step: AtomicU8::new(0),
            errno: AtomicI32::new(0),
        };
        let child = self.create(&plan).map_err(|e| unprepared(StartStep::Create)(errno_of(e)))?;
        match StartStep::from_number(plan.failed_step.load(Ordering::Acquire)) {
            None => Ok(child),
            Some(step) => {
                // The child has ended, so an error here can only mean that another thread reaped it.
                let _ = wait_for_end(child.pid);
                Err(StartError { step, errno: plan.errno.load(Ordering::Acquire) })
            }
        }
    }

    /// Runs [`child_main`] in a new process and returns when that has executed a program or ended.
    fn create(&self, plan: &Plan<'_>) -> io::Result<Child> {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
        let mut pidfd: c_int = -1;
        let mask = block_all_signals()?;
        // SAFETY: the child runs `child_main` on a stack of its own that nobody else uses (`&mut`
        // in `start`, one child at a time). It shares this memory, but the parent is suspended
        // until the child executes a program or ends, so `plan` and what it points to outlive its
        // use; no signal handler can run in the child, as all signals are blocked.
        let pid = unsafe {
            libc::clone(
                child_main,
                self.stack.top(),
                flags,
                ptr::from_ref(plan).cast_mut().cast(),
                &raw mut pidfd,
            )
        };
        let outcome = if pid > 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        restore_signals(&mask);
        outcome?;
        // SAFETY: CLONE_PIDFD stored a new descriptor that has no other owner.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        Ok(Child { pid: pid.cast_unsigned(), pidfd })
    }
}

/// Blocks every signal for this thread and returns the previous mask.
///
/// # Errors
/// The kernel's error.
pub fn block_all_signals() -> io::Result<libc::sigset_t> {
    // SAFETY: a zeroed sigset_t is a valid one; both calls only write to these locals.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        match libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) {
            0 => Ok(before),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Gives this thread a signal mask that [`block_all_signals`] returned.
pub fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: the mask is initialised; no old mask is asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}

/// The signals that have a handler here, and SIGPIPE, which Rust's runtime ignores and programs do not expect to be
/// ignored. Other ignored signals stay ignored, as under `nohup`.
pub fn handled_signals() -> Vec<c_int> {
    let has_handler = |&signal: &c_int| {
        // SAFETY: a zeroed sigaction is a valid one, and the call only writes to it.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut action) == 0
                && action.sa_sigaction != libc::SIG_DFL
                && (action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE)
        }
    };
    (1..=libc::SIGRTMAX()).filter(has_handler).collect()
}

/// Gives these signals their default action.
pub fn reset_signals(signals: &[c_int]) {
    for &signal in signals {
        // SAFETY: SIG_DFL needs no handler; the call is async-signal-safe.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Ignores these signals from now on, as the children of this process will.
pub fn ignore_signals(signals: &[c_int]) {
    for &signal in signals {
        // SAFETY: SIG_IGN needs no handler. A signal that cannot be ignored is refused.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// The data that a child needs before its program begins. It must not allocate, so everything is prepared.
struct Plan<'a> {
    parent: libc::pid_t,
    program: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    directory: *const c_char,
    cpus: Option<&'a [u64]>,
    standard: [c_int; 3],
    inherited: Option<c_int>,
    handled: &'a [c_int],
    signals: StartSignals,
    failed_step: AtomicU8,
    errno: AtomicI32,
}

/// The main function of the child until its program begins.
extern "C" fn child_main(plan: *mut c_void) -> c_int {
    // SAFETY: `Starter::create` passes a plan that outlives this function.
    let plan = unsafe { &*plan.cast::<Plan<'_>>() };
    let step = become_program(plan);
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    plan.errno.store(errno, Ordering::Release);
    plan.failed_step.store(step as u8, Ordering::Release);
    // SAFETY: ends this process at once, running nothing of the parent's.
    unsafe { libc::_exit(127) }
}

/// Executes the program, or returns the step that failed, with `errno` set by it.
fn become_program(plan: &Plan<'_>) -> StartStep {
    // SAFETY: only async-signal-safe calls, on memory of the plan: the strings end with zero, the
    // arrays with a null pointer, the mask has the length given.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 || libc::getppid() != plan.parent
        {
            return StartStep::Parent;
        }
        if libc::setpgid(0, 0) != 0 {
            return StartStep::Group;
        }
        if let Some(words) = plan.cpus
            && libc::sched_setaffinity(0, size_of_val(words), words.as_ptr().cast()) != 0
        {
            return StartStep::Processors;
        }
        if libc::chdir(plan.directory) != 0 {
            return StartStep::Directory;
        }
        for (number, &descriptor) in (0..).zip(&plan.standard) {
            if libc::dup2(descriptor, number) < 0 {
                return StartStep::Descriptors;
            }
        }
        if let Some(descriptor) = plan.inherited
            && libc::fcntl(descriptor, libc::F_SETFD, 0) != 0
        {
            return StartStep::Descriptors;
        }
        reset_signals(plan.handled);
        if plan.signals.ignores_children {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const plan.signals.mask, ptr::null_mut());
        libc::execve(plan.program, plan.arguments, plan.environment);
        StartStep::Execute
    }
}

/// A number above the three standard ones for this descriptor's open file, so that placing a standard one cannot
/// overwrite another before it was placed.
fn above_standard(descriptor: &OwnedFd, moved: &mut Vec<OwnedFd>) -> io::Result<c_int> {
    if descriptor.as_raw_fd() > 2 {
        return Ok(descriptor.as_raw_fd());
    }
    let copy = rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?;
    let number = copy.as_raw_fd();
    moved.push(copy);
    Ok(number)
}

/// The strings in the form that `execve` needs.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// Calls `waitid` and returns its answer in the form of a raw wait status.
fn wait_id(kind: libc::idtype_t, id: u32, options: c_int) -> io::Result<Option<(u32, Change)>> {
    // SAFETY: a zeroed siginfo_t is a valid one; the kernel fills it for SIGCHLD or leaves it.
    let (answer, info) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        (libc::waitid(kind, id, &raw mut info, options), info)
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `waitid` succeeded: these fields are set, or zero if nothing changed.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    let change = match info.si_code {
        _ if pid == 0 => return Ok(None),
        libc::CLD_EXITED => Change::Ended((status & 0xff) << 8),
        libc::CLD_DUMPED => Change::Ended(status | 0x80),
        libc::CLD_KILLED => Change::Ended(status),
        libc::CLD_CONTINUED => Change::Continued,
        _ => Change::Stopped,
    };
    Ok(Some((pid.cast_unsigned(), change)))
}

/// The stack of a child before its program begins, with a guard page below it.
#[derive(Debug)]
struct Stack {
    bottom: *mut c_void,
}

// SAFETY: a mapping of this process belongs to no thread; it is used through `&mut Starter`.
unsafe impl Send for Stack {}

impl Stack {
    const BYTES: usize = 128 * 1024;
    /// The size of the guard: at least a page of any size that Linux uses on these machines.
    const GUARD_BYTES: usize = 64 * 1024;

    fn new() -> io::Result<Self> {
        use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: this is a new private mapping at an address that the kernel chooses; its lowest part is protected
        // before anything has used it.
        unsafe {
            let bottom = mmap_anonymous(
                ptr::null_mut(),
                Self::BYTES + Self::GUARD_BYTES,
                access,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?;
            let stack = Self { bottom };
            mprotect(bottom, Self::GUARD_BYTES, MprotectFlags::empty())?;
            Ok(stack)
        }
    }

    /// The beginning of the stack, which grows down; it is aligned, as both sizes are multiples of a page.
    fn top(&self) -> *mut c_void {
        // SAFETY: this is one past the end of the mapping.
        unsafe { self.bottom.byte_add(Self::BYTES + Self::GUARD_BYTES) }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: this is exactly the mapping that `new` made; no child runs on it (see `create`). An error would only
        // leave the memory mapped.
        let _ = unsafe { rustix::mm::munmap(self.bottom, Self::BYTES + Self::GUARD_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    /// An image of `sh -c script` with its output in a pipe.
    fn shell(script: &str) -> (Image, Streams, File) {
        let (reader, writer) = std::io::pipe().unwrap();
        let image = Image {
            program: c"/bin/sh".into(),
            arguments: vec![c"sh".into(), c"-c".into(), CString::new(script).unwrap()],
            environment: vec![c"WORD=spoken".into()],
            directory: c"/".into(),
            cpus: None,
        };
        let stdin = File::open("/dev/null").unwrap().into();
        let streams = [stdin, writer.into(), std::io::stderr().try_clone_to_owned()];
        (image, streams, File::from(OwnedFd::from(reader)))
    }

    trait Copied {
        fn try_clone_to_owned(&self) -> OwnedFd;
    }

    impl Copied for std::io::Stderr {
        fn try_clone_to_owned(&self) -> OwnedFd {
            use std::os::fd::AsFd;
            self.as_fd().try_clone_to_owned().unwrap()
        }
    }

    /// Runs a script to its end; returns its raw status and its output.
    fn run(script: &str, change: impl FnOnce(&mut Image)) -> (i32, String) {
        let (mut image, streams, mut reader) = shell(script);
        change(&mut image);
        let child = Starter::new().unwrap().start(&image, &streams, None).unwrap();
        drop(streams);
        let mut output = String::new();
        reader.read_to_string(&mut output).unwrap();
        (wait_for_end(child.pid).unwrap(), output)
    }

    #[test]
    fn exit_codes_and_signals_come_back() {
        assert_eq!(run("exit 7", |_| ()).0, 7 << 8);
        assert_eq!(run("kill -9 $$", |_| ()).0, 9);
    }

    #[test]
    fn the_program_sees_what_it_was_given() {
        let (status, output) =
            run("echo $WORD; pwd; ps -o pgid= -p $$ >/dev/null; echo $$", |image| {
                image.directory = c"/usr".into();
            });
        assert_eq!(status, 0, "{output}");
        assert!(output.starts_with("spoken\n/usr\n"), "{output}");
    }

    #[test]
    fn signals_are_as_in_a_fresh_process() {
        let (_, output) = run("grep -E '^Sig(Blk|Ign)' /proc/self/status", |_| ());
        for line in output.lines() {
            let mask = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
            assert_eq!(mask & (1 << (libc::SIGPIPE - 1)), 0, "{line}");
            assert!(!line.starts_with("SigBlk") || mask == 0, "{line}");
        }
        assert_eq!(output.lines().count(), 2, "{output}");
    }

    #[test]
    fn it_leads_a_group_of_its_own() {
        let (_, output) = run("echo $$; cut -d' ' -f5 /proc/$$/stat", |_| ());
        let mut lines = output.lines();
        assert_eq!(lines.next(), lines.next(), "{output}");
    }

    #[test]
    fn processors_are_bound() {
        let first = CpuSet::of_this_thread().unwrap().iter().next().unwrap();
        let list = "grep Cpus_allowed_list /proc/self/status | cut -f2";
        let (_, output) = run(list, |image| image.cpus = Some([first].into_iter().collect()));
        assert_eq!(output.trim(), first.to_string());
    }

    #[test]
    fn a_failed_step_is_named() {
        let start = |change: fn(&mut Image)| {
            let (mut image, streams, _reader) = shell("true");
            change(&mut image);
            Starter::new().unwrap().start(&image, &streams, None).unwrap_err()
        };
        let error = start(|image| image.program = c"/nowhere/program".into());
        assert_eq!(error, StartError { step: StartStep::Execute, errno: libc::ENOENT });
        assert!(error.to_string().starts_with("cannot execute the program: No such file"));
        let error = start(|image| image.program = c"/etc/passwd".into());
        assert_eq!(error, StartError { step: StartStep::Execute, errno: libc::EACCES });
        let error = start(|image| image.directory = c"/nowhere".into());
        assert_eq!(error, StartError { step: StartStep::Directory, errno: libc::ENOENT });
        let error = start(|image| image.cpus = Some([60_000].into_iter().collect()));
        assert_eq!(error, StartError { step: StartStep::Processors, errno: libc::EINVAL });
    }

    #[test]
    fn only_the_inherited_descriptor_is_passed_on() {
        let (passed, _writer) = std::io::pipe().unwrap();
        let (kept, _writer) = std::io::pipe().unwrap();
        let (passed, kept) = (OwnedFd::from(passed), OwnedFd::from(kept));
        let script = format!(
            "test -e /proc/self/fd/{} && echo passed; test -e /proc/self/fd/{} && echo kept; true",
            passed.as_raw_fd(),
            kept.as_raw_fd()
        );
        let (image, streams, mut reader) = shell(&script);
        let mut starter = Starter::new().unwrap();
        let passed = Some(std::os::fd::AsFd::as_fd(&passed));
        let child = starter.start(&image, &streams, passed).unwrap();
        drop(streams);
        let mut output = String::new();
        reader.read_to_string(&mut output).unwrap();
        assert_eq!(wait_for_end(child.pid).unwrap(), 0);
        assert_eq!(output, "passed\n");
    }
}
