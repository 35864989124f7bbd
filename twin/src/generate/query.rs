//! Query parameters and headers.

use fastrand::Rng;

use super::pick;
use crate::kind::Kind;
use crate::player::encode;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

/// A query under construction.
#[derive(Default)]
pub(super) struct Query(Vec<String>);

impl Query {
    pub(super) fn add(&mut self, name: &str, value: impl AsRef<str>) {
        let value = value.as_ref();
        // References are filled in, and encoded, later.
        let value = if value.contains("{{") { value.to_owned() } else { encode(value) };
        self.0.push(format!("{name}={value}"));
    }

    pub(super) fn on(self, path: &str) -> String {
        if self.0.is_empty() { path.to_owned() } else { format!("{path}?{}", self.0.join("&")) }
    }
}

/// Adds the options of a write.
pub(super) fn write_options(random: &mut Rng, query: &mut Query) {
    match random.u32(..100) {
        0..8 => query.add("dryRun", "All"),
        8 => query.add("dryRun", "Some"),
        _ => {}
    }
    match random.u32(..100) {
        0..10 => query.add("fieldValidation", "Strict"),
        10..15 => query.add("fieldValidation", "Ignore"),
        15..18 => query.add("fieldValidation", "Warn"),
        18 => query.add("fieldValidation", "Sloppy"),
        _ => {}
    }
    match random.u32(..100) {
        0..8 => query.add("fieldManager", "manager"),
        8 => query.add("fieldManager", "m".repeat(130)),
        9 => query.add("pretty", "true"),
        10 => query.add("force", "true"),
        11 => query.add("unknown", "1"),
        _ => {}
    }
}

/// Adds selectors.
pub(super) fn selectors(random: &mut Rng, query: &mut Query, kind: &Kind, cluster_wide: bool) {
    let labels = [
        "app=a",
        "app==b",
        "app!=a",
        "app in (a,b)",
        "tier notin (x)",
        "tier",
        "!tier",
        "app=a,tier=x",
        "app in (a),!gone",
        "app in",
        "=a",
        "app=a b",
        "app>1",
        "(x)",
        "app=",
        "UPPER/bad name=1",
        ",",
    ];
    let mut label = match random.u32(..100) {
        0..25 => *pick(random, &labels[..9]),
        25..29 => *pick(random, &labels[9..]),
        _ => "",
    }
    .to_owned();
    if cluster_wide {
        label = if label.is_empty() { "run=twin00".to_owned() } else { format!("run=twin00,{label}") };
    }
    if !label.is_empty() {
        query.add("labelSelector", &label);
    }
    let fields = [
        "metadata.name=x",
        "metadata.name!=x",
        "metadata.name=y,metadata.namespace=twin00-a",
        "metadata.namespace!=twin00-b",
    ];
    let wrong = ["foo=bar", "metadata.name", "metadata.labels=x", "=", "metadata.name=x y", "spec.none=1"];
    let special = [
        (
            "pods",
            ["spec.nodeName=node-1", "status.phase=Pending", "spec.restartPolicy!=Never", "status.podIP="],
        ),
        ("secrets", ["type=Opaque", "type!=Opaque", "type=", "data=x"]),
        ("events", ["reason=R", "involvedObject.name=x", "type!=Normal", "source=c"]),
        (
            "nodes",
            ["spec.unschedulable=true", "spec.unschedulable=false", "spec.x=y", "metadata.name=twin00-x"],
        ),
        ("namespaces", ["status.phase=Active", "status.phase!=Active", "name=x", "metadata.name=twin00-a"]),
        ("jobs", ["status.successful=0", "status.successful!=0", "status.failed=0", "spec.x=1"]),
        ("replicasets", ["status.replicas=0", "status.replicas!=0", "status.replicas=1", "spec.replicas=0"]),
    ];
    match random.u32(..100) {
        0..12 => query.add("fieldSelector", pick(random, &fields)),
        12..15 => query.add("fieldSelector", pick(random, &wrong)),
        15..30 => {
            if let Some((_, fields)) = special.iter().find(|(plural, _)| *plural == kind.plural) {
                query.add("fieldSelector", pick(random, fields));
            } else if !kind.fields.is_empty() {
                let field = pick(random, &kind.fields).clone();
                query.add(
                    "fieldSelector",
                    format!("{field}={}", pick(random, &["a", "red", "1", "true", ""])),
                );
            }
        }
        _ => {}
    }
}

/// Returns an `Accept` header for a read, or `None` for plain JSON.
pub(super) fn accept(random: &mut Rng, is_list: bool) -> Option<String> {
    let value = match random.u32(..100) {
        0..12 => TABLE,
        12..20 if is_list => METADATA_LIST,
        12..20 => METADATA,
        20 => METADATA,
        21 => METADATA_LIST,
        22 => "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
        23 => "application/json;as=Table;v=v9;g=meta.k8s.io",
        24 => "text/html",
        25 => "*/*",
        26 => "application/xml,application/json;q=0.5",
        27 => "application/json;as=Nothing;v=v1;g=meta.k8s.io,application/json",
        _ => return None,
    };
    Some(value.to_owned())
}
