/* Grids and graphs: made, asked, divided. */
#include "check.h"

static int kind_of(MPI_Comm comm)
{
    int kind;
    CHECK(MPI_Topo_test(comm, &kind) == MPI_SUCCESS);
    return kind;
}

static void grids(void)
{
    MPI_Comm grid, row, point, copy, part;
    int dims[2] = {0, 0}, periods[2] = {0, 1}, coords[2], got_dims[2], got_periods[2], ndims;
    CHECK(MPI_Dims_create(size, 2, dims) == MPI_SUCCESS);
    CHECK(dims[0] * dims[1] == size && dims[0] >= dims[1]);
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid) == MPI_SUCCESS);
    CHECK(kind_of(grid) == MPI_CART && kind_of(MPI_COMM_WORLD) == MPI_UNDEFINED);
    CHECK(MPI_Cartdim_get(grid, &ndims) == MPI_SUCCESS && ndims == 2);
    CHECK(MPI_Cart_get(grid, 2, got_dims, got_periods, coords) == MPI_SUCCESS);
    CHECK(got_dims[0] == dims[0] && got_dims[1] == dims[1]);
    CHECK(!got_periods[0] && got_periods[1]);
    CHECK(coords[0] == rank / dims[1] && coords[1] == rank % dims[1]);
    for (int i = 0; i < size; i++) {
        int found;
        CHECK(MPI_Cart_coords(grid, i, 2, coords) == MPI_SUCCESS);
        coords[1] += 3 * dims[1];
        CHECK(MPI_Cart_rank(grid, coords, &found) == MPI_SUCCESS && found == i);
    }
    int source, dest;
    CHECK(MPI_Cart_shift(grid, 0, 1, &source, &dest) == MPI_SUCCESS);
    CHECK(source == (rank < dims[1] ? MPI_PROC_NULL : rank - dims[1]));
    CHECK(dest == (rank + dims[1] < size ? rank + dims[1] : MPI_PROC_NULL));
    CHECK(MPI_Cart_shift(grid, 1, -1, &source, &dest) == MPI_SUCCESS);
    int first = rank - rank % dims[1];
    CHECK(dest == first + (rank - first + dims[1] - 1) % dims[1]);
    CHECK(source == first + (rank - first + 1) % dims[1]);

    int remain[2] = {0, 1}, none[2] = {0, 0}, own, processes;
    CHECK(MPI_Cart_sub(grid, remain, &row) == MPI_SUCCESS);
    MPI_Comm_rank(row, &own);
    MPI_Comm_size(row, &processes);
    CHECK(processes == dims[1] && own == rank % dims[1]);
    CHECK(MPI_Cart_get(row, 1, got_dims, got_periods, coords) == MPI_SUCCESS);
    CHECK(got_dims[0] == dims[1] && got_periods[0] && coords[0] == own);
    CHECK(MPI_Cart_sub(grid, none, &point) == MPI_SUCCESS);
    MPI_Comm_size(point, &processes);
    CHECK(processes == 1 && MPI_Cartdim_get(point, &ndims) == MPI_SUCCESS && ndims == 0);
    CHECK(MPI_Comm_dup(grid, &copy) == MPI_SUCCESS && kind_of(copy) == MPI_CART);
    int newrank;
    CHECK(MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, &newrank) == MPI_SUCCESS);
    CHECK(newrank >= 0 && newrank < size);
    int no_place[2] = {2, 0};
    CHECK(MPI_Cart_map(MPI_COMM_WORLD, 2, no_place, periods, &newrank) == MPI_SUCCESS);
    CHECK(newrank == MPI_UNDEFINED);
    dims[0] = 1;
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &part) == MPI_SUCCESS);
    CHECK((part == MPI_COMM_NULL) == (rank > 0));
    if (part != MPI_COMM_NULL) MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&point);
    MPI_Comm_free(&row);
    MPI_Comm_free(&grid);
}

static void dimensions(void)
{
    int six[2] = {0, 0}, fixed[3] = {0, 3, 0}, cube[3] = {0, 0, 0};
    CHECK(MPI_Dims_create(6, 2, six) == MPI_SUCCESS && six[0] == 3 && six[1] == 2);
    CHECK(MPI_Dims_create(24, 3, fixed) == MPI_SUCCESS);
    CHECK(fixed[0] == 4 && fixed[1] == 3 && fixed[2] == 2);
    CHECK(MPI_Dims_create(64, 3, cube) == MPI_SUCCESS);
    CHECK(cube[0] == 4 && cube[1] == 4 && cube[2] == 4);
}

