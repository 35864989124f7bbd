//! Checks that the modules of a crate use only modules that the root of the crate declares further down.

use std::collections::BTreeMap;
use std::path::Path;

use super::Report;
use super::files::{read, rust_files, shown};
use super::sources::is_test;
use crate::Result;
use crate::project::Package;

/// Crates without layers yet.
const WITHOUT_LAYERS: &[&str] = &["windlass-cel"];

pub(super) fn check(package: &Package, report: &mut Report) -> Result {
    if WITHOUT_LAYERS.contains(&package.name.as_str()) {
        return Ok(());
    }
    let source = package.folder().join("src");
    let Some(root) =
        ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|path| path.exists())
    else {
        return Ok(());
    };
    let layers = Layers::parse(&read(&root)?);
    for path in rust_files(&source)?.into_iter().filter(|path| !is_test(path)) {
        let Some(module) = top_module(&source, &path) else { continue };
        for used in layers.used_above(&module, &read(&path)?) {
            report.errors.push(format!(
                "{}: `{module}` is declared below `{used}` in {} and must not use it: declare the modules in another \
                 order, from the surface down; if `{used}` uses `{module}` too, move what both need further down",
                shown(&path),
                shown(&root),
            ));
        }
    }
    Ok(())
}

/// The modules that the root of a crate declares, and the names that the root re-exports from the modules.
struct Layers {
    modules: Vec<String>,
    /// The module of each re-exported name.
    exported: BTreeMap<String, String>,
}

impl Layers {
    fn parse(root: &str) -> Self {
        let root = code(root);
        let lines: Vec<&str> = root.lines().collect();
        let declared = |(at, line): (usize, &&str)| {
            let is_of_tests =
                at > 0 && ["#[cfg(test)]", "#[cfg(all(test"].iter().any(|cfg| lines[at - 1].starts_with(cfg));
            declared(line).filter(|_| !is_of_tests).map(str::to_owned)
        };
        let modules: Vec<String> = lines.iter().enumerate().filter_map(declared).collect();
        let mut exported = BTreeMap::new();
        for statement in root.split(';') {
            let Some((_, tree)) = statement.rsplit_once("use ") else { continue };
            for Import { path, name } in imports(tree) {
                let mut path = path.iter().filter(|segment| !matches!(segment.as_str(), "self" | "crate"));
                if let Some(module) = path.next().filter(|first| modules.contains(first))
                    && !modules.contains(&name)
                {
                    exported.insert(name, module.clone());
                }
            }
        }
        Self { modules, exported }
    }

    /// Returns the modules that a file of `module` uses although the root declares them above `module`.
    fn used_above(&self, module: &str, text: &str) -> Vec<&str> {
        let layer = self.modules.iter().position(|declared| declared == module);
        let above = &self.modules[..layer.unwrap_or(0)];
        let used: Vec<String> = names_after_crate(&code(text));
        let module_of = |name: &String| self.exported.get(name).unwrap_or(name).clone();
        let used: Vec<String> = used.iter().map(module_of).collect();
        above.iter().filter(|declared| used.contains(declared)).map(String::as_str).collect()
    }
}

/// Returns the module that a line of a root declares.
fn declared(line: &str) -> Option<&str> {
    let line = ["pub(crate) ", "pub "].iter().find_map(|prefix| line.strip_prefix(prefix)).unwrap_or(line);
    line.strip_prefix("mod ")?.strip_suffix(';')
}

/// Returns the text of a file without comment lines and without the unit tests at the end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |text, line| text + line + "\n")
}

/// Returns the module of a file that the root of the crate declares.
fn top_module(source: &Path, path: &Path) -> Option<String> {
    let first = path.strip_prefix(source).ok()?.components().next()?;
    let name = first.as_os_str().to_str()?;
    Some(name.strip_suffix(".rs").unwrap_or(name).to_owned())
}

