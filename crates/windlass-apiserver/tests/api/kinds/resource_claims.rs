//! ResourceClaims and ResourceClaimTemplates.

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};

use super::{Objects, named};
use crate::harness::{Api, MERGE_PATCH};

async fn claims(api: &Api) -> String {
    format!("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims", api.namespace().await)
}

fn claim(devices: Value) -> Value {
    named("a", json!({"spec": {"devices": devices}}))
}

#[tokio::test]
async fn the_requests_of_a_claim_are_checked() {
    let api = Api::start();
    let mut seen = Objects::new(&api, claims(&api).await);
    let request = |exactly: Value| claim(json!({"requests": [{"name": "r", "exactly": exactly}]}));
    seen.try_create("a request", request(json!({"deviceClassName": "c"}))).await;
    seen.try_create("no class", request(json!({"allocationMode": "All", "count": 1}))).await;
    seen.try_create("odd class", request(json!({"deviceClassName": "A_", "count": -1}))).await;
    seen.try_create("odd mode", request(json!({"deviceClassName": "c", "allocationMode": "Some"}))).await;
    let tolerations = json!([
        {"key": "a b", "operator": "Exists", "value": "v"}, {"operator": "In", "effect": "None"},
        {"value": "c d", "effect": "Never"}, {"key": "a", "tolerationSeconds": 5}
    ]);
    seen.try_create("tolerations", request(json!({"deviceClassName": "c", "tolerations": tolerations})))
        .await;
    seen.try_create(
        "selector",
        request(json!({"deviceClassName": "c", "selectors": [{}, {"cel": {"expression": "1"}}]})),
    )
    .await;
    let derived = json!({"deviceClassName": "c", "derivedAttributes": [{"name": "a/b", "expression": "1"}]});
    seen.try_create("derived attributes", request(derived)).await;
    let sub =
        |name: &str| json!({"name": name, "deviceClassName": "c", "tolerations": [{"operator": "Exists"}]});
    seen.try_create(
        "names",
        claim(json!({"requests": [
            {"name": "a", "exactly": {"deviceClassName": "c", "count": 2}},
            {"name": "a", "firstAvailable": [sub("x"), sub("x"), {"name": "A"}]},
            {"name": "b/c"},
        ]})),
    )
    .await;
    let odd = json!({"allocationMode": "Some", "selectors": [{}], "tolerations": [{"operator": "In"}]});
    let both = json!({"name": "b", "exactly": odd, "firstAvailable": [{"name": "A"}, {"name": "A"}]});
    seen.try_create("both", claim(json!({"requests": [both]}))).await;
    let subs: Vec<Value> = (0..9).map(|n| sub(&format!("s{n}"))).collect();
    seen.try_create("alternatives", claim(json!({"requests": [{"name": "b", "firstAvailable": subs}]})))
        .await;
    let many: Vec<Value> =
        (0..33).map(|n| json!({"name": format!("r{n}"), "exactly": {"deviceClassName": "c"}})).collect();
    seen.try_create(
        "too many",
        claim(json!({"requests": many, "constraints": vec![json!({}); 33], "config": vec![json!({}); 33]})),
    )
    .await;
    seen.are(expect![[r#"
        a request: 201 {"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"c"},"name":"r"}]}},"status":{}}
        no class: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueInvalid spec.devices.requests[0].exactly.count: Invalid value: 1: must not be specified when allocationMode is 'All'
        - FieldValueRequired spec.devices.requests[0].exactly.deviceClassName: Required value
        odd class: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueInvalid spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero
        - FieldValueInvalid spec.devices.requests[0].exactly.deviceClassName: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        odd mode: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueNotSupported spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"
        tolerations: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueInvalid spec.devices.requests[0].exactly.tolerations[0].key: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "v": must be empty for operator `Exists`
        - FieldValueInvalid spec.devices.requests[0].exactly.tolerations[2].value: Invalid value: "c d": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        - FieldValueNotSupported spec.devices.requests[0].exactly.tolerations[1].operator: Unsupported value: "In": supported values: "Equal", "Exists"
        - FieldValueNotSupported spec.devices.requests[0].exactly.tolerations[2].effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "None"
        selector: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueInvalid spec.devices.requests[0].exactly.selectors[1].cel.expression: Invalid value: "1": must evaluate to bool or the unknown type, not int
        - FieldValueRequired spec.devices.requests[0].exactly.selectors[0].cel: Required value
        derived attributes: 201 {"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"c"},"name":"r"}]}},"status":{}}
        names: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueDuplicate spec.devices.requests[1].firstAvailable[1]: Duplicate value: {"name":"x","deviceClassName":"c","allocationMode":"ExactCount","count":1,"tolerations":[{"operator":"Exists"}]}
        - FieldValueDuplicate spec.devices.requests[1]: Duplicate value: {"name":"a","firstAvailable":[{"name":"x","deviceClassName":"c","allocationMode":"ExactCount","count":1,"tolerations":[{"operator":"Exists"}]},{"name":"x","deviceClassName":"c","allocationMode":"ExactCount","count":1,"tolerations":[{"operator":"Exists"}]},{"name":"A","deviceClassName":"","allocationMode":"ExactCount","count":1}]}
        - FieldValueInvalid spec.devices.requests[1].firstAvailable[2].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        - FieldValueInvalid spec.devices.requests[2].name: Invalid value: "b/c": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        - FieldValueRequired spec.devices.requests[1].firstAvailable[2].deviceClassName: Required value
        - FieldValueRequired spec.devices.requests[2]: Required value: exactly one of `exactly` or `firstAvailable` is required
        both: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueDuplicate spec.devices.requests[0].firstAvailable[1]: Duplicate value: {"name":"A","deviceClassName":"","allocationMode":"ExactCount","count":1}
        - FieldValueInvalid spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set
        - FieldValueNotSupported spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"
        - FieldValueNotSupported spec.devices.requests[0].exactly.tolerations[0].operator: Unsupported value: "In": supported values: "Equal", "Exists"
        - FieldValueRequired spec.devices.requests[0].firstAvailable[0].deviceClassName: Required value
        - FieldValueRequired spec.devices.requests[0].firstAvailable[1].deviceClassName: Required value
        alternatives: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: spec.devices.requests[0].firstAvailable: Too many: 9: must have at most 8 items
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueTooMany spec.devices.requests[0].firstAvailable: Too many: 9: must have at most 8 items
        too many: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueTooMany spec.devices.config: Too many: 33: must have at most 32 items
        - FieldValueTooMany spec.devices.constraints: Too many: 33: must have at most 32 items
        - FieldValueTooMany spec.devices.requests: Too many: 33: must have at most 32 items
    "#]]);
}

#[tokio::test]
async fn the_constraints_and_configurations_of_a_claim_name_requests() {
    let api = Api::start();
    let mut seen = Objects::new(&api, claims(&api).await);
    let requests = json!([
        {"name": "r", "exactly": {"deviceClassName": "c"}},
        {"name": "s", "firstAvailable": [{"name": "x", "deviceClassName": "c"}]},
    ]);
    let names = |list: &[&str]| json!({"requests": list, "matchAttribute": "example.com/a"});
    let constraints = json!([
        {}, names(&["r", "s", "s/x"]), names(&["r", "r", "t", "s/y", "r/x", "s/x/y", "A"]),
        {"matchAttribute": "a"}, {"matchAttribute": "/a"}, {"distinctAttribute": "A_/"}, {"matchAttribute": "a/b/c"},
        {"distinctAttribute": "a.b/c-d"}, {"matchAttribute": format!("{}/{}", "a".repeat(64), "b".repeat(33))},
        {"matchAttribute": "a/b", "distinctAttribute": "a/b"},
    ]);
    seen.try_create("constraints", claim(json!({"requests": requests, "constraints": constraints}))).await;
    let config = json!([{"requests": ["r", "r", "t"]}, {"opaque": {"driver": "", "parameters": "x"}}]);
    seen.try_create("config", claim(json!({"requests": requests, "config": config}))).await;
    seen.are(expect![[r#"
        constraints: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueDuplicate spec.devices.constraints[2].requests[1]: Duplicate value: "r"
        - FieldValueInvalid spec.devices.constraints[2].requests[2]: Invalid value: "t": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
        - FieldValueInvalid spec.devices.constraints[2].requests[3]: Invalid value: "s/y": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
        - FieldValueInvalid spec.devices.constraints[2].requests[4]: Invalid value: "r/x": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
        - FieldValueInvalid spec.devices.constraints[2].requests[5]: Invalid value: "s/x/y": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
        - FieldValueInvalid spec.devices.constraints[2].requests[6]: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        - FieldValueInvalid spec.devices.constraints[2].requests[6]: Invalid value: "A": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
        - FieldValueInvalid spec.devices.constraints[3].matchAttribute: Invalid value: "a": a fully qualified name must be a domain and a name separated by a slash
        - FieldValueInvalid spec.devices.constraints[4].matchAttribute: Invalid value: "": prefix must not be empty
        - FieldValueInvalid spec.devices.constraints[5].distinctAttribute: Invalid value: "": name must not be empty
        - FieldValueInvalid spec.devices.constraints[5].distinctAttribute: Invalid value: "A_": prefix: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.devices.constraints[7].distinctAttribute: Invalid value: "c-d": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')
        - FieldValueRequired spec.devices.constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set
        - FieldValueTooLong spec.devices.constraints[8].matchAttribute: Too long: may not be more than 32 bytes
        - FieldValueTooLong spec.devices.constraints[8].matchAttribute: Too long: may not be more than 63 bytes
        config: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueDuplicate spec.devices.config[0].requests[1]: Duplicate value: "r"
        - FieldValueInvalid spec.devices.config[0].requests[2]: Invalid value: "t": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
        - FieldValueInvalid spec.devices.config[1].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object
        - FieldValueRequired spec.devices.config[0].opaque: Required value
        - FieldValueRequired spec.devices.config[1].opaque.driver: Required value
    "#]]);
}

#[tokio::test]
async fn the_spec_of_a_claim_is_immutable() {
    let api = Api::start();
    let collection = claims(&api).await;
    let mut seen = Objects::new(&api, collection.as_str());
    seen.create("create", claim(json!({"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]})))
        .await;
    seen.change("labels", "a", json!({"metadata": {"labels": {"a": "b"}}})).await;
    seen.change("spec", "a", json!({"spec": {"devices": {"requests": []}}})).await;
    seen.are(expect![[r#"
        create: 201 {"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"c"},"name":"r"}]}},"status":{}}
        labels: 200 {"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"c"},"name":"r"}]}},"status":{}}
        spec: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: spec: Invalid value: null: field is immutable
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueInvalid spec: Invalid value: null: field is immutable
    "#]]);
    let templates = collection.replace("claims", "claimtemplates");
    let mut seen = Objects::new(&api, templates);
    let spec = json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}});
    let metadata = json!({"name": "a", "labels": {"a": "b c"}, "finalizers": ["a/b"]});
    seen.try_create("metadata", named("a", json!({"spec": {"metadata": metadata, "spec": spec}}))).await;
    seen.try_create(
        "request",
        named("a", json!({"spec": {"spec": {"devices": {"requests": [{"name": "r"}]}}}})),
    )
    .await;
    seen.create("create", named("a", json!({"spec": {"spec": spec}}))).await;
    seen.change("labels", "a", json!({"metadata": {"labels": {"a": "b"}}})).await;
    seen.change("spec", "a", json!({"spec": {"spec": {"devices": {"requests": [{"name": "R"}]}}}})).await;
    seen.are(expect![[r#"
        metadata: 422 Invalid: ResourceClaimTemplate.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaimTemplate" name="a"
        - FieldValueForbidden spec.metadata.finalizers: Forbidden: cannot be set
        - FieldValueForbidden spec.metadata.name: Forbidden: cannot be set
        - FieldValueInvalid spec.metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        request: 422 Invalid: ResourceClaimTemplate.resource.k8s.io "a" is invalid: spec.spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required
        group="resource.k8s.io" kind="ResourceClaimTemplate" name="a"
        - FieldValueRequired spec.spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required
        create: 201 {"spec":{"metadata":{},"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"c"},"name":"r"}]}}}}
        labels: 200 {"spec":{"metadata":{},"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"c"},"name":"r"}]}}}}
        spec: 422 Invalid: ResourceClaimTemplate.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaimTemplate" name="a"
        - FieldValueInvalid spec.spec.devices.requests[0].name: Invalid value: "R": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        - FieldValueInvalid spec: Invalid value: (the object): field is immutable
        - FieldValueRequired spec.spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required
    "#]]);
}

#[tokio::test]
async fn access_of_administrators_needs_a_label_of_the_namespace() {
    let api = Api::start();
    let mut seen = Objects::new(&api, claims(&api).await);
    let devices = json!({"requests": [
        {"name": "q", "exactly": {"deviceClassName": "c"}},
        {"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": true}},
    ]});
    seen.try_create("without the label", claim(devices)).await;
    seen.are(expect![[r#"
        without the label: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: spec.devices.requests[1].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueForbidden spec.devices.requests[1].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace
    "#]]);
}

fn result(device: &str) -> Value {
    json!({"request": "r", "driver": "d.x", "pool": "p", "device": device})
}

fn allocation(results: Value) -> Value {
    json!({"devices": {"results": results}})
}

#[tokio::test]
async fn the_allocation_of_a_claim_is_checked() {
    let api = Api::start();
    let mut seen = Objects::new(&api, claims(&api).await);
    let requests = json!([
        {"name": "r", "exactly": {"deviceClassName": "c"}},
        {"name": "s", "firstAvailable": [{"name": "x", "deviceClassName": "c"}]},
    ]);
    seen.create("create", claim(json!({"requests": requests}))).await;
    let mut full = result("d");
    full["shareID"] = json!("x");
    full["tolerations"] =
        json!([{"key": "a b", "operator": "Foo", "effect": "x"}, {"operator": "Exists", "value": "x"}]);
    full["bindingConditions"] = json!(["a b", "a", "a"]);
    full["bindingFailureConditions"] = json!(["a"]);
    let odd = json!([
        full,
        {"request": "q/x/y", "driver": "A_", "pool": "/B", "device": ""},
        {"request": "s/y", "driver": "", "pool": "", "device": "a.b"},
        {"request": "S", "driver": "x", "pool": "p".repeat(254), "device": "a", "shareID": "0AAAAAAA-0000-0000-0000-000000000000"},
    ]);
    let status = |status: Value| json!({"status": status});
    seen.change("results", "a/status", status(json!({"allocation": allocation(odd)}))).await;
    let config = json!([
        {"source": "x", "opaque": {"driver": "", "parameters": 5}}, {"requests": ["r", "r", "t"]},
        {"source": "FromClass", "opaque": {"driver": "d", "parameters": {}}},
    ]);
    let odd = json!({"devices": {"config": config}, "nodeSelector": {"nodeSelectorTerms": []}});
    seen.change("config", "a/status", status(json!({"allocation": odd}))).await;
    let mut admin = result("d");
    admin["adminAccess"] = json!(true);
    seen.change("admin", "a/status", status(json!({"allocation": allocation(json!([admin]))}))).await;
    let long: Vec<Value> = (0..33).map(|n| result(&format!("d{n}"))).collect();
    seen.change("too many", "a/status", status(json!({"allocation": allocation(json!(long))}))).await;
    let mut skipped = result("d");
    skipped["skipNodeOperations"] = json!(["x"]);
    skipped["consumedCapacity"] = json!({"a": "1000m"});
    seen.change(
        "allocation",
        "a/status",
        status(json!({"allocation": allocation(json!([skipped, result("e")]))})),
    )
    .await;
    seen.change("other", "a/status", status(json!({"allocation": allocation(json!([result("f")]))}))).await;
    let device = |name: &str| json!({"driver": "d.x", "pool": "p", "device": name});
    seen.change("devices", "a/status", status(json!({"devices": [device("d"), device("e")]}))).await;
    seen.change("end", "a/status", status(json!({"allocation": null}))).await;
    seen.are(expect![[r#"
        create: 201 {"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"c"},"name":"r"},{"firstAvailable":[{"allocationMode":"ExactCount","count":1,"deviceClassName":"c","name":"x"}],"name":"s"}]}},"status":{}}
        results: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueDuplicate status.allocation.devices.results[0].bindingConditions[2]: Duplicate value: "a"
        - FieldValueInvalid status.allocation.devices.results[0].bindingConditions[0]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid status.allocation.devices.results[0].bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not overlap with bindingConditions
        - FieldValueInvalid status.allocation.devices.results[0].shareID: Invalid value: "x": must be a lowercase UUID in 8-4-4-4-12 format
        - FieldValueInvalid status.allocation.devices.results[0].tolerations[0].key: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid status.allocation.devices.results[0].tolerations[1].value: Invalid value: "x": must be empty for operator `Exists`
        - FieldValueInvalid status.allocation.devices.results[1].device: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        - FieldValueInvalid status.allocation.devices.results[1].driver: Invalid value: "A_": an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid status.allocation.devices.results[1].pool: Invalid value: "/B": segment 0: must not be empty
        - FieldValueInvalid status.allocation.devices.results[1].pool: Invalid value: "B": segment 1: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid status.allocation.devices.results[1].request: Invalid value: "q/x/y": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
        - FieldValueInvalid status.allocation.devices.results[2].device: Invalid value: "a.b": must not contain dots
        - FieldValueInvalid status.allocation.devices.results[2].request: Invalid value: "s/y": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
        - FieldValueInvalid status.allocation.devices.results[3].pool: Invalid value: "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp": segment 0: must be no more than 253 bytes
        - FieldValueInvalid status.allocation.devices.results[3].request: Invalid value: "S": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        - FieldValueInvalid status.allocation.devices.results[3].request: Invalid value: "S": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
        - FieldValueInvalid status.allocation.devices.results[3].shareID: Invalid value: "0AAAAAAA-0000-0000-0000-000000000000": must be a lowercase UUID in 8-4-4-4-12 format
        - FieldValueNotSupported status.allocation.devices.results[0].tolerations[0].effect: Unsupported value: "x": supported values: "NoExecute", "NoSchedule", "None"
        - FieldValueNotSupported status.allocation.devices.results[0].tolerations[0].operator: Unsupported value: "Foo": supported values: "Equal", "Exists"
        - FieldValueRequired status.allocation.devices.results[2].driver: Required value
        - FieldValueRequired status.allocation.devices.results[2].pool: Required value
        - FieldValueTooLong status.allocation.devices.results[3].pool: Too long: may not be more than 253 bytes
        config: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueDuplicate status.allocation.devices.config[1].requests[1]: Duplicate value: "r"
        - FieldValueInvalid status.allocation.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object
        - FieldValueInvalid status.allocation.devices.config[1].requests[2]: Invalid value: "t": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'
        - FieldValueNotSupported status.allocation.devices.config[0].source: Unsupported value: "x": supported values: "FromClaim", "FromClass"
        - FieldValueRequired status.allocation.devices.config[0].opaque.driver: Required value
        - FieldValueRequired status.allocation.devices.config[1].opaque: Required value
        - FieldValueRequired status.allocation.devices.config[1].source: Required value
        - FieldValueRequired status.allocation.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term
        admin: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: status.allocation.devices.results[0].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueForbidden status.allocation.devices.results[0].adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace
        too many: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: status.allocation.devices.results: Too many: 33: must have at most 32 items
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueTooMany status.allocation.devices.results: Too many: 33: must have at most 32 items
        allocation: 200 {"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"c"},"name":"r"},{"firstAvailable":[{"allocationMode":"ExactCount","count":1,"deviceClassName":"c","name":"x"}],"name":"s"}]}},"status":{"allocation":{"devices":{"results":[{"consumedCapacity":{"a":"1"},"device":"d","driver":"d.x","pool":"p","request":"r"},{"device":"e","driver":"d.x","pool":"p","request":"r"}]}}}}
        other: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: status.allocation: Invalid value: null: field cannot be modified once set
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueInvalid status.allocation: Invalid value: null: field cannot be modified once set
        devices: 200 {"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"c"},"name":"r"},{"firstAvailable":[{"allocationMode":"ExactCount","count":1,"deviceClassName":"c","name":"x"}],"name":"s"}]}},"status":{"allocation":{"devices":{"results":[{"consumedCapacity":{"a":"1"},"device":"d","driver":"d.x","pool":"p","request":"r"},{"device":"e","driver":"d.x","pool":"p","request":"r"}]}},"devices":[{"conditions":null,"device":"d","driver":"d.x","pool":"p"},{"conditions":null,"device":"e","driver":"d.x","pool":"p"}]}}
        end: 200 {"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"c"},"name":"r"},{"firstAvailable":[{"allocationMode":"ExactCount","count":1,"deviceClassName":"c","name":"x"}],"name":"s"}]}},"status":{}}
    "#]]);
}

#[tokio::test]
async fn the_users_and_the_devices_of_a_claim_are_checked() {
    let api = Api::start();
    let mut seen = Objects::new(&api, claims(&api).await);
    seen.create("create", claim(json!({"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]})))
        .await;
    let status = |status: Value| json!({"status": status});
    let user = |uid: &str| json!({"resource": "pods", "name": "p", "uid": uid});
    seen.change("not allocated", "a/status", status(json!({"reservedFor": [user("u")]}))).await;
    let allocated = allocation(json!([result("d")]));
    let odd = json!([user("u"), user("u"), {"resource": "", "name": "", "uid": ""}]);
    seen.change("users", "a/status", status(json!({"allocation": allocated, "reservedFor": odd}))).await;
    let many: Vec<Value> = (0..257).map(|n| user(&format!("u{n}"))).collect();
    seen.change("too many", "a/status", status(json!({"allocation": allocated, "reservedFor": many}))).await;
    let device = |fields: Value| {
        let mut device = json!({"driver": "d.x", "pool": "p", "device": "d"});
        device.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        device
    };
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"});
    let conditions = json!([
        condition("a", "True"),
        condition("a", "Maybe"),
        condition("", ""),
        condition("b c", "False")
    ]);
    let ips = json!([
        "x",
        "1.2.3.4",
        "1.2.3.4/33",
        "1.2.3.4/24",
        "1.2.3.4/24",
        "::ffff:1.2.3.4/120",
        "01.2.3.4/24",
        "fe80::0/64",
        "fe80::1/64",
        "1.2.3.4/024",
    ]);
    let network = json!({"ips": ips, "interfaceName": "x".repeat(257), "hardwareAddress": "x".repeat(129)});
    let odd = json!([
        device(json!({"device": "e", "pool": "A", "driver": "B_"})),
        device(json!({"data": 5, "conditions": conditions})),
        device(json!({"conditions": [condition("a", "True")]})),
        device(json!({"networkData": network})),
        device(json!({"shareID": "x"})),
    ]);
    seen.change("devices", "a/status", status(json!({"allocation": allocated, "devices": odd}))).await;
    let many: Vec<Value> = (0..9).map(|n| condition(&format!("c{n}"), "True")).collect();
    let odd = json!([device(json!({"conditions": many}))]);
    seen.change("conditions", "a/status", status(json!({"allocation": allocated, "devices": odd}))).await;
    let good =
        json!([device(json!({"data": {"a": 1}, "networkData": {"ips": ["1.2.3.4/24", "fe80::1/64"]}}))]);
    let good = json!({"allocation": allocated, "devices": good, "reservedFor": [user("u")]});
    seen.change("allocated", "a/status", status(good)).await;
    seen.are(expect![[r#"
        create: 201 {"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"c"},"name":"r"}]}},"status":{}}
        not allocated: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: status.reservedFor: Forbidden: may not be specified when `allocated` is not set
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueForbidden status.reservedFor: Forbidden: may not be specified when `allocated` is not set
        users: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueDuplicate status.reservedFor[1]: Duplicate value: {"resource":"pods","name":"p","uid":"u"}
        - FieldValueRequired status.reservedFor[2].name: Required value
        - FieldValueRequired status.reservedFor[2].resource: Required value
        - FieldValueRequired status.reservedFor[2].uid: Required value
        too many: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: status.reservedFor: Too many: 257: must have at most 256 items
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueTooMany status.reservedFor: Too many: 257: must have at most 256 items
        devices: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueDuplicate status.devices[1].conditions[1]: Duplicate value: "a"
        - FieldValueDuplicate status.devices[2]: Duplicate value: {"driver":"d.x","pool":"p","device":"d","conditions":[{"type":"a","status":"True","lastTransitionTime":"TIME","reason":"R","message":""}]}
        - FieldValueDuplicate status.devices[3].networkData.ips[4]: Duplicate value: "1.2.3.4/24"
        - FieldValueDuplicate status.devices[3]: Duplicate value: {"driver":"d.x","pool":"p","device":"d","conditions":null,"networkData":{"interfaceName":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","ips":["x","1.2.3.4","1.2.3.4/33","1.2.3.4/24","1.2.3.4/24","::ffff:1.2.3.4/120","01.2.3.4/24","fe80::0/64","fe80::1/64","1.2.3.4/024"],"hardwareAddress":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}}
        - FieldValueInvalid status.devices[0].driver: Invalid value: "B_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid status.devices[0].pool: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid status.devices[0]: Invalid value: (the object): must be an allocated device in the claim
        - FieldValueInvalid status.devices[1].conditions[3].type: Invalid value: "b c": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid status.devices[1].data: Invalid value: "<value omitted>": must be a valid JSON object
        - FieldValueInvalid status.devices[3].networkData.ips[0]: Invalid value: "x": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)
        - FieldValueInvalid status.devices[3].networkData.ips[1]: Invalid value: "1.2.3.4": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)
        - FieldValueInvalid status.devices[3].networkData.ips[2]: Invalid value: "1.2.3.4/33": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)
        - FieldValueInvalid status.devices[3].networkData.ips[5]: Invalid value: "::ffff:1.2.3.4/120": must be in canonical form ("1.2.3.4/24")
        - FieldValueInvalid status.devices[3].networkData.ips[6]: Invalid value: "01.2.3.4/24": must be in canonical form ("1.2.3.4/24")
        - FieldValueInvalid status.devices[3].networkData.ips[7]: Invalid value: "fe80::0/64": must be in canonical form ("fe80::/64")
        - FieldValueInvalid status.devices[3].networkData.ips[9]: Invalid value: "1.2.3.4/024": must be in canonical form ("1.2.3.4/24")
        - FieldValueInvalid status.devices[4].shareID: Invalid value: "x": must be a lowercase UUID in 8-4-4-4-12 format
        - FieldValueInvalid status.devices[4]: Invalid value: (the object): must be an allocated device in the claim
        - FieldValueNotSupported status.devices[1].conditions[1].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"
        - FieldValueRequired status.devices[1].conditions[2].status: Required value
        - FieldValueRequired status.devices[1].conditions[2].type: Required value: is required
        - FieldValueTooLong status.devices[3].networkData.hardwareAddress: Too long: may not be more than 128 bytes
        - FieldValueTooLong status.devices[3].networkData.interfaceName: Too long: may not be more than 256 bytes
        conditions: 422 Invalid: ResourceClaim.resource.k8s.io "a" is invalid: status.devices[0].conditions: Too many: 9: must have at most 8 items
        group="resource.k8s.io" kind="ResourceClaim" name="a"
        - FieldValueTooMany status.devices[0].conditions: Too many: 9: must have at most 8 items
        allocated: 200 {"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,"deviceClassName":"c"},"name":"r"}]}},"status":{"allocation":{"devices":{"results":[{"device":"d","driver":"d.x","pool":"p","request":"r"}]}},"devices":[{"conditions":null,"data":{"a":1},"device":"d","driver":"d.x","networkData":{"ips":["1.2.3.4/24","fe80::1/64"]},"pool":"p"}],"reservedFor":[{"name":"p","resource":"pods","uid":"u"}]}}
    "#]]);
}

/// Gives a user rights to resources of `resource.k8s.io`, in a namespace or everywhere.
async fn grant(api: &Api, namespace: Option<&str>, user: &str, rule: Value) {
    const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1";
    let (scope, kind, prefix) = match namespace {
        Some(namespace) => (format!("{GROUP}/namespaces/{namespace}"), "Role", ""),
        None => (GROUP.to_owned(), "ClusterRole", "cluster"),
    };
    let name = format!("{}-{}", api.id, rule["resources"][0].as_str().unwrap().replace('/', "-")) + user;
    let mut rule = rule;
    rule["apiGroups"] = json!(["resource.k8s.io"]);
    let subjects = json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]);
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    for (plural, object) in [
        ("roles", json!({"metadata": {"name": name}, "rules": [rule]})),
        ("rolebindings", json!({"metadata": {"name": name}, "roleRef": role, "subjects": subjects})),
    ] {
        let path = format!("{scope}/{prefix}{plural}");
        api.post(&path, object).await.is(201);
        api.discard(format!("{path}/{name}"));
    }
}

#[tokio::test]
async fn parts_of_the_status_of_a_claim_need_rights() {
    let api = Api::start();
    let namespace = api.namespace().await;
    let claims = format!("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims");
    let node = format!("system:serviceaccount:{namespace}:node");
    let status = json!({"resources": ["resourceclaims/status"], "verbs": ["patch"]});
    for user in ["plain", "binder", "driver", &node] {
        grant(&api, Some(&namespace), user, status.clone()).await;
    }
    let binding = json!({"resources": ["resourceclaims/binding"], "verbs": ["patch"]});
    grant(&api, None, "binder", binding.clone()).await;
    // The right is needed in all namespaces.
    grant(&api, Some(&namespace), "driver", binding).await;
    for (user, verb) in [("driver", "arbitrary-node:patch"), (&node, "associated-node:patch")] {
        let rule =
            json!({"resources": ["resourceclaims/driver"], "verbs": [verb], "resourceNames": ["d.test"]});
        grant(&api, Some(&namespace), user, rule).await;
    }
    let request = json!({"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]});
    api.post(&claims, claim(request)).await.is(201);

    let result = |driver: &str| json!({"request": "r", "driver": driver, "pool": "p", "device": "x"});
    let field = json!({"key": "metadata.name", "operator": "In", "values": ["n1"]});
    let allocation = json!({
        "devices": {"results": [result("d.test"), result("e.test")]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    });
    let device = |driver: &str| json!({"driver": driver, "pool": "p", "device": "x"});
    let ready = |driver: &str| {
        let mut device = device(driver);
        device["data"] = json!({"ready": true});
        device
    };
    let user = json!([{"resource": "pods", "name": "x", "uid": "1"}]);
    let steps = [
        ("plain", "", json!({})),
        ("plain", "", json!({"allocation": allocation})),
        ("driver", "", json!({"allocation": allocation})),
        ("binder", "", json!({"allocation": allocation})),
        ("plain", "", json!({"reservedFor": user})),
        ("plain", "", json!({"devices": [device("d.test"), device("e.test")]})),
        ("driver", "", json!({"devices": [device("d.test"), device("e.test")]})),
        ("driver", "", json!({"devices": [device("d.test")]})),
        ("plain", "", json!({"devices": [device("d.test")]})),
        (&node, "", json!({"devices": [ready("d.test")]})),
        (&node, "n2", json!({"devices": [ready("d.test")]})),
        (&node, "n1", json!({"devices": [ready("d.test"), device("e.test")]})),
        (&node, "n1", json!({"devices": [ready("d.test")]})),
        // Without an allocation, the devices go, too.
        ("plain", "", json!({"allocation": null})),
        ("binder", "", json!({"allocation": null})),
    ];
    let mut seen = String::new();
    for (user, node, status) in steps {
        let as_user = api.impersonating(user, &[]);
        let path = format!("{claims}/a/status");
        let mut request = as_user.request(Method::PATCH, &path);
        if !node.is_empty() {
            request = request.header("impersonate-extra-authentication.kubernetes.io%2fnode-name", node);
        }
        let body = json!({"status": status}).to_string();
        let reply = request.body(MERGE_PATCH, body).send().await;
        let causes = reply.at("/details/causes").as_array().cloned().unwrap_or_default();
        let causes: Vec<String> =
            causes.iter().map(|cause| format!("\n  {}", cause["message"].as_str().unwrap())).collect();
        let line = format!("{user} {node} {}{}\n", reply.code, causes.concat());
        seen += &line.replace(&namespace, "NS");
    }
    expect![[r#"
        plain  200
        plain  422
          Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission: resourceclaims.resource.k8s.io is forbidden: User "plain" cannot patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope
        driver  422
          Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission: resourceclaims.resource.k8s.io is forbidden: User "driver" cannot patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope
        binder  200
        plain  422
          Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission: resourceclaims.resource.k8s.io is forbidden: User "plain" cannot patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope
        plain  422
          Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io "d.test" is forbidden: User "plain" cannot arbitrary-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "NS"
          Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io "e.test" is forbidden: User "plain" cannot arbitrary-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "NS"
        driver  422
          Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io "e.test" is forbidden: User "driver" cannot arbitrary-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "NS"
        driver  200
        plain  200
        system:serviceaccount:NS:node  422
          Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io "d.test" is forbidden: User "system:serviceaccount:NS:node" cannot arbitrary-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "NS"
        system:serviceaccount:NS:node n2 422
          Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io "d.test" is forbidden: User "system:serviceaccount:NS:node" cannot arbitrary-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "NS"
        system:serviceaccount:NS:node n1 422
          Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[associated-node:patch arbitrary-node:patch]" permission: resourceclaims.resource.k8s.io "e.test" is forbidden: User "system:serviceaccount:NS:node" cannot associated-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "NS"
        system:serviceaccount:NS:node n1 200
        plain  422
          Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission: resourceclaims.resource.k8s.io is forbidden: User "plain" cannot patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope
        binder  200
    "#]].assert_eq(&seen);
}
