//! Collective operations that go on after the call.

use std::ffi::{c_int, c_void};

use crate::abi::Handle;
use crate::counts::Counts;
use crate::functions::collective::{combining, each_combining, each_moving, moving};
use crate::mistake::Mistake;

macro_rules! moved {
    ($($name:ident $started:ident $kept:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// See the function of this name in `moving`.
        #[inline]
        #[allow(clippy::too_many_arguments)] // As many as the standard has.
        pub(crate) unsafe fn $started(
            $($argument: $type,)*
            comm: Handle,
            request: *mut Handle,
        ) -> Result<(), Mistake> {
            // SAFETY: the program keeps what the standard demands of its arguments.
            unsafe { moving::$name($($argument,)* comm)?.start(request) }
        }
    )*};
}

macro_rules! combined {
    ($($name:ident $started:ident $kept:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// See the function of this name in `combining`.
        #[inline]
        #[allow(clippy::too_many_arguments)] // As many as the standard has.
        pub(crate) unsafe fn $started(
            $($argument: $type,)*
            comm: Handle,
            request: *mut Handle,
        ) -> Result<(), Mistake> {
            // SAFETY: the program keeps what the standard demands of its arguments.
            unsafe { combining::$name($($argument,)* comm)?.start(request) }
        }
    )*};
}

each_moving!(moved);
each_combining!(combined);
