//! The lines about a request: the steps of the policies, the changes of the object, and the reply.

use k8s_openapi::api::admissionregistration::v1::ExpressionWarning;
use serde_json::Value;
use windlass_apiserver::{PolicyPart, PolicyStep};

use super::request::Reply;
use super::{Files, kind, name};
use crate::output::Output;

/// The fields that each request changes.
const VOLATILE: [&str; 4] = ["creationTimestamp", "managedFields", "resourceVersion", "uid"];

/// Prints the steps, with a heading for each policy, binding and parameter.
pub(super) fn steps(files: &Files, steps: &[PolicyStep], out: &mut Output) {
    let mut last = String::new();
    for step in steps {
        let heading = heading(step);
        if heading != last {
            out.line(format_args!("  {heading}"));
            last = heading;
        }
        out.line(format_args!("    {}", line(files.policy(step.kind, &step.policy), step)));
    }
}

fn heading(step: &PolicyStep) -> String {
    let with =
        |word: &str, text: &str| if text.is_empty() { String::new() } else { format!(", {word} {text}") };
    let PolicyStep { kind, policy, binding, params, .. } = step;
    format!("{kind} {policy}{}{}", with("binding", binding), with("params", params))
}

fn line(policy: Option<&Value>, step: &PolicyStep) -> String {
    let spec = policy.map_or(&Value::Null, |policy| &policy["spec"]);
    let (part, expression) = match &step.part {
        PolicyPart::Match => {
            let (Ok(why) | Err(why)) = &step.result;
            return why.clone();
        }
        PolicyPart::Condition(condition) => {
            let all = spec["matchConditions"].as_array();
            let found = all.into_iter().flatten().find(|other| other["name"] == condition.as_str());
            (format!("match condition {condition}"), found.map(|found| &found["expression"]))
        }
        PolicyPart::Validation(index) => {
            (format!("validation {}", index + 1), Some(&spec["validations"][index]["expression"]))
        }
        PolicyPart::Message(index) => (
            format!("message of validation {}", index + 1),
            Some(&spec["validations"][index]["messageExpression"]),
        ),
        PolicyPart::Annotation(key) => {
            let all = spec["auditAnnotations"].as_array();
            let found = all.into_iter().flatten().find(|other| other["key"] == key.as_str());
            (format!("audit annotation {key}"), found.map(|found| &found["valueExpression"]))
        }
        PolicyPart::Mutation(index) => {
            let mutation = &spec["mutations"][index];
            let of_kind = ["applyConfiguration", "jsonPatch"].map(|field| &mutation[field]["expression"]);
            (format!("mutation {}", index + 1), of_kind.into_iter().find(|expression| expression.is_string()))
        }
    };
    let result = match &step.result {
        Ok(value) => value.clone(),
        Err(error) => format!("error: {error}"),
    };
    let expression = expression.and_then(Value::as_str).unwrap_or_default();
    let expression = expression.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{part}: {result} (cost {}): {expression}", step.cost)
}

/// Prints a warning about the types in an expression of a policy.
pub(super) fn type_warning(policy: &str, warning: &ExpressionWarning, out: &mut Output) {
    out.line(format_args!("{policy}: warning: {}:", warning.field_ref));
    for line in warning.warning.lines().filter(|line| !line.is_empty()) {
        out.line(format_args!("  {line}"));
    }
}

/// Prints the changes of the object by policies, the warnings and the result. `before` is the object without policies.
pub(super) fn reply(before: &Value, reply: &Reply, out: &mut Output) {
    for warning in reply.warnings() {
        out.line(format_args!("  warning: {warning}"));
    }
    match reply {
        Reply::Refused { .. } => out.line(format_args!("  denied: {}", reply.refusal())),
        Reply::Admitted { object, .. } => {
            for change in changes(before, object) {
                out.line(format_args!("  {change}"));
            }
            out.line("  admitted");
        }
    }
}

/// Returns the lines of YAML that policies removed and added.
fn changes(before: &Value, after: &Value) -> Vec<String> {
    let (mut before, mut after) = (stable(before), stable(after));
    if before["metadata"]["generateName"].is_string() {
        // The server generates another name for each request.
        for object in [&mut before, &mut after] {
            object["metadata"]["name"].take();
        }
    }
    if before == after || kind(&before) != kind(&after) || name(&before) != name(&after) {
        return Vec::new();
    }
    let yaml = |object: &Value| serde_saphyr::to_string(object).unwrap_or_default();
    let (before, after) = (yaml(&before), yaml(&after));
    let patch = diffy::create_patch(&before, &after).to_string();
    patch.lines().skip(2).map(str::to_owned).collect()
}

fn stable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| !VOLATILE.contains(&field.as_str()));
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_changes_of_an_object_with_a_generated_name_are_shown() {
        let object = |name: &str, data: Value| json!({"kind": "ConfigMap", "metadata": {"generateName": "a-", "name": name}, "data": data});
        let changed = changes(&object("a-1", json!({"x": "1"})), &object("a-2", json!({"x": "2"})));
        assert!(changed.iter().any(|line| line.starts_with('+') && line.contains('2')), "{changed:?}");
        assert!(changed.iter().all(|line| !line.contains("a-2")), "{changed:?}");
        assert!(changes(&object("a-1", Value::Null), &object("a-2", Value::Null)).is_empty());
    }
}
