//! Collective operations that return when this process has done its part.

mod all_reduce;
mod broadcast;

pub(crate) use all_reduce::allreduce;
pub(crate) use broadcast::bcast;

use landeck::raw::collective::Data;

use crate::arguments::Items;

/// Items as one side of a collective operation.
pub(crate) fn whole(items: &Items) -> Data<'static> {
    Data::Whole { start: items.start, layout: &items.datatype.layout, count: items.count }
}
