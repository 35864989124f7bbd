//! PriorityLevelConfigurations.

use expect_test::expect;
use serde_json::{Value, json};

use super::{Objects, named};
use crate::harness::Api;

fn level(kind: &str, response: &Value) -> Value {
    let limited = json!({"nominalConcurrencyShares": 5, "limitResponse": response});
    named("checked", json!({"spec": {"type": kind, "limited": limited, "exempt": {}}}))
}

#[tokio::test]
async fn settings_of_another_type_of_level_are_forbidden() {
    let api = Api::start();
    let mut seen = Objects::new(&api, "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations");
    seen.try_create("no type", level("", &json!({"type": "Queue"}))).await;
    seen.try_create("odd type", level("Odd", &json!({"type": "Reject"}))).await;
    seen.try_create("exempt", level("Exempt", &json!({"type": "Reject", "queuing": {}}))).await;
    seen.try_create("no response", level("Limited", &json!({"queuing": {}}))).await;
    seen.try_create("odd response", level("Limited", &json!({"type": "Odd", "queuing": {}}))).await;
    seen.are(expect![[r#"
        no type: 422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "checked" is invalid: [as below]
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="checked"
        - FieldValueForbidden spec.exempt: Forbidden
        - FieldValueForbidden spec.limited: Forbidden
        - FieldValueRequired spec.limited.limitResponse.queuing: Required value
        - FieldValueRequired spec.type: Required value
        odd type: 422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "checked" is invalid: [as below]
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="checked"
        - FieldValueForbidden spec.exempt: Forbidden
        - FieldValueForbidden spec.limited: Forbidden
        - FieldValueNotSupported spec.type: Unsupported value: "Odd": supported values: "Exempt", "Limited"
        exempt: 422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "checked" is invalid: [as below]
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="checked"
        - FieldValueForbidden spec.limited.limitResponse.queuing: Forbidden
        - FieldValueForbidden spec.limited: Forbidden
        - FieldValueInvalid spec.type: Invalid value: "Exempt": must be 'Exempt' if and only if `name` is 'exempt'
        no response: 422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "checked" is invalid: [as below]
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="checked"
        - FieldValueForbidden spec.exempt: Forbidden
        - FieldValueForbidden spec.limited.limitResponse.queuing: Forbidden
        - FieldValueRequired spec.limited.limitResponse.type: Required value
        odd response: 422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "checked" is invalid: [as below]
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="checked"
        - FieldValueForbidden spec.exempt: Forbidden
        - FieldValueForbidden spec.limited.limitResponse.queuing: Forbidden
        - FieldValueNotSupported spec.limited.limitResponse.type: Unsupported value: "Odd": supported values: "Queue", "Reject"
    "#]]);
}
