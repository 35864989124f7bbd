//! DeviceClasses.

use expect_test::expect;
use serde_json::{Value, json};

use super::{Objects, named};
use crate::harness::Api;

const CLASSES: &str = "/apis/resource.k8s.io/v1/deviceclasses";

fn class(spec: Value) -> Value {
    named("a", json!({"spec": spec}))
}

fn selector(expression: &str) -> Value {
    json!({"selectors": [{"cel": {"expression": expression}}]})
}

#[tokio::test]
async fn the_selectors_of_a_class_are_compiled() {
    let api = Api::start();
    let mut seen = Objects::new(&api, CLASSES);
    let all = |depth: usize| {
        (0..depth).rfold("true".to_owned(), |inner, n| format!("device.attributes.all(k{n}, {inner})"))
    };
    for expression in [
        "device.driver == 'a' && device.allowMultipleAllocations",
        "device.attributes['a'].b",
        "has(device.attributes['a'].b) && device.attributes['a'].b[0] == semver('1.2.3')",
        "cel.bind(d, device.attributes['a'], d.x && d.y)",
        "device.capacity['a'].b.isGreaterThan(quantity('1'))",
        "",
        "device.nope",
        "device.attributes",
        "[device.attributes['a'].b]",
        "device.attributes['a'].b.exists(x, x)",
        "dyn(1)",
        "int('a') == 1",
        &all(2),
        &all(4),
        "device.driver.matches('^[a-z]+$') && device.attributes.all(k, device.driver.contains(k))",
    ] {
        seen.try_create(expression, class(selector(expression))).await;
    }
    seen.try_create("too long", class(selector(&"x".repeat(10 * 1024 + 1)))).await;
    seen.try_create("no expression", class(json!({"selectors": [{}]}))).await;
    seen.try_create(
        "too many",
        class(json!({"selectors": vec![json!({}); 33], "config": vec![json!({}); 33]})),
    )
    .await;
    seen.are(expect![[r#"
        device.driver == 'a' && device.allowMultipleAllocations: 201 {"spec":{"selectors":[{"cel":{"expression":"device.driver == 'a' && device.allowMultipleAllocations"}}]}}
        device.attributes['a'].b: 201 {"spec":{"selectors":[{"cel":{"expression":"device.attributes['a'].b"}}]}}
        has(device.attributes['a'].b) && device.attributes['a'].b[0] == semver('1.2.3'): 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: spec.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueForbidden spec.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit
        cel.bind(d, device.attributes['a'], d.x && d.y): 201 {"spec":{"selectors":[{"cel":{"expression":"cel.bind(d, device.attributes['a'], d.x && d.y)"}}]}}
        device.capacity['a'].b.isGreaterThan(quantity('1')): 201 {"spec":{"selectors":[{"cel":{"expression":"device.capacity['a'].b.isGreaterThan(quantity('1'))"}}]}}
        : 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: spec.selectors[0].cel.expression: Invalid value: "": compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueInvalid spec.selectors[0].cel.expression: Invalid value: "": compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
        device.nope: 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: spec.selectors[0].cel.expression: Invalid value: "device.nope": compilation failed: ERROR: <input>:1:7: undefined field 'nope'
         | device.nope
         | ......^
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueInvalid spec.selectors[0].cel.expression: Invalid value: "device.nope": compilation failed: ERROR: <input>:1:7: undefined field 'nope'
         | device.nope
         | ......^
        device.attributes: 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: spec.selectors[0].cel.expression: Invalid value: "device.attributes": must evaluate to bool or the unknown type, not map(string, map(string, google.protobuf.Any))
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueInvalid spec.selectors[0].cel.expression: Invalid value: "device.attributes": must evaluate to bool or the unknown type, not map(string, map(string, google.protobuf.Any))
        [device.attributes['a'].b]: 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: spec.selectors[0].cel.expression: Invalid value: "[device.attributes['a'].b]": must evaluate to bool or the unknown type, not list(google.protobuf.Any)
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueInvalid spec.selectors[0].cel.expression: Invalid value: "[device.attributes['a'].b]": must evaluate to bool or the unknown type, not list(google.protobuf.Any)
        device.attributes['a'].b.exists(x, x): 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: spec.selectors[0].cel.expression: Invalid value: "device.attributes['a'].b.exists(x, x)": compilation failed: ERROR: <input>:1:23: expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)
         | device.attributes['a'].b.exists(x, x)
         | ......................^
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueInvalid spec.selectors[0].cel.expression: Invalid value: "device.attributes['a'].b.exists(x, x)": compilation failed: ERROR: <input>:1:23: expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)
         | device.attributes['a'].b.exists(x, x)
         | ......................^
        dyn(1): 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: spec.selectors[0].cel.expression: Invalid value: "dyn(1)": must evaluate to bool or the unknown type, not dyn
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueInvalid spec.selectors[0].cel.expression: Invalid value: "dyn(1)": must evaluate to bool or the unknown type, not dyn
        int('a') == 1: 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: spec.selectors[0].cel.expression: Internal error: program instantiation failed: type conversion error from 'string' to 'int'
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - InternalError spec.selectors[0].cel.expression: Internal error: program instantiation failed: type conversion error from 'string' to 'int'
        device.attributes.all(k0, device.attributes.all(k1, true)): 201 {"spec":{"selectors":[{"cel":{"expression":"device.attributes.all(k0, device.attributes.all(k1, true))"}}]}}
        device.attributes.all(k0, device.attributes.all(k1, device.attributes.all(k2, device.attributes.all(k3, true)))): 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: spec.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueForbidden spec.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit
        device.driver.matches('^[a-z]+$') && device.attributes.all(k, device.driver.contains(k)): 201 {"spec":{"selectors":[{"cel":{"expression":"device.driver.matches('^[a-z]+$') && device.attributes.all(k, device.driver.contains(k))"}}]}}
        too long: 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: spec.selectors[0].cel.expression: Too long: may not be more than 10240 bytes
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueTooLong spec.selectors[0].cel.expression: Too long: may not be more than 10240 bytes
        no expression: 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: spec.selectors[0].cel: Required value
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueRequired spec.selectors[0].cel: Required value
        too many: 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueTooMany spec.config: Too many: 33: must have at most 32 items
        - FieldValueTooMany spec.selectors: Too many: 33: must have at most 32 items
    "#]]);
}

#[tokio::test]
async fn the_configuration_and_the_extended_resource_of_a_class_are_checked() {
    let api = Api::start();
    let mut seen = Objects::new(&api, CLASSES);
    let config =
        |driver: &str, parameters: Value| json!({"opaque": {"driver": driver, "parameters": parameters}});
    let odd = json!({"config": [
        {}, {"opaque": {}},
        config(&format!("A_{}", "a".repeat(70)), json!(5)),
        config("Ab.c", json!([])), config("a", json!({})), config("a", json!(null)),
        config("a", json!({"a": "x".repeat(10 * 1024)})),
    ]});
    seen.try_create("configuration", class(odd)).await;
    for name in ["example.com/a", "a", "", "requests.kubernetes.io/a b"] {
        seen.try_create(name, class(json!({"extendedResourceName": name}))).await;
    }
    seen.are(expect![[r#"
        configuration: 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueInvalid spec.config[2].opaque.driver: Invalid value: "A_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueInvalid spec.config[2].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object
        - FieldValueInvalid spec.config[3].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object
        - FieldValueRequired spec.config[0].opaque: Required value
        - FieldValueRequired spec.config[1].opaque.driver: Required value
        - FieldValueRequired spec.config[1].opaque.parameters: Required value
        - FieldValueRequired spec.config[5].opaque.parameters: Required value
        - FieldValueTooLong spec.config[2].opaque.driver: Too long: may not be more than 63 characters
        - FieldValueTooLong spec.config[6].opaque.parameters: Too long: may not be more than 10240 bytes
        example.com/a: 201 {"spec":{"extendedResourceName":"example.com/a"}}
        a: 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: spec.extendedResourceName: Invalid value: "a": a name must be a domain-prefixed path, such as 'example.com/my-prop'
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueInvalid spec.extendedResourceName: Invalid value: "a": a name must be a domain-prefixed path, such as 'example.com/my-prop'
        : 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueInvalid spec.extendedResourceName: Invalid value: "": a name must be a domain-prefixed path, such as 'example.com/my-prop'
        - FieldValueInvalid spec.extendedResourceName: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        requests.kubernetes.io/a b: 422 Invalid: DeviceClass.resource.k8s.io "a" is invalid: [as below]
        group="resource.k8s.io" kind="DeviceClass" name="a"
        - FieldValueInvalid spec.extendedResourceName: Invalid value: "requests.kubernetes.io/a b": must not have "kubernetes.io/" domain
        - FieldValueInvalid spec.extendedResourceName: Invalid value: "requests.kubernetes.io/a b": must not have "requests." prefix
        - FieldValueInvalid spec.extendedResourceName: Invalid value: "requests.kubernetes.io/a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
    "#]]);
}
