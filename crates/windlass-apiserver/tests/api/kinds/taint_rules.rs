//! DeviceTaintRules.

use expect_test::expect;
use serde_json::{Value, json};

use super::{Objects, named};
use crate::harness::Api;

fn rule(selector: Value, taint: Value) -> Value {
    json!({"spec": {"deviceSelector": selector, "taint": taint}})
}

#[tokio::test]
async fn the_effect_and_the_selector_of_a_rule_are_checked() {
    let api = Api::start();
    let mut seen = Objects::new(&api, "/apis/resource.k8s.io/v1/devicetaintrules");
    seen.try_create("no spec", named("a", json!({}))).await;
    let taint = |effect: &str| json!({"key": "example.com/a", "value": "b", "effect": effect});
    seen.try_create("no selector", named("a", json!({"spec": {"taint": taint("NoSchedule")}}))).await;
    seen.try_create("no effect", named("a", rule(json!({}), taint("")))).await;
    seen.try_create("odd effect", named("a", rule(json!({}), taint("PreferNoSchedule")))).await;
    let odd = json!({"key": "a b", "value": "c d", "effect": "None"});
    seen.try_create("odd taint", named("a", rule(json!({}), odd))).await;
    let empty = json!({"driver": "", "pool": "", "device": ""});
    seen.try_create("empty selector", named("a", rule(empty, taint("None")))).await;
    let odd = json!({"driver": "A_", "pool": "a//B", "device": "a.b"});
    seen.try_create("odd selector", named("a", rule(odd, taint("None")))).await;
    let long = json!({"driver": "a".repeat(64), "pool": "p".repeat(254), "device": "d".repeat(64)});
    seen.try_create("long selector", named("a", rule(long, taint("None")))).await;
    seen.are(expect![[r#"
        no spec: 422 Invalid: DeviceTaintRule.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="DeviceTaintRule" name="a"
        - FieldValueInvalid spec.taint.key: Invalid value: "": name part must be non-empty
        - FieldValueInvalid spec.taint.key: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueRequired spec.taint.effect: Required value
        no selector: 201 {"spec":{"taint":{"effect":"NoSchedule","key":"example.com/a","timeAdded":"TIME","value":"b"}},"status":{}}
        no effect: 422 Invalid: DeviceTaintRule.resource.k8s.io "a" is invalid: spec.taint.effect: Required value
        group="resource.k8s.io" kind="DeviceTaintRule" name="a"
        - FieldValueRequired spec.taint.effect: Required value
        odd effect: 422 Invalid: DeviceTaintRule.resource.k8s.io "a" is invalid: spec.taint.effect: Unsupported value: "PreferNoSchedule": supported values: "NoExecute", "NoSchedule", "None"
        group="resource.k8s.io" kind="DeviceTaintRule" name="a"
        - FieldValueNotSupported spec.taint.effect: Unsupported value: "PreferNoSchedule": supported values: "NoExecute", "NoSchedule", "None"
        odd taint: 422 Invalid: DeviceTaintRule.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="DeviceTaintRule" name="a"
        - FieldValueInvalid spec.taint.key: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid spec.taint.value: Invalid value: "c d": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        empty selector: 422 Invalid: DeviceTaintRule.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="DeviceTaintRule" name="a"
        - FieldValueInvalid spec.deviceSelector.device: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        - FieldValueRequired spec.deviceSelector.driver: Required value
        - FieldValueRequired spec.deviceSelector.pool: Required value
        odd selector: 422 Invalid: DeviceTaintRule.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="DeviceTaintRule" name="a"
        - FieldValueInvalid spec.deviceSelector.device: Invalid value: "a.b": must not contain dots
        - FieldValueInvalid spec.deviceSelector.driver: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.deviceSelector.pool: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.deviceSelector.pool: Invalid value: "B": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        long selector: 422 Invalid: DeviceTaintRule.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="DeviceTaintRule" name="a"
        - FieldValueInvalid spec.deviceSelector.device: Invalid value: "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd": must be no more than 63 characters
        - FieldValueInvalid spec.deviceSelector.pool: Invalid value: "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp": must be no more than 253 characters
        - FieldValueTooLong spec.deviceSelector.driver: Too long: may not be more than 63 bytes
        - FieldValueTooLong spec.deviceSelector.pool: Too long: may not be more than 253 bytes
    "#]]);
}

/// Notes the year of the taint, if the test has chosen the time.
async fn year(seen: &mut Objects<'_>, name: &str) {
    let rule = seen.api.get(&format!("{}/{name}", seen.collection)).await.is(200);
    let time = rule.text_at("/spec/taint/timeAdded");
    seen.seen += match &time[..4] {
        "2020" => "since 2020\n",
        "2021" => "since 2021\n",
        _ => "since now\n",
    };
}

#[tokio::test]
async fn the_time_of_a_rule_is_the_time_of_the_effect() {
    let api = Api::start();
    let mut seen = Objects::new(&api, "/apis/resource.k8s.io/v1/devicetaintrules");
    let name = format!("rule-{}", api.id);
    let selector = json!({"driver": format!("{}.example.com", api.id), "pool": "a/b", "device": "d"});
    let taint = json!({"key": "example.com/a", "effect": "None", "timeAdded": "2020-01-01T00:00:00Z"});
    seen.create("good", named(&name, rule(selector, taint))).await;
    seen.row(&name).await;
    let age = regex::Regex::new(r#"TimeAdded="\d+y\d*d?""#).unwrap();
    seen.seen = age.replace(&seen.seen, r#"TimeAdded="AGE""#).into_owned();
    year(&mut seen, &name).await;
    seen.change("same effect", &name, json!({"spec": {"taint": {"value": "v"}}})).await;
    year(&mut seen, &name).await;
    seen.change("other effect", &name, json!({"spec": {"taint": {"effect": "NoSchedule"}}})).await;
    year(&mut seen, &name).await;
    let both = json!({"spec": {"taint": {"effect": "None", "timeAdded": "2021-01-01T00:00:00Z"}}});
    seen.change("other effect and time", &name, both).await;
    year(&mut seen, &name).await;
    seen.change("no time", &name, json!({"spec": {"taint": {"timeAdded": null}}})).await;
    year(&mut seen, &name).await;
    let status = format!("{name}/status");
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "A", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let odd =
        json!({"status": {"conditions": [{"type": "a b", "status": "x", "reason": "", "message": ""}]}});
    seen.change("odd condition", &status, odd).await;
    let many: Vec<Value> = (0..9).map(|number| condition(&format!("C{number}"))).collect();
    seen.change("many conditions", &status, json!({"status": {"conditions": many}})).await;
    let both = json!({"spec": {"taint": {"value": "w"}}, "status": {"conditions": [condition("C")]}});
    seen.change("status", &status, both).await;
    seen.change("status by spec", &name, json!({"status": {"conditions": []}})).await;
    seen.are(expect![[r#"
        good: 201 {"spec":{"deviceSelector":{"device":"d","driver":"ID.example.com","pool":"a/b"},"taint":{"effect":"None","key":"example.com/a","timeAdded":"TIME"}},"status":{}}
        row: Name="rule-ID" Key="example.com/a" Value="" Effect="None" TimeAdded="AGE"
        since 2020
        same effect: 200 {"spec":{"deviceSelector":{"device":"d","driver":"ID.example.com","pool":"a/b"},"taint":{"effect":"None","key":"example.com/a","timeAdded":"TIME","value":"v"}},"status":{}}
        since 2020
        other effect: 200 {"spec":{"deviceSelector":{"device":"d","driver":"ID.example.com","pool":"a/b"},"taint":{"effect":"NoSchedule","key":"example.com/a","timeAdded":"TIME","value":"v"}},"status":{}}
        since now
        other effect and time: 200 {"spec":{"deviceSelector":{"device":"d","driver":"ID.example.com","pool":"a/b"},"taint":{"effect":"None","key":"example.com/a","timeAdded":"TIME","value":"v"}},"status":{}}
        since 2021
        no time: 200 {"spec":{"deviceSelector":{"device":"d","driver":"ID.example.com","pool":"a/b"},"taint":{"effect":"None","key":"example.com/a","timeAdded":"TIME","value":"v"}},"status":{}}
        since now
        odd condition: 422 Invalid: DeviceTaintRule.resource.k8s.io "rule-ID" is invalid: [as below]
        group="resource.k8s.io" kind="DeviceTaintRule" name="rule-ID"
        - FieldValueInvalid status.conditions[0].type: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueNotSupported status.conditions[0].status: Unsupported value: "x": supported values: "False", "True", "Unknown"
        - FieldValueRequired status.conditions[0].lastTransitionTime: Required value
        - FieldValueRequired status.conditions[0].reason: Required value
        many conditions: 422 Invalid: DeviceTaintRule.resource.k8s.io "rule-ID" is invalid: status.conditions: Too many: 9: must have at most 8 items
        group="resource.k8s.io" kind="DeviceTaintRule" name="rule-ID"
        - FieldValueTooMany status.conditions: Too many: 9: must have at most 8 items
        status: 200 {"spec":{"deviceSelector":{"device":"d","driver":"ID.example.com","pool":"a/b"},"taint":{"effect":"None","key":"example.com/a","timeAdded":"TIME","value":"v"}},"status":{"conditions":[{"lastTransitionTime":"TIME","message":"","reason":"A","status":"True","type":"C"}]}}
        status by spec: 200 {"spec":{"deviceSelector":{"device":"d","driver":"ID.example.com","pool":"a/b"},"taint":{"effect":"None","key":"example.com/a","timeAdded":"TIME","value":"v"}},"status":{"conditions":[{"lastTransitionTime":"TIME","message":"","reason":"A","status":"True","type":"C"}]}}
    "#]]);
}

#[tokio::test]
async fn the_offset_of_a_time_has_at_most_24_hours_and_60_minutes() {
    let api = Api::start();
    let mut seen = Objects::new(&api, "/apis/resource.k8s.io/v1/devicetaintrules");
    for offset in ["+24:60", "+25:00", "-00:61", "+99:99"] {
        for day in ["01", "32"] {
            let time = format!("2020-01-{day}T00:00:00{offset}");
            let taint = json!({"key": "a", "effect": "None", "timeAdded": time});
            seen.try_create(&time, named("a", rule(json!({}), taint))).await;
        }
    }
    seen.are(expect![[r#"
        2020-01-01T00:00:00+24:60: 201 {"spec":{"deviceSelector":{},"taint":{"effect":"None","key":"a","timeAdded":"TIME"}},"status":{}}
        2020-01-32T00:00:00+24:60: 400 BadRequest: DeviceTaintRule in version "v1" cannot be handled as a DeviceTaintRule: parsing time "2020-01-32T00:00:00+24:60": day out of range
        2020-01-01T00:00:00+25:00: 400 BadRequest: DeviceTaintRule in version "v1" cannot be handled as a DeviceTaintRule: parsing time "2020-01-01T00:00:00+25:00": time zone offset hour out of range
        2020-01-32T00:00:00+25:00: 400 BadRequest: DeviceTaintRule in version "v1" cannot be handled as a DeviceTaintRule: parsing time "2020-01-32T00:00:00+25:00": time zone offset hour out of range
        2020-01-01T00:00:00-00:61: 400 BadRequest: DeviceTaintRule in version "v1" cannot be handled as a DeviceTaintRule: parsing time "2020-01-01T00:00:00-00:61": time zone offset minute out of range
        2020-01-32T00:00:00-00:61: 400 BadRequest: DeviceTaintRule in version "v1" cannot be handled as a DeviceTaintRule: parsing time "2020-01-32T00:00:00-00:61": time zone offset minute out of range
        2020-01-01T00:00:00+99:99: 400 BadRequest: DeviceTaintRule in version "v1" cannot be handled as a DeviceTaintRule: parsing time "2020-01-01T00:00:00+99:99": time zone offset minute out of range
        2020-01-32T00:00:00+99:99: 400 BadRequest: DeviceTaintRule in version "v1" cannot be handled as a DeviceTaintRule: parsing time "2020-01-32T00:00:00+99:99": time zone offset minute out of range
    "#]]);
}
