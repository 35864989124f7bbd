//! The numbers of the process, from `/proc`. Elsewhere there are none.

use std::fs;

/// The clock ticks of a second, the unit of times from the kernel.
const TICKS: f64 = 100.0;

/// Returns the numbers of the process, by the names of the metrics.
pub(super) fn numbers() -> Vec<(&'static str, &'static str, f64)> {
    let mut numbers = Vec::new();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |field: &str| -> Option<f64> {
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        let kibibytes: f64 = line.trim_start_matches(':').split_whitespace().next()?.parse().ok()?;
        Some(kibibytes * 1024.0)
    };
    let mut gauge = |name, value: Option<f64>| numbers.extend(value.map(|value| (name, "gauge", value)));
    gauge("process_resident_memory_bytes", bytes("VmRSS"));
    gauge("process_virtual_memory_bytes", bytes("VmSize"));
    gauge("process_open_fds", fs::read_dir("/proc/self/fd").ok().map(|entries| as_float(entries.count())));
    gauge("process_max_fds", max_files());
    let times = Times::read();
    gauge("process_start_time_seconds", times.as_ref().and_then(Times::start));
    numbers.extend(times.map(|times| ("process_cpu_seconds_total", "counter", times.used)));
    numbers
}

/// Returns the start of the process, in seconds since 1970.
pub(super) fn start() -> Option<u64> {
    Some(Times::read()?.start()? as u64)
}

fn as_float(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

fn max_files() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The times of the process, in seconds.
struct Times {
    /// Processor time.
    used: f64,
    /// The start of the process, after the start of the machine.
    started: f64,
}

impl Times {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program, in parentheses, may have spaces.
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<f64> =
            fields.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0.0)).collect();
        let at = |index: usize| fields.get(index).copied();
        Some(Self { used: (at(10)? + at(11)?) / TICKS, started: at(18)? / TICKS })
    }

    /// Returns the start of the process in seconds since 1970.
    fn start(&self) -> Option<f64> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let boot: f64 = stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        Some(boot + self.started)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::numbers;

    #[test]
    fn a_process_has_memory_files_and_a_start() {
        let numbers = numbers();
        let value =
            |wanted: &str| numbers.iter().find(|(name, ..)| *name == wanted).map(|(.., value)| *value);
        assert!(value("process_resident_memory_bytes").unwrap() > 1e5);
        assert!(value("process_open_fds").unwrap() >= 3.0);
        let now = jiff::Timestamp::now().as_second();
        let start = value("process_start_time_seconds").unwrap();
        assert!((start - f64::from(u32::try_from(now).unwrap())).abs() < 3_600.0, "{start} {now}");
        assert!(value("process_cpu_seconds_total").is_some());
    }
}
