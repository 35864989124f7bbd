//! `cargo xtask smd`: runs the tests of structured-merge-diff, the Go module with the merge of server-side apply, or of
//! strategic merge patches, with the operations of windlass-schema.
//!
//! The module is copied to the cache folder. In the copy, the functions under test are renamed and replaced
//! by the functions of `smd/shim/`, which call the `smd` example of windlass-schema in a process.

mod random;
pub(crate) mod report;
mod suite;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Result, control_plane, go_module, project};
use suite::{STRATEGIC_MERGE, STRUCTURED_MERGE, Suite};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Version of the Go module [default: v6.4.2, or v0.37.2 with --strategic]
    #[arg(long)]
    version: Option<String>,
    /// Run the tests of strategic merge patches in k8s.io/apimachinery instead
    #[arg(long, conflicts_with = "random")]
    strategic: bool,
    /// Run only the tests that match this pattern of `go test -run`
    #[arg(long)]
    run: Option<String>,
    /// Print the output of the tests that fail
    #[arg(long)]
    verbose: bool,
    /// Instead of the tests, run this number of sequences of random operations with both implementations
    #[arg(long, value_name = "SEQUENCES")]
    random: Option<u32>,
    /// The seed of the first random sequence
    #[arg(long, default_value_t = 1)]
    seed: u32,
}

pub(crate) fn run(args: Args) -> Result {
    let suite = if args.strategic { &STRATEGIC_MERGE } else { &STRUCTURED_MERGE };
    let version = args.version.as_deref().unwrap_or(suite.version);
    let server = build_server()?;
    let name = if args.strategic { "strategic" } else { "smd" };
    let folder = control_plane::cache_folder()?.join(format!("{name}-{version}"));
    let module = folder.join("module");
    go_module::copy(&format!("{}@{version}", suite.module), &module)?;
    install(suite, &module)?;
    if let Some(sequences) = args.random {
        return random::run(&random::Plan { version, sequences, seed: args.seed }, &folder, &server);
    }
    let calls = folder.join("calls.txt");
    _ = fs::remove_file(&calls);
    let mut command = Command::new("go");
    command
        .args(["test", "-json", "-count=1", suite.packages])
        .args(args.run.iter().flat_map(|pattern| ["-run", pattern]))
        .current_dir(&module)
        .env("WINDLASS_SMD_SERVER", server)
        .env("WINDLASS_SMD_CALLS", &calls)
        .env("GOFLAGS", "-mod=mod")
        .stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cannot run go: {error}"))?;
    let report = report::Report::read(&String::from_utf8_lossy(&output.stdout));
    let unexpected = report.print(suite.only_in_go, args.verbose);
    let calls = fs::read_to_string(&calls).unwrap_or_default();
    println!("{} requests to windlass-schema", calls.lines().count());
    if unexpected == 0 { Ok(()) } else { Err(format!("{unexpected} tests have failed").into()) }
}

/// Builds the process behind the tests, and returns the path.
fn build_server() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "windlass-schema", "--example", "smd"])
        .args(["--message-format", "json"])
        .current_dir(project::root())
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let executable =
        messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back();
    executable.filter(|_| output.status.success()).ok_or_else(|| "the example smd does not build".into())
}

/// Renames the functions under test in the copy, and adds ours.
fn install(suite: &Suite, module: &Path) -> Result {
    for replaced in suite.replaced {
        let path = module.join(replaced.file);
        let mut text = fs::read_to_string(&path)?;
        for name in replaced.names {
            let start = format!("\nfunc {}{name}(", replaced.receiver);
            if text.matches(&start).count() != 1 {
                return Err(format!("{}: not one func {}{name}", replaced.file, replaced.receiver).into());
            }
            text = text.replace(&start, &format!("\nfunc {}original{name}(", replaced.receiver));
        }
        fs::write(&path, text)?;
    }
    for (file, text) in suite.files {
        let path = module.join(file);
        fs::create_dir_all(path.parent().unwrap_or(module))?;
        fs::write(path, text)?;
    }
    Ok(())
}
