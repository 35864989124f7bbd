//! `cargo xtask controller-gen`: runs controller-gen over the Go types of `controller_gen/go`, and compares
//! the definitions with the definitions of the same types in Rust, in the example `markers` of
//! windlass-codegen.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Result, control_plane, go_module, project};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Version of the Go module sigs.k8s.io/controller-tools
    #[arg(long, default_value = "v0.23.0")]
    version: String,
}

/// The module of the Go types.
const MODULE: &str = "\
module example.com/markers

go 1.26

require k8s.io/apimachinery v0.37.2
";

pub(crate) fn run(args: &Args) -> Result {
    if !has_go() {
        println!("skipped: Go is not installed");
        return Ok(());
    }
    let root = project::root();
    let folder = control_plane::cache_folder()?.join(format!("controller-gen-{}", args.version));
    let (module, crds) = (folder.join("module"), folder.join("crds"));
    for old in [&module, &crds] {
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
    }
    go_module::copy_folder(&root.join("xtask/src/controller_gen/go"), &module)?;
    fs::write(module.join("go.mod"), MODULE)?;
    let generator = format!("sigs.k8s.io/controller-tools/cmd/controller-gen@{}", args.version);
    let tools = folder.join("bin");
    if !go(&module, &tools, &["mod", "tidy"])? || !go(&module, &tools, &["install", &generator])? {
        println!("skipped: the Go modules cannot be downloaded");
        return Ok(());
    }
    let status = Command::new(tools.join("controller-gen"))
        .args(["crd", "paths=./..."])
        .arg(format!("output:crd:dir={}", crds.display()))
        .current_dir(&module)
        .status()?;
    if !status.success() {
        return Err("controller-gen failed".into());
    }
    compare(root, &crds)
}

fn has_go() -> bool {
    let version = Command::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// Runs Go with a folder for installed tools. Returns whether Go succeeded.
fn go(folder: &Path, tools: &Path, arguments: &[&str]) -> Result<bool> {
    let status = Command::new("go").args(arguments).current_dir(folder).env("GOBIN", tools).status()?;
    Ok(status.success())
}

fn compare(root: &Path, crds: &Path) -> Result {
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--package", "windlass-codegen", "--example", "markers", "--"])
        .arg(crds)
        .current_dir(root)
        .status()?;
    if status.success() { Ok(()) } else { Err("the definitions differ".into()) }
}
