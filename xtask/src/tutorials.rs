//! Runs the tutorials of the book like a reader.

mod page;
mod shell;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use self::page::{Page, Step};
use self::shell::Shell;
use crate::{Result, project};

/// The pages.
const PAGES: &[&str] =
    &["tutorial-bar.md", "tutorial-custom-pod.md", "tutorial-ip-pool.md", "tutorial-database.md"];

/// Options.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only pages with this text in the name
    page: Option<String>,
    /// The folder for compiled code, which all pages share
    #[arg(long, value_name = "FOLDER")]
    target: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> Result {
    let root = project::root().canonicalize()?;
    let target = args.target.unwrap_or_else(|| root.join("target/tutorials"));
    let windlass = build_windlass(&root)?;
    let pages =
        PAGES.iter().filter(|page| args.page.as_ref().is_none_or(|part| page.contains(part.as_str())));
    // The first page runs in a git repository, all other pages outside of a repository.
    for (number, page) in pages.enumerate() {
        let begun = Instant::now();
        println!("== {page}");
        follow(&root.join("docs").join(page), &windlass, &target, number == 0)?;
        println!("== {page}: {:.0} s", begun.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Builds the command, and returns the folder of the command.
fn build_windlass(root: &Path) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built =
        Command::new(cargo).args(["build", "--quiet", "-p", "windlass-cli"]).current_dir(root).status()?;
    if !built.success() {
        return Err("windlass does not build".into());
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(root.join(target).join("debug"))
}

/// Follows a page in a new folder. The path of the folder has a space.
fn follow(page: &Path, windlass: &Path, target: &Path, in_git: bool) -> Result {
    let text = fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))?;
    let folder = env::temp_dir().join(format!("windlass tutorial {}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    if in_git {
        Command::new("git").args(["init", "--quiet"]).current_dir(&folder).status()?;
    }
    let mut shell = Shell::start(&folder, windlass, target)?;
    let followed = Page::parse(&text).steps.iter().try_for_each(|step| {
        println!("-- line {}", step.line());
        match step {
            Step::Run { commands, expected, line } => shell
                .run(commands, expected)
                .map_err(|error| format!("{}:{line}: {error}", page.display()).into()),
            Step::Write { path, text, .. } => shell.write(path, text),
        }
    });
    shell.end();
    fs::remove_dir_all(&folder)?;
    followed
}
