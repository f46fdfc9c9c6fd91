//! The collective operations of a group.

use std::fmt;

/// A collective operation. Data are counted in *blocks*, numbered alike by all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// No member leaves before all have entered. Messages are words without blocks.
    Barrier = 1,
    /// The root's data go to all members. A block is a segment of the data.
    Broadcast = 2,
    /// The data of all members go to the root. Block `m` is member `m`'s.
    Gather = 3,
    /// The root's data are divided among all. Block `m` is member `m`'s.
    Scatter = 4,
    /// The data of all members are combined; the root has the result. A block is a segment.
    Reduce = 5,
    /// The data of all members go to all members. Block `m` is member `m`'s.
    AllGather = 6,
    /// The data of all members are combined; all have the result. A block is a segment.
    AllReduce = 7,
    /// Each member has a block for each member. Block `s * size + d` goes from `s` to `d`.
    AllToAll = 8,
    /// The data of all members are combined; the result is divided among them. Block `m` of the result is member `m`'s.
    ReduceScatter = 9,
    /// Member `m` has the combined data of members 0 to `m`. A block is a segment.
    Scan = 10,
    /// Member `m` has the combined data of the members before it; member 0 nothing.
    ExclusiveScan = 11,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 11] = [
        Self::Barrier,
        Self::Broadcast,
        Self::Gather,
        Self::Scatter,
        Self::Reduce,
        Self::AllGather,
        Self::AllReduce,
        Self::AllToAll,
        Self::ReduceScatter,
        Self::Scan,
        Self::ExclusiveScan,
    ];

    /// The operation with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| *operation as u8 == number)
    }

    /// The operation with this name, or with one of its [other names](Self::aliases).
    pub fn from_name(name: &str) -> Option<Self> {
        let is_it =
            |operation: &Self| operation.as_str() == name || operation.aliases().contains(&name);
        Self::ALL.into_iter().find(is_it)
    }

    /// Its names in MPI and elsewhere, where they differ.
    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Broadcast => &["bcast"],
            Self::AllGather => &["all-gather"],
            Self::AllReduce => &["all-reduce"],
            Self::AllToAll => &["all-to-all"],
            Self::ReduceScatter => &["reduce_scatter"],
            Self::ExclusiveScan => &["exscan"],
            Self::Barrier | Self::Gather | Self::Scatter | Self::Reduce | Self::Scan => &[],
        }
    }

    /// Its name on the command line and in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Broadcast => "broadcast",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Reduce => "reduce",
            Self::AllGather => "allgather",
            Self::AllReduce => "allreduce",
            Self::AllToAll => "alltoall",
            Self::ReduceScatter => "reduce-scatter",
            Self::Scan => "scan",
            Self::ExclusiveScan => "exclusive-scan",
        }
    }

    /// Whether one member plays a part of its own.
    pub const fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Gather | Self::Scatter | Self::Reduce)
    }

    /// Whether data are combined.
    pub const fn reduces(self) -> bool {
        matches!(
            self,
            Self::Reduce | Self::AllReduce | Self::ReduceScatter | Self::Scan | Self::ExclusiveScan
        )
    }

    /// Whether each member's block may go in segments over hosts. Segment `s` of the block in place `p` has the number
    /// `s * size + p` then.
    pub const fn has_blocks_in_segments(self) -> bool {
        matches!(self, Self::Gather | Self::Scatter | Self::AllGather | Self::ReduceScatter)
    }

    /// Whether the blocks are segments of one piece of data, as many as the plan likes.
    pub const fn has_segments(self) -> bool {
        matches!(
            self,
            Self::Broadcast | Self::Reduce | Self::AllReduce | Self::Scan | Self::ExclusiveScan
        )
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_back() {
        for operation in Operation::ALL {
            assert_eq!(Operation::from_number(operation as u8), Some(operation));
            assert_eq!(Operation::from_name(operation.as_str()), Some(operation));
            for alias in operation.aliases() {
                assert_eq!(Operation::from_name(alias), Some(operation));
            }
        }
        assert_eq!((Operation::from_number(0), Operation::from_name("")), (None, None));
    }
}
