use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::prepare::{default, prepare_create, prepare_update};
use super::validate::{validate_new, validate_updated};
use super::*;

const NOW: &str = "2026-01-02T03:04:05Z";

fn widgets() -> Value {
    json!({
        "metadata": { "name": "widgets.example.com", "generation": 1 },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    })
}

fn prepared(mut definition: Value) -> Value {
    default(&mut definition);
    prepare_create(&mut definition);
    definition
}

fn established(definition: Value) -> Value {
    let mut definition = prepared(definition);
    accept(&mut definition, &[], NOW);
    definition
}

/// Returns the errors of a definition after a change.
fn wrong(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut definition = widgets();
    change(&mut definition);
    validate_new(&prepared(definition)).iter().map(FieldError::to_string).collect()
}

#[test]
fn a_new_definition_is_completed() {
    let definition = prepared(widgets());
    assert_eq!(
        definition["spec"]["names"],
        json!({ "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" })
    );
    assert_eq!(definition["spec"]["conversion"], json!({ "strategy": "None" }));
    assert_eq!(definition["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(validate_new(&definition), []);
}

#[test]
fn what_is_wrong_is_said_in_the_real_servers_words() {
    assert_eq!(
        wrong(|d| d["metadata"]["name"] = json!("foo")),
        [r#"metadata.name: Invalid value: "foo": must be spec.names.plural+"."+spec.group"#]
    );
    assert_eq!(
        wrong(|d| d["spec"]["group"] = json!("nodots")),
        [
            r#"metadata.name: Invalid value: "widgets.example.com": must be spec.names.plural+"."+spec.group"#,
            r#"spec.group: Invalid value: "nodots": should be a domain with at least one dot"#,
        ]
    );
    assert_eq!(
        wrong(|d| d["spec"]["scope"] = json!("Foo")),
        [r#"spec.scope: Unsupported value: "Foo": supported values: "Cluster", "Namespaced""#]
    );
    assert_eq!(
        wrong(|d| d["spec"]["names"]["kind"] = json!("")),
        [
            "spec.names.singular: Required value",
            "spec.names.kind: Required value",
            "spec.names.listKind: Required value"
        ]
    );
    assert_eq!(
        wrong(|d| d["spec"]["names"]["listKind"] = json!("Widget")),
        [r#"spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same"#]
    );
    assert_eq!(
        wrong(|d| d["spec"]["versions"] = json!([])),
        [
            "spec.versions: Invalid value: []: must have exactly one version marked as storage version",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ]
    );
    assert_eq!(
        wrong(|d| d["spec"]["versions"][0]["schema"] = Value::Null),
        ["spec.versions[0].schema.openAPIV3Schema: Required value"]
    );
    assert_eq!(
        wrong(|d| d["spec"]["conversion"] = json!({ "strategy": "Webhook" })),
        [
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.conversionReviewVersions: Required value",
        ]
    );
    assert_eq!(
        wrong(|d| {
            d["metadata"]["name"] = json!("widgets.foo.k8s.io");
            d["spec"]["group"] = json!("foo.k8s.io");
        }),
        [
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"
        ]
    );
}

#[test]
fn what_all_versions_share_is_named_at_the_top() {
    let scale = json!({ "scale": { "specReplicasPath": "x", "statusReplicasPath": ".spec.y", "labelSelectorPath": ".x" } });
    assert_eq!(
        wrong(|d| d["spec"]["versions"][0]["subresources"] = scale.clone()),
        [
            r#"spec.subresources.scale.specReplicasPath: Invalid value: "x": must be a simple json path starting with ."#,
            r#"spec.subresources.scale.statusReplicasPath: Invalid value: ".spec.y": should be a json path under .status"#,
            r#"spec.subresources.scale.labelSelectorPath: Invalid value: ".x": should be a json path under either .spec or .status"#,
        ]
    );
    let columns = json!([{ "name": "a", "type": "foo", "jsonPath": "x" }]);
    assert_eq!(
        wrong(|d| d["spec"]["versions"][0]["additionalPrinterColumns"] = columns.clone()),
        [
            r#"spec.additionalPrinterColumns[0].type: Invalid value: "foo": must be one of boolean,date,integer,number,string"#,
            r#"spec.additionalPrinterColumns[0].JSONPath: Invalid value: "x": must be a simple json path starting with ."#,
        ]
    );
    let second = wrong(|d| {
        let mut version = d["spec"]["versions"][0].clone();
        version["name"] = json!("v2");
        version["storage"] = json!(false);
        version["subresources"] = json!({ "scale": {} });
        d["spec"]["versions"].as_array_mut().unwrap().push(version);
    });
    assert_eq!(
        second,
        [
            "spec.versions[1].subresources.scale.specReplicasPath: Required value",
            "spec.versions[1].subresources.scale.statusReplicasPath: Required value",
        ]
    );
}

#[test]
fn selectable_fields_are_scalars_that_the_schema_knows() {
    let with = |path: &str| {
        let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
            "color": { "type": "string" }, "parts": { "type": "array", "items": { "type": "string" } } } } } });
        wrong(|d| {
            d["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
            d["spec"]["versions"][0]["selectableFields"] = json!([{ "jsonPath": path }]);
        })
    };
    assert!(with(".spec.color").is_empty());
    assert_eq!(
        with(".spec.size"),
        [
            r#"spec.selectableFields[0].jsonPath: Invalid value: ".spec.size": is an invalid path: does not refer to a valid field"#
        ]
    );
    assert_eq!(with(".spec.parts").len(), 1);
    assert_eq!(with("x").len(), 1);
}

#[test]
fn names_that_are_free_are_given() {
    let definition = established(widgets());
    assert!(is_established(&definition));
    assert_eq!(definition["status"]["acceptedNames"], definition["spec"]["names"]);
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions[0]["reason"], "NoConflicts");
    assert_eq!(conditions[1]["reason"], "InitialNamesAccepted");
}

