//! Metrics of the process, under the names that Prometheus' clients share. On Linux only.

use prometheus_client::registry::Registry;

#[cfg(target_os = "linux")]
pub(super) fn register(registry: &mut Registry) {
    registry.register_collector(Box::new(linux::ProcessMetrics));
}

#[cfg(not(target_os = "linux"))]
pub(super) fn register(_: &mut Registry) {}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use prometheus_client::{
        collector::Collector,
        encoding::DescriptorEncoder,
        metrics::{counter::ConstCounter, gauge::ConstGauge},
    };

    use crate::metrics::encode_one;

    /// Reads `/proc` at each scrape. Values that cannot be read are left out.
    #[derive(Debug)]
    pub(super) struct ProcessMetrics;

    /// The needed fields of `/proc/self/stat`, in the kernel's units.
    #[derive(Debug, PartialEq, Eq)]
    pub(super) struct Stat {
        cpu_ticks: u64,
        start_ticks: u64,
        virtual_bytes: u64,
        resident_pages: u64,
    }

    impl Stat {
        pub(super) fn parse(text: &str) -> Option<Self> {
            // The second field, the program's name in parentheses, may contain spaces and parentheses.
            let (_, rest) = text.rsplit_once(')')?;
            let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
            // `fields[0]` is field 3 of proc_pid_stat(5).
            let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
            Some(Self {
                cpu_ticks: field(14)? + field(15)?,
                start_ticks: field(22)?,
                virtual_bytes: field(23)?,
                resident_pages: field(24)?,
            })
        }
    }

    /// Returns a soft limit of `/proc/self/limits`; `None` if there is none.
    pub(super) fn limit(limits: &str, name: &str) -> Option<u64> {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    }

    /// Returns the bytes received and sent over IP in the network namespace, from `/proc/self/net/netstat`: a
    /// line of names, then a line of values.
    pub(super) fn network(netstat: &str) -> Option<(u64, u64)> {
        let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("IpExt: "));
        let (names, values) = (lines.next()?.split(' '), lines.next()?.split(' '));
        let fields: Vec<(&str, &str)> = names.zip(values).collect();
        let field = |name: &str| fields.iter().find(|(known, _)| *known == name)?.1.parse().ok();
        Some((field("InOctets")?, field("OutOctets")?))
    }

    /// Returns the time at which the system was started, in seconds since 1970, from `/proc/stat`.
    fn boot_time(stat: &str) -> Option<u64> {
        stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
    }

    impl Collector for ProcessMetrics {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
            let encoder = &mut encoder;
            let read = |path: &str| fs::read_to_string(path).ok();
            if let Some(stat) = read("/proc/self/stat").and_then(|text| Stat::parse(&text)) {
                let ticks = rustix::param::clock_ticks_per_second() as f64;
                let page = rustix::param::page_size() as u64;
                encode_one(
                    encoder,
                    "process_cpu_seconds",
                    "Total user and system CPU time spent in seconds",
                    &ConstCounter::new(stat.cpu_ticks as f64 / ticks),
                )?;
                encode_one(
                    encoder,
                    "process_resident_memory_bytes",
                    "Resident memory size in bytes",
                    &ConstGauge::new((stat.resident_pages * page) as i64),
                )?;
                encode_one(
                    encoder,
                    "process_virtual_memory_bytes",
                    "Virtual memory size in bytes",
                    &ConstGauge::new(stat.virtual_bytes as i64),
                )?;
                if let Some(boot) = read("/proc/stat").and_then(|text| boot_time(&text)) {
                    encode_one(
                        encoder,
                        "process_start_time_seconds",
                        "Start time of the process since unix epoch in seconds",
                        &ConstGauge::new(boot as f64 + stat.start_ticks as f64 / ticks),
                    )?;
                }
            }
            if let Ok(open) = fs::read_dir("/proc/self/fd") {
                encode_one(
                    encoder,
                    "process_open_fds",
                    "Number of open file descriptors",
                    // One entry is the directory itself.
                    &ConstGauge::new(open.count().saturating_sub(1) as i64),
                )?;
            }
            if let Some(limits) = read("/proc/self/limits") {
                if let Some(max) = limit(&limits, "Max open files") {
                    encode_one(
                        encoder,
                        "process_max_fds",
                        "Maximum number of open file descriptors",
                        &ConstGauge::new(max as i64),
                    )?;
                }
                encode_one(
                    encoder,
                    "process_virtual_memory_max_bytes",
                    "Maximum amount of virtual memory available in bytes",
                    // Without a limit, the largest number, like Go's client.
                    &ConstGauge::new(limit(&limits, "Max address space").unwrap_or(u64::MAX) as f64),
                )?;
            }
            if let Some((received, sent)) = read("/proc/self/net/netstat").and_then(|text| network(&text)) {
                encode_one(
                    encoder,
                    "process_network_receive_bytes",
                    "Number of bytes received by the process over the network",
                    &ConstCounter::new(received),
                )?;
                encode_one(
                    encoder,
                    "process_network_transmit_bytes",
                    "Number of bytes sent by the process over the network",
                    &ConstCounter::new(sent),
                )?;
            }
            Ok(())
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn stat_is_read_past_a_strange_name() {
            let text = "7 (a) b (c)) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 12345 1000000 2500 18446744073709551615 1";
            let wanted =
                Stat { cpu_ticks: 300, start_ticks: 12345, virtual_bytes: 1_000_000, resident_pages: 2500 };
            assert_eq!(Stat::parse(text), Some(wanted));
            assert_eq!(Stat::parse(""), None);
        }

        #[test]
        fn bytes_of_the_network_are_found_by_their_names() {
            let text = "TcpExt: A B\nTcpExt: 1 2\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 7 8\n";
            assert_eq!(network(text), Some((7, 8)));
            assert_eq!(network("IpExt: InOctets\n"), None);
        }

        #[test]
        fn the_limit_is_the_soft_one() {
            let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                        Max open files            1024                 524288               files\n";
            assert_eq!(limit(text, "Max open files"), Some(1024));
            assert_eq!(
                limit(
                    "Max open files            unlimited            unlimited            files\n",
                    "Max open files"
                ),
                None
            );
        }
    }
}
