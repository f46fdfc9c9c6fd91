//! The launcher's messages about a job: the failure that ended it, where processes are, a summary.
//!
//! A failure report names the process, where it ran, how and when it failed, its last words, and what became of the
//! others. All functions here produce text only.

use std::time::Duration;

use landeck_memory::{Counters, Operation, SlotRecord, WaitRecord};
use landeck_protocols::restarts::Restart;
use landeck_wire::ContextId;
use serde::{Deserialize, Serialize};

use crate::signals;

/// A process of a job, as reports name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who<'a> {
    /// Its rank. Numbers behind the ranks are those of processes that were started while the job ran.
    pub rank: u32,
    /// The number of ranks of the job.
    pub processes: u32,
    /// Its program, if it was started while the job ran.
    pub program: Option<&'a str>,
    /// Its PID.
    pub pid: u32,
    /// The host it ran on.
    pub host: &'a str,
}

/// How a process failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessFailure {
    /// It ended with an exit code other than 0.
    Code(u8),
    /// A signal killed it.
    Signal(i32),
    /// The kernel killed it because memory ran out; contains the limit, if known.
    OutOfMemory(Option<u64>),
    /// It joined the job and ended with exit code 0, but did not leave the job.
    NotLeft,
    /// It did not leave the job, and only its parent, which is not ours, knows how it ended.
    Unseen,
    /// It ended the whole job, with this exit code.
    Aborted(u8),
}

/// The state of the processes that did not fail first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// They have ended too.
    Gone {
        /// The number that the launcher ended because of the failure.
        ended: u32,
        /// The number that ended by themselves.
        by_themselves: u32,
    },
    /// So many continue.
    GoOn(u32),
    /// So many continue, and the failed process is started again.
    GoOnWithNext {
        /// The number that continue.
        others: u32,
        /// When it is started again, and the number of that restart.
        again: Restart,
        /// The largest number of restarts.
        most: u32,
    },
}

/// The report on the first failure.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureReport<'a> {
    /// The process that failed.
    pub who: Who<'a>,
    /// How it failed.
    pub failure: ProcessFailure,
    /// The time after which it failed.
    pub after: Duration,
    /// The wait that it was in, in words.
    pub waiting: Option<&'a str>,
    /// Its last lines, oldest first.
    pub last_lines: &'a [String],
    /// The state of the others.
    pub others: Others,
    /// The number of restarts of this process, if processes are started again.
    pub restarts: Option<u32>,
    /// The exit code of the job: that of another process, if that failed before.
    pub exit_code: u8,
}

impl ProcessFailure {
    /// The failure of a process with this raw wait status; `None` if it did not fail. `joined` says whether it had
    /// joined the job and not left it.
    pub fn of_status(status: i32, joined: bool) -> Option<ProcessFailure> {
        if status == SlotRecord::UNKNOWN_STATUS {
            return Some(ProcessFailure::Unseen);
        }
        if libc::WIFSIGNALED(status) {
            return Some(ProcessFailure::Signal(libc::WTERMSIG(status)));
        }
        match libc::WEXITSTATUS(status) as u8 {
            0 if joined => Some(ProcessFailure::NotLeft),
            0 => None,
            code => Some(ProcessFailure::Code(code)),
        }
    }

    /// The exit code for this failure.
    pub fn exit_code(self) -> u8 {
        match self {
            ProcessFailure::Code(code) => code,
            ProcessFailure::Signal(signal) => 128 + signal as u8,
            ProcessFailure::OutOfMemory(_) => 128 + libc::SIGKILL as u8,
            ProcessFailure::NotLeft | ProcessFailure::Unseen => 1,
            ProcessFailure::Aborted(code) => code,
        }
    }

    /// The failure as the rest of a sentence about a process.
    pub fn sentence(self) -> String {
        match self {
            ProcessFailure::Code(code) => format!("ended with exit code {code}"),
            ProcessFailure::Signal(signal) => {
                let (_, meaning) = signals::name(signal);
                format!("was killed by signal {signal} ({meaning})")
            }
            ProcessFailure::OutOfMemory(limit) => {
                let limit = limit.map(|bytes| format!(" of {}", size(bytes))).unwrap_or_default();
                format!(
                    "was killed by the kernel (signal 9): memory ran out under the limit{limit} of \
                     its control group"
                )
            }
            ProcessFailure::NotLeft => {
                "exited without calling MPI_Finalize (or deck_done, Job::leave)".to_owned()
            }
            ProcessFailure::Unseen => {
                "ended without leaving the job (only its parent knows how)".to_owned()
            }
            ProcessFailure::Aborted(code) => format!("ended the job with exit code {code}"),
        }
    }
}

