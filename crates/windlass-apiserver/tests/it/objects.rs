//! Create, get, update, patch, delete.

use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, MERGE, client, config_map};

#[tokio::test]
async fn an_object_is_created_read_and_deleted() {
    let client = client();
    let created = client.post(CONFIG_MAPS, &config_map("x")).await.expect(201);
    assert_eq!(created.body["metadata"]["namespace"], "default");
    assert!(!created.body["metadata"]["uid"].as_str().unwrap().is_empty());
    let read = client.get(&format!("{CONFIG_MAPS}/x")).await.expect(200);
    assert_eq!(read.body, created.body);
    let deleted = client.delete(&format!("{CONFIG_MAPS}/x")).await.expect(200);
    assert_eq!(deleted.body["status"], "Success");
    assert_eq!(deleted.body["details"]["uid"], created.body["metadata"]["uid"]);
    let gone = client.get(&format!("{CONFIG_MAPS}/x")).await.expect(404);
    assert_eq!(gone.message(), "configmaps \"x\" not found");
    assert!(gone.headers.contains_key("audit-id"));
}

#[tokio::test]
async fn names_are_checked_and_generated() {
    let client = client();
    let nameless = client.post(CONFIG_MAPS, &json!({"metadata": {}})).await.expect(422);
    assert_eq!(
        nameless.message(),
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required"
    );
    let generated = client.post(CONFIG_MAPS, &json!({"metadata": {"generateName": "g-"}})).await.expect(201);
    let name = generated.body["metadata"]["name"].as_str().unwrap();
    assert!(name.len() == 7 && name.starts_with("g-"), "{name}");
    client.post(CONFIG_MAPS, &config_map("x")).await.expect(201);
    let again = client.post(CONFIG_MAPS, &config_map("x")).await.expect(409);
    assert_eq!(again.message(), "configmaps \"x\" already exists");
    let nowhere = client.post("/api/v1/namespaces/nope/configmaps", &config_map("x")).await.expect(404);
    assert_eq!(nowhere.message(), "namespaces \"nope\" not found");
    let mut elsewhere = config_map("y");
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    client.post(CONFIG_MAPS, &elsewhere).await.expect(400);
}

#[tokio::test]
async fn an_update_from_an_old_version_conflicts() {
    let client = client();
    let path = &format!("{CONFIG_MAPS}/x");
    let first = client.post(CONFIG_MAPS, &config_map("x")).await.expect(201);
    let mut changed = first.body.clone();
    changed["data"]["a"] = json!("2");
    let second = client.put(path, &changed).await.expect(200);
    assert_ne!(second.version(), first.version());
    let conflict = client.put(path, &changed).await.expect(409);
    assert_eq!(
        conflict.message(),
        "Operation cannot be fulfilled on configmaps \"x\": the object has been modified; please apply your changes to the latest version and try again"
    );
    let same = client.put(path, &second.body).await.expect(200);
    assert_eq!(same.version(), second.version(), "a write that changes nothing is no write");
}

#[tokio::test]
async fn patches_merge_and_dry_runs_leave_nothing() {
    let client = client();
    let path = &format!("{CONFIG_MAPS}/x");
    client.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("x")).await.expect(201);
    client.get(path).await.expect(404);
    client.post(CONFIG_MAPS, &config_map("x")).await.expect(201);
    let merged = client.patch(path, MERGE, &json!({"data": {"b": "2", "a": null}})).await.expect(200);
    assert_eq!(merged.body["data"], json!({"b": "2"}));
    let operations = json!([{"op": "add", "path": "/data/c", "value": "3"}]);
    let patched = client.patch(path, "application/json-patch+json", &operations).await.expect(200);
    assert_eq!(patched.body["data"], json!({"b": "2", "c": "3"}));
    client.patch(path, "application/apply-patch+yaml", &json!({})).await.expect(415);
}

#[tokio::test]
async fn finalizers_hold_a_deleted_object() {
    let client = client();
    let path = &format!("{CONFIG_MAPS}/x");
    let mut object = config_map("x");
    object["metadata"]["finalizers"] = json!(["a.example/f"]);
    client.post(CONFIG_MAPS, &object).await.expect(201);
    let held = client.delete(path).await.expect(200);
    assert!(held.body["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(held.body["metadata"]["deletionGracePeriodSeconds"], 0);
    client.get(path).await.expect(200);
    client.patch(path, MERGE, &json!({"metadata": {"finalizers": null}})).await.expect(200);
    client.get(path).await.expect(404);
}

#[tokio::test]
async fn a_service_account_gets_a_token_that_the_server_knows() {
    let client = client();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = client.post(accounts, &json!({"metadata": {"name": "bot"}})).await.expect(201);
    let reply = client.post(&format!("{accounts}/bot/token"), &json!({"spec": {}})).await.expect(201);
    assert_eq!(reply.body["spec"]["expirationSeconds"], 3600);
    let review = json!({"spec": {"token": reply.body["status"]["token"]}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let known = client.post(reviews, &review).await.expect(201);
    assert_eq!(known.body["status"]["user"]["username"], "system:serviceaccount:default:bot");
    assert_eq!(known.body["status"]["user"]["uid"], account.body["metadata"]["uid"]);
    client.delete(&format!("{accounts}/bot")).await.expect(200);
    let unknown = client.post(reviews, &review).await.expect(201);
    assert_eq!(unknown.body["status"]["authenticated"], Value::Null);
    let short = json!({"spec": {"expirationSeconds": 5}});
    client.post(&format!("{accounts}/default/token"), &short).await.expect(404);
}
