//! The rules of the CRDs of well-known projects, and random objects of their kinds, on the embedded and on a real server.
//!
//! The CRDs come out of Go modules and are not part of this repository. A Go program estimates the costs of all rules
//! with the functions of Kubernetes; the package windlass-twin then sends the CRDs and objects to both servers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;
use windlass_cel::estimate_definition;

use crate::crd_types::{documents, yaml_files};
use crate::{Result, control_plane, go_module, twin};

/// A project, its Go module, and the folders with CRDs.
type Project = (&'static str, &'static str, &'static [&'static str]);

const PROJECTS: &[Project] = &[
    ("gateway-api", "sigs.k8s.io/gateway-api@v1.5.1", &["config/crd/standard", "config/crd/experimental"]),
    ("envoy-gateway", "github.com/envoyproxy/gateway@v1.9.1", &["charts/gateway-helm/charts/crds/crds"]),
    ("istio", "istio.io/api@v1.31.1", &["kubernetes"]),
    ("kueue", "sigs.k8s.io/kueue@v0.17.0", &["config/components/crd/bases"]),
    ("karpenter", "sigs.k8s.io/karpenter@v1.11.0", &["pkg/apis/crds", "kwok/charts/crds"]),
    ("cilium", "github.com/cilium/cilium@v1.20.2", &["pkg/k8s/apis/cilium.io/client/crds"]),
    (
        "cluster-api",
        "sigs.k8s.io/cluster-api@v1.14.2",
        &[
            "core/config/crd/bases",
            "controlplane/kubeadm/config/crd/bases",
            "bootstrap/kubeadm/config/crd/bases",
        ],
    ),
    ("kro", "github.com/kubernetes-sigs/kro@v0.9.0", &["helm/crds"]),
    ("kyverno", "github.com/kyverno/kyverno@v1.19.1", &["config/crds/policies.kyverno.io"]),
    ("cert-manager", "github.com/cert-manager/cert-manager@v1.21.2", &["deploy/crds"]),
    ("external-secrets", "github.com/external-secrets/external-secrets@v1.3.2", &["config/crds/bases"]),
    (
        "network-policy-api",
        "sigs.k8s.io/network-policy-api@v0.3.0",
        &["config/crd/standard", "config/crd/experimental"],
    ),
];

/// The version of the Go modules of Kubernetes.
const VERSION: &str = "v0.37.2";

/// A CRD with rules.
struct Definition {
    project: &'static str,
    json: Json,
}

/// The estimated costs of the rules, by the number of the definition, the version and the path of the rule.
type Costs = BTreeMap<(usize, String, String), u64>;

/// Compares the costs of all rules of `projects` (all projects, if the list is empty), then random objects.
pub(super) fn run(projects: &[String], objects: usize, seed: u64) -> Result {
    let folder = control_plane::cache_folder()?.join("cel-corpus");
    fs::create_dir_all(&folder)?;
    let definitions = collect(projects)?;
    let file = folder.join("definitions.jsonl");
    let lines: Vec<String> = definitions.iter().map(|definition| definition.json.to_string()).collect();
    fs::write(&file, format!("{}\n", lines.join("\n")))?;
    print_counts(&definitions);
    compare_costs(&our_costs(&definitions), &costs_of_kubernetes(&folder, &file)?)?;
    if objects == 0 {
        return Ok(());
    }
    let (objects, seed) = (objects.to_string(), seed.to_string());
    let file = file.to_string_lossy().into_owned();
    let arguments = ["--corpus", &file, "--objects", &objects, "--seed", &seed];
    twin::run(twin::Args::new(arguments))
}

/// Reads the CRDs with rules. Definitions that occur twice are read once.
fn collect(projects: &[String]) -> Result<Vec<Definition>> {
    let wanted = |name: &str| projects.is_empty() || projects.iter().any(|project| project == name);
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    for (project, module, folders) in PROJECTS.iter().filter(|(name, ..)| wanted(name)) {
        let source = go_module::download(module)?;
        for path in folders.iter().flat_map(|folder| yaml_files(&source.join(folder))) {
            for json in documents(&path) {
                let has_rules = json["kind"] == "CustomResourceDefinition" && rules(&json).next().is_some();
                if has_rules && known.insert(json.to_string()) {
                    found.push(Definition { project, json: prepared(json) });
                }
            }
        }
        if !found.iter().any(|definition| definition.project == *project) {
            return Err(format!("{module}: no CRD with rules below {folders:?}").into());
        }
    }
    Ok(found)
}

