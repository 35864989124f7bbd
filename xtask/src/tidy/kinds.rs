//! Checks that the API server names no built-in kind in quotes: windlass-kinds has the kinds.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Report;
use super::files::{read, rust_files, shown};
use crate::{Result, project};

const CHECKED: &str = "crates/windlass-apiserver/src";
/// The objects of a new server are data.
const EXCLUDED: &str = "crates/windlass-apiserver/src/bootstrap/";
const CATALOG: &str = "catalog/resources.json";

/// Plurals that are also fields of objects.
const FIELDS: [&str; 3] = ["endpoints", "namespaces", "secrets"];

pub(super) fn check(report: &mut Report) -> Result {
    let root = project::root();
    let names = names(&serde_json::from_str(&read(&root.join(CATALOG))?)?);
    for path in rust_files(&root.join(CHECKED))? {
        let name = shown(&path);
        if name.starts_with(EXCLUDED) || name.ends_with("tests.rs") {
            continue;
        }
        for (line, quoted) in quoted(&read(&path)?, &names) {
            let place =
                "the API server takes kinds and resources from windlass_kinds::kind_names and ::resources";
            report.errors.push(format!("{name}:{line}: `{quoted}` is a built-in kind; {place}"));
        }
    }
    Ok(())
}

/// Returns the kinds and the plurals of all built-in resources.
fn names(catalog: &Value) -> BTreeSet<String> {
    let versions = catalog.as_object().into_iter().flat_map(|versions| versions.values());
    let resources = versions.flat_map(|version| version["resources"].as_array().into_iter().flatten());
    let names = resources.flat_map(|resource| [&resource["kind"], &resource["name"]]);
    names.filter_map(Value::as_str).filter(|name| !FIELDS.contains(name)).map(str::to_owned).collect()
}

/// Returns the quoted names in the code, without comments and tests, with line numbers.
fn quoted<'a>(source: &'a str, names: &'a BTreeSet<String>) -> impl Iterator<Item = (usize, &'a str)> {
    let code = (1..).zip(source.lines()).take_while(|(_, line)| *line != "#[cfg(test)]");
    code.filter(|(_, line)| !line.trim_start().starts_with("//")).flat_map(move |(number, line)| {
        let parts = line.split('"').skip(1).step_by(2);
        parts.filter(move |part| names.contains(*part)).map(move |part| (number, part))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quoted_kinds_and_resources_are_found() {
        let catalog = json!({
            "v1": {"resources": [{"kind": "Pod", "name": "pods"}, {"kind": "Endpoints", "name": "endpoints"}]},
        });
        let names = names(&catalog);
        let source = r#"
            // kind == "Pod"
            if kind == "Pod" && resource["endpoints"] != "Pods" {}
            json!({"kind": POD, "resource": "pods"})
#[cfg(test)]
            kind == "Pod"
        "#;
        let found: Vec<_> = quoted(source, &names).collect();
        assert_eq!(found, [(3, "Pod"), (4, "pods")]);
    }
}
