//! The text of the types.

use std::fmt::Write as _;

use serde_json::Value;

use super::model::{Body, Field, Kind, Model, OTHER_FIELDS, Type, Variant};
use super::{Options, shared};

/// The keywords that are left out of the schema of elements: descriptions, and keywords without an effect on
/// types.
const LEFT_OUT: &[&str] = &[
    "allOf",
    "anyOf",
    "description",
    "example",
    "externalDocs",
    "not",
    "oneOf",
    "title",
    "x-kubernetes-validations",
];

/// The width of documentation.
const WIDTH: usize = 100;

/// Returns the file of a version.
pub(super) fn render_version(model: &Model<'_>, options: &Options) -> String {
    let mut text = render("Types of custom resources.", &model.types, options);
    if model.uses_shared {
        let _ = writeln!(text, "\n// What other versions have, too.\npub use super::{}::*;", shared::MODULE);
    }
    text
}

/// Returns the file of the types that several versions have.
pub(super) fn render_shared(types: &[Type], options: &Options) -> String {
    render("Types that several versions have.", types, options)
}

fn render(title: &str, types: &[Type], options: &Options) -> String {
    let body: String = types.iter().map(|made| declare(made, options)).collect();
    let mut text = format!("//! {title}\n")
        + "\
                    #![allow(missing_docs, rustdoc::all, clippy::all, clippy::pedantic, reason = \"the words and names of the CRDs\")]\n\n";
    let uses = |name: &str| body.contains(name);
    if uses("BTreeMap<") {
        text += "use std::collections::BTreeMap;\n\n";
    }
    let leaves = [
        ("Condition", "apis::meta::v1::Condition"),
        ("ObjectMeta", "apis::meta::v1::ObjectMeta"),
        ("Time", "apis::meta::v1::Time"),
        ("IntOrString", "util::intstr::IntOrString"),
        ("Quantity", "api::resource::Quantity"),
    ];
    for (_, path) in leaves.iter().filter(|(name, _)| uses_type(&body, name)) {
        let _ = writeln!(text, "use k8s_openapi::apimachinery::pkg::{path};");
    }
    if uses("#[derive(CustomResource,") {
        text += "use kube::CustomResource;\n";
    }
    text += "use schemars::JsonSchema;\nuse serde::{Deserialize, Serialize};\n";
    if uses_type(&body, "Value") {
        text += "use serde_json::Value;\n";
    }
    text + &body
}

/// Returns whether the text has a field of a type, or of a list or map of the type.
fn uses_type(text: &str, name: &str) -> bool {
    [format!(": {name},"), format!("<{name}>"), format!(", {name}>")].iter().any(|form| text.contains(form))
}

fn declare(made: &Type, options: &Options) -> String {
    let mut text = "\n".to_owned() + &doc(&made.doc, "");
    let rules = made.part.as_ref().map(rules_of_part).unwrap_or_default();
    match &made.body {
        Body::Enum(variants) => {
            text +=
                &derives("Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema", options);
            let _ = writeln!(text, "pub enum {} {{", made.name);
            variants.iter().for_each(|variant| text += &declare_variant(variant));
        }
        Body::Struct { fields, is_open } => {
            let default = if fields.iter().all(Field::has_default) { ", Default" } else { "" };
            let list = format!("Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema{default}");
            text += &derives(&list, options);
            text += &rules;
            let _ = writeln!(text, "pub struct {} {{", made.name);
            declare_fields(&mut text, fields, *is_open);
        }
        Body::Spec { kind, fields, is_open } => {
            let default = if kind.is_default { ", Default" } else { "" };
            let list = format!("Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema{default}");
            if kind.is_derived {
                text += &derives(&format!("CustomResource, {list}"), options);
                text += &attributes(kind);
            } else {
                text += &derives(&list, options);
                if options.apply.is_some() {
                    text += &kind_of_spec(kind);
                }
            }
            text += &rules;
            let _ = writeln!(text, "pub struct {} {{", made.name);
            declare_fields(&mut text, fields, *is_open);
        }
        Body::Object { kind, fields, is_open } => {
            text += "#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]\n";
            let _ = writeln!(text, "pub struct {} {{", made.name);
            text += "    #[serde(rename = \"apiVersion\")]\n    pub api_version: String,\n    pub kind: String,\n    #[serde(default)]\n    pub metadata: ObjectMeta,\n";
            declare_fields(&mut text, fields, *is_open);
            text += "}\n";
            return text + &constructor(&made.name, kind, fields, *is_open) + &resource(&made.name, kind);
        }
    }
    text + "}\n"
}

/// Returns the derive macros, with `ApplyConfiguration` if the options ask for the macro.
fn derives(list: &str, options: &Options) -> String {
    match &options.apply {
        None => format!("#[derive({list})]\n"),
        Some(apply) => {
            format!("#[derive({list}, {apply}::ApplyConfiguration)]\n#[apply(crate = \"{apply}\")]\n")
        }
    }
}

