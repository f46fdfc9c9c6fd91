//! Regions: one-sided communication (remote memory access). Other processes read and write the
//! memory of a process without its participation. On its own host they do so by loads and stores; for
//! processes on other hosts the daemon of its host does it.
//!
//! The owner registers memory and sends its [`RegionAddress`] to other processes, which open it and
//! access it directly. A notification reaches the owner after the data that were put before it.
//!
//! ```no_run
//! # fn main() -> landeck::Result<()> {
//! # let job = landeck::Job::join()?;
//! # let world = job.world();
//! use landeck::{RegionAddress, Tag};
//! if world.rank() == 0 {
//!     let mut region = job.create_region(8 * 1000)?;
//!     world.send(&region.address().to_words(), 1, Tag(1))?;
//!     region.wait_notified(1)?;
//!     let mut values = [0.0f64; 10];
//!     region.read(0, &mut values)?;
//!     // It stays until the others have no use for it.
//! } else {
//!     let (words, _) = world.receive(0, Tag(1))?;
//!     let region = job.open_region(RegionAddress::from_words(words))?;
//!     region.put(8, &[2.0f64; 9])?;
//!     region.put_and_notify(0, &[1.0f64])?;
//! }
//! # Ok(()) }
//! ```
//!
//! Any process may write any byte at any time, so values are copied in and out, and words are
//! atomic. A region that its owner drops is gone for all processes; so is the region of an owner
//! that died ([`ErrorKind::PeerFailed`]). The memory is not reused while a process still accesses
//! it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use landeck_kernel::Peer;
use landeck_memory::plain::{bytes_of, bytes_of_mut};
use landeck_memory::{Operation, Plain, WaitRecord};
use landeck_objects::region::{self, AccessError, RegionPlace, RegionView};
use landeck_wire::relay::RelayOperation;
use landeck_wire::{Incarnation, ProcessId, SegmentId, Slot};

use self::far::FarRegion;
use crate::error::{self, Error, ErrorKind, Members, Result};
use crate::job::Job;
use crate::unstable::JobInternals;
use landeck_engine::{Shared, deadline_ns};

/// The address of a region: a plain value that may be sent in any way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegionAddress {
    process: ProcessId,
    place: u64,
    number: u64,
}

/// A region of this process. Dropping it ends the access of all other processes.
pub struct Region {
    shared: Arc<Shared>,
    process: ProcessId,
    /// The region; `None` only while it is dropped.
    region: Option<region::Region>,
    /// The number of notifications that were waited for.
    seen: u64,
}

mod far;
pub(crate) mod relay;

/// An opened region of another process, or of this one. A clone is another handle to it.
#[derive(Clone)]
pub struct RemoteRegion {
    shared: Arc<Shared>,
    address: RegionAddress,
    view: View,
}

/// The way to a region.
#[derive(Clone)]
enum View {
    /// It is in the memory of this host.
    Near(Arc<RegionView>),
    /// It is on another host.
    Far(Arc<FarRegion>),
}

impl RegionAddress {
    /// The number of words of an address.
    pub const WORDS: usize = 4;

    /// Returns the process that owns the region.
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// Returns the address as words.
    pub fn to_words(&self) -> [u64; Self::WORDS] {
        let ProcessId { segment: host, slot, incarnation } = self.process;
        let process = u64::from(slot.0) | u64::from(incarnation.0) << 32;
        [host.0, process, self.place, self.number]
    }

    /// Rebuilds an address from the words of [`RegionAddress::to_words`]. Opening the region checks
    /// it.
    pub fn from_words([host, process, place, number]: [u64; Self::WORDS]) -> Self {
        let (slot, incarnation) = (Slot(process as u32), Incarnation((process >> 32) as u32));
        Self { process: ProcessId { segment: SegmentId(host), slot, incarnation }, place, number }
    }

    fn place(&self) -> RegionPlace {
        RegionPlace { slot: self.process.slot.0, place: self.place, number: self.number }
    }
}

impl Job {
    /// Creates a region of `bytes` bytes, all zero, in this process's heap, for other processes to
    /// access.
    ///
    /// # Errors
    /// [`ErrorKind::Heap`], [`ErrorKind::Thread`].
    pub fn create_region(&self, bytes: usize) -> Result<Region> {
        error::call(&self.shared, "create_region", || {
            let mut engine = self.shared.engine.enter()?;
            engine.free_withdrawn();
            let block =
                engine.endpoint.allocate(region::Region::block_bytes(self.segment(), bytes))?;
            engine.last_region = engine.last_region.wrapping_add(1).max(1);
            let number = engine.last_region;
            drop(engine);
            let region = region::Region::new(self.segment(), self.slot(), block, bytes, number);
            Ok(Region { shared: self.shared.clone(), process: self.process(), region, seen: 0 })
        })
    }

