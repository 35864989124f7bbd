//! The validation of policies and bindings when they are written.

use expect_test::expect;
use serde_json::{Value, json};

use super::{GROUP, merge};
use crate::harness::{Api, MERGE_PATCH, Reply, lines, plain};

fn rules() -> Value {
    json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}])
}

/// Returns the causes of a refusal, a line for each.
fn causes(case: &str, reply: &Reply, id: &str) -> Vec<String> {
    let causes = reply.at("/details/causes").as_array().cloned().unwrap_or_default();
    let causes = causes.iter().map(|cause| {
        let text = |field: &str| cause[field].as_str().unwrap_or_default().to_owned();
        plain(&format!("  {} {}", text("field"), text("message")), id).replace('\n', "\n    ")
    });
    let mut seen: Vec<String> = causes.collect();
    seen.sort();
    std::iter::once(format!("{case}: {}", reply.code)).chain(seen).collect()
}

async fn refuse(api: &Api, plural: &str, base: Value, cases: Vec<(&str, Value)>) -> String {
    let mut seen = Vec::new();
    for (case, odd) in cases {
        let mut spec = base.clone();
        merge(&mut spec, odd);
        let body = json!({"metadata": {"name": format!("{}-odd", api.id)}, "spec": spec});
        let reply = api.post(&format!("{GROUP}/{plural}?dryRun=All"), body).await;
        seen.extend(causes(case, &reply, &api.id));
    }
    lines(&seen)
}

