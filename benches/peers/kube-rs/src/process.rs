//! Memory and processor time of this process, from the kernel.

use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// Returns the peak resident memory since the start or the last [`reset_peak`], in bytes.
pub fn peak() -> f64 {
    field("/proc/self/status", "VmHWM:")
}

/// Returns the resident anonymous memory, in bytes.
pub fn anonymous() -> f64 {
    field("/proc/self/smaps_rollup", "Anonymous:")
}

/// Returns the resident memory, in bytes.
pub fn resident() -> f64 {
    field("/proc/self/status", "VmRSS:")
}

/// Resets the peak to the current resident memory.
pub fn reset_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Returns the processor time of all threads since the start, in seconds.
pub fn processor() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn field(file: &str, name: &str) -> f64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let kilobytes = text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB"));
    kilobytes.and_then(|number| number.trim().parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
}
