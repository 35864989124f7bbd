//! Packs all crates for a release, and builds a scaffolded project from the packages.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::{Result, project};

/// Options.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also make a project with `windlass init` and `create api`, and run its tests with the packages instead of a checkout
    #[arg(long)]
    project: bool,
}

pub(crate) fn run(args: &Args) -> Result {
    let root = project::root().canonicalize()?;
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder));
    let packages = project::packages()?;
    let unpublished = packages.iter().filter(|package| !package.is_published());
    let excluded = unpublished.flat_map(|package| ["--exclude", package.name.as_str()]);
    let options = ["package", "--workspace", "--no-verify", "--allow-dirty", "--offline", "--quiet"];
    cargo(&root, &options.into_iter().chain(excluded).collect::<Vec<_>>())?;
    println!("all published crates can be packed");
    if args.project { build_project(&root, &target) } else { Ok(()) }
}

fn cargo(folder: &Path, args: &[&str]) -> Result {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run_to_end(Command::new(cargo).args(args).current_dir(folder))
}

fn run_to_end(command: &mut Command) -> Result {
    // Set for this workspace; a project must not need the variable.
    let status = command.env_remove("K8S_OPENAPI_ENABLED_VERSION").status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}").into()) }
}

/// Makes a project that depends on released crates, and replaces the crates by the packages.
fn build_project(root: &Path, target: &Path) -> Result {
    let packages = unpack(&target.join("package"))?;
    cargo(root, &["build", "--quiet", "-p", "windlass-cli"])?;
    let windlass = target.join("debug/windlass");
    let folder = env::temp_dir().join(format!("windlass-package-{}", std::process::id()));
    fs::create_dir_all(folder.join(".cargo"))?;
    let scaffold = |args: &[&str]| {
        run_to_end(Command::new(&windlass).args(args).current_dir(&folder).env_remove("WINDLASS_CHECKOUT"))
    };
    scaffold(&["init", "--domain", "abc.com", "--project-name", "packaged"])?;
    scaffold(&["create", "api", "--group", "foo", "--version", "v1", "--kind", "Bar"])?;
    let mut config = "[patch.crates-io]\n".to_owned();
    for (name, path) in packages {
        let _ = writeln!(config, "{name} = {{ path = \"{}\" }}", path.display());
    }
    fs::write(folder.join(".cargo/config.toml"), config)?;
    // The versions of the workspace have all been downloaded.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let project_target = target.join("packaged").display().to_string();
    cargo(&folder, &["test", "--workspace", "--offline", "--quiet", "--target-dir", &project_target])?;
    fs::remove_dir_all(&folder)?;
    println!("a project builds and passes its tests with the packed crates");
    Ok(())
}

/// Unpacks the packages of the libraries, and returns the names and folders.
fn unpack(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut unpacked = Vec::new();
    let is_library =
        |package: &project::Package| package.is_published() && package.name.starts_with("windlass");
    for package in project::packages()?.into_iter().filter(is_library) {
        let stem = format!("{}-{}", package.name, env!("CARGO_PKG_VERSION"));
        let into = folder.join("unpacked");
        fs::create_dir_all(&into)?;
        run_to_end(
            Command::new("tar").arg("-xzf").arg(folder.join(format!("{stem}.crate"))).arg("-C").arg(&into),
        )?;
        unpacked.push((package.name, into.join(stem)));
    }
    Ok(unpacked)
}