impl FailureReport<'_> {
    /// The report, as lines.
    pub fn text(&self) -> String {
        let Who { rank, processes, program, pid, host } = self.who;
        let (failure, after) = (self.failure.sentence(), duration(self.after));
        let name = match rank.checked_sub(processes) {
            None => format!("rank {rank} of {processes}"),
            Some(number) => format!("started process {number}, {}", program.unwrap_or_default()),
        };
        let mut text = format!("{name} (pid {pid}, host {host}) {failure} after {after}.\n");
        if let Some(waiting) = self.waiting {
            text += &format!("  It was in: {waiting}.\n");
        }
        match self.last_lines {
            [] => {}
            [line] => text += &format!("  Its last lines: \"{line}\"\n"),
            lines => {
                text.push_str("  Its last lines:\n");
                lines.iter().for_each(|line| text += &format!("    {line}\n"));
            }
        }
        if let (Some(times @ 1..), Others::Gone { .. } | Others::GoOn(_)) =
            (self.restarts, self.others)
        {
            text += &format!("  It had been started again {} before.\n", self::times(times));
        }
        let code = self.exit_code;
        let why = match (self.failure, self.restarts) {
            (ProcessFailure::Aborted(_), _) => "",
            (_, None) => " (--on-failure abort)",
            (_, Some(_)) => " (--on-failure restart)",
        };
        match (self.others, self.others.sentence(why)) {
            (Others::GoOn(_) | Others::GoOnWithNext { .. }, Some(sentence)) => {
                text += &format!("{sentence}\n");
            }
            (Others::GoOn(_) | Others::GoOnWithNext { .. }, None) => {}
            (_, None) => text += &format!("Exit code {code}.\n"),
            (_, Some(sentence)) => text += &format!("{sentence} Exit code {code}.\n"),
        }
        text
    }
}

impl Others {
    /// The sentence about the others; `None` if there is nothing to say. `why` follows the verb.
    fn sentence(self, why: &str) -> Option<String> {
        let themselves = |count| if count == 1 { "itself" } else { "themselves" };
        Some(match self {
            Others::Gone { ended: 0, by_themselves: 0 } | Others::GoOn(0) => return None,
            Others::Gone { ended: 0, by_themselves } => {
                format!("{} ended by {}.", the_others(by_themselves), themselves(by_themselves))
            }
            Others::Gone { ended, by_themselves: 0 } => {
                let were = were(ended);
                format!("{} {were} ended{why}.", the_others(ended))
            }
            Others::Gone { ended, by_themselves } => format!(
                "Of the others {ended} {} ended{why}, {by_themselves} ended by {}.",
                were(ended),
                themselves(by_themselves)
            ),
            Others::GoOn(count) => {
                let why = if why.contains("restart") { why } else { " (--on-failure notify)" };
                format!("{} {} on{why}.", the_others(count), go(count))
            }
            Others::GoOnWithNext { others, again: Restart { number, after }, most } => {
                let after = duration(after);
                let again =
                    format!("It is started again in {after} ({number} of at most {most} times)");
                match others {
                    0 => format!("{again}."),
                    _ => format!("{again}. {} {} on.", the_others(others), go(others)),
                }
            }
        })
    }
}

fn the_others(count: u32) -> String {
    match count {
        1 => "The other process".to_owned(),
        _ => format!("The other {count} processes"),
    }
}

const fn were(count: u32) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

const fn go(count: u32) -> &'static str {
    if count == 1 { "goes" } else { "go" }
}

/// A number of times, in words.
fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

