//! The load of this host now.

use std::fs::read_to_string;

use landeck_protocols::hosts::HostLoad;

/// The load of this host now. A file that is not there counts as an empty one.
pub(crate) fn here() -> HostLoad {
    let text = |path: &str| read_to_string(path).unwrap_or_default();
    let pressures = ["/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io"].map(text);
    let [processor, memory, disk] = &pressures;
    HostLoad::read(&text("/proc/loadavg"), &text("/proc/meminfo"), [processor, memory, disk])
}
