//! A job's segment on one host: making it, attaching it, finding things in it.
//!
//! The header page, written once before anybody attaches:
//!
//! | bytes | word |
//! |---|---|
//! | 0..8 | magic, "LANDECK" and the version of the layout |
//! | 8..16 | host identity |
//! | 16..24 | processes (low half), guests (high half) |
//! | 24..32 | heap bytes per process |
//! | 32..40 | processors (low half), whether the job is hardened (bit 32) and its launcher serves groups (bit 33) |
//! | 40..48 | when the job began, in nanoseconds of the monotonic clock |
//! | 48..112 | the job's name |
//! | 112..624 | what all processes of the job compute with |
//! | 624..632 | job identity |
//! | 632..640 | ranks of the first world (low half), records of the far table (high half) |
//! | 640..648 | hosts whose names have room |

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use crate::holdings::Holdings;
use crate::plan::{
    HEAP_BYTES_MAX, JobName, NAME_WORDS, PAGE_BYTES, SETTINGS_WORDS, SLOTS_MAX, SegmentPlan,
};
use crate::private::bytes::Bytes;
use crate::processes::fork;
use crate::sleep_word;
use crate::system;

/// Version 14 of the layout, as its last byte says.
const MAGIC: u64 = u64::from_le_bytes(*b"LANDECK\x0e");
/// Words of the header in front of the name, in front of the settings, and all words of it.
const NUMBER_WORDS: usize = 6;
const PLAN_WORDS: usize = NUMBER_WORDS + NAME_WORDS;
const SETTINGS_END: usize = PLAN_WORDS + SETTINGS_WORDS;
const HEADER_WORDS: usize = SETTINGS_END + 3;
/// The bits of the header's processor word above the processor count.
const HARDENED_BIT: u32 = 32;
const SERVES_GROUPS_BIT: u32 = 33;
const TAKES_HOSTS_BIT: u32 = 34;

/// Where the sleep word lies in the shared page: apart from the mailbox tail.
pub(crate) const SLEEP_WORD: u64 = 256;
/// Where the head of the heap's return stack lies in the shared page.
const RETURN_WORD: u64 = 512;
/// Where the count of the groups of this process that were revoked is in it.
const REVOCATIONS_WORD: u64 = 768;
/// Where the count of what others have changed elsewhere that this process waits for is in it.
const NEWS_WORD: u64 = 896;
/// Where the number of the region that the process accesses is in it.
const HAZARD_WORD: u64 = 960;

/// One job's memory on one host. A clone is another handle to the same memory, which stays
/// mapped until the last handle goes. Any thread may use it.
#[derive(Clone)]
pub struct Segment(Arc<Inner>);

/// Where the memory of a segment comes from.
enum Origin {
    /// An anonymous file.
    File(OwnedFd),
    /// The allocator: the form that lives in this process alone.
    Allocated(NonNull<u8>),
}

struct Inner {
    plan: SegmentPlan,
    start: NonNull<u8>,
    /// The plan's total, kept at hand: every access is checked against it.
    bytes: u64,
    /// Where the shared page of slot 0 lies: of the plan too, and looked at with every message.
    shared_pages: u64,
    origin: Origin,
    /// Slots whose heap has an owner through this handle.
    heaps_taken: Mutex<Vec<u32>>,
    /// Counts of how many things in each slot this process uses.
    holdings: Holdings,
    /// Pages of others that this process has mapped for writing, in a hardened job.
    opened: Mutex<Vec<Range<u64>>>,
    /// This process's slot plus one; zero before it is known.
    own: AtomicU32,
}

// SAFETY: all access to the shared bytes goes through atomics or raw copies; the rest is constant.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// Why there is no segment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The numbers of the plan are out of range.
    #[error(
        "a segment for {processes} processes with {heap_bytes} bytes of heap each cannot be: at most {SLOTS_MAX} processes and guests with {HEAP_BYTES_MAX} bytes, a multiple of {PAGE_BYTES}, can"
    )]
    ImpossiblePlan {
        /// Processes asked for.
        processes: u32,
        /// Heap asked for.
        heap_bytes: u64,
    },
    /// The kernel refuses the memory.
    #[error(
        "the kernel gives no shared memory of {bytes} bytes of address space ({source}): \
         raise the limits (ulimit -v, ulimit -f, ulimit -n), or use a smaller heap"
    )]
    NoMemory {
        /// Address space asked for.
        bytes: u64,
        /// The kernel's error.
        source: io::Error,
    },
    /// The descriptor is not a segment of this version.
    #[error(
        "the descriptor handed over is no segment of this version of Landeck ({what}): start the program with the launcher of the same version"
    )]
    NotASegment {
        /// The reason why it is not one.
        what: &'static str,
    },
}

