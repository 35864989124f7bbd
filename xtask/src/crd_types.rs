//! `cargo xtask crd-types`: Rust types from the CRDs of well-known projects, which their samples must survive.
//!
//! The CRDs come out of the projects' Go modules and are not part of this repository. The types are compiled in a crate of their own below `target/`.
//! The schema of the types is compared with that of the CRDs. Every object in the YAML files of a project that is of one of its kinds is decoded and
//! encoded again, and must be the same.

mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use serde_json::Value;
use windlass_codegen::client::group_module;
use windlass_codegen::definition::Definition;
use windlass_codegen::types::{Options, generate};

use self::schema::Differences;
use crate::{Result, project};

/// A project: its Go module, and the folder with its CRDs.
const PROJECTS: &[(&str, &str, &str)] = &[
    ("cert-manager", "github.com/cert-manager/cert-manager@v1.21.2", "deploy/crds"),
    (
        "prometheus-operator",
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd-full",
    ),
    ("istio", "istio.io/api@v1.31.1", "kubernetes"),
    ("cluster-api", "sigs.k8s.io/cluster-api@v1.14.2", "core/config/crd/bases"),
    ("knative-serving", "knative.dev/serving@v0.51.0", "config/core/300-resources"),
    ("keda", "github.com/kedacore/keda/v2@v2.21.0", "config/crd/bases"),
    ("gateway-api", "sigs.k8s.io/gateway-api@v1.4.0", "config/crd/experimental"),
    ("argo-cd", "github.com/argoproj/argo-cd/v3@v3.2.0", "manifests/crds"),
    ("tekton-pipeline", "github.com/tektoncd/pipeline@v1.6.0", "config/300-crds"),
    ("flux-source", "github.com/fluxcd/source-controller@v1.7.0", "config/crd/bases"),
    ("velero", "github.com/vmware-tanzu/velero@v1.18.3", "config/crd/v1/bases"),
];