#[test]
fn who_has_a_name_keeps_it() {
    let first = established(widgets());
    let mut second = widgets();
    second["metadata"]["name"] = json!("gadgets.example.com");
    second["spec"]["names"] =
        json!({ "plural": "gadgets", "singular": "gadget", "kind": "Widget", "shortNames": ["wd"] });
    let mut second = prepared(second);
    accept(&mut second, &[&Names::accepted(&first)], NOW);
    assert!(!is_established(&second));
    assert_eq!(
        second["status"]["acceptedNames"],
        json!({ "plural": "gadgets", "singular": "gadget", "shortNames": ["wd"], "kind": "" })
    );
    let conditions = second["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions[0]["reason"], "ListKindConflict");
    assert_eq!(conditions[0]["message"], r#""WidgetList" is already in use"#);
    assert_eq!(conditions[1]["reason"], "NotAccepted");
}

/// Returns a definition with rules that do not compile.
fn with_wrong_rules(count: usize) -> Value {
    let mut definition = widgets();
    let rule = json!({ "rule": format!("self.x{}", " + y".repeat(200)) });
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
        json!(vec![rule; count]);
    definition
}

#[test]
fn the_errors_of_a_definition_have_a_limited_length() {
    let errors = validate_new(&prepared(with_wrong_rules(100)));
    let length: usize = errors.iter().map(|error| error.to_string().len()).sum();
    assert!(length < 2 << 20, "{length}");
    assert_eq!(errors.last().unwrap().to_string(), "spec: Forbidden: further errors are left out");
}

#[test]
fn rules_that_a_definition_has_already_are_not_checked_again() {
    let old = established(with_wrong_rules(1));
    let mut new = old.clone();
    new["spec"]["names"]["shortNames"] = json!(["wd"]);
    assert_eq!(validate_updated(&new, &old), []);
    new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("changed");
    assert_eq!(validate_updated(&new, &old).len(), 1);
}

#[test]
fn what_identifies_objects_cannot_change() {
    let old = established(widgets());
    for (path, value) in [
        ("/spec/scope", "Cluster"),
        ("/spec/group", "x.example"),
        ("/spec/names/plural", "foos"),
        ("/spec/names/kind", "Foo"),
    ] {
        let mut new = old.clone();
        *new.pointer_mut(path).unwrap() = json!(value);
        default(&mut new);
        prepare_update(&mut new, &old);
        let errors = validate_updated(&new, &old);
        let field = path[1..].replace('/', ".");
        let expected = format!("{field}: Invalid value: \"{value}\": field is immutable");
        assert_eq!(errors.iter().map(FieldError::to_string).collect::<Vec<_>>(), [expected]);
    }
}

#[test]
fn a_version_once_stored_stays_on_record() {
    let old = established(widgets());
    let mut new = old.clone();
    let mut version = old["spec"]["versions"][0].clone();
    version["name"] = json!("v2");
    new["spec"]["versions"][0]["storage"] = json!(false);
    new["spec"]["versions"].as_array_mut().unwrap().push(version.clone());
    default(&mut new);
    prepare_update(&mut new, &old);
    assert_eq!(validate_updated(&new, &old), []);
    assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));

    let mut without = new.clone();
    without["spec"]["versions"] = json!([version]);
    default(&mut without);
    prepare_update(&mut without, &new);
    let errors = validate_updated(&without, &new);
    assert!(
        errors[0]
            .to_string()
            .starts_with("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions")
    );
}

#[test]
fn a_condition_keeps_its_time_while_its_status_stays() {
    let mut definition = established(widgets());
    set_condition(&mut definition, "Established", true, "Other", "other words", "2030-01-01T00:00:00Z");
    assert_eq!(definition["status"]["conditions"][1]["lastTransitionTime"], NOW);
    set_condition(&mut definition, "Established", false, "Gone", "", "2030-01-01T00:00:00Z");
    assert_eq!(definition["status"]["conditions"][1]["lastTransitionTime"], "2030-01-01T00:00:00Z");
}