impl Segment {
    /// Makes a segment: a sparse anonymous file, sealed against changes of its size, close-on-exec.
    ///
    /// # Errors
    /// [`SegmentError::ImpossiblePlan`], [`SegmentError::NoMemory`].
    pub fn create(plan: &SegmentPlan) -> Result<Self, SegmentError> {
        let bytes = checked_bytes(plan)?;
        let no_memory = |source| SegmentError::NoMemory { bytes, source };
        let file = system::sealed_file(c"landeck", bytes).map_err(no_memory)?;
        let start = system::map_shared(file.as_fd(), bytes as usize).map_err(no_memory)?;
        Ok(Self::with_header(plan, start, Origin::File(file)))
    }

    /// Makes a segment in this process's own memory, for tests, model checking and address sanitizers.
    ///
    /// # Panics
    /// When the plan is not valid.
    pub fn local(plan: &SegmentPlan) -> Self {
        assert!(plan.is_valid(), "tests use valid plans");
        let layout = local_layout(plan);
        // SAFETY: the layout has at least the header page, so it is not empty.
        let allocated = unsafe { alloc_zeroed(layout) };
        let allocated = NonNull::new(allocated).unwrap_or_else(|| handle_alloc_error(layout));
        let to_page = allocated.align_offset(PAGE_BYTES as usize);
        // SAFETY: the layout has room for the plan behind the first page boundary.
        let start = unsafe { allocated.add(to_page) };
        Self::with_header(plan, start, Origin::Allocated(allocated))
    }

    fn with_header(plan: &SegmentPlan, start: NonNull<u8>, origin: Origin) -> Self {
        let segment = Self::mapped(plan.clone(), start, origin);
        for (index, word) in header_words(plan).into_iter().enumerate().rev() {
            segment.long(index as u64 * 8).store(word, Ordering::Release);
        }
        segment.begin_group_numbers(plan.own_group_numbers());
        segment
    }

