//! `cargo xtask crd-types`: Rust types from the CRDs of well-known projects. The projects' samples must
//! survive the types.
//!
//! The CRDs come out of the projects' Go modules and are not part of this repository. The types are compiled
//! in a crate below `target/`. The schema of the types is compared with the schema of the CRDs. Every object
//! of the project's kinds in the project's YAML files that the CRD accepts is decoded and encoded again, and
//! must stay the same.

mod samples;
mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use serde_json::Value;
use windlass_codegen::definition::Definition;
use windlass_codegen::types::{Options, generate, modules};

use self::samples::samples;
pub(crate) use self::samples::{documents, yaml_files};
use self::schema::Differences;
use crate::go_module::download;
use crate::{Result, project};

/// A well-known project.
struct KnownProject {
    name: &'static str,
    /// The project's Go module.
    module: &'static str,
    /// The folder of the CRDs.
    crds: &'static str,
    /// The module with the samples, if the samples are in another module.
    samples: Option<&'static str>,
}

const fn project(name: &'static str, module: &'static str, crds: &'static str) -> KnownProject {
    KnownProject { name, module, crds, samples: None }
}

const PROJECTS: &[KnownProject] = &[
    project("cert-manager", "github.com/cert-manager/cert-manager@v1.21.2", "deploy/crds"),
    project(
        "prometheus-operator",
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd-full",
    ),
    project("istio", "istio.io/api@v1.31.1", "kubernetes"),
    KnownProject {
        name: "cluster-api",
        module: "sigs.k8s.io/cluster-api@v1.14.2",
        crds: "core/config/crd/bases",
        samples: Some("sigs.k8s.io/cluster-api/test@v1.14.2"),
    },
    project("knative-serving", "knative.dev/serving@v0.51.0", "config/core/300-resources"),
    project("keda", "github.com/kedacore/keda/v2@v2.21.0", "config/crd/bases"),
    project("gateway-api", "sigs.k8s.io/gateway-api@v1.4.0", "config/crd/experimental"),
    project("argo-cd", "github.com/argoproj/argo-cd/v3@v3.2.0", "manifests/crds"),
    project("argo-rollouts", "github.com/argoproj/argo-rollouts@v1.8.3", "manifests/crds"),
    project("tekton-pipeline", "github.com/tektoncd/pipeline@v1.6.0", "config/300-crds"),
    project("flux-source", "github.com/fluxcd/source-controller@v1.7.0", "config/crd/bases"),
    project("kueue", "sigs.k8s.io/kueue@v0.14.0", "config/components/crd/bases"),
    project("velero", "github.com/vmware-tanzu/velero@v1.18.3", "config/crd/v1/bases"),
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
    println!(
        "{:<22}{:>7}{:>8}{:>9}{:>10}{:>7}{:>9}",
        "project", "kinds", "lines", "ms", "samples", "same", "build s"
    );
    for known in PROJECTS.iter().filter(|known| wanted(known.name)) {
        if let Err(error) = check(known, &folder.join(known.name)) {
            println!("{}: {error}", known.name);
            failed.push(known.name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

fn check(known: &KnownProject, folder: &Path) -> Result {
    let name = known.name;
    let source = download(known.module)?;
    let definitions = definitions(&source.join(known.crds))?;
    if definitions.is_empty() {
        return Err(format!("{}: no CRDs", source.join(known.crds).display()).into());
    }
    let begin = Instant::now();
    let options = Options { apply: Some("windlass_client::apply".to_owned()), ..Options::default() };
    let files = generate(&definitions, &options);
    let millis = begin.elapsed().as_millis();
    let lines: usize = files.iter().map(|file| file.text.lines().count()).sum();
    let kinds = kinds(&definitions);
    let source = known.samples.map_or(Ok(source), download)?;
    let samples = samples(&source, &definitions);

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
    let begin = Instant::now();
    let output = Command::new("cargo")
        .args(["run", "--quiet", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .args([folder.join("samples.json"), folder.join("schemas.json")])
        .env("CARGO_TARGET_DIR", target)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let same = text.lines().last().unwrap_or_default().to_owned();
    let seconds = begin.elapsed().as_secs();
    println!("{name:<22}{:>7}{lines:>8}{millis:>9}{:>10}{same:>7}{seconds:>9}", kinds.len(), samples.len());
    if !output.status.success() {
        return Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    compare(&definitions, &folder.join("schemas.json"))
}

/// Compares the schemas of the types with the schemas of the definitions, and prints the differences.
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

/// Returns API version, kind, and the path of the type.
fn kinds(definitions: &[Definition]) -> BTreeSet<(String, String, String)> {
    let (mut found, modules) = (BTreeSet::new(), modules(definitions));
    for definition in definitions {
        let (group, kind) = (&definition.spec.group, &definition.spec.names.kind);
        for version in definition.spec.versions.iter().filter(|version| version.served) {
            let path = format!("types::{}::{}::{kind}", modules[group], version.name);
            found.insert((format!("{group}/{}", version.name), kind.clone(), path));
        }
    }
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
