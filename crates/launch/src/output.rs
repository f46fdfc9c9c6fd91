//! Collects the output of the processes: lines of different processes never mix.
//!
//! Each process writes into pipes (or terminals, where the launcher's stream is one). Their contents are cut into
//! lines, which go one by one to the launcher's own standard output and standard error. If both of those are the same
//! file or terminal, a process gets one pipe for both, which keeps the order in which it wrote. A stream of a process
//! can have a file of its own instead.
//!
//! Memory is bounded: a sink that accepts nothing stops the reading, which fills the pipes, which stops the processes.
//! A line longer than [`LINE_BYTES_MAX`] is passed on in parts. A part of a line (a prompt, a progress bar) is passed
//! on before its end if it is held for [`PART_HELD_MAX`] and a person may be waiting for it: on a terminal, or when the
//! job has a single process. If another process writes while such a line is open, the line is ended first.
//!
//! If the reader of a sink has gone, the pipes of its sources are closed: their processes notice it as they would
//! without the launcher. If a sink cannot accept data, as on a full disk, the data are lost. The launcher says so once
//! and continues, since a computation is worth more than its log.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use landeck_host::say::{complain, reader_is_gone};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;

/// The longest line that is passed on whole.
pub const LINE_BYTES_MAX: usize = 64 * 1024;
/// How long a part of a line is held before it is shown.
pub const PART_HELD_MAX: Duration = Duration::from_millis(50);
/// The number of pending bytes above which a sink makes its sources wait.
const PENDING_BYTES_MAX: usize = 256 * 1024;
/// The number of bytes that a ready pipe accepts without blocking (`PIPE_BUF`).
const WRITE_BYTES: usize = 4096;
/// The number of lines of each process that are kept for a report, and the length of each.
const RECENT_LINES: usize = 5;
const RECENT_LINE_BYTES: usize = 200;

/// The tag before each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineTag {
    /// Nothing.
    #[default]
    None,
    /// The rank.
    Rank,
    /// The rank and the host.
    Host,
}

/// One of the two streams of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// All streams of all processes, on their way to the launcher's own two.
#[derive(Debug)]
pub struct JobOutput {
    sources: Vec<Source>,
    /// The sinks, the launcher's own first: one or two of those, as `is_merged` says.
    sinks: Vec<Sink>,
    is_merged: bool,
    /// The sinks that hold pending output.
    pending: BTreeSet<usize>,
    /// Whether some output is lost.
    has_lost: bool,
    /// The last lines of each process that were not written to the launcher's standard error.
    recent: Vec<VecDeque<Vec<u8>>>,
    /// The number of sources that hold a part of a line.
    holding: usize,
    /// Whether the launcher's own words go to the process that was started, which waits for a detached job to begin.
    has_starter: bool,
}

/// A stream of a process, whose bytes come in events of its host's part.
#[derive(Debug)]
struct Source {
    process: usize,
    sink: usize,
    tag: String,
    /// The held part of a line whose end has not come yet.
    part: Vec<u8>,
    held_since: Instant,
    /// The current line as far as it is kept for a report, held or not.
    line: Vec<u8>,
}

/// One of the launcher's own streams, or a file for a stream of one process.
#[derive(Debug)]
struct Sink {
    /// The name of the sink in messages.
    name: String,
    target: OwnedFd,
    kind: SinkKind,
    /// Whether several processes write to it, so that parts of lines are held.
    is_shared: bool,
    pending: VecDeque<u8>,
    /// The source whose line was passed on without its end.
    open_line: Option<usize>,
    /// Whether nobody reads it any more.
    broken: bool,
}

/// How a sink accepts data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SinkKind {
    /// It accepts everything at once.
    File,
    /// It may have to be waited for.
    Pipe,
    /// It may have to be waited for, and a person may be looking.
    Terminal,
}

impl Stream {
    /// Both, by their numbers.
    pub(crate) const ALL: [Stream; 2] = [Stream::Output, Stream::Error];
}

