//! Any bytes in place of a trace: reading ends with a trace or with the line that is wrong. Any events in traces: the check ends
//! with a report.

#![no_main]

use landeck_traces::{GroupTrace, check, seal};
use libfuzzer_sys::fuzz_target;

/// A report of a few traces is for a person.
const REPORT_BYTES_MAX: usize = 100_000;

fuzz_target!(|text: &str| {
    if let Err(error) = GroupTrace::decode("a trace", text.as_bytes()) {
        assert!(error.to_string().len() < 200, "{error}");
    }
    // Checksums that match, so that the lines are read.
    let traces = text.split("\n\n").take(8).filter_map(|lines| {
        let lines = seal(lines.lines());
        let trace = GroupTrace::decode("a trace", lines.as_bytes()).ok()?;
        let again = GroupTrace::decode("a trace", trace.encode().as_bytes());
        assert_eq!(again.as_ref(), Ok(&trace));
        Some(trace)
    });
    let traces: Vec<GroupTrace> = traces.collect();
    let report = check(&traces).to_string();
    assert!(text.len() > 4_000 || report.len() < REPORT_BYTES_MAX, "{report}");
});
