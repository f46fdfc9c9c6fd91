//! The shells of the chapter `datatype`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::datatype as bodies;

value! {
    fn MPI_Aint_add / PMPI_Aint_add(base: i64, disp: i64) -> i64 =>
    bodies::aint_add(base, disp)
}

value! {
    fn MPI_Aint_diff / PMPI_Aint_diff(addr1: i64, addr2: i64) -> i64 =>
    bodies::aint_diff(addr1, addr2)
}

works! {
    fn MPI_Get_address / PMPI_Get_address(location: *const c_void, address: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::get_address(location, address) }
}

works! {
    fn MPI_Type_commit / PMPI_Type_commit(datatype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_commit(datatype) }
}

works! {
    fn MPI_Type_contiguous / PMPI_Type_contiguous(count: c_int, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_contiguous(count, oldtype, newtype) }
}

works! {
    fn MPI_Type_contiguous_c / PMPI_Type_contiguous_c(count: i64, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_contiguous_c(count, oldtype, newtype) }
}

works! {
    fn MPI_Type_create_darray / PMPI_Type_create_darray(size: c_int, rank: c_int, ndims: c_int, array_of_gsizes: *const c_int, array_of_distribs: *const c_int, array_of_dargs: *const c_int, array_of_psizes: *const c_int, order: c_int, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_darray(size, rank, ndims, Counts::short(array_of_gsizes), array_of_distribs, array_of_dargs, array_of_psizes, order, oldtype, newtype) }
}

works! {
    fn MPI_Type_create_darray_c / PMPI_Type_create_darray_c(size: c_int, rank: c_int, ndims: c_int, array_of_gsizes: *const i64, array_of_distribs: *const c_int, array_of_dargs: *const c_int, array_of_psizes: *const c_int, order: c_int, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_darray(size, rank, ndims, Counts::wide(array_of_gsizes), array_of_distribs, array_of_dargs, array_of_psizes, order, oldtype, newtype) }
}

works! {
    fn MPI_Type_create_f90_complex / PMPI_Type_create_f90_complex(p: c_int, r: c_int, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_f90_complex(p, r, newtype) }
}

works! {
    fn MPI_Type_create_f90_integer / PMPI_Type_create_f90_integer(r: c_int, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_f90_integer(r, newtype) }
}

works! {
    fn MPI_Type_create_f90_real / PMPI_Type_create_f90_real(p: c_int, r: c_int, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_f90_real(p, r, newtype) }
}

works! {
    fn MPI_Type_create_hindexed / PMPI_Type_create_hindexed(count: c_int, array_of_blocklengths: *const c_int, array_of_displacements: *const i64, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_hindexed(i64::from(count), Counts::short(array_of_blocklengths), array_of_displacements, oldtype, newtype) }
}

works! {
    fn MPI_Type_create_hindexed_block / PMPI_Type_create_hindexed_block(count: c_int, blocklength: c_int, array_of_displacements: *const i64, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_hindexed_block(count, blocklength, array_of_displacements, oldtype, newtype) }
}

works! {
    fn MPI_Type_create_hindexed_block_c / PMPI_Type_create_hindexed_block_c(count: i64, blocklength: i64, array_of_displacements: *const i64, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_hindexed_block_c(count, blocklength, array_of_displacements, oldtype, newtype) }
}

works! {
    fn MPI_Type_create_hindexed_c / PMPI_Type_create_hindexed_c(count: i64, array_of_blocklengths: *const i64, array_of_displacements: *const i64, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_hindexed(count, Counts::wide(array_of_blocklengths), array_of_displacements, oldtype, newtype) }
}

works! {
    fn MPI_Type_create_hvector / PMPI_Type_create_hvector(count: c_int, blocklength: c_int, stride: i64, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_hvector(count, blocklength, stride, oldtype, newtype) }
}

works! {
    fn MPI_Type_create_hvector_c / PMPI_Type_create_hvector_c(count: i64, blocklength: i64, stride: i64, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_hvector_c(count, blocklength, stride, oldtype, newtype) }
}