/// Removes the conversion webhook, because no such webhook runs.
fn prepared(mut definition: Json) -> Json {
    if let Some(spec) = definition["spec"].as_object_mut() {
        spec.remove("conversion");
    }
    definition
}

/// Returns the texts of the rules of a definition.
fn rules(json: &Json) -> Box<dyn Iterator<Item = &str> + '_> {
    match json {
        Json::Object(fields) => {
            let own = fields.get("x-kubernetes-validations").and_then(Json::as_array).into_iter().flatten();
            let own = own.filter_map(|rule| rule["rule"].as_str());
            Box::new(own.chain(fields.values().flat_map(rules)))
        }
        Json::Array(items) => Box::new(items.iter().flat_map(rules)),
        _ => Box::new(std::iter::empty()),
    }
}

fn print_counts(definitions: &[Definition]) {
    println!("{:<20}{:>6}{:>8}{:>10}", "project", "CRDs", "rules", "distinct");
    let line = |name: &str, of_project: &[&Definition]| {
        let texts: Vec<&str> = of_project.iter().flat_map(|definition| rules(&definition.json)).collect();
        let distinct = texts.iter().collect::<BTreeSet<_>>().len();
        println!("{name:<20}{:>6}{:>8}{distinct:>10}", of_project.len(), texts.len());
    };
    for (name, ..) in PROJECTS {
        let of_project: Vec<_> =
            definitions.iter().filter(|definition| definition.project == *name).collect();
        if !of_project.is_empty() {
            line(name, &of_project);
        }
    }
    line("all", &definitions.iter().collect::<Vec<_>>());
}

fn our_costs(definitions: &[Definition]) -> Costs {
    let mut costs = Costs::new();
    for (index, definition) in definitions.iter().enumerate() {
        for version in definition.json["spec"]["versions"].as_array().into_iter().flatten() {
            let name = version["name"].as_str().unwrap_or_default();
            let estimates = estimate_definition(&version["schema"]["openAPIV3Schema"], "schema");
            costs.extend(estimates.into_iter().map(|(path, cost)| ((index, name.to_owned(), path), cost)));
        }
    }
    costs.retain(|_, cost| *cost > 0);
    costs
}

fn costs_of_kubernetes(folder: &Path, definitions: &Path) -> Result<Costs> {
    fs::write(folder.join("main.go"), include_str!("corpus/main.go"))?;
    let modules = ["k8s.io/apiextensions-apiserver", "k8s.io/apimachinery", "k8s.io/apiserver"];
    let required = modules.map(|module| format!("require {module} {VERSION}\n")).concat();
    fs::write(folder.join("go.mod"), format!("module corpus\n\ngo 1.26\n\n{required}"))?;
    go(folder, &["mod", "tidy"])?;
    let text = go(folder, &["run", ".", &definitions.to_string_lossy()])?;
    let mut costs = Costs::new();
    for line in text.lines() {
        let line: Json = serde_json::from_str(line)?;
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let index = line["definition"].as_u64().unwrap_or_default() as usize;
        costs.insert((index, text("version"), text("path")), line["cost"].as_u64().unwrap_or_default());
    }
    Ok(costs)
}

fn go(folder: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("go")
        .args(arguments)
        .current_dir(folder)
        .env("GOFLAGS", "-mod=mod")
        .output()
        .map_err(|error| format!("cannot run go: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn compare_costs(ours: &Costs, theirs: &Costs) -> Result {
    let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let apart: Vec<_> = keys.iter().filter(|key| ours.get(**key) != theirs.get(**key)).collect();
    println!("estimated costs: {} expressions, {} differ", keys.len(), apart.len());
    for key in apart.iter().take(20) {
        println!("  {key:?}: {:?}, Kubernetes {:?}", ours.get(**key), theirs.get(**key));
    }
    if apart.is_empty() { Ok(()) } else { Err("the estimated costs differ".into()) }
}
