//! `cargo xtask bench build`: how long an operator outside of the workspace compiles, and how large an image is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use windlass_scaffold::{CreateApi, Folder, Init, License, Plan, Project};

use crate::{Result, project};

/// The largest custom-pod for an image that is accepted, in bytes.
const IMAGE_GOAL: u64 = 12_000_000;

/// A build that has succeeded.
struct Build {
    seconds: f64,
    /// User and system time of cargo and of cargo's children. `None` on systems without /proc.
    processor: Option<f64>,
}

/// Measures a new project, with `edits` edits of each kind, and custom-pod for an image. Downloads are not part of the times.
pub(super) fn measure(edits: usize) -> Result {
    let folder = env::temp_dir().join(format!("windlass-bench-build-{}", std::process::id()));
    let measured = scaffold(&folder).and_then(|()| project_rows(&folder, edits.max(1)));
    let _ = fs::remove_dir_all(&folder);
    measured?;
    image_row()
}

/// Writes the project of a reader who types `windlass init --path` and `windlass create api`.
fn scaffold(root: &Path) -> Result {
    fs::create_dir_all(root)?;
    let folder = Folder::new(root);
    let checkout = project::root().canonicalize()?;
    let init = Init { domain: "example.com".into(), path: Some(checkout.clone()), ..Init::default() };
    let begun = init.project("website-operator")?;
    let plan = Plan::create(None, &begun).header(License::None.header(None, 2026, None));
    plan.run(&folder)?.writes.apply(&folder)?;
    // The scaffolded project, with the digests of the files.
    let begun = Project::parse(&fs::read_to_string(root.join("windlass.toml"))?)?;
    let kind = CreateApi {
        group: "apps".into(),
        version: "v1".into(),
        kind: "Website".into(),
        ..CreateApi::default()
    };
    Plan::create(Some(&begun), &kind.apply(&begun)?).run(&folder)?.writes.apply(&folder)?;
    fs::copy(checkout.join("Cargo.lock"), root.join("Cargo.lock"))?;
    Ok(())
}

/// Prints the rows of the project: the first build of all crates, then builds after edits.
fn project_rows(folder: &Path, edits: usize) -> Result {
    let target = folder.join("target");
    cargo(folder, &target, &["fetch", "--quiet"])?;
    println!("{:<46}{:>10}{:>14}", "", "seconds", "processor s");
    let cold = cargo(folder, &target, &["build", "--quiet", "--timings"])?;
    print_build("build.cold: all crates, dev profile", &cold);
    keep_timings(&target)?;
    for (name, file) in [
        ("build.edit-controller: save to built", "src/controllers/website.rs"),
        ("build.edit-kind: save to built", "api/src/v1/website.rs"),
    ] {
        let mut builds = (0..edits)
            .map(|edit| {
                let path = folder.join(file);
                let text = fs::read_to_string(&path)?;
                fs::write(&path, format!("{text}\n/// An edit.\npub const EDIT_{edit}: usize = {edit};\n"))?;
                cargo(folder, &target, &["build", "--quiet"])
            })
            .collect::<Result<Vec<_>>>()?;
        builds.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        print_build(name, &builds[builds.len() / 2]);
    }
    Ok(())
}

/// Keeps the report of `cargo build --timings`, with the cost of each dependency.
fn keep_timings(target: &Path) -> Result {
    let kept = target_folder().join("bench-build-timings.html");
    fs::create_dir_all(target_folder())?;
    fs::copy(target.join("cargo-timings/cargo-timing.html"), &kept)?;
    println!("  what each dependency costs: {}", kept.canonicalize()?.display());
    Ok(())
}

/// Prints the size of custom-pod for a container image: without `dev`, in the profile `image`.
fn image_row() -> Result {
    let target = target_folder().join("bench-build");
    let build = cargo(
        project::root(),
        &target,
        &["build", "--quiet", "--profile=image", "--package=custom-pod", "--no-default-features"],
    )?;
    print_build("build.image: custom-pod, what was not built yet", &build);
    let bytes = fs::metadata(target.join("image/custom-pod"))?.len();
    let verdict = if bytes <= IMAGE_GOAL { "holds" } else { "missed" };
    println!(
        "build.size: custom-pod, for an image: {:.1} MB, goal ≤{:.0} MB: {verdict}",
        megabytes(bytes),
        megabytes(IMAGE_GOAL)
    );
    Ok(())
}

fn print_build(name: &str, build: &Build) {
    let processor = build.processor.map_or("–".to_owned(), |seconds| format!("{seconds:.1}"));
    println!("{name:<50}{:>8.1}{processor:>12}", build.seconds);
}

/// Runs cargo in a folder, as outside of this workspace.
fn cargo(folder: &Path, target: &Path, args: &[&str]) -> Result<Build> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(folder).env("CARGO_TARGET_DIR", target);
    if folder != project::root() {
        // Set for this workspace; a project must not need the variable.
        command.env_remove("K8S_OPENAPI_ENABLED_VERSION");
    }
    let (before, begun) = (processor_of_children(), Instant::now());
    let status = command.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    let seconds = begun.elapsed().as_secs_f64();
    if !status.success() {
        return Err(format!("cargo {} failed in {}", args.join(" "), folder.display()).into());
    }
    let processor = before.zip(processor_of_children()).map(|(before, after)| after - before);
    Ok(Build { seconds, processor })
}

/// Returns the user and system time of the ended children and of the children's children, in seconds.
fn processor_of_children() -> Option<f64> {
    children_ticks(&fs::read_to_string("/proc/self/stat").ok()?).map(|ticks| ticks / 100.0)
}

/// Reads `cutime` and `cstime` out of `/proc/<pid>/stat`, in hundredths of a second.
fn children_ticks(stat: &str) -> Option<f64> {
    // The name of the program, in parentheses, may have spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(13);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some(next()? + next()?)
}

fn target_folder() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| project::root().join("target"), PathBuf::from)
}

#[expect(clippy::cast_precision_loss, reason = "a size to print")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::children_ticks;

    #[test]
    fn the_time_of_children_is_read_behind_the_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 200 0 0 11 12 340 56 20 0 1 0 99 0 0";
        assert_eq!(children_ticks(stat), Some(396.0));
        assert_eq!(children_ticks("7 (a"), None);
    }
}