    /// Attaches a segment that another process made, after checking that it is one.
    ///
    /// # Errors
    /// [`SegmentError::NotASegment`], [`SegmentError::NoMemory`].
    pub fn attach(file: OwnedFd) -> Result<Self, SegmentError> {
        let not = |what| SegmentError::NotASegment { what };
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::CLOEXEC)
            .map_err(|_| not("it cannot be kept from programs we start"))?;
        let plan = plan_of(&file)?;
        let bytes = plan.total_bytes();
        let start = system::map_shared(file.as_fd(), bytes as usize)
            .map_err(|source| SegmentError::NoMemory { bytes, source })?;
        Ok(Self::mapped(plan, start, Origin::File(file)))
    }

    fn mapped(plan: SegmentPlan, start: NonNull<u8>, origin: Origin) -> Self {
        let bytes = plan.total_bytes();
        let shared_pages = plan.shared_page(0);
        let holdings = Holdings::new(plan.slots());
        let (heaps_taken, opened, own) = (Mutex::default(), Mutex::default(), AtomicU32::new(0));
        Self(Arc::new(Inner {
            plan,
            start,
            bytes,
            shared_pages,
            origin,
            heaps_taken,
            holdings,
            opened,
            own,
        }))
    }

    /// The anonymous file, to be handed to other processes. None in the local form.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.0.origin {
            Origin::File(file) => Some(file.as_fd()),
            Origin::Allocated(_) => None,
        }
    }

    /// Gives children that this process makes by fork copies of it: nothing that they write to it reaches
    /// the job.
    pub fn keep_from_children(&self) {
        if let Some(file) = self.descriptor() {
            fork::keep_from_children(self.0.start, self.0.bytes as usize, file);
        }
    }

    /// The private copy of the plan: the only source of bounds.
    #[inline]
    pub fn plan(&self) -> &SegmentPlan {
        &self.0.plan
    }

    /// Everything in the segment, for tools that look at it and tests that overwrite it.
    pub fn bytes(&self) -> Bytes<'_> {
        // SAFETY: the mapping has this many bytes and stays while the handle is borrowed.
        unsafe { Bytes::from_raw(self.0.start, self.0.bytes as usize) }
    }

    /// Makes the pages, the area and the heap of a slot zero again, for its next process. The agent calls
    /// this when the slot's last process is gone.
    pub fn clear_slot(&self, slot: u32) {
        let plan = self.plan();
        let ranges = [
            (plan.own_page(slot), plan.own_bytes()),
            (plan.shared_page(slot), PAGE_BYTES),
            (plan.slot(slot), plan.slot_bytes()),
            (plan.heap(slot), plan.heap_bytes_per_process),
            (plan.controls(slot), plan.controls_bytes()),
        ];
        let ranges = ranges.into_iter().filter(|(_, bytes)| *bytes != 0);
        for (offset, bytes) in ranges {
            let punched = self
                .descriptor()
                .is_some_and(|file| system::punch_hole(file, offset, bytes).is_ok());
            if !punched {
                for word in (offset..offset + bytes).step_by(8) {
                    self.long(word).store(0, Ordering::Relaxed);
                }
            }
        }
    }

    /// The word that a sleeping process of this slot waits on: 1 while it sleeps.
    #[inline]
    pub fn sleep_word(&self, slot: u32) -> &AtomicU32 {
        self.word(self.shared_page(slot) + SLEEP_WORD)
    }

    /// The head of the stack by which blocks of this slot's heap come back.
    #[inline]
    pub(crate) fn return_word(&self, slot: u32) -> &AtomicU32 {
        self.word(self.shared_page(slot) + RETURN_WORD)
    }

    /// How many groups of this slot's process were revoked; sleepers look again when it grows.
    #[inline]
    pub fn revocations(&self, slot: u32) -> u32 {
        self.word(self.shared_page(slot) + REVOCATIONS_WORD).load(Ordering::Acquire)
    }

    /// Wakes the process of a slot if it sleeps. Everything stored before is visible to it.
    #[inline]
    pub fn wake(&self, slot: u32) {
        fence(Ordering::SeqCst);
        let word = self.sleep_word(slot);
        if sleep_word::is_raised(word) {
            sleep_word::wake(word);
        }
    }

    /// Tells the process of a slot that one of its groups was revoked.
    pub fn tell_revocation(&self, slot: u32) {
        let word = self.word(self.shared_page(slot) + REVOCATIONS_WORD);
        word.fetch_add(1, Ordering::SeqCst);
        self.wake(slot);
    }

    /// The number of another process's region that the process of a slot accesses; zero for none.
    #[inline]
    pub fn hazard(&self, slot: u32) -> &AtomicU64 {
        self.long(self.shared_page(slot) + HAZARD_WORD)
    }

    /// How often something outside of the segment's queues has changed for which threads of this
    /// slot's process wait: they look again when it grows.
    #[inline]
    pub fn news(&self, slot: u32) -> u32 {
        self.word(self.shared_page(slot) + NEWS_WORD).load(Ordering::Acquire)
    }

    /// Tells the process of a slot to look again at what its threads wait for.
    #[inline]
    pub fn tell_news(&self, slot: u32) {
        if slot < self.plan().slots() {
            let word = self.word(self.shared_page(slot) + NEWS_WORD);
            word.fetch_add(1, Ordering::SeqCst);
            self.wake(slot);
        }
    }

    /// Counts of how many things in each slot this process uses.
    #[inline]
    pub(crate) fn holdings(&self) -> &Holdings {
        &self.0.holdings
    }

    /// Pages of others that this process has mapped for writing.
    pub(crate) fn opened(&self) -> &Mutex<Vec<Range<u64>>> {
        &self.0.opened
    }

    /// The slot of this process, once it has joined.
    #[inline]
    pub(crate) fn own_slot(&self) -> Option<u32> {
        self.0.own.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Says which slot is this process's.
    pub(crate) fn set_own_slot(&self, slot: u32) {
        self.0.own.store(slot + 1, Ordering::Relaxed);
    }

    /// Makes the caller the owner of this slot's heap, for as long as the segment is mapped. False
    /// if it has an owner already.
    pub(crate) fn take_heap(&self, slot: u32) -> bool {
        let mut taken = self.0.heaps_taken.lock().unwrap_or_else(PoisonError::into_inner);
        let first = !taken.contains(&slot);
        if first {
            taken.push(slot);
        }
        first
    }

    /// The page of a slot that several write.
    #[inline]
    fn shared_page(&self, slot: u32) -> u64 {
        self.0.shared_pages + u64::from(slot) * PAGE_BYTES
    }

    /// The 32-bit word at an offset of the plan: one that is only ever used atomically.
    ///
    /// # Panics
    /// Outside the segment, and where no word begins.
    #[inline]
    pub fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: `place` gives four mapped bytes, aligned, that are only ever used atomically.
        unsafe { self.place(offset, 4).cast().as_ref() }
    }

    /// The 64-bit word at an offset of the plan: one that is only ever used atomically.
    ///
    /// # Panics
    /// As [`Segment::word`].
    #[inline]
    pub fn long(&self, offset: u64) -> &AtomicU64 {
        // SAFETY: `place` gives eight mapped bytes, aligned, that are only ever used atomically.
        unsafe { self.place(offset, 8).cast().as_ref() }
    }

    /// The address of `bytes` bytes at an offset, both from the plan. Checked all the same: an
    /// error in our own arithmetic must not become an access out of bounds.
    ///
    /// # Panics
    /// As [`Segment::word`].
    #[inline]
    pub fn place(&self, offset: u64, bytes: u64) -> NonNull<u8> {
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= self.0.bytes);
        assert!(fits && offset.is_multiple_of(bytes.min(8)), "offsets come from the plan");
        // SAFETY: the range was just checked against the size of the mapping.
        unsafe { self.0.start.add(offset as usize) }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        match self.origin {
            Origin::File(_) => {
                fork::forget(self.start);
                // SAFETY: the last handle goes; everything that points inside holds a handle.
                unsafe { system::unmap(self.start, self.bytes as usize) };
            }
            // SAFETY: the local form was allocated with this layout.
            Origin::Allocated(start) => unsafe {
                dealloc(start.as_ptr(), local_layout(&self.plan));
            },
        }
    }
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Segment").field("plan", self.plan()).finish_non_exhaustive()
    }
}

