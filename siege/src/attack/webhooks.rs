//! Webhooks with hostile responses.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Attack, CRDS, JSON, create, one, times, wait_until_served};
use crate::client::{Call, Client};
use crate::webhook::configuration;
use crate::{HttpsServer, Result};

/// The namespaces of ConfigMaps whose writes call the webhook, and the paths of the webhook.
const PATHS: [&str; 4] = ["huge", "deep", "values", "patch"];

pub(super) async fn prepare(client: Client) -> Result<Vec<HttpsServer>> {
    let admin = client.connect().await?;
    super::prepare(&admin).await?;
    let server = HttpsServer::start(|path, review| async move { (200, response(&path, &review)) }).await?;
    for path in PATHS {
        let namespace = format!("siege-{path}");
        create(&admin, Call::post("/api/v1/namespaces", &json!({"metadata": {"name": namespace}}))).await?;
        let kind = if path == "patch" { "Mutating" } else { "Validating" };
        let mut configuration = configuration(&server, &format!("/{path}"), &namespace, &namespace);
        configuration["kind"] = format!("{kind}WebhookConfiguration").into();
        let configurations =
            format!("/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations", kind.to_lowercase());
        create(&admin, Call::post(&configurations, &configuration)).await?;
    }
    let version = |name: &str| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}})
    };
    let mut definition = super::definition("Converted", json!({}));
    definition["spec"]["versions"] = json!([version("v1"), version("v2"), version("v3")]);
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": format!("{}/convert", server.url), "caBundle": server.authority}
    }});
    create(&admin, Call::post(CRDS, &definition)).await?;
    wait_until_served(&admin, "converteds").await?;
    for number in 0..20 {
        let object = json!({"apiVersion": "siege.test/v1", "kind": "Converted", "metadata": {"name": format!("c{number}")}});
        create(&admin, Call::post("/apis/siege.test/v1/namespaces/siege/converteds", &object)).await?;
    }
    Ok(vec![server])
}

pub(super) fn attacks() -> Vec<Attack> {
    let map = |namespace: &str| {
        let path = format!("/api/v1/namespaces/siege-{namespace}/configmaps?dryRun=All");
        Call::new(http::Method::POST, path).with(JSON, r#"{"metadata":{"name":"x"}}"#)
    };
    let converted =
        |version: &str| Call::get(format!("/apis/siege.test/{version}/namespaces/siege/converteds"));
    vec![
        one("webhook with a response of 200 MB", map("huge")),
        one("webhook with a response of 100,000 levels", map("deep")),
        one("webhook with a response of 5,000,000 values", map("values")),
        one("webhook with a patch of 500,000 operations", map("patch")),
        times("webhook with a response of 200 MB, 8 times", 8, map("huge")),
        one("conversion to objects of 200 MB", converted("v2")),
        one("conversion to objects of 5,000,000 values", converted("v3")),
    ]
}

/// Returns the body of a response.
fn response(path: &str, review: &Value) -> Bytes {
    let uid = review["request"]["uid"].as_str().unwrap_or_default();
    let admission = |more: String| {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{{"uid":"{uid}","allowed":true{more}}}}}"#
        )
    };
    let numbers = |count: usize| "0,".repeat(count) + "0";
    match path {
        "/huge" => admission(format!(r#","status":{{"message":"{}"}}"#, "x".repeat(200 << 20))),
        "/deep" => admission(format!(r#","other":{}{}"#, "[".repeat(100_000), "]".repeat(100_000))),
        "/values" => admission(format!(r#","other":[{}]"#, numbers(5_000_000))),
        "/patch" => {
            use base64::Engine;
            let operation = r#"{"op":"add","path":"/metadata/labels","value":{}},"#;
            let mut patch = operation.repeat(500_000);
            patch.pop();
            let patch = base64::engine::general_purpose::STANDARD.encode(format!("[{patch}]"));
            admission(format!(r#","patchType":"JSONPatch","patch":"{patch}""#))
        }
        _ => converted(review, uid),
    }
    .into()
}

fn converted(review: &Value, uid: &str) -> String {
    let version = review["request"]["desiredAPIVersion"].as_str().unwrap_or_default();
    let value = if version.ends_with("v2") {
        format!("\"{}\"", "x".repeat(10 << 20))
    } else {
        format!("[{}0]", "0,".repeat(250_000))
    };
    let objects = review["request"]["objects"].as_array().into_iter().flatten();
    let objects: Vec<String> = objects
        .map(|object| {
            let metadata = &object["metadata"];
            format!(
                r#"{{"apiVersion":"{version}","kind":"Converted","metadata":{metadata},"value":{value}}}"#
            )
        })
        .collect();
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{{"uid":"{uid}","result":{{"status":"Success"}},"convertedObjects":[{}]}}}}"#,
        objects.join(",")
    )
}
