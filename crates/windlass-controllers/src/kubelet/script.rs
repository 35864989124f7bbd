//! Annotations that control a simulated pod.
//!
//! By default, containers start as soon as the ConfigMaps and Secrets of the pod exist, become ready as soon as the probes have had time to
//! succeed, run until the pod is deleted, and then stop at once. A container whose `restartPolicy`, or else that of the pod, is not `Always`
//! ends by itself after a second, with exit code 0, so that Jobs come to their end. Init containers end at once with exit code 0.
//!
//! A command whose effect is plain goes before these defaults: `sleep 30` runs for 30 s, `sh -c "echo no; exit 1"` fails at once. See
//! `kubelet/command.rs` for the commands that are read. Annotations go before the command.
//!
//! | annotation | meaning |
//! |---|---|
//! | `kubelet.windlass.dev/start-after: 2s` | time until the image is pulled |
//! | `kubelet.windlass.dev/ready-after: 1s` | time from the start until the container is ready, in the place of probes |
//! | `kubelet.windlass.dev/ready: "false"` | the container is not ready, until the annotation changes; also while the container runs |
//! | `kubelet.windlass.dev/run-for: 5s` | time from the start until the container ends; `forever`: not until the pod is deleted |
//! | `kubelet.windlass.dev/exit-code: "1"` | the exit code |
//! | `kubelet.windlass.dev/message: no luck` | the termination message |
//! | `kubelet.windlass.dev/stop-after: 3s` | time from the deletion until the container stops, at most the grace period |
//! | `kubelet.windlass.dev/image-pull: fail` | the image cannot be pulled |
//! | `kubelet.windlass.dev/strict: "false"` | the pod starts without missing ConfigMaps and Secrets, and becomes ready without the delays of probes; of a namespace, too |
//! | `kubelet.windlass.dev/exec: echo hello` | the script that answers `exec` and `attach`; see [`streams`](super::streams) |
//! | `kubelet.windlass.dev/port.80: 127.0.0.1:8080` | the address that stands for a port of the pod, for `port-forward`, proxies and webhooks |
//!
//! An annotation applies to all containers of the pod, or to the container whose name is appended: `kubelet.windlass.dev/run-for.web`. Values
//! that do not parse are ignored. Durations have the form of Kubernetes: `1m30s`, `200ms`.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};

use super::command::predict;

/// The prefix of the annotations.
pub(super) const PREFIX: &str = "kubelet.windlass.dev/";
/// The annotations that replace a part of a container's program.
const PARTS: [&str; 7] =
    ["start-after", "ready-after", "run-for", "exit-code", "message", "stop-after", "log"];

/// Returns whether annotations control the pod, so that no program needs to run.
pub(super) fn is_scripted(annotations: &BTreeMap<String, String>) -> bool {
    let parts = PARTS.iter().chain(&["image-pull", "ready"]);
    let is_part = |key: &str| parts.clone().any(|part| key.split('.').next() == Some(part));
    annotations.keys().filter_map(|key| key.strip_prefix(PREFIX)).any(is_part)
}

/// The script of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContainerScript {
    /// `start-after`: time until the image is pulled. Default: 0.
    pub start_after: Duration,
    /// `ready-after`: time from the start until the container is ready. Default: the time of the probes, else 0.
    pub ready_after: Option<Duration>,
    /// Time from the start until the startup probe succeeds. Default: 0.
    pub started_after: Duration,
    /// `run-for`: time from the start until the container ends. Default: the time of the command, else forever, 1 s without
    /// restarts, and 0 for an init container.
    pub run_for: Option<Duration>,
    /// `run-for: forever`.
    pub endless: bool,
    /// `exit-code`. Default: that of the command, else 0.
    pub exit_code: Option<i32>,
    /// `message`: the termination message.
    pub message: Option<String>,
    /// `stop-after`: time from the deletion until the container stops, at most the grace period. Default: 0.
    pub stop_after: Duration,
    /// `image-pull: fail`: the image cannot be pulled.
    pub image_missing: bool,
    /// `ready: "false"`: the readiness probe fails.
    pub is_unready: bool,
    /// True if an annotation or the command controls the container. If not, the program of the image is
    /// missing.
    pub is_known: bool,
}

