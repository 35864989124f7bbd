//! How Go encodes empty fields, from the struct tags in the sources of the modules.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Map, Value, json};

use super::Modules;
use crate::Result;

/// Returns definition → field → treatment of an empty value: `omit` (omitted unless it is a struct), `zero`
/// (omitted, structs too) or `always` (written, even if absent). Fields without an entry are pointers, which
/// keep empty values.
pub(super) fn collect(modules: &Modules, types: &Map<String, Value>) -> Result<Map<String, Value>> {
    let structs = structs(modules)?;
    let mut out = Map::new();
    for name in types.keys() {
        let mut fields = Map::new();
        flatten(name, &structs, &mut fields);
        if !fields.is_empty() {
            out.insert(name.clone(), fields.into());
        }
    }
    Ok(out)
}

fn structs(modules: &Modules) -> Result<BTreeMap<String, Struct>> {
    let mut structs = BTreeMap::new();
    for (package, folder) in modules.packages()? {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let is_go = path.extension().is_some_and(|extension| extension == "go");
            if is_go && name.contains("types") && !name.starts_with("zz_") && !name.ends_with("_test") {
                read(&fs::read_to_string(path)?, &package, &mut structs);
            }
        }
    }
    Ok(structs)
}

/// Returns the names that Go's decoder prints in errors: definition → field → `[type, struct]`. The type is empty
/// unless it is a named type (`v1.SecretType`); the struct is empty unless the field is in an embedded struct.
pub(super) fn names(modules: &Modules, types: &Map<String, Value>) -> Result<Map<String, Value>> {
    let structs = structs(modules)?;
    let mut out = Map::new();
    for name in types.keys() {
        let mut fields = Map::new();
        name_fields(name, "", &structs, &mut fields);
        if !fields.is_empty() {
            out.insert(name.clone(), fields.into());
        }
    }
    Ok(out)
}

fn name_fields(
    name: &str,
    inside: &str,
    structs: &BTreeMap<String, Struct>,
    fields: &mut Map<String, Value>,
) {
    let Some(known) = structs.get(name) else { return };
    for inlined in &known.inlined {
        let short = inlined.rsplit('.').next().unwrap_or_default();
        let path = if inside.is_empty() { short.to_owned() } else { format!("{inside}.{short}") };
        name_fields(inlined, &path, structs, fields);
    }
    for (field, kind) in &known.named {
        if !kind.is_empty() || !inside.is_empty() {
            fields.insert(field.clone(), json!([kind, inside]));
        }
    }
}

/// The fields of a struct, and the structs that it embeds.
#[derive(Default)]
struct Struct {
    fields: BTreeMap<String, &'static str>,
    /// The named scalar or map type of a field, if the type is named.
    named: BTreeMap<String, String>,
    inlined: Vec<String>,
}

fn flatten(name: &str, structs: &BTreeMap<String, Struct>, fields: &mut Map<String, Value>) {
    let Some(known) = structs.get(name) else { return };
    for inlined in &known.inlined {
        flatten(inlined, structs, fields);
    }
    fields.extend(known.fields.iter().map(|(field, empty)| (field.clone(), (*empty).into())));
}

fn read(text: &str, package: &str, structs: &mut BTreeMap<String, Struct>) {
    let mut current: Option<(String, Struct)> = None;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" struct {")) {
            current = Some((format!("{package}.{name}"), Struct::default()));
        } else if line == "}" {
            structs.extend(current.take());
        } else if let Some((_, known)) = &mut current {
            field(line, package, known);
        }
    }
}

fn field(line: &str, package: &str, known: &mut Struct) {
    let Some((declaration, tags)) = line.trim().split_once('`') else { return };
    let Some((_, tag)) = tags.split_once("json:\"") else { return };
    let tag = tag.split('"').next().unwrap_or_default();
    let mut options = tag.split(',');
    let name = options.next().unwrap_or_default();
    let options: Vec<&str> = options.collect();
    let mut words = declaration.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next());
    if name.is_empty() {
        let embedded = second.unwrap_or(first).trim_start_matches('*');
        if !embedded.contains('.') {
            known.inlined.push(format!("{package}.{embedded}"));
        }
        return;
    }
    let kind = second.unwrap_or_default();
    known.named.insert(name.to_owned(), named_type(kind, package));
    let omitted = options.contains(&"omitempty");
    let empty = if kind.starts_with('*') {
        None
    } else if options.contains(&"omitzero") {
        Some("zero")
    } else if omitted {
        Some("omit")
    } else {
        Some("always")
    };
    if let Some(empty) = empty {
        known.fields.insert(name.to_owned(), empty);
    }
}

/// Returns `v1.SecretType` for `*SecretType` or `[]SecretType`, and an empty name for predeclared types and for maps.
fn named_type(kind: &str, package: &str) -> String {
    let bare = kind.trim_start_matches(['*', '[', ']']);
    if let Some((package, _)) = bare.split_once('.') {
        let is_alias = package.starts_with("meta") || package.ends_with("v1");
        return if is_alias { bare.replacen(package, "v1", 1) } else { bare.to_owned() };
    }
    if !bare.starts_with(char::is_uppercase) {
        return String::new();
    }
    format!("{}.{bare}", package.rsplit('.').next().unwrap_or_default())
}
