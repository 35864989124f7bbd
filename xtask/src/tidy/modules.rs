//! Checks that the modules of a crate use only those that its root declares below them.

use std::path::Path;

use super::Report;
use super::files::{read, rust_files, shown};
use super::sources::is_test;
use crate::Result;
use crate::project::Package;

/// The crates whose modules are declared from the surface down.
const LAYERED: &[&str] = &["windlass-apiserver"];

pub(super) fn check(package: &Package, report: &mut Report) -> Result {
    if !LAYERED.contains(&&*package.name) {
        return Ok(());
    }
    let source = package.folder().join("src");
    let root = read(&source.join("lib.rs"))?;
    let layers: Vec<&str> = declared(&root).collect();
    for path in rust_files(&source)?.into_iter().filter(|path| !is_test(path)) {
        let Some(module) = top_module(&source, &path) else { continue };
        let Some(layer) = layers.iter().position(|declared| *declared == module) else { continue };
        for used in used(&read(&path)?) {
            if layers[..layer].contains(&&*used) {
                report.errors.push(format!(
                    "{}: `{module}` is declared below `{used}` in lib.rs and must not use it: move what both need \
                     further down",
                    shown(&path)
                ));
            }
        }
    }
    Ok(())
}

/// The modules that the root of a crate declares, in order.
fn declared(root: &str) -> impl Iterator<Item = &str> {
    root.lines().filter_map(|line| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.strip_prefix("mod ")?.strip_suffix(';')
    })
}

/// The module of a file that the root of the crate declares.
fn top_module(source: &Path, path: &Path) -> Option<String> {
    let first = path.strip_prefix(source).ok()?.components().next()?;
    let name = first.as_os_str().to_str()?;
    Some(name.strip_suffix(".rs").unwrap_or(name).to_owned())
}

/// The modules that a file names after `crate::`.
fn used(text: &str) -> Vec<String> {
    let mut used = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => {
                let list = list.split('}').next().unwrap_or_default();
                used.extend(list.split(',').map(|item| word(item.trim_start())));
            }
            None => used.push(word(rest)),
        }
    }
    used.sort();
    used.dedup();
    used
}

fn word(text: &str) -> String {
    text.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_modules_are_found_in_all_spellings() {
        let text = "use crate::store::View;\nuse crate::{api, serve::Body};\nfn f() { crate::meta::name() }";
        assert_eq!(used(text), ["api", "meta", "serve", "store"]);
    }

    #[test]
    fn modules_are_those_of_the_root_in_its_order() {
        let root = "mod server;\n// Words.\npub mod wire;\nuse x;\nmod store;\n";
        assert_eq!(declared(root).collect::<Vec<_>>(), ["server", "wire", "store"]);
        let source = Path::new("src");
        assert_eq!(top_module(source, Path::new("src/registry/get.rs")).as_deref(), Some("registry"));
        assert_eq!(top_module(source, Path::new("src/meta.rs")).as_deref(), Some("meta"));
    }
}