#[tokio::test]
async fn what_a_validating_policy_may_say_is_validated() {
    let api = Api::start();
    let base =
        json!({"matchConstraints": {"resourceRules": rules()}, "validations": [{"expression": "true"}]});
    let validation = |fields: Value| json!({"validations": [fields]});
    let expression = |text: &str| json!({"validations": [{"expression": text}]});
    let cases = vec![
        ("fine", json!({})),
        ("nothing", json!({"validations": [], "matchConstraints": null})),
        ("no rules", json!({"matchConstraints": {"resourceRules": []}})),
        ("failure policy", json!({"failurePolicy": "Frob"})),
        (
            "match policy",
            json!({"matchConstraints": {"matchPolicy": "Frob", "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}}),
        ),
        (
            "names",
            json!({"matchConstraints": {"resourceRules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "resourceNames": ["a/b", "c", "c"]}]}}),
        ),
        ("param kind", json!({"paramKind": {"apiVersion": "a/b/c", "kind": "a b"}})),
        ("param kind without a version", json!({"paramKind": {"apiVersion": "a_/", "kind": ""}})),
        ("syntax", expression("object.")),
        ("type", expression("object.metadata.name")),
        ("text", expression("'a'")),
        ("unknown", expression("self.a && variables.b")),
        ("params", expression("params.a == 1")),
        (
            "request",
            expression("request.frob == '' && request.name == 1 && namespaceObject.metadata.frob == ''"),
        ),
        ("patches", expression("Object{} == null || jsonpatch.escapeKey('a') == ''")),
        ("constant", expression("'a'.matches('(')")),
        ("blank", validation(json!({"expression": " "}))),
        ("message", validation(json!({"expression": "true", "message": " ", "messageExpression": " "}))),
        (
            "message lines",
            validation(json!({"expression": "true", "message": "a\nb", "messageExpression": "1"})),
        ),
        (
            "message with rights",
            validation(
                json!({"expression": "authorizer != null", "messageExpression": "string(authorizer != null)"}),
            ),
        ),
        ("reason", validation(json!({"expression": "true", "reason": "Conflict"}))),
        (
            "variables",
            json!({"variables": [
                {"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "variables.c + 1"}, {"name": "in", "expression": "1"},
                {"name": "a-b", "expression": " "}, {"name": "", "expression": "object."}
            ]}),
        ),
        (
            "typed variables",
            json!({
                "variables": [{"name": "a", "expression": "1"}, {"name": "b", "expression": "[variables.a]"}],
                "validations": [{"expression": "variables.a == 'x'"}, {"expression": "variables.b[0].c"}, {"expression": "variables.d"}]
            }),
        ),
        (
            "conditions",
            json!({"variables": [{"name": "a", "expression": "true"}], "matchConditions": [
                {"name": "a b", "expression": " "}, {"name": "x", "expression": " object. "}, {"name": "x", "expression": "variables.a"},
                {"name": "y", "expression": "1"}
            ]}),
        ),
        (
            "annotations",
            json!({"auditAnnotations": [
                {"key": "a b", "valueExpression": "1"}, {"key": "c", "valueExpression": " "}, {"key": "c", "valueExpression": "null"},
                {"key": "d", "valueExpression": " object. "}
            ]}),
        ),
    ];
    let seen = refuse(&api, "validatingadmissionpolicies", base, cases).await;
    expect![[r#"
        fine: 201
        nothing: 422
          spec.auditAnnotations Required value: validations or auditAnnotations must contain at least one item
          spec.matchConstraints Required value
          spec.validations Required value: validations or auditAnnotations must contain at least one item
        no rules: 422
          spec.matchConstraints.resourceRules Required value
        failure policy: 422
          spec.failurePolicy Unsupported value: "Frob": supported values: "Fail", "Ignore"
        match policy: 422
          spec.matchConstraints.matchPolicy Unsupported value: "Frob": supported values: "Equivalent", "Exact"
          spec.matchConstraints.objectSelector.matchExpressions[0].values Required value: must be specified when `operator` is 'In' or 'NotIn'
        names: 422
          spec.matchConstraints.resourceRules[0].resourceNames[0] Invalid value: "a/b": may not contain '/'
          spec.matchConstraints.resourceRules[0].resourceNames[2] Duplicate value: "c"
        param kind: 422
          spec.paramKind.apiVersion Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c
          spec.paramKind.kind Invalid value: "a b": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
        param kind without a version: 422
          spec.paramKind.apiVersion Invalid value: "a_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
          spec.paramKind.apiVersion Invalid value: "a_/": version must be specified
          spec.paramKind.kind Required value
        syntax: 422
          spec.validations[0].expression Invalid value: "object.": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'
             | object.
             | .......^
        type: 422
          spec.validations[0].expression Invalid value: "object.metadata.name": must evaluate to bool but got dyn
        text: 422
          spec.validations[0].expression Invalid value: "'a'": must evaluate to bool but got string
        unknown: 422
          spec.validations[0].expression Invalid value: "self.a && variables.b": compilation failed: ERROR: <input>:1:1: undeclared reference to 'self' (in container '')
             | self.a && variables.b
             | ^
            ERROR: <input>:1:11: undeclared reference to 'variables' (in container '')
             | self.a && variables.b
             | ..........^
        params: 422
          spec.validations[0].expression Invalid value: "params.a == 1": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')
             | params.a == 1
             | ^
        request: 422
          spec.validations[0].expression Invalid value: "request.frob == '' && request.name == 1 && namespaceObject.metadata.frob == ''": compilation failed: ERROR: <input>:1:8: undefined field 'frob'
             | request.frob == '' && request.name == 1 && namespaceObject.metadata.frob == ''
             | .......^
            ERROR: <input>:1:36: found no matching overload for '_==_' applied to '(string, int)'
             | request.frob == '' && request.name == 1 && namespaceObject.metadata.frob == ''
             | ...................................^
            ERROR: <input>:1:68: undefined field 'frob'
             | request.frob == '' && request.name == 1 && namespaceObject.metadata.frob == ''
             | ...................................................................^
        patches: 422
          spec.validations[0].expression Invalid value: "Object{} == null || jsonpatch.escapeKey('a') == ''": compilation failed: ERROR: <input>:1:7: undeclared reference to 'Object' (in container '')
             | Object{} == null || jsonpatch.escapeKey('a') == ''
             | ......^
            ERROR: <input>:1:21: undeclared reference to 'jsonpatch' (in container '')
             | Object{} == null || jsonpatch.escapeKey('a') == ''
             | ....................^
            ERROR: <input>:1:40: undeclared reference to 'escapeKey' (in container '')
             | Object{} == null || jsonpatch.escapeKey('a') == ''
             | .......................................^
        constant: 422
          spec.validations[0].expression Invalid value: "'a'.matches('(')": compilation failed: ERROR: <input>:1:13: invalid matches argument
             | 'a'.matches('(')
             | ............^
        blank: 422
          spec.validations[0].expression Required value: expression is not specified
        message: 422
          spec.validations[0].message Invalid value: " ": must be non-empty if specified
          spec.validations[0].messageExpression Invalid value: " ": must be non-empty if specified
        message lines: 422
          spec.validations[0].message Invalid value: "a\nb": must not contain line breaks
          spec.validations[0].messageExpression Invalid value: "1": must evaluate to string but got int
        message with rights: 422
          spec.validations[0].messageExpression Invalid value: "string(authorizer != null)": compilation failed: ERROR: <input>:1:8: undeclared reference to 'authorizer' (in container '')
             | string(authorizer != null)
             | .......^
        reason: 422
          spec.validations[0].reason Unsupported value: "Conflict": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"
        variables: 422
          spec.variables[0].expression Invalid value: "variables.b": compilation failed: ERROR: <input>:1:10: undefined field 'b'
             | variables.b
             | .........^
          spec.variables[1].expression Invalid value: "variables.c + 1": compilation failed: ERROR: <input>:1:10: undefined field 'c'
             | variables.c + 1
             | .........^
          spec.variables[2].name Invalid value: "in": must be a valid CEL identifier
          spec.variables[3].expression Required value: expression is not specified
          spec.variables[3].name Invalid value: "a-b": must be a valid CEL identifier
          spec.variables[4].expression Invalid value: "object.": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'
             | object.
             | .......^
          spec.variables[4].name Required value: name is not specified
        typed variables: 422
          spec.validations[0].expression Invalid value: "variables.a == 'x'": compilation failed: ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(int, string)'
             | variables.a == 'x'
             | ............^
          spec.validations[1].expression Invalid value: "variables.b[0].c": compilation failed: ERROR: <input>:1:15: type 'int' does not support field selection
             | variables.b[0].c
             | ..............^
          spec.validations[2].expression Invalid value: "variables.d": compilation failed: ERROR: <input>:1:10: undefined field 'd'
             | variables.d
             | .........^
        conditions: 422
          spec.matchConditions[0].expression Required value
          spec.matchConditions[0].name Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
          spec.matchConditions[1].expression Invalid value: "object.": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'
             | object.
             | .......^
          spec.matchConditions[2].expression Invalid value: "variables.a": compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')
             | variables.a
             | ^
          spec.matchConditions[2].name Duplicate value: "x"
          spec.matchConditions[3].expression Invalid value: "1": must evaluate to bool but got int
        annotations: 422
          spec.auditAnnotations[0].key Invalid value: "ID-odd/a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
          spec.auditAnnotations[0].valueExpression Invalid value: "1": must evaluate to one of [string null_type] but got int
          spec.auditAnnotations[1].valueExpression Required value: valueExpression is not specified
          spec.auditAnnotations[2].key Duplicate value: "c"
          spec.auditAnnotations[3].valueExpression Invalid value: " object. ": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'
             | object.
             | .......^
    "#]].assert_eq(&seen);
}

#[tokio::test]
async fn what_a_mutating_policy_may_say_is_validated() {
    let api = Api::start();
    let mutation = |kind: &str, field: &str, expression: &str| json!({"patchType": kind, field: {"expression": expression}});
    let configuration = |expression: &str| mutation("ApplyConfiguration", "applyConfiguration", expression);
    let operations = |expression: &str| mutation("JSONPatch", "jsonPatch", expression);
    let base = json!({
        "matchConstraints": {"resourceRules": rules()}, "reinvocationPolicy": "Never",
        "mutations": [configuration("Object{}")]
    });
    let of = |mutation: Value| json!({"mutations": [mutation]});
    let cases = vec![
        ("fine", json!({})),
        ("nothing", json!({"mutations": [], "reinvocationPolicy": ""})),
        ("reinvocation", json!({"reinvocationPolicy": "Often"})),
        (
            "operations",
            json!({"matchConstraints": {"resourceRules": [{"operations": ["DELETE", "CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]}}),
        ),
        ("no type", of(json!({}))),
        ("another type", of(json!({"patchType": "Merge"}))),
        ("absent", of(json!({"patchType": "JSONPatch"}))),
        ("the other", of(mutation("JSONPatch", "applyConfiguration", "Object{}"))),
        ("blank", of(configuration(" "))),
        ("a map", of(configuration("{'a': 1}"))),
        ("another object", of(configuration("Object.spec{}"))),
        ("an unknown object", of(configuration("Frob{a: 1}"))),
        ("a type", of(configuration("int{a: 1}"))),
        ("one operation", of(operations("JSONPatch{op: 'add'}"))),
        ("a list of maps", of(operations("[{'op': 'add'}]"))),
        ("a wrong field", of(operations("[JSONPatch{op: 1, path: '/a'}]"))),
        ("no operation", of(operations("[]"))),
        (
            "variables",
            json!({"variables": [{"name": "a", "expression": "Object{}"}], "mutations": [configuration("variables.a")]}),
        ),
    ];
    let seen = refuse(&api, "mutatingadmissionpolicies", base, cases).await;
    expect![[r#"
        fine: 201
        nothing: 422
          spec.mutations Required value: mutations must contain at least one item
          spec.reinvocationPolicy Required value
        reinvocation: 422
          spec.reinvocationPolicy Unsupported value: "Often": supported values: "IfNeeded", "Never"
        operations: 422
          spec.matchConstraints.resourceRules.operations Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"
        no type: 422
          spec.mutations[0].patchType Required value
        another type: 422
          spec.mutations[0].patchType Unsupported value: "Merge": supported values: "ApplyConfiguration", "JSONPatch"
        absent: 422
          spec.mutations[0].jsonPatch Required value: must be specified when patchType is JSONPatch
        the other: 422
          spec.mutations[0].applyConfiguration Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch
          spec.mutations[0].jsonPatch Required value: must be specified when patchType is JSONPatch
        blank: 422
          spec.mutations[0].applyConfiguration.expression Required value
        a map: 422
          spec.mutations[0].applyConfiguration.expression Invalid value: "{'a': 1}": must evaluate to Object but got map(string, int)
        another object: 422
          spec.mutations[0].applyConfiguration.expression Invalid value: "Object.spec{}": must evaluate to Object but got Object.spec
        an unknown object: 422
          spec.mutations[0].applyConfiguration.expression Invalid value: "Frob{a: 1}": compilation failed: ERROR: <input>:1:5: undeclared reference to 'Frob' (in container '')
             | Frob{a: 1}
             | ....^
        a type: 422
          spec.mutations[0].applyConfiguration.expression Invalid value: "int{a: 1}": compilation failed: ERROR: <input>:1:4: 'int' is not a message type
             | int{a: 1}
             | ...^
            ERROR: <input>:1:6: undefined field 'a'
             | int{a: 1}
             | .....^
        one operation: 422
          spec.mutations[0].jsonPatch.expression Invalid value: "JSONPatch{op: 'add'}": must evaluate to list(JSONPatch) but got JSONPatch
        a list of maps: 422
          spec.mutations[0].jsonPatch.expression Invalid value: "[{'op': 'add'}]": must evaluate to list(JSONPatch) but got list(map(string, string))
        a wrong field: 422
          spec.mutations[0].jsonPatch.expression Invalid value: "[JSONPatch{op: 1, path: '/a'}]": compilation failed: ERROR: <input>:1:14: expected type of field 'op' is 'string' but provided type is 'int'
             | [JSONPatch{op: 1, path: '/a'}]
             | .............^
        no operation: 422
          spec.mutations[0].jsonPatch.expression Invalid value: "[]": must evaluate to list(JSONPatch) but got list(dyn)
        variables: 422
          spec.mutations[0].applyConfiguration.expression Invalid value: "variables.a": must evaluate to Object but got dyn
          spec.variables[0].expression Invalid value: "Object{}": compilation failed: ERROR: <input>:1:7: undeclared reference to 'Object' (in container '')
             | Object{}
             | ......^
    "#]].assert_eq(&seen);
}

#[tokio::test]
async fn what_a_binding_may_say_is_validated() {
    let api = Api::start();
    let base = json!({"policyName": "a", "validationActions": ["Deny"]});
    let reference = |fields: Value| json!({"paramRef": fields});
    let cases = vec![
        ("fine", json!({})),
        ("nothing", json!({"policyName": "", "validationActions": []})),
        ("names", json!({"policyName": "A b"})),
        ("actions", json!({"validationActions": ["Deny", "Warn", "Frob"]})),
        ("twice", json!({"validationActions": ["Deny", "Deny"]})),
        ("resources", json!({"matchResources": {"matchPolicy": "Frob"}})),
        ("empty reference", reference(json!({}))),
        ("both", reference(json!({"name": "a", "selector": {}, "parameterNotFoundAction": "Allow"}))),
        ("odd", reference(json!({"name": "a/b", "parameterNotFoundAction": "Frob"}))),
    ];
    let mut seen = refuse(&api, "validatingadmissionpolicybindings", base, cases).await;
    let rule =
        json!({"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
    let cases = vec![
        ("mutating", json!({})),
        ("nothing", json!({"policyName": ""})),
        ("operations", json!({"matchResources": {"resourceRules": [rule]}})),
    ];
    seen += &refuse(&api, "mutatingadmissionpolicybindings", json!({"policyName": "a"}), cases).await;
    expect![[r#"
        fine: 201
        nothing: 422
          spec.policyName Required value
          spec.validationActions Required value
        names: 422
          spec.policyName Invalid value: "A b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        actions: 422
          spec.validationActions Invalid value: ["Deny","Warn","Frob"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)
          spec.validationActions[2] Unsupported value: "Frob": supported values: "Audit", "Deny", "Warn"
        twice: 422
          spec.validationActions[1] Duplicate value: "Deny"
        resources: 422
          spec.matchResources.matchPolicy Unsupported value: "Frob": supported values: "Equivalent", "Exact"
        empty reference: 422
          spec.paramRef Required value: one of name or selector must be specified
          spec.paramRef.parameterNotFoundAction Required value
        both: 422
          spec.paramRef.name Forbidden: name and selector are mutually exclusive
          spec.paramRef.selector Forbidden: name and selector are mutually exclusive
        odd: 422
          spec.paramRef.name Invalid value: "a/b": may not contain '/'
          spec.paramRef.parameterNotFoundAction Unsupported value: "Frob": supported values: "Deny", "Allow"
        mutating: 201
        nothing: 422
          spec.policyName Required value
        operations: 422
          spec.matchResources.resourceRules.operations Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"
    "#]].assert_eq(&seen);
}

#[tokio::test]
async fn defaults_generations_and_the_status_are_those_of_policies() {
    let api = Api::start();
    let path = format!("{GROUP}/validatingadmissionpolicies");
    let name = format!("p-{}", api.id);
    let policy = json!({
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": rules()}, "validations": [{"expression": "true"}]},
        "status": {"observedGeneration": 7}
    });
    let created = api.post(&path, policy).await.is(201);
    api.discard(format!("{path}/{name}"));
    expect![[r#"{"failurePolicy":"Fail","matchConstraints":{"matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"],"scope":"*"}]},"validations":[{"expression":"true"}]}"#]].assert_eq(&plain(&created.at("/spec").to_string(), &api.id));
    assert_eq!(
        (created.at("/metadata/generation"), created.at("/status/observedGeneration")),
        (json!(1), json!(null))
    );
    let path = format!("{path}/{name}");
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(api.patch(&path, MERGE_PATCH, labelled).await.is(200).at("/metadata/generation"), 1);
    let changed = json!({"spec": {"failurePolicy": "Ignore"}});
    assert_eq!(api.patch(&path, MERGE_PATCH, changed).await.is(200).at("/metadata/generation"), 2);
}
