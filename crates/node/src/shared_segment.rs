//! Shared segments: memory of any size that processes of a job on one host open by name and use
//! together, until the last of them has dropped it or is gone, whoever made it.
//!
//! Every byte may be written by any of them at any time, so there are no slices of it: values are
//! copied in and out, and words are atomic. A semaphore or a message tells when what is there is
//! whole.
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

use landeck_host::objects::{self, Object, ObjectError, ObjectKind, ObjectName, Use, map};
use landeck_memory::{Bytes, GateError, Plain, SharedArea};
use landeck_wire::ProcessId;

use crate::error::{self, Result};
use crate::job::Job;

/// Memory that several processes use. A clone is another handle to it; any thread may use it, also
/// in thread mode single.
#[derive(Clone)]
pub struct SharedSegment {
    area: SharedArea,
    object: Arc<Use>,
}

impl Job {
    /// Makes a segment of so many bytes, all zero, under a name. Its pages are there once they are
    /// touched.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Object`]: the bytes are no name, the name is taken, there is no such memory
    /// (0 bytes or more than 2^40 are refused by name), the agent does not answer.
    pub fn create_segment(&self, name: impl AsRef<[u8]>, bytes: u64) -> Result<SharedSegment> {
        error::call(&self.shared, "create_segment", || {
            let name = ObjectName::new(name).map_err(ObjectError::from)?;
            let process = self.process();
            let made = objects::make(process, ObjectKind::Segment, Some(&name), bytes, [0; 2])?;
            SharedSegment::of(process, made)
        })
    }

    /// The same without a name: others open it by its number.
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

    /// Opens the segment under a name.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Object`]: the bytes are no name, nobody has made it, the agent does not
    /// answer.
    pub fn open_segment(&self, name: impl AsRef<[u8]>) -> Result<SharedSegment> {
        error::call(&self.shared, "open_segment", || {
            let name = ObjectName::new(name).map_err(ObjectError::from)?;
            let process = self.process();
            SharedSegment::of(process, objects::open(process, ObjectKind::Segment, &name)?)
        })
    }

    /// Opens the segment with a number, which came in a message.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Object`]: it is gone, the agent does not answer.
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

    /// The number by which others open it: it may travel in a message, and never means another.
    pub fn number(&self) -> u64 {
        self.object.number()
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.area.len()
    }

    /// Whether it has none. There always are some.
    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Copies values out, from byte `offset` on.
    ///
    /// # Errors
    /// [`crate::ErrorKind::OutsideSegment`], [`crate::ErrorKind::Thread`] in a child made by fork; nothing is
    /// copied then.
    pub fn read<T: Plain>(&self, offset: usize, into: &mut [T]) -> Result<()> {
        GateError::refuse_children()?;
        Ok(self.area.read(offset, into)?)
    }

    /// Copies values in, from byte `offset` on.
    ///
    /// # Errors
    /// As [`SharedSegment::read`].
    pub fn write<T: Plain>(&self, offset: usize, values: &[T]) -> Result<()> {
        GateError::refuse_children()?;
        Ok(self.area.write(offset, values)?)
    }

    /// All whole words of it: what processes agree by without a message.
    pub fn words(&self) -> &[AtomicU64] {
        self.area.words()
    }

    /// All of it, to be copied out of.
    pub fn bytes(&self) -> Bytes<'_> {
        self.area.bytes()
    }

    /// Where it begins, for code that knows pointers. It is there as long as this handle or a clone
    /// of it; a child made by fork shares it too.
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
