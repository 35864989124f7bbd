//! Tables of kinds that configure the API server and the cluster.

use serde_json::Value;

use super::BuiltIn;
use super::age::human_duration;
use super::column::{AGE, Column};
use super::row::{Row, condition, scalar, text};

const ADMISSION: &str = "admissionregistration.k8s.io";
const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io";
const RESOURCE: &str = "resource.k8s.io";

const WEBHOOK_COLUMNS: &[Column] = &[Column::name(), Column::integer("Webhooks"), AGE];
const POLICY_BINDING_COLUMNS: &[Column] =
    &[Column::name(), Column::text("PolicyName"), Column::text("ParamRef"), AGE];

pub(super) const KINDS: &[BuiltIn] = &[
    BuiltIn {
        group: "coordination.k8s.io",
        resource: "leases",
        columns: &[Column::name(), Column::text("Holder"), AGE],
        cells: |row| vec![row.name(), row.text("/spec/holderIdentity"), row.age()],
    },
    BuiltIn {
        group: "scheduling.k8s.io",
        resource: "priorityclasses",
        columns: &[
            Column::name(),
            Column::integer("Value"),
            Column::boolean("Global-Default"),
            AGE,
            Column::text("PreemptionPolicy"),
        ],
        cells: |row| {
            vec![
                row.name(),
                row.number("/value"),
                row.bool("/globalDefault").into(),
                row.age(),
                row.text("/preemptionPolicy"),
            ]
        },
    },
    BuiltIn {
        group: "node.k8s.io",
        resource: "runtimeclasses",
        columns: &[Column::name(), Column::text("Handler"), AGE],
        cells: |row| vec![row.name(), row.text("/handler"), row.age()],
    },
    BuiltIn {
        group: "certificates.k8s.io",
        resource: "certificatesigningrequests",
        columns: &[
            Column::name(),
            AGE,
            Column::text("SignerName"),
            Column::text("Requestor"),
            Column::text("RequestedDuration"),
            Column::text("Condition"),
        ],
        cells: signing_request,
    },
    BuiltIn {
        group: "apiregistration.k8s.io",
        resource: "apiservices",
        columns: &[Column::name(), Column::text("Service"), Column::text("Available"), AGE],
        cells: api_service,
    },
    BuiltIn {
        group: ADMISSION,
        resource: "mutatingwebhookconfigurations",
        columns: WEBHOOK_COLUMNS,
        cells: |row| counted(row, "/webhooks"),
    },
    BuiltIn {
        group: ADMISSION,
        resource: "validatingwebhookconfigurations",
        columns: WEBHOOK_COLUMNS,
        cells: |row| counted(row, "/webhooks"),
    },
    BuiltIn {
        group: ADMISSION,
        resource: "validatingadmissionpolicies",
        columns: &[Column::name(), Column::integer("Validations"), Column::text("ParamKind"), AGE],
        cells: |row| policy(row, "/spec/validations"),
    },
    BuiltIn {
        group: ADMISSION,
        resource: "mutatingadmissionpolicies",
        columns: &[Column::name(), Column::integer("Mutations"), Column::text("ParamKind"), AGE],
        cells: |row| policy(row, "/spec/mutations"),
    },
    BuiltIn {
        group: ADMISSION,
        resource: "validatingadmissionpolicybindings",
        columns: POLICY_BINDING_COLUMNS,
        cells: policy_binding,
    },
    BuiltIn {
        group: ADMISSION,
        resource: "mutatingadmissionpolicybindings",
        columns: POLICY_BINDING_COLUMNS,
        cells: policy_binding,
    },
    BuiltIn {
        group: FLOW_CONTROL,
        resource: "flowschemas",
        columns: &[
            Column::name(),
            Column::text("PriorityLevel"),
            Column::text("MatchingPrecedence"),
            Column::text("DistinguisherMethod"),
            AGE,
            Column::text("MissingPL"),
        ],
        cells: |row| {
            let dangling = condition(row.list("/status/conditions"), "Dangling");
            vec![
                row.name(),
                row.text("/spec/priorityLevelConfiguration/name"),
                row.number("/spec/matchingPrecedence"),
                row.text_or("/spec/distinguisherMethod/type", "<none>"),
                row.age(),
                dangling.map_or("?", |condition| text(condition, "status")).into(),
            ]
        },
    },
    BuiltIn {
        group: FLOW_CONTROL,
        resource: "prioritylevelconfigurations",
        columns: &[
            Column::name(),
            Column::text("Type"),
            Column::text("NominalConcurrencyShares"),
            Column::text("Queues"),
            Column::text("HandSize"),
            Column::text("QueueLengthLimit"),
            AGE,
        ],
        cells: priority_level,
    },
    BuiltIn {
        group: RESOURCE,
        resource: "deviceclasses",
        columns: &[Column::name(), AGE],
        cells: |row| vec![row.name(), row.age()],
    },
    BuiltIn {
        group: RESOURCE,
        resource: "resourceclaimtemplates",
        columns: &[Column::name(), AGE],
        cells: |row| vec![row.name(), row.age()],
    },
    BuiltIn {
        group: RESOURCE,
        resource: "resourceclaims",
        columns: &[Column::name(), Column::text("State"), AGE],
        cells: |row| vec![row.name(), claim_state(row).into(), row.age()],
    },
    BuiltIn {
        group: RESOURCE,
        resource: "resourceslices",
        columns: &[Column::name(), Column::text("Node"), Column::text("Driver"), Column::text("Pool"), AGE],
        cells: |row| {
            vec![
                row.name(),
                row.text("/spec/nodeName"),
                row.text("/spec/driver"),
                row.text("/spec/pool/name"),
                row.age(),
            ]
        },
    },
];

