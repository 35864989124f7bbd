//! Hostile definitions, rules and policies, and objects of hostile definitions.

use serde_json::{Map, Value, json};

use super::{
    Attack, CRDS, SLOW_PATTERN, Sent, conversation, create, definition, keys, one, times, wait_until_served,
};
use crate::client::{Call, Client};
use crate::{HttpsServer, Result};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

pub(super) async fn prepare(client: Client) -> Result<Vec<HttpsServer>> {
    let admin = client.connect().await?;
    super::prepare(&admin).await?;
    let texts = json!({"type": "array", "maxItems": 1_000, "items": {"type": "string", "maxLength": 100}});
    let numbers = json!({"type": "array", "maxItems": 200, "items": {"type": "integer"}});
    let rule = |rule: &str| json!([{"rule": rule}]);
    let with = |mut schema: Value, text: &str| {
        schema["x-kubernetes-validations"] = rule(text);
        schema
    };
    let long = json!({"type": "string", "maxLength": 1_000_000});
    let properties = json!({
        "slow": with(texts.clone(), &format!("self.all(x, !x.matches('{SLOW_PATTERN}'))")),
        "loops": with(numbers, "self.all(a, self.all(b, self.exists_one(c, c == a + b) || true))"),
        "find": with(long, "self.findAll('.*[^A-Z]|[A-Z]').size() >= 0"),
        "parts": with(texts, "self.map(x, x + x).map(x, x + x).map(x, x + x).size() >= 0"),
    });
    // A rule that the server refuses as too expensive is left out.
    for (name, property) in properties.as_object().into_iter().flatten() {
        let kind = format!("Rule{name}");
        let schema = json!({"type": "object", "properties": {"value": property}});
        let reply = admin.send(Call::post(CRDS, &definition(&kind, schema))).await?;
        if reply.code == 201 || reply.code == 409 {
            wait_until_served(&admin, &format!("{}s", kind.to_lowercase())).await?;
        }
    }
    let branches: Value = (0..1_000).map(|number| json!({"required": [format!("f{number}")]})).collect();
    let list = json!({"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "anyOf": branches}});
    let set = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": {
        "type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}
    }});
    let schema = json!({"type": "object", "properties": {"branches": list, "map": set, "patterns": patterns(9_000, false)}});
    create(&admin, Call::post(CRDS, &definition("Branch", schema))).await?;
    wait_until_served(&admin, "branchs").await?;
    Ok(Vec::new())
}

