//! APIServices.

use expect_test::expect;
use serde_json::{Value, json};

use super::{Objects, named};
use crate::fixtures::{group, widgets};
use crate::harness::{Api, MERGE_PATCH, Reply};

const COLLECTION: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const NAME: &str = "v1.checked.example.com";

/// A service of an extension server, with the fields of `change`.
fn service(change: &Value) -> Value {
    let mut spec = json!({
        "group": "checked.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
        "insecureSkipTLSVerify": true, "service": {"name": "s", "namespace": "ns"},
    });
    for (field, value) in change.as_object().unwrap() {
        spec[field] = value.clone();
    }
    named(NAME, json!({"spec": spec}))
}

#[tokio::test]
async fn group_version_and_priorities_of_a_service_are_checked() {
    let api = Api::start();
    let mut seen = Objects::new(&api, COLLECTION);
    seen.try_create("no spec", named(NAME, json!({}))).await;
    seen.try_create("odd names", service(&json!({"group": "A b", "version": "A_b"}))).await;
    seen.try_create("no group", service(&json!({"group": ""}))).await;
    let low = json!({"groupPriorityMinimum": 0, "versionPriority": -1});
    seen.try_create("low priorities", service(&low)).await;
    let high = json!({"groupPriorityMinimum": 20_001, "versionPriority": 1_001});
    seen.try_create("high priorities", service(&high)).await;
    let most = json!({"groupPriorityMinimum": 20_000, "versionPriority": 1_000});
    seen.try_create("highest priorities", service(&most)).await;
    seen.are(expect![[r#"
        no spec: 422 Invalid: APIService.apiregistration.k8s.io "v1.checked.example.com" is invalid: [as below]
        group="apiregistration.k8s.io" kind="APIService" name="v1.checked.example.com"
        - FieldValueInvalid metadata.name: Invalid value: "v1.checked.example.com": must be `spec.version+"."+spec.group`: "."
        - FieldValueInvalid spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000
        - FieldValueInvalid spec.version: Invalid value: "": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
        - FieldValueInvalid spec.versionPriority: Invalid value: 0: must be positive and less than 1000
        - FieldValueRequired spec.group: Required value: only v1 may have an empty group and it better be legacy kube
        odd names: 422 Invalid: APIService.apiregistration.k8s.io "v1.checked.example.com" is invalid: [as below]
        group="apiregistration.k8s.io" kind="APIService" name="v1.checked.example.com"
        - FieldValueInvalid metadata.name: Invalid value: "v1.checked.example.com": must be `spec.version+"."+spec.group`: "A_b.A b"
        - FieldValueInvalid spec.group: Invalid value: "A b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.version: Invalid value: "A_b": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
        no group: 422 Invalid: APIService.apiregistration.k8s.io "v1.checked.example.com" is invalid: metadata.name: Invalid value: "v1.checked.example.com": must be `spec.version+"."+spec.group`: "v1."
        group="apiregistration.k8s.io" kind="APIService" name="v1.checked.example.com"
        - FieldValueInvalid metadata.name: Invalid value: "v1.checked.example.com": must be `spec.version+"."+spec.group`: "v1."
        low priorities: 422 Invalid: APIService.apiregistration.k8s.io "v1.checked.example.com" is invalid: [as below]
        group="apiregistration.k8s.io" kind="APIService" name="v1.checked.example.com"
        - FieldValueInvalid spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000
        - FieldValueInvalid spec.versionPriority: Invalid value: -1: must be positive and less than 1000
        high priorities: 422 Invalid: APIService.apiregistration.k8s.io "v1.checked.example.com" is invalid: [as below]
        group="apiregistration.k8s.io" kind="APIService" name="v1.checked.example.com"
        - FieldValueInvalid spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000
        - FieldValueInvalid spec.versionPriority: Invalid value: 1001: must be positive and less than 1000
        highest priorities: 201 {"spec":{"group":"checked.example.com","groupPriorityMinimum":20000,"insecureSkipTLSVerify":true,"service":{"name":"s","namespace":"ns","port":443},"version":"v1","versionPriority":1000},"status":{}}
    "#]]);
}

#[tokio::test]
async fn the_connection_of_a_service_is_checked() {
    let api = Api::start();
    let mut seen = Objects::new(&api, COLLECTION);
    seen.try_create("no names", service(&json!({"service": {}}))).await;
    let port = json!({"service": {"name": "s", "namespace": "ns", "port": 70_000}});
    seen.try_create("odd port", service(&port)).await;
    seen.try_create("insecure with a bundle", service(&json!({"caBundle": "aGk="}))).await;
    seen.try_create("insecure without a service", service(&json!({"service": null}))).await;
    let bundle = json!({"service": null, "caBundle": "aGk=", "insecureSkipTLSVerify": false});
    seen.try_create("a bundle without a service", service(&bundle)).await;
    seen.are(expect![[r#"
        no names: 422 Invalid: APIService.apiregistration.k8s.io "v1.checked.example.com" is invalid: [as below]
        group="apiregistration.k8s.io" kind="APIService" name="v1.checked.example.com"
        - FieldValueRequired spec.service.name: Required value
        - FieldValueRequired spec.service.namespace: Required value
        odd port: 422 Invalid: APIService.apiregistration.k8s.io "v1.checked.example.com" is invalid: spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive
        group="apiregistration.k8s.io" kind="APIService" name="v1.checked.example.com"
        - FieldValueInvalid spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive
        insecure with a bundle: 422 Invalid: APIService.apiregistration.k8s.io "v1.checked.example.com" is invalid: spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present
        group="apiregistration.k8s.io" kind="APIService" name="v1.checked.example.com"
        - FieldValueInvalid spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present
        insecure without a service: 422 Invalid: APIService.apiregistration.k8s.io "v1.checked.example.com" is invalid: spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify
        group="apiregistration.k8s.io" kind="APIService" name="v1.checked.example.com"
        - FieldValueInvalid spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify
        a bundle without a service: 422 Invalid: APIService.apiregistration.k8s.io "v1.checked.example.com" is invalid: spec.caBundle: Invalid value: "2 bytes": local APIServices may not have a caBundle
        group="apiregistration.k8s.io" kind="APIService" name="v1.checked.example.com"
        - FieldValueInvalid spec.caBundle: Invalid value: "2 bytes": local APIServices may not have a caBundle
    "#]]);
}

/// Returns whether the APIService has only the condition of a local group version.
fn is_local(reply: &Reply) -> bool {
    let mut condition = reply.at("/status/conditions/0");
    let expected = json!({
        "type": "Available", "status": "True", "reason": "Local",
        "message": "Local APIServices are always available",
    });
    condition.as_object_mut().is_some_and(|fields| fields.remove("lastTransitionTime").is_some())
        && condition == expected
        && reply.at("/status/conditions/1").is_null()
}

#[tokio::test]
async fn a_service_without_an_extension_server_is_available() {
    let api = Api::start();
    let local = |name: &str| {
        let group = format!("{name}.{}", group(&api));
        let spec = json!({"group": group, "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1});
        named(format!("v1.{group}"), json!({"spec": spec}))
    };
    let created = api.post(COLLECTION, local("a")).await.is(201);
    assert!(is_local(&created), "{created}");
    // An extension server that is no longer there.
    let mut remote = local("b");
    remote["spec"]["service"] = json!({"name": "s", "namespace": "ns"});
    let created = api.post(COLLECTION, remote).await.is(201);
    let path = format!("{COLLECTION}/{}", created.text_at("/metadata/name"));
    let failed = json!([{
        "type": "Available", "status": "False", "reason": "FailedDiscoveryCheck", "message": "gone",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }]);
    api.patch(&format!("{path}/status"), MERGE_PATCH, json!({"status": {"conditions": failed}}))
        .await
        .is(200);
    api.patch(&path, MERGE_PATCH, json!({"spec": {"service": null}})).await.is(200);
    api.eventually(&path, is_local).await;
}

#[tokio::test]
async fn the_service_of_a_definition_is_created_again() {
    let api = Api::start();
    let definition = widgets(&api);
    api.crd(definition.clone()).await;
    let version = definition["spec"]["versions"][0]["name"].as_str().unwrap();
    let path = format!("{COLLECTION}/{version}.{}", group(&api));
    let first = api.eventually(&path, |reply| reply.code == 200).await.text_at("/metadata/uid");
    api.delete(&path).await.is(200);
    let is_new = |reply: &Reply| reply.code == 200 && reply.text_at("/metadata/uid") != first;
    let second = api.eventually(&path, is_new).await;
    assert!(is_local(&second), "{second}");
}