impl JobOutput {
    /// Collects the streams of `processes` processes into `stdout` and `stderr`.
    pub fn new(processes: usize, stdout: OwnedFd, stderr: OwnedFd) -> JobOutput {
        let is_merged = same_file(stdout.as_fd(), stderr.as_fd());
        let is_shared = processes > 1;
        let mut sinks = vec![Sink::new("standard output".to_owned(), stdout, is_shared)];
        if !is_merged {
            sinks.push(Sink::new("standard error".to_owned(), stderr, is_shared));
        }
        JobOutput {
            sources: Vec::new(),
            sinks,
            is_merged,
            pending: BTreeSet::new(),
            has_lost: false,
            recent: vec![VecDeque::new(); processes],
            holding: 0,
            has_starter: false,
        }
    }

    /// Collects the streams of a detached job in a file. Until it has begun, the launcher says everything to the process
    /// that was started.
    pub(crate) fn of_detached(processes: usize, file: OwnedFd, same: OwnedFd) -> JobOutput {
        JobOutput { has_starter: true, ..JobOutput::new(processes, file, same) }
    }

    /// From now on the launcher's words go where the output does.
    pub(crate) const fn leave_starter(&mut self) {
        self.has_starter = false;
    }

    /// Whether both streams of a process go to the same place and need only one pipe.
    pub fn is_merged(&self) -> bool {
        self.is_merged
    }

    /// The number of processes whose output is collected.
    pub(crate) fn processes(&self) -> usize {
        self.recent.len()
    }

    /// The launcher's own streams in which a person may see the output, by the numbers of the streams.
    pub(crate) fn terminals(&self) -> [Option<OwnedFd>; 2] {
        [Stream::Output, Stream::Error].map(|stream| {
            let sink = &self.sinks[self.sink_of(stream)];
            let is_terminal = sink.kind == SinkKind::Terminal;
            // Without a copy of it the processes write into pipes.
            is_terminal.then(|| sink.target.try_clone().ok()).flatten()
        })
    }

    /// Adds a stream of a process, and puts `tag` before each of its lines. Returns the source's number.
    pub fn add(&mut self, process: usize, stream: Stream, tag: String) -> usize {
        self.add_source(process, self.sink_of(stream), tag)
    }

    /// Adds a stream of a process that goes into a file of its own, called `name` in messages. Returns the source's
    /// number.
    pub fn add_with_file(&mut self, process: usize, file: OwnedFd, name: String) -> usize {
        self.sinks.push(Sink::new(name, file, false));
        self.add_source(process, self.sinks.len() - 1, String::new())
    }

    fn add_source(&mut self, process: usize, sink: usize, tag: String) -> usize {
        let (part, line, held_since) = (Vec::new(), Vec::new(), Instant::now());
        self.sources.push(Source { process, sink, tag, part, held_since, line });
        self.sources.len() - 1
    }

    /// Makes room for a process that is started while the job runs. Lines of several processes may meet from now on.
    pub(crate) fn add_process(&mut self, process: usize) {
        if self.recent.len() <= process {
            self.recent.resize(process + 1, VecDeque::new());
        }
        self.recent[process].clear();
        let own = if self.is_merged { 1 } else { 2 };
        self.sinks[..own].iter_mut().for_each(|sink| sink.is_shared = true);
    }

    /// Gives a source that has ended to the next process with its number.
    pub(crate) fn renew(&mut self, source: usize, tag: String) {
        self.sources[source].tag = tag;
        self.sources[source].line.clear();
    }

    /// Takes bytes that a source has written: whole lines are passed on, the rest is held.
    pub fn feed(&mut self, source: usize, bytes: &[u8], now: Instant) {
        if bytes.is_empty() || self.sinks[self.sources[source].sink].broken {
            return;
        }
        let cut = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let (lines, part) = bytes.split_at(cut);
        self.remember(source, lines, part);
        if !lines.is_empty() {
            let begun = self.take_part(source);
            self.pass_on(source, &begun, lines);
        }
        if !part.is_empty() {
            self.hold(source, part, now);
        }
    }

    /// Ends a source: the rest of its last line is passed on.
    pub fn finish(&mut self, source: usize) {
        if !self.sources[source].part.is_empty() {
            self.pass_part_on(source);
        }
    }

    /// Discards output that nobody reads.
    pub fn give_up(&mut self) {
        for sink in 0..self.sinks.len() {
            self.sinks[sink].give_up();
            self.drop_parts_of(sink);
        }
        self.pending.clear();
    }