fn checked_bytes(plan: &SegmentPlan) -> Result<u64, SegmentError> {
    let impossible = SegmentError::ImpossiblePlan {
        processes: plan.processes,
        heap_bytes: plan.heap_bytes_per_process,
    };
    if !plan.is_valid() { Err(impossible) } else { Ok(plan.total_bytes()) }
}

/// The layout of the local form, with room in front of its first page boundary. It asks for no alignment: what is aligned
/// is zeroed byte by byte, and then a test that looks at a few pages pays for all of them.
fn local_layout(plan: &SegmentPlan) -> Layout {
    Layout::array::<u8>((plan.total_bytes() + PAGE_BYTES) as usize)
        .expect("a valid plan is far smaller than the address space")
}

fn header_words(plan: &SegmentPlan) -> [u64; HEADER_WORDS] {
    let mut words = [0; HEADER_WORDS];
    words[..NUMBER_WORDS].copy_from_slice(&[
        MAGIC,
        plan.host,
        u64::from(plan.processes) | u64::from(plan.guests) << 32,
        plan.heap_bytes_per_process,
        u64::from(plan.cpus)
            | u64::from(plan.is_hardened) << HARDENED_BIT
            | u64::from(plan.serves_groups) << SERVES_GROUPS_BIT
            | u64::from(plan.takes_hosts) << TAKES_HOSTS_BIT,
        plan.began_ns,
    ]);
    words[NUMBER_WORDS..PLAN_WORDS].copy_from_slice(&plan.name.to_words());
    words[PLAN_WORDS..SETTINGS_END].copy_from_slice(&plan.settings);
    words[SETTINGS_END..].copy_from_slice(&[
        plan.job,
        u64::from(plan.ranks) | u64::from(plan.far) << 32,
        u64::from(plan.hosts),
    ]);
    words
}

/// The plan of a file, after checking that it is a segment.
pub(crate) fn plan_of(file: &OwnedFd) -> Result<SegmentPlan, SegmentError> {
    let not = |what| SegmentError::NotASegment { what };
    if !system::is_sealed(file.as_fd()) {
        return Err(not("it is not sealed"));
    }
    let bytes = system::file_bytes(file.as_fd()).map_err(|_| not("its size is unknown"))?;
    if bytes < PAGE_BYTES {
        return Err(not("it is shorter than a page"));
    }
    let plan = read_header(file)?;
    if checked_bytes(&plan)? != bytes {
        return Err(not("its size is not that of its plan"));
    }
    Ok(plan)
}

