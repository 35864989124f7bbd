//! The warnings about the expressions of a policy.

use k8s_openapi::api::admissionregistration::v1::{ExpressionWarning, ValidatingAdmissionPolicySpec};
use windlass_cel::Type;
use windlass_cel::admission::{Compiler, Declarations};

use super::kinds::{Kind, Kinds};

/// Returns the warnings about the expressions of validations and messages, for each kind of objects.
pub(super) fn warnings(spec: &ValidatingAdmissionPolicySpec, kinds: &Kinds) -> Vec<ExpressionWarning> {
    let checks: Vec<Check<'_>> = kinds.objects.iter().map(|kind| Check::new(spec, kind, kinds)).collect();
    let mut warnings = Vec::new();
    for (index, validation) in spec.validations.iter().flatten().enumerate() {
        let message = validation.message_expression.as_deref().unwrap_or_default();
        for (field, expression) in [("expression", &*validation.expression), ("messageExpression", message)] {
            if field == "messageExpression" && expression.is_empty() {
                continue;
            }
            let found: Vec<String> = checks.iter().filter_map(|check| check.warning(expression)).collect();
            if !found.is_empty() {
                warnings.push(ExpressionWarning {
                    field_ref: format!("spec.validations[{index}].{field}"),
                    warning: found.join("\n"),
                });
            }
        }
    }
    warnings
}

/// A check of expressions for a kind of objects.
struct Check<'a> {
    kind: &'a Kind,
    compiler: Compiler,
    with: Declarations,
}

impl<'a> Check<'a> {
    fn new(spec: &ValidatingAdmissionPolicySpec, kind: &'a Kind, kinds: &Kinds) -> Self {
        let params = kinds.params.clone();
        let with = Declarations { params: params.is_some(), authorizer: true, patches: false };
        let mut compiler = Compiler::of_types(kind.of.clone(), params.unwrap_or(Type::Dyn));
        for variable in spec.variables.iter().flatten() {
            // A variable that does not compile has no type.
            let _ = compiler.add_variable(&variable.name, &variable.expression, with);
        }
        Self { kind, compiler, with }
    }

    fn warning(&self, expression: &str) -> Option<String> {
        let issues = self.compiler.check(expression, self.with).err()?;
        let Kind { group, version, name, .. } = self.kind;
        Some(format!("{group}/{version}, Kind={name}: {issues}\n"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use windlass_cel::Schema;

    use super::*;

    fn kind(name: &str, schema: &Value) -> Kind {
        let of = Type::of_schema(&Schema::compile(schema, true), name);
        Kind { group: "apps".to_owned(), version: "v1".to_owned(), name: name.to_owned(), of }
    }

    #[test]
    fn warnings_name_the_field_and_the_kind() {
        let spec = json!({"type": "object", "properties": {
            "replicas": {"type": "integer"}, "paused": {"type": "boolean"},
        }});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let kinds = Kinds { objects: vec![kind("Deployment", &schema)], params: None };
        let spec: ValidatingAdmissionPolicySpec = serde_json::from_value(json!({
            "variables": [{"name": "replicas", "expression": "object.spec.replicas"}],
            "validations": [
                {"expression": "object.spec.replicas > 1"},
                {"expression": "variables.replicas > '1'", "messageExpression": "'a' + object.spec.replicas"},
                {"expression": "object.spec.size < 10"},
            ],
        }))
        .unwrap();
        let warnings = warnings(&spec, &kinds);
        let fields: Vec<&str> = warnings.iter().map(|warning| warning.field_ref.as_str()).collect();
        assert_eq!(
            fields,
            [
                "spec.validations[1].expression",
                "spec.validations[1].messageExpression",
                "spec.validations[2].expression"
            ]
        );
        assert_eq!(
            warnings[0].warning,
            "apps/v1, Kind=Deployment: ERROR: <input>:1:20: found no matching overload for '_>_' applied to \
             '(int, string)'\n | variables.replicas > '1'\n | ...................^\n"
        );
        assert!(
            warnings[1].warning.contains("found no matching overload for '_+_' applied to '(string, int)'")
        );
        assert!(warnings[2].warning.contains("undefined field 'size'"));
    }
}