/* A ring, with the next before the one before. */
static void graphs(void)
{
    MPI_Comm graph;
    int *index = malloc(sizeof(int) * (size_t)size), *edges = malloc(sizeof(int) * 2 * (size_t)size);
    for (int i = 0; i < size; i++) {
        index[i] = 2 * (i + 1);
        edges[2 * i] = (i + 1) % size;
        edges[2 * i + 1] = (i + size - 1) % size;
    }
    CHECK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 1, &graph) == MPI_SUCCESS);
    CHECK(kind_of(graph) == MPI_GRAPH);
    int nodes, count, neighbours[2], newrank;
    CHECK(MPI_Graphdims_get(graph, &nodes, &count) == MPI_SUCCESS);
    CHECK(nodes == size && count == 2 * size);
    CHECK(MPI_Graph_neighbors_count(graph, rank, &count) == MPI_SUCCESS && count == 2);
    CHECK(MPI_Graph_neighbors(graph, rank, 2, neighbours) == MPI_SUCCESS);
    CHECK(neighbours[0] == (rank + 1) % size && neighbours[1] == (rank + size - 1) % size);
    int *got_index = malloc(sizeof(int) * (size_t)size);
    int *got_edges = malloc(sizeof(int) * 2 * (size_t)size);
    CHECK(MPI_Graph_get(graph, size, 2 * size, got_index, got_edges) == MPI_SUCCESS);
    CHECK(!memcmp(index, got_index, sizeof(int) * (size_t)size));
    CHECK(!memcmp(edges, got_edges, sizeof(int) * 2 * (size_t)size));
    CHECK(MPI_Graph_map(MPI_COMM_WORLD, size, index, edges, &newrank) == MPI_SUCCESS);
    CHECK(newrank >= 0 && newrank < size);
    MPI_Comm_free(&graph);
    free(got_edges);
    free(got_index);
    free(edges);
    free(index);
}

static void distributed(void)
{
    MPI_Comm graph;
    int next = (rank + 1) % size, before = (rank + size - 1) % size, weights[2] = {rank, rank + 1};
    int in, out, weighted, sources[2], destinations[2], in_weights[2], out_weights[2];
    CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, weights, 1, &next, weights + 1,
                                         MPI_INFO_NULL, 0, &graph) == MPI_SUCCESS);
    CHECK(kind_of(graph) == MPI_DIST_GRAPH);
    CHECK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted) == MPI_SUCCESS);
    CHECK(in == 1 && out == 1 && weighted);
    CHECK(MPI_Dist_graph_neighbors(graph, 1, sources, in_weights, 1, destinations, out_weights) ==
          MPI_SUCCESS);
    CHECK(sources[0] == before && in_weights[0] == rank);
    CHECK(destinations[0] == next && out_weights[0] == rank + 1);
    MPI_Comm_free(&graph);

    /* Each process gives the edges that leave the one before it: to itself, and to the next. */
    int degree = 2, ends[2] = {rank, next}, edge_weights[2] = {10 + rank, 20 + rank};
    CHECK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &before, &degree, ends, edge_weights,
                                MPI_INFO_NULL, 0, &graph) == MPI_SUCCESS);
    CHECK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted) == MPI_SUCCESS);
    CHECK(in == 2 && out == 2 && weighted);
    CHECK(MPI_Dist_graph_neighbors(graph, 2, sources, in_weights, 2, destinations, out_weights) ==
          MPI_SUCCESS);
    int two_before = (before + size - 1) % size, after_next = (next + 1) % size, seen = 0;
    for (int i = 0; i < 2; i++) {
        seen += destinations[i] == next && out_weights[i] == 10 + next;
        seen += destinations[i] == after_next && out_weights[i] == 20 + next;
        seen += sources[i] == before && in_weights[i] == 10 + rank;
        seen += sources[i] == two_before && in_weights[i] == 20 + before;
    }
    CHECK(seen == 4);
    MPI_Comm_free(&graph);
    CHECK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                0, &graph) == MPI_SUCCESS);
    CHECK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted) == MPI_SUCCESS);
    CHECK(in == 0 && out == 0 && !weighted);
    MPI_Comm_free(&graph);
    CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL,
                                         MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &graph) ==
          MPI_SUCCESS);
    CHECK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted) == MPI_SUCCESS && weighted);
    MPI_Comm_free(&graph);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    grids();
    dimensions();
    graphs();
    distributed();
    return end("topology");
}
