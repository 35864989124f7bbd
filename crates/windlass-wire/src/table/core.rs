//! Tables of the core group: namespaces, configuration, accounts, quotas.

use serde_json::Value;

use super::BuiltIn;
use super::column::{AGE, Column};
use super::row::{Row, condition, format_labels, is_true, scalar, text};

pub(super) const KINDS: &[BuiltIn] = &[
    BuiltIn {
        group: "",
        resource: "namespaces",
        columns: &[Column::name(), Column::text("Status"), AGE],
        cells: |row| vec![row.name(), row.text("/status/phase"), row.age()],
    },
    BuiltIn {
        group: "",
        resource: "configmaps",
        columns: &[Column::name(), Column::text("Data"), AGE],
        cells: |row| {
            vec![row.name(), (entries(row, "/data") + entries(row, "/binaryData")).into(), row.age()]
        },
    },
    BuiltIn {
        group: "",
        resource: "secrets",
        columns: &[Column::name(), Column::text("Type"), Column::text("Data"), AGE],
        cells: |row| vec![row.name(), row.text("/type"), entries(row, "/data").into(), row.age()],
    },
    BuiltIn {
        group: "",
        resource: "serviceaccounts",
        columns: &[Column::name(), AGE],
        cells: |row| vec![row.name(), row.age()],
    },
    BuiltIn {
        group: "",
        resource: "resourcequotas",
        columns: &[Column::name(), Column::text("Request"), Column::text("Limit"), AGE],
        cells: quota,
    },
    BuiltIn {
        group: "",
        resource: "podtemplates",
        columns: &[
            Column::name(),
            Column::text("Containers"),
            Column::text("Images"),
            Column::text("Pod Labels"),
        ],
        cells: |row| {
            let [names, images] = row.containers("/template/spec/containers");
            vec![row.name(), names, images, format_labels(row.map("/template/metadata/labels")).into()]
        },
    },
    BuiltIn {
        group: "",
        resource: "componentstatuses",
        columns: &[Column::name(), Column::text("Status"), Column::text("Message"), Column::text("Error")],
        cells: component_status,
    },
];

fn entries(row: &Row<'_>, pointer: &str) -> usize {
    row.map(pointer).map_or(0, serde_json::Map::len)
}

fn quota(row: &Row<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in row.map("/status/hard").into_iter().flatten() {
        let used = row.map("/status/used").and_then(|used| used.get(resource)).map_or("0".to_owned(), scalar);
        let cell = format!("{resource}: {used}/{}", scalar(hard));
        if resource.starts_with("limits.") { limits.push(cell) } else { requests.push(cell) }
    }
    vec![row.name(), requests.join(", ").into(), limits.join(", ").into(), row.age()]
}

fn component_status(row: &Row<'_>) -> Vec<Value> {
    let conditions = row.list("/conditions");
    match condition(conditions, "Healthy") {
        None => vec![row.name(), "Unknown".into(), "".into(), "".into()],
        Some(found) => {
            let status = if is_true(conditions, "Healthy") { "Healthy" } else { "Unhealthy" };
            vec![row.name(), status.into(), text(found, "message").into(), text(found, "error").into()]
        }
    }
}
