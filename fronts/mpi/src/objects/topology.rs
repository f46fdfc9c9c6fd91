//! The topology of a communicator.

use crate::abi::PROC_NULL;

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

impl Cartesian {
    /// How many processes stand in the grid.
    pub(crate) fn processes(&self) -> usize {
        let many = |product: usize, dimension: &i32| product.saturating_mul(*dimension as usize);
        self.dimensions.iter().fold(1, many)
    }

    /// The rank at a place; none outside of the grid. A grid that comes round has no outside there.
    pub(crate) fn rank(&self, coordinates: &[i32]) -> Option<i32> {
        let mut rank = 0;
        for ((place, dimension), comes_round) in
            coordinates.iter().zip(&self.dimensions).zip(&self.periods)
        {
            let inside = if *comes_round { place.rem_euclid(*dimension) } else { *place };
            if !(0..*dimension).contains(&inside) {
                return None;
            }
            rank = rank * dimension + inside;
        }
        Some(rank)
    }

    /// The place of a rank.
    pub(crate) fn coordinates(&self, rank: i32) -> Vec<i32> {
        let mut left = rank;
        let mut coordinates = vec![0; self.dimensions.len()];
        for (place, dimension) in coordinates.iter_mut().zip(&self.dimensions).rev() {
            (*place, left) = (left % dimension, left / dimension);
        }
        coordinates
    }

    /// Returns the rank at a distance from another one in one dimension; MPI_PROC_NULL outside of the grid.
    pub(crate) fn neighbour(&self, rank: i32, dimension: usize, distance: i64) -> i32 {
        let mut coordinates = self.coordinates(rank);
        let place = i64::from(coordinates[dimension]) + distance;
        let size = i64::from(self.dimensions[dimension]);
        let inside = if self.periods[dimension] { place.rem_euclid(size) } else { place };
        if !(0..size).contains(&inside) {
            return PROC_NULL;
        }
        coordinates[dimension] = inside as i32;
        self.rank(&coordinates).unwrap_or(PROC_NULL)
    }
}

impl Graph {
    /// The neighbours of a node.
    pub(crate) fn neighbours(&self, node: usize) -> &[i32] {
        let start = node.checked_sub(1).map_or(0, |before| self.index[before]);
        &self.edges[start as usize..self.index[node] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_a_grid_have_ranks() {
        let grid = Cartesian { dimensions: vec![2, 3], periods: vec![false, true] };
        assert_eq!(grid.processes(), 6);
        for rank in 0..6 {
            assert_eq!(grid.rank(&grid.coordinates(rank)), Some(rank));
        }
        assert_eq!(grid.coordinates(4), [1, 1]);
        assert_eq!(grid.rank(&[1, -1]), Some(5));
        assert_eq!(grid.rank(&[2, 0]), None);
        assert_eq!((grid.neighbour(0, 0, -1), grid.neighbour(0, 0, 1)), (PROC_NULL, 3));
        assert_eq!((grid.neighbour(0, 1, -1), grid.neighbour(0, 1, 4)), (2, 1));
        assert_eq!(grid.neighbour(0, 0, i64::from(i32::MIN)), PROC_NULL);
        let point = Cartesian { dimensions: vec![], periods: vec![] };
        assert_eq!((point.processes(), point.rank(&[])), (1, Some(0)));
    }

    #[test]
    fn nodes_of_a_graph_have_neighbours() {
        let graph = Graph { index: vec![2, 3, 3], edges: vec![1, 2, 0] };
        assert_eq!(graph.neighbours(0), [1, 2]);
        assert_eq!((graph.neighbours(1), graph.neighbours(2)), (&[0][..], &[][..]));
    }
}
