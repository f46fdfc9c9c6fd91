//! The boundary that every C front shares. No panic crosses it, pointers are checked, stale handles are noticed,
//! and strings are bounded.
//!
//! # How an entry point is written
//!
//! ```
//! use landeck_c_boundary::{guarded, pointer};
//!
//! #[unsafe(no_mangle)]
//! extern "C" fn example_size(size: *mut i32) -> i32 {
//!     guarded("example_size", 99, || {
//!         // SAFETY: the caller of this C function says that `size` is writable.
//!         match unsafe { pointer::write("size", size, 4) } {
//!             Ok(()) => 0,
//!             Err(_) => 12,
//!         }
//!     })
//! }
//! # let mut size = 0;
//! # assert_eq!(example_size(&mut size), 0);
//! # assert_eq!(example_size(std::ptr::null_mut()), 12);
//! ```
//!
//! # How a user's callback is called
//!
//! A callback may jump out (`longjmp`) or throw, and then no destructor of the frames between runs.
//! So it is called by a frame that owns nothing: the entry point itself, an `extern "C-unwind"`
//! function outside of any [`guarded`] body, whose locals are plain values ([`Copy`]). What the
//! operation owns lives on the heap behind a raw pointer meanwhile; [`Steps`] is that pointer. The
//! entry point asks it for one step after the other, each guarded, and calls back between them:
//!
//! ```
//! use landeck_c_boundary::{Next, Steps, guarded};
//!
//! type Callback = unsafe extern "C-unwind" fn(i32);
//! #[derive(Clone, Copy)]
//! struct Call { value: i32 }
//!
//! extern "C-unwind" fn example_each(count: i32, callback: Callback) -> i32 {
//!     let numbers: Vec<i32> = (0..count).collect(); // owned by the steps below
//!     let mut numbers = numbers.into_iter();
//!     let mut steps = Steps::new(move || match numbers.next() {
//!         Some(value) => Next::Call(Call { value }),
//!         None => Next::Done(0),
//!     });
//!     loop {
//!         match guarded("example_each", Next::Done(99), || steps.advance()) {
//!             // SAFETY: the caller gave a function; this frame owns nothing.
//!             Next::Call(call) => unsafe { callback(call.value) },
//!             Next::Done(code) => return code,
//!         }
//!     }
//! }
//! # unsafe extern "C-unwind" fn nothing(_: i32) {}
//! # assert_eq!(example_each(3, nothing), 0);
//! ```

pub mod caller;
mod guard;
mod handles;
mod lingering;
pub mod pointer;
mod reserve;
pub mod room;
mod steps;
pub mod string;

pub use guard::guarded;
pub use handles::{HandleError, Table};
pub use lingering::Lingering;
pub use pointer::PointerError;
pub use room::NoRoom;
pub use steps::{Next, Steps};
pub use string::StringError;
