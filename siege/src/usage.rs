//! The memory and processor time of a process, from `/proc`.

use std::fs;
use std::time::Duration;

/// The clock ticks of a second, the unit of times from the kernel.
const TICKS: f64 = 100.0;

/// A process whose memory and processor time are measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(pub(crate) u32);

impl Process {
    /// Returns the resident memory, in bytes. 0 if the process has ended.
    pub(crate) fn resident(self) -> u64 {
        self.field("VmRSS:")
    }

    /// Returns the peak of the resident memory since [`Process::reset_peak`], in bytes.
    pub(crate) fn peak(self) -> u64 {
        self.field("VmHWM:")
    }

    pub(crate) fn reset_peak(self) {
        // Without the permission, the peak is an upper bound.
        let _ = fs::write(format!("/proc/{}/clear_refs", self.0), "5");
    }

    /// Returns the processor time of all threads, in seconds.
    pub(crate) fn processor(self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap_or_default();
        let Some((_, fields)) = stat.rsplit_once(')') else { return 0.0 };
        let ticks = fields.split_whitespace().skip(11).take(2);
        ticks.map(|field| field.parse().unwrap_or(0.0)).sum::<f64>() / TICKS
    }

    pub(crate) fn is_running(self) -> bool {
        self.resident() > 0
    }

    /// Waits until the process is idle for a moment, at most `limit`.
    pub(crate) async fn settle(self, limit: Duration) {
        let end = tokio::time::Instant::now() + limit;
        let mut before = self.processor();
        while tokio::time::Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let now = self.processor();
            if now - before < 0.02 {
                return;
            }
            before = now;
        }
    }

    /// Waits until the resident memory is at most `bytes`, at most `limit`.
    pub(crate) async fn shrink(self, bytes: u64, limit: Duration) {
        let end = tokio::time::Instant::now() + limit;
        while self.resident() > bytes && tokio::time::Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn field(self, name: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap_or_default();
        let kilobytes = text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB"));
        kilobytes.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
    }
}
