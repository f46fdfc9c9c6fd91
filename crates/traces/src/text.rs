//! The lines of a trace, each with the checksum of all lines so far.
//!
//! | line | event |
//! |---|---|
//! | `landeck trace 1` | the first line |
//! | `join 2@3 rank 2 host n2 group ord` | the second line: the member, and the name of its group |
//! | `view 4 after 17 members 0,2 joined - departed 1:died` | a view; `after -` without a place among the messages |
//! | `send 1 total 9f3ac2d1` | a call begins to send message 1, with level and checksum |
//! | `sent 1`, `refused 1` | it has sent it; it has not |
//! | `deliver 0@1 17 total 1a2b3c4d at 18` | message 17 of member 0@1 came, the 18th of the group; `at -` if that is not known |
//! | `syncing 1`, `synced 1` | a synchronisation begins and ends |
//! | `empty` | no message waits |
//! | `end left` | the end: `left`, `evicted`, `destroyed` or `lost` |
//!
//! Behind each line stands ` #` and the checksum of all lines so far, so a line that was edited is found, and so is the line
//! behind a cut. A last line without an end of line is left out: its process was killed while it wrote. The checksum finds
//! accidents and careless hands; a trace that somebody forges with care passes.

use std::fmt::Write;
use std::str::{FromStr, SplitAsciiWhitespace};

use crate::event::{
    DepartureCause, GroupTrace, MemberName, MessageName, TraceEnd, TraceEvent, TraceHead,
    TraceLevel, TracedView,
};

/// The first line.
const TITLE: &str = "landeck trace 1";
/// Bytes of the longest line: a view of a group with very many members.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Lines of the longest trace.
const LINES_MAX: usize = 1 << 24;

/// A trace that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {fault}")]
pub struct TraceError {
    /// The file or program that it comes from.
    pub origin: String,
    /// The fault.
    pub fault: TraceFault,
}

/// The fault of a trace that cannot be read. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceFault {
    /// The trace ends before it says whose it is.
    #[error("the trace ends before it says whose it is: its process was killed, or it was cut")]
    NoHead,
    /// A checksum does not match.
    #[error("line {0} was edited, or lines before it were cut")]
    Edited(usize),
    /// A line is none of a trace.
    #[error("line {0} is no line of a trace")]
    NoLine(usize),
    /// A line is too long.
    #[error("line {0} has more than 65,536 bytes, so it is no line of a trace")]
    Long(usize),
    /// There are too many lines.
    #[error("it has more than 16,777,216 lines: shorten the run")]
    Many,
}

/// Returns whether a file that begins with these bytes is meant to be a trace.
pub fn is_trace(bytes: &[u8]) -> bool {
    bytes.starts_with(b"landeck trace ")
}

/// Returns a trace of these lines, whose checksums it adds: for tests of reading, and of checks.
pub fn seal<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let (mut text, mut chain) = (String::new(), Chain::default());
    for line in lines {
        let from = text.len();
        text.push_str(line);
        end_line(&mut text, &mut chain, from);
    }
    text
}

/// The checksum of all lines so far (FNV-1a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain(u64);

impl Default for Chain {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Chain {
    /// Adds bytes, and returns the checksum, folded.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> u32 {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        (self.0 >> 32) as u32 ^ self.0 as u32
    }
}

/// Adds the checksum and the end to the line that begins at `from`.
fn end_line(text: &mut String, chain: &mut Chain, from: usize) {
    let sum = chain.add(&text.as_bytes()[from..]);
    put(text, format_args!(" #{sum:08x}\n"));
}

/// Writing to a string cannot fail.
fn put(text: &mut String, words: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(words);
}

pub(crate) fn put_title(text: &mut String, chain: &mut Chain) {
    let from = text.len();
    text.push_str(TITLE);
    end_line(text, chain, from);
}

/// Adds the second line. Characters that names cannot have become `?`.
pub(crate) fn put_head(text: &mut String, chain: &mut Chain, head: &TraceHead) {
    let from = text.len();
    let plain = |name: &str, can_have: fn(char) -> bool| -> String {
        name.chars().map(|it| if can_have(it) { it } else { '?' }).collect()
    };
    let host = if head.host.is_empty() { "?".into() } else { plain(&head.host, host_can_have) };
    let group = plain(&head.group, group_can_have);
    put(text, format_args!("join {} rank {} host {host} group {group}", head.member, head.rank));
    end_line(text, chain, from);
}