works! {
    fn MPI_Type_create_indexed_block / PMPI_Type_create_indexed_block(count: c_int, blocklength: c_int, array_of_displacements: *const c_int, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_indexed_block(i64::from(count), i64::from(blocklength), Counts::short(array_of_displacements), oldtype, newtype) }
}

works! {
    fn MPI_Type_create_indexed_block_c / PMPI_Type_create_indexed_block_c(count: i64, blocklength: i64, array_of_displacements: *const i64, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_indexed_block(count, blocklength, Counts::wide(array_of_displacements), oldtype, newtype) }
}

works! {
    fn MPI_Type_create_resized / PMPI_Type_create_resized(oldtype: Handle, lb: i64, extent: i64, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_resized(oldtype, lb, extent, newtype) }
}

works! {
    fn MPI_Type_create_resized_c / PMPI_Type_create_resized_c(oldtype: Handle, lb: i64, extent: i64, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_resized_c(oldtype, lb, extent, newtype) }
}

works! {
    fn MPI_Type_create_struct / PMPI_Type_create_struct(count: c_int, array_of_blocklengths: *const c_int, array_of_displacements: *const i64, array_of_types: *const Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_struct(i64::from(count), Counts::short(array_of_blocklengths), array_of_displacements, array_of_types, newtype) }
}

works! {
    fn MPI_Type_create_struct_c / PMPI_Type_create_struct_c(count: i64, array_of_blocklengths: *const i64, array_of_displacements: *const i64, array_of_types: *const Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_struct(count, Counts::wide(array_of_blocklengths), array_of_displacements, array_of_types, newtype) }
}

works! {
    fn MPI_Type_create_subarray / PMPI_Type_create_subarray(ndims: c_int, array_of_sizes: *const c_int, array_of_subsizes: *const c_int, array_of_starts: *const c_int, order: c_int, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_subarray(ndims, Counts::short(array_of_sizes), Counts::short(array_of_subsizes), Counts::short(array_of_starts), order, oldtype, newtype) }
}

works! {
    fn MPI_Type_create_subarray_c / PMPI_Type_create_subarray_c(ndims: c_int, array_of_sizes: *const i64, array_of_subsizes: *const i64, array_of_starts: *const i64, order: c_int, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_create_subarray(ndims, Counts::wide(array_of_sizes), Counts::wide(array_of_subsizes), Counts::wide(array_of_starts), order, oldtype, newtype) }
}

calls_back! {
    fn MPI_Type_dup / PMPI_Type_dup(oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_dup(oldtype, newtype) }
}

calls_back! {
    fn MPI_Type_free / PMPI_Type_free(datatype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_free(datatype) }
}

works! {
    fn MPI_Type_get_contents / PMPI_Type_get_contents(datatype: Handle, max_integers: c_int, max_addresses: c_int, max_datatypes: c_int, array_of_integers: *mut c_int, array_of_addresses: *mut i64, array_of_datatypes: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_get_contents(datatype, max_integers, max_addresses, max_datatypes, array_of_integers, array_of_addresses, array_of_datatypes) }
}

works! {
    fn MPI_Type_get_contents_c / PMPI_Type_get_contents_c(datatype: Handle, max_integers: i64, max_addresses: i64, max_large_counts: i64, max_datatypes: i64, array_of_integers: *mut c_int, array_of_addresses: *mut i64, array_of_large_counts: *mut i64, array_of_datatypes: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_get_contents_c(datatype, max_integers, max_addresses, max_large_counts, max_datatypes, array_of_integers, array_of_addresses, array_of_large_counts, array_of_datatypes) }
}

works! {
    fn MPI_Type_get_envelope / PMPI_Type_get_envelope(datatype: Handle, num_integers: *mut c_int, num_addresses: *mut c_int, num_datatypes: *mut c_int, combiner: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::type_get_envelope(datatype, num_integers, num_addresses, num_datatypes, combiner) }
}

