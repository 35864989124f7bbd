//! `cargo xtask protobuf`: compares the encoding in protobuf with Go: with the golden files of `k8s.io/api`, with random
//! objects, and with a typed client of client-go.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::{Result, control_plane, project};

const CLIENT: &str = include_str!("protobuf/client.go");
const OBJECTS: &str = include_str!("protobuf/objects.go");

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Kubeconfig of the server that the client talks to [default: a server of this checkout]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Leave out the golden files and the random objects
    #[arg(long)]
    client_only: bool,
}

pub(crate) fn run(args: &Args) -> Result {
    if !args.client_only {
        let version = version()?;
        golden_files(&version)?;
        random_objects(&version)?;
    }
    if let Some(kubeconfig) = &args.kubeconfig {
        return typed_client(&fs::canonicalize(kubeconfig)?);
    }
    let server = Server::start()?;
    typed_client(&server.kubeconfig)
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(project::root());
    command
}

fn expect_success(command: &mut Command) -> Result {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|error| format!("cannot run {program}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} failed").into()) }
}

/// Returns the version of the Go modules of the catalog's version, such as `v0.36.3`.
fn version() -> Result<String> {
    Ok(fs::read_to_string(project::root().join("catalog/version"))?.trim().replacen("v1.", "v0.", 1))
}

/// Runs the tests of windlass-schema that compare with a folder or a file of `variable`.
fn run_tests(names: &str, variable: &str, path: &Path) -> Result {
    let mut test = cargo();
    test.args(["test", "--package", "windlass-schema", "--lib", names, "--", "--nocapture"]);
    expect_success(test.env(variable, path))
}

/// Compares with the golden files of the Go module `k8s.io/api`.
fn golden_files(version: &str) -> Result {
    let output = Command::new("go")
        .args(["mod", "download", "-json", &format!("k8s.io/api@{version}")])
        .output()
        .map_err(|error| format!("cannot run go: {error}"))?;
    let module: Value = serde_json::from_slice(&output.stdout)?;
    let folder = module["Dir"].as_str().ok_or_else(|| format!("cannot download k8s.io/api: {module}"))?;
    run_tests("golden_files", "WINDLASS_PROTOBUF_GOLDEN", &Path::new(folder).join("testdata/HEAD"))
}

/// Compares with random objects that a Go program encodes, in both directions.
fn random_objects(version: &str) -> Result {
    let folder = control_plane::cache_folder()?.join("protobuf-objects");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("main.go"), OBJECTS)?;
    let modules = format!(
        "module objects\n\nrequire (\n\tk8s.io/apimachinery {version}\n\tk8s.io/client-go {version}\n)\n"
    );
    fs::write(folder.join("go.mod"), modules)?;
    expect_success(Command::new("go").args(["mod", "tidy"]).current_dir(&folder))?;
    let vectors = folder.join("vectors.tsv");
    let mut go = Command::new("go");
    expect_success(go.args(["run", "."]).current_dir(&folder).stdout(fs::File::create(&vectors)?))?;
    run_tests("of_go", "WINDLASS_PROTOBUF_VECTORS", &vectors)
}

/// Builds the Go program with the dependencies of the Go benchmarks, and runs the program.
fn typed_client(kubeconfig: &Path) -> Result {
    let folder = control_plane::cache_folder()?.join("protobuf");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("main.go"), CLIENT)?;
    for file in ["go.mod", "go.sum"] {
        fs::copy(project::root().join("benches/peers/go").join(file), folder.join(file))?;
    }
    let mut go = Command::new("go");
    expect_success(go.args(["run", "-mod=mod", "."]).arg(kubeconfig).current_dir(&folder))
}

/// A server of this checkout. Dropping the value stops the server.
struct Server {
    process: Child,
    kubeconfig: PathBuf,
}

impl Server {
    fn start() -> Result<Self> {
        let kubeconfig = control_plane::cache_folder()?.join("protobuf.kubeconfig");
        let mut command = cargo();
        command.args(["run", "--quiet", "--package", "windlass-benches", "--bin", "api-server"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let out = process.stdout.take().ok_or("cannot read the output of the server")?;
        let server = Self { process, kubeconfig };
        // The kubeconfig ends with an empty line.
        let lines = BufReader::new(out).lines().map_while(std::result::Result::ok);
        let text: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        if text.is_empty() {
            return Err("the server did not start".into());
        }
        fs::write(&server.kubeconfig, text.join("\n"))?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server ends with its standard input.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.kubeconfig);
    }
}