pub(super) fn attacks() -> Vec<Attack> {
    let of_rule = |name: &str, value: Value| {
        let plural = format!("rule{name}s");
        custom(&plural, &format!("Rule{name}"), "value", value)
    };
    let branch = |field: &str, value: Value| custom("branchs", "Branch", field, value);
    let texts = |text: &str| -> Value { (0..1_000).map(|_| text.repeat(100)).collect() };
    vec![
        one("definition with 20,000 properties", wide(properties(20_000, "^[a-z]+$", Some("d")))),
        one("definition with 9,000 distinct patterns", wide(patterns(9_000, true))),
        one("definition with 190 large patterns", wide(large_patterns(190))),
        one(
            "definition with 1,000 slow defaults",
            wide(properties(1_000, SLOW_PATTERN, Some(&"x".repeat(1_000)))),
        ),
        one(
            "definition with 100,000 defaults in a list",
            wide(json!({"type": "array", "items": {"type": "integer"}, "default": vec![0; 100_000]})),
        ),
        one(
            "definition with 60,000 small properties",
            wide(json!({"type": "object", "properties": keys(60_000, &json!({"type": "string"}))})),
        ),
        one("definition with 100 levels of lists", wide(levels(100))),
        one(
            "definition with an enumeration of 300,000",
            wide(json!({"type": "integer", "enum": (0..300_000).collect::<Vec<_>>()})),
        ),
        one(
            "definition with 50,000 branches",
            wide(json!({"type": "object", "anyOf": vec![json!({"required": ["a"]}); 50_000]})),
        ),
        one("definition with 100 versions", versions(100)),
        one("definition with 20,000 columns", columns(20_000)),
        one("definition with 5,000 rules", rules(5_000, "self.size() > 0")),
        one(
            "definition with 300 rules of nested loops",
            rules(300, "self.all(a, self.all(b, self.all(c, a == b || b == c || c == a)))"),
        ),
        one("definition with a rule of 1 MB", rules(1, &format!("true{}", " && true".repeat(125_000)))),
        one(
            "definition with a rule of 20,000 brackets",
            rules(1, &format!("{}true{}", "(".repeat(20_000), ")".repeat(20_000))),
        ),
        one("policy with 5,000 validations", policy(5_000, "object.metadata.name != 'x'")),
        one("policy with a validation of 1 MB", policy(1, &format!("true{}", " && true".repeat(125_000)))),
        one(
            "policy with a list of 100,000 literals",
            policy(1, &format!("[{}0].size() > 0", "0,".repeat(100_000))),
        ),
        one("rule with a slow pattern, 1,000 texts", of_rule("slow", texts("x"))),
        one("rule with loops in loops", of_rule("loops", (0..200).collect())),
        one("rule that finds all parts of 1 MB", of_rule("find", "A".repeat(900_000).into())),
        one("rule that makes long texts", of_rule("parts", texts("x"))),
        one(
            "10,000 objects against 1,000 branches",
            branch("branches", vec![json!({"f999": 1}); 10_000].into()),
        ),
        one(
            "100,000 keys of a list",
            branch("map", (0..100_000).map(|number| json!({"a": number.to_string()})).collect()),
        ),
        one(
            "9,000 texts with distinct patterns",
            branch("patterns", json!(keys_of("p", 9_000, &json!("a")))),
        ),
        times(
            "9,000 texts with distinct patterns, 4 times",
            4,
            branch("patterns", json!(keys_of("p", 9_000, &json!("a")))),
        ),
    ]
}

fn custom(plural: &str, kind: &str, field: &str, value: Value) -> Call {
    let mut object = json!({"apiVersion": "siege.test/v1", "kind": kind, "metadata": {"name": "x"}});
    object[field] = value;
    Call::post(format!("/apis/siege.test/v1/namespaces/siege/{plural}?dryRun=All"), &object)
}

/// Creates a definition with a schema for the field `value`, without effect.
fn wide(schema: Value) -> Call {
    of(definition("Wide", json!({"type": "object", "properties": {"value": schema}})))
}

fn of(definition: Value) -> Call {
    Call::post(format!("{CRDS}?dryRun=All"), &definition)
}

fn keys_of(prefix: &str, count: usize, value: &Value) -> Map<String, Value> {
    (0..count).map(|number| (format!("{prefix}{number}"), value.clone())).collect()
}

fn properties(count: usize, pattern: &str, default: Option<&str>) -> Value {
    let mut property = json!({"type": "string", "pattern": pattern});
    if let Some(default) = default {
        property["default"] = default.into();
    }
    json!({"type": "object", "properties": keys_of("p", count, &property)})
}

/// A schema with distinct patterns, with or without defaults.
fn patterns(count: usize, has_defaults: bool) -> Value {
    let property = |number: usize| {
        let pattern = format!("^([a-z0-9]([-a-z0-9]{{0,20}}[a-z0-9])?\\.?)*{number}?$");
        let mut property = json!({"type": "string", "pattern": pattern});
        if has_defaults {
            property["default"] = "a".into();
        }
        (format!("p{number}"), property)
    };
    json!({"type": "object", "properties": (0..count).map(property).collect::<Map<_, _>>()})
}