/// Whether the name of a host can have this character: the name is a word.
fn host_can_have(character: char) -> bool {
    !character.is_control() && !character.is_whitespace()
}

/// Whether the name of a group can have this character: the name does not end its line.
fn group_can_have(character: char) -> bool {
    !character.is_control()
}

pub(crate) fn put_event(text: &mut String, chain: &mut Chain, event: &TraceEvent) {
    let from = text.len();
    match event {
        TraceEvent::View(view) => put_view(text, view),
        TraceEvent::Send { number, level, sum } => {
            put(text, format_args!("send {number} {} {sum:08x}", word(LEVELS, *level)));
        }
        TraceEvent::Sent(number) => put(text, format_args!("sent {number}")),
        TraceEvent::Refused(number) => put(text, format_args!("refused {number}")),
        TraceEvent::Delivered { message: MessageName { sender, number }, level, sum, at } => {
            let level = word(LEVELS, *level);
            put(text, format_args!("deliver {sender} {number} {level} {sum:08x} at "));
            put_known(text, *at);
        }
        TraceEvent::Syncing(number) => put(text, format_args!("syncing {number}")),
        TraceEvent::Synced(number) => put(text, format_args!("synced {number}")),
        TraceEvent::Empty => text.push_str("empty"),
        TraceEvent::Ended(end) => put(text, format_args!("end {}", word(ENDS, *end))),
    }
    end_line(text, chain, from);
}

fn put_view(text: &mut String, view: &TracedView) {
    put(text, format_args!("view {} after ", view.number));
    put_known(text, view.after);
    let ids = |ids: &[u32]| list(ids.iter().map(u32::to_string));
    put(text, format_args!(" members {} joined {}", ids(&view.members), ids(&view.joined)));
    let departed =
        view.departed.iter().map(|(member, cause)| format!("{member}:{}", word(CAUSES, *cause)));
    put(text, format_args!(" departed {}", list(departed)));
}

fn put_known(text: &mut String, number: Option<u64>) {
    match number {
        Some(number) => put(text, format_args!("{number}")),
        None => text.push('-'),
    }
}

fn list(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    if words.is_empty() { "-".into() } else { words.join(",") }
}

const LEVELS: &[(&str, TraceLevel)] =
    &[("fifo", TraceLevel::Fifo), ("total", TraceLevel::Total), ("safe", TraceLevel::Safe)];

const CAUSES: &[(&str, DepartureCause)] = &[
    ("left", DepartureCause::Left),
    ("died", DepartureCause::Died),
    ("evicted", DepartureCause::Evicted),
    ("lost", DepartureCause::Lost),
    ("gone", DepartureCause::Gone),
];

const ENDS: &[(&str, TraceEnd)] = &[
    ("left", TraceEnd::Left),
    ("evicted", TraceEnd::Evicted),
    ("destroyed", TraceEnd::Destroyed),
    ("lost", TraceEnd::Lost),
];

/// The word of a value, which is in its table.
fn word<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, other)| *other == value).map_or("", |(word, _)| word)
}

fn value<T: Copy>(words: &[(&str, T)], word: &str) -> Option<T> {
    words.iter().find(|(other, _)| *other == word).map(|(_, value)| *value)
}

impl GroupTrace {
    /// Reads a trace. `source` is the name that messages give it.
    ///
    /// # Errors
    /// The line that was edited or cut, or that is none of a trace.
    pub fn decode(source: &str, bytes: &[u8]) -> Result<Self, TraceError> {
        Self::read(source, bytes).map_err(|fault| TraceError { origin: source.into(), fault })
    }

    fn read(source: &str, bytes: &[u8]) -> Result<Self, TraceFault> {
        let mut chain = Chain::default();
        let (mut head, mut events) = (None, Vec::new());
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let lines = bytes[..whole].split_inclusive(|&byte| byte == b'\n');
        for (number, line) in (1..).zip(lines) {
            let text = checked(number, &line[..line.len() - 1], &mut chain)?;
            let known = match number {
                1 => (text == TITLE).then_some(()),
                2 => read_head(text).map(|read| head = Some(read)),
                _ => read_event(text).map(|event| events.push(event)),
            };
            known.ok_or(TraceFault::NoLine(number))?;
        }
        let head = head.ok_or(TraceFault::NoHead)?;
        Ok(Self { source: source.into(), head, events })
    }

    /// Returns the lines of the trace.
    pub fn encode(&self) -> String {
        let (mut text, mut chain) = (String::new(), Chain::default());
        put_title(&mut text, &mut chain);
        put_head(&mut text, &mut chain, &self.head);
        self.events.iter().for_each(|event| put_event(&mut text, &mut chain, event));
        text
    }
}

