//! Whole runs of the simulator.

mod formulas;
mod runs;
