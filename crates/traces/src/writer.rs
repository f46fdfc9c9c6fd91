//! Writing a trace while a program runs.

use std::io::{self, Write};

use crate::event::{TraceEvent, TraceHead};
use crate::text::{Chain, put_event, put_head, put_title};

/// Bytes that wait before they are written.
const WAITING_MAX: usize = 64 * 1024;

/// Returns the checksum of the bytes of a message (FNV-1a, folded to 32 bits).
pub fn sum_of(bytes: &[u8]) -> u32 {
    Chain::default().add(bytes)
}

/// The trace of a member, which is being written.
///
/// A send is written with all events before it, before [`TraceWriter::note`] returns. So a process that is killed leaves a
/// trace that has every message that others may have got from it.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    to: W,
    chain: Chain,
    waiting: String,
}

impl<W: Write> TraceWriter<W> {
    /// Begins the trace of a member.
    ///
    /// # Errors
    /// Those of writing.
    pub fn begin(to: W, head: &TraceHead) -> io::Result<Self> {
        let mut writer = Self { to, chain: Chain::default(), waiting: String::new() };
        put_title(&mut writer.waiting, &mut writer.chain);
        put_head(&mut writer.waiting, &mut writer.chain, head);
        writer.flush()?;
        Ok(writer)
    }

    /// Adds an event. Call it before a send begins, and behind all other events.
    ///
    /// # Errors
    /// Those of writing.
    pub fn note(&mut self, event: &TraceEvent) -> io::Result<()> {
        put_event(&mut self.waiting, &mut self.chain, event);
        let is_due = matches!(event, TraceEvent::Send { .. } | TraceEvent::Ended(_));
        if is_due || self.waiting.len() >= WAITING_MAX { self.flush() } else { Ok(()) }
    }

    /// Writes all events so far.
    ///
    /// # Errors
    /// Those of writing.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(self.waiting.as_bytes())?;
        self.waiting.clear();
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{GroupTrace, MemberName, TraceEnd, TraceLevel};

    #[test]
    fn a_send_is_written_at_once_with_all_before_it() {
        let member = MemberName { id: 2, since: 3 };
        let head = TraceHead { group: "ord".into(), member, rank: 2, host: "n2".into() };
        let mut writer = TraceWriter::begin(Vec::new(), &head).unwrap();
        let send = TraceEvent::Send { number: 1, level: TraceLevel::Total, sum: sum_of(b"a") };
        let seen = |writer: &TraceWriter<Vec<u8>>| {
            GroupTrace::decode("a trace", &writer.to).unwrap().events.len()
        };
        writer.note(&TraceEvent::Empty).unwrap();
        assert_eq!(seen(&writer), 0);
        writer.note(&send).unwrap();
        assert_eq!(seen(&writer), 2);
        writer.note(&TraceEvent::Sent(1)).unwrap();
        assert_eq!(seen(&writer), 2);
        writer.note(&TraceEvent::Ended(TraceEnd::Left)).unwrap();
        assert_eq!(seen(&writer), 4);
    }

    #[test]
    fn each_byte_of_a_message_counts() {
        assert_ne!(sum_of(b"ab"), sum_of(b"ba"));
        assert_ne!(sum_of(b""), sum_of(b"\0"));
    }
}
