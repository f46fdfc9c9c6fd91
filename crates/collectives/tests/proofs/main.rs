//! The proof: the plans of every architecture and operation do what they should (`check`) at exactly the cost that is
//! derived without them (`derivation`). It covers every size up to 64 (a test takes a quarter of those above 32) and every
//! root (a test takes every fourth above 16 members, and every eighth above 32). With clusters it covers every division of up to 12 members into consecutive
//! clusters, divisions at all, and drawn ones above.
//!
//! Orders, segments, splitting and places change from case to case, so that all meet all. With
//! `LANDECK_SOAK=1` every case is proven with all of them (divided data in groups above 16 from one
//! root only). Of 11 and 12 members there are so many divisions that they come in parts:
//! `LANDECK_PART=3/24` is the third of 24, and `cargo xtask test divisions` runs all of them.
#![allow(clippy::unwrap_used)] // tests may

mod cases;
#[path = "../derivation/mod.rs"]
mod derivation;
mod divisions;
mod drawn;
mod hosts;
mod once;
mod renaming;
mod sizes;
mod started;
