//! Layouts against naive models.

mod arrays;
mod model;