    /// Opens the region with this address, which the process received, for example, in a message.
    ///
    /// # Errors
    /// [`crate::MailboxError::AnotherJob`], [`crate::MailboxError::GuestElsewhere`], [`ErrorKind::NoRelay`],
    /// [`ErrorKind::Access`] when the region is gone (or, in a hardened job, when the kernel permits no
    /// further mapping), [`ErrorKind::PeerFailed`] when its owner is gone.
    pub fn open_region(&self, address: RegionAddress) -> Result<RemoteRegion> {
        error::call(&self.shared, "open_region", || {
            if address.process.segment.0 != self.segment().plan().host {
                let view = View::Far(Arc::new(FarRegion::open(&self.shared, address)?));
                return Ok(RemoteRegion { shared: self.shared.clone(), address, view });
            }
            // The memory of a dead owner may still be as it was.
            let record = self.segment().slot_record(address.process.slot.0);
            if record.incarnation != address.process.incarnation.0 || record.state.is_gone() {
                return Err(gone(&self.shared, &address));
            }
            match RegionView::open(self.segment(), self.slot(), address.place()) {
                Err(AccessError::Gone) => Err(gone(&self.shared, &address)),
                Err(error) => Err(error.into()),
                Ok(view) => {
                    let view = View::Near(Arc::new(view));
                    Ok(RemoteRegion { shared: self.shared.clone(), address, view })
                }
            }
        })
    }
}

impl Region {
    /// Returns the address, for the processes that are to access the region.
    pub fn address(&self) -> RegionAddress {
        let place = self.region.as_ref().map(region::Region::place);
        let (place, number) = place.map_or((0, 0), |place| (place.place, place.number));
        RegionAddress { process: self.process, place, number }
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.region.as_ref().map_or(0, region::Region::bytes)
    }

    /// Returns whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies values from the region, starting at byte `offset`, to `into`.
    ///
    /// # Errors
    /// [`ErrorKind::Access`]: the range reaches beyond the end of the region.
    pub fn read<T: Plain>(&self, offset: usize, into: &mut [T]) -> Result<()> {
        let read = || Ok(self.there()?.read(offset, into).map_err(AccessError::from)?);
        error::call(&self.shared, "read", read)
    }

    /// Copies values to the region, starting at byte `offset`.
    ///
    /// # Errors
    /// As [`Region::read`].
    pub fn write<T: Plain>(&self, offset: usize, values: &[T]) -> Result<()> {
        let write = || Ok(self.there()?.write(offset, values).map_err(AccessError::from)?);
        error::call(&self.shared, "write", write)
    }

    /// Returns the atomic word at byte `offset`, a multiple of 8.
    ///
    /// # Errors
    /// As [`Region::read`].
    pub fn word(&self, offset: usize) -> Result<&std::sync::atomic::AtomicU64> {
        error::call(&self.shared, "word", || Ok(self.there()?.word(offset)?))
    }

    /// Returns the number of notifications that have arrived.
    ///
    /// # Errors
    /// None at present.
    pub fn notifications(&self) -> Result<u64> {
        Ok(self.there()?.notifications())
    }

    /// Waits until `more` further notifications have arrived, counted from the last wait. All data
    /// that were put before each of them are visible then.
    ///
    /// # Errors
    /// [`ErrorKind::Ended`], [`ErrorKind::Thread`].
    pub fn wait_notified(&mut self, more: u64) -> Result<()> {
        self.wait(more, None).map_err(|error| error::in_call(&self.shared, "wait_notified", error))
    }

    /// Waits as [`Region::wait_notified`] does, for at most `time`.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`], and as [`Region::wait_notified`].
    pub fn wait_notified_within(&mut self, more: u64, time: Duration) -> Result<()> {
        let waited = self.wait(more, Some(time));
        waited.map_err(|error| error::in_call(&self.shared, "wait_notified", error))
    }

    fn wait(&mut self, more: u64, time: Option<Duration>) -> Result<()> {
        let wanted = self.seen.wrapping_add(more);
        let region = self.there()?;
        let is_there = || region.notifications().wrapping_sub(wanted) < 1 << 63;
        if !self.shared.spin_once(is_there)? {
            region.waits(true);
            let record = WaitRecord { operation: Operation::Wait, ..WaitRecord::default() };
            let deadline = deadline_ns(time);
            let waited = self.shared.wait_until(&record, deadline, |_| is_there().then_some(()));
            region.waits(false);
            waited.map_err(|error| Error::of_wait(&self.shared, error, time, Members::OF_JOB))?;
        }
        self.seen = wanted;
        Ok(())
    }

    fn there(&self) -> Result<&region::Region> {
        self.region.as_ref().ok_or(ErrorKind::Access(AccessError::Gone).into())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let Some(region) = self.region.take() else { return };
        let withdrawn = region.withdraw(&self.shared.segment);
        if let Some(withdrawn) = withdrawn {
            match self.shared.engine.enter() {
                Ok(mut engine) => engine.withdrawn.push(withdrawn),
                // Nobody could use the memory again.
                Err(_) => std::mem::forget(withdrawn),
            }
        }
    }
}