fn counted(row: &Row<'_>, pointer: &str) -> Vec<Value> {
    vec![row.name(), row.list(pointer).len().into(), row.age()]
}

fn policy(row: &Row<'_>, pointer: &str) -> Vec<Value> {
    let parameter = row.value("/spec/paramKind").map_or_else(
        || "<unset>".to_owned(),
        |kind| format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")),
    );
    vec![row.name(), row.list(pointer).len().into(), parameter.into(), row.age()]
}

fn policy_binding(row: &Row<'_>) -> Vec<Value> {
    let parameter = match row.value("/spec/paramRef") {
        None => "<unset>".to_owned(),
        Some(reference) => match (text(reference, "namespace"), text(reference, "name")) {
            (_, "") => {
                row.value("/spec/paramRef/selector").map_or_else(|| "<unset>".to_owned(), Value::to_string)
            }
            ("", name) => format!("*/{name}"),
            (namespace, name) => format!("{namespace}/{name}"),
        },
    };
    vec![row.name(), row.text("/spec/policyName"), parameter.into(), row.age()]
}

fn signing_request(row: &Row<'_>) -> Vec<Value> {
    let conditions = row.list("/status/conditions");
    let has = |kind: &str| condition(conditions, kind).is_some();
    let mut state = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        state += ",Failed";
    }
    if !row.str("/status/certificate").is_empty() {
        state += ",Issued";
    }
    let duration = row.value("/spec/expirationSeconds").and_then(Value::as_i64);
    vec![
        row.name(),
        row.age(),
        row.text_or("/spec/signerName", "<none>"),
        row.text("/spec/username"),
        duration.map_or_else(|| "<none>".to_owned(), human_duration).into(),
        state.into(),
    ]
}

fn api_service(row: &Row<'_>) -> Vec<Value> {
    let service = row.value("/spec/service").map_or_else(
        || "Local".to_owned(),
        |service| format!("{}/{}", text(service, "namespace"), text(service, "name")),
    );
    let available = match condition(row.list("/status/conditions"), "Available") {
        None => "Unknown".to_owned(),
        Some(found) if text(found, "status") == "True" => "True".to_owned(),
        Some(found) => format!("{} ({})", text(found, "status"), text(found, "reason")),
    };
    vec![row.name(), service.into(), available.into(), row.age()]
}

fn priority_level(row: &Row<'_>) -> Vec<Value> {
    let limited =
        |path: &str| row.value(&format!("/spec/limited/{path}")).cloned().unwrap_or_else(|| "<none>".into());
    vec![
        row.name(),
        row.text("/spec/type"),
        limited("nominalConcurrencyShares"),
        limited("limitResponse/queuing/queues"),
        limited("limitResponse/queuing/handSize"),
        limited("limitResponse/queuing/queueLengthLimit"),
        row.age(),
    ]
}

fn claim_state(row: &Row<'_>) -> String {
    let mut states = Vec::new();
    if row.is_deleted() {
        states.push("deleted");
    }
    if row.value("/status/allocation").is_some_and(|allocation| !scalar(allocation).is_empty()) {
        states.push("allocated");
        if !row.list("/status/reservedFor").is_empty() {
            states.push("reserved");
        }
    } else if !row.is_deleted() {
        states.push("pending");
    }
    states.join(",")
}
