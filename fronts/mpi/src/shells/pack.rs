//! The shells of the chapter `pack`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::pack as bodies;

works! {
    fn MPI_Pack / PMPI_Pack(inbuf: *const c_void, incount: c_int, datatype: Handle, outbuf: *mut c_void, outsize: c_int, position: *mut c_int, comm: Handle) on Origin::Communicator(comm) =>
    bodies::pack(inbuf, i64::from(incount), datatype, outbuf, i64::from(outsize), CountPlace::short(position), comm)
}

works! {
    fn MPI_Pack_c / PMPI_Pack_c(inbuf: *const c_void, incount: i64, datatype: Handle, outbuf: *mut c_void, outsize: i64, position: *mut i64, comm: Handle) on Origin::Communicator(comm) =>
    bodies::pack(inbuf, incount, datatype, outbuf, outsize, CountPlace::wide(position), comm)
}

works! {
    fn MPI_Pack_external / PMPI_Pack_external(datarep: *const c_char, inbuf: *const c_void, incount: c_int, datatype: Handle, outbuf: *mut c_void, outsize: i64, position: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::pack_external(datarep, inbuf, i64::from(incount), datatype, outbuf, outsize, position) }
}

works! {
    fn MPI_Pack_external_c / PMPI_Pack_external_c(datarep: *const c_char, inbuf: *const c_void, incount: i64, datatype: Handle, outbuf: *mut c_void, outsize: i64, position: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::pack_external(datarep, inbuf, incount, datatype, outbuf, outsize, position) }
}

works! {
    fn MPI_Pack_external_size / PMPI_Pack_external_size(datarep: *const c_char, incount: c_int, datatype: Handle, size: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::pack_external_size(datarep, i64::from(incount), datatype, size) }
}

works! {
    fn MPI_Pack_external_size_c / PMPI_Pack_external_size_c(datarep: *const c_char, incount: i64, datatype: Handle, size: *mut i64) on Origin::Nothing =>
    { inside()?; bodies::pack_external_size(datarep, incount, datatype, size) }
}

works! {
    fn MPI_Pack_size / PMPI_Pack_size(incount: c_int, datatype: Handle, comm: Handle, size: *mut c_int) on Origin::Communicator(comm) =>
    bodies::pack_size(i64::from(incount), datatype, comm, CountPlace::short(size))
}

works! {
    fn MPI_Pack_size_c / PMPI_Pack_size_c(incount: i64, datatype: Handle, comm: Handle, size: *mut i64) on Origin::Communicator(comm) =>
    bodies::pack_size(incount, datatype, comm, CountPlace::wide(size))
}

works! {
    fn MPI_Unpack / PMPI_Unpack(inbuf: *const c_void, insize: c_int, position: *mut c_int, outbuf: *mut c_void, outcount: c_int, datatype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::unpack(inbuf, i64::from(insize), CountPlace::short(position), outbuf, i64::from(outcount), datatype, comm)
}

works! {
    fn MPI_Unpack_c / PMPI_Unpack_c(inbuf: *const c_void, insize: i64, position: *mut i64, outbuf: *mut c_void, outcount: i64, datatype: Handle, comm: Handle) on Origin::Communicator(comm) =>
    bodies::unpack(inbuf, insize, CountPlace::wide(position), outbuf, outcount, datatype, comm)
}

works! {
    fn MPI_Unpack_external / PMPI_Unpack_external(datarep: *const c_char, inbuf: *const c_void, insize: i64, position: *mut i64, outbuf: *mut c_void, outcount: c_int, datatype: Handle) on Origin::Nothing =>
    { inside()?; bodies::unpack_external(datarep, inbuf, insize, position, outbuf, i64::from(outcount), datatype) }
}

works! {
    fn MPI_Unpack_external_c / PMPI_Unpack_external_c(datarep: *const c_char, inbuf: *const c_void, insize: i64, position: *mut i64, outbuf: *mut c_void, outcount: i64, datatype: Handle) on Origin::Nothing =>
    { inside()?; bodies::unpack_external(datarep, inbuf, insize, position, outbuf, outcount, datatype) }
}