impl RemoteRegion {
    /// Returns the address of the region.
    pub fn address(&self) -> RegionAddress {
        self.address
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        match &self.view {
            View::Near(view) => view.bytes(),
            View::Far(far) => far.bytes(),
        }
    }

    /// Returns whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies values to the region, starting at byte `offset`. The values are in the region when
    /// the call returns.
    ///
    /// # Errors
    /// [`ErrorKind::Access`]: the region is gone, or the range reaches beyond its end;
    /// [`ErrorKind::PeerFailed`] when its owner has died or left; [`ErrorKind::Thread`].
    pub fn put<T: Plain>(&self, offset: usize, values: &[T]) -> Result<()> {
        let far = |far: &FarRegion| far.put(&self.shared, offset, bytes_of(values), false);
        self.access("put", far, |view| view.put(offset, values))
    }

    /// Copies values to the region as [`RemoteRegion::put`] does, and then notifies the owner.
    ///
    /// # Errors
    /// As [`RemoteRegion::put`].
    pub fn put_and_notify<T: Plain>(&self, offset: usize, values: &[T]) -> Result<()> {
        let far = |far: &FarRegion| far.put(&self.shared, offset, bytes_of(values), true);
        self.access("put_and_notify", far, |view| view.put_and_notify(offset, values))
    }

    /// Copies values from the region, starting at byte `offset`, to `into`.
    ///
    /// # Errors
    /// As [`RemoteRegion::put`].
    pub fn get<T: Plain>(&self, offset: usize, into: &mut [T]) -> Result<()> {
        match &self.view {
            View::Far(far) => error::call(&self.shared, "get", || {
                far.get(&self.shared, offset, bytes_of_mut(into))
            }),
            View::Near(_) => self.access("get", |_| Ok(()), |view| view.get(offset, into)),
        }
    }

    /// Adds `number` to the word at byte `offset`, a multiple of 8, atomically. Returns the
    /// previous value.
    ///
    /// # Errors
    /// As [`RemoteRegion::put`].
    pub fn fetch_add(&self, offset: usize, number: u64) -> Result<u64> {
        let far = |far: &FarRegion| far.change(&self.shared, offset, RelayOperation::Add(number));
        self.access("fetch_add", far, |view| {
            view.with_word(offset, |word| word.fetch_add(number, Ordering::AcqRel))
        })
    }

    /// Replaces the word at byte `offset`, a multiple of 8, by `number` atomically. Returns the
    /// previous value.
    ///
    /// # Errors
    /// As [`RemoteRegion::put`].
    pub fn swap(&self, offset: usize, number: u64) -> Result<u64> {
        let far = |far: &FarRegion| far.change(&self.shared, offset, RelayOperation::Swap(number));
        self.access("swap", far, |view| {
            view.with_word(offset, |word| word.swap(number, Ordering::AcqRel))
        })
    }

    /// Replaces the word at byte `offset`, a multiple of 8, by `number` atomically if it equals
    /// `expected`. Returns the previous value.
    ///
    /// # Errors
    /// As [`RemoteRegion::put`].
    pub fn compare_swap(&self, offset: usize, expected: u64, number: u64) -> Result<u64> {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let change = |word: &std::sync::atomic::AtomicU64| match word
            .compare_exchange(expected, number, success, failure)
        {
            Ok(was) | Err(was) => was,
        };
        let operation = RelayOperation::CompareSwap { expected, new: number };
        let far = |far: &FarRegion| far.change(&self.shared, offset, operation);
        self.access("compare_swap", far, |view| view.with_word(offset, change))
    }

    /// Runs an access to the region. One thread of the process accesses at a time, since the
    /// process has one word to announce what it accesses.
    #[inline]
    fn access<R>(
        &self,
        call: &'static str,
        far: impl FnOnce(&FarRegion) -> Result<R>,
        body: impl FnOnce(&RegionView) -> std::result::Result<R, AccessError>,
    ) -> Result<R> {
        error::call(&self.shared, call, || {
            let view = match &self.view {
                View::Near(view) => view,
                View::Far(region) => return far(region),
            };
            let mut engine = self.shared.engine.enter()?;
            engine.endpoint.refresh();
            if engine.endpoint.is_gone(Peer(self.address.process.slot.0)).is_some() {
                return Err(gone(&self.shared, &self.address));
            }
            let outcome = body(view);
            drop(engine);
            outcome.map_err(|error| match error {
                AccessError::Gone => gone(&self.shared, &self.address),
                error => error.into(),
            })
        })
    }
}

/// The error for a region that is gone: its owner has dropped it, has left or has died.
#[cold]
fn gone(shared: &Shared, address: &RegionAddress) -> Error {
    let owner = address.process;
    let record = shared.segment.slot_record(owner.slot.0);
    let is_there = record.incarnation == owner.incarnation.0 && !record.state.is_gone();
    match is_there {
        true => AccessError::Gone.into(),
        false => ErrorKind::process_gone(&shared.segment, owner, Peer(owner.slot.0)).into(),
    }
}

impl std::fmt::Debug for Region {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Region").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for RemoteRegion {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RemoteRegion")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
