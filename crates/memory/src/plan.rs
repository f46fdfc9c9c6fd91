//! How a segment is divided: sizes and offsets, and nothing else.
//!
//! ```text
//! header page | membership pages | own pages | shared pages | slot 0 | ... | cells | heap 0 | ...
//!   ... in a hardened job: | controls of heap 0 | controls of heap 1 | ...
//!   ... | common page | far table | world table | host names
//!   ... in a job that is on several hosts, or may be: | links of hosts | words of the relay | rings of the relay | credits of the relay
//!   ... | records of the store | data of the store
//! slot: boards | mailbox | ring credits | rings
//! ring: lines | bulk area
//! ```
//!
//! Own pages lie side by side, and so do shared pages: a process that reads those of all touches few page-table
//! pages. Within the slots, megabytes apart, each would take a page of the table in every process, and a page walk
//! at every look.
//!
//! All sizes are multiples of a page, so every page has one intended writer (or is named as one with several).
//! The file is sparse: an untouched page costs nothing.

use std::ops::Range;

/// Bytes of a page, and of a page's worth of alignment.
pub const PAGE_BYTES: u64 = 4096;
/// Slots of a process's mailbox queue.
pub const MAILBOX_SLOTS: u64 = 128;
/// Bytes of a mailbox slot: two lines.
pub const MAILBOX_SLOT_BYTES: u64 = 128;
/// Lines of a ring. A message is one line.
pub const RING_LINES: u64 = 128;
/// Bytes of a line, on every processor we know.
pub const LINE_BYTES: u64 = 64;
/// Bytes of a ring's bulk area: data of messages too long for their line.
pub const RING_BULK_BYTES: u64 = 64 * 1024;
/// Bytes of a ring's credit word with the room that keeps others off its lines.
pub const CREDIT_BYTES: u64 = 128;
/// Bytes of the control lines of a block of a heap.
pub(crate) const CONTROL_BYTES: u64 = 3 * LINE_BYTES;
/// Blocks of a heap begin so far apart at least.
pub(crate) const BLOCK_BYTES_MIN: u64 = CONTROL_BYTES + LINE_BYTES;
/// Most rings that one process sends on; further peers are reached through their mailbox.
pub const RINGS_MAX: u64 = 64;
/// Boards that one process can lead: groups whose first member on this host it is.
pub const BOARDS: u64 = 1024;
/// Bytes of the shared words of a board.
pub const BOARD_BYTES: u64 = PAGE_BYTES;
/// Bytes of data that a cell has room for, in front of them, and of all of it. Data do not begin with a page,
/// because buffers do, or a little behind it: where one place lies within its page just behind the other, copies are
/// slow.
pub const CELL_BYTES: u64 = 128 * 1024;
pub(crate) const CELL_HEAD_BYTES: u64 = 2048;
const CELL_STRIDE_BYTES: u64 = CELL_BYTES + PAGE_BYTES;
/// Cells that each process has at first, and of all together, at most: for boards, and as many for messages.
const CELLS_EACH_MAX: u32 = 8;
const CELLS_MAX: u32 = 128;
/// Where the lines of the first world's board begin in a process's own page.
pub(crate) const WORLD_LINES: u64 = 512;
/// The offset of the slot references in a process's own page.
const SLOT_REFERENCES: u64 = 2880;
/// Bytes of one record of the membership.
pub const RECORD_BYTES: u64 = 32;
/// Bytes in front of the membership records.
pub const MEMBERSHIP_HEAD_BYTES: u64 = 128;
/// Words for what all processes of the job compute with.
pub const SETTINGS_WORDS: usize = 64;
/// Most slots of a segment.
pub const SLOTS_MAX: u32 = 16 * 1024;
/// Most bytes of a process's heap.
pub const HEAP_BYTES_MAX: u64 = 1 << 40;
/// Most ranks of a job's first world, on all its hosts.
pub const RANKS_MAX: u32 = 1 << 20;
/// Most records of the far table.
pub const FAR_MAX: u32 = 1 << 20;
/// Most hosts for whose records a segment has room for.
pub const HOSTS_MAX: u32 = 1 << 16;
/// Numbers of groups that there can be, on all hosts of a job. Number 0 is never given out.
pub const GROUP_NUMBERS: u32 = 1 << 27;
/// Numbers that the arbiter leases to a host at a time.
pub const GROUP_BLOCK: u32 = 4096;
/// Bytes of one record of the far table: a line.
pub const FAR_RECORD_BYTES: u64 = LINE_BYTES;
/// Bytes of a host's record: its name, and a word.
pub(crate) const HOST_BYTES: u64 = NAME_WORDS as u64 * 8 + 8;
/// Most records of messages in a store. There is one for each so many bytes of it.
const STORED_RECORDS_MAX: u64 = 4096;
const STORED_BYTES_MEAN: u64 = 16 * 1024;
/// Hosts of whose links a segment has room: the first ones of which there are links.
pub const LINK_HOSTS_MAX: u64 = 32;
/// Words of a link of two hosts: latency, gap, and 1 KiB.
pub const LINK_WORDS: usize = 3;
/// Bytes of an entry of the world table, in either direction.
pub(crate) const WORLD_ENTRY_BYTES: u64 = 4;

