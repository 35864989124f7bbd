//! Built-in kinds, by example: `filled.json` and `refused.json` are replies of kube-apiserver 1.37 to dry runs.

use serde_json::{Value, json};

use crate::harness::Api;

fn cases(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

/// Takes out of a reply what differs from run to run.
fn comparable(mut reply: Value) -> Value {
    let uid = reply["metadata"]["uid"].as_str().unwrap_or("no uid").to_owned();
    reply = serde_json::from_str(&reply.to_string().replace(&uid, "UID")).unwrap();
    if let Some(metadata) = reply["metadata"].as_object_mut() {
        for field in ["uid", "creationTimestamp", "resourceVersion"] {
            metadata.remove(field);
        }
        let entries = metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten();
        for entry in entries.filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
    }
    if let Some(status) = reply.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
        let conditions = status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten();
        for condition in conditions.filter_map(Value::as_object_mut) {
            condition.remove("lastTransitionTime");
        }
    }
    if reply["kind"] == "Service"
        && reply["spec"]["clusterIP"].as_str().is_some_and(|ip| ip.starts_with("10."))
    {
        reply["spec"]["clusterIP"] = "IP".into();
        reply["spec"]["clusterIPs"] = json!(["IP"]);
    }
    let ports = reply.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten();
    for port in ports.filter_map(Value::as_object_mut).filter(|port| port.contains_key("nodePort")) {
        port.insert("nodePort".to_owned(), "NP".into());
    }
    reply
}

#[tokio::test]
async fn defaults_are_those_of_the_real_server() {
    let api = Api::start();
    let mut wrong = Vec::new();
    for case in cases(include_str!("recorded/filled.json")) {
        let path = format!("{}?dryRun=All", case["path"].as_str().unwrap());
        let mut reply = comparable(api.post(&path, case["object"].clone()).await.is(201).json());
        if case["reply"]["metadata"].get("managedFields").is_none() {
            // docs/fidelity.md says which are not tracked alike.
            reply["metadata"].as_object_mut().unwrap().remove("managedFields");
        }
        if reply != case["reply"] {
            wrong.push(format!("{}\n  made: {reply}\n  real: {}", case["object"], case["reply"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn errors_are_those_of_the_real_server() {
    let api = Api::start();
    for case in cases(include_str!("recorded/refused.json")) {
        let path = format!("{}?dryRun=All", case["path"].as_str().unwrap());
        let reply = api.post(&path, case["object"].clone()).await;
        let causes = reply.at("/details/causes").as_array().cloned().unwrap_or_default();
        let fields: Vec<Value> = causes.iter().map(|cause| cause["field"].clone()).collect();
        if api.is_shared() && fields.len() > 1 {
            // The order of errors in the real server is random.
            assert_eq!(reply.code, 422, "{reply}");
            assert_eq!(fields.len(), case["fields"].as_array().unwrap().len(), "{reply}");
            continue;
        }
        assert_eq!((json!(reply.code), &reply.at("/message")), (case["code"].clone(), &case["message"]));
        assert_eq!(Value::Array(fields), case["fields"], "{}", case["object"]);
    }
}

/// The JSON pointers of everything in a value.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    let step = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, field)| pointers(field, &step(name), out)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| pointers(item, &step(&index.to_string()), out));
        }
        _ => {}
    }
}

#[tokio::test]
async fn no_value_in_any_place_is_an_internal_error() {
    let api = Api::start();
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!("\u{0}%/é"),
        json!([]),
        json!([{}]),
        json!({"": {}}),
    ];
    for (number, case) in cases(include_str!("recorded/filled.json")).into_iter().enumerate() {
        let path = format!("{}?dryRun=All", case["path"].as_str().unwrap());
        let mut places = Vec::new();
        pointers(&case["object"], "", &mut places);
        for (index, place) in places.iter().enumerate() {
            // A different odd value in each place: the steps together cover many places.
            for step in 0..3 {
                let mut object = case["object"].clone();
                *object.pointer_mut(place).unwrap() = odd[(number + index * 3 + step) % odd.len()].clone();
                let reply = api.post(&path, object.clone()).await;
                assert!(reply.code < 500, "{place} of {object}: {reply}");
            }
        }
    }
}