/// The text of a line whose checksum matches.
fn checked<'a>(number: usize, line: &'a [u8], chain: &mut Chain) -> Result<&'a str, TraceFault> {
    if number > LINES_MAX {
        return Err(TraceFault::Many);
    }
    if line.len() > LINE_BYTES_MAX {
        return Err(TraceFault::Long(number));
    }
    let line = std::str::from_utf8(line).map_err(|_| TraceFault::Edited(number))?;
    let (text, sum) = line.rsplit_once(" #").ok_or(TraceFault::Edited(number))?;
    let is_right = sum.len() == 8 && u32::from_str_radix(sum, 16) == Ok(chain.add(text.as_bytes()));
    is_right.then_some(text).ok_or(TraceFault::Edited(number))
}

fn read_head(text: &str) -> Option<TraceHead> {
    let (start, group) = text.split_once(" group ")?;
    let mut words = start.split_ascii_whitespace();
    expect(&mut words, "join")?;
    let member = read_member(words.next()?)?;
    expect(&mut words, "rank")?;
    let rank = number(words.next()?)?;
    expect(&mut words, "host")?;
    let host = words.next()?.to_owned();
    let are_names = host.chars().all(host_can_have) && group.chars().all(group_can_have);
    let is_whole = words.next().is_none() && are_names;
    is_whole.then(|| TraceHead { group: group.into(), member, rank, host })
}

fn read_event(text: &str) -> Option<TraceEvent> {
    let mut words = text.split_ascii_whitespace();
    let event = match words.next()? {
        "view" => TraceEvent::View(read_view(&mut words)?),
        "send" => TraceEvent::Send {
            number: number(words.next()?)?,
            level: value(LEVELS, words.next()?)?,
            sum: sum(words.next()?)?,
        },
        "sent" => TraceEvent::Sent(number(words.next()?)?),
        "refused" => TraceEvent::Refused(number(words.next()?)?),
        "deliver" => {
            let message =
                MessageName { sender: read_member(words.next()?)?, number: number(words.next()?)? };
            let (level, sum) = (value(LEVELS, words.next()?)?, sum(words.next()?)?);
            expect(&mut words, "at")?;
            TraceEvent::Delivered { message, level, sum, at: known(words.next()?)? }
        }
        "syncing" => TraceEvent::Syncing(number(words.next()?)?),
        "synced" => TraceEvent::Synced(number(words.next()?)?),
        "empty" => TraceEvent::Empty,
        "end" => TraceEvent::Ended(value(ENDS, words.next()?)?),
        _ => return None,
    };
    words.next().is_none().then_some(event)
}

fn read_view(words: &mut SplitAsciiWhitespace<'_>) -> Option<TracedView> {
    let view = number(words.next()?)?;
    expect(words, "after")?;
    let after = known(words.next()?)?;
    expect(words, "members")?;
    let members = read_list(words.next()?, number)?;
    expect(words, "joined")?;
    let joined = read_list(words.next()?, number)?;
    expect(words, "departed")?;
    let departed = read_list(words.next()?, |word| {
        let (member, cause) = word.split_once(':')?;
        Some((number(member)?, value(CAUSES, cause)?))
    })?;
    Some(TracedView { number: view, after, members, joined, departed })
}

fn expect(words: &mut SplitAsciiWhitespace<'_>, wanted: &str) -> Option<()> {
    (words.next()? == wanted).then_some(())
}

fn read_list<T>(word: &str, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    if word == "-" { Some(Vec::new()) } else { word.split(',').map(read).collect() }
}

fn read_member(word: &str) -> Option<MemberName> {
    let (id, since) = word.split_once('@')?;
    Some(MemberName { id: number(id)?, since: number(since)? })
}

/// A number without a sign.
fn number<T: FromStr>(word: &str) -> Option<T> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok())?
}

fn known(word: &str) -> Option<Option<u64>> {
    if word == "-" { Some(None) } else { number(word).map(Some) }
}

