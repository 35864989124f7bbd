//! The columns of `kubectl get`.

use serde_json::{Value, json};

use crate::table::column::{AGE, Column};
use crate::table::row::{Row, condition, is_true, text};
use crate::table::{Table, age};

/// The columns of pods.
pub(super) static TABLE: Table = Table::new(
    &[
        Column::name(),
        Column::text("Ready"),
        Column::text("Status"),
        Column::text("Restarts"),
        AGE,
        Column::wide("IP"),
        Column::wide("Node"),
        Column::wide("Nominated Node"),
        Column::wide("Readiness Gates"),
    ],
    cells,
)
.with_conditions(conditions);

/// Returns the condition of the row of a pod that has ended.
fn conditions(row: &Row<'_>) -> Option<Value> {
    let message = match row.str("/status/phase") {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    let reason = row.str("/status/phase");
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn cells(row: &Row<'_>) -> Vec<Value> {
    let summary = Summary::of(row);
    let restarts = match summary.last_restart {
        Some(time) if summary.restarts > 0 => {
            format!("{} ({} ago)", summary.restarts, age::since(Some(&time.into()), row.now))
        }
        _ => summary.restarts.to_string(),
    };
    vec![
        row.name(),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        row.age(),
        row.text_or("/status/podIPs/0/ip", "<none>"),
        row.text_or("/spec/nodeName", "<none>"),
        row.text_or("/status/nominatedNodeName", "<none>"),
        readiness_gates(row).into(),
    ]
}

fn readiness_gates(row: &Row<'_>) -> String {
    let gates = row.list("/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let conditions = row.list("/status/conditions");
    let open = gates.iter().filter(|gate| is_true(conditions, text(gate, "conditionType"))).count();
    format!("{open}/{}", gates.len())
}

struct Summary<'a> {
    ready: usize,
    total: usize,
    reason: String,
    restarts: i64,
    /// The latest time a container that was restarted had ended.
    last_restart: Option<&'a str>,
}

impl<'a> Summary<'a> {
    fn of(row: &Row<'a>) -> Self {
        let phase = row.str("/status/phase");
        let stated = row.str("/status/reason");
        let conditions = row.list("/status/conditions");
        let mut reason = if stated.is_empty() { phase } else { stated }.to_owned();
        if condition(conditions, "PodScheduled")
            .is_some_and(|found| text(found, "reason") == "SchedulingGated")
        {
            "SchedulingGated".clone_into(&mut reason);
        }
        let sidecars =
            row.list("/spec/initContainers").iter().filter(|container| is_sidecar(container)).count();
        let mut summary = Self {
            ready: 0,
            total: row.list("/spec/containers").len() + sidecars,
            reason,
            restarts: 0,
            last_restart: None,
        };
        let (initializing, of_sidecars) = summary.add_init_containers(row);
        if !initializing || is_true(conditions, "Initialized") {
            (summary.restarts, summary.last_restart) = of_sidecars;
            summary.add_containers(row);
        }
        if row.is_deleted() {
            if stated == "NodeLost" {
                "Unknown".clone_into(&mut summary.reason);
            } else if phase != "Succeeded" && phase != "Failed" {
                "Terminating".clone_into(&mut summary.reason);
            }
        }
        summary
    }

    /// Returns whether an init container still holds the pod up, and the restarts of restartable init
    /// containers.
    fn add_init_containers(&mut self, row: &Row<'a>) -> (bool, (i64, Option<&'a str>)) {
        let specs = row.list("/spec/initContainers");
        let mut of_sidecars = (0, None);
        for (index, status) in row.list("/status/initContainerStatuses").iter().enumerate() {
            let sidecar =
                specs.iter().any(|spec| text(spec, "name") == text(status, "name") && is_sidecar(spec));
            self.add_restarts(status);
            if sidecar {
                of_sidecars.0 += restart_count(status);
                of_sidecars.1 = of_sidecars.1.max(ended_at(status));
            }
            let terminated = status.pointer("/state/terminated");
            if terminated.is_some_and(|state| exit_code(state) == 0) {
                continue;
            }
            if sidecar && flag(status, "started") {
                self.ready += usize::from(flag(status, "ready"));
                continue;
            }
            let waiting = status.pointer("/state/waiting/reason").and_then(Value::as_str).unwrap_or_default();
            self.reason = match terminated {
                Some(state) => format!("Init:{}", end_reason(state)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
                None => format!("Init:{index}/{}", specs.len()),
            };
            return (true, of_sidecars);
        }
        (false, of_sidecars)
    }

    fn add_containers(&mut self, row: &Row<'a>) {
        let mut running = false;
        let mut failure = None;
        for status in row.list("/status/containerStatuses").iter().rev() {
            self.add_restarts(status);
            let waiting = status.pointer("/state/waiting/reason").and_then(Value::as_str).unwrap_or_default();
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(state) = status.pointer("/state/terminated") {
                self.reason = end_reason(state);
                if exit_code(state) != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if flag(status, "ready") && status.pointer("/state/running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if running && is_true(row.list("/status/conditions"), "Ready") {
                "Running".clone_into(&mut self.reason);
            } else if let Some(failure) = failure {
                self.reason = failure;
            } else if running {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }

    fn add_restarts(&mut self, status: &'a Value) {
        self.restarts += restart_count(status);
        self.last_restart = self.last_restart.max(ended_at(status));
    }
}

fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

fn flag(status: &Value, name: &str) -> bool {
    status.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn restart_count(status: &Value) -> i64 {
    status.get("restartCount").and_then(Value::as_i64).unwrap_or_default()
}

fn ended_at(status: &Value) -> Option<&str> {
    status.pointer("/lastState/terminated/finishedAt").and_then(Value::as_str)
}

fn exit_code(terminated: &Value) -> i64 {
    terminated.get("exitCode").and_then(Value::as_i64).unwrap_or_default()
}

fn end_reason(terminated: &Value) -> String {
    let reason = text(terminated, "reason");
    if !reason.is_empty() {
        return reason.to_owned();
    }
    match terminated.get("signal").and_then(Value::as_i64).unwrap_or_default() {
        0 => format!("ExitCode:{}", exit_code(terminated)),
        signal => format!("Signal:{signal}"),
    }
}
