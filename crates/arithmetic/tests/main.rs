//! Reductions against their definitions.

mod association;
mod model;
mod user_function;