    /// Whether more of a stream is to come: its sinks have room.
    pub fn has_room(&self, stream: Stream) -> bool {
        let own = self.sink_of(stream);
        let others = self.sinks.iter().skip(if self.is_merged { 1 } else { 2 });
        self.sinks[own].has_room() && others.into_iter().all(Sink::has_room)
    }

    /// The descriptor that a sink writes to.
    pub fn target(&self, sink: usize) -> BorrowedFd<'_> {
        self.sinks[sink].target.as_fd()
    }

    /// The sinks that hold pending output.
    pub fn pending(&self) -> &BTreeSet<usize> {
        &self.pending
    }

    /// Whether output of the processes or the launcher is lost for another reason than that nobody reads it.
    pub fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// Whether nobody reads the launcher's stream any more.
    pub fn is_broken(&self, stream: Stream) -> bool {
        self.sinks[self.sink_of(stream)].broken
    }

    /// When a held part of a line must be shown; `None` if there is no such part.
    pub fn part_due(&self) -> Option<Instant> {
        if self.holding == 0 {
            return None;
        }
        let due = (0..self.sources.len()).filter(|&source| self.may_show_part(source));
        due.map(|source| self.sources[source].held_since + PART_HELD_MAX).min()
    }

    /// Shows the parts of lines that were held long enough.
    pub fn show_parts(&mut self, now: Instant) {
        if self.holding == 0 {
            return;
        }
        for source in 0..self.sources.len() {
            if self.may_show_part(source) && now >= self.sources[source].held_since + PART_HELD_MAX
            {
                self.pass_part_on(source);
            }
        }
    }

    /// Writes as much as the sinks accept without blocking.
    pub fn write(&mut self) {
        for sink in std::mem::take(&mut self.pending) {
            match self.sinks[sink].write() {
                Ok(()) => {}
                Err(WriteError::Unread) => self.drop_parts_of(sink),
                Err(WriteError::Lost(errno)) => self.say_lost(sink, errno),
            }
            self.note(sink);
        }
    }

    /// Reports a loss; only once, since a full disk accepts nothing for long.
    fn say_lost(&mut self, sink: usize, errno: Errno) {
        if std::mem::replace(&mut self.has_lost, true) {
            return;
        }
        let (name, error) = (&self.sinks[sink].name, io::Error::from(errno));
        self.say(&format!(
            "landeck: cannot write to {name}: {error}. Lines are lost until it accepts more: make \
             room there. The processes go on; the exit code will not be 0."
        ));
    }

    /// Records whether a sink holds pending output now.
    fn note(&mut self, sink: usize) {
        match self.sinks[sink].pending.is_empty() {
            true => self.pending.remove(&sink),
            false => self.pending.insert(sink),
        };
    }

    /// Writes a text of the launcher itself to its standard error, on a line of its own.
    pub fn say(&mut self, text: &str) {
        if self.has_starter {
            return complain(text);
        }
        let number = self.sink_of(Stream::Error);
        let sink = &mut self.sinks[number];
        if sink.broken {
            return;
        }
        sink.end_open_line(None);
        sink.pending.extend(text.as_bytes());
        if !text.ends_with('\n') {
            sink.pending.push_back(b'\n');
        }
        self.note(number);
    }

    /// The last lines of a process that did not go to standard error, oldest first.
    pub fn recent_lines(&self, process: usize) -> Vec<String> {
        let whole = self.recent[process].iter().map(Vec::as_slice);
        let own = self.sources.iter().filter(|source| source.process == process);
        let parts = own.map(|source| source.line.as_slice()).filter(|line| !line.is_empty());
        let lines: Vec<&[u8]> = whole.chain(parts).collect();
        let first = lines.len().saturating_sub(RECENT_LINES);
        lines[first..].iter().map(|line| readable(line)).collect()
    }

    fn sink_of(&self, stream: Stream) -> usize {
        match stream {
            Stream::Output => 0,
            Stream::Error => usize::from(!self.is_merged),
        }
    }

    fn hold(&mut self, source: usize, part: &[u8], now: Instant) {
        let held = &mut self.sources[source];
        if held.part.is_empty() {
            held.held_since = now;
            self.holding += 1;
        }
        held.part.extend_from_slice(part);
        let sink = &self.sinks[held.sink];
        let open = sink.open_line;
        let goes_on = open == Some(source) || (!sink.is_shared && open.is_none());
        if goes_on || held.part.len() >= LINE_BYTES_MAX {
            self.pass_part_on(source);
        }
    }

    fn take_part(&mut self, source: usize) -> Vec<u8> {
        let part = std::mem::take(&mut self.sources[source].part);
        self.holding -= usize::from(!part.is_empty());
        part
    }

    /// Passes on a part of a line; the line stays open.
    fn pass_part_on(&mut self, source: usize) {
        let part = self.take_part(source);
        self.pass_on(source, &[], &part);
    }

    fn pass_on(&mut self, source: usize, begun: &[u8], bytes: &[u8]) {
        let Source { sink: number, tag, .. } = &self.sources[source];
        let number = *number;
        let sink = &mut self.sinks[number];
        if sink.broken {
            return;
        }
        sink.end_open_line(Some(source));
        let mut at_start = sink.open_line.is_none();
        if tag.is_empty() {
            sink.pending.extend(begun);
            sink.pending.extend(bytes);
        } else {
            let mut begun = begun;
            for line in bytes.split_inclusive(|&byte| byte == b'\n') {
                if at_start {
                    sink.pending.extend(tag.as_bytes());
                }
                sink.pending.extend(begun);
                sink.pending.extend(line);
                begun = &[];
                at_start = true;
            }
        }
        sink.open_line = (bytes.last() != Some(&b'\n')).then_some(source);
        self.note(number);
    }

    /// Keeps the last output of a process for a report. Lines that went to standard error are not kept: messages go
    /// there too, and need not repeat them.
    fn remember(&mut self, source: usize, lines: &[u8], part: &[u8]) {
        if self.sources[source].sink == self.sink_of(Stream::Error) {
            return;
        }
        let Source { process, line, .. } = &mut self.sources[source];
        if let Some(bytes) = lines.strip_suffix(
            b"
",
        ) {
            let recent = &mut self.recent[*process];
            let mut last: Vec<&[u8]> =
                bytes.rsplitn(RECENT_LINES + 1, |&byte| byte == b'\n').collect();
            if last.len() <= RECENT_LINES {
                extend_line(line, last.pop().unwrap_or_default());
                push_recent(recent, std::mem::take(line));
            }
            line.clear();
            for shown in last.into_iter().take(RECENT_LINES).rev() {
                let mut whole = Vec::new();
                extend_line(&mut whole, shown);
                push_recent(recent, whole);
            }
        }
        extend_line(line, part);
    }

    fn may_show_part(&self, source: usize) -> bool {
        let source_of = &self.sources[source];
        let sink = &self.sinks[source_of.sink];
        let is_free = sink.open_line.is_none_or(|open| open == source);
        let is_watched = sink.kind == SinkKind::Terminal || !sink.is_shared;
        !source_of.part.is_empty() && is_free && is_watched
    }

    /// Drops the held parts of lines for a sink that nobody reads.
    fn drop_parts_of(&mut self, sink: usize) {
        for source in 0..self.sources.len() {
            if self.sources[source].sink == sink {
                self.take_part(source);
            }
        }
    }
}

