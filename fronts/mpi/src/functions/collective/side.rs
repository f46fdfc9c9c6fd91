//! The sides of a collective operation: the data that the program brings to it and gets from it.

use std::ffi::c_void;

use landeck::layout::Layout;
use landeck::raw::collective::Data;
use landeck_c_boundary::pointer;

use crate::abi::{ERR_BUFFER, Handle, IN_PLACE};
use crate::arguments::{Items, count_of, refuse_in_place};
use crate::counts::Counts;
use crate::mistake::Mistake;
use crate::objects::datatype;

/// One side of a collective operation.
#[derive(Debug)]
pub(crate) enum Side {
    /// Nothing, or nothing here.
    Nothing,
    /// Nothing here, but blocks of different lengths at the root.
    Elsewhere,
    /// It stands on the other side.
    InPlace,
    /// So many items.
    Whole(Items),
    /// So many items for each process, one block behind the other.
    Blocks(Items),
    /// A block for each process, in extents of the items.
    Varying { items: Items, counts: Vec<u64>, displacements: Vec<i64> },
    /// A block for each process, in bytes, each with a layout of its own.
    Layouts { start: *mut u8, layouts: Vec<Layout>, counts: Vec<u64>, displacements: Vec<i64> },
}

/// Arguments of one side that name one datatype: the buffer, its name, the name of the count.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) buffer: *const c_void,
    pub(super) name: &'static str,
    pub(super) count_name: &'static str,
}

/// The arguments of what goes out.
pub(super) fn sent(buffer: *const c_void, count_name: &'static str) -> Named {
    Named { buffer, name: "sendbuf", count_name }
}

/// The arguments of what comes in.
pub(super) fn received(buffer: *mut c_void, count_name: &'static str) -> Named {
    Named { buffer, name: "recvbuf", count_name }
}

impl Named {
    /// Whether it is MPI_IN_PLACE.
    #[inline]
    pub(super) fn is_in_place(self) -> bool {
        self.buffer.addr() == IN_PLACE
    }

    /// So many items.
    #[inline]
    pub(super) fn whole(self, count: i64, datatype: Handle) -> Result<Side, Mistake> {
        self.items(count, datatype).map(Side::Whole)
    }

    /// So many items for each process.
    pub(super) fn blocks(self, count: i64, datatype: Handle) -> Result<Side, Mistake> {
        self.items(count, datatype).map(Side::Blocks)
    }

    /// A block for each of so many processes.
    ///
    /// # Safety
    /// Unless null or misaligned, the arrays have so many entries.
    pub(super) unsafe fn varying(
        self,
        counts: &Counts,
        displacements: (&'static str, &Counts),
        datatype: Handle,
        processes: u32,
    ) -> Result<Side, Mistake> {
        // SAFETY: the caller's promise.
        let (counts, displacements) = unsafe {
            (
                all_counts(self.count_name, counts, processes)?,
                all_of(displacements.0, displacements.1, processes)?,
            )
        };
        self.varying_of(counts, displacements, datatype)
    }

    /// Blocks of the given lengths and displacements.
    pub(super) fn varying_of(
        self,
        counts: Vec<u64>,
        displacements: Vec<i64>,
        datatype: Handle,
    ) -> Result<Side, Mistake> {
        let most = counts.iter().copied().max().unwrap_or(0);
        // That the buffer is there, if anything is to be; where it ends is known to the program.
        let items = self.items(most.min(1) as i64, datatype)?;
        Ok(Side::Varying { items, counts, displacements })
    }

    /// A block for each process, each of a datatype of its own.
    ///
    /// # Safety
    /// Unless null or misaligned, the arrays have so many entries.
    pub(super) unsafe fn layouts(
        self,
        counts: &Counts,
        displacements: (&'static str, &Counts),
        (types_name, types): (&'static str, *const Handle),
        processes: u32,
    ) -> Result<Side, Mistake> {
        // SAFETY: the caller's promise.
        let (counts, displacements, types) = unsafe {
            (
                all_counts(self.count_name, counts, processes)?,
                all_of(displacements.0, displacements.1, processes)?,
                pointer::slice(types_name, types, processes as usize)?,
            )
        };
        let mut layouts = Vec::with_capacity(types.len());
        for (&handle, &count) in types.iter().zip(&counts) {
            let datatype = datatype::get_committed(types_name, handle)?;
            refuse_in_place(self.name, self.buffer, datatype.has_bytes(count))?;
            layouts.push(datatype.layout.clone());
        }
        let start = self.buffer.cast::<u8>().cast_mut();
        Ok(Side::Layouts { start, layouts, counts, displacements })
    }

    /// The items of a side that is not done in place.
    #[inline]
    pub(super) fn items(self, count: i64, datatype: Handle) -> Result<Items, Mistake> {
        Items::new(self.name, self.buffer, (self.count_name, count), datatype)
    }
}

/// So many counts of the program.
///
/// # Safety
/// Unless null or misaligned, the array has so many.
pub(super) unsafe fn all_counts(
    argument: &'static str,
    counts: &Counts,
    processes: u32,
) -> Result<Vec<u64>, Mistake> {
    counts.check(argument, processes as usize)?;
    (0..processes as usize)
        // SAFETY: checked above, and the caller's promise.
        .map(|index| count_of(argument, unsafe { counts.get(index) }))
        .collect()
}

/// So many displacements of the program.
///
/// # Safety
/// As [`all_counts`].
unsafe fn all_of(
    argument: &'static str,
    counts: &Counts,
    processes: u32,
) -> Result<Vec<i64>, Mistake> {
    counts.check(argument, processes as usize)?;
    // SAFETY: checked above, and the caller's promise.
    Ok((0..processes as usize).map(|index| unsafe { counts.get(index) }).collect())
}

impl Side {
    /// As the layer below sees it.
    #[inline]
    pub(crate) fn data(&self) -> Data<'_> {
        match self {
            Self::Nothing => Data::Nothing,
            Self::Elsewhere => Data::Layouts {
                start: std::ptr::null(),
                layouts: &[],
                counts: &[],
                displacements: &[],
            },
            Self::InPlace => Data::InPlace,
            Self::Whole(Items { start, count, datatype }) => {
                Data::Whole { start: *start, layout: &datatype.layout, count: *count }
            }
            Self::Blocks(Items { start, count, datatype }) => {
                Data::Blocks { start: *start, layout: &datatype.layout, count: *count }
            }
            Self::Varying { items, counts, displacements } => Data::Varying {
                start: items.start,
                layout: &items.datatype.layout,
                counts,
                displacements,
            },
            Self::Layouts { start, layouts, counts, displacements } => {
                Data::Layouts { start: *start, layouts, counts, displacements }
            }
        }
    }

    /// Where dense items of one datatype begin, if there are any.
    fn dense_start(&self) -> Option<*mut u8> {
        match self {
            Self::Whole(items) | Self::Blocks(items) => (items.datatype.is_dense
                && items.datatype.has_bytes(items.count))
            .then_some(items.start),
            _ => None,
        }
    }

    /// Refuses sides that begin at one place.
    #[inline]
    pub(super) fn check_apart(&self, other: &Self) -> Result<(), Mistake> {
        match (self.dense_start(), other.dense_start()) {
            (Some(input), Some(output)) if input == output => Err(Mistake::new(
                ERR_BUFFER,
                format_args!(
                    "sendbuf and recvbuf are both {input:p}; pass MPI_IN_PLACE instead of the one \
                     that the standard says"
                ),
            )),
            _ => Ok(()),
        }
    }
}