const MAIN: &str = include_str!("crd_types/round_trip.rs.txt");

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these projects
    #[arg(value_name = "PROJECT")]
    projects: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result {
    let folder = project::root().join("target/crd-types");
    let wanted = |name: &str| args.projects.is_empty() || args.projects.iter().any(|wanted| wanted == name);
    let mut failed = Vec::new();
    println!("{:<22}{:>7}{:>8}{:>9}{:>10}   same", "project", "kinds", "lines", "ms", "samples");
    for (name, module, crds) in PROJECTS.iter().filter(|(name, ..)| wanted(name)) {
        if let Err(error) = check(name, module, crds, &folder.join(name)) {
            println!("{name}: {error}");
            failed.push(*name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

fn check(name: &str, module: &str, crds: &str, folder: &Path) -> Result {
    let source = download(module)?;
    let definitions = definitions(&source.join(crds))?;
    if definitions.is_empty() {
        return Err(format!("{}: no CRDs", source.join(crds).display()).into());
    }
    let begin = Instant::now();
    let options = Options { apply: Some("windlass_client::apply".to_owned()), ..Options::default() };
    let files = generate(&definitions, &options);
    let millis = begin.elapsed().as_millis();
    let lines: usize = files.iter().map(|file| file.text.lines().count()).sum();
    let kinds = kinds(&definitions);
    let mut samples = samples(&source, &kinds);
    samples.retain(|sample| has_required_fields(sample, &definitions));

    let _ = fs::remove_dir_all(folder);
    for file in &files {
        write(&folder.join("src/types").join(&file.path), &file.text)?;
    }
    let has_definition = |api_version: &str, kind: &str| {
        let (group, version) = api_version.split_once('/').unwrap_or_default();
        let attribute = format!("#[kube(group = {group:?}, version = {version:?}, kind = {kind:?},");
        files.iter().any(|file| file.text.contains(&attribute))
    };
    write(&folder.join("src/main.rs"), &main(&kinds, has_definition))?;
    write(&folder.join("Cargo.toml"), &manifest(name))?;
    fs::copy(project::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    write(&folder.join("samples.json"), &serde_json::to_string(&samples)?)?;
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| project::root().join("target"), PathBuf::from);
    let output = Command::new("cargo")
        .args(["run", "--quiet", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .args([folder.join("samples.json"), folder.join("schemas.json")])
        .env("CARGO_TARGET_DIR", target)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let same = text.lines().last().unwrap_or_default().to_owned();
    println!("{name:<22}{:>7}{lines:>8}{millis:>9}{:>10}   {same}", kinds.len(), samples.len());
    if !output.status.success() {
        return Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    compare(&definitions, &folder.join("schemas.json"))
}

/// Compares the schemas of the types with those of the definitions, and prints how they differ.
fn compare(definitions: &[Definition], schemas: &Path) -> Result {
    let schemas: Value = serde_json::from_str(&fs::read_to_string(schemas)?)?;
    let mut differences = Differences::default();
    for definition in definitions {
        let (group, kind) = (&definition.spec.group, &definition.spec.names.kind);
        for version in &definition.spec.versions {
            let ours = &schemas[format!("{group}/{} {kind}", version.name)];
            if !ours.is_null() {
                differences.add(kind, version.open_api_schema(), ours);
            }
        }
    }
    print!("{}", differences.report());
    if differences.are_explained() { Ok(()) } else { Err("the schemas differ for no known reason".into()) }
}

/// The folder of a module in the cache of the Go tools.
fn download(module: &str) -> Result<PathBuf> {
    let output = Command::new("go").args(["mod", "download", "-json", module]).output();
    let output = output.map_err(|error| format!("cannot run go: {error}"))?;
    let downloaded: Value = serde_json::from_slice(&output.stdout)?;
    let folder = downloaded["Dir"].as_str().ok_or_else(|| format!("{module}: {downloaded}"))?;
    Ok(PathBuf::from(folder))
}

fn definitions(folder: &Path) -> Result<Vec<Definition>> {
    let mut found: BTreeMap<String, Definition> = BTreeMap::new();
    for path in yaml_files(folder) {
        for document in documents(&path) {
            if let Some(definition) = Definition::parse(&document)? {
                found.insert(definition.metadata.name.clone(), definition);
            }
        }
    }
    Ok(found.into_values().collect())
}

/// API version, kind, and the path of the type.
fn kinds(definitions: &[Definition]) -> BTreeSet<(String, String, String)> {
    let mut found = BTreeSet::new();
    for definition in definitions {
        let (group, kind) = (&definition.spec.group, &definition.spec.names.kind);
        for version in definition.spec.versions.iter().filter(|version| version.served) {
            let path = format!("types::{}::{}::{kind}", group_module(group), version.name);
            found.insert((format!("{group}/{}", version.name), kind.clone(), path));
        }
    }
    found
}

/// The objects of these kinds in the files of a project.
fn samples(folder: &Path, kinds: &BTreeSet<(String, String, String)>) -> Vec<Value> {
    let mut found = Vec::new();
    for path in yaml_files(folder) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        if !kinds.iter().any(|(api_version, ..)| text.contains(api_version.as_str())) {
            continue;
        }
        for document in documents(&path) {
            let is_of = |(api_version, kind, _): &(String, String, String)| {
                document["apiVersion"] == api_version.as_str() && document["kind"] == kind.as_str()
            };
            // Objects without a spec are parts of patches; a null is a place to fill in.
            let is_whole = document["metadata"]["name"].is_string()
                && !document["spec"].is_null()
                && !has_null(&document);
            if is_whole && kinds.iter().any(is_of) {
                found.push(document);
            }
        }
    }
    found
}

/// Whether a sample has the fields that its CRD requires of a spec: the documentation has some without.
fn has_required_fields(sample: &Value, definitions: &[Definition]) -> bool {
    let versions = definitions.iter().flat_map(|definition| {
        definition.spec.versions.iter().map(move |version| (&definition.spec, version))
    });
    let mut of_kind = versions.filter(|(spec, version)| {
        sample["kind"] == spec.names.kind
            && sample["apiVersion"] == format!("{}/{}", spec.group, version.name)
    });
    of_kind.all(|(_, version)| {
        let required = version.open_api_schema()["properties"]["spec"]["required"].as_array();
        let mut names = required.into_iter().flatten().filter_map(Value::as_str);
        names.all(|name| !sample["spec"][name].is_null())
    })
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().any(|value| value.is_null() || has_null(value)),
        Value::Array(items) => items.iter().any(has_null),
        _ => false,
    }
}

/// The documents of a file; none if it is a template or broken.
fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let parts = text.split("\n---").map(|part| part.trim_start_matches("---"));
    parts.filter_map(|part| serde_saphyr::from_str(part).ok()).collect()
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn write(path: &Path, text: &str) -> Result {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    Ok(fs::write(path, text)?)
}

fn main(kinds: &BTreeSet<(String, String, String)>, has_definition: impl Fn(&str, &str) -> bool) -> String {
    let mut calls = String::new();
    for (api_version, kind, path) in kinds {
        let _ = writeln!(calls, "    report.check::<{path}>(&samples, {api_version:?}, {kind:?});");
        if has_definition(api_version, kind) {
            let _ = writeln!(calls, "    schema::<{path}>(&mut report, {api_version:?}, {kind:?});");
        }
    }
    MAIN.replace("    // The kinds.\n", &calls)
}

fn manifest(name: &str) -> String {
    let crates = project::root().join("crates");
    format!(
        "[package]\nname = \"crd-types-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n[workspace]\n\n[dependencies]\n\
         k8s-openapi = {{ version = \"0.29\", default-features = false, features = [\"schemars\", \"v1_36\"] }}\nkube = {{ version = \"5.0\", \
         default-features = false, features = [\"derive\"] }}\nschemars = \"1.2\"\nserde = {{ version = \"1.0\", features = [\"derive\"] \
         }}\nserde_json = \"1.0\"\nwindlass-client = {{ path = {:?} }}\n\n[profile.dev]\ndebug = \"line-tables-only\"\n\n[profile.dev.package.\"*\"]\ndebug = false\n",
        crates.join("windlass-client").display().to_string()
    )
}
