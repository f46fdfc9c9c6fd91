//! The messages that a process sends to its neighbours, or receives from them: a block for each, in their order.

use std::ffi::c_void;

use landeck_c_boundary::pointer;

use crate::abi::Handle;
use crate::arguments::{Items, count_of, refuse_in_place};
use crate::counts::Counts;
use crate::mistake::Mistake;
use crate::objects::exchange::ExchangeMessage;
use crate::objects::neighbours::Neighbour;

/// The arguments of one side: the buffer, its name and that of the counts, and those at the other
/// ends of the edges.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) buffer: *const c_void,
    pub(super) name: &'static str,
    pub(super) count_name: &'static str,
    pub(super) neighbours: &'a [Neighbour],
}

/// Messages, without those from and to MPI_PROC_NULL.
type Messages = Vec<ExchangeMessage<Items>>;

impl Side<'_> {
    /// Messages of the same items to all neighbours.
    pub(super) fn same(self, count: i64, datatype: Handle) -> Result<Messages, Mistake> {
        let items = self.first(count, datatype)?;
        self.messages(|_| Ok(items))
    }

    /// So many items for each, one block behind the other.
    pub(super) fn blocks(self, count: i64, datatype: Handle) -> Result<Messages, Mistake> {
        let items = self.first(count, datatype)?;
        let block_bytes = items.datatype.layout.extent_bytes()?.saturating_mul(count);
        self.messages(|place| Ok(moved(items, block_bytes.saturating_mul(place as i64))))
    }

    /// As many items for each as the program says, where it says, in extents of an item.
    ///
    /// # Safety
    /// Unless null or misaligned, the arrays have an entry for each neighbour.
    pub(super) unsafe fn varying(
        self,
        counts: Counts,
        (displacements_name, displacements): (&'static str, Counts),
        datatype: Handle,
    ) -> Result<Messages, Mistake> {
        counts.check(self.count_name, self.neighbours.len())?;
        displacements.check(displacements_name, self.neighbours.len())?;
        let none = self.items(0, datatype)?;
        let extent_bytes = none.datatype.layout.extent_bytes()?;
        self.messages(|place| {
            // SAFETY: checked above; the rest is the caller's promise.
            let (count, displacement) = unsafe { (counts.get(place), displacements.get(place)) };
            let count = count_of(self.count_name, count)?;
            if count > 0 && self.neighbours[place].rank.is_some() {
                // That the buffer is there; where it ends is known to the program.
                self.items(1, datatype)?;
            }
            Ok(moved(Items { count, ..none }, extent_bytes.saturating_mul(displacement)))
        })
    }

    /// Messages with a datatype for each neighbour and displacements in bytes. The buffer may be
    /// MPI_BOTTOM, and the displacements addresses.
    ///
    /// # Safety
    /// Unless null or misaligned, the arrays have an entry for each neighbour.
    pub(super) unsafe fn layouts(
        self,
        counts: Counts,
        (displacements_name, displacements): (&'static str, *const i64),
        (types_name, types): (&'static str, *const Handle),
    ) -> Result<Messages, Mistake> {
        counts.check(self.count_name, self.neighbours.len())?;
        // SAFETY: the caller's promise.
        let (displacements, types) = unsafe {
            let length = self.neighbours.len();
            let displacements = pointer::slice(displacements_name, displacements, length)?;
            (displacements, pointer::slice(types_name, types, length)?)
        };
        self.messages(|place| {
            // SAFETY: checked above; the rest is the caller's promise.
            let count = unsafe { counts.get(place) };
            let is_there = self.neighbours[place].rank.is_some();
            let buffer = self.buffer.wrapping_byte_offset(displacements[place] as isize);
            let items = Self { buffer, ..self }.items_if(is_there, count, types[place])?;
            refuse_in_place(self.name, self.buffer, items.datatype.has_bytes(items.count))?;
            Ok(items)
        })
    }

    /// A message to or from each neighbour except MPI_PROC_NULL. `block` is called for all.
    fn messages(
        self,
        block: impl Fn(usize) -> Result<Items, Mistake>,
    ) -> Result<Messages, Mistake> {
        let mut messages = Vec::with_capacity(self.neighbours.len());
        for (place, &Neighbour { rank, way }) in self.neighbours.iter().enumerate() {
            let items = block(place)?;
            messages.extend(rank.map(|rank| ExchangeMessage { rank, way, items }));
        }
        Ok(messages)
    }

    /// The items of the first block. If all neighbours are MPI_PROC_NULL, there need be no buffer.
    fn first(self, count: i64, datatype: Handle) -> Result<Items, Mistake> {
        let is_there = self.neighbours.iter().any(|neighbour| neighbour.rank.is_some());
        self.items_if(is_there, count, datatype)
    }

    /// Items whose buffer is checked only if a neighbour gets or gives them.
    fn items_if(self, is_there: bool, count: i64, datatype: Handle) -> Result<Items, Mistake> {
        count_of(self.count_name, count)?;
        self.items(if is_there { count } else { 0 }, datatype)
    }

    fn items(self, count: i64, datatype: Handle) -> Result<Items, Mistake> {
        Items::new(self.name, self.buffer, (self.count_name, count), datatype)
    }
}

/// Items so many bytes further on.
fn moved(items: Items, bytes: i64) -> Items {
    Items { start: items.start.wrapping_offset(bytes as isize), ..items }
}
