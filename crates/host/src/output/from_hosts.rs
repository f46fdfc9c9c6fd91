//! Streams of processes on other hosts, whose bytes come in messages instead of pipes.

use super::{Output, Sink, Stream};
use std::os::fd::OwnedFd;
use std::time::Instant;

impl Output {
    /// Adds a stream of a process on another host, whose bytes come through [`Output::feed`]; returns the source's
    /// number.
    pub(crate) fn add_remote(&mut self, process: usize, stream: Stream, tag: String) -> usize {
        self.push_source(process, self.sink_of(stream), None, tag)
    }

    /// Adds a stream of a process on another host whose bytes go into a file of their own, called `name` in messages;
    /// returns the source's number.
    pub(crate) fn add_remote_with_file(
        &mut self,
        process: usize,
        file: OwnedFd,
        name: String,
    ) -> usize {
        self.sinks.push(Sink::new(name, file, false));
        self.push_source(process, self.sinks.len() - 1, None, String::new())
    }

    /// Takes bytes of a stream of a process on another host.
    pub(crate) fn feed(&mut self, source: usize, bytes: &[u8], now: Instant) {
        if !bytes.is_empty() && !self.sinks[self.sources[source].sink].broken {
            self.take(source, bytes, now);
        }
    }

    /// Ends a stream of a process on another host.
    pub(crate) fn finish(&mut self, source: usize) {
        self.end(source);
    }

    /// Whether every sink has room.
    pub(crate) fn all_have_room(&self) -> bool {
        self.sinks.iter().all(Sink::has_room)
    }

    /// The number of processes whose output is collected.
    pub(crate) fn processes(&self) -> usize {
        self.recent.len()
    }
}
