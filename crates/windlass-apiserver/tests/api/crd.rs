//! The life of a CustomResourceDefinition.

use std::time::{Duration, Instant};

use base64::Engine;
use expect_test::expect;
use serde_json::{Value, json};
use windlass_apiserver::Server;
use windlass_patience::stretched;

use crate::fixtures::{group, widget, widgets, widgets_path};
use crate::harness::{Api, MERGE_PATCH, Reply};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test]
async fn a_definition_is_completed_and_established() {
    let api = Api::start();
    let mut definition = widgets(&api);
    definition["spec"]["names"] = json!({"plural": "widgets", "kind": "Widget"});
    let path = format!("{DEFINITIONS}/widgets.{}", group(&api));
    let created = api.post(DEFINITIONS, definition).await.is(201);
    api.discard(path.clone());
    assert_eq!(created.at("/metadata/generation"), 1);
    assert_eq!(created.at("/spec/conversion"), json!({"strategy": "None"}));
    let condition = |reply: &Reply, kind: &str| {
        let conditions = reply.at("/status/conditions");
        let mut conditions = conditions.as_array().cloned().unwrap_or_default().into_iter();
        conditions
            .find(|condition| condition["type"] == kind)
            .is_some_and(|condition| condition["status"] == "True")
    };
    let established = api.eventually(&path, |reply| condition(reply, "Established")).await;
    let status = established.at("/status");
    let status = json!({
        "acceptedNames": status["acceptedNames"], "storedVersions": status["storedVersions"],
        "conditions": status["conditions"], "names": established.at("/spec/names")
    });
    let text = serde_json::to_string_pretty(&status).unwrap();
    let text = regex::Regex::new("20..-..-..T..:..:..Z").unwrap().replace_all(&text, "TIME");
    expect![[r#"
        {
          "acceptedNames": {
            "kind": "Widget",
            "listKind": "WidgetList",
            "plural": "widgets",
            "singular": "widget"
          },
          "conditions": [
            {
              "lastTransitionTime": "TIME",
              "message": "no conflicts found",
              "reason": "NoConflicts",
              "status": "True",
              "type": "NamesAccepted"
            },
            {
              "lastTransitionTime": "TIME",
              "message": "the initial names have been accepted",
              "reason": "InitialNamesAccepted",
              "status": "True",
              "type": "Established"
            }
          ],
          "names": {
            "kind": "Widget",
            "listKind": "WidgetList",
            "plural": "widgets",
            "singular": "widget"
          },
          "storedVersions": [
            "v1"
          ]
        }"#]]
    .assert_eq(&text);
}

#[tokio::test]
async fn its_resources_are_served_and_discovered() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let group = group(&api);
    api.get(&format!("/apis/{group}")).await.shows(expect![[r#"
        200
        {
          "apiVersion": "v1",
          "kind": "APIGroup",
          "name": "ID.example.com",
          "preferredVersion": {
            "groupVersion": "ID.example.com/v1",
            "version": "v1"
          },
          "versions": [
            {
              "groupVersion": "ID.example.com/v1",
              "version": "v1"
            }
          ]
        }"#]]);
    let list = api.get(&format!("/apis/{group}/v1")).await.is(200).json();
    expect![[r#"{"kind":"Widget","name":"widgets","namespaced":true,"shortNames":["wd"],"singularName":"widget","verbs":["create","delete","deletecollection","get","list","patch","update","watch"]}"#]].assert_eq(&crate::discovery::resource(&list["resources"], "widgets"));
    expect![[r#"{"kind":"Widget","name":"widgets/status","namespaced":true,"singularName":"","verbs":["get","patch","update"]}"#]].assert_eq(&crate::discovery::resource(&list["resources"], "widgets/status"));
    expect![[r#"{"group":"autoscaling","kind":"Scale","name":"widgets/scale","namespaced":true,"singularName":"","verbs":["get","patch","update"],"version":"v1"}"#]].assert_eq(&crate::discovery::resource(&list["resources"], "widgets/scale"));
    let created = api.post(&path, widget(&api, "a")).await;
    created.shows(expect![[r#"
        201
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "api-test Update ID.example.com/v1: {'f:spec':{'.':{},'f:colour':{},'f:replicas':{},'f:size':{}}}"
            ],
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "colour": "red",
            "replicas": 1,
            "size": 3
          }
        }"#]]);
    api.get(&path).await.shows(expect![[r#"
        200
        {
          "apiVersion": "ID.example.com/v1",
          "items": [
            {
              "apiVersion": "ID.example.com/v1",
              "kind": "Widget",
              "metadata": {
                "creationTimestamp": "TIME",
                "generation": 1,
                "managedFields": [
                  "api-test Update ID.example.com/v1: {'f:spec':{'.':{},'f:colour':{},'f:replicas':{},'f:size':{}}}"
                ],
                "name": "a",
                "namespace": "ns-ID",
                "resourceVersion": "RV",
                "uid": "UID"
              },
              "spec": {
                "colour": "red",
                "replicas": 1,
                "size": 3
              }
            }
          ],
          "kind": "WidgetList",
          "metadata": {
            "continue": "",
            "resourceVersion": "RV"
          }
        }"#]]);
}

#[tokio::test]
async fn a_definition_that_is_wrong_is_refused() {
    let api = Api::start();
    let change = |pointer: &str, value: Value| {
        let mut definition = widgets(&api);
        *definition.pointer_mut(pointer).unwrap() = value;
        definition
    };
    api.post(DEFINITIONS, change("/metadata/name", json!("other.name"))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "other.name" is invalid: metadata.name: Invalid value: "other.name": must be spec.names.plural+"."+spec.group
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="other.name"
        - FieldValueInvalid metadata.name: Invalid value: "other.name": must be spec.names.plural+"."+spec.group"#]]);
    api.post(DEFINITIONS, change("/spec/scope", json!("Global"))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueNotSupported spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced""#]]);
    api.post(DEFINITIONS, change("/spec/group", json!(""))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: [as below]
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid metadata.name: Invalid value: "widgets.ID.example.com": must be spec.names.plural+"."+spec.group
        - FieldValueRequired spec.group: Required value"#]]);
    api.post(DEFINITIONS, change("/spec/versions", json!([]))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: [as below]
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.versions: Invalid value: []: must have exactly one version marked as storage version
        - FieldValueInvalid status.storedVersions: Invalid value: null: must have at least one stored version"#]]);
    api.post(DEFINITIONS, change("/spec/names/kind", json!("widget kind"))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.names.kind: Invalid value: "widget kind": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.names.kind: Invalid value: "widget kind": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#]]);
    api.post(DEFINITIONS, change("/spec/names/plural", json!("Widgets"))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: [as below]
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid metadata.name: Invalid value: "widgets.ID.example.com": must be spec.names.plural+"."+spec.group
        - FieldValueInvalid spec.names.plural: Invalid value: "Widgets": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#]]);
    let unstored = api.post(DEFINITIONS, change("/spec/versions/0/storage", json!(false))).await.is(422);
    let message = unstored.text_at("/message");
    assert!(message.contains("must have exactly one version marked as storage version"), "{message}");
    api.post(DEFINITIONS, change("/spec/versions/0/schema", json!(null))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.versions[0].schema.openAPIV3Schema: Required value
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueRequired spec.versions[0].schema.openAPIV3Schema: Required value"#]]);
    api.post(DEFINITIONS, change("/spec/versions/0/name", json!("V 1"))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: [as below]
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.version: Invalid value: "V 1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
        - FieldValueInvalid spec.versions[0].name: Invalid value: "V 1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#]]);
    api.post(
        DEFINITIONS,
        change("/spec/versions/0/subresources/scale/specReplicasPath", json!(".metadata.x")),
    )
    .await
    .shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.subresources.scale.specReplicasPath: Invalid value: ".metadata.x": should be a json path under .spec
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.subresources.scale.specReplicasPath: Invalid value: ".metadata.x": should be a json path under .spec"#]]);
    let mut twice = widgets(&api);
    let version = twice["spec"]["versions"][0].clone();
    twice["spec"]["versions"] = json!([version, version]);
    let message = api.post(DEFINITIONS, twice).await.is(422).text_at("/message");
    assert!(message.contains("must contain unique version names"), "{message}");
    assert!(message.contains("must have exactly one version marked as storage version"), "{message}");
}

#[tokio::test]
async fn a_schema_that_is_not_structural_is_refused() {
    let api = Api::start();
    let dry = format!("{DEFINITIONS}?dryRun=All");
    let with = |schema: Value| {
        let mut definition = widgets(&api);
        definition["spec"]["versions"][0]["schema"] = json!({"openAPIV3Schema": schema});
        definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
        definition
    };
    let spec = |spec: Value| with(json!({"type": "object", "properties": {"spec": spec}}));
    api.post(&dry, with(json!({"type": "string"}))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: [as below]
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.validation.openAPIV3Schema.type: Invalid value: "string": must be object at the root
        - FieldValueInvalid spec.validation.openAPIV3Schema.type: Invalid value: "string": only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#]]);
    api.post(&dry, with(json!({"properties": {"spec": {"type": "object"}}}))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueRequired spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root"#]]);
    api.post(&dry, spec(json!({"properties": {"a": {"type": "string"}}}))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueRequired spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields"#]]);
    api.post(&dry, spec(json!({"type": "array"}))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].items: Required value: must be specified
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueRequired spec.validation.openAPIV3Schema.properties[spec].items: Required value: must be specified"#]]);
    api.post(&dry, spec(json!({"type": "banana"}))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].type: Unsupported value: "banana": supported values: "array", "boolean", "integer", "number", "object", "string"
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueNotSupported spec.validation.openAPIV3Schema.properties[spec].type: Unsupported value: "banana": supported values: "array", "boolean", "integer", "number", "object", "string""#]]);
    api.post(&dry, spec(json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueForbidden spec.validation.openAPIV3Schema.properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"#]]);
    api.post(&dry, spec(json!({"type": "object", "additionalProperties": false}))).await.shows(expect![[r#"
        201
        {
          "apiVersion": "apiextensions.k8s.io/v1",
          "kind": "CustomResourceDefinition",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "api-test Update apiextensions.k8s.io/v1: {'f:spec':{'f:conversion':{'.':{},'f:strategy':{}},'f:group':{},'f:names':{'f:kind':{},'f:listKind':{},'f:plural':{},'f:shortNames':{},'f:singular':{}},'f:scope':{},'f:versions':{}}}"
            ],
            "name": "widgets.ID.example.com",
            "uid": "UID"
          },
          "spec": {
            "conversion": {
              "strategy": "None"
            },
            "group": "ID.example.com",
            "names": {
              "kind": "Widget",
              "listKind": "WidgetList",
              "plural": "widgets",
              "shortNames": [
                "wd"
              ],
              "singular": "widget"
            },
            "scope": "Namespaced",
            "versions": [
              {
                "name": "v1",
                "schema": {
                  "openAPIV3Schema": {
                    "properties": {
                      "spec": {
                        "additionalProperties": false,
                        "type": "object"
                      }
                    },
                    "type": "object"
                  }
                },
                "served": true,
                "storage": true,
                "subresources": {
                  "status": {}
                }
              }
            ]
          },
          "status": {
            "acceptedNames": {
              "kind": "",
              "plural": ""
            },
            "conditions": null,
            "storedVersions": [
              "v1"
            ]
          }
        }"#]]);
    api.post(&dry, spec(json!({"$ref": "#/definitions/x"}))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].$ref: Forbidden: $ref is not supported
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueForbidden spec.validation.openAPIV3Schema.properties[spec].$ref: Forbidden: $ref is not supported"#]]);
    api.post(
        &dry,
        spec(
            json!({"type": "object", "anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}]}),
        ),
    )
    .await
    .shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: [as below]
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueForbidden spec.validation.openAPIV3Schema.properties[spec].anyOf[0].properties[a].type: Forbidden: must be empty to be structural
        - FieldValueForbidden spec.validation.openAPIV3Schema.properties[spec].anyOf[0].type: Forbidden: must be empty to be structural"#]]);
    api.post(&dry, spec(json!({"type": "array", "items": [{"type": "string"}]})))
        .await
        .shows(expect![[r#"
            422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].items: Forbidden: items must be a schema object and not an array
            group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
            - FieldValueForbidden spec.validation.openAPIV3Schema.properties[spec].items: Forbidden: items must be a schema object and not an array"#]]);
    api.post(&dry, spec(json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}})))
        .await
        .shows(expect![[r#"
            422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic
            group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
            - FieldValueForbidden spec.validation.openAPIV3Schema.properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"#]]);
    api.post(&dry, spec(json!({"type": "string", "pattern": "("}))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"#]]);
    api.post(&dry, spec(json!({"type": "integer", "default": "x"}))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].default: Invalid value: "string":  in body must be of type integer: "string"
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueTypeInvalid spec.validation.openAPIV3Schema.properties[spec].default: Invalid value: "string":  in body must be of type integer: "string""#]]);
    api.post(
        &dry,
        spec(json!({"type": "object", "default": {"unknown": 1}, "properties": {"a": {"type": "string"}}})),
    )
    .await
    .shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].default: Invalid value: {"unknown":1}: must not have unknown fields
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.validation.openAPIV3Schema.properties[spec].default: Invalid value: {"unknown":1}: must not have unknown fields"#]]);
    api.post(&dry, spec(json!({"type": "string", "x-kubernetes-int-or-string": true}))).await.shows(expect![
        [r#"
            201
            {
              "apiVersion": "apiextensions.k8s.io/v1",
              "kind": "CustomResourceDefinition",
              "metadata": {
                "creationTimestamp": "TIME",
                "generation": 1,
                "managedFields": [
                  "api-test Update apiextensions.k8s.io/v1: {'f:spec':{'f:conversion':{'.':{},'f:strategy':{}},'f:group':{},'f:names':{'f:kind':{},'f:listKind':{},'f:plural':{},'f:shortNames':{},'f:singular':{}},'f:scope':{},'f:versions':{}}}"
                ],
                "name": "widgets.ID.example.com",
                "uid": "UID"
              },
              "spec": {
                "conversion": {
                  "strategy": "None"
                },
                "group": "ID.example.com",
                "names": {
                  "kind": "Widget",
                  "listKind": "WidgetList",
                  "plural": "widgets",
                  "shortNames": [
                    "wd"
                  ],
                  "singular": "widget"
                },
                "scope": "Namespaced",
                "versions": [
                  {
                    "name": "v1",
                    "schema": {
                      "openAPIV3Schema": {
                        "properties": {
                          "spec": {
                            "type": "string",
                            "x-kubernetes-int-or-string": true
                          }
                        },
                        "type": "object"
                      }
                    },
                    "served": true,
                    "storage": true,
                    "subresources": {
                      "status": {}
                    }
                  }
                ]
              },
              "status": {
                "acceptedNames": {
                  "kind": "",
                  "plural": ""
                },
                "conditions": null,
                "storedVersions": [
                  "v1"
                ]
              }
            }"#]
    ]);
    api.post(&dry, spec(json!({"type": "object", "x-kubernetes-embedded-resource": true})))
        .await
        .shows(expect![[r#"
            422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields
            group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
            - FieldValueRequired spec.validation.openAPIV3Schema.properties[spec].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"#]]);
    api.post(&dry, spec(json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueRequired spec.validation.openAPIV3Schema.properties[spec].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"#]]);
    api.post(
        &dry,
        spec(json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"})),
    )
    .await
    .shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueRequired spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"#]]);
    api.post(
        &dry,
        spec(json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"})),
    )
    .await
    .shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueNotSupported spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map""#]]);
    api.post(&dry, with(json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}))).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.validation.openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueForbidden spec.validation.openAPIV3Schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"#]]);
}

#[tokio::test]
async fn names_that_are_taken_are_not_accepted() {
    let api = Api::start();
    api.crd(widgets(&api)).await;
    let group = group(&api);
    let mut rival = widgets(&api);
    rival["metadata"]["name"] = json!(format!("gadgets.{group}"));
    rival["spec"]["names"] = json!({"plural": "gadgets", "singular": "widget", "kind": "Widget", "listKind": "GadgetList", "shortNames": ["wd"]});
    let path = format!("{DEFINITIONS}/gadgets.{group}");
    api.post(DEFINITIONS, rival).await.is(201);
    api.discard(path.clone());
    let judged = api
        .eventually(&path, |reply| !reply.at("/status/conditions").as_array().is_none_or(Vec::is_empty))
        .await;
    let conditions: Vec<String> = judged
        .at("/status/conditions")
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| {
            let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}: {}", text("type"), text("status"), text("reason"), text("message"))
        })
        .collect();
    expect![[r#"
        NamesAccepted False KindConflict: "Widget" is already in use
        Established False NotAccepted: not all names are accepted"#]]
    .assert_eq(&conditions.join("\n"));
    api.get(&format!("/apis/{group}/v1/gadgets")).await.shows(expect![[r#"
        404
        404 page not found
    "#]]);
}

#[tokio::test]
async fn an_object_is_served_in_every_version() {
    let api = Api::start();
    let ns = api.namespace().await;
    let group = group(&api);
    let mut definition = widgets(&api);
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    let mut old = second.clone();
    old["name"] = json!("v1alpha1");
    old["deprecated"] = json!(true);
    let mut unserved = second.clone();
    unserved["name"] = json!("v3");
    unserved["served"] = json!(false);
    definition["spec"]["versions"].as_array_mut().unwrap().extend([second, old, unserved]);
    let definition = api.crd(definition).await;
    assert_eq!(definition["status"]["storedVersions"], json!(["v1"]));
    let at = |version: &str| format!("/apis/{group}/{version}/namespaces/{ns}/widgets");
    let created = api.post(&at("v1"), widget(&api, "a")).await.is(201);
    let seen = api.get(&format!("{}/a", at("v2"))).await.is(200);
    assert_eq!(seen.text_at("/apiVersion"), format!("{group}/v2"));
    assert_eq!(seen.version(), created.version());
    assert_eq!(seen.at("/spec"), created.at("/spec"));
    let list = api.get(&at("v2")).await.is(200).json();
    assert_eq!(list["apiVersion"], format!("{group}/v2"));
    assert_eq!(list["items"][0]["apiVersion"], format!("{group}/v2"));
    let deprecated = api.get(&format!("{}/a", at("v1alpha1"))).await.is(200);
    expect![[r#"299 - "ID.example.com/v1alpha1 Widget is deprecated; use ID.example.com/v2 Widget""#]]
        .assert_eq(&deprecated.warnings().join("\n").replace(&api.id, "ID"));
    api.get(&format!("{}/a", at("v3"))).await.shows(expect![[r#"
        404
        404 page not found
    "#]]);
    let found = api.get(&format!("/apis/{group}")).await.is(200);
    assert_eq!(found.at("/preferredVersion/version"), "v2");
    let versions: Vec<Value> =
        found.at("/versions").as_array().unwrap().iter().map(|version| version["version"].clone()).collect();
    assert_eq!(versions, ["v2", "v1", "v1alpha1"]);
}

#[tokio::test]
async fn a_change_of_the_schema_takes_effect() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let mut body = widget(&api, "a");
    body["spec"]["weight"] = json!(7);
    let before = api.post(&path, body.clone()).await.is(201);
    assert_eq!(before.at("/spec/weight"), Value::Null);
    let definition = format!("{DEFINITIONS}/widgets.{}", group(&api));
    let weight = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/weight", "value": {"type": "integer", "default": 5}}]);
    let changed = api.patch(&definition, crate::harness::JSON_PATCH, weight).await.is(200);
    assert_eq!(changed.at("/metadata/generation"), 2);
    // Objects that were stored before get the new default on a read.
    api.eventually(&format!("{path}/a"), |reply| reply.at("/spec/weight") == 5).await;
    body["metadata"]["name"] = json!("b");
    let after = api.post(&path, body).await.is(201);
    assert_eq!(after.at("/spec/weight"), 7);
}

#[tokio::test]
async fn what_a_definition_may_not_change() {
    let api = Api::start();
    api.crd(widgets(&api)).await;
    let path = format!("{DEFINITIONS}/widgets.{}", group(&api));
    api.patch(&path, MERGE_PATCH, json!({"spec": {"scope": "Cluster"}})).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.scope: Invalid value: "Cluster": field is immutable
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.scope: Invalid value: "Cluster": field is immutable"#]]);
    api.patch(&path, MERGE_PATCH, json!({"spec": {"group": "other.example.com"}})).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.group: Invalid value: "other.example.com": field is immutable
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.group: Invalid value: "other.example.com": field is immutable"#]]);
    api.patch(&path, MERGE_PATCH, json!({"spec": {"names": {"plural": "others"}}})).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.names.plural: Invalid value: "others": field is immutable
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.names.plural: Invalid value: "others": field is immutable"#]]);
    api.patch(&path, MERGE_PATCH, json!({"spec": {"names": {"kind": "Other"}}})).await.shows(expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "widgets.ID.example.com" is invalid: spec.names.kind: Invalid value: "Other": field is immutable
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="widgets.ID.example.com"
        - FieldValueInvalid spec.names.kind: Invalid value: "Other": field is immutable"#]]);
}

#[tokio::test]
async fn a_definition_takes_its_objects_along() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    let mut guarded = widget(&api, "b");
    guarded["metadata"]["finalizers"] = json!(["example.com/guard"]);
    api.post(&path, guarded).await.is(201);
    let definition = format!("{DEFINITIONS}/widgets.{}", group(&api));
    let deleted = api.delete(&definition).await.is(200);
    assert_eq!(deleted.at("/metadata/finalizers"), json!(["customresourcecleanup.apiextensions.k8s.io"]));
    api.eventually(&path, |reply| reply.code == 200 && reply.names() == ["b"]).await;
    api.eventually(&definition, |reply| reply.body.windows(11).any(|window| window == b"Terminating")).await;
    let mut late = api.post(&path, widget(&api, "c")).await;
    for _ in 0..100 {
        if late.code != 201 {
            break;
        }
        api.delete(&format!("{path}/c")).await;
        late = api.post(&path, widget(&api, "c")).await;
    }
    late.shows(expect![[r#"
        403 Forbidden: widgets.ID.example.com "c" is forbidden: create not allowed while custom resource definition is terminating
        group="ID.example.com" kind="widgets" name="c""#]]);
    api.patch(&format!("{path}/b"), MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await.is(200);
    api.eventually(&definition, |reply| reply.code == 404).await;
    api.eventually(&path, |reply| reply.code == 404).await;
    api.eventually(&format!("/apis/{}", group(&api)), |reply| reply.code == 404).await;
}

#[tokio::test]
async fn a_cluster_wide_kind_has_no_namespace() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut definition = widgets(&api);
    definition["spec"]["scope"] = json!("Cluster");
    api.crd(definition).await;
    let group = group(&api);
    let created = api.post(&format!("/apis/{group}/v1/widgets"), widget(&api, "a")).await.is(201);
    assert_eq!(created.at("/metadata/namespace"), Value::Null);
    api.get(&format!("/apis/{group}/v1/namespaces/{ns}/widgets/a")).await.shows(expect![[r#"
        404
        404 page not found
    "#]]);
    let mut astray = widget(&api, "b");
    astray["metadata"]["namespace"] = json!(ns);
    api.post(&format!("/apis/{group}/v1/widgets"), astray).await.shows(expect![[r#"
        201
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "managedFields": [
              "api-test Update ID.example.com/v1: {'f:spec':{'.':{},'f:colour':{},'f:replicas':{},'f:size':{}}}"
            ],
            "name": "b",
            "resourceVersion": "RV",
            "uid": "UID"
          },
          "spec": {
            "colour": "red",
            "replicas": 1,
            "size": 3
          }
        }"#]]);
}

#[tokio::test]
async fn a_status_is_written_by_the_server() {
    let api = Api::start();
    let mut definition = widgets(&api);
    definition["status"] = json!({"conditions": [{"type": "Established", "status": "True", "reason": "me", "lastTransitionTime": null, "message": ""}], "acceptedNames": {"plural": "x", "kind": "X"}, "storedVersions": ["v9"]});
    let definition = api.crd(definition).await;
    assert_eq!(definition["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(definition["status"]["acceptedNames"]["plural"], "widgets");
}

#[tokio::test]
async fn a_definition_with_the_names_of_a_built_in_kind_leaves_its_objects_alone() {
    let api = Api::start();
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    let class = format!("{classes}/{}", api.id);
    api.post(classes, json!({"metadata": {"name": api.id}, "provisioner": "example.com/p"})).await.is(201);
    api.discard(class.clone());
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "metadata": {
            "name": "storageclasses.storage.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": "storage.k8s.io", "scope": "Cluster",
            "names": {"plural": "storageclasses", "kind": "StorageClass"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    api.post(definitions, definition).await.is(201);
    let path = format!("{definitions}/storageclasses.storage.k8s.io");
    api.delete(&path).await.is(200);
    api.eventually(&path, |reply| reply.code == 404).await;
    api.get(&class).await.is(200);
}

#[tokio::test]
async fn thousands_of_short_names_are_compared_quickly() {
    let api = Api::start();
    let start = Instant::now();
    for other in ["widget", "gadget"] {
        let mut definition: Value =
            serde_json::from_str(&widgets(&api).to_string().replace("widget", other)).unwrap();
        definition["spec"]["names"]["kind"] = json!(other);
        definition["spec"]["names"]["listKind"] = json!(format!("{other}s"));
        let names = (0..20_000).map(|number| json!(format!("{other}{number}")));
        definition["spec"]["names"]["shortNames"] = names.collect();
        api.crd(definition).await;
    }
    assert!(start.elapsed() < stretched(Duration::from_secs(8)), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_definition_of_a_protected_group_tells_whether_it_is_approved() {
    let api = Api::start();
    let group = format!("{}.k8s.io", api.id);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = |approval: &str| {
        json!({
            "metadata": {"name": format!("gadgets.{group}"), "annotations": {"api-approved.kubernetes.io": approval}},
            "spec": {
                "group": group, "scope": "Cluster", "names": {"plural": "gadgets", "kind": "Gadget"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        })
    };
    for approval in ["yes", "https://", "//a/b", "mailto:a", "https://a b"] {
        api.post(definitions, definition(approval)).await.is(422);
    }
    api.post(definitions, definition("http://example.com/1")).await.is(201);
    let path = format!("{definitions}/gadgets.{group}");
    api.discard(path.clone());
    let told = async |expected: &str| {
        let told = |reply: &Reply| {
            let conditions = reply.at("/status/conditions");
            let all = conditions.as_array().into_iter().flatten();
            let mut found =
                all.filter(|condition| condition["type"] == "KubernetesAPIApprovalPolicyConformant");
            found.next().map(|found| format!("{} {} {}", found["status"], found["reason"], found["message"]))
        };
        api.eventually(&path, |reply| told(reply).is_some_and(|told| told.replace('"', "") == expected))
            .await;
    };
    told("True ApprovedAnnotation approved in http://example.com/1").await;
    let reason = json!({"metadata": {"annotations": {"api-approved.kubernetes.io": "unapproved, a test"}}});
    api.patch(&path, MERGE_PATCH, reason).await.is(200);
    told("False UnapprovedAnnotation not approved: \\unapproved, a test\\").await;
}

#[tokio::test]
async fn formats_and_defaults_of_definitions_are_checked() {
    let api = Api::start();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let mut definition = widgets(&api);
    definition.pointer_mut(schema).unwrap()["size"]["format"] = json!("odd");
    definition["spec"]["versions"][0]["deprecationWarning"] = json!("old");
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
    let reply = api.post(path, definition.clone()).await.is(422);
    assert_eq!(reply.at("/details/causes/0/field"), "spec.versions[0].deprecationWarning");
    definition["spec"]["versions"][0]["deprecated"] = json!(true);
    let reply = api.post(path, definition.clone()).await.is(201);
    assert!(reply.warnings().iter().any(|text| text.contains("unrecognized format")), "{reply}");
    let list = json!({
        "type": "array", "x-kubernetes-list-type": "set",
        "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}}
    });
    definition.pointer_mut(schema).unwrap()["list"] = list;
    let reply = api.post(path, definition.clone()).await.is(201);
    let warning = r#"x-kubernetes-list-type: set for items of type \"object\" is not supported by server-side apply or CEL validation rules"#;
    assert!(reply.warnings().iter().any(|text| text.contains(warning)), "{reply}");
    definition.pointer_mut(schema).unwrap()["size"] = json!({"type": "array", "items": {"required": 1}});
    let reply = api.post(path, definition).await.is(400);
    assert!(reply.text_at("/message").ends_with("properties.items.required of type []string"), "{reply}");
}

fn with_ca_bundle(api: &Api, bundle: &str) -> Value {
    let mut definition = widgets(api);
    let client = json!({"url": "https://127.0.0.1:9/convert", "caBundle": bundle});
    let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": client});
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": webhook});
    definition
}

/// Waits until the condition `Established` has the reason.
async fn established_because(api: &Api, path: &str, reason: &str) -> Value {
    let condition = |reply: &Reply| {
        let conditions = reply.at("/status/conditions").as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == "Established").unwrap_or_default()
    };
    condition(&api.eventually(path, |reply| condition(reply)["reason"] == reason).await)
}

#[tokio::test]
async fn a_definition_waits_for_a_valid_certificate_of_its_webhook() {
    let api = Api::start();
    let path = format!("{DEFINITIONS}/widgets.{}", group(&api));
    api.post(DEFINITIONS, with_ca_bundle(&api, "Cg==")).await.is(201);
    api.discard(path.clone());
    let condition = established_because(&api, &path, "InvalidCABundle").await;
    assert_eq!(condition["status"], "False");
    assert_eq!(condition["message"], "The conversion webhook CABundle is invalid");
    let bundle =
        |bundle: &str| json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}});
    // Another invalid certificate is accepted, because the definition is not established yet.
    api.patch(&path, MERGE_PATCH, bundle("eA==")).await.is(200);
    established_because(&api, &path, "InvalidCABundle").await;
    api.patch(&path, MERGE_PATCH, bundle("")).await.is(200);
    assert_eq!(established_because(&api, &path, "InitialNamesAccepted").await["status"], "True");
    let refused = async |text: &str, why: &str| {
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        let reply = api.patch(&path, MERGE_PATCH, bundle(&encoded)).await.is(422);
        let field = "spec.conversion.webhookClientConfig.caBundle: Invalid value";
        let why = format!("{field}: \"{encoded}\": unable to load root certificates: {why}");
        assert!(reply.text_at("/message").ends_with(&why), "{reply}");
    };
    refused("x", "unable to parse bytes as PEM block").await;
    let pem = |tag: &str| format!("-----BEGIN {tag}-----\nMTIz\n-----END {tag}-----\n");
    refused(&pem("CERTIFICATE"), "failed to parse certificate: x509: malformed certificate").await;
    refused(&pem("KEY"), "no valid certificate authority data seen").await;
}

#[tokio::test]
async fn selectable_fields_are_checked_by_the_schema() {
    let api = Api::start();
    let try_fields = async |paths: &[String]| {
        let mut definition = widgets(&api);
        let fields: serde_json::Map<String, Value> =
            (0..9).map(|index| (format!("f{index}"), json!({"type": "string"}))).collect();
        let mut spec = json!({"type": "object", "properties": fields});
        spec["properties"]["a.b"] = json!({"type": "string"});
        spec["properties"]["object"] = json!({"type": "object"});
        spec["properties"]["map"] = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let metadata = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let version = &mut definition["spec"]["versions"][0];
        version["schema"]["openAPIV3Schema"]["properties"] = json!({"spec": spec, "metadata": metadata});
        version["selectableFields"] = paths.iter().map(|path| json!({"jsonPath": path})).collect();
        let reply = api.post(&format!("{DEFINITIONS}?dryRun=All"), definition).await;
        let causes = reply.at("/details/causes").as_array().cloned().unwrap_or_default();
        let causes = causes.iter().map(|cause| {
            format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap())
        });
        causes.collect::<Vec<_>>()
    };
    let eight: Vec<String> = (0..8).map(|index| format!(".spec.f{index}")).collect();
    assert_eq!(try_fields(&eight).await, Vec::<String>::new());
    let nine: Vec<String> = (0..9).map(|index| format!(".spec.f{index}")).collect();
    assert_eq!(try_fields(&nine).await, ["spec.selectableFields: Too many: 9: must have at most 8 items"]);
    let twice = [".spec.map.x".to_owned(), ".spec.map.x".to_owned()];
    assert_eq!(
        try_fields(&twice).await,
        [r#"spec.selectableFields[1].jsonPath: Duplicate value: ".spec.map.x""#]
    );
    let kind = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
    let metadata = "must not point to fields in metadata";
    for (path, reasons) in [
        (".metadata.name", vec![metadata]),
        (".metadata", vec![metadata, kind]),
        ("['spec'].f0", vec!["is an invalid path: array notation is not allowed"]),
        (".spec['a.b']", vec!["is an invalid path: array notation is not allowed"]),
        (".spec.map", vec![kind]),
        (".spec.object", vec![kind]),
        (".spec.f0.x", vec!["is an invalid path: does not refer to a valid field"]),
        (".spec..f0", vec!["is an invalid path: does not refer to a valid field"]),
        (".spec.", vec!["is an invalid path: unexpected end of JSON path"]),
        (".spec.f0]", vec!["is an invalid path: expected [ or . but got: ]"]),
        ("spec.f0", vec!["is an invalid path: expected [ or . but got: spec"]),
    ] {
        let field = format!("spec.selectableFields[0].jsonPath: Invalid value: \"{path}\"");
        let expected: Vec<String> = reasons.iter().map(|reason| format!("{field}: {reason}")).collect();
        assert_eq!(try_fields(&[path.to_owned()]).await, expected);
    }
}

#[tokio::test]
async fn a_schema_of_a_kind_with_a_status_has_few_keywords_at_the_root() {
    let api = Api::start();
    let try_root = async |keyword: &str, value: Value, subresources: Value| {
        let mut definition = widgets(&api);
        let version = &mut definition["spec"]["versions"][0];
        version["subresources"] = subresources;
        version["schema"]["openAPIV3Schema"][keyword] = value;
        let reply = api.post(&format!("{DEFINITIONS}?dryRun=All"), definition).await;
        let why = "fields are allowed at the root of the schema if the status subresource is enabled";
        assert!(reply.code == 201 || reply.text_at("/message").contains(why), "{reply}");
        (keyword.to_owned(), reply.code)
    };
    let status = json!({"status": {}});
    for (keyword, value) in [
        ("maxProperties", json!(3)),
        ("minProperties", json!(0)),
        ("enum", json!([1])),
        ("allOf", json!([{}])),
        ("not", json!({})),
        ("x-kubernetes-map-type", json!("atomic")),
    ] {
        assert_eq!(try_root(keyword, value.clone(), status.clone()).await, (keyword.to_owned(), 422));
    }
    for (keyword, value) in [
        ("title", json!("t")),
        ("description", json!("d")),
        ("required", json!(["spec"])),
        ("nullable", json!(false)),
        ("example", json!(1)),
        ("x-kubernetes-preserve-unknown-fields", json!(true)),
        ("x-kubernetes-validations", json!([{"rule": "true"}])),
    ] {
        assert_eq!(try_root(keyword, value, status.clone()).await, (keyword.to_owned(), 201));
    }
    assert_eq!(try_root("maxProperties", json!(3), json!({})).await, ("maxProperties".to_owned(), 201));
}

#[tokio::test]
async fn a_definition_is_served_although_its_client_leaves() {
    // Always embedded: the test drops the request at each point where the request waits.
    let api = Api::embedded(&Server::builder().build().unwrap());
    let mut watches = Vec::new();
    // A write for many watches lets the watches run before the reply.
    for _ in 0..20 {
        watches.push(api.watch(DEFINITIONS).await);
    }
    for polls in 1..12 {
        let mut definition = widgets(&api);
        let (plural, kind) = (format!("widgets{polls}"), format!("Widget{polls}"));
        let served = group(&api);
        definition["metadata"]["name"] = format!("{plural}.{served}").into();
        definition["spec"]["names"] = json!({"plural": plural, "kind": kind});
        let mut request = Box::pin(api.post(DEFINITIONS, definition));
        for _ in 0..polls {
            if futures::poll!(&mut request).is_ready() {
                break;
            }
        }
        drop(request);
        if api.get(&format!("{DEFINITIONS}/{plural}.{served}")).await.code == 200 {
            api.eventually(&format!("/apis/{served}/v1/{plural}"), |reply| reply.code == 200).await;
        }
    }
}
