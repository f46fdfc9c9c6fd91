//! The shells of the chapter `group`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::group as bodies;

works! {
    fn MPI_Group_compare / PMPI_Group_compare(group1: Handle, group2: Handle, result: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::group_compare(group1, group2, result) }
}

works! {
    fn MPI_Group_difference / PMPI_Group_difference(group1: Handle, group2: Handle, newgroup: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::group_difference(group1, group2, newgroup) }
}

works! {
    fn MPI_Group_excl / PMPI_Group_excl(group: Handle, n: c_int, ranks: *const c_int, newgroup: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::group_excl(group, n, ranks, newgroup) }
}

works! {
    fn MPI_Group_free / PMPI_Group_free(group: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::group_free(group) }
}

works! {
    fn MPI_Group_incl / PMPI_Group_incl(group: Handle, n: c_int, ranks: *const c_int, newgroup: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::group_incl(group, n, ranks, newgroup) }
}

works! {
    fn MPI_Group_intersection / PMPI_Group_intersection(group1: Handle, group2: Handle, newgroup: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::group_intersection(group1, group2, newgroup) }
}

works! {
    fn MPI_Group_range_excl / PMPI_Group_range_excl(group: Handle, n: c_int, ranges: *mut [c_int; 3], newgroup: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::group_range_excl(group, n, ranges, newgroup) }
}

works! {
    fn MPI_Group_range_incl / PMPI_Group_range_incl(group: Handle, n: c_int, ranges: *mut [c_int; 3], newgroup: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::group_range_incl(group, n, ranges, newgroup) }
}

works! {
    fn MPI_Group_rank / PMPI_Group_rank(group: Handle, rank: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::group_rank(group, rank) }
}

works! {
    fn MPI_Group_size / PMPI_Group_size(group: Handle, size: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::group_size(group, size) }
}

works! {
    fn MPI_Group_translate_ranks / PMPI_Group_translate_ranks(group1: Handle, n: c_int, ranks1: *const c_int, group2: Handle, ranks2: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::group_translate_ranks(group1, n, ranks1, group2, ranks2) }
}

works! {
    fn MPI_Group_union / PMPI_Group_union(group1: Handle, group2: Handle, newgroup: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::group_union(group1, group2, newgroup) }
}
