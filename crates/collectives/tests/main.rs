//! Plans and their costs, but for the long proofs, which are a test program of their own.

mod architectures;
mod bounds;
mod cost;
mod derivation;
mod faults;
mod kin;
mod lengths;
mod written_costs;
