//! `cargo xtask catalog`: collects facts about the built-in kinds from a running kube-apiserver and from the
//! Go modules of the release, and writes the data files of `catalog/`. The task is needed once for each minor
//! version of Kubernetes. Descriptions are left out, because they are copyrighted prose and not facts.

mod discovery;
mod go_types;
mod openapi;
mod proto;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value};

use crate::Result;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Kubeconfig of a real API server
    #[arg(long, env = "KUBECONFIG")]
    kubeconfig: PathBuf,
    /// kubectl program that sends the requests
    #[arg(long, default_value = "kubectl")]
    kubectl: PathBuf,
    /// Folder of the data files
    #[arg(long, default_value = "catalog")]
    out: PathBuf,
}

pub(crate) fn run(args: Args) -> Result {
    let server = ApiServer { kubectl: args.kubectl, kubeconfig: args.kubeconfig };
    let version = server.get("/version")?["gitVersion"].as_str().unwrap_or_default().to_owned();
    let modules = Modules::locate(&version)?;
    fs::create_dir_all(&args.out)?;
    fs::write(args.out.join("version"), format!("{version}\n"))?;
    let resources = discovery::collect(&server)?;
    write_lines(&args.out.join("resources.json"), resources)?;
    let types = openapi::collect(&server)?;
    let messages = proto::collect(&modules, types.keys())?;
    let presence = go_types::collect(&modules, &types)?;
    let names = go_types::names(&modules, &types)?;
    println!("{version}: {} types, {} messages", types.len(), messages.len());
    write_lines(&args.out.join("types.json"), types)?;
    write_lines(&args.out.join("protobuf.json"), messages)?;
    write_lines(&args.out.join("presence.json"), presence)?;
    write_lines(&args.out.join("go_names.json"), scalars_only(names, &read_types(&args.out)?))?;
    Ok(())
}

fn read_types(folder: &Path) -> Result<Map<String, Value>> {
    Ok(serde_json::from_str(&fs::read_to_string(folder.join("types.json"))?)?)
}

/// Drops the names of types with a definition, because the catalog has the names of definitions already.
fn scalars_only(mut names: Map<String, Value>, types: &Map<String, Value>) -> Map<String, Value> {
    for (definition, fields) in &mut names {
        let Some(fields) = fields.as_object_mut() else { continue };
        let properties = &types[definition]["properties"];
        for (name, row) in fields.iter_mut() {
            let schema = &properties[name];
            let element = if schema["items"].is_object() { &schema["items"] } else { schema };
            if element["$ref"].is_string() || schema.is_null() {
                row[0] = "".into();
            }
        }
        fields.retain(|_, row| row != &serde_json::json!(["", ""]));
    }
    names.retain(|_, fields| fields.as_object().is_some_and(|fields| !fields.is_empty()));
    names
}

/// Writes a JSON object with one member a line, for line-based comparisons of versions.
fn write_lines(path: &Path, members: Map<String, Value>) -> Result {
    let mut text = String::from("{\n");
    for (index, (name, value)) in members.iter().enumerate() {
        let comma = if index + 1 < members.len() { "," } else { "" };
        writeln!(text, "{}:{value}{comma}", Value::from(name.as_str()))?;
    }
    text.push_str("}\n");
    Ok(fs::write(path, text)?)
}

/// The API server that is queried.
struct ApiServer {
    kubectl: PathBuf,
    kubeconfig: PathBuf,
}

impl ApiServer {
    fn get(&self, path: &str) -> Result<Value> {
        let kubeconfig = self.kubeconfig.as_os_str();
        let output = Command::new(&self.kubectl)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["get", "--raw", path])
            .output()
            .map_err(|error| format!("cannot run {}: {error}", self.kubectl.display()))?;
        if !output.status.success() {
            return Err(format!("GET {path}: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// The folders of the Go modules that define the API types.
struct Modules {
    folders: Vec<PathBuf>,
}

impl Modules {
    const NAMES: [&str; 4] =
        ["k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator"];

    /// Finds the modules of a server `v1.X.Y` in Go's module cache, and downloads missing modules.
    fn locate(server_version: &str) -> Result<Self> {
        let library = server_version.replacen("v1.", "v0.", 1);
        let cache = Command::new("go").args(["env", "GOMODCACHE"]).output();
        let cache = cache
            .map_err(|error| format!("cannot run go, which finds the modules of Kubernetes: {error}"))?;
        let cache = PathBuf::from(String::from_utf8(cache.stdout)?.trim());
        let mut folders = Vec::new();
        for name in Self::NAMES {
            let versioned = format!("{name}@{library}");
            let folder = cache.join(&versioned);
            if !folder.is_dir() {
                let status = Command::new("go").args(["mod", "download", &versioned]).status()?;
                if !status.success() {
                    return Err(format!("cannot download {versioned}").into());
                }
            }
            folders.push(folder);
        }
        Ok(Self { folders })
    }

    /// Returns all packages of the modules: the names as in OpenAPI (`io.k8s.api.core.v1`) and the folders.
    fn packages(&self) -> Result<Vec<(String, PathBuf)>> {
        let mut packages = Vec::new();
        for (name, folder) in Self::NAMES.iter().zip(&self.folders) {
            let prefix = name.replacen("k8s.io/", "io.k8s.", 1);
            visit(folder, &prefix, &mut packages)?;
        }
        packages.sort();
        Ok(packages)
    }
}

fn visit(folder: &Path, name: &str, packages: &mut Vec<(String, PathBuf)>) -> Result {
    packages.push((name.to_owned(), folder.to_owned()));
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let file_name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() && file_name != "testdata" && !file_name.starts_with('.') {
            visit(&entry.path(), &format!("{name}.{file_name}"), packages)?;
        }
    }
    Ok(())
}
