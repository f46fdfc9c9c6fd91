//! Stacks of this host's processes for observers on other hosts (`landeck why --stacks`).
//!
//! A debugger is slow, so a thread asks it, and this daemon reads the thread's answer from a pipe.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use landeck_launch::stacks::{read_stacks, search_stacks};
use landeck_memory::SlotState;
use landeck_wire::{HostNumber, ProcessId};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use crate::daemon_message::DaemonMessage;
use crate::parts::PartOfHost;
use crate::reactor::Reactor;

/// The searches that go on at the same time; further observers get no stacks.
const SEARCHES_MAX: usize = 8;
/// The processes of one search.
const PROCESSES_MAX: usize = 16;
/// The bytes that are read from a pipe at once.
const BLOCK_BYTES: usize = 64 * 1024;

/// The searches that go on.
#[derive(Debug, Default)]
pub(crate) struct StackSearches {
    all: HashMap<u64, Search>,
}

/// One search: the host that asked, the processes that it wants, and the part of the answer that has come.
#[derive(Debug)]
struct Search {
    host: HostNumber,
    request: u64,
    processes: Vec<ProcessId>,
    pipe: OwnedFd,
    bytes: Vec<u8>,
}

impl StackSearches {
    /// Whether a token belongs to a search.
    pub(crate) fn has(&self, token: u64) -> bool {
        self.all.contains_key(&token)
    }

    /// Begins a search for another host. Returns the answer at once if there is nothing to search.
    pub(crate) fn begin(
        &mut self,
        reactor: &mut Reactor,
        part: Option<&PartOfHost>,
        (host, request): (HostNumber, u64),
        wanted: &[ProcessId],
    ) -> Option<(HostNumber, DaemonMessage)> {
        let found = wanted.iter().filter_map(|&process| Some((process, pid_of(part?, process)?)));
        let (processes, pids): (Vec<ProcessId>, Vec<u32>) = found.take(PROCESSES_MAX).unzip();
        let has_room = self.all.len() < SEARCHES_MAX && !pids.is_empty();
        let pipe = has_room.then(|| search_stacks(pids).ok()).flatten();
        let token = reactor.token();
        let pipe = pipe.filter(|pipe| reactor.watch(pipe, token, EventFlags::IN).is_ok());
        match pipe {
            Some(pipe) => {
                let search = Search { host, request, processes, pipe, bytes: Vec::new() };
                self.all.insert(token, search);
                None
            }
            None => Some((host, DaemonMessage::Stacks { request, texts: Vec::new() })),
        }
    }

    /// Reads the pipe of a search. Returns the answer once it is complete.
    pub(crate) fn ready(&mut self, token: u64) -> Option<(HostNumber, DaemonMessage)> {
        let search = self.all.get_mut(&token)?;
        let mut block = vec![0; BLOCK_BYTES];
        match rustix::io::read(&search.pipe, &mut block) {
            Err(Errno::INTR | Errno::AGAIN) => return None,
            Ok(count @ 1..) => {
                search.bytes.extend_from_slice(&block[..count]);
                return None;
            }
            Ok(0) | Err(_) => {}
        }
        // Its pipe is closed with it, which ends the watch.
        let Search { host, request, processes, bytes, .. } = self.all.remove(&token)?;
        let texts = processes.into_iter().zip(read_stacks(&bytes)).collect();
        Some((host, DaemonMessage::Stacks { request, texts }))
    }
}

/// The number of a living process of a part.
fn pid_of(part: &PartOfHost, process: ProcessId) -> Option<u32> {
    let plan = part.segment.plan();
    let is_here = process.segment == part.segment_id() && process.slot.0 < plan.slots();
    let record = is_here.then(|| part.segment.slot_record(process.slot.0))?;
    let is_it = record.incarnation == process.incarnation.0 && record.state == SlotState::Alive;
    (is_it && record.pid != 0).then_some(record.pid)
}
