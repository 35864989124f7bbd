//! Checks that the crate of docs/your-own-crate.md compiles outside of this workspace.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use crate::{Result, project};

/// The source of the crates on the page. The check replaces the source by paths into this repository.
const GIT: &str = "{ git = \"https://github.com/windlass-rs/windlass\" }";

pub(crate) fn run() -> Result {
    let root = project::root().canonicalize()?;
    let page = fs::read_to_string(root.join("docs/your-own-crate.md"))?;
    let folder = env::temp_dir().join(format!("windlass-own-crate-{}", std::process::id()));
    let checked = check(&root, &page, &folder);
    let _ = fs::remove_dir_all(&folder);
    checked
}

fn check(root: &Path, page: &str, folder: &Path) -> Result {
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("src/main.rs"), block(page, "rust")?)?;
    fs::write(folder.join("Cargo.toml"), from_this_repository(block(page, "toml")?, root)?)?;
    // The versions of the workspace have all been downloaded.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let checked = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["check", "--offline", "--quiet", "--all-targets"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", root.join("target/own-crate"))
        // .cargo/config.toml sets the variable for this workspace. The crate must not need the variable.
        .env_remove("K8S_OPENAPI_ENABLED_VERSION")
        .output()?;
    let said = String::from_utf8_lossy(&checked.stderr);
    if !checked.status.success() {
        return Err(format!("the crate of the page does not compile:\n{said}").into());
    }
    if said.contains("--> src/main.rs") {
        return Err(format!("the crate of the page has a warning:\n{said}").into());
    }
    println!("the crate of docs/your-own-crate.md compiles");
    Ok(())
}

/// Returns the contents of the page's only code block in this language.
fn block<'a>(page: &'a str, language: &str) -> Result<&'a str> {
    let fence = format!("```{language}\n");
    let mut blocks = page.split(&fence).skip(1);
    let block = blocks.next().ok_or_else(|| format!("the page has no block of {language}"))?;
    if blocks.next().is_some() {
        return Err(format!("the page has two blocks of {language}").into());
    }
    Ok(block.split("```").next().unwrap_or(block))
}

/// Replaces the repository's address by paths into this clone.
fn from_this_repository(manifest: &str, root: &Path) -> Result<String> {
    let lines = manifest.lines().map(|line| match line.split_once(" = ") {
        Some((name, source)) if source == GIT => {
            format!("{name} = {{ path = \"{}\" }}\n", root.join("crates").join(name).display())
        }
        _ => format!("{line}\n"),
    });
    let manifest: String = lines.collect();
    if manifest.contains("git =") {
        return Err(format!("a dependency is not from this repository:\n{manifest}").into());
    }
    Ok(manifest)
}
