//! With whom a process talks in operations between neighbours, as its topology says.

use crate::abi::PROC_NULL;
use crate::objects::topology::{Cartesian, Topology};

/// The neighbours of a process, in the order of the blocks of its data.
#[derive(Debug)]
pub(crate) struct Neighbours {
    pub(crate) sources: Vec<Neighbour>,
    pub(crate) destinations: Vec<Neighbour>,
}

/// One end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Neighbour {
    /// None where a grid ends.
    pub(crate) rank: Option<usize>,
    /// Tells the messages of edges apart whose ends are the same. Those of the same way stay in
    /// their order.
    pub(crate) way: Way,
}

/// The way of a message along an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Way {
    /// An edge of a graph, or down in a dimension of a grid.
    #[default]
    Down,
    Up,
}

impl Neighbours {
    /// Those of a rank.
    pub(crate) fn of(topology: &Topology, rank: u32) -> Self {
        match topology {
            Topology::Cartesian(grid) => Self::in_grid(grid, rank as i32),
            Topology::Graph(graph) => {
                let ranks = graph.neighbours(rank as usize);
                Self { sources: along_edges(ranks), destinations: along_edges(ranks) }
            }
            Topology::Distributed(graph) => Self {
                sources: along_edges(&graph.sources),
                destinations: along_edges(&graph.destinations),
            },
        }
    }

    /// In each dimension the one below and the one above. The one below receives the messages that go down from
    /// above, also where both are the same.
    fn in_grid(grid: &Cartesian, rank: i32) -> Self {
        let mut neighbours = Self { sources: Vec::new(), destinations: Vec::new() };
        for dimension in 0..grid.dimensions.len() {
            for (distance, there, back) in [(-1, Way::Down, Way::Up), (1, Way::Up, Way::Down)] {
                let rank = grid.neighbour(rank, dimension, distance);
                neighbours.destinations.push(Neighbour::new(rank, there));
                neighbours.sources.push(Neighbour::new(rank, back));
            }
        }
        neighbours
    }
}

impl Neighbour {
    fn new(rank: i32, way: Way) -> Self {
        // Topologies have ranks of the communicator, or nobody.
        Self { rank: (rank != PROC_NULL).then_some(rank as usize), way }
    }
}

fn along_edges(ranks: &[i32]) -> Vec<Neighbour> {
    ranks.iter().map(|rank| Neighbour::new(*rank, Way::Down)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::topology::Distributed;

    fn ranks(neighbours: &[Neighbour]) -> Vec<Option<usize>> {
        neighbours.iter().map(|neighbour| neighbour.rank).collect()
    }

    #[test]
    fn grids_have_two_neighbours_in_each_dimension() {
        let grid = Cartesian { dimensions: vec![2, 3], periods: vec![false, true] };
        let found = Neighbours::of(&Topology::Cartesian(grid), 1);
        assert_eq!(ranks(&found.destinations), [None, Some(4), Some(0), Some(2)]);
        assert_eq!(ranks(&found.sources), ranks(&found.destinations));
    }

    #[test]
    fn data_that_go_down_come_from_above() {
        let pair = Cartesian { dimensions: vec![2], periods: vec![true] };
        let found = Neighbours::of(&Topology::Cartesian(pair), 0);
        let ways = |side: &[Neighbour]| side.iter().map(|it| it.way).collect::<Vec<_>>();
        assert_eq!(ranks(&found.destinations), [Some(1), Some(1)]);
        assert_eq!(ways(&found.destinations), [Way::Down, Way::Up]);
        assert_eq!(ways(&found.sources), [Way::Up, Way::Down]);
    }

    #[test]
    fn edges_of_a_graph_stay_in_their_order() {
        let graph = Distributed { sources: vec![2, 2], destinations: vec![1], weights: None };
        let found = Neighbours::of(&Topology::Distributed(graph), 0);
        assert_eq!(ranks(&found.sources), [Some(2), Some(2)]);
        assert_eq!(found.destinations, [Neighbour { rank: Some(1), way: Way::Down }]);
    }
}
