//! Memory and processor time of this process, from the kernel. Memory is 0 on systems without /proc.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs;

/// Returns the peak resident memory since the start or the last [`reset_peak`], in bytes.
pub(crate) fn peak() -> u64 {
    field("/proc/self/status", "VmHWM:")
}

/// Returns the resident anonymous memory, in bytes.
pub(crate) fn anonymous() -> u64 {
    field("/proc/self/smaps_rollup", "Anonymous:")
}

/// Returns the resident memory, in bytes.
pub(crate) fn resident() -> u64 {
    field("/proc/self/status", "VmRSS:")
}

/// Returns the resident memory of another process, in bytes.
pub(crate) fn resident_of(process: u32) -> u64 {
    field(&format!("/proc/{process}/status"), "VmRSS:")
}

/// Resets the peak to the current resident memory.
pub(crate) fn reset_peak() {
    // If the file cannot be written, the peak remains an upper bound.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Returns the processor time of all threads since the start, in seconds.
pub(crate) fn processor() -> f64 {
    seconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// Returns the processor time of this thread since the start, in seconds.
pub(crate) fn processor_of_thread() -> f64 {
    seconds(clock_gettime(ClockId::ThreadCPUTime))
}

fn seconds(time: Timespec) -> f64 {
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn field(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let kilobytes = text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB"));
    kilobytes.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}
