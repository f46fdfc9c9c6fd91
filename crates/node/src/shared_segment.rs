//! Shared segments: memory of any size that processes of a job on one host open by name. It exists
//! until its last user has dropped it or is gone, even if its creator is gone.
//!
//! Any of these processes may write any byte at any time, so there are no slices of the memory:
//! values are copied in and out, and words are atomic. Use a semaphore or a message to tell when
//! the content is complete.
//!
//! ```no_run
//! # fn main() -> landeck::Result<()> {
//! # let job = landeck::Job::join()?;
//! # let world = job.world();
//! let field = if world.rank() == 0 {
//!     let made = job.create_segment("field", 8 * 1_000_000)?;
//!     made.write(0, &[1.5f64, 2.5])?;
//!     world.barrier()?;
//!     made
//! } else {
//!     world.barrier()?;
//!     job.open_segment("field")?
//! };
//! let mut first = [0.0f64; 2];
//! field.read(0, &mut first)?;
//! # Ok(()) }
//! ```

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use landeck_joining::objects::{self, Name, Object, ObjectError, ObjectKind, Use, map};
use landeck_memory::{Bytes, GateError, Plain, SharedArea};
use landeck_wire::ProcessId;

use crate::error::{self, Result};
use crate::job::Job;

/// Memory that several processes share. A clone is another handle to it; any thread may use it,
/// even in thread mode single.
#[derive(Clone)]
pub struct SharedSegment {
    area: SharedArea,
    object: Arc<Use>,
}

impl Job {
    /// Creates a segment of `bytes` bytes, all zero, under a name. The system provides a page when
    /// it is first touched.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Object`]: the bytes are not a name, the name is taken, the system has
    /// not enough memory (0 bytes or more than 2^40 are refused by name), or the agent does not
    /// answer.
    pub fn create_segment(&self, name: impl AsRef<[u8]>, bytes: u64) -> Result<SharedSegment> {
        error::call(&self.shared, "create_segment", || {
            let name = Name::new(name).map_err(ObjectError::from)?;
            let process = self.process();
            let made = objects::make(process, ObjectKind::Segment, Some(&name), bytes, [0; 2])?;
            SharedSegment::of(process, made)
        })
    }

    /// Creates a segment of `bytes` bytes, all zero, without a name: other processes open it by its
    /// number.
    ///
    /// # Errors
    /// As [`Job::create_segment`].
    pub fn create_unnamed_segment(&self, bytes: u64) -> Result<SharedSegment> {
        error::call(&self.shared, "create_unnamed_segment", || {
            let process = self.process();
            let made = objects::make(process, ObjectKind::Segment, None, bytes, [0; 2])?;
            SharedSegment::of(process, made)
        })
    }

    /// Opens the segment with this name.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Object`]: the bytes are not a name, no segment has the name, or the
    /// agent does not answer.
    pub fn open_segment(&self, name: impl AsRef<[u8]>) -> Result<SharedSegment> {
        error::call(&self.shared, "open_segment", || {
            let name = Name::new(name).map_err(ObjectError::from)?;
            let process = self.process();
            SharedSegment::of(process, self.open_memory(ObjectKind::Segment, &name)?)
        })
    }

    /// Opens the segment with this number, which the process received, for example, in a message.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Object`]: the segment is gone, or the agent does not answer.
    pub fn open_segment_by_number(&self, number: u64) -> Result<SharedSegment> {
        error::call(&self.shared, "open_segment_by_number", || {
            let process = self.process();
            SharedSegment::of(process, objects::open_number(process, ObjectKind::Segment, number)?)
        })
    }
}

impl SharedSegment {
    fn of(process: ProcessId, (object, file): (Object, OwnedFd)) -> Result<Self> {
        let used = Use::new(process, ObjectKind::Segment, object.number);
        Ok(Self { area: map(&file, &object)?, object: Arc::new(used) })
    }

    /// Returns the number by which other processes open it. The number may be sent in a message,
    /// and is never reused.
    pub fn number(&self) -> u64 {
        self.object.number()
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.area.len()
    }

    /// Returns whether the length is zero, which it never is.
    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Copies values from the segment, starting at byte `offset`, to `into`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::OutsideSegment`], [`crate::ErrorKind::Thread`] in a child made by fork; nothing is
    /// copied then.
    pub fn read<T: Plain>(&self, offset: usize, into: &mut [T]) -> Result<()> {
        GateError::refuse_children()?;
        Ok(self.area.read(offset, into)?)
    }

    /// Copies values to the segment, starting at byte `offset`.
    ///
    /// # Errors
    /// As [`SharedSegment::read`].
    pub fn write<T: Plain>(&self, offset: usize, values: &[T]) -> Result<()> {
        GateError::refuse_children()?;
        Ok(self.area.write(offset, values)?)
    }

    /// Returns all whole words of the segment as atomics, by which processes synchronise without
    /// messages.
    pub fn words(&self) -> &[AtomicU64] {
        self.area.words()
    }

    /// Returns all bytes of the segment, to copy from.
    pub fn bytes(&self) -> Bytes<'_> {
        self.area.bytes()
    }

    /// Returns the address of the segment, for code that uses pointers. The address is valid as
    /// long as this handle or a clone of it exists; a child made by fork shares the memory too.
    pub fn as_ptr(&self) -> *mut u8 {
        self.area.as_ptr()
    }
}

impl std::fmt::Debug for SharedSegment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (number, bytes) = (self.number(), self.len());
        formatter
            .debug_struct("SharedSegment")
            .field("number", &number)
            .field("bytes", &bytes)
            .finish()
    }
}