/// The numbers that decide where everything in a segment lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPlan {
    /// The random number of the `SegmentId`.
    pub host: u64,
    /// Processes of the job's first world: slots 0 to `processes` - 1.
    pub processes: u32,
    /// Further slots for processes that come later or from elsewhere.
    pub guests: u32,
    /// Address space of each process's heap; pages are used only when touched.
    pub heap_bytes_per_process: u64,
    /// Processors that the processes may use together, as the segment's maker counted.
    pub cpus: u32,
    /// Whether processes map what others write for reading alone ([`Segment::harden`]).
    ///
    /// [`Segment::harden`]: crate::Segment::harden
    pub is_hardened: bool,
    /// Whether the launcher serves named groups, or is about to.
    pub serves_groups: bool,
    /// The job's name, for people.
    pub name: JobName,
    /// When the job began, in nanoseconds of the monotonic clock.
    pub began_ns: u64,
    /// Settings that all processes of the job share: opaque words here. The reader that takes them from a segment
    /// checks them.
    pub settings: [u64; SETTINGS_WORDS],
    /// The random number of the `JobId`: the same on all hosts of the job. On one host it is that of the `SegmentId`.
    pub job: u64,
    /// Ranks of the job's first world on all its hosts. Equal to `processes` if they are all here.
    pub ranks: u32,
    /// Records of the far table: processes of other hosts that this segment has room for.
    pub far: u32,
    /// Hosts whose names this segment has room for.
    pub hosts: u32,
    /// Whether hosts may be added to the job even if its first world is on one host.
    pub takes_hosts: bool,
}

/// The name of a job, shown to people and used to join it: text without control characters.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct JobName([u64; NAME_WORDS]);

/// Words of a job's name.
pub(crate) const NAME_WORDS: usize = 8;

impl JobName {
    /// Most bytes of a name.
    pub const BYTES_MAX: usize = NAME_WORDS * 8;

    /// The name in this text, without control characters and cut where it is too long.
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; Self::BYTES_MAX];
        let mut length = 0;
        for letter in text.chars().filter(|letter| !letter.is_control()) {
            let Some(place) = bytes.get_mut(length..length + letter.len_utf8()) else { break };
            letter.encode_utf8(place);
            length += letter.len_utf8();
        }
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at * 8 + byte]));
        Self(std::array::from_fn(word))
    }

    /// The name in these words, which may be anything.
    pub(crate) fn from_words(words: [u64; NAME_WORDS]) -> Self {
        let mut bytes = [0; Self::BYTES_MAX];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Self::new(&String::from_utf8_lossy(&bytes[..end]))
    }

    pub(crate) fn to_words(self) -> [u64; NAME_WORDS] {
        self.0
    }
}

impl std::fmt::Display for JobName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.0.map(u64::to_ne_bytes);
        let bytes = bytes.as_flattened();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        formatter.pad(&String::from_utf8_lossy(&bytes[..end]))
    }
}

impl std::fmt::Debug for JobName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}", self.to_string())
    }
}

/// Slots for guests in a plan that does not say otherwise.
pub const GUESTS: u32 = 16;
/// Records of the far table in a plan that does not say otherwise.
pub const FAR: u32 = 64;
/// Hosts' names in a plan that does not say otherwise.
pub const HOSTS: u32 = 64;
/// Heap address space of one process, and of all together, in a plan that does not say otherwise.
const HEAP_BYTES: u64 = 384 << 20;
const HEAP_BYTES_TOGETHER: u64 = 24 << 30;