/// One line about the processes of a job that were started again, with the number of restarts of each; `None` if there
/// were none. `name` names a rank.
pub fn restarts(all: &[(u32, u32)], name: impl Fn(u32) -> String) -> Option<String> {
    const LISTED_MAX: usize = 16;
    let listed = all.iter().take(LISTED_MAX);
    let each: Vec<String> =
        listed.map(|&(rank, count)| format!("{} {}", name(rank), times(count))).collect();
    let more = match all.len().saturating_sub(LISTED_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (!all.is_empty()).then(|| format!("Started again: {}{more}.\n", each.join(", ")))
}

/// The wait of a process, in words; `None` if it does not wait. `peer` is the name of the process that it waits for.
pub fn place(wait: &WaitRecord, peer: Option<&str>, since: Duration) -> Option<String> {
    let preposition = match wait.operation {
        Operation::None => return None,
        Operation::Send => "to",
        _ => "from",
    };
    let mut text = wait.operation.as_str().to_owned();
    let has_message = wait.operation.has_message();
    match peer {
        Some(peer) => text += &format!(" {preposition} {peer}"),
        None if has_message => text += &format!(" {preposition} any rank"),
        None => {}
    }
    if wait.operation == Operation::Send && wait.bytes > 0 {
        text += &format!(", {}", size(wait.bytes));
    }
    if has_message {
        let context = ContextId(wait.context);
        match (context.purpose(), wait.tag) {
            (Some(purpose), _) => text += &format!(", {purpose}"),
            (None, Some(tag)) => text += &format!(", tag {tag}"),
            (None, None) => {}
        }
        // The job's first group has the first context.
        match context.of_group().index() {
            0 => text.push_str(", group world"),
            index => text += &format!(", context {index}"),
        }
    }
    text += &format!(", for {}", duration(since));
    Some(text)
}

/// The counters of a process, for a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deeds {
    /// Messages sent.
    pub messages_sent: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
    /// Bytes given to others in collective operations on one host.
    pub bytes_laid: u64,
    /// Time in calls that waited, in nanoseconds.
    pub waited_ns: u64,
    /// The rank that it has waited for longest, and that time in nanoseconds.
    pub waited_most_for: Option<(u32, u64)>,
}

impl Deeds {
    /// The deeds of a process with these counters.
    pub fn new(counters: Counters, waited_most_for: Option<(u32, u64)>) -> Deeds {
        let Counters { messages_sent, bytes_sent, bytes_laid, waited_ns, .. } = counters;
        Deeds { messages_sent, bytes_sent, bytes_laid, waited_ns, waited_most_for }
    }
}

/// One line about a job that ended well. `name` names a rank.
pub fn summary(deeds: &[Deeds], elapsed: Duration, name: impl Fn(u32) -> String) -> String {
    let all = || deeds.iter();
    let messages: u64 = all().map(|own| own.messages_sent).sum();
    let bytes: u64 = all().map(|own| own.bytes_sent).sum();
    let laid: u64 = all().map(|own| own.bytes_laid).sum();
    let laid = match laid {
        0 => String::new(),
        _ => format!(" and {} in collective operations", decimal_size(laid)),
    };
    let waited_ns: u64 = all().map(|own| own.waited_ns).sum();
    let whole_ns = (elapsed.as_nanos() as f64 * deeds.len() as f64).max(1.0);
    let percent = 100.0 * waited_ns as f64 / whole_ns;
    let mut text = format!(
        "{} {}, {}: {} messages, {}{laid}, {percent:.0}% of the time waiting",
        deeds.len(),
        if deeds.len() == 1 { "process" } else { "processes" },
        duration(elapsed),
        thousands(messages),
        decimal_size(bytes),
    );
    let most = deeds.iter().enumerate().max_by_key(|(_, own)| own.waited_ns);
    if let Some((rank, own)) = most.filter(|(_, own)| own.waited_ns > 0) {
        text += &format!(" (most: {}, {:.2} s", name(rank as u32), own.waited_ns as f64 / 1e9);
        if let Some((peer, ns)) = own.waited_most_for {
            text += &format!("; {:.2} s of it on {}", ns as f64 / 1e9, name(peer));
        }
        text.push(')');
    }
    text.push('\n');
    text
}

/// A duration in a form for people.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match time.as_secs() {
        _ if seconds < 0.0995 => format!("{:.0} ms", seconds * 1e3),
        0..100 => format!("{seconds:.1} s"),
        100..3600 => format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60),
        whole => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A number of bytes in a form for people, in powers of 1,024.
