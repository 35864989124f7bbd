//! The steps of the scaffolded workflows, run by bash as GitHub runs them. The tools are stand-ins that record their arguments; `make` is
//! the real tool with the scaffolded Makefile.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Sandbox, bar};

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The tools that a runner has, and `windlass`, which a step installs.
const TOOLS: [&str; 6] = ["sudo", "rustup", "cargo", "windlass", "gh", "kubectl"];

/// Records the arguments, and prints the name of a pushed image as `windlass image push` does.
const STAND_IN: &str = r#"#!/bin/bash
echo "$(basename "$0") $*" >>"$RECORD"
if [ "$(basename "$0") $1 $2" = "windlass image push" ]; then
    [ "$(cat)" = "the-token" ] || { echo "unauthorized" >&2; exit 1; }
    echo "${3%:*}@$DIGEST"
fi
"#;

/// Returns the scripts of a workflow's steps, in order.
fn steps(workflow: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let mut lines = workflow.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((before, script)) = line.split_once("run: ") else { continue };
        assert!(before.trim().is_empty() || before.trim() == "-", "{line}");
        if script != "|" {
            steps.push(script.to_owned());
            continue;
        }
        let mut block = String::new();
        let is_deeper = |next: &str| next.len() - next.trim_start().len() > before.len();
        while let Some(next) = lines.next_if(|next| is_deeper(next)) {
            block += next.trim_start();
            block.push('\n');
        }
        steps.push(block);
    }
    steps
}

struct Runner {
    folder: tempfile::TempDir,
}

impl Runner {
    /// A runner that has checked out a scaffolded project.
    fn new(disk: &crate::memory::Memory) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in &disk.files {
            let path = folder.path().join("project").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let runner = Self { folder };
        fs::create_dir(runner.path("bin")).unwrap();
        for tool in TOOLS {
            let path = runner.path("bin").join(tool);
            fs::write(&path, STAND_IN).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        runner
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a step with the shell that GitHub uses. Returns the commands that the step has run.
    fn run(&self, script: &str) -> Vec<String> {
        let record = self.path("record");
        fs::write(&record, "").unwrap();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.path("bin").display());
        let output = Command::new("bash")
            .args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-u", "-c", script])
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", path)
            .env("RECORD", &record)
            .env("DIGEST", DIGEST)
            .env("TOKEN", "the-token")
            .env("GH_TOKEN", "the-token")
            .env("GITHUB_REPOSITORY", "Someone/Operator-Demo")
            .env("GITHUB_REF_NAME", "v1.2.3")
            .env("GITHUB_ACTOR", "someone")
            .output()
            .unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
        fs::read_to_string(record).unwrap().lines().map(str::to_owned).collect()
    }
}

/// Runs all steps of a workflow. Returns the commands of the steps.
fn commands(workflow: &str) -> Vec<String> {
    let mut sandbox = Sandbox::init();
    sandbox.create(&bar()).unwrap();
    let runner = Runner::new(&sandbox.disk);
    let steps = steps(&sandbox.disk.text(&format!(".github/workflows/{workflow}.yml")));
    assert!(!steps.is_empty(), "{workflow} has no steps");
    let commands: Vec<String> = steps.iter().flat_map(|step| runner.run(step)).collect();
    assert!(commands.iter().all(|command| !command.contains("the-token")), "{commands:?}");
    commands
}

fn has_make() -> bool {
    let has = ["bash", "make"].iter().all(|tool| {
        ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|folder| Path::new(folder).join(tool).is_file())
    });
    if !has {
        eprintln!("skipped: bash and make are not installed");
    }
    has
}

#[track_caller]
fn in_order(commands: &[String], wanted: &[&str]) {
    let mut rest = commands.iter();
    for text in wanted {
        assert!(rest.any(|command| command.contains(text)), "no {text:?} in its place in {commands:#?}");
    }
}

#[test]
fn the_tests_of_a_project_run_after_their_tools_are_installed() {
    if has_make() {
        in_order(
            &commands("test"),
            &[
                "rustup toolchain install stable",
                "cargo install windlass-cli",
                "cargo fmt --all --check",
                "cargo clippy",
                "windlass check",
                "windlass test",
            ],
        );
    }
}

#[test]
fn the_image_of_the_main_branch_has_a_name_in_small_letters() {
    if has_make() {
        let image = "ghcr.io/someone/operator-demo:main";
        let push = format!("windlass image push {image} --username someone --password-stdin");
        in_order(
            &commands("image"),
            &[
                "musl-tools",
                "cargo install windlass-cli",
                &format!("windlass image build --tag {image}"),
                &push,
            ],
        );
    }
}

#[test]
fn a_release_has_manifests_with_the_digest_of_the_pushed_image() {
    if has_make() {
        let image = "ghcr.io/someone/operator-demo";
        in_order(
            &commands("release"),
            &[
                "windlass check",
                &format!("windlass image build --tag {image}:v1.2.3"),
                &format!("windlass image push {image}:v1.2.3 --username someone --password-stdin"),
                &format!("windlass manifests install --image {image}@{DIGEST}"),
                "gh release create v1.2.3 dist/install.yaml",
            ],
        );
    }
}