fn declare_variant(variant: &Variant) -> String {
    let rename = if variant.value == variant.name {
        String::new()
    } else {
        format!("    #[serde(rename = {:?})]\n", variant.value)
    };
    format!("{rename}    {},\n", variant.name)
}

fn declare_fields(text: &mut String, fields: &[Field], is_open: bool) {
    for field in fields {
        *text += &doc(&field.doc, "    ");
        let mut serde = Vec::new();
        if field.name != field.rust_name {
            serde.push(format!("rename = {:?}", field.name));
        }
        if field.optional && !field.required {
            serde.push("default".to_owned());
            serde.push("skip_serializing_if = \"Option::is_none\"".to_owned());
        }
        if !serde.is_empty() {
            let _ = writeln!(text, "    #[serde({})]", serde.join(", "));
        }
        *text += &rules(field);
        let rust_type =
            if field.optional { format!("Option<{}>", field.rust_type) } else { field.rust_type.clone() };
        let _ = writeln!(text, "    pub {}: {rust_type},", field.rust_name);
    }
    if is_open {
        *text += "    /// Fields that the schema does not name.\n    #[serde(flatten)]\n";
        let _ = writeln!(text, "    pub {OTHER_FIELDS}: BTreeMap<String, Value>,");
    }
}

/// Returns the attributes of a field beside the type: limits, patterns, and the merging of lists and maps.
fn rules(field: &Field) -> String {
    let mut extensions = extensions(&field.schema);
    if field.rust_type == "String" && field.schema["format"].is_string() {
        extensions.insert(0, format!("\"format\" = {}", literal(&field.schema["format"])));
    }
    let is_number = ["i32", "i64", "f64"].contains(&field.rust_type.as_str());
    if is_number && field.schema["enum"].is_array() {
        extensions.push(format!("\"enum\" = {}", literal(&field.schema["enum"])));
    }
    if field.rust_type == "Value" && field.schema["x-kubernetes-preserve-unknown-fields"].is_null() {
        extensions.push("\"x-kubernetes-preserve-unknown-fields\" = true".to_owned());
    }
    if let Some((name, elements)) = elements(&field.schema) {
        extensions.push(format!("{name:?} = serde_json::json!({})", literal(&elements)));
    }
    if field.required && field.optional {
        // Without the attribute, a field of type `Option` is not required.
        extensions.push("\"nullable\" = true".to_owned());
        return format!("    #[schemars(required, extend({}))]\n", extensions.join(", "));
    }
    attribute("    ", &extensions)
}

/// Returns the schema of the elements of a list or map, if the schema has more rules than the Rust type.
///
/// An attribute belongs to a field and therefore repeats the schema of the elements. Elements with named
/// types are not repeated.
fn elements(schema: &Value) -> Option<(&'static str, Value)> {
    let name = ["items", "additionalProperties"].into_iter().find(|name| schema[*name].is_object())?;
    let elements = &schema[name];
    let is_leaf = elements["properties"].is_null()
        && elements["items"].is_null()
        && !elements["additionalProperties"].is_object()
        && elements["enum"].is_null();
    let mut limits = elements.as_object()?.clone();
    limits.retain(|name, value| !value.is_null() && !LEFT_OUT.contains(&name.as_str()));
    let is_of_type = |(name, value): (&String, &Value)| match name.as_str() {
        "type" | "x-kubernetes-int-or-string" => true,
        "format" => elements["type"] != "string" || value == "date-time",
        _ => false,
    };
    let says_more = !limits.iter().all(is_of_type);
    (is_leaf && says_more).then_some((name, Value::Object(limits)))
}

/// Returns the attributes with the rules of a spec or a status.
fn rules_of_part(schema: &Value) -> String {
    let mut extensions = extensions(schema);
    // The field for all other members implies this extension.
    extensions.retain(|extension| !extension.starts_with("\"x-kubernetes-preserve-unknown-fields\""));
    attribute("", &extensions)
}

fn attribute(indent: &str, extensions: &[String]) -> String {
    if extensions.is_empty() {
        return String::new();
    }
    format!("{indent}#[schemars(extend({}))]\n", extensions.join(", "))
}

fn extensions(schema: &Value) -> Vec<String> {
    let copied = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "pattern",
        "default",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-validations",
    ];
    let is_plain = |value: &Value| !value.is_object() && !value.is_null();
    // The macro takes literals; validations are lists of objects.
    let is_literal =
        |value: &Value| is_plain(value) && value.as_array().is_none_or(|items| items.iter().all(is_plain));
    let present = copied.into_iter().map(|name| (name, &schema[name]));
    present
        .filter(|(_, value)| is_literal(value))
        .map(|(name, value)| format!("{name:?} = {}", literal(value)))
        .collect()
}

fn literal(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name:?}: {}", literal(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => format!("{text:?}"),
        // Without a suffix, the compiler takes an integer for an i32.
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(small), _) if i32::try_from(small).is_ok() => small.to_string(),
            (Some(large), _) => format!("{large}_i64"),
            (None, Some(huge)) => format!("{huge}_u64"),
            (None, None) => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// Returns the attributes of kube's derive macro.
