//! Checks that the crate of docs/your-own-crate.md compiles outside of this workspace.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The source of the crates on the page. The test replaces it by paths into this repository.
const GIT: &str = "{ git = \"https://github.com/windlass-rs/windlass\" }";

#[test]
fn the_crate_of_the_book_compiles_outside_of_the_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let page = fs::read_to_string(root.join("docs/your-own-crate.md")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let at = |path: &str| directory.path().join(path);
    fs::create_dir(at("src")).unwrap();
    fs::write(at("src/main.rs"), block(&page, "rust")).unwrap();
    fs::write(at("Cargo.toml"), from_this_repository(block(&page, "toml"), &root)).unwrap();
    // The versions of the workspace, which have all been downloaded.
    fs::copy(root.join("Cargo.lock"), at("Cargo.lock")).unwrap();

    let checked = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--quiet", "--all-targets"])
        .current_dir(directory.path())
        // A directory of its own: the build that runs this test may hold the lock of its directory, and the variable that
        // is removed below would make the two rebuild each other's k8s-openapi.
        .env("CARGO_TARGET_DIR", target_directory().join("own-crate"))
        // .cargo/config.toml sets it for this workspace. The crate must not need it.
        .env_remove("K8S_OPENAPI_ENABLED_VERSION")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}");
    assert!(!said.contains("--> src/main.rs"), "the page has a warning:\n{said}");
}

/// The contents of the page's only code block in this language.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let fence = format!("```{language}\n");
    let mut blocks = page.split(&fence).skip(1);
    let block = blocks.next().unwrap_or_else(|| panic!("the page has no block of {language}"));
    assert!(blocks.next().is_none(), "the page has two blocks of {language}");
    block.split("```").next().unwrap_or(block)
}

/// Replaces the repository's address by paths into this clone.
fn from_this_repository(manifest: &str, root: &Path) -> String {
    let lines = manifest.lines().map(|line| match line.split_once(" = ") {
        Some((name, source)) if source == GIT => {
            format!("{name} = {{ path = \"{}\" }}\n", root.join("crates").join(name).display())
        }
        _ => format!("{line}\n"),
    });
    let manifest: String = lines.collect();
    assert!(!manifest.contains("git ="), "a dependency is not from this repository:\n{manifest}");
    manifest
}

/// The directory that this test was built in.
fn target_directory() -> PathBuf {
    // …/target/debug/deps/own_crate-0123456789abcdef
    env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned()
}
