//! Measures windlass-cel beside cel-go in Kubernetes, with an HTTPRoute of the Gateway API.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::{Result, control_plane, project};

const GATEWAY: &str = "sigs.k8s.io/gateway-api@v1.5.1";
const VERSION: &str = "v0.37.2";

pub(super) fn run() -> Result {
    let folder = control_plane::cache_folder()?.join("cel-bench");
    fs::create_dir_all(&folder)?;
    let (definition, object) = (folder.join("definition.json"), folder.join("object.json"));
    fs::write(&definition, serde_json::to_vec(&http_route_definition(&folder)?)?)?;
    fs::write(&object, serde_json::to_vec(&http_route())?)?;
    let files = [definition.to_string_lossy(), object.to_string_lossy()];
    let ours = output(
        Command::new("cargo")
            .args(["run", "--quiet", "--release", "--package", "windlass-cel", "--example", "speed", "--"])
            .args(files.iter().map(|file| &**file))
            .current_dir(project::root()),
    )?;
    fs::write(folder.join("main.go"), include_str!("bench/main.go"))?;
    let modules = ["k8s.io/apiextensions-apiserver", "k8s.io/apimachinery", "k8s.io/apiserver"];
    let required = modules.map(|module| format!("require {module} {VERSION}\n")).concat();
    fs::write(folder.join("go.mod"), format!("module bench\n\ngo 1.26\n\n{required}"))?;
    go(&folder, &["mod", "tidy"])?;
    let theirs = go(&folder, &["run", ".", files[0].as_ref(), files[1].as_ref()])?;
    println!("{:>12} {:>12} {:>7}", "windlass-cel", "cel-go", "ratio");
    for (name, nanos) in lines(&ours) {
        let other = lines(&theirs).find(|(known, _)| *known == name).map_or(0.0, |(_, nanos)| nanos);
        println!("{:>9.2} µs {:>9.2} µs {:>7.1}  {name}", nanos / 1000.0, other / 1000.0, other / nanos);
    }
    Ok(())
}

fn lines(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.lines().filter_map(|line| {
        let (name, nanos) = line.split_once('\t')?;
        Some((name, nanos.parse().ok()?))
    })
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn go(folder: &Path, arguments: &[&str]) -> Result<String> {
    output(Command::new("go").args(arguments).current_dir(folder).env("GOFLAGS", "-mod=mod"))
}

/// Returns the definition of HTTPRoutes.
fn http_route_definition(folder: &Path) -> Result<Json> {
    let downloaded: Json = serde_json::from_str(&go(folder, &["mod", "download", "-json", GATEWAY])?)?;
    let source = PathBuf::from(downloaded["Dir"].as_str().unwrap_or_default());
    let path = source.join("config/crd/standard/gateway.networking.k8s.io_httproutes.yaml");
    Ok(serde_saphyr::from_str(&fs::read_to_string(path)?)?)
}

/// Returns an HTTPRoute with several rules, matches and filters.
fn http_route() -> Json {
    let route = |path: &str, backends: usize| {
        let backends: Vec<Json> = (0..backends)
            .map(|index| json!({"group": "", "kind": "Service", "name": format!("svc-{index}"), "port": 80, "weight": 1}))
            .collect();
        json!({
            "matches": [
                {"path": {"type": "PathPrefix", "value": path}},
                {"path": {"type": "Exact", "value": format!("{path}/exact")}, "method": "GET",
                 "headers": [{"type": "Exact", "name": "version", "value": "two"}]},
            ],
            "filters": [{"type": "RequestHeaderModifier",
                         "requestHeaderModifier": {"add": [{"name": "my-header", "value": "foo"}]}}],
            "backendRefs": backends,
        })
    };
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "http-app"},
        "spec": {
            "parentRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "my-gateway"}],
            "hostnames": ["foo.example.com", "bar.example.com"],
            "rules": [route("/login", 2), route("/api", 2), route("/other", 1)],
        },
    })
}
