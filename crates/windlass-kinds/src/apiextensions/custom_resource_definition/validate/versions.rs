//! The versions of a definition: names and contents.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_cel::{DefinitionIssue, DefinitionProblem};
use windlass_schema::FieldError;
use windlass_wire::names::dns_1035_label;

use super::columns::columns;
use super::{because, list, text};

/// Checks the names of the versions, and the storage version.
pub(super) fn names(spec: &Value) -> Vec<FieldError> {
    let versions = list(spec, "versions");
    let mut errors = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let name = text(version, &["name"]);
        errors.extend(because(&format!("spec.versions[{index}].name"), name, dns_1035_label(name)));
    }
    let unique: BTreeSet<&str> = versions.iter().map(|version| text(version, &["name"])).collect();
    if unique.len() < versions.len() {
        errors.push(about_all(versions, "must contain unique version names"));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        errors.push(about_all(versions, "must have exactly one version marked as storage version"));
    }
    if let Some(first) = versions.first().filter(|first| !text(first, &["name"]).is_empty()) {
        let name = text(first, &["name"]);
        errors.extend(because("spec.version", name, dns_1035_label(name)));
    }
    errors
}

/// Returns an error about the list of versions, with the list in the real server's internal form.
fn about_all(versions: &[Value], detail: &str) -> FieldError {
    let shown: Value = versions
        .iter()
        .map(|version| {
            json!({
                "Name": version["name"],
                "Served": version["served"] == true,
                "Storage": version["storage"] == true,
                "Deprecated": version["deprecated"] == true,
                "DeprecationWarning": version["deprecationWarning"],
            })
        })
        .collect();
    FieldError::invalid("spec.versions", shown, detail)
}

/// Returns the error of a rule in a schema.
fn of_rule(issue: DefinitionIssue) -> FieldError {
    let DefinitionIssue { path, problem, detail } = issue;
    match problem {
        DefinitionProblem::InvalidRule(rule) => {
            let field = |name: &str| match (&rule[name], name) {
                (Value::Null, "reason" | "optionalOldSelf") => "null".to_owned(),
                (Value::Null, _) => "\"\"".to_owned(),
                (value, _) => windlass_schema::go_json(value),
            };
            let names = ["rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf"];
            let fields: Vec<String> = names
                .iter()
                .map(|name| format!("\"{}{}\":{}", name[..1].to_ascii_uppercase(), &name[1..], field(name)))
                .collect();
            FieldError::invalid(path, rule.clone(), detail).showing(format!("{{{}}}", fields.join(",")))
        }
        DefinitionProblem::InvalidField(value) => FieldError::invalid(path, value, detail),
        DefinitionProblem::Forbidden => FieldError::forbidden(path, detail),
        DefinitionProblem::Internal => FieldError::internal(path, detail),
    }
}

/// Checks the contents of the versions: schemas, subresources, columns, selectable fields. The rules of a schema that
/// `old` has already are not checked again: the definition stays updatable when the checks become stricter.
pub(super) fn contents(spec: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let versions = list(spec, "versions");
    let old_versions = old.map_or(&[][..], |old| list(old, "versions"));
    let is_old = |schema: &Value| old_versions.iter().any(|old| old["schema"]["openAPIV3Schema"] == *schema);
    let mut errors = roots_with_status(versions);
    each(versions, "schema", "validation", &mut errors, |schema, path| {
        let is_nullable = schema["openAPIV3Schema"]["nullable"] == true;
        let field = format!("{path}.openAPIV3Schema.nullable");
        is_nullable
            .then(|| FieldError::forbidden(field, "nullable cannot be true at the root"))
            .into_iter()
            .collect()
    });
    each(versions, "schema", "validation", &mut errors, |schema, path| {
        let path = format!("{path}.openAPIV3Schema");
        match schema.get("openAPIV3Schema").filter(|schema| schema.is_object()) {
            Some(schema) => match windlass_schema::check_structural(schema, &path) {
                errors if errors.is_empty() && !is_old(schema) => {
                    windlass_cel::check_definition(schema, &path).into_iter().map(of_rule).collect()
                }
                errors => errors,
            },
            // A missing schema is never a schema that all versions share.
            None => Vec::new(),
        }
    });
    for (index, version) in versions.iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            errors.push(FieldError::required(format!("spec.versions[{index}].schema.openAPIV3Schema"), ""));
        }
    }
    for (index, version) in versions.iter().enumerate() {
        errors.extend(deprecation(version, &format!("spec.versions[{index}].deprecationWarning")));
    }
    each(versions, "subresources", "subresources", &mut errors, subresources);
    each(versions, "additionalPrinterColumns", "additionalPrinterColumns", &mut errors, columns);
    errors.extend(selectable_fields(versions, old_versions));
    errors
}