fn attributes(kind: &Kind) -> String {
    let (spec, version) = (&kind.definition.spec, &kind.version);
    let names = &spec.names;
    let mut text = format!(
        "#[kube(group = {:?}, version = {:?}, kind = {:?}, plural = {:?}, singular = {:?}",
        spec.group,
        version.name,
        names.kind,
        names.plural,
        kind.definition.singular()
    );
    if kind.definition.is_namespaced() {
        text += ", namespaced";
    }
    if let Some(status) = &kind.status {
        let _ = write!(text, ", status = {status:?}");
    }
    for name in &names.short_names {
        let _ = write!(text, ", shortname = {name:?}");
    }
    for name in &names.categories {
        let _ = write!(text, ", category = {name:?}");
    }
    if version.deprecated {
        text += ", deprecated";
    }
    text += ", derive = \"PartialEq\"";
    if kind.is_default {
        text += ", derive = \"Default\"";
    }
    text += ")]\n";
    for column in &version.additional_printer_columns {
        let _ = writeln!(text, "#[kube(printcolumn = {:?})]", column.to_string());
    }
    text
}

/// Returns the attribute with the kind of a spec, for the configuration of the kind.
fn kind_of_spec(kind: &Kind) -> String {
    let mut text = format!("#[apply(kind = {:?}", kind.definition.spec.names.kind);
    if kind.definition.is_namespaced() {
        text += ", namespaced";
    }
    if let Some(status) = &kind.status {
        let _ = write!(text, ", status = {status:?}");
    }
    text + ")]\n"
}

/// Returns the function that makes an object with a spec, as kube's derive macro does.
fn constructor(name: &str, kind: &Kind, fields: &[Field], is_open: bool) -> String {
    let Some(spec) = fields.iter().find(|field| field.name == "spec") else { return String::new() };
    if fields.iter().any(|field| field.name != "spec" && !field.optional) {
        return String::new();
    }
    let api_version = format!("{}/{}", kind.definition.spec.group, kind.version.name);
    let values = fields.iter().map(|field| match (field.name == "spec", field.optional) {
        (true, true) => format!(", {}: Some(spec)", field.rust_name),
        (true, false) => format!(", {}: spec", field.rust_name),
        _ => format!(", {}: None", field.rust_name),
    });
    let values = values.collect::<String>() + if is_open { ", other_fields: BTreeMap::new()" } else { "" };
    format!(
        "\nimpl {name} {{\n    /// Makes an object with a name and a spec.\n    pub fn new(name: &str, spec: {}) -> Self {{\n        \
         let metadata = ObjectMeta {{ name: Some(name.to_owned()), ..ObjectMeta::default() }};\n        \
         Self {{ api_version: {api_version:?}.to_owned(), kind: {:?}.to_owned(), metadata{values} }}\n    }}\n}}\n",
        spec.rust_type, kind.definition.spec.names.kind
    )
}

/// Returns the trait of objects, for a kind that kube's derive macro cannot make.
fn resource(name: &str, kind: &Kind) -> String {
    let (spec, version) = (&kind.definition.spec, &kind.version.name);
    let scope =
        if kind.definition.is_namespaced() { "NamespaceResourceScope" } else { "ClusterResourceScope" };
    let (group, plural, kind) = (&spec.group, &spec.names.plural, &spec.names.kind);
    format!(
        "\nimpl kube::Resource for {name} {{\n    type DynamicType = ();\n    type Scope = k8s_openapi::{scope};\n\n    fn kind(_: &()) -> \
         std::borrow::Cow<'_, str> {{\n        {kind:?}.into()\n    }}\n\n    fn group(_: &()) -> std::borrow::Cow<'_, str> {{\n        \
         {group:?}.into()\n    }}\n\n    fn version(_: &()) -> std::borrow::Cow<'_, str> {{\n        {version:?}.into()\n    }}\n\n    fn \
         plural(_: &()) -> std::borrow::Cow<'_, str> {{\n        {plural:?}.into()\n    }}\n\n    fn meta(&self) -> &ObjectMeta \
         {{\n        &self.metadata\n    }}\n\n    fn meta_mut(&mut self) -> &mut ObjectMeta {{\n        &mut self.metadata\n    }}\n}}\n"
    )
}

/// Returns lines of documentation. Indentation and fences are removed: the text never contains code.
fn doc(text: &str, indent: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let line = line.trim().replace("```", "'''");
        if line.is_empty() {
            let _ = writeln!(out, "{indent}///");
            continue;
        }
        let mut current = String::new();
        for word in line.split_whitespace() {
            if !current.is_empty() && current.chars().count() + word.chars().count() >= WIDTH {
                let _ = writeln!(out, "{indent}/// {current}");
                current.clear();
            }
            if !current.is_empty() {
                current.push(' ');
            }
            current += word;
        }
        let _ = writeln!(out, "{indent}/// {current}");
    }
    out
}
