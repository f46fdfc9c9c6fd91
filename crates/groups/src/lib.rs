//! Who belongs together: views and membership as pure machines. Time is an argument, and what a
//! machine wants done it says; it does nothing itself.

#![forbid(unsafe_code)]

pub mod membership;
pub mod view;