pub fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// A number of bytes in a form for people, in powers of 1,000.
pub fn decimal_size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// A number with commas: 1234567 as 1,234,567.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: Who<'_> = Who { rank: 2, processes: 4, program: None, pid: 4711, host: "a" };

    fn receive() -> WaitRecord {
        WaitRecord {
            operation: Operation::Receive,
            peer: Some(1),
            tag: Some(7),
            ..WaitRecord::default()
        }
    }

    #[test]
    fn a_failure_is_told_in_four_lines() {
        let waiting = place(&receive(), Some("rank 1"), Duration::from_millis(300));
        let report = FailureReport {
            who: WHO,
            failure: ProcessFailure::Signal(11),
            after: Duration::from_millis(400),
            waiting: waiting.as_deref(),
            last_lines: &["reading part 17".to_owned()],
            others: Others::Gone { ended: 3, by_themselves: 0 },
            restarts: None,
            exit_code: 139,
        };
        let expected = "\
rank 2 of 4 (pid 4711, host a) was killed by signal 11 (segmentation fault) after 0.4 s.
  It was in: receive from rank 1, tag 7, group world, for 0.3 s.
  Its last lines: \"reading part 17\"
The other 3 processes were ended (--on-failure abort). Exit code 139.
";
        assert_eq!(report.text(), expected);
    }

    #[test]
    fn unknown_facts_are_left_out_of_a_report() {
        let report = FailureReport {
            who: Who { rank: 0, processes: 1, ..WHO },
            failure: ProcessFailure::Code(3),
            after: Duration::from_millis(7),
            waiting: None,
            last_lines: &[],
            others: Others::Gone { ended: 0, by_themselves: 0 },
            restarts: None,
            exit_code: 3,
        };
        let expected = "\
rank 0 of 1 (pid 4711, host a) ended with exit code 3 after 7 ms.
Exit code 3.
";
        assert_eq!(report.text(), expected);
        let lines = ["one".to_owned(), "two".to_owned()];
        let report = FailureReport { last_lines: &lines, others: Others::GoOn(1), ..report };
        let expected = "\
  Its last lines:
    one
    two
The other process goes on (--on-failure notify).
";
        assert!(report.text().ends_with(expected), "{}", report.text());
    }

    #[test]
    fn an_abort_is_told_with_the_exit_code_of_the_job() {
        let report = FailureReport {
            who: WHO,
            failure: ProcessFailure::Aborted(3),
            after: Duration::from_secs(2),
            waiting: None,
            last_lines: &[],
            others: Others::Gone { ended: 2, by_themselves: 1 },
            restarts: Some(0),
            exit_code: 137,
        };
        let expected = "\
rank 2 of 4 (pid 4711, host a) ended the job with exit code 3 after 2.0 s.
Of the others 2 were ended, 1 ended by itself. Exit code 137.
";
        assert_eq!(report.text(), expected);
    }

    #[test]
    fn new_starts_are_told() {
        let again = Restart { number: 2, after: Duration::from_millis(200) };
        let report = FailureReport {
            who: WHO,
            failure: ProcessFailure::Signal(9),
            after: Duration::from_secs(2),
            waiting: None,
            last_lines: &[],
            others: Others::GoOnWithNext { others: 3, again, most: 3 },
            restarts: Some(1),
            exit_code: 137,
        };
        let expected = "\
rank 2 of 4 (pid 4711, host a) was killed by signal 9 (kill) after 2.0 s.
It is started again in 0.2 s (2 of at most 3 times). The other 3 processes go on.
";
        assert_eq!(report.text(), expected);
        let others = Others::Gone { ended: 2, by_themselves: 1 };
        let last = FailureReport { others, restarts: Some(3), ..report };
        let expected = "\
rank 2 of 4 (pid 4711, host a) was killed by signal 9 (kill) after 2.0 s.
  It had been started again 3 times before.
Of the others 2 were ended (--on-failure restart), 1 ended by itself. Exit code 137.
";
        assert_eq!(last.text(), expected);
        let name = |rank: u32| format!("rank {rank}");
        assert_eq!(restarts(&[], name), None);
        let text = restarts(&[(1, 3), (4, 1)], name).unwrap();
        assert_eq!(text, "Started again: rank 1 3 times, rank 4 once.\n");
        assert!(restarts(&[(0, 1); 20], name).unwrap().ends_with(", and 4 more.\n"));
    }

    #[test]
    fn the_others_are_counted() {
        let of = |ended, by_themselves| {
            Others::Gone { ended, by_themselves }.sentence(" (--on-failure abort)")
        };
        assert_eq!(of(0, 0), None);
        assert_eq!(of(0, 1).unwrap(), "The other process ended by itself.");
        assert_eq!(of(1, 0).unwrap(), "The other process was ended (--on-failure abort).");
        assert_eq!(
            of(1, 2).unwrap(),
            "Of the others 1 was ended (--on-failure abort), 2 ended by themselves."
        );
    }

    #[test]
    fn statuses_become_failures() {
        let of = ProcessFailure::of_status;
        assert_eq!(of(0, false), None);
        assert_eq!(of(0, true), Some(ProcessFailure::NotLeft));
        assert_eq!(of(3 << 8, true), Some(ProcessFailure::Code(3)));
        assert_eq!(of(9, false), Some(ProcessFailure::Signal(9)));
        assert_eq!(of(11 | 0x80, false), Some(ProcessFailure::Signal(11)));
        assert_eq!(of(SlotRecord::UNKNOWN_STATUS, true), Some(ProcessFailure::Unseen));
        let code = |failure: ProcessFailure| failure.exit_code();
        assert_eq!(code(ProcessFailure::Signal(15)), 143);
        assert_eq!(code(ProcessFailure::OutOfMemory(None)), 137);
        assert_eq!(code(ProcessFailure::NotLeft), 1);
        assert_eq!((code(ProcessFailure::Unseen), code(ProcessFailure::Aborted(3))), (1, 3));
    }

    #[test]
    fn places_are_put_in_words() {
        let at = |wait: WaitRecord| {
            let peer = wait.peer.map(|peer| format!("rank {peer}"));
            place(&wait, peer.as_deref(), Duration::from_secs(4)).unwrap_or_default()
        };
        let send = WaitRecord { operation: Operation::Send, bytes: 1 << 20, ..receive() };
        assert_eq!(at(send), "send to rank 1, 1.0 MiB, tag 7, group world, for 4.0 s");
        let any = WaitRecord { peer: None, tag: None, context: 9, ..receive() };
        assert_eq!(at(any), "receive from any rank, context 9, for 4.0 s");
        let inner = WaitRecord { context: ContextId::CREATION, ..receive() };
        assert_eq!(at(inner), "receive from rank 1, to make a group, group world, for 4.0 s");
        let wait = WaitRecord { operation: Operation::Leave, ..WaitRecord::default() };
        assert_eq!(at(wait), "leave, for 4.0 s");
        assert_eq!(at(WaitRecord::default()), "");
    }

    #[test]
    fn the_summary_is_one_line() {
        let counters = Counters {
            messages_sent: 4_000,
            bytes_sent: 32_768_000,
            bytes_laid: 1_000,
            waited_ns: 60_000_000,
            ..Counters::default()
        };
        let own = Deeds::new(counters, None);
        let longest = Counters { waited_ns: 90_000_000, ..counters };
        let most = Deeds::new(longest, Some((1, 80_000_000)));
        let all = [own.clone(), own.clone(), most, own];
        let name = |rank: u32| format!("rank {rank}");
        let text = summary(&all, Duration::from_millis(2_100), name);
        let expected = "4 processes, 2.1 s: 16,000 messages, 131 MB and 4 kB in collective operations, \
                        3% of the time waiting (most: rank 2, 0.09 s; 0.08 s of it on rank 1)\n";
        assert_eq!(text, expected);
        let idle = summary(&[Deeds::default()], Duration::from_millis(5), name);
        assert_eq!(idle, "1 process, 5 ms: 0 messages, 0 B, 0% of the time waiting\n");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(12), "12");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 5 s");
        assert_eq!(duration(Duration::from_secs(7_260)), "2 h 1 min");
        assert_eq!(size(100), "100 B");
        assert_eq!(decimal_size(2_500_000_000), "2.5 GB");
    }
}