fn sum(word: &str) -> Option<u32> {
    let is_hex = word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(word, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> GroupTrace {
        let member = MemberName { id: 2, since: 3 };
        let other = MemberName { id: 0, since: u64::MAX };
        let view = TracedView {
            number: 4,
            after: Some(17),
            members: vec![0, 2],
            joined: vec![2],
            departed: vec![(1, DepartureCause::Died), (7, DepartureCause::Lost)],
        };
        let message = MessageName { sender: other, number: 9 };
        let level = TraceLevel::Safe;
        let head = TraceHead { group: "two words #1".into(), member, rank: 5, host: "n2".into() };
        let events = vec![
            TraceEvent::View(TracedView { number: 3, members: vec![2], ..Default::default() }),
            TraceEvent::View(view),
            TraceEvent::Send { number: 1, level: TraceLevel::Fifo, sum: 0 },
            TraceEvent::Sent(1),
            TraceEvent::Refused(2),
            TraceEvent::Delivered { message, level, sum: u32::MAX, at: Some(18) },
            TraceEvent::Delivered { message, level: TraceLevel::Total, sum: 1, at: None },
            TraceEvent::Syncing(1),
            TraceEvent::Synced(1),
            TraceEvent::Empty,
            TraceEvent::Ended(TraceEnd::Evicted),
        ];
        GroupTrace { source: "a trace".into(), head, events }
    }

    fn fault(bytes: &[u8]) -> Option<TraceFault> {
        GroupTrace::decode("a trace", bytes).err().map(|error| error.fault)
    }

    #[test]
    fn a_trace_is_read_as_it_was_written() {
        let text = trace().encode();
        assert_eq!(GroupTrace::decode("a trace", text.as_bytes()), Ok(trace()));
        assert!(is_trace(text.as_bytes()) && !is_trace(b"landeck: no program"));
        let view = "view 4 after 17 members 0,2 joined 2 departed 1:died,7:lost #";
        assert!(text.lines().any(|line| line.starts_with(view)), "{text}");
    }

    #[test]
    fn an_edited_byte_is_found_in_its_line() {
        let text = trace().encode().into_bytes();
        let mut line = 1;
        for at in 0..text.len() {
            let mut edited = text.clone();
            edited[at] ^= 1;
            let found = fault(&edited);
            let is_end = text[at] == b'\n';
            assert!(is_end || found == Some(TraceFault::Edited(line)), "byte {at}: {found:?}");
            line += usize::from(is_end);
        }
    }

    #[test]
    fn the_line_behind_a_cut_is_named() {
        let text = trace().encode();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for cut in 0..lines.len() - 1 {
            let left = [&lines[..cut], &lines[cut + 1..]].concat().concat();
            assert_eq!(fault(left.as_bytes()), Some(TraceFault::Edited(cut + 1)));
        }
        let error =
            TraceError { origin: "out/rank-1.stdout".into(), fault: TraceFault::Edited(812) };
        let words = "out/rank-1.stdout: line 812 was edited, or lines before it were cut";
        assert_eq!(error.to_string(), words);
    }

    #[test]
    fn a_line_that_its_process_did_not_end_is_left_out() {
        let text = trace().encode();
        let torn = GroupTrace::decode("a trace", &text.as_bytes()[..text.len() - 1]).unwrap();
        assert_eq!(torn.events, trace().events[..trace().events.len() - 1]);
        assert_eq!(fault(b""), Some(TraceFault::NoHead));
        assert_eq!(fault(b"landeck trace 1"), Some(TraceFault::NoHead));
    }

    #[test]
    fn lines_of_no_event_are_refused() {
        for line in [
            "",
            "view",
            "view 1 after - members - joined -",
            "view 1 after - members 1,,2 joined - departed -",
            "view 1 after - members 4294967296 joined - departed -",
            "view 1 after - members 1 joined - departed 1",
            "send 1 total 1",
            "send +1 total 00000001",
            "send 1 any 00000001",
            "sent 1 2",
            "deliver 1 1 total 00000001 at -",
            "deliver 1@1 1 total 00000001 at",
            "end well",
            "empty 1",
        ] {
            let text = seal([TITLE, "join 2@3 rank 5 host n2 group ord", line].into_iter());
            assert_eq!(fault(text.as_bytes()), Some(TraceFault::NoLine(3)), "{line:?}");
        }
        let long = [TITLE.as_bytes(), &[b' '; LINE_BYTES_MAX], b"\n"].concat();
        assert_eq!(fault(&long), Some(TraceFault::Long(1)));
    }

    #[test]
    fn names_cannot_end_a_line() {
        let mut trace = trace();
        trace.head.host = "n 2\n".into();
        trace.head.group = "a\nb c".into();
        let read = GroupTrace::decode("a trace", trace.encode().as_bytes()).unwrap();
        assert_eq!((&*read.head.host, &*read.head.group), ("n?2?", "a?b c"));
    }
}