impl LineTag {
    /// The tag before the lines of a process on this host. Numbers behind the ranks are those of added processes.
    pub(crate) fn text(self, rank: u32, processes: u32, host: &str) -> String {
        let width = digits(processes - 1);
        let name = match rank.checked_sub(processes) {
            None => format!("{rank:>width$}"),
            Some(number) => format!("started {number}"),
        };
        match self {
            LineTag::None => String::new(),
            LineTag::Rank => format!("[{name}] "),
            LineTag::Host => format!("[{name}@{host}] "),
        }
    }
}

/// The number of decimal digits of a number.
pub(crate) fn digits(number: u32) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// The reason why a sink has dropped its pending output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteError {
    /// Nobody reads it, which is no error.
    Unread,
    /// It refused the data.
    Lost(Errno),
}

impl Sink {
    fn new(name: String, target: OwnedFd, is_shared: bool) -> Sink {
        let kind = match rustix::fs::fstat(&target) {
            _ if rustix::termios::isatty(&target) => SinkKind::Terminal,
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                SinkKind::File
            }
            _ => SinkKind::Pipe,
        };
        let pending = VecDeque::new();
        Sink { name, target, kind, is_shared, pending, open_line: None, broken: false }
    }

    fn give_up(&mut self) {
        self.broken = true;
        self.pending = VecDeque::new();
    }

    fn has_room(&self) -> bool {
        self.pending.len() < PENDING_BYTES_MAX
    }

    /// Ends a line that another source than `writer` has left open.
    fn end_open_line(&mut self, writer: Option<usize>) {
        if self.open_line.is_some() && self.open_line != writer {
            self.pending.push_back(b'\n');
            self.open_line = None;
        }
    }

    fn write(&mut self) -> Result<(), WriteError> {
        while !self.broken && !self.pending.is_empty() {
            if self.kind != SinkKind::File && !is_ready(self.target.as_fd(), PollFlags::OUT) {
                return Ok(());
            }
            let (first, _) = self.pending.as_slices();
            let most = if self.kind == SinkKind::File { first.len() } else { WRITE_BYTES };
            match rustix::io::write(&self.target, &first[..first.len().min(most)]) {
                Ok(count) => drop(self.pending.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(errno) => return Err(self.drop_pending(errno)),
            }
        }
        Ok(())
    }

    /// Drops the pending output. If nobody reads the sink, this is final; a closed terminal answers with an
    /// input/output error.
    fn drop_pending(&mut self, errno: Errno) -> WriteError {
        let is_hung_up = self.kind == SinkKind::Terminal && errno == Errno::IO;
        if is_hung_up || reader_is_gone(&errno.into()) {
            self.give_up();
            return WriteError::Unread;
        }
        self.pending = VecDeque::new();
        WriteError::Lost(errno)
    }
}