works! {
    fn MPI_Type_get_envelope_c / PMPI_Type_get_envelope_c(datatype: Handle, num_integers: *mut i64, num_addresses: *mut i64, num_large_counts: *mut i64, num_datatypes: *mut i64, combiner: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::type_get_envelope_c(datatype, num_integers, num_addresses, num_large_counts, num_datatypes, combiner) }
}

works! {
    fn MPI_Type_get_extent / PMPI_Type_get_extent(datatype: Handle, lb: *mut i64, extent: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::type_get_extent(datatype, lb, extent) }
}

works! {
    fn MPI_Type_get_extent_c / PMPI_Type_get_extent_c(datatype: Handle, lb: *mut i64, extent: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::type_get_extent(datatype, lb, extent) }
}

works! {
    fn MPI_Type_get_extent_x / PMPI_Type_get_extent_x(datatype: Handle, lb: *mut i64, extent: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::type_get_extent_x(datatype, lb, extent) }
}

works! {
    fn MPI_Type_get_name / PMPI_Type_get_name(datatype: Handle, type_name: *mut c_char, resultlen: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::type_get_name(datatype, type_name, resultlen) }
}

works! {
    fn MPI_Type_get_true_extent / PMPI_Type_get_true_extent(datatype: Handle, true_lb: *mut i64, true_extent: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::type_get_true_extent(datatype, true_lb, true_extent) }
}

works! {
    fn MPI_Type_get_true_extent_c / PMPI_Type_get_true_extent_c(datatype: Handle, true_lb: *mut i64, true_extent: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::type_get_true_extent(datatype, true_lb, true_extent) }
}

works! {
    fn MPI_Type_get_true_extent_x / PMPI_Type_get_true_extent_x(datatype: Handle, true_lb: *mut i64, true_extent: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::type_get_true_extent_x(datatype, true_lb, true_extent) }
}

works! {
    fn MPI_Type_get_value_index / PMPI_Type_get_value_index(value_type: Handle, index_type: Handle, pair_type: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_get_value_index(value_type, index_type, pair_type) }
}

works! {
    fn MPI_Type_indexed / PMPI_Type_indexed(count: c_int, array_of_blocklengths: *const c_int, array_of_displacements: *const c_int, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_indexed(i64::from(count), Counts::short(array_of_blocklengths), Counts::short(array_of_displacements), oldtype, newtype) }
}

works! {
    fn MPI_Type_indexed_c / PMPI_Type_indexed_c(count: i64, array_of_blocklengths: *const i64, array_of_displacements: *const i64, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_indexed(count, Counts::wide(array_of_blocklengths), Counts::wide(array_of_displacements), oldtype, newtype) }
}

works! {
    fn MPI_Type_match_size / PMPI_Type_match_size(typeclass: c_int, size: c_int, datatype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_match_size(typeclass, size, datatype) }
}

works! {
    fn MPI_Type_set_name / PMPI_Type_set_name(datatype: Handle, type_name: *const c_char) on Origin::Nothing =>
    { inside()?; bodies::type_set_name(datatype, type_name) }
}

works! {
    fn MPI_Type_size / PMPI_Type_size(datatype: Handle, size: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::type_size(datatype, CountPlace::short(size)) }
}

works! {
    fn MPI_Type_size_c / PMPI_Type_size_c(datatype: Handle, size: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::type_size(datatype, CountPlace::wide(size)) }
}

works! {
    fn MPI_Type_size_x / PMPI_Type_size_x(datatype: Handle, size: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::type_size_x(datatype, size) }
}

works! {
    fn MPI_Type_vector / PMPI_Type_vector(count: c_int, blocklength: c_int, stride: c_int, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_vector(count, blocklength, stride, oldtype, newtype) }
}

works! {
    fn MPI_Type_vector_c / PMPI_Type_vector_c(count: i64, blocklength: i64, stride: i64, oldtype: Handle, newtype: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::type_vector_c(count, blocklength, stride, oldtype, newtype) }
}
