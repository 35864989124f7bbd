//! Checks that the paths, types and functions that ARCHITECTURE.md names exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Report;
use super::code::Names;
use super::files::read;
use super::markdown::{Page, Span};
use crate::project::Package;
use crate::{Result, project};

const PAGE: &str = "ARCHITECTURE.md";

/// Endings of code spans without a slash that name a file.
const EXTENSIONS: &[&str] = &[".bin", ".json", ".md", ".rs", ".toml", ".yaml"];

pub(super) fn check(packages: &[Package], report: &mut Report) -> Result {
    let text = read(&project::root().join(PAGE))?;
    let tree = Tree { root: project::root(), packages, names: Names::of(packages)? };
    report.errors.extend(tree.missing(&text));
    Ok(())
}

/// The files, crates and names for code spans.
struct Tree<'a> {
    root: &'a Path,
    packages: &'a [Package],
    names: Names,
}

impl Tree<'_> {
    /// Returns an error for every code span with a name that does not exist.
    fn missing(&self, text: &str) -> Vec<String> {
        let page = Page::parse(text);
        let mut errors = Vec::new();
        for (index, span) in page.spans.iter().enumerate() {
            let of_header = page.spans.iter().filter(|other| Some(other.line) == span.header);
            let of_line = page.spans[..index].iter().filter(|other| other.line == span.line);
            let folders = self.folders(of_header.chain(of_line));
            if let Err(what) = self.look_up(span.text, &folders) {
                errors.push(format!("{PAGE}:{}: `{}`: {what}", span.line, span.text));
            }
        }
        errors
    }

    fn look_up(&self, span: &str, folders: &[PathBuf]) -> Result {
        if let Some(task) = span.strip_prefix("cargo xtask ") {
            let name = task.split(' ').next().unwrap_or(task).replace('-', "_");
            let there = self.root.join(format!("xtask/src/{name}.rs")).is_file();
            return there.then_some(()).ok_or("no such task; `cargo xtask --help` lists them".into());
        }
        if span.contains("::") {
            return self.look_up_path_of_names(span);
        }
        if is_path(span) {
            return match alternatives(span).into_iter().find(|path| self.find(path, folders).is_none()) {
                None => Ok(()),
                Some(path) => Err(format!(
                    "there is no {path} in the workspace, in crates/windlass-* or in a folder that this line names; correct the path"
                )
                .into()),
            };
        }
        self.look_up_name(span, folders)
    }

    /// Looks up `Type::function` and `krate::Type`. Names of third-party crates are not checked.
    fn look_up_path_of_names(&self, span: &str) -> Result {
        let mut segments = span.split("::");
        let first = segments.next().unwrap_or_default();
        if self.package(first).is_none() {
            if matches!(first, "std" | "core" | "alloc")
                || self.dependencies().contains(&first.replace('_', "-"))
            {
                return Ok(());
            }
            self.look_up_name(first, &[])?;
        }
        segments.try_for_each(|segment| self.look_up_name(segment, &[]))
    }

    /// Looks up a single name: a type must be defined or imported, any other identifier must occur in the sources.
    fn look_up_name(&self, span: &str, folders: &[PathBuf]) -> Result {
        let name = span.split(['<', '(', '!']).next().unwrap_or(span);
        let is_identifier = name.chars().all(|c| c == '_' || c == '-' || c.is_ascii_alphanumeric())
            && name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !is_identifier {
            return Ok(());
        }
        if name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase) {
            let defined = self.names.define(name);
            return defined
                .then_some(())
                .ok_or(format!("no source defines or imports {name}; use its current name").into());
        }
        let known = self.names.contain(name)
            || self.package(name).is_some()
            || self.dependencies().contains(&name.replace('_', "-"))
            || self.find(name, folders).is_some();
        known.then_some(()).ok_or(format!(
            "{name} is not in the sources and is not a crate or file; use its current name, or remove the backticks if it is not code"
        ).into())
    }

    /// Returns the folders in code spans. Later paths in the same line may be relative to these folders.
    fn folders<'s>(&self, spans: impl Iterator<Item = &'s Span<'s>>) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for span in spans {
            if let Some(package) = self.package(span.text) {
                folders.push(package.folder().to_owned());
            } else if let Some(path) = self.find(span.text, &folders) {
                folders.push(if path.is_dir() {
                    path
                } else {
                    path.parent().unwrap_or(self.root).to_owned()
                });
            }
        }
        folders
    }

    /// Resolves a path relative to the workspace, to `crates/windlass-`, or to a folder of `folders`.
    fn find(&self, path: &str, folders: &[PathBuf]) -> Option<PathBuf> {
        let of_crate = self.root.join(format!("crates/windlass-{path}"));
        let mut candidates = [self.root.join(path), of_crate].into_iter();
        let mut relative = folders.iter().map(|folder| folder.join(path));
        candidates.find(|path| path.exists()).or_else(|| relative.find(|path| path.exists()))
    }

    fn package(&self, name: &str) -> Option<&Package> {
        let name = name.replace('_', "-");
        self.packages.iter().find(|package| package.name == name)
    }

    /// Returns the crates that the workspace depends on, with dashes.
    fn dependencies(&self) -> BTreeSet<String> {
        let all = self.packages.iter().flat_map(|package| &package.dependencies);
        all.map(|dependency| dependency.name.replace('_', "-")).collect()
    }
}

