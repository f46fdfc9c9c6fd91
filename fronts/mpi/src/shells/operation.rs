//! The shells of the chapter `operation`. Made by `cargo xtask mpi`.

use super::*;
use crate::functions::operation as bodies;

works! {
    fn MPI_Op_commutative / PMPI_Op_commutative(op: Handle, commute: *mut c_int) on Origin::Nothing =>
    { inside()?; bodies::op_commutative(op, commute) }
}

works! {
    fn MPI_Op_create / PMPI_Op_create(user_fn: Callback, commute: c_int, op: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::op_create(user_fn, commute, op) }
}

works! {
    fn MPI_Op_create_c / PMPI_Op_create_c(user_fn: Callback, commute: c_int, op: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::op_create_c(user_fn, commute, op) }
}

works! {
    fn MPI_Op_free / PMPI_Op_free(op: *mut Handle) on Origin::Nothing =>
    { inside()?; bodies::op_free(op) }
}

calls_back! {
    fn MPI_Reduce_local / PMPI_Reduce_local(inbuf: *const c_void, inoutbuf: *mut c_void, count: c_int, datatype: Handle, op: Handle) on Origin::Nothing =>
    { inside()?; bodies::reduce_local(inbuf, inoutbuf, i64::from(count), datatype, op) }
}

calls_back! {
    fn MPI_Reduce_local_c / PMPI_Reduce_local_c(inbuf: *const c_void, inoutbuf: *mut c_void, count: i64, datatype: Handle, op: Handle) on Origin::Nothing =>
    { inside()?; bodies::reduce_local(inbuf, inoutbuf, count, datatype, op) }
}
