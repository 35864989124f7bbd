//! Validation of admission policies.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_cel::admission::{Compiler, Declarations, Output};
use windlass_schema::FieldError;

use super::expression::{self, compile};
use super::resources::{match_constraints, mutating_operations};
use crate::field::{self, Errors, Field};
use windlass_store::object_meta as meta;
use windlass_wire::names;

const MAX_AUDIT_ANNOTATIONS: usize = 20;
/// The length of the longest expression of an audit annotation, in bytes.
const MAX_VALUE_EXPRESSION: usize = 5 * 1024;
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// Validates a ValidatingAdmissionPolicy. `old` is the policy before an update.
pub(super) fn validating(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let keeps_conditions = old.is_some_and(|old| keeps_conditions(object, old));
    let name = meta::name(object);
    field::validate("spec", object.get("spec").unwrap_or(&Value::Null), |spec, errors| {
        let with = common(spec, errors);
        conditions(spec, with, keeps_conditions, errors);
        let mut compiler =
            if spec.at("variables").is_empty() { Compiler::new() } else { Compiler::with_variables() };
        expression::variables(&spec.at("variables"), &mut compiler, with, errors);
        let (validations, annotations) = (spec.at("validations"), spec.at("auditAnnotations"));
        if validations.is_empty() && annotations.is_empty() {
            let detail = "validations or auditAnnotations must contain at least one item";
            errors.push(validations.required(detail));
            errors.push(annotations.required(detail));
            return;
        }
        for validation in validations.items() {
            validate_validation(&validation, &compiler, with, errors);
        }
        validate_annotations(&annotations, name, &compiler, with, errors);
    })
}

/// Validates a MutatingAdmissionPolicy. `old` is the policy before an update.
pub(super) fn mutating(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let keeps_conditions = old.is_some_and(|old| keeps_conditions(object, old));
    field::validate("spec", object.get("spec").unwrap_or(&Value::Null), |spec, errors| {
        let with = common(spec, errors);
        let constraints = spec.at("matchConstraints");
        mutating_operations(&constraints, errors);
        conditions(spec, with, keeps_conditions, errors);
        let mut compiler = Compiler::with_variables();
        expression::variables(&spec.at("variables"), &mut compiler, with, errors);
        let mutations = spec.at("mutations");
        if mutations.is_empty() {
            errors.push(mutations.required("mutations must contain at least one item"));
        }
        let with = Declarations { patches: true, ..with };
        for mutation in mutations.items() {
            validate_mutation(&mutation, &compiler, with, errors);
        }
        spec.at("reinvocationPolicy").require_one_of(&["IfNeeded", "Never"], errors);
    })
}

/// Returns whether an update changes neither the match conditions nor the variables that the conditions can use.
fn keeps_conditions(object: &Value, old: &Value) -> bool {
    ["paramKind", "matchConditions"].iter().all(|field| object["spec"][field] == old["spec"][field])
}

/// Validates the fields that both kinds of policies have. Returns the variables of the expressions.
fn common(spec: &Field<'_>, errors: &mut Errors) -> Declarations {
    let failure_policy = spec.at("failurePolicy");
    if failure_policy.is_set() {
        failure_policy.one_of(&["Fail", "Ignore"], errors);
    } else {
        errors.push(failure_policy.required(""));
    }
    let param_kind = spec.at("paramKind");
    let with = Declarations { params: param_kind.is_set(), authorizer: true, patches: false };
    if with.params {
        validate_param_kind(&param_kind, errors);
    }
    match_constraints(&spec.at("matchConstraints"), errors);
    with
}

/// Validates the match conditions, unless an update keeps the conditions.
fn conditions(spec: &Field<'_>, with: Declarations, keeps_conditions: bool, errors: &mut Errors) {
    if !keeps_conditions {
        expression::match_conditions(&spec.at("matchConditions"), with.params, errors);
    }
}

