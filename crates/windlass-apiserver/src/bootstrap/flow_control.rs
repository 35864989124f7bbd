//! The flow schemas and priority levels of a new cluster.

use serde_json::{Value, json};

use super::TIME;

/// A priority level: name, shares, lendable percentage, and number of queues and hand size. Without queues,
/// the level rejects surplus requests.
type Level = (&'static str, i64, i64, Option<(i64, i64)>);

const LEVELS: [Level; 7] = [
    ("catch-all", 5, 0, None),
    ("global-default", 20, 50, Some((128, 6))),
    ("leader-election", 10, 0, Some((16, 4))),
    ("node-high", 40, 25, Some((64, 6))),
    ("system", 30, 33, Some((64, 6))),
    ("workload-high", 40, 50, Some((128, 6))),
    ("workload-low", 100, 90, Some((128, 6))),
];
const QUEUE_LENGTH: i64 = 50;

/// The requests of a flow schema's subjects.
#[derive(Clone, Copy)]
enum Requests {
    All,
    Probes,
    Leases,
    Nodes,
}

/// A flow schema: name, precedence, priority level, distinguisher, subjects and requests.
type Schema = (&'static str, i64, &'static str, Option<&'static str>, &'static [&'static str], Requests);

const EVERYBODY: &[&str] = &["group:system:unauthenticated", "group:system:authenticated"];
const CONTROLLER_MANAGER: &str = "user:system:kube-controller-manager";
const SCHEDULER: &str = "user:system:kube-scheduler";
const SYSTEM_ACCOUNTS: &str = "serviceaccount:kube-system/*";

const SCHEMAS: [Schema; 11] = [
    ("catch-all", 10_000, "catch-all", Some("ByUser"), EVERYBODY, Requests::All),
    ("exempt", 1, "exempt", None, &["group:system:masters"], Requests::All),
    ("global-default", 9_900, "global-default", Some("ByUser"), EVERYBODY, Requests::All),
    (
        "kube-controller-manager",
        800,
        "workload-high",
        Some("ByNamespace"),
        &[CONTROLLER_MANAGER],
        Requests::All,
    ),
    ("kube-scheduler", 800, "workload-high", Some("ByNamespace"), &[SCHEDULER], Requests::All),
    (
        "kube-system-service-accounts",
        900,
        "workload-high",
        Some("ByNamespace"),
        &[SYSTEM_ACCOUNTS],
        Requests::All,
    ),
    ("probes", 2, "exempt", None, EVERYBODY, Requests::Probes),
    (
        "service-accounts",
        9_000,
        "workload-low",
        Some("ByUser"),
        &["group:system:serviceaccounts"],
        Requests::All,
    ),
    (
        "system-leader-election",
        100,
        "leader-election",
        Some("ByUser"),
        &[CONTROLLER_MANAGER, SCHEDULER, SYSTEM_ACCOUNTS],
        Requests::Leases,
    ),
    ("system-node-high", 400, "node-high", Some("ByUser"), &["group:system:nodes"], Requests::Nodes),
    ("system-nodes", 500, "system", Some("ByUser"), &["group:system:nodes"], Requests::All),
];

/// Returns the flow schemas and priority levels, with the resource of each object.
pub(super) fn objects() -> Vec<(&'static str, Value)> {
    let exempt = json!({"type": "Exempt", "exempt": {"lendablePercent": 0, "nominalConcurrencyShares": 0}});
    let mut objects =
        vec![("prioritylevelconfigurations", object("PriorityLevelConfiguration", "exempt", exempt))];
    for (name, shares, lendable, queues) in LEVELS {
        let response = match queues {
            None => json!({"type": "Reject"}),
            Some((queues, hand)) => json!({
                "type": "Queue",
                "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": QUEUE_LENGTH},
            }),
        };
        let limited = json!({
            "nominalConcurrencyShares": shares,
            "lendablePercent": lendable,
            "limitResponse": response,
        });
        let spec = json!({"type": "Limited", "limited": limited});
        objects.push(("prioritylevelconfigurations", object("PriorityLevelConfiguration", name, spec)));
    }
    objects.extend(SCHEMAS.iter().map(|schema| ("flowschemas", flow_schema(schema))));
    objects
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "kind": kind,
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "metadata": {
            "name": name,
            "generation": 1,
            "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"},
        },
        "spec": spec,
        "status": {},
    })
}

fn flow_schema((name, precedence, level, distinguisher, subjects, requests): &Schema) -> Value {
    let mut rule = rule(*requests);
    rule["subjects"] = subjects.iter().map(|subject| read_subject(subject)).collect();
    let mut spec = json!({
        "matchingPrecedence": precedence,
        "priorityLevelConfiguration": {"name": level},
        "rules": [rule],
    });
    if let Some(kind) = distinguisher {
        spec["distinguisherMethod"] = json!({"type": kind});
    }
    let mut schema = object("FlowSchema", name, spec);
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named \"{level}\" and it exists"
    );
    schema["status"] = json!({"conditions": [{
        "type": "Dangling",
        "status": "False",
        "lastTransitionTime": TIME,
        "reason": "Found",
        "message": message,
    }]});
    schema
}

fn rule(requests: Requests) -> Value {
    let resources = |groups: &str, resources: &[&str], verbs: &[&str], cluster: bool| {
        let mut rule =
            json!({"verbs": verbs, "apiGroups": [groups], "resources": resources, "namespaces": ["*"]});
        if cluster {
            rule["clusterScope"] = json!(true);
        }
        rule
    };
    match requests {
        Requests::All => json!({
            "resourceRules": [resources("*", &["*"], &["*"], true)],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }),
        Requests::Probes => json!({
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}],
        }),
        Requests::Leases => {
            let verbs = ["get", "create", "update"];
            json!({"resourceRules": [resources("coordination.k8s.io", &["leases"], &verbs, false)]})
        }
        Requests::Nodes => json!({"resourceRules": [
            resources("", &["nodes", "nodes/status"], &["*"], true),
            resources("coordination.k8s.io", &["leases"], &["*"], false),
        ]}),
    }
}

fn read_subject(subject: &str) -> Value {
    let (kind, name) = subject.split_once(':').unwrap_or_default();
    match (kind, name.split_once('/')) {
        ("serviceaccount", Some((namespace, name))) => {
            json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}})
        }
        ("user", _) => json!({"kind": "User", "user": {"name": name}}),
        _ => json!({"kind": "Group", "group": {"name": name}}),
    }
}
