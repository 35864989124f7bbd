//! Protobuf field numbers, from the `generated.proto` files of the modules.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Map, Value, json};

use super::Modules;
use crate::Result;

/// Returns message → field → `[number, type]` for the messages that the types need. A type is a scalar, `map<…>` or the
/// OpenAPI name of a message (`io.k8s.…`), with the prefix `repeated ` if the field is repeated.
pub(super) fn collect<'t>(
    modules: &Modules,
    types: impl Iterator<Item = &'t String>,
) -> Result<Map<String, Value>> {
    let mut all = BTreeMap::new();
    for (_, folder) in modules.packages()? {
        let file = folder.join("generated.proto");
        if file.is_file() {
            read(&fs::read_to_string(file)?, &mut all);
        }
    }
    let mut wanted: Vec<String> = types.cloned().collect();
    wanted.extend(EXTRA.iter().map(|name| (*name).to_owned()));
    let mut out = Map::new();
    while let Some(name) = wanted.pop() {
        if out.contains_key(&name) {
            continue;
        }
        let Some(message) = all.get(&name) else { continue };
        for (_, kind) in message.values() {
            let inner = kind.trim_start_matches("repeated ");
            let inner =
                inner.strip_prefix("map<string,").and_then(|rest| rest.strip_suffix('>')).unwrap_or(inner);
            wanted.push(inner.to_owned());
        }
        let fields = message.iter().map(|(field, (number, kind))| (field.clone(), json!([number, kind])));
        out.insert(name, fields.collect::<Map<_, _>>().into());
    }
    Ok(out)
}

/// Messages in requests to which no type of a kind refers.
const EXTRA: [&str; 6] = [
    "io.k8s.apimachinery.pkg.apis.meta.v1.CreateOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.PatchOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.UpdateOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.GetOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
];

type Message = BTreeMap<String, (u32, String)>;

fn read(text: &str, all: &mut BTreeMap<String, Message>) {
    let mut package = "";
    let mut current: Option<(String, Message)> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        if let Some(name) = line.strip_prefix("package ") {
            package = name.trim_end_matches(';');
        } else if let Some(name) = line.strip_prefix("message ") {
            let name = name.trim_end_matches(['{', ' ']);
            current = Some((open_api_name(&format!("{package}.{name}")), Message::new()));
        } else if line == "}" {
            all.extend(current.take());
        } else if let Some((_, message)) = &mut current
            && let Some((name, number, kind)) = field(line, package)
        {
            message.insert(name, (number, kind));
        }
    }
}

fn field(line: &str, package: &str) -> Option<(String, u32, String)> {
    let (declaration, number) = line.trim_end_matches(';').rsplit_once(" = ")?;
    let (kind, name) = declaration.rsplit_once(' ')?;
    let kind = kind.trim_start_matches("optional ").replace("map<string, ", "map<string,");
    let (prefix, rest) = match kind.strip_prefix("repeated ") {
        Some(rest) => ("repeated ", rest),
        None => ("", kind.as_str()),
    };
    let kind = match rest.strip_prefix("map<string,").and_then(|rest| rest.strip_suffix('>')) {
        Some(value) => format!("map<string,{}>", resolve(value, package)),
        None => format!("{prefix}{}", resolve(rest, package)),
    };
    Some((name.to_owned(), number.trim().parse().ok()?, kind))
}

/// Returns the full name of a type.
fn resolve(name: &str, package: &str) -> String {
    match name {
        "bool" | "int32" | "int64" | "uint32" | "uint64" | "double" | "string" | "bytes" => name.to_owned(),
        _ => match name.strip_prefix('.') {
            Some(full) => open_api_name(full),
            None => open_api_name(&format!("{package}.{name}")),
        },
    }
}

fn open_api_name(proto: &str) -> String {
    proto
        .replacen("k8s.io.", "io.k8s.", 1)
        .replacen("io.k8s.apiextensions_apiserver.", "io.k8s.apiextensions-apiserver.", 1)
        .replacen("io.k8s.kube_aggregator.", "io.k8s.kube-aggregator.", 1)
}
