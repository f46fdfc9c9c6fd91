//! The shells of the chapter `topology`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::topology as bodies;

works! {
    fn MPI_Cart_coords / PMPI_Cart_coords(comm: Handle, rank: c_int, maxdims: c_int, coords: *mut c_int) on Origin::Communicator(comm) =>
    bodies::cart_coords(comm, rank, maxdims, coords)
}

works! {
    fn MPI_Cart_create / PMPI_Cart_create(comm_old: Handle, ndims: c_int, dims: *const c_int, periods: *const c_int, reorder: c_int, comm_cart: *mut Handle) on Origin::Communicator(comm_old) =>
    bodies::cart_create(comm_old, ndims, dims, periods, reorder, comm_cart)
}

works! {
    fn MPI_Cart_get / PMPI_Cart_get(comm: Handle, maxdims: c_int, dims: *mut c_int, periods: *mut c_int, coords: *mut c_int) on Origin::Communicator(comm) =>
    bodies::cart_get(comm, maxdims, dims, periods, coords)
}

works! {
    fn MPI_Cart_map / PMPI_Cart_map(comm: Handle, ndims: c_int, dims: *const c_int, periods: *const c_int, newrank: *mut c_int) on Origin::Communicator(comm) =>
    bodies::cart_map(comm, ndims, dims, periods, newrank)
}

works! {
    fn MPI_Cart_rank / PMPI_Cart_rank(comm: Handle, coords: *const c_int, rank: *mut c_int) on Origin::Communicator(comm) =>
    bodies::cart_rank(comm, coords, rank)
}

works! {
    fn MPI_Cart_shift / PMPI_Cart_shift(comm: Handle, direction: c_int, disp: c_int, rank_source: *mut c_int, rank_dest: *mut c_int) on Origin::Communicator(comm) =>
    bodies::cart_shift(comm, direction, disp, rank_source, rank_dest)
}

works! {
    fn MPI_Cart_sub / PMPI_Cart_sub(comm: Handle, remain_dims: *const c_int, newcomm: *mut Handle) on Origin::Communicator(comm) =>
    bodies::cart_sub(comm, remain_dims, newcomm)
}

works! {
    fn MPI_Cartdim_get / PMPI_Cartdim_get(comm: Handle, ndims: *mut c_int) on Origin::Communicator(comm) =>
    bodies::cartdim_get(comm, ndims)
}

works! {
    fn MPI_Dims_create / PMPI_Dims_create(nnodes: c_int, ndims: c_int, dims: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::dims_create(nnodes, ndims, dims) }
}

works! {
    fn MPI_Dist_graph_create / PMPI_Dist_graph_create(comm_old: Handle, n: c_int, sources: *const c_int, degrees: *const c_int, destinations: *const c_int, weights: *const c_int, info: Handle, reorder: c_int, comm_dist_graph: *mut Handle) on Origin::Communicator(comm_old) =>
    bodies::dist_graph_create(comm_old, n, sources, degrees, destinations, weights, info, reorder, comm_dist_graph)
}

works! {
    fn MPI_Dist_graph_create_adjacent / PMPI_Dist_graph_create_adjacent(comm_old: Handle, indegree: c_int, sources: *const c_int, sourceweights: *const c_int, outdegree: c_int, destinations: *const c_int, destweights: *const c_int, info: Handle, reorder: c_int, comm_dist_graph: *mut Handle) on Origin::Communicator(comm_old) =>
    bodies::dist_graph_create_adjacent(comm_old, indegree, sources, sourceweights, outdegree, destinations, destweights, info, reorder, comm_dist_graph)
}

works! {
    fn MPI_Dist_graph_neighbors / PMPI_Dist_graph_neighbors(comm: Handle, maxindegree: c_int, sources: *mut c_int, sourceweights: *mut c_int, maxoutdegree: c_int, destinations: *mut c_int, destweights: *mut c_int) on Origin::Communicator(comm) =>
    bodies::dist_graph_neighbors(comm, maxindegree, sources, sourceweights, maxoutdegree, destinations, destweights)
}

works! {
    fn MPI_Dist_graph_neighbors_count / PMPI_Dist_graph_neighbors_count(comm: Handle, indegree: *mut c_int, outdegree: *mut c_int, weighted: *mut c_int) on Origin::Communicator(comm) =>
    bodies::dist_graph_neighbors_count(comm, indegree, outdegree, weighted)
}

works! {
    fn MPI_Graph_create / PMPI_Graph_create(comm_old: Handle, nnodes: c_int, indx: *const c_int, edges: *const c_int, reorder: c_int, comm_graph: *mut Handle) on Origin::Communicator(comm_old) =>
    bodies::graph_create(comm_old, nnodes, indx, edges, reorder, comm_graph)
}

works! {
    fn MPI_Graph_get / PMPI_Graph_get(comm: Handle, maxindex: c_int, maxedges: c_int, indx: *mut c_int, edges: *mut c_int) on Origin::Communicator(comm) =>
    bodies::graph_get(comm, maxindex, maxedges, indx, edges)
}

works! {
    fn MPI_Graph_map / PMPI_Graph_map(comm: Handle, nnodes: c_int, indx: *const c_int, edges: *const c_int, newrank: *mut c_int) on Origin::Communicator(comm) =>
    bodies::graph_map(comm, nnodes, indx, edges, newrank)
}

works! {
    fn MPI_Graph_neighbors / PMPI_Graph_neighbors(comm: Handle, rank: c_int, maxneighbors: c_int, neighbors: *mut c_int) on Origin::Communicator(comm) =>
    bodies::graph_neighbors(comm, rank, maxneighbors, neighbors)
}

works! {
    fn MPI_Graph_neighbors_count / PMPI_Graph_neighbors_count(comm: Handle, rank: c_int, nneighbors: *mut c_int) on Origin::Communicator(comm) =>
    bodies::graph_neighbors_count(comm, rank, nneighbors)
}

works! {
    fn MPI_Graphdims_get / PMPI_Graphdims_get(comm: Handle, nnodes: *mut c_int, nedges: *mut c_int) on Origin::Communicator(comm) =>
    bodies::graphdims_get(comm, nnodes, nedges)
}

works! {
    fn MPI_Topo_test / PMPI_Topo_test(comm: Handle, status: *mut c_int) on Origin::Communicator(comm) =>
    bodies::topo_test(comm, status)
}