fn large_patterns(count: usize) -> Value {
    let property = |number: usize| {
        let pattern = format!("(?:(?:x{{1,30}}){{1,30}}){{1,40}}{number}");
        (format!("p{number}"), json!({"type": "string", "pattern": pattern, "default": "x"}))
    };
    json!({"type": "object", "properties": (0..count).map(property).collect::<Map<_, _>>()})
}

fn levels(levels: usize) -> Value {
    let inner = json!({"type": "string"});
    (0..levels).fold(inner, |inner, _| json!({"type": "array", "items": inner}))
}

fn versions(count: usize) -> Call {
    let mut definition = definition("Versioned", json!({}));
    let version = |number: usize| {
        let schema = json!({"type": "object", "properties": keys_of(&format!("v{number}p"), 400, &json!({"type": "string", "default": "a"}))});
        json!({
            "name": format!("v{}", number + 1), "served": true, "storage": number == 0,
            "schema": {"openAPIV3Schema": schema}
        })
    };
    definition["spec"]["versions"] = (0..count).map(version).collect();
    of(definition)
}

fn columns(count: usize) -> Call {
    let mut definition = definition("Column", json!({"type": "object"}));
    let column = |number: usize| json!({"name": format!("c{number}"), "type": "string", "jsonPath": "..[?(@.a==\"b\")]"});
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = (0..count).map(column).collect();
    of(definition)
}

fn rules(count: usize, rule: &str) -> Call {
    let rules: Value = (0..count).map(|number| json!({"rule": format!("{rule} || {number} == 0")})).collect();
    wide(json!({
        "type": "array", "maxItems": 10, "items": {"type": "integer"}, "x-kubernetes-validations": rules
    }))
}

fn policy(count: usize, expression: &str) -> Call {
    let validations: Value =
        (0..count).map(|number| json!({"expression": format!("{expression} || {number} == 0")})).collect();
    let rules =
        json!([{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]);
    Call::post(
        format!("{POLICIES}?dryRun=All"),
        &json!({
            "metadata": {"name": "siege"},
            "spec": {"matchConstraints": {"resourceRules": rules}, "validations": validations}
        }),
    )
}

/// The number of definitions for [`attacks_on_many`].
const MANY: usize = 1_000;

pub(super) async fn prepare_many(client: Client) -> Result<Vec<HttpsServer>> {
    let admin = client.connect().await?;
    for number in 0..MANY {
        let schema = json!({"type": "object", "properties": keys(30, &json!({"type": "string", "description": "text"}))});
        let mut definition = definition(&format!("Many{number}"), schema);
        let group = format!("g{}.many.test", number % 100);
        definition["metadata"]["name"] = format!("many{number}s.{group}").into();
        definition["spec"]["group"] = group.into();
        create(&admin, Call::post(CRDS, &definition)).await?;
    }
    Ok(Vec::new())
}

pub(super) fn attacks_on_many() -> Vec<Attack> {
    let accepting = |path: &str, accept: &'static str| {
        let mut call = Call::get(path);
        call.accept = accept;
        call
    };
    vec![
        one(
            "1,000 definitions: discovery",
            accepting("/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
        ),
        one("1,000 definitions: /openapi/v2", Call::get("/openapi/v2")),
        one(
            "1,000 definitions: /openapi/v2 in protobuf",
            accepting("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"),
        ),
        one("1,000 definitions: /openapi/v3", Call::get("/openapi/v3")),
        one("1,000 definitions: the list", Call::get(CRDS)),
        conversation("1,000 definitions: all documents of /openapi/v3", |client| Box::pin(documents(client))),
    ]
}

async fn documents(client: Client) -> Result<Sent> {
    let connection = client.connect().await?;
    let mut outcome = String::new();
    for number in 0..100 {
        let reply = connection.send(Call::get(format!("/openapi/v3/apis/g{number}.many.test/v1"))).await?;
        outcome = reply.code.to_string();
    }
    Ok(Sent { outcome, bytes: 0, requests: 100 })
}