/// Returns the names that follow `crate::` in a text.
fn names_after_crate(text: &str) -> Vec<String> {
    let trees = text.match_indices("crate::").map(|(at, found)| &text[at + found.len()..]);
    let mut names: Vec<String> =
        trees.flat_map(imports).filter_map(|import| import.path.into_iter().next()).collect();
    names.sort();
    names.dedup();
    names
}

/// A path of a tree of imports, and the name under which the path is imported.
#[derive(Debug, PartialEq, Eq)]
struct Import {
    path: Vec<String>,
    name: String,
}

/// Returns the paths of the tree of imports at the start of a text: `a::{b, c::d as e}`.
fn imports(text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    branch(text.trim_start(), &mut Vec::new(), &mut found);
    found
}

/// Reads one branch of a tree of imports, and returns the rest of the text.
fn branch<'t>(text: &'t str, path: &mut Vec<String>, found: &mut Vec<Import>) -> &'t str {
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = branch(rest.trim_start(), path, found).trim_start();
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => return rest.strip_prefix('}').unwrap_or(rest),
            }
        }
    }
    let (segment, rest) = word(text);
    if segment.is_empty() {
        // A star, or type parameters.
        found.push(Import { path: path.clone(), name: String::new() });
        return text.strip_prefix('*').unwrap_or(text);
    }
    if let Some(rest) = rest.strip_prefix("::") {
        path.push(segment.to_owned());
        let rest = branch(rest, path, found);
        path.pop();
        return rest;
    }
    let (name, rest) = match rest.trim_start().strip_prefix("as ") {
        Some(renamed) => word(renamed.trim_start()),
        None => (segment, rest),
    };
    let path = path.iter().cloned().chain([segment.to_owned()]).collect();
    found.push(Import { path, name: name.to_owned() });
    rest
}

/// Splits the identifier off the start of a text.
fn word(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !character.is_alphanumeric() && character != '_');
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_names_are_found_in_all_spellings() {
        let text = "use crate::store::View;\nuse crate::all::*;\n// crate::comment\nuse crate::{\n    api::{Get, List},\n    serve::Body,\n};\n\
                    fn f() { crate::meta::name() }\n#[cfg(test)]\nmod tests {\n    use crate::fake;\n}\n";
        assert_eq!(names_after_crate(&code(text)), ["all", "api", "meta", "serve", "store"]);
    }

    #[test]
    fn modules_are_those_of_the_root_in_its_order() {
        let root = "mod server;\n// Words.\npub mod wire;\nuse x;\n#[cfg(unix)]\npub(crate) mod store;\n#[cfg(test)]\nmod tests;\n";
        assert_eq!(Layers::parse(root).modules, ["server", "wire", "store"]);
        let source = Path::new("src");
        assert_eq!(top_module(source, Path::new("src/registry/get.rs")).as_deref(), Some("registry"));
        assert_eq!(top_module(source, Path::new("src/meta.rs")).as_deref(), Some("meta"));
    }

    #[test]
    fn a_module_must_not_use_modules_above_under_any_name() {
        let layers = Layers::parse(
            "mod server;\nmod api;\nmod store;\npub use self::{\n    api::{Get, verb::List as Listing},\n    server::Server,\n};\n",
        );
        let above = |module, text| layers.used_above(module, text).join(" ");
        assert_eq!(above("server", "use crate::{api, store::View};"), "");
        assert_eq!(above("store", "use crate::{Listing, api::Get};\n"), "api");
        assert_eq!(above("store", "fn f(server: &crate::Server) {}\n"), "server");
        assert_eq!(above("api", "fn f() { crate::store::open() }\n"), "");
        // A function may have the name of a module.
        let layers = Layers::parse("mod kind;\nmod kind_ref;\npub use self::kind_ref::{KindRef, kind};\n");
        assert_eq!(layers.used_above("kind_ref", "use crate::kind::Kind;\n"), ["kind"]);
    }
}