/// Reads the header from the file, not from a mapping: the size to map stands in it.
fn read_header(file: &OwnedFd) -> Result<SegmentPlan, SegmentError> {
    let mut page = [0; 8 * HEADER_WORDS];
    let read = rustix::io::pread(file, &mut page, 0);
    let word = |index: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&page[index * 8..index * 8 + 8]);
        u64::from_ne_bytes(word)
    };
    if read != Ok(page.len()) || word(0) != MAGIC {
        return Err(SegmentError::NotASegment { what: "its first word is another" });
    }
    Ok(SegmentPlan {
        host: word(1),
        processes: word(2) as u32,
        guests: (word(2) >> 32) as u32,
        heap_bytes_per_process: word(3),
        cpus: word(4) as u32,
        is_hardened: word(4) >> HARDENED_BIT & 1 != 0,
        serves_groups: word(4) >> SERVES_GROUPS_BIT & 1 != 0,
        began_ns: word(5),
        name: JobName::from_words(std::array::from_fn(|index| word(NUMBER_WORDS + index))),
        settings: std::array::from_fn(|index| word(PLAN_WORDS + index)),
        job: word(SETTINGS_END),
        ranks: word(SETTINGS_END + 1) as u32,
        far: (word(SETTINGS_END + 1) >> 32) as u32,
        hosts: word(SETTINGS_END + 2) as u32,
        takes_hosts: word(4) >> TAKES_HOSTS_BIT & 1 != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> SegmentPlan {
        SegmentPlan { heap_bytes_per_process: 1 << 20, ..SegmentPlan::new(0xabc, 2) }
    }

    #[test]
    fn an_attached_segment_is_the_same_memory() {
        let made = Segment::create(&small()).unwrap();
        let file = made.descriptor().unwrap().try_clone_to_owned().unwrap();
        let attached = Segment::attach(file).unwrap();
        assert_eq!(attached.plan(), made.plan());
        made.long(made.plan().heap(1)).store(77, Ordering::Release);
        assert_eq!(attached.long(attached.plan().heap(1)).load(Ordering::Acquire), 77);
    }

    #[test]
    fn other_descriptors_are_refused() {
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(matches!(Segment::attach(reader.into()), Err(SegmentError::NotASegment { .. })));
        let empty = system::sealed_file(c"empty", 0).unwrap();
        assert!(matches!(Segment::attach(empty), Err(SegmentError::NotASegment { .. })));
        let zeroes = system::sealed_file(c"zeroes", 1 << 20).unwrap();
        assert!(matches!(Segment::attach(zeroes), Err(SegmentError::NotASegment { .. })));
    }

    #[test]
    fn settings_come_with_the_segment_whatever_they_are() {
        let settings = std::array::from_fn(|index| u64::MAX - index as u64);
        let plan = SegmentPlan { settings, job: 7, ranks: 9, far: 5, hosts: 3, ..small() };
        let made = Segment::create(&plan).unwrap();
        let file = made.descriptor().unwrap().try_clone_to_owned().unwrap();
        assert_eq!(Segment::attach(file).unwrap().plan(), &plan);
    }

    #[test]
    fn a_job_keeps_its_name() {
        for (is_hardened, serves_groups) in [(false, true), (true, false), (true, true)] {
            let takes_hosts = !is_hardened;
            let (name, began_ns) = (JobName::new("heat"), 1 << 60);
            let plan =
                SegmentPlan { name, began_ns, is_hardened, serves_groups, takes_hosts, ..small() };
            let made = Segment::create(&plan).unwrap();
            let file = made.descriptor().unwrap().try_clone_to_owned().unwrap();
            assert_eq!(Segment::attach(file).unwrap().plan(), made.plan());
        }
    }

    #[test]
    fn a_header_that_lies_about_the_size_is_refused() {
        let made = Segment::create(&small()).unwrap();
        made.long(24).store(2 << 20, Ordering::Release);
        let file = made.descriptor().unwrap().try_clone_to_owned().unwrap();
        assert!(matches!(Segment::attach(file), Err(SegmentError::NotASegment { .. })));
    }

    #[test]
    fn a_cleared_slot_is_zero_and_its_neighbour_is_not() {
        for segment in [Segment::create(&small()).unwrap(), Segment::local(&small())] {
            let plan = segment.plan().clone();
            let places = |slot| {
                let pages = [plan.own_page(slot), plan.shared_page(slot)];
                let area = [plan.board(slot, 0), plan.mailbox(slot), plan.slot(slot + 1) - 8];
                let heap = [plan.heap(slot), plan.heap(slot + 1) - 8];
                [&pages[..], &area, &heap].concat().into_iter().map(|place| segment.long(place))
            };
            let all = || places(0).chain(places(1));
            all().for_each(|word| word.store(1, Ordering::Relaxed));
            segment.clear_slot(0);
            let is = |word: &AtomicU64, value| word.load(Ordering::Relaxed) == value;
            assert!(places(0).all(|word| is(word, 0)) && places(1).all(|word| is(word, 1)));
        }
    }

    #[test]
    fn impossible_sizes_are_errors() {
        let plan = SegmentPlan { heap_bytes_per_process: 7, ..small() };
        assert!(matches!(Segment::create(&plan), Err(SegmentError::ImpossiblePlan { .. })));
        let plan = SegmentPlan {
            heap_bytes_per_process: 1 << 40,
            processes: 16_000,
            ranks: 16_000,
            ..small()
        };
        assert!(matches!(Segment::create(&plan), Err(SegmentError::NoMemory { .. })));
    }
}