/// Returns whether a code span is a path of the workspace, not of a URL.
fn is_path(span: &str) -> bool {
    let is_path_char = |c: char| c.is_ascii_alphanumeric() || "_-./{},".contains(c);
    let has_extension = EXTENSIONS.iter().any(|extension| span.ends_with(extension));
    (span.contains('/') || has_extension) && !span.starts_with('/') && span.chars().all(is_path_char)
}

/// Expands braces: `verb/{get,list}.rs` is `verb/get.rs` and `verb/list.rs`.
fn alternatives(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(start, rest)| Some((start, rest.split_once('}')?)));
    match parts {
        Some((start, (list, end))) => list.split(',').map(|name| format!("{start}{name}{end}")).collect(),
        None => vec![path.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, Package, Tree, alternatives};
    use crate::project;

    fn errors(text: &str) -> Vec<String> {
        let manifest_path = project::root().join("crates/windlass-cache/Cargo.toml");
        let package = Package {
            name: "windlass-cache".into(),
            manifest_path,
            dependencies: vec![],
            targets: vec![],
            publish: None,
        };
        let mut names = Names::default();
        names.add("use std::sync::Arc;\nstruct Store;\nimpl Store { fn read(&self) {} }\n");
        Tree { root: project::root(), packages: &[package], names }.missing(text)
    }

    #[test]
    fn what_exists_passes() {
        let text = "`Store`, `Arc<K>`, `Store::read`, `std::mem::swap`, `windlass-cache`, `xtask/src/tidy.rs`,\n\
                    `cache/src/`, `cargo xtask tidy`, `cargo test --workspace`, `410`,\n\
                    `/readyz`, `--flag`, `Store::read::<K>(r)?.name(\"a\")`, `a / b`, `metadata.name`\n\n\
                    | crate | in `xtask/src` |\n|---|---|\n\
                    | `windlass-cache` | `src/lib.rs` |\n| tidy | `tidy/`, `code.rs`, `{tidy,bench}.rs` |\n";
        assert_eq!(errors(text), Vec::<String>::new());
    }

    #[test]
    fn what_does_not_exist_is_an_error_with_its_line() {
        let errors =
            errors("`Shop`\n`Store::write`\n`cache/src/nothing.rs`, `cargo xtask dance` and `windlass-x`\n");
        let starts = [
            "ARCHITECTURE.md:1: `Shop`: no source defines or imports Shop;",
            "ARCHITECTURE.md:2: `Store::write`: write is not in",
            "ARCHITECTURE.md:3: `cache/src/nothing.rs`: there is no cache/src/nothing.rs",
            "ARCHITECTURE.md:3: `cargo xtask dance`: no such task",
            "ARCHITECTURE.md:3: `windlass-x`: windlass-x is not in",
        ];
        assert_eq!(errors.len(), starts.len(), "{errors:#?}");
        for (error, start) in errors.iter().zip(starts) {
            assert!(error.starts_with(start), "{error}");
        }
    }

    #[test]
    fn braces_expand() {
        assert_eq!(alternatives("a/{b,c}.rs"), ["a/b.rs", "a/c.rs"]);
        assert_eq!(alternatives("a/"), ["a/"]);
    }
}
