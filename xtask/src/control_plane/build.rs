//! Builds the programs from Go modules.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Deserialize;

use super::layout::{Layout, PROGRAMS};
use super::release::Release;
use crate::Result;

/// The oldest Go that the releases of Kubernetes build with.
const GO: (u32, u32) = (1, 26);

pub(super) fn build(layout: &Layout, again: bool) -> Result {
    if layout.is_built() && !again {
        return Ok(());
    }
    check_go()?;
    let start = Instant::now();
    let release = layout.release;
    println!(
        "Building Kubernetes {release} and etcd {} from their Go modules. This takes minutes, once.",
        release.etcd
    );
    let scratch = layout.scratch();
    let made = scratch.join("bin");
    fs::create_dir_all(&made)?;
    build_kubernetes(release, &scratch.join("kubernetes"), &made)?;
    build_etcd(release, &scratch.join("etcd"), &made)?;
    // Programs are moved to the final folder only when all programs are complete.
    fs::create_dir_all(layout.bin())?;
    for name in PROGRAMS {
        fs::rename(made.join(name), layout.program(name))?;
    }
    fs::remove_dir_all(&scratch)?;
    println!("Built in {} s: {}", start.elapsed().as_secs(), layout.bin().display());
    Ok(())
}

/// Returns an error if Go is missing or too old.
fn check_go() -> Result {
    let wanted = format!("the control plane is built from source, with Go {}.{} or newer", GO.0, GO.1);
    let Ok(output) = Command::new("go").args(["env", "GOVERSION"]).output() else {
        return Err(format!("Go is not on the PATH: {wanted} (https://go.dev/dl)").into());
    };
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match parse_go(&version) {
        Some(found) if found < GO => {
            Err(format!("{version} is too old: {wanted} (https://go.dev/dl)").into())
        }
        _ => Ok(()),
    }
}

/// Returns the major and minor version of `go1.26.8`, or `None` for a development version.
fn parse_go(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix("go")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn build_kubernetes(release: Release, folder: &Path, made: &Path) -> Result {
    const COMMANDS: [&str; 4] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];
    fs::create_dir_all(folder)?;
    let mut module = format!(
        "module scratch\n\ngo {0}.{1}.0\n\ngodebug default=go{0}.{1}\n\nrequire k8s.io/kubernetes v{release}\n\n",
        GO.0, GO.1
    );
    fs::write(folder.join("go.mod"), &module)?;
    // Kubernetes requires a version of the staging modules that does not exist: replace each module with the
    // module's release.
    let staging = staging_modules(release, folder)?;
    let library = release.kubernetes.strip_prefix("1.").unwrap_or(release.kubernetes);
    for name in &staging {
        writeln!(module, "replace {name} => {name} v0.{library}")?;
    }
    fs::write(folder.join("go.mod"), &module)?;
    let mut imports = String::new();
    for name in COMMANDS {
        writeln!(imports, "\t_ \"k8s.io/kubernetes/cmd/{name}\"")?;
    }
    fs::write(
        folder.join("tools.go"),
        format!("//go:build tools\n\npackage tools\n\nimport (\n{imports})\n"),
    )?;
    go("downloading Kubernetes", folder, &["mod", "tidy"])?;
    let minor = library.split('.').next().unwrap_or_default();
    let set = |name: &str, value: &str| format!("-X k8s.io/component-base/version.{name}={value}");
    let flags = [
        "-s -w".to_owned(),
        set("gitVersion", &format!("v{release}")),
        set("gitMajor", "1"),
        set("gitMinor", minor),
    ];
    // One program at a time, to show progress and to name the program that fails.
    for name in COMMANDS {
        let (target, package) = (made.join(name), format!("k8s.io/kubernetes/cmd/{name}"));
        let target = target.to_str().ok_or("the cache folder is not UTF-8")?;
        go(
            &format!("building {name}"),
            folder,
            &["build", "-ldflags", &flags.join(" "), "-o", target, &package],
        )?;
    }
    Ok(())
}

/// Returns the modules that the go.mod of Kubernetes requires at `v0.0.0`.
fn staging_modules(release: Release, folder: &Path) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Download {
        go_mod: String,
    }
    let module = format!("k8s.io/kubernetes@v{release}");
    let output =
        Command::new("go").args(["mod", "download", "-json", &module]).current_dir(folder).output()?;
    if !output.status.success() {
        return Err(format!("cannot download {module}: {}", String::from_utf8_lossy(&output.stdout)).into());
    }
    let path = serde_json::from_slice::<Download>(&output.stdout)?.go_mod;
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let mut names: Vec<String> = text.lines().filter_map(staging_module).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn staging_module(line: &str) -> Option<&str> {
    let line = line.trim();
    let line = line.strip_prefix("require ").unwrap_or(line);
    let (name, version) = line.split_once(' ')?;
    (name.starts_with("k8s.io/") && version.split_whitespace().next() == Some("v0.0.0")).then_some(name)
}

fn build_etcd(release: Release, folder: &Path, made: &Path) -> Result {
    fs::create_dir_all(folder)?;
    let module = format!(
        "module scratch\n\ngo {}.{}.0\n\nrequire go.etcd.io/etcd/server/v3 v{}\n",
        GO.0, GO.1, release.etcd
    );
    fs::write(folder.join("go.mod"), module)?;
    let program = "package main\n\nimport (\n\t\"os\"\n\n\t\"go.etcd.io/etcd/server/v3/etcdmain\"\n)\n\n\
                   func main() { etcdmain.Main(os.Args) }\n";
    fs::write(folder.join("main.go"), program)?;
    go("downloading etcd", folder, &["mod", "tidy"])?;
    let target = made.join("etcd");
    let target = target.to_str().ok_or("the cache folder is not UTF-8")?;
    go("building etcd", folder, &["build", "-ldflags", "-s -w", "-o", target, "."])
}

/// Runs `go` and prints the purpose. An error contains the output.
fn go(what: &str, folder: &Path, arguments: &[&str]) -> Result {
    let start = Instant::now();
    println!("  {what} …");
    let output = Command::new("go").args(arguments).current_dir(folder).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(format!("{what} failed:\n{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    println!("  {what}: {} s", start.elapsed().as_secs());
    Ok(())
}

#[cfg(test)]
mod tests;
