//! What the kernel says about this process: memory and processor time. Zero where there is no /proc.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs;

/// The most that was ever resident since the start, or since [`reset_peak`], in bytes.
pub(crate) fn peak() -> u64 {
    field("/proc/self/status", "VmHWM:")
}

/// What is resident of private anonymous memory now, in bytes.
pub(crate) fn anonymous() -> u64 {
    field("/proc/self/smaps_rollup", "Anonymous:")
}

/// Everything that is resident now, in bytes.
pub(crate) fn resident() -> u64 {
    field("/proc/self/status", "VmRSS:")
}

/// Everything that is resident of another process, in bytes.
pub(crate) fn resident_of(process: u32) -> u64 {
    field(&format!("/proc/{process}/status"), "VmRSS:")
}

/// Forgets the peak so far.
pub(crate) fn reset_peak() {
    // Where this cannot be written, the peak stays an upper bound.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The processor time of the whole process so far, in seconds.
pub(crate) fn processor() -> f64 {
    seconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// The processor time of this thread so far, in seconds.
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
