//! One measured value as one line of JSON on standard output; bench/points.c prints the same.

use std::io::{self, Write};

/// Prints a value of a batch, in a job of `n` processes.
pub(crate) fn print(
    figure: &str,
    form: &str,
    n: usize,
    bytes: usize,
    pending: usize,
    unit: &str,
    value: f64,
) {
    // Whoever has stopped listening wants no more values.
    let _ = writeln!(
        io::stdout(),
        "{{\"figure\":\"{figure}\",\"form\":\"{form}\",\"n\":{n},\"bytes\":{bytes},\"pending\":{pending},\
         \"unit\":\"{unit}\",\"value\":{value}}}"
    );
}