fn push_recent(recent: &mut VecDeque<Vec<u8>>, line: Vec<u8>) {
    if line.is_empty() {
        return;
    }
    if recent.len() == RECENT_LINES {
        recent.pop_front();
    }
    recent.push_back(line);
}

/// Adds text to a kept line as a terminal would show it: a carriage return begins it anew.
fn extend_line(line: &mut Vec<u8>, bytes: &[u8]) {
    let shown = bytes.rsplit(|&byte| byte == b'\r').find(|part| !part.is_empty());
    let shown = shown.unwrap_or_default();
    if shown.len() < bytes.len() {
        line.clear();
    }
    line.extend_from_slice(&shown[..shown.len().min(RECENT_LINE_BYTES - line.len())]);
}

/// A line in a form fit for a report: no control characters, not too long.
fn readable(line: &[u8]) -> String {
    let line = &line[..line.len().min(RECENT_LINE_BYTES)];
    let text = String::from_utf8_lossy(line);
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn is_ready(descriptor: BorrowedFd<'_>, what: PollFlags) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut [PollFd::new(&descriptor, what)], Some(&at_once)), Ok(1))
}

fn same_file(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
    match (rustix::fs::fstat(a), rustix::fs::fstat(b)) {
        (Ok(a), Ok(b)) => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
        _ => false,
    }
}

/// A pipe from a process to the launcher: the end to read and the end for the process.
///
/// # Errors
/// The kernel's error, usually that there are too many descriptors.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    /// An output into pipes, whose other ends the test reads.
    struct Bench {
        output: JobOutput,
        stdout: File,
        stderr: File,
        now: Instant,
    }

    impl Bench {
        fn new(processes: usize) -> Bench {
            let (stdout, out) = pipe().unwrap();
            let (stderr, err) = pipe().unwrap();
            let output = JobOutput::new(processes, out, err);
            Bench { output, stdout: stdout.into(), stderr: stderr.into(), now: Instant::now() }
        }

        fn source(&mut self, process: usize, stream: Stream, tag: &str) -> usize {
            self.output.add(process, stream, tag.to_owned())
        }

        /// Lets a process write `text` to a source, and moves it on.
        fn feed(&mut self, source: usize, text: &str) {
            self.output.feed(source, text.as_bytes(), self.now);
            self.output.write();
        }

        fn end(&mut self, source: usize) {
            self.output.finish(source);
            self.output.write();
        }

        /// Closes everything and returns what came out.
        fn finish(self) -> (String, String) {
            let Bench { output, mut stdout, mut stderr, .. } = self;
            drop(output);
            let (mut out, mut err) = (String::new(), String::new());
            stdout.read_to_string(&mut out).unwrap();
            stderr.read_to_string(&mut err).unwrap();
            (out, err)
        }
    }

    #[test]
    fn numbers_have_digits() {
        assert_eq!([0, 9, 10, 999, 1000].map(digits), [1, 1, 2, 3, 4]);
    }

    #[test]
    fn lines_of_different_processes_do_not_mix() {
        let mut bench = Bench::new(2);
        let zero = bench.source(0, Stream::Output, "");
        let one = bench.source(1, Stream::Output, "");
        bench.feed(zero, "a1\na2");
        bench.feed(one, "b1");
        bench.feed(zero, "+\na3");
        bench.feed(one, "+\n");
        bench.end(zero);
        bench.end(one);
        assert_eq!(bench.finish(), ("a1\na2+\nb1+\na3".into(), String::new()));
    }

    #[test]
    fn streams_stay_apart_and_lines_are_tagged() {
        let mut bench = Bench::new(2);
        let out = bench.source(0, Stream::Output, "[0] ");
        let err = bench.source(0, Stream::Error, "[0] ");
        bench.feed(out, "one\ntw");
        bench.feed(err, "bad\n");
        bench.feed(out, "o\n\nthree");
        bench.end(out);
        assert_eq!(bench.output.recent_lines(0), ["one", "two", "three"]);
        assert_eq!(
            bench.finish(),
            ("[0] one\n[0] two\n[0] \n[0] three".into(), "[0] bad\n".into())
        );
    }

    #[test]
    fn an_unfinished_last_line_is_ended_by_the_next_writer() {
        let mut bench = Bench::new(2);
        let (zero, one) =
            (bench.source(0, Stream::Output, ""), bench.source(1, Stream::Output, ""));
        bench.feed(zero, "no end");
        bench.end(zero);
        bench.feed(one, "line\n");
        bench.output.say("said");
        bench.output.write();
        assert_eq!(bench.finish(), ("no end\nline\n".into(), "said\n".into()));
    }

    #[test]
    fn a_very_long_line_is_passed_on_in_parts() {
        let mut bench = Bench::new(2);
        let zero = bench.source(0, Stream::Output, "[0] ");
        let long = "x".repeat(LINE_BYTES_MAX / 2);
        bench.feed(zero, &long);
        assert_eq!(bench.output.sources[zero].part.len(), long.len());
        // The test must empty the sink's pipe meanwhile: it holds just one such line.
        let mut stdout = bench.stdout.try_clone().unwrap();
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            stdout.read_to_end(&mut all).unwrap();
            all.len()
        });
        bench.feed(zero, &long);
        assert!(bench.output.sources[zero].part.is_empty());
        bench.feed(zero, "end\n");
        while !bench.output.pending().is_empty() {
            bench.output.write();
        }
        drop(bench);
        assert_eq!(reader.join().unwrap(), "[0] ".len() + 2 * long.len() + "end\n".len());
    }

    #[test]
    fn a_single_process_is_not_made_to_wait() {
        let mut bench = Bench::new(1);
        let zero = bench.source(0, Stream::Output, "");
        bench.feed(zero, "Name? ");
        let mut seen = [0; 16];
        assert_eq!(bench.stdout.read(&mut seen).unwrap(), 6);
        assert_eq!(bench.output.recent_lines(0), ["Name?".to_owned() + " "]);
    }

    #[test]
    fn parts_are_shown_on_a_terminal_after_a_while() {
        let mut bench = Bench::new(2);
        let (zero, one) =
            (bench.source(0, Stream::Output, ""), bench.source(1, Stream::Output, ""));
        bench.feed(zero, "\r10%");
        assert_eq!(bench.output.part_due(), None, "nobody looks at a pipe");
        bench.output.sinks[0].kind = SinkKind::Terminal;
        assert_eq!(bench.output.part_due(), Some(bench.now + PART_HELD_MAX));
        bench.output.show_parts(bench.now);
        assert!(bench.output.part_due().is_some(), "not yet");
        bench.output.show_parts(bench.now + PART_HELD_MAX);
        bench.feed(zero, "\r20%");
        bench.feed(one, "\r99%");
        assert_eq!(bench.output.part_due(), None, "the line is taken");
        bench.feed(one, "!\n");
        bench.feed(zero, "\r30%\n");
        assert_eq!(bench.output.recent_lines(0), ["30%"]);
        assert_eq!(bench.output.recent_lines(1), ["99%!"]);
        assert_eq!(bench.finish().0, "\r10%\r20%\n\r99%!\n\r30%\n");
    }

    #[test]
    fn a_slow_reader_stops_the_reading() {
        let mut bench = Bench::new(1);
        let zero = bench.source(0, Stream::Output, "");
        let block = format!("{}\n", "y".repeat(32 * 1024));
        let mut fed = 0;
        while bench.output.has_room(Stream::Output) {
            bench.feed(zero, &block);
            fed += block.len();
        }
        assert!(fed < PENDING_BYTES_MAX + 5 * LINE_BYTES_MAX, "{fed}");
        assert!(bench.output.has_room(Stream::Error), "the other stream goes on");
    }

    #[test]
    fn a_gone_reader_is_noticed() {
        let mut bench = Bench::new(1);
        let zero = bench.source(0, Stream::Output, "");
        let (other, _) = pipe().unwrap();
        bench.stdout = other.into();
        // A child that another test is starting holds all pipes until it executes its program.
        while !bench.output.is_broken(Stream::Output) {
            bench.feed(zero, "lost\n");
        }
        bench.feed(zero, "a part");
        assert!(bench.output.pending().is_empty() && bench.output.sources[zero].part.is_empty());
    }

    #[test]
    fn a_full_disk_is_said_once_and_stops_nobody() {
        let mut bench = Bench::new(1);
        bench.output.sinks[0].target = File::create("/dev/full").unwrap().into();
        let zero = bench.source(0, Stream::Output, "");
        bench.feed(zero, "lost\n");
        bench.feed(zero, "lost as well\n");
        assert!(bench.output.has_lost() && !bench.output.is_broken(Stream::Output));
        assert_eq!(bench.output.recent_lines(0), ["lost", "lost as well"]);
        let (stdout, writer) = pipe().unwrap();
        (bench.output.sinks[0].target, bench.stdout) = (writer, stdout.into());
        bench.feed(zero, "there is room\n");
        let (out, err) = bench.finish();
        assert_eq!(out, "there is room\n");
        let words = "landeck: cannot write to standard output: No space left on device";
        assert!(err.starts_with(words) && err.lines().count() == 1, "{err}");
    }

    #[test]
    fn a_stream_can_have_a_file_of_its_own() {
        let mut bench = Bench::new(2);
        let (own, file) = pipe().unwrap();
        let one = bench.output.add_with_file(1, file, "rank-1.stdout".into());
        bench.feed(one, "a part");
        let mut seen = [0; 16];
        assert_eq!(File::from(own).read(&mut seen).unwrap(), 6, "at once");
        bench.output.sinks[2].target = File::create("/dev/full").unwrap().into();
        bench.feed(one, " and more\n");
        assert!(bench.output.has_lost());
        bench.output.write();
        let (out, err) = bench.finish();
        assert!(out.is_empty() && err.contains("cannot write to rank-1.stdout: No space"), "{err}");
    }

    #[test]
    fn the_last_lines_are_remembered() {
        let mut bench = Bench::new(1);
        let zero = bench.source(0, Stream::Output, "");
        bench.feed(zero, "be");
        bench.feed(zero, "gun\nsecond\x07\n");
        assert_eq!(bench.output.recent_lines(0), ["begun", "second "]);
        bench.feed(zero, "1\n2\n3\n4\n5\n6\n7\n8\n");
        assert_eq!(bench.output.recent_lines(0), ["4", "5", "6", "7", "8"]);
        bench.feed(zero, &format!("{}\n", "z".repeat(1000)));
        assert_eq!(bench.output.recent_lines(0)[4].len(), RECENT_LINE_BYTES);
    }

    #[test]
    fn one_place_for_both_streams_needs_one_pipe() {
        let (_reader, writer) = pipe().unwrap();
        let output = JobOutput::new(1, writer.try_clone().unwrap(), writer);
        assert!(output.is_merged());
        assert!(!Bench::new(1).output.is_merged());
    }
}