impl SegmentPlan {
    /// How much a process can lay on a board at a time: a third of its heap, for which there is room
    /// whatever else fills that ([`SegmentPlan::reserve`]).
    pub fn deposit_bytes(&self) -> u64 {
        self.heap_bytes_per_process / 3
    }

    /// Where in each heap the reserve begins, the part at its end in which deposits alone are laid: with a page
    /// for control lines.
    pub fn reserve(&self) -> u64 {
        let common = self.heap_bytes_per_process - self.deposit_bytes();
        common.saturating_sub(PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES
    }

    /// A plan for so many processes, with usual sizes.
    pub fn new(host: u64, processes: u32) -> Self {
        let fair_share = HEAP_BYTES_TOGETHER / u64::from(processes.max(1) + GUESTS);
        Self {
            host,
            processes,
            guests: GUESTS,
            heap_bytes_per_process: fair_share.min(HEAP_BYTES) / PAGE_BYTES * PAGE_BYTES,
            cpus: 1,
            is_hardened: false,
            serves_groups: false,
            name: JobName::default(),
            began_ns: 0,
            settings: [0; SETTINGS_WORDS],
            job: host,
            ranks: processes,
            far: FAR,
            hosts: HOSTS,
            takes_hosts: false,
        }
    }

    /// Whether every number is one that a segment can have.
    pub fn is_valid(&self) -> bool {
        self.processes.checked_add(self.guests).is_some_and(|slots| slots > 0 && slots <= SLOTS_MAX)
            && self.heap_bytes_per_process.is_multiple_of(PAGE_BYTES)
            && self.heap_bytes_per_process <= HEAP_BYTES_MAX
            && self.ranks >= self.processes
            && self.ranks <= RANKS_MAX
            && self.far <= FAR_MAX
            && self.hosts <= HOSTS_MAX
    }

    /// Whether the first world has ranks on other hosts.
    #[inline]
    pub fn world_spans_hosts(&self) -> bool {
        self.ranks != self.processes
    }

    /// Whether the segment has tables for other hosts: those of the first world, or those that may be added to the job.
    #[inline]
    pub fn has_host_tables(&self) -> bool {
        self.takes_hosts || self.world_spans_hosts()
    }

    /// The numbers of groups that this host has from the beginning. If it has none, the arbiter leases them. It leases the
    /// lower half, so a host that has the whole first world of a job has the upper one to itself.
    pub fn own_group_numbers(&self) -> Range<u32> {
        match (self.has_host_tables(), self.world_spans_hosts() || self.processes == 0) {
            (false, _) => 1..GROUP_NUMBERS,
            (true, false) => GROUP_NUMBERS / 2..GROUP_NUMBERS,
            (true, true) => 0..0,
        }
    }

    /// More processes than processors: waiting means yielding, and senders can afford a fence.
    #[inline]
    pub fn is_oversubscribed(&self) -> bool {
        self.processes > self.cpus
    }

    /// Processes and guests together.
    #[inline]
    pub fn slots(&self) -> u32 {
        self.processes + self.guests
    }

    /// Rings that each process can send on.
    pub fn rings(&self) -> u64 {
        u64::from(self.slots()).min(RINGS_MAX)
    }

    /// Bytes of the whole segment.
    pub fn total_bytes(&self) -> u64 {
        self.stored_data() + self.store_bytes()
    }

    /// Bytes that messages may take whose data stay on this host: a quarter of what its processes have. There are none without
    /// tables for other hosts.
    pub fn store_bytes(&self) -> u64 {
        let processes = u64::from(self.processes.max(1));
        match self.has_host_tables() {
            true => self.heap_bytes_per_process * processes / 4 / PAGE_BYTES * PAGE_BYTES,
            false => 0,
        }
    }

    /// Records of such messages.
    pub fn stored_records(&self) -> u32 {
        (self.store_bytes() / STORED_BYTES_MEAN).min(STORED_RECORDS_MAX) as u32
    }

    /// Where the records of the store begin, with a line in front of them.
    pub fn store(&self) -> u64 {
        let credits = u64::from(self.relay_rings()) * CREDIT_BYTES;
        self.relay_credit(0) + credits.next_multiple_of(PAGE_BYTES)
    }

    /// Where the data of the store begin.
    pub fn stored_data(&self) -> u64 {
        let records = match self.store_bytes() {
            0 => 0,
            _ => (1 + u64::from(self.stored_records())) * LINE_BYTES,
        };
        self.store() + records.next_multiple_of(PAGE_BYTES)
    }

    /// Slots for which the relay of this host has a ring: none without tables for other hosts.
    pub fn relay_rings(&self) -> u32 {
        if self.has_host_tables() { self.slots() } else { 0 }
    }

    /// The line of words in which the relay says how it stands with the process of a slot.
    pub fn relay_words(&self, slot: u32) -> u64 {
        self.links() + self.links_bytes() + u64::from(slot) * LINE_BYTES
    }

    /// Where the links of the hosts begin: a word with the number of this host, plus one, those of the hosts with links, then the
    /// words of each pair.
    pub fn links(&self) -> u64 {
        let names = (u64::from(self.hosts) * HOST_BYTES).next_multiple_of(PAGE_BYTES);
        self.host_name(0) + names
    }

    /// Bytes of that: none without tables for other hosts.
    pub fn links_bytes(&self) -> u64 {
        let hosts = LINK_HOSTS_MAX;
        let words = 1 + hosts + hosts * (hosts - 1) / 2 * LINK_WORDS as u64;
        if self.has_host_tables() { (words * 8).next_multiple_of(PAGE_BYTES) } else { 0 }
    }

    /// The ring on which the relay sends to the process of a slot: its lines, then its bulk area.
    pub fn relay_ring(&self, slot: u32) -> u64 {
        let words = u64::from(self.relay_rings()) * LINE_BYTES;
        let first = self.relay_words(0) + words.next_multiple_of(PAGE_BYTES);
        first + u64::from(slot) * Self::RING_BYTES
    }

    /// The credit word of that ring, which the process of the slot writes.
    pub fn relay_credit(&self, slot: u32) -> u64 {
        self.relay_ring(self.relay_rings()) + u64::from(slot) * CREDIT_BYTES
    }

    /// The page of words that all processes write and that belong to no slot: the numbers of groups.
    pub fn common_page(&self) -> u64 {
        self.controls(self.slots())
    }

    /// The record of a process on another host.
    pub fn far_record(&self, far: u32) -> u64 {
        self.common_page() + PAGE_BYTES + u64::from(far) * FAR_RECORD_BYTES
    }

    /// Where the world table begins: an entry for each rank, then one for each slot and each far record. It has no
    /// bytes if the first world is on this host alone.
    pub fn world_table(&self) -> u64 {
        self.far_record(self.far).next_multiple_of(PAGE_BYTES)
    }

    /// Bytes of that.
    pub fn world_table_bytes(&self) -> u64 {
        let entries = u64::from(self.ranks) + u64::from(self.slots()) + u64::from(self.far);
        match self.world_spans_hosts() {
            true => (entries * WORLD_ENTRY_BYTES).next_multiple_of(PAGE_BYTES),
            false => 0,
        }
    }

    /// The record of a host: its name, and behind it a word.
    pub fn host_name(&self, host: u32) -> u64 {
        self.world_table() + self.world_table_bytes() + u64::from(host) * HOST_BYTES
    }

    /// Where the membership words begin.
    pub fn membership(&self) -> u64 {
        PAGE_BYTES
    }

    /// The page that the process of a slot alone writes. With very many slots there are two.
    #[inline]
    pub fn own_page(&self, slot: u32) -> u64 {
        let records = MEMBERSHIP_HEAD_BYTES + u64::from(self.slots()) * RECORD_BYTES;
        let first = self.membership() + records.next_multiple_of(PAGE_BYTES);
        first + u64::from(slot) * self.own_bytes()
    }

    /// Bytes of that.
    pub(crate) fn own_bytes(&self) -> u64 {
        (SLOT_REFERENCES + self.slot_reference_bytes()).next_multiple_of(PAGE_BYTES)
    }

    /// The page of a slot that several write: mailbox tail, sleep word.
    #[inline]
    pub fn shared_page(&self, slot: u32) -> u64 {
        self.own_page(self.slots()) + u64::from(slot) * PAGE_BYTES
    }

    /// Where the area of a slot begins.
    #[inline]
    pub fn slot(&self, slot: u32) -> u64 {
        self.shared_page(self.slots()) + u64::from(slot) * self.slot_bytes()
    }

    /// Bytes of the area of a slot.
    #[inline]
    pub fn slot_bytes(&self) -> u64 {
        let credits = (self.rings() * CREDIT_BYTES).next_multiple_of(PAGE_BYTES);
        BOARDS * BOARD_BYTES
            + MAILBOX_SLOTS * MAILBOX_SLOT_BYTES
            + credits
            + self.rings() * Self::RING_BYTES
    }

    const RING_BYTES: u64 = RING_LINES * LINE_BYTES + RING_BULK_BYTES;

    /// The lines of the first world's board, in the process's own page.
    #[inline]
    pub fn world_lines(&self, slot: u32) -> u64 {
        self.own_page(slot) + WORLD_LINES
    }

    /// The shared words of the first world's board.
    #[inline]
    pub fn world_board(&self) -> u64 {
        self.board(0, 0)
    }

    /// The slot references of a process, in its own page.
    pub(crate) fn slot_references(&self, slot: u32) -> u64 {
        self.own_page(slot) + SLOT_REFERENCES
    }

    /// Bytes of that: a bit for each slot, in words of eight bytes.
    fn slot_reference_bytes(&self) -> u64 {
        u64::from(self.slots()).div_ceil(64) * 8
    }

    /// The shared words of a board that the process of `slot` leads.
    #[inline]
    pub fn board(&self, slot: u32, board: u64) -> u64 {
        self.slot(slot) + board * BOARD_BYTES
    }

    /// The slots of the mailbox queue.
    #[inline]
    pub fn mailbox(&self, slot: u32) -> u64 {
        self.board(slot, BOARDS)
    }

    /// The credit word of a ring that `slot` sends on; its receiver writes it.
    pub fn credit(&self, slot: u32, ring: u64) -> u64 {
        self.mailbox(slot) + MAILBOX_SLOTS * MAILBOX_SLOT_BYTES + ring * CREDIT_BYTES
    }

    /// The lines of a ring that `slot` sends on.
    pub fn ring(&self, slot: u32, ring: u64) -> u64 {
        let credits = (self.rings() * CREDIT_BYTES).next_multiple_of(PAGE_BYTES);
        self.credit(slot, 0) + credits + ring * Self::RING_BYTES
    }

    /// The bulk area of a ring that `slot` sends on.
    pub fn bulk(&self, slot: u32, ring: u64) -> u64 {
        self.ring(slot, ring) + RING_LINES * LINE_BYTES
    }

    /// Cells that each process of the first world has at first for its board, and as many for messages.
    /// With very many there are none.
    #[inline]
    pub fn cells_each(&self) -> u32 {
        match self.processes {
            0 | 1 => 0,
            processes => (CELLS_MAX / processes).min(CELLS_EACH_MAX),
        }
    }

    /// Handoff buffers of the first world's board.
    #[inline]
    pub fn board_cells(&self) -> u32 {
        self.cells_each() * self.processes
    }

    /// All handoff buffers: those of the first world's board, and behind them as many for messages.
    pub fn cells(&self) -> u32 {
        2 * self.board_cells()
    }

    /// Where the data of a cell lie.
    #[inline]
    pub fn cell(&self, cell: u32) -> u64 {
        self.slot(self.slots()) + u64::from(cell) * CELL_STRIDE_BYTES + CELL_HEAD_BYTES
    }

    /// The heap of a slot.
    #[inline]
    pub fn heap(&self, slot: u32) -> u64 {
        let heaps = self.cell(self.cells()) - CELL_HEAD_BYTES;
        heaps + u64::from(slot) * self.heap_bytes_per_process
    }

    /// Where the control lines of the blocks of a slot's heap are, in a hardened job: others write them,
    /// and not the heap.
    pub fn controls(&self, slot: u32) -> u64 {
        self.heap(self.slots()) + u64::from(slot) * self.controls_bytes()
    }

    /// Bytes of that: none where the control lines stand in front of the blocks.
    pub fn controls_bytes(&self) -> u64 {
        match self.is_hardened {
            true => controls_of(self.heap_bytes_per_process),
            false => 0,
        }
    }

    /// The largest heap that has room in so much of the segment, with what goes with it.
    pub fn heap_within(&self, bytes: u64) -> u64 {
        let whole = |heap: u64| heap / PAGE_BYTES * PAGE_BYTES;
        match self.is_hardened {
            true => {
                let parts = BLOCK_BYTES_MIN + CONTROL_BYTES;
                whole((bytes / parts * BLOCK_BYTES_MIN).saturating_sub(PAGE_BYTES))
            }
            false => whole(bytes),
        }
    }
}

const fn controls_of(heap_bytes: u64) -> u64 {
    (heap_bytes / BLOCK_BYTES_MIN * CONTROL_BYTES).next_multiple_of(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_follow_each_other_without_gap_or_overlap() {
        for processes in [1, 2, 3, 32, 1000] {
            let plan = SegmentPlan::new(1, processes);
            assert!(plan.is_valid());
            let last_ring = plan.rings() - 1;
            for slot in [0, plan.slots() - 1] {
                assert_eq!(plan.bulk(slot, last_ring) + RING_BULK_BYTES, plan.slot(slot + 1));
                assert!(plan.credit(slot, last_ring) + CREDIT_BYTES <= plan.ring(slot, 0));
                let hardened = SegmentPlan { is_hardened: true, ..plan.clone() };
                assert_eq!(
                    hardened.heap(slot),
                    plan.heap(slot),
                    "the same words at the same places"
                );
                assert_eq!(hardened.controls(0), plan.common_page());
                assert_eq!(hardened.controls(plan.slots()), hardened.common_page());
                for start in [
                    hardened.controls(slot),
                    plan.own_page(slot),
                    plan.shared_page(slot),
                    plan.slot(slot),
                    plan.mailbox(slot),
                    plan.ring(slot, last_ring),
                    plan.heap(slot),
                ] {
                    assert_eq!(start % PAGE_BYTES, 0);
                }
            }
            assert_eq!(plan.own_page(plan.slots()), plan.shared_page(0));
            assert_eq!(plan.shared_page(plan.slots()), plan.slot(0));
            assert_eq!(plan.cell(0), plan.slot(plan.slots()) + CELL_HEAD_BYTES);
            assert_eq!(plan.heap(0) + CELL_HEAD_BYTES, plan.cell(plan.cells()));
            assert!(plan.cell(1) >= plan.cell(0) + CELL_BYTES);
            assert!(
                plan.board_cells() <= CELLS_MAX
                    && (plan.cells() > 0) == (2..=128).contains(&processes)
            );
            assert_eq!(plan.heap(plan.slots()), plan.common_page());
        }
    }

    #[test]
    fn the_areas_for_several_hosts_follow_each_other() {
        for (ranks, far, hosts) in [(3, FAR, HOSTS), (3, 0, 0), (5, 2, 2), (5_000, 4_997, 300)] {
            let plan = SegmentPlan { ranks, far, hosts, ..SegmentPlan::new(1, 3) };
            assert!(plan.is_valid() && plan.world_spans_hosts() == (ranks != 3));
            assert_eq!(plan.far_record(0), plan.common_page() + PAGE_BYTES);
            assert!(plan.far_record(far) <= plan.world_table());
            let table = plan.world_table_bytes();
            let entries = u64::from(ranks + plan.slots() + far);
            assert_eq!(table == 0, ranks == 3, "one host has no world table");
            assert!(table == 0 || table >= entries * WORLD_ENTRY_BYTES);
            assert_eq!(plan.host_name(0), plan.world_table() + table);
            assert!(plan.host_name(hosts) <= plan.links());
            assert_eq!(plan.links() + plan.links_bytes(), plan.relay_words(0));
            assert_eq!(plan.links_bytes() == 0, ranks == 3);
            assert!(plan.relay_words(plan.relay_rings()) <= plan.relay_ring(0));
            assert_eq!(plan.relay_ring(plan.relay_rings()), plan.relay_credit(0));
            assert!(plan.relay_credit(plan.relay_rings()) <= plan.total_bytes());
            assert_eq!(
                (plan.relay_ring(0) % PAGE_BYTES, plan.relay_credit(0) % PAGE_BYTES),
                (0, 0)
            );
            for start in [plan.common_page(), plan.far_record(0), plan.world_table()] {
                assert_eq!(start % PAGE_BYTES, 0);
            }
            assert_eq!((plan.host_name(0) % PAGE_BYTES, plan.total_bytes() % PAGE_BYTES), (0, 0));
        }
        let one = SegmentPlan::new(1, 3);
        assert_eq!(
            one.total_bytes() - one.common_page(),
            4 * PAGE_BYTES,
            "one host has four pages: the numbers of groups, far records, two of hosts"
        );
    }

    #[test]
    fn the_own_page_has_room_for_all_that_is_in_it() {
        for (slots, pages) in [(18, 1), (9_728, 1), (9_729, 2), (SLOTS_MAX, 2)] {
            let plan = SegmentPlan::new(1, slots - GUESTS);
            assert!(
                plan.own_page(1) + crate::remark::REMARK_END_WORDS as u64 * 8
                    <= plan.slot_references(1)
            );
            assert!(plan.slot_reference_bytes() * 8 >= u64::from(plan.slots()));
            assert!(plan.slot_references(1) + plan.slot_reference_bytes() <= plan.own_page(2));
            assert_eq!(plan.own_page(2) - plan.own_page(1), pages * PAGE_BYTES, "{slots}");
        }
    }

    /// The sums in `docs/memory-layout.md`.
    #[test]
    fn the_document_has_the_right_sums() {
        let sums = [4, 32, 1000].map(|processes| {
            let plan = SegmentPlan::new(1, processes);
            let slots = plan.slot(plan.slots()) - plan.slot(0);
            (
                plan.own_page(0),
                plan.slot(0) - plan.own_page(0),
                plan.slot_bytes(),
                slots,
                plan.cell(plan.cells()) - plan.cell(0),
                plan.heap_bytes_per_process,
                plan.total_bytes(),
            )
        });
        let document = [
            (8_192, 163_840, 5_689_344, 113_786_880, 8_650_752, 402_653_184, 8_175_689_728),
            (8_192, 393_216, 7_757_824, 372_375_552, 34_603_008, 402_653_184, 19_734_749_184),
            (36_864, 8_323_072, 8_937_472, 9_080_471_552, 0, 25_362_432, 34_857_078_784),
        ];
        assert_eq!(sums, document);
    }

    #[test]
    fn a_heap_and_what_goes_with_it_have_room_where_it_was_measured() {
        for is_hardened in [false, true] {
            for bytes in [0, 4_095, 8_192, 100_000, 1 << 30, HEAP_BYTES_MAX] {
                let plan = SegmentPlan { is_hardened, ..SegmentPlan::new(1, 2) };
                let heap_bytes_per_process = plan.heap_within(bytes);
                let plan = SegmentPlan { heap_bytes_per_process, ..plan };
                assert!(plan.is_valid());
                assert!(heap_bytes_per_process + plan.controls_bytes() <= bytes);
                let more = SegmentPlan {
                    heap_bytes_per_process: heap_bytes_per_process + 3 * PAGE_BYTES,
                    ..plan
                };
                assert!(more.heap_bytes_per_process + more.controls_bytes() > bytes);
            }
        }
    }

    #[test]
    fn names_are_cut_to_whole_letters_and_survive_their_words() {
        let name = JobName::new("h\u{1b}eat");
        assert_eq!((name.to_string(), JobName::from_words(name.to_words())), ("heat".into(), name));
        let long = JobName::new(&"ü".repeat(40)).to_string();
        assert_eq!(long, "ü".repeat(JobName::BYTES_MAX / 2));
        let cut = JobName::new(&format!("{}ü", "x".repeat(JobName::BYTES_MAX - 1)));
        assert_eq!(cut.to_string().len(), JobName::BYTES_MAX - 1);
        assert!(!JobName::from_words([u64::MAX; NAME_WORDS]).to_string().is_empty());
        assert!(!JobName::from_words([0x0a1b_0a1b; NAME_WORDS]).to_string().contains('\n'));
    }

    #[test]
    fn numbers_that_would_overflow_are_refused() {
        let good = SegmentPlan::new(1, 4);
        assert!(!SegmentPlan { processes: u32::MAX, ..good.clone() }.is_valid());
        assert!(!SegmentPlan { processes: SLOTS_MAX, ..good.clone() }.is_valid());
        assert!(!SegmentPlan { heap_bytes_per_process: 1 << 63, ..good.clone() }.is_valid());
        assert!(!SegmentPlan { heap_bytes_per_process: 5, ..good.clone() }.is_valid());
        assert!(!SegmentPlan { ranks: 3, ..good.clone() }.is_valid());
        assert!(!SegmentPlan { ranks: RANKS_MAX + 1, ..good.clone() }.is_valid());
        assert!(!SegmentPlan { far: FAR_MAX + 1, ..good.clone() }.is_valid());
        assert!(!SegmentPlan { hosts: HOSTS_MAX + 1, ..good.clone() }.is_valid());
        assert!(!SegmentPlan { processes: 0, guests: 0, ranks: 0, ..good }.is_valid());
    }
}
