//! The validation rules of custom resources.

use expect_test::expect;
use serde_json::{Value, json};

use crate::fixtures::{group, widgets};
use crate::harness::{Api, MERGE_PATCH};

const DRY_RUN: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";

/// Returns a definition of widgets whose `spec` has rules.
fn definition(api: &Api, rules: Value) -> Value {
    let mut definition = widgets(api);
    let spec = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["x-kubernetes-validations"] = rules;
    definition
}

#[tokio::test]
async fn objects_are_held_to_the_rules() {
    let api = Api::start();
    let ns = api.namespace().await;
    let rules = json!([
        {"rule": "self.size < 5", "message": "size is too large"},
        {"rule": "self.replicas <= self.size", "messageExpression": "'too many for ' + self.colour",
         "fieldPath": ".replicas", "reason": "FieldValueForbidden"},
        {"rule": "oldSelf.colour == self.colour"},
    ]);
    api.crd(definition(&api, rules)).await;
    let path = format!("/apis/{}/v1/namespaces/{ns}/widgets", group(&api));
    let widget = |size: i64, replicas: i64| {
        json!({
            "apiVersion": format!("{}/v1", group(&api)), "kind": "Widget", "metadata": {"name": "w"},
            "spec": {"size": size, "replicas": replicas},
        })
    };
    api.post(&path, widget(7, 9)).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "w" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="w"
        - FieldValueForbidden spec.replicas: Forbidden: too many for red
        - FieldValueInvalid spec: Invalid value: size is too large"#]]);
    api.post(&path, widget(3, 2)).await.is(201);
    let path = format!("{path}/w");
    let change = |spec: Value| api.patch(&path, MERGE_PATCH, json!({ "spec": spec }));
    change(json!({"colour": "green"})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "w" is invalid: spec: Invalid value: failed rule: oldSelf.colour == self.colour
        group="ID.example.com" kind="Widget" name="w"
        - FieldValueInvalid spec: Invalid value: failed rule: oldSelf.colour == self.colour"#]]);
    change(json!({"size": null})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "w" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="w"
        - FieldValueInvalid <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
        - FieldValueRequired spec.size: Required value"#]]);
    change(json!({"size": 4})).await.is(200);
}

#[tokio::test]
async fn violations_that_an_update_leaves_are_warnings() {
    let api = Api::start();
    let ns = api.namespace().await;
    let lists = json!([{"rule": "self.map(p, p.name) != ['b', 'a']", "message": "wrong order"}]);
    let mut definition = definition(&api, json!([{"rule": "true"}]));
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    definition.pointer_mut(spec).expect("properties")["ports"] = json!({
        "type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "maxLength": 9}}},
        "x-kubernetes-validations": lists,
    });
    api.crd(definition).await;
    let path = format!("/apis/{}/v1/namespaces/{ns}/widgets", group(&api));
    let widget = json!({
        "apiVersion": format!("{}/v1", group(&api)), "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"size": 3, "ports": [{"name": "a"}, {"name": "b"}]},
    });
    api.post(&path, widget).await.is(201);
    let path = format!("{path}/w");
    let change = |spec: Value| api.patch(&path, MERGE_PATCH, json!({ "spec": spec }));
    let reversed = json!([{"name": "b"}, {"name": "a"}]);
    let warning = r#"299 - "spec.ports: Invalid value: wrong order""#;
    let warned = change(json!({ "ports": reversed })).await.is(200);
    assert_eq!(warned.warnings(), [warning], "the same items in another order");
    let warned = change(json!({"size": 4})).await.is(200);
    assert_eq!(warned.warnings(), [warning], "a change elsewhere");
    let refused = change(json!({"size": "x"})).await.is(422);
    assert_eq!(refused.warnings(), Vec::<String>::new(), "the rules are not evaluated");
}

#[tokio::test]
async fn rules_of_definitions_are_checked() {
    let api = Api::start();
    let refused = |rules: Value| api.post(DRY_RUN, definition(&api, rules));
    refused(json!([{"rule": "self.sise < 5"}])).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.sise \u003c 5","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field 'sise'
         | self.sise < 5
         | ....^
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.sise \u003c 5","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field 'sise'
         | self.sise < 5
         | ....^"#]]);
    refused(json!([{"rule": "self.size"}])).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.size","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: cel expression must evaluate to a bool
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.size","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: cel expression must evaluate to a bool"#]]);
    refused(json!([{"rule": "true", "messageExpression": "1 + 1"}])).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].messageExpression: Invalid value: {"Rule":"true","Message":"","MessageExpression":"1 + 1","Reason":null,"FieldPath":"","OptionalOldSelf":null}: messageExpression must evaluate to a string
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].messageExpression: Invalid value: {"Rule":"true","Message":"","MessageExpression":"1 + 1","Reason":null,"FieldPath":"","OptionalOldSelf":null}: messageExpression must evaluate to a string"#]]);
    refused(json!([{"rule": "true", "optionalOldSelf": true}])).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"#]]);
    refused(json!([{"rule": "true", "fieldPath": ".sise"}])).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].fieldPath: Invalid value: ".sise": must be a valid path
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].fieldPath: Invalid value: ".sise": must be a valid path"#]]);
    let costly = "self.tags.all(a, self.tags.all(b, self.tags.all(c, a + b + c != '')))";
    let mut costly = definition(&api, json!([{ "rule": costly }]));
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/tags/maxItems";
    *costly.pointer_mut(spec).unwrap() = json!(10_000);
    api.post(DRY_RUN, costly).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: [as below]
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueForbidden spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
        - FieldValueForbidden spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)
        - FieldValueForbidden spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"#]]);
}

#[tokio::test]
async fn the_estimated_cost_of_a_name_is_small() {
    let api = Api::start();
    let with = |rule: &str| {
        let mut definition = widgets(&api);
        let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["x-kubernetes-validations"] = json!([{ "rule": rule }]);
        api.post(DRY_RUN, definition)
    };
    with("self.metadata.name.contains(self.metadata.generateName)").await.is(201);
    // The other names of a resource have no limit.
    with("self.kind.contains(self.apiVersion)").await.is(422);
}
