//! What a communicator knows of its topology.

/// A virtual topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    Cartesian(Cartesian),
    Graph(Graph),
    Distributed(Distributed),
}

/// A grid; the last dimension varies fastest with the rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cartesian {
    pub(crate) dimensions: Vec<i32>,
    /// Whether the grid comes round in each dimension.
    pub(crate) periods: Vec<bool>,
}

/// A graph that every member knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Graph {
    /// Where the neighbours of each node end in `edges`.
    pub(crate) index: Vec<i32>,
    pub(crate) edges: Vec<i32>,
}

/// A graph of which each member knows its own neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Distributed {
    pub(crate) sources: Vec<i32>,
    pub(crate) destinations: Vec<i32>,
    /// The weights of both, if there are any.
    pub(crate) weights: Option<(Vec<i32>, Vec<i32>)>,
}
