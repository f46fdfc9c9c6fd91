//! Processes that are added to a part while its job runs.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use landeck_host::cpu_set::CpuSet;
use landeck_host::environment::{Identity, Node};
use landeck_host::placement::BindTo;
use landeck_host::process::{Image, Streams};
use landeck_host::standard_output;
use landeck_protocols::door::{StartRefusal, StartWish};
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};

use super::{HostPart, image_of};
use crate::guardian::GuardianError;
use crate::messages::PartEvent;
use crate::output::Stream;
use crate::plan::{PlannedProgram, check_directory, placement_here};
use crate::program;
use crate::request::LaunchError;

/// A process that is to be added.
#[derive(Debug)]
pub(super) struct Adding {
    /// Its number.
    pub(super) rank: u32,
    /// The rank whose program's environment and directory it gets.
    pub(super) like: u32,
    /// The wish for it.
    pub(super) wish: Box<StartWish>,
    /// Its streams, or the reason why there are none.
    pub(super) streams: Result<Streams, StartRefusal>,
}

impl HostPart {
    /// Has the guardian start one more process. Its streams end with it, whether or not it runs.
    pub(super) fn add_process(&mut self, adding: Adding) {
        let Adding { rank, like, wish, streams } = adding;
        let started = streams.and_then(|streams| {
            let image = self.added_image(like, &wish, &streams[1])?;
            let guardian = self.guardian.as_mut().ok_or(StartRefusal::Ending)?;
            let refuse = |error: GuardianError| StartRefusal::System(error.to_string());
            guardian.start_process(rank, &image, &streams).map_err(refuse)
        });
        if let Err(refusal) = started {
            self.events.push_back(PartEvent::NotAdded { rank, refusal });
        }
    }

    /// Opens the streams of an added process, which has no input.
    pub(super) fn open_added(&mut self, rank: u32) -> Result<Streams, StartRefusal> {
        let nothing = File::open("/dev/null").map(OwnedFd::from);
        let opened = nothing.and_then(|nothing| {
            let [output, error] = self.open_outputs(rank)?;
            Ok([nothing, output, error])
        });
        opened.map_err(|error| {
            for stream in self.streams_without_pipe(rank) {
                self.events.push_back(PartEvent::OutputEnded { rank, stream });
            }
            StartRefusal::System(format!("its pipes cannot be opened ({error}); raise `ulimit -n`"))
        })
    }

    /// The output streams that a process has no open pipe for.
    fn streams_without_pipe(&self, rank: u32) -> Vec<Stream> {
        let all = if self.spec.is_merged { &[Stream::Output][..] } else { &Stream::ALL };
        let is_open = |stream: Stream| {
            let mut sources = self.sources.iter();
            sources.any(|it| (it.rank, it.stream) == (rank, stream) && it.pipe.is_some())
        };
        all.iter().copied().filter(|&stream| !is_open(stream)).collect()
    }

    /// The image of an added process. The guardian adds what it alone knows.
    fn added_image(
        &self,
        like: u32,
        wish: &StartWish,
        stdout: &OwnedFd,
    ) -> Result<Image, StartRefusal> {
        let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        let place = self.spec.ranks.get(like as usize).map_or(0, |rank| rank.program);
        let program = &self.spec.programs[usize::from(place)];
        let directory = wish.directory.as_deref().map(|bytes| PathBuf::from(text(bytes)));
        let directory = directory.unwrap_or_else(|| program.directory.clone());
        let refuse = |error: LaunchError| StartRefusal::Program(error.to_string());
        check_directory(&directory).map_err(refuse)?;
        let mut environment = program.environment.clone();
        for (name, value) in &wish.variables {
            environment.set(&text(name), &text(value));
        }
        let search = environment.get("PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
        let file = program::find(&text(&wish.program), Some(&directory), search);
        let file = file.map_err(|error| StartRefusal::Program(error.to_string()))?;
        let job = SegmentId(self.segment().plan().host).to_string();
        let stdout = standard_output::name_of(stdout);
        let first = self.spec.first_address.clone();
        let node = Node { number: self.place as u32, first: &first };
        let identity = Identity {
            rank: None,
            processes: self.spec.processes(),
            slot: 0,
            local_processes: self.ranks.len() as u32,
            job: &job,
            stdout: stdout.as_deref(),
            node: self.spec.has_machine().then_some(node),
        };
        let name = std::iter::once(text(&wish.program));
        let arguments = name.chain(wish.arguments.iter().map(|bytes| text(bytes))).collect();
        let planned = PlannedProgram { file, arguments, directory, environment, processes: 1 };
        Ok(image_of(&planned, identity, self.cpus_of_job()))
    }

    /// The processors that the job has here for itself; `None` if it shares them with others.
    fn cpus_of_job(&self) -> Option<CpuSet> {
        let booked = &self.spec.hosts[self.place].cores;
        let placed = placement_here(booked, 1, self.spec.map_by, Some(BindTo::None), None);
        placed.ok()?.cpus.into_iter().next().flatten()
    }

    /// Queues that an added process has joined.
    pub(super) fn tell_joined(&mut self, slot: u32) {
        let Some(rank) = self.translator.rank_of(slot) else { return };
        let (segment, record) = (self.segment(), self.segment().slot_record(slot));
        let (host, incarnation) = (SegmentId(segment.plan().host), Incarnation(record.incarnation));
        let process = ProcessId { segment: host, slot: Slot(slot), incarnation };
        self.events.push_back(PartEvent::Joined { rank, process, pid: record.pid });
    }
}
