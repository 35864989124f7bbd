//! ResourceSlices.

use expect_test::expect;
use serde_json::{Value, json};

use super::{Objects, named};
use crate::harness::Api;

const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";

/// A slice with these fields in the spec, where null stands for no field.
fn slice(fields: Value) -> Value {
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    let mut spec = json!({"driver": "d.x", "pool": pool, "nodeName": "n"});
    spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    spec.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    named("a", json!({"spec": spec}))
}

fn devices(devices: Value) -> Value {
    slice(json!({"devices": devices}))
}

#[tokio::test]
async fn the_driver_the_pool_and_the_nodes_of_a_slice_are_checked() {
    let api = Api::start();
    let mut seen = Objects::new(&api, SLICES);
    seen.try_create("a slice", slice(json!({"driver": "D.x"}))).await;
    let pool = json!({"name": "", "generation": -1, "resourceSliceCount": 0});
    seen.try_create("no nodes", slice(json!({"driver": "", "pool": pool, "nodeName": null}))).await;
    let pool = json!({"name": "a//B", "resourceSliceCount": 1});
    seen.try_create("odd names", slice(json!({"driver": "a_", "pool": pool, "nodeName": "A"}))).await;
    let nodes =
        json!({"nodeName": "", "allNodes": false, "perDeviceNodeSelection": false, "nodeSelector": {}});
    seen.try_create("odd nodes", slice(nodes)).await;
    let nodes = json!({"allNodes": true, "perDeviceNodeSelection": true, "devices": [
        {"name": "a"}, {"name": "b", "nodeName": "", "allNodes": false}, {"name": "c", "nodeName": "A", "allNodes": true},
        {"name": "d", "nodeSelector": {"nodeSelectorTerms": []}}, {"name": "e", "allNodes": true},
    ]});
    seen.try_create("many nodes", slice(nodes)).await;
    seen.try_create("nodes of a device", devices(json!([{"name": "a", "nodeName": "x"}]))).await;
    seen.are(expect![[r#"
        a slice: 201 {"spec":{"driver":"D.x","nodeName":"n","pool":{"generation":1,"name":"p","resourceSliceCount":1}}}
        no nodes: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueInvalid spec.pool.generation: Invalid value: -1: must be greater than or equal to zero
        - FieldValueInvalid spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero
        - FieldValueRequired spec.driver: Required value
        - FieldValueRequired spec.pool.name: Required value
        - FieldValueRequired spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required
        odd names: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueInvalid spec.driver: Invalid value: "a_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.pool.name: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.pool.name: Invalid value: "B": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        odd nodes: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueInvalid spec.allNodes: Invalid value: false: must be either unset or set to true
        - FieldValueInvalid spec.nodeName: Invalid value: "": must be either unset or set to a non-empty string
        - FieldValueInvalid spec.nodeSelector.nodeSelectorTerms: Invalid value: null: must have exactly one node selector term
        - FieldValueInvalid spec.perDeviceNodeSelection: Invalid value: false: must be either unset or set to true
        - FieldValueRequired spec.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term
        many nodes: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueInvalid spec.devices[1].allNodes: Invalid value: false: must be either unset or set to true
        - FieldValueInvalid spec.devices[1].nodeName: Invalid value: "": must not be empty
        - FieldValueInvalid spec.devices[2].nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.devices[2]: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec
        - FieldValueInvalid spec: Invalid value: "{`nodeName`, `allNodes`, `perDeviceNodeSelection`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set
        - FieldValueRequired spec.devices[0]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec
        - FieldValueRequired spec.devices[1]: Required value: exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec
        - FieldValueRequired spec.devices[3].nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term
        nodes of a device: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueInvalid spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec
    "#]]);
}

#[tokio::test]
async fn the_attributes_of_devices_are_checked() {
    let api = Api::start();
    let mut seen = Objects::new(&api, SLICES);
    let attributes = json!({
        "a": {}, "b": {"int": 1, "bool": true}, "c": {"version": "1.2"}, "d": {"string": "x".repeat(65)},
        "e-f": {"int": 1}, "/x": {"int": 1}, "y/": {"int": 1}, "a/b/c": {"int": 1}, "A_/b": {"int": 1},
        "Dom.x/ok": {"version": "01.2.3"}, "f": {"ints": [1]}, "g": {"version": "1.2.3-a.01"}, "h": {"version": "1.2.3-a.b+c"},
        (format!("{}/{}", "d".repeat(64), "n".repeat(33))): {"int": 1},
    });
    seen.try_create(
        "odd",
        devices(json!([{"name": "a", "attributes": attributes}, {"name": "a"}, {"name": "A"}])),
    )
    .await;
    let many = |count: usize, value: Value| -> Value {
        (0..count).map(|n| (format!("a{n}"), value.clone())).collect::<serde_json::Map<_, _>>().into()
    };
    let int = json!({"int": 1});
    let both = json!({"name": "b", "attributes": many(20, int.clone()), "capacity": many(20, json!({"value": "1"}))});
    seen.try_create(
        "too many attributes",
        devices(json!([{"name": "a", "attributes": many(49, int)}, both])),
    )
    .await;
    let list = |count: usize, fields: Value| -> Value {
        (0..count)
            .map(|n| {
                let mut device = fields.clone();
                device["name"] = json!(format!("d{n}"));
                device
            })
            .collect()
    };
    seen.try_create("too many devices", devices(list(129, json!({})))).await;
    seen.try_create(
        "too many tainted devices",
        devices(list(65, json!({"taints": [{"key": "a", "effect": "None"}]}))),
    )
    .await;
    seen.are(expect![[r#"
        odd: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueDuplicate spec.devices[1]: Duplicate value: "a"
        - FieldValueInvalid spec.devices[0].attributes: Invalid value: "": the domain must not be empty
        - FieldValueInvalid spec.devices[0].attributes: Invalid value: "": the name must not be empty
        - FieldValueInvalid spec.devices[0].attributes: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.devices[0].attributes: Invalid value: "e-f": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')
        - FieldValueInvalid spec.devices[0].attributes[Dom.x/ok].version: Invalid value: "01.2.3": must be a string compatible with semver.org spec 2.0.0
        - FieldValueInvalid spec.devices[0].attributes[a]: Invalid value: "": must specify one of: `int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`
        - FieldValueInvalid spec.devices[0].attributes[b]: Invalid value: "{int, bool}": must specify exactly one of: `int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`
        - FieldValueInvalid spec.devices[0].attributes[c].version: Invalid value: "1.2": must be a string compatible with semver.org spec 2.0.0
        - FieldValueInvalid spec.devices[0].attributes[f]: Invalid value: "": must specify one of: `int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`
        - FieldValueInvalid spec.devices[0].attributes[g].version: Invalid value: "1.2.3-a.01": must be a string compatible with semver.org spec 2.0.0
        - FieldValueInvalid spec.devices[2].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        - FieldValueTooLong spec.devices[0].attributes: Too long: may not be more than 32 bytes
        - FieldValueTooLong spec.devices[0].attributes: Too long: may not be more than 63 bytes
        - FieldValueTooLong spec.devices[0].attributes[d].string: Too long: may not be more than 64 bytes
        too many attributes: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueInvalid spec.devices[0]: Invalid value: 49: the total number of attribute values must not exceed 48
        - FieldValueInvalid spec.devices[0]: Invalid value: 49: the total number of attributes and capacities must not exceed 32
        - FieldValueInvalid spec.devices[1]: Invalid value: 40: the total number of attributes and capacities must not exceed 32
        too many devices: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: spec.devices: Too many: 129: must have at most 128 items
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueTooMany spec.devices: Too many: 129: must have at most 128 items
        too many tainted devices: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: spec.devices: Too many: 65: must have at most 64 items
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueTooMany spec.devices: Too many: 65: must have at most 64 items
    "#]]);
}

#[tokio::test]
async fn the_policies_of_capacities_are_checked() {
    let api = Api::start();
    let mut seen = Objects::new(&api, SLICES);
    let with = |policy: Value| json!({"value": "10", "requestPolicy": policy});
    let range = |default: &str, range: Value| with(json!({"default": default, "validRange": range}));
    let capacity = json!({
        "a": with(json!({"validValues": ["1"], "validRange": {"min": "1"}})),
        "b": with(json!({"validValues": ["1"]})),
        "c": with(json!({"default": "4", "validValues": ["1", "1", "3", "2", "11"]})),
        "d": range("4", json!({"max": "1"})),
        "e": range("4", json!({"min": "12", "max": "11", "step": "3"})),
        "f": range("4", json!({"min": "1", "max": "9", "step": "2"})),
        "g": range("1500m", json!({"min": "1", "step": "1"})),
        "i": range("-1", json!({"min": "-2", "step": "1"})),
        "j": range("1", json!({"min": "1", "step": "0"})),
        "k": with(json!({"validRange": {"min": "1"}})),
        "l": with(json!({"default": "1", "validValues": ["1", "1k", "1500m", "2", "3", "4", "5", "6", "7", "8", "9"]})),
        "m": range("5", json!({"min": "1", "max": "4"})),
    });
    let single = json!({"name": "a", "capacity": {"a": with(json!({"default": "1"}))}});
    seen.try_create("single", devices(json!([single]))).await;
    seen.try_create(
        "shared",
        devices(json!([{"name": "b", "allowMultipleAllocations": true, "capacity": capacity}])),
    )
    .await;
    seen.are(expect![[r#"
        single: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: spec.devices[0].capacity[a].requestPolicy: Forbidden: allowMultipleAllocations must be true
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueForbidden spec.devices[0].capacity[a].requestPolicy: Forbidden: allowMultipleAllocations must be true
        shared: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueDuplicate spec.devices[0].capacity[c].requestPolicy.validValues[1]: Duplicate value: "1"
        - FieldValueForbidden spec.devices[0].capacity[a].requestPolicy: Forbidden: exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time
        - FieldValueInvalid spec.devices[0].capacity[c].requestPolicy.validValues: Invalid value: "4": default value is not valid according to the requestPolicy
        - FieldValueInvalid spec.devices[0].capacity[c].requestPolicy.validValues[3]: Invalid value: "2": values must be sorted in ascending order
        - FieldValueInvalid spec.devices[0].capacity[c].requestPolicy.validValues[4]: Invalid value: "11": option is larger than capacity value: 10
        - FieldValueInvalid spec.devices[0].capacity[e].requestPolicy.validRange.default: Invalid value: "4": default is less than min: 12
        - FieldValueInvalid spec.devices[0].capacity[e].requestPolicy.validRange.max: Invalid value: "11": max is larger than capacity value: 10
        - FieldValueInvalid spec.devices[0].capacity[e].requestPolicy.validRange.max: Invalid value: "12": min is larger than max: 11
        - FieldValueInvalid spec.devices[0].capacity[e].requestPolicy.validRange.min: Invalid value: "12": min is larger than capacity value: 10
        - FieldValueInvalid spec.devices[0].capacity[e].requestPolicy.validRange.step: Invalid value: "11": value is not a multiple of a given step (3) from (12)
        - FieldValueInvalid spec.devices[0].capacity[e].requestPolicy.validRange.step: Invalid value: "3": one step 15 is larger than capacity value: 10
        - FieldValueInvalid spec.devices[0].capacity[e].requestPolicy.validRange.step: Invalid value: "4": value is not a multiple of a given step (3) from (12)
        - FieldValueInvalid spec.devices[0].capacity[f].requestPolicy.validRange.step: Invalid value: "4": value is not a multiple of a given step (2) from (1)
        - FieldValueInvalid spec.devices[0].capacity[i].requestPolicy.validRange.default: Invalid value: "-1": must be greater than or equal to 0
        - FieldValueInvalid spec.devices[0].capacity[i].requestPolicy.validRange.min: Invalid value: "-2": must be greater than or equal to 0
        - FieldValueInvalid spec.devices[0].capacity[j].requestPolicy.validRange.step: Invalid value: "0": must be greater than zero
        - FieldValueInvalid spec.devices[0].capacity[l].requestPolicy.validValues: Invalid value: "1": default value is not valid according to the requestPolicy
        - FieldValueInvalid spec.devices[0].capacity[l].requestPolicy.validValues[2]: Invalid value: "1500m": values must be sorted in ascending order
        - FieldValueInvalid spec.devices[0].capacity[m].requestPolicy.validRange.default: Invalid value: "5": default is more than max: 4
        - FieldValueRequired spec.devices[0].capacity[b].requestPolicy.default: Required value: required when validValues is defined
        - FieldValueRequired spec.devices[0].capacity[d].requestPolicy.validRange.min: Required value: required when validRange is defined
        - FieldValueRequired spec.devices[0].capacity[k].requestPolicy.default: Required value: required when validRange is defined
        - FieldValueTooMany spec.devices[0].capacity[l].requestPolicy.validValues: Too many: 11: must have at most 10 items
    "#]]);
}

#[tokio::test]
async fn the_counters_the_taints_and_the_conditions_of_devices_are_checked() {
    let api = Api::start();
    let mut seen = Objects::new(&api, SLICES);
    let one = json!({"value": "1"});
    let many: serde_json::Map<_, _> = (0..33).map(|n| (format!("c{n}"), one.clone())).collect();
    let consumers = json!([
        {"name": "a", "consumesCounters": [{"counterSet": "x", "counters": {"a b": one}}, {"counterSet": "x"}]},
        {"name": "b", "consumesCounters": [{}, {}, {}]},
        {"name": "c", "consumesCounters": [{"counterSet": "A", "counters": many}]},
    ]);
    let sets = json!([{"name": "a", "counters": {"A": one}}, {"name": "a", "counters": {}}, {"name": ""}]);
    seen.try_create("counters", slice(json!({"devices": consumers, "sharedCounters": sets}))).await;
    let sets: Vec<Value> = (0..9).map(|n| json!({"name": format!("s{n}"), "counters": {"a": one}})).collect();
    seen.try_create("sets", slice(json!({"sharedCounters": sets}))).await;
    let taint = json!({"key": "a", "effect": "None"});
    let odd = json!([
        {"name": "a", "taints": [{"key": "a b", "value": "c d", "effect": "x"}, {"key": "", "effect": ""}]},
        {"name": "b", "taints": vec![taint; 17]},
        {"name": "c", "bindingConditions": ["a", "a", "b c"], "bindingFailureConditions": ["a", "x", "x"]},
        {"name": "d", "bindingConditions": ["a"]}, {"name": "e", "bindingFailureConditions": ["a"]},
        {"name": "f", "bindingConditions": ["a", "b", "c", "d", "e"], "bindingFailureConditions": ["f"]},
    ]);
    seen.try_create("taints and conditions", devices(odd)).await;
    let taint = json!({"key": "a", "effect": "None"});
    let consumption =
        json!({"counterSet": "x", "counters": {"a": {"value": "1"}}, "compatibilityGroups": ["a"]});
    let device = json!({"name": "a", "nodeAllocatableResources": {"cpu": {}}, "consumesCounters": [consumption], "taints": [taint]});
    let off = json!({"devices": [device], "partitionTypeAttribute": "a", "skipNodeOperations": ["x"]});
    seen.try_create("features that are off", slice(off)).await;
    seen.are(expect![[r#"
        counters: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueDuplicate spec.devices[0].consumesCounters[1]: Duplicate value: {"counterSet":"x"}
        - FieldValueDuplicate spec.sharedCounters[1]: Duplicate value: {"name":"a"}
        - FieldValueInvalid spec.devices[0].consumesCounters[0].counters: Invalid value: "a b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        - FieldValueInvalid spec.devices[2].consumesCounters[0].counterSet: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        - FieldValueInvalid spec.sharedCounters[0].counters: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        - FieldValueInvalid spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed
        - FieldValueRequired spec.devices[0].consumesCounters[1].counters: Required value
        - FieldValueRequired spec.sharedCounters[1].counters: Required value
        - FieldValueRequired spec.sharedCounters[2].counters: Required value
        - FieldValueRequired spec.sharedCounters[2].name: Required value
        - FieldValueTooMany spec.devices[1].consumesCounters: Too many: 3: must have at most 2 items
        - FieldValueTooMany spec.devices[2].consumesCounters[0].counters: Too many: 33: must have at most 32 items
        sets: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: spec.sharedCounters: Too many: 9: must have at most 8 items
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueTooMany spec.sharedCounters: Too many: 9: must have at most 8 items
        taints and conditions: 422 Invalid: ResourceSlice.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceSlice" name="a"
        - FieldValueDuplicate spec.devices[2].bindingConditions[1]: Duplicate value: "a"
        - FieldValueDuplicate spec.devices[2].bindingFailureConditions[2]: Duplicate value: "x"
        - FieldValueInvalid spec.devices[0].taints[0].key: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid spec.devices[0].taints[0].value: Invalid value: "c d": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        - FieldValueInvalid spec.devices[0].taints[1].key: Invalid value: "": name part must be non-empty
        - FieldValueInvalid spec.devices[0].taints[1].key: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid spec.devices[2].bindingConditions[2]: Invalid value: "b c": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid spec.devices[2].bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not overlap with bindingConditions
        - FieldValueInvalid spec.devices[3].bindingFailureConditions: Invalid value: null: bindingFailureConditions are required to use bindingConditions
        - FieldValueInvalid spec.devices[4].bindingConditions: Invalid value: null: bindingConditions are required to use bindingFailureConditions
        - FieldValueNotSupported spec.devices[0].taints[0].effect: Unsupported value: "x": supported values: "NoExecute", "NoSchedule", "None"
        - FieldValueRequired spec.devices[0].taints[1].effect: Required value
        - FieldValueTooMany spec.devices[1].taints: Too many: 17: must have at most 16 items
        - FieldValueTooMany spec.devices[5].bindingConditions: Too many: 5: must have at most 4 items
        features that are off: 201 {"spec":{"devices":[{"consumesCounters":[{"counterSet":"x","counters":{"a":{"value":"1"}}}],"name":"a","taints":[{"effect":"None","key":"a","timeAdded":"TIME"}]}],"driver":"d.x","nodeName":"n","pool":{"generation":1,"name":"p","resourceSliceCount":1}}}
    "#]]);
}

#[tokio::test]
async fn the_driver_the_pool_and_the_node_of_a_slice_are_immutable() {
    let api = Api::start();
    let mut seen = Objects::new(&api, SLICES);
    let name = format!("slice-{}", api.id);
    let mut object = devices(json!([{"name": "a"}]));
    object["metadata"]["name"] = json!(name);
    seen.create("create", object).await;
    seen.change(
        "names",
        &name,
        json!({"spec": {"driver": "e", "pool": {"name": "q"}, "nodeName": null, "allNodes": true}}),
    )
    .await;
    seen.change("devices", &name, json!({"spec": {"devices": [{"name": "b"}], "pool": {"generation": 2}}}))
        .await;
    seen.are(expect![[r#"
        create: 201 {"spec":{"devices":[{"name":"a"}],"driver":"d.x","nodeName":"n","pool":{"generation":1,"name":"p","resourceSliceCount":1}}}
        names: 422 Invalid: ResourceSlice.resource.k8s.io "slice-ID" is invalid: [as below]
        group="resource.k8s.io" kind="ResourceSlice" name="slice-ID"
        - FieldValueInvalid spec.driver: Invalid value: "e": field is immutable
        - FieldValueInvalid spec.nodeName: Invalid value: null: field is immutable
        - FieldValueInvalid spec.pool.name: Invalid value: "q": field is immutable
        devices: 200 {"spec":{"devices":[{"name":"b"}],"driver":"d.x","nodeName":"n","pool":{"generation":2,"name":"p","resourceSliceCount":1}}}
    "#]]);
}

#[tokio::test]
async fn slices_are_selected_by_the_node_the_driver_and_the_pool() {
    let api = Api::start();
    let name = format!("slice-{}", api.id);
    let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
    let mut object = slice(json!({"pool": pool}));
    object["metadata"]["name"] = json!(name);
    api.discard(format!("{SLICES}/{name}"));
    api.post(SLICES, object).await.is(201);
    let selector = format!("spec.pool.name={name},spec.driver=d.x,spec.nodeName=n");
    let found = api.get(&format!("{SLICES}?fieldSelector={selector}")).await.is(200).json();
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1), "{found}");
    let found = api.get(&format!("{SLICES}?fieldSelector=spec.pool.name={name}x")).await.is(200).json();
    assert_eq!(found["items"].as_array().map(Vec::len), Some(0), "{found}");
}