impl ContainerScript {
    /// Reads the annotations for the container `name`. Values that do not parse are ignored.
    pub(super) fn read(annotations: Option<&BTreeMap<String, String>>, name: &str) -> Self {
        let find = |key: &str| -> Option<&str> {
            let annotations = annotations?;
            let own = annotations.get(&format!("{PREFIX}{key}.{name}"));
            own.or_else(|| annotations.get(&format!("{PREFIX}{key}"))).map(String::as_str)
        };
        let time = |key: &str| find(key).and_then(parse_duration);
        Self {
            start_after: time("start-after").unwrap_or_default(),
            ready_after: time("ready-after"),
            started_after: Duration::ZERO,
            run_for: time("run-for"),
            endless: find("run-for") == Some("forever"),
            exit_code: find("exit-code").and_then(|code| code.parse().ok()),
            message: find("message").map(str::to_owned),
            stop_after: time("stop-after").unwrap_or_default(),
            image_missing: find("image-pull") == Some("fail"),
            is_unready: find("ready") == Some("false"),
            is_known: PARTS.iter().any(|part| find(part).is_some()),
        }
    }

    /// Fills the gaps of the annotations from the probes of the container. Every check succeeds.
    pub(super) fn with_probes(mut self, container: &Container) -> Self {
        if self.ready_after.is_some() {
            return self;
        }
        let seconds = |value: Option<i32>| u64::try_from(value.unwrap_or(0)).unwrap_or(0);
        let delay = |probe: &Probe| Duration::from_secs(seconds(probe.initial_delay_seconds));
        self.started_after = container.startup_probe.as_ref().map_or(Duration::ZERO, delay);
        let ready_after = container.readiness_probe.as_ref().map(|probe| {
            let period = Duration::from_secs(seconds(probe.period_seconds.or(Some(10))));
            let more_checks = u32::try_from(probe.success_threshold.unwrap_or(1) - 1).unwrap_or(0);
            self.started_after.max(delay(probe)).saturating_add(period.saturating_mul(more_checks))
        });
        self.ready_after = ready_after;
        self
    }

    /// Returns the time from the start until the container is ready.
    pub(super) fn ready_after(&self) -> Duration {
        self.ready_after.unwrap_or(self.started_after)
    }

    /// Fills the gaps of the annotations from the command of the container.
    pub(super) fn with_command(mut self, container: &Container) -> Self {
        let words = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
        let Some(predicted) = predict(&words(&container.command), &words(&container.args)) else {
            return self;
        };
        if self.run_for.is_none() && !self.endless {
            self.run_for = Some(predicted.run_for);
        }
        self.exit_code = self.exit_code.or(Some(predicted.exit_code));
        self.is_known = true;
        self
    }
}

/// Parses a duration in the form of Kubernetes: `1h`, `1m30s`, `1.5s`, `200ms`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total =
            total.checked_add(Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?)?;
        rest = next;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let ms = Duration::from_millis;
        for (text, expected) in [
            ("200ms", Some(ms(200))),
            ("1.5s", Some(ms(1500))),
            ("1m30s", Some(ms(90_000))),
            ("1h", Some(ms(3_600_000))),
            ("0s", Some(ms(0))),
            ("", None),
            ("5", None),
            ("-5s", None),
            ("soon", None),
            ("1e400s", None),
            ("99999999999999999999999h", None),
        ] {
            assert_eq!(parse_duration(text), expected, "{text}");
        }
    }

    #[test]
    fn an_annotation_for_one_container_goes_before_the_one_for_all() {
        let annotations = BTreeMap::from([
            (format!("{PREFIX}exit-code"), "1".to_owned()),
            (format!("{PREFIX}exit-code.web"), "7".to_owned()),
            (format!("{PREFIX}run-for"), "not a time".to_owned()),
        ]);
        let read = |name| ContainerScript::read(Some(&annotations), name);
        assert_eq!((read("web").exit_code, read("other").exit_code), (Some(7), Some(1)));
        assert_eq!(read("web").run_for, None);
        assert!(read("web").is_known);
    }

    #[test]
    fn a_program_is_known_by_an_annotation_or_by_its_command() {
        let without = ContainerScript::read(None, "web");
        assert!(!without.is_known);
        let run = |words: &[&str]| {
            let command = words.iter().map(ToString::to_string).collect();
            without.clone().with_command(&Container { command: Some(command), ..Container::default() })
        };
        assert!(run(&["sleep", "30"]).is_known);
        assert!(!run(&["/manager"]).is_known);
    }
}
