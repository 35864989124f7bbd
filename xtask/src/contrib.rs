//! `cargo xtask contrib`: runs the tests of contrib/ with `windlass` of this checkout. A part is skipped if the tools are not
//! installed, or if the libraries cannot be downloaded.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::{Result, control_plane, project};

#[derive(clap::Args)]
pub(crate) struct Args {}

/// The environment of the tests.
struct Contrib {
    folder: PathBuf,
    /// The folder of virtual environments and of compiled programs.
    cache: PathBuf,
    /// The program `windlass`.
    windlass: PathBuf,
}

/// How the tests of a part ended.
enum Outcome {
    Passed,
    Failed,
    /// With the reason.
    Skipped(&'static str),
}

/// Runs the tests of a part.
type Test = fn(&Contrib) -> Result<Outcome>;

pub(crate) fn run(Args {}: Args) -> Result {
    let contrib = Contrib::prepare()?;
    let parts: [(&str, Test); 4] = [
        ("github-action", Contrib::github_action),
        ("pytest-windlass", Contrib::pytest),
        ("junit-windlass", Contrib::junit),
        ("dotnet-windlass", Contrib::dotnet),
    ];
    let mut report = Vec::new();
    let mut failed = Vec::new();
    for (name, test) in parts {
        println!("{name} …");
        report.push(match test(&contrib)? {
            Outcome::Passed => format!("{name}: passed"),
            Outcome::Skipped(reason) => format!("{name}: skipped: {reason}"),
            Outcome::Failed => {
                failed.push(name);
                format!("{name}: FAILED")
            }
        });
    }
    println!("\n{}", report.join("\n"));
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

impl Contrib {
    /// Builds `windlass`.
    fn prepare() -> Result<Self> {
        let root = project::root().canonicalize()?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built =
            Command::new(cargo).args(["build", "--package", "windlass-cli"]).current_dir(&root).status()?;
        if !built.success() {
            return Err("windlass could not be built".into());
        }
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root.join("target"), |folder| root.join(folder));
        let cache = control_plane::cache_folder()?.join("contrib");
        std::fs::create_dir_all(&cache)?;
        Ok(Self { folder: root.join("contrib"), cache, windlass: target.join("debug/windlass") })
    }

    /// Runs the steps of the action.
    fn github_action(&self) -> Result<Outcome> {
        Ok(self.run("github-action", Path::new("./test.sh"), &[])?.into())
    }

    /// Runs the tests of the plugin, and the examples of docs/testing-python.md, in a virtual environment.
    fn pytest(&self) -> Result<Outcome> {
        if !is_installed("python3", "--version") {
            return Ok(Outcome::Skipped("python3 is not installed"));
        }
        let venv = self.cache.join("venv");
        let python = venv.join("bin/python");
        let make = ["-m", "venv", &venv.display().to_string()];
        if !python.is_file() && !self.run("pytest-windlass", Path::new("python3"), &make)?.success() {
            return Ok(Outcome::Skipped("python3 cannot make a virtual environment"));
        }
        let install = ["-m", "pip", "install", "--quiet", "--editable", ".[test]"];
        if !self.run("pytest-windlass", &python, &install)?.success() {
            return Ok(Outcome::Skipped("the Python packages cannot be downloaded"));
        }
        Ok(self.run("pytest-windlass", &python, &["-m", "pytest"])?.into())
    }

    /// Runs the tests of the extension, and the examples of docs/testing-java.md.
    fn junit(&self) -> Result<Outcome> {
        if !is_installed("mvn", "--version") {
            return Ok(Outcome::Skipped("mvn is not installed"));
        }
        let maven = Path::new("mvn");
        let resolve = ["--quiet", "--batch-mode", "dependency:resolve", "dependency:resolve-plugins"];
        if !self.run("junit-windlass", maven, &resolve)?.success() {
            return Ok(Outcome::Skipped("the libraries of Java cannot be downloaded"));
        }
        Ok(self.run("junit-windlass", maven, &["--batch-mode", "test"])?.into())
    }

    /// Compiles the class and the tests with Mono, and runs the tests.
    fn dotnet(&self) -> Result<Outcome> {
        if !is_installed("mcs", "--version") || !is_installed("mono", "--version") {
            return Ok(Outcome::Skipped("mcs and mono are not installed"));
        }
        let program = self.cache.join("WindlassClusterTests.exe");
        let output = format!("-out:{}", program.display());
        let compile = ["-warnaserror", &output, "WindlassCluster.cs", "Tests.cs"];
        if !self.run("dotnet-windlass", Path::new("mcs"), &compile)?.success() {
            return Ok(Outcome::Failed);
        }
        Ok(self.run("dotnet-windlass", Path::new("mono"), &[&program.display().to_string()])?.into())
    }

    /// Runs a program in the folder of a part.
    fn run(&self, part: &str, program: &Path, arguments: &[&str]) -> Result<ExitStatus> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.join(part)).env("WINDLASS", &self.windlass);
        command.status().map_err(|error| format!("cannot run {}: {error}", program.display()).into())
    }
}

impl From<ExitStatus> for Outcome {
    fn from(status: ExitStatus) -> Self {
        if status.success() { Self::Passed } else { Self::Failed }
    }
}

fn is_installed(program: &str, argument: &str) -> bool {
    let status = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
