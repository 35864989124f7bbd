//! The software bill of materials of a program: CycloneDX 1.6.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_image::Digest;

use super::metadata::{Metadata, Package};
use crate::error::Result;

/// The media type of the document.
pub(super) const MEDIA_TYPE: &str = "application/vnd.cyclonedx+json";

/// Returns the document about a program. Equal packages and times make equal bytes.
pub(super) fn document(metadata: &Metadata, root: &Package, created: &str) -> Result<Vec<u8>> {
    let closure = metadata.closure(root);
    let packages: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let reference = |id: &&str| packages.get(id).map(|package| url(package));
    let mut components: Vec<(String, Value)> = closure
        .keys()
        .filter(|id| **id != root.id)
        .filter_map(|id| packages.get(id))
        .map(|package| (url(package), component(package, "library")))
        .collect();
    components.sort_by(|a, b| a.0.cmp(&b.0));
    let components: Vec<Value> = components.into_iter().map(|(_, component)| component).collect();
    let mut dependencies: Vec<(String, Vec<String>)> = closure
        .iter()
        .filter_map(|(id, ids)| {
            let mut urls: Vec<String> = ids.iter().filter_map(reference).collect();
            urls.sort();
            urls.dedup();
            Some((reference(id)?, urls))
        })
        .collect();
    dependencies.sort();
    let dependencies: Vec<Value> =
        dependencies.into_iter().map(|(id, ids)| json!({ "ref": id, "dependsOn": ids })).collect();
    let mut document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": created,
            "tools": { "components": [
                { "type": "application", "name": "windlass", "version": env!("CARGO_PKG_VERSION") },
            ] },
            "component": component(root, "application"),
        },
        "components": components,
        "dependencies": dependencies,
    });
    document["serialNumber"] = Value::String(serial_number(&serde_json::to_vec(&document)?));
    Ok(serde_json::to_vec_pretty(&document)?)
}

/// Returns a UUID that is computed from the document: equal documents have equal numbers.
fn serial_number(document: &[u8]) -> String {
    let hex = Digest::of(document).hex().to_owned();
    format!("urn:uuid:{}-{}-8{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

fn component(package: &Package, kind: &str) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": url(package),
        "name": package.name,
        "version": package.version,
        "purl": url(package),
    });
    if let Some(license) = &package.license {
        // Cargo once allowed a slash for OR.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if let Some(description) = &package.description {
        component["description"] =
            Value::String(description.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    component
}

/// Returns the package URL.
fn url(package: &Package) -> String {
    let url = format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"));
    match package.source.as_deref().and_then(|source| source.strip_prefix("git+")) {
        Some(git) => format!("{url}?vcs_url=git%2B{}", git.replace('#', "%40").replace(['?', '&'], "%3F")),
        None => url,
    }
}
