//! `cargo xtask smd`: runs the tests of structured-merge-diff, the Go module with the merge of server-side apply, with
//! the operations of windlass-schema.
//!
//! The module is copied to the cache folder. In the copy, the functions under test are renamed, and those of
//! `smd/shim/` take their places: they ask the `smd` example of windlass-schema, which runs as a process. What Go reads
//! and writes by reflection, and the schemas' own functions, stay Go.

mod random;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Result, control_plane, project};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Version of the module sigs.k8s.io/structured-merge-diff/v6
    #[arg(long, default_value = "v6.4.2")]
    version: String,
    /// Run only the tests that match this pattern, as `go test -run` takes it
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

const MODULE: &str = "sigs.k8s.io/structured-merge-diff/v6";

/// Files of ours by their places in the module.
const SHIM: [(&str, &str); 6] = [
    ("internal/windlass/client.go", include_str!("smd/shim/client.go")),
    ("internal/windlass/schema.go", include_str!("smd/shim/schema.go")),
    ("value/windlass.go", include_str!("smd/shim/value.go")),
    ("fieldpath/windlass.go", include_str!("smd/shim/fieldpath.go")),
    ("typed/windlass.go", include_str!("smd/shim/typed.go")),
    ("merge/windlass.go", include_str!("smd/shim/merge.go")),
];

/// The functions of the module that ours replace: the file, the receiver and the names.
const REPLACED: [(&str, &str, &[&str]); 10] = [
    ("value/value.go", "", &["CompareUsing", "EqualsUsing"]),
    (
        "fieldpath/set.go",
        "(s *Set) ",
        &[
            "Union",
            "Intersection",
            "Difference",
            "RecursiveDifference",
            "Leaves",
            "Size",
            "Empty",
            "Equals",
            "String",
            "Has",
            "Iterate",
            "EnsureNamedFieldsAreMembers",
            "FilterIncludeMatches",
        ],
    ),
    ("fieldpath/serialize.go", "(s *Set) ", &["ToJSONStream", "ToJSON", "FromJSON"]),
    ("fieldpath/serialize-pe.go", "", &["SerializePathElement", "DeserializePathElement"]),
    ("fieldpath/element.go", "(e PathElement) ", &["Less", "Equals", "String"]),
    ("fieldpath/path.go", "(fp Path) ", &["String"]),
    (
        "typed/typed.go",
        "(tv TypedValue) ",
        &["Validate", "ToFieldSet", "Merge", "Compare", "RemoveItems", "ExtractItems"],
    ),
    ("typed/reconcile_schema.go", "", &["ReconcileFieldSetWithSchema"]),
    ("merge/update.go", "(s *Updater) ", &["Update", "Apply"]),
    ("merge/conflict.go", "(conflicts Conflicts) ", &["Error"]),
];

/// Tests that fail because they test what only Go has: a schema that says nothing, and values of no JSON type.
const ONLY_IN_GO: [&str; 3] =
    ["typed TestInvalidOverride", "value TestValueLess/Invalid-7", "value TestValueLess/Invalid-8"];

pub(crate) fn run(args: Args) -> Result {
    let server = build_server()?;
    let folder = control_plane::cache_folder()?.join(format!("smd-{}", args.version));
    let module = copy_module(&args.version, &folder.join("module"))?;
    install(&module)?;
    if let Some(sequences) = args.random {
        return random::run(
            &random::Plan { version: &args.version, sequences, seed: args.seed },
            &folder,
            &server,
        );
    }
    let calls = module.join("calls.txt");
    _ = fs::remove_file(&calls);
    let mut command = Command::new("go");
    command
        .args(["test", "-json", "-count=1", "./..."])
        .args(args.run.iter().flat_map(|pattern| ["-run", pattern]))
        .current_dir(&module)
        .env("WINDLASS_SMD_SERVER", server)
        .env("WINDLASS_SMD_CALLS", &calls)
        .env("GOFLAGS", "-mod=mod")
        .stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cannot run go: {error}"))?;
    let report = report::Report::read(&String::from_utf8_lossy(&output.stdout));
    let unexpected = report.print(&ONLY_IN_GO, args.verbose);
    let calls = fs::read_to_string(&calls).unwrap_or_default();
    println!("{} requests to windlass-schema", calls.lines().count());
    if unexpected == 0 { Ok(()) } else { Err(format!("{unexpected} tests have failed").into()) }
}

/// Builds the process that the tests ask, and returns its path.
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

/// Copies the module from the cache of the Go tools, and returns the folder of the copy.
fn copy_module(version: &str, target: &Path) -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", &format!("{MODULE}@{version}")])
        .output()
        .map_err(|error| format!("cannot run go: {error}"))?;
    let downloaded: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let source = downloaded["Dir"].as_str().ok_or_else(|| format!("{MODULE}@{version}: {downloaded}"))?;
    if target.exists() {
        fs::remove_dir_all(target)?;
    }
    copy_folder(Path::new(source), target)?;
    Ok(target.to_owned())
}

/// Copies the content of files, and not their permissions: the cache of the Go tools is read-only.
fn copy_folder(source: &Path, target: &Path) -> Result {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let target = target.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::write(target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

/// Renames the functions under test in the copy, and adds ours.
fn install(module: &Path) -> Result {
    for (file, receiver, names) in REPLACED {
        let path = module.join(file);
        let mut text = fs::read_to_string(&path)?;
        for name in names {
            let start = format!("\nfunc {receiver}{name}(");
            if text.matches(&start).count() != 1 {
                return Err(format!("{file}: not one func {receiver}{name}").into());
            }
            text = text.replace(&start, &format!("\nfunc {receiver}original{name}("));
        }
        fs::write(&path, text)?;
    }
    for (file, text) in SHIM {
        let path = module.join(file);
        fs::create_dir_all(path.parent().unwrap_or(module))?;
        fs::write(path, text)?;
    }
    Ok(())
}