fn validate_param_kind(param_kind: &Field<'_>, errors: &mut Errors) {
    let (version, kind) = (param_kind.at("apiVersion"), param_kind.at("kind"));
    let text = version.text();
    let (group, name) = text.split_once('/').unwrap_or(("", text));
    if text.is_empty() {
        errors.push(version.required(""));
    } else if name.contains('/') {
        errors.push(version.invalid(format!("unexpected GroupVersion string: {text}")));
    } else {
        let mut join = |value: &str, problems: Vec<String>| {
            if !problems.is_empty() {
                errors.push(version.invalid_as(value, problems.join(",")));
            }
        };
        if !group.is_empty() {
            join(group, names::dns_1123_subdomain(group));
        }
        if name.is_empty() {
            join(text, vec!["version must be specified".to_owned()]);
        } else {
            join(name, names::dns_1035_label(name));
        }
    }
    if kind.require(errors) {
        return;
    }
    let problems = names::dns_1035_label(&kind.text().to_lowercase());
    if !problems.is_empty() {
        let problems = problems.join(",");
        errors.push(kind.invalid(format!("may have mixed case, but should otherwise match: {problems}")));
    }
}

fn validate_validation(validation: &Field<'_>, compiler: &Compiler, with: Declarations, errors: &mut Errors) {
    let (expression, computed) = (validation.at("expression"), validation.at("messageExpression"));
    if expression.text().trim().is_empty() {
        errors.push(expression.required("expression is not specified"));
    } else {
        compile(compiler, &expression, expression.text(), Output::Bool, with, errors);
    }
    if !computed.text().trim().is_empty() {
        let with = Declarations { authorizer: false, ..with };
        compile(compiler, &computed, computed.text(), Output::Text, with, errors);
    } else if !computed.text().is_empty() {
        errors.push(computed.invalid("must be non-empty if specified"));
    }
    let message = validation.at("message");
    let text = message.text().trim();
    if text.is_empty() && !message.text().is_empty() {
        errors.push(message.invalid("must be non-empty if specified"));
    } else if text.contains(['\n', '\r']) {
        errors.push(message.invalid("must not contain line breaks"));
    }
    validation.at("reason").one_of(&REASONS, errors);
}

fn validate_annotations(
    annotations: &Field<'_>,
    policy: &str,
    compiler: &Compiler,
    with: Declarations,
    errors: &mut Errors,
) {
    if annotations.len() > MAX_AUDIT_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        errors.push(annotations.invalid(detail));
    }
    let mut seen = BTreeSet::new();
    for annotation in annotations.items() {
        let (key, value) = (annotation.at("key"), annotation.at("valueExpression"));
        if policy.is_empty() {
            errors.push(key.invalid("requires metadata.name be non-empty"));
        } else {
            let name = format!("{policy}/{}", key.text());
            let problems = names::label_key(&name);
            errors.extend(problems.into_iter().map(|problem| key.invalid_as(name.as_str(), problem)));
        }
        let source = value.text().trim();
        if source.is_empty() {
            errors.push(value.required("valueExpression is not specified"));
        } else if source.len() > MAX_VALUE_EXPRESSION {
            let detail = format!("must not exceed {MAX_VALUE_EXPRESSION} bytes in length");
            errors.push(value.required(detail));
        } else if let Some(error) = compiler.compile(source, Output::TextOrNull, with).error() {
            errors.push(value.invalid(error));
        }
        if !seen.insert(key.text()) {
            errors.push(key.duplicate());
        }
    }
}

fn validate_mutation(mutation: &Field<'_>, compiler: &Compiler, with: Declarations, errors: &mut Errors) {
    const TYPES: [&str; 2] = ["ApplyConfiguration", "JSONPatch"];
    let (kind, configuration) = (mutation.at("patchType"), mutation.at("applyConfiguration"));
    let operations = mutation.at("jsonPatch");
    let (wanted, other, name, output) = match kind.text() {
        "" => return errors.push(kind.required("")),
        "JSONPatch" => (&operations, &configuration, "applyConfiguration", Output::Operations),
        "ApplyConfiguration" => (&configuration, &operations, "jsonPatch", Output::Configuration),
        _ => return errors.push(kind.unsupported(&TYPES)),
    };
    let kind = kind.text();
    if wanted.is_set() {
        let expression = wanted.at("expression");
        let source = expression.text().trim();
        if source.is_empty() {
            errors.push(expression.required(""));
        } else {
            compile(compiler, &expression, source, output, with, errors);
        }
    } else {
        errors.push(wanted.required(format!("must be specified when patchType is {kind}")));
    }
    if other.is_set() {
        let detail = format!("must not be specified when patchType is {kind}");
        errors.push(other.invalid_as(format!("{{{name}}}"), detail));
    }
}