/// The keywords that the root of a schema may have if the status is a subresource, and the words of Go for these keywords.
const ROOT_KEYWORDS: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// Checks the roots of the schemas of versions with a status subresource. If all versions have one schema, the subresource of any
/// version counts.
fn roots_with_status(versions: &[Value]) -> Vec<FieldError> {
    let has_status = |version: &Value| version["subresources"]["status"].is_object();
    let root = |version: &Value, path: &str| root_with_status(&version["schema"]["openAPIV3Schema"], path);
    let Some((first, rest)) = versions.split_first() else { return Vec::new() };
    if rest.iter().all(|version| version["schema"] == first["schema"]) {
        let any = versions.iter().any(has_status);
        return any.then(|| root(first, "spec.validation.openAPIV3Schema")).flatten().into_iter().collect();
    }
    let with_status = versions.iter().enumerate().filter(|(_, version)| has_status(version));
    with_status
        .filter_map(|(index, version)| {
            root(version, &format!("spec.versions[{index}].schema.openAPIV3Schema"))
        })
        .collect()
}

/// Returns the first error of the root of a schema, in the order of the fields of Go's type.
fn root_with_status(schema: &Value, path: &str) -> Option<FieldError> {
    let enabled = "if the status subresource is enabled";
    // Go takes a flag that is false and an empty text for absent.
    let is_set = |name: &str, value: &Value| match value {
        Value::Null => false,
        Value::Bool(flag) => *flag || name.starts_with("additional"),
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    let mut set = schema.as_object()?.iter().filter(|(name, value)| is_set(name, value));
    let found = set.find(|(name, _)| ROOT_KEYWORDS.iter().all(|(known, _)| known != name));
    let comes_first = |name: &str| matches!(name, "id" | "$schema" | "$ref");
    let kind = text(schema, &["type"]);
    if !kind.is_empty() && kind != "object" && !found.is_some_and(|(name, _)| comes_first(name)) {
        let detail = format!("only \"object\" is allowed as the type at the root of the schema {enabled}");
        return Some(FieldError::invalid(format!("{path}.type"), kind, detail));
    }
    found?;
    let words: Vec<&str> = ROOT_KEYWORDS.iter().map(|(_, word)| *word).collect();
    let detail = format!("only [{}] fields are allowed at the root of the schema {enabled}", words.join(" "));
    Some(FieldError::invalid(path, schema.clone(), detail))
}

/// Checks the warning of a deprecated version.
fn deprecation(version: &Value, path: &str) -> Vec<FieldError> {
    let Some(warning) = version["deprecationWarning"].as_str() else { return Vec::new() };
    let mut reasons = Vec::new();
    if version["deprecated"] != true {
        reasons.push("can only be set for deprecated versions".to_owned());
        return because(path, warning, reasons);
    }
    if warning.len() > 256 {
        reasons.push("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        reasons.push("must not be an empty string".to_owned());
    }
    let is_unprintable =
        |(_, letter): &(usize, char)| *letter != ' ' && (letter.is_control() || letter.is_whitespace());
    if let Some((index, _)) = warning.char_indices().find(is_unprintable) {
        let what = "must only contain printable UTF-8 characters; non-printable character found at index";
        reasons.push(format!("{what} {index}"));
    }
    because(path, warning, reasons)
}

/// Checks a field of each version, or once under `shared` where all versions say the same.
fn each(
    versions: &[Value],
    field: &str,
    shared: &str,
    errors: &mut Vec<FieldError>,
    check: impl Fn(&Value, &str) -> Vec<FieldError>,
) {
    let Some((first, rest)) = versions.split_first() else { return };
    if rest.iter().all(|version| version[field] == first[field]) {
        errors.extend(check(&first[field], &format!("spec.{shared}")));
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        errors.extend(check(&version[field], &format!("spec.versions[{index}].{field}")));
    }
}

fn subresources(subresources: &Value, path: &str) -> Vec<FieldError> {
    let Some(scale) = subresources.get("scale").filter(|scale| scale.is_object()) else { return Vec::new() };
    let path = format!("{path}.scale");
    let mut errors = replicas_path(scale, &path, "specReplicasPath", ".spec");
    errors.extend(replicas_path(scale, &path, "statusReplicasPath", ".status"));
    let selector = text(scale, &["labelSelectorPath"]);
    if !selector.is_empty() {
        let path = format!("{path}.labelSelectorPath");
        let simple = simple_path(&path, selector);
        if simple.is_empty() && !selector.starts_with(".spec.") && !selector.starts_with(".status.") {
            let detail = "should be a json path under either .spec or .status";
            errors.push(FieldError::invalid(path, selector, detail));
        }
        errors.extend(simple);
    }
    errors
}

fn replicas_path(scale: &Value, path: &str, field: &str, under: &str) -> Vec<FieldError> {
    let (path, given) = (format!("{path}.{field}"), text(scale, &[field]));
    if given.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let errors = simple_path(&path, given);
    if errors.is_empty() && !given.starts_with(&format!("{under}.")) {
        return vec![FieldError::invalid(path, given, format!("should be a json path under {under}"))];
    }
    errors
}

/// Checks that a path consists of field names only.
pub(super) fn simple_path(path: &str, given: &str) -> Vec<FieldError> {
    if !given.starts_with('.') {
        return vec![FieldError::invalid(path, given, "must be a simple json path starting with .")];
    }
    Vec::new()
}

/// The most selectable fields of a version.
const MAX_SELECTABLE_FIELDS: usize = 8;

/// Checks the selectable fields of the versions. An old version may have had too many fields.
fn selectable_fields(versions: &[Value], old_versions: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let is_shared = |field: &str| versions.iter().all(|version| version[field] == versions[0][field]);
    if versions.len() > 1 && is_shared("selectableFields") && !is_shared("schema") {
        // kube-apiserver moves the fields of all versions out of the versions, and then has no schema to
        // check.
        if !list(&versions[0], "selectableFields").is_empty() {
            let detail = "may only be set when validations.schema is included";
            errors.push(FieldError::invalid("spec.selectableFields", "", detail));
        }
        return errors;
    }
    let has_none =
        |version: &Value| version["schema"]["openAPIV3Schema"].is_null() && version["schema"].is_null();
    if is_shared("selectableFields") && is_shared("schema") && versions.iter().all(has_none) {
        if versions.first().is_some_and(|version| !list(version, "selectableFields").is_empty()) {
            let detail = "may only be set when validations.schema is included";
            errors.push(FieldError::invalid("spec.selectableFields", "", detail));
        }
        return errors;
    }
    each(&with_both(versions), "both", "selectableFields", &mut errors, |both, path| {
        // Named by version, the field is the single list, not the pair.
        let path = path.replace(".both", ".selectableFields");
        let schema = &both["schema"]["openAPIV3Schema"];
        let fields = list(both, "selectableFields");
        if schema.is_null() && !fields.is_empty() {
            let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
            return vec![FieldError::invalid(path, "", detail)];
        }
        let is_old = old_versions.iter().any(|old| list(old, "selectableFields") == fields);
        selectable_fields_of(schema, fields, &path, is_old)
    });
    errors
}

fn with_both(versions: &[Value]) -> Vec<Value> {
    let both = |version: &Value| json!({ "both": { "schema": version["schema"], "selectableFields": version["selectableFields"] } });
    versions.iter().map(both).collect()
}

fn selectable_fields_of(schema: &Value, fields: &[Value], path: &str, is_old: bool) -> Vec<FieldError> {
    const KINDS: &str = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let (path, given) = (format!("{path}[{index}].jsonPath"), text(field, &["jsonPath"]));
        let mut refuse = |why: String| errors.push(FieldError::invalid(&path, given, why));
        if given.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        let found = match windlass_cel::resolve_field_path(given, schema) {
            Ok(found) => found,
            Err(why) => {
                refuse(format!("is an invalid path: {why}"));
                continue;
            }
        };
        if found.text.split(['.', '[']).next() == Some("metadata") {
            refuse("must not point to fields in metadata".to_owned());
        }
        if !matches!(text(found.schema, &["type"]), "string" | "boolean" | "integer") {
            refuse(KINDS.to_owned());
        }
        if !seen.insert(found.text) {
            errors.push(FieldError::duplicate(path, given));
        }
    }
    if seen.len() > MAX_SELECTABLE_FIELDS && !is_old {
        errors.push(FieldError::too_many(path, seen.len(), MAX_SELECTABLE_FIELDS));
    }
    errors
}
