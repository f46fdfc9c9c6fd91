//! Collective operations between neighbours: done at once, started, or kept to be started any number
//! of times.

use std::ffi::c_void;

use crate::abi::Handle;
use crate::counts::Counts;
use crate::functions::collective::{each_neighbourly, neighbours};
use crate::mistake::Mistake;

macro_rules! three_forms {
    ($($name:ident $started:ident $kept:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// See the function of this name in `neighbours`.
        #[allow(clippy::too_many_arguments)]
        pub(crate) unsafe fn $name($($argument: $type,)* comm: Handle) -> Result<(), Mistake> {
            // SAFETY: the program keeps what the standard demands of its arguments.
            unsafe { neighbours::$name($($argument,)* comm)?.move_data() }
        }

        /// The same, which goes on after the call.
        #[allow(clippy::too_many_arguments)]
        pub(crate) unsafe fn $started(
            $($argument: $type,)*
            comm: Handle,
            request: *mut Handle,
        ) -> Result<(), Mistake> {
            // SAFETY: as above.
            unsafe { neighbours::$name($($argument,)* comm)?.start(request) }
        }

        /// The same, to be started any number of times.
        #[allow(clippy::too_many_arguments)]
        pub(crate) unsafe fn $kept(
            $($argument: $type,)*
            comm: Handle,
            info: Handle,
            request: *mut Handle,
        ) -> Result<(), Mistake> {
            // SAFETY: as above.
            unsafe { neighbours::$name($($argument,)* comm)?.keep(info, request) }
        }
    )*};
}

each_neighbourly!(three_forms);
