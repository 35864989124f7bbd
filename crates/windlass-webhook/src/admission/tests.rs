use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::{
    DynamicObject,
    admission::{AdmissionRequest, AdmissionResponse, Operation},
    response::Status,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{AdmissionChange, AdmissionContext, Patched, Validator};
use crate::{
    Admission, AdmissionDenial, AdmissionWebhook, Dispatcher, FieldError, Reply, Request, Rule,
    WebhookMetrics, Webhooks,
};

const MUTATE: &str = "/mutate--v1-configmap";
const VALIDATE: &str = "/validate--v1-configmap";

async fn default(mut config: ConfigMap, cx: AdmissionContext) -> Result<ConfigMap, AdmissionDenial> {
    let data = config.data.get_or_insert_default();
    match data.get("do").map(String::as_str) {
        Some("panic") => panic!("on purpose"),
        Some("wait") => std::future::pending::<()>().await,
        Some("nothing") => return Ok(config),
        Some("deny") => return Err(AdmissionDenial::new("no").with_code(409, "Conflict")),
        _ => {}
    }
    if let Some(user) = &cx.user().username {
        data.insert("user".to_owned(), user.clone());
    }
    cx.annotate_audit("defaulted", "yes");
    Ok(config)
}

async fn validate(change: AdmissionChange<ConfigMap>, cx: AdmissionContext) -> Result<(), String> {
    cx.warn("watch out");
    match change {
        AdmissionChange::Update { old, new } if old.data != new.data => {
            Err("data does not change".to_owned())
        }
        AdmissionChange::Delete(_) => Err("it stays".to_owned()),
        _ => Ok(()),
    }
}

fn dispatcher() -> Dispatcher {
    let webhooks = Webhooks::new().defaulter::<ConfigMap>(default).validator::<ConfigMap>(validate);
    webhooks.dispatcher(WebhookMetrics::default()).expect("a good declaration")
}

fn config(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "unknown": 1}, "data": data, "new": [1]})
}

fn review(operation: &str, object: Value, old: Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": operation, "name": "a", "namespace": "default",
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "userInfo": {"username": "ann"}, "object": object, "oldObject": old, "dryRun": false,
        }
    })
}

async fn post(path: &str, body: impl Into<Bytes>) -> Reply {
    let body = body.into();
    let request = Request { path, query: Some("timeout=10s"), content_type: Some("application/json"), body };
    dispatcher().answer(request).await
}

async fn answer(path: &str, review: Value) -> Value {
    let reply = post(path, review.to_string()).await;
    assert_eq!((reply.code, reply.content_type), (200, "application/json"));
    serde_json::from_slice(&reply.body).expect("JSON")
}

#[tokio::test]
async fn the_patch_of_a_defaulter_keeps_unknown_fields() {
    let object = config(json!({"k": "v"}));
    let reply = answer(MUTATE, review("CREATE", object.clone(), Value::Null)).await;
    let response = &reply["response"];
    assert_eq!(reply["apiVersion"], "admission.k8s.io/v1");
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(true)));
    assert_eq!((&response["status"], &response["patchType"]), (&json!({"code": 200}), &json!("JSONPatch")));
    assert_eq!(response["auditAnnotations"], json!({"defaulted": "yes"}));
    let patch = STANDARD.decode(response["patch"].as_str().expect("base64")).expect("base64");
    let patch: Value = serde_json::from_slice(&patch).expect("a patch");
    assert_eq!(patch, json!([{"op": "add", "path": "/data/user", "value": "ann"}]));
}

#[tokio::test]
async fn nothing_is_sent_if_nothing_changed_or_the_object_is_deleted() {
    let unchanged = review("UPDATE", config(json!({"do": "nothing"})), config(json!({})));
    let deleted = review("DELETE", Value::Null, config(json!({"do": "panic"})));
    for review in [unchanged, deleted] {
        let reply = answer(MUTATE, review).await;
        assert_eq!(reply["response"], json!({"uid": "u-1", "allowed": true, "status": {"code": 200}}));
    }
}

#[tokio::test]
async fn the_old_version_of_a_review_is_answered_in_it() {
    let mut review = review("CREATE", config(json!({})), Value::Null);
    review["apiVersion"] = json!("admission.k8s.io/v1beta1");
    assert_eq!(answer(VALIDATE, review.clone()).await["apiVersion"], "admission.k8s.io/v1beta1");
    review["apiVersion"] = json!("admission.k8s.io/v7");
    let reply = answer(VALIDATE, review).await;
    let message = "no kind \"AdmissionReview\" is registered for version \"admission.k8s.io/v7\"";
    assert_eq!(reply["response"]["status"], json!({"code": 400, "message": message}));
}

#[tokio::test]
async fn a_validator_sees_old_and_new_and_its_error_is_a_denial() {
    let allowed = answer(VALIDATE, review("CREATE", config(json!({})), Value::Null)).await;
    assert_eq!(allowed["response"]["warnings"], json!(["watch out"]));
    let denied = answer(VALIDATE, review("UPDATE", config(json!({"a": "1"})), config(json!({})))).await;
    let status = json!({"code": 403, "reason": "Forbidden", "message": "data does not change"});
    assert_eq!(denied["response"]["status"], status);
    assert_eq!(denied["response"]["warnings"], json!(["watch out"]));
    let deleted = answer(VALIDATE, review("DELETE", Value::Null, config(json!({})))).await;
    assert_eq!(deleted["response"]["status"]["message"], "it stays");
    let connected = answer(VALIDATE, review("CONNECT", json!({}), Value::Null)).await;
    assert_eq!(connected["response"]["allowed"], true);
}

#[tokio::test]
async fn a_denial_has_its_own_code() {
    let denied = answer(MUTATE, review("CREATE", config(json!({"do": "deny"})), Value::Null)).await;
    assert_eq!(denied["response"]["status"], json!({"code": 409, "reason": "Conflict", "message": "no"}));
}

#[tokio::test]
async fn a_panic_is_a_denial_with_the_uid() {
    let reply = answer(MUTATE, review("CREATE", config(json!({"do": "panic"})), Value::Null)).await;
    let status = json!({"code": 500, "message": "panic: on purpose [recovered]"});
    assert_eq!(reply["response"], json!({"uid": "u-1", "allowed": false, "status": status}));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_is_a_denial_before_the_server_gives_up() {
    let start = tokio::time::Instant::now();
    let reply = answer(MUTATE, review("CREATE", config(json!({"do": "wait"})), Value::Null)).await;
    assert_eq!(start.elapsed(), Duration::from_millis(9500));
    let message = "the webhook did not answer within 9.5s";
    let status = json!({"code": 504, "reason": "Timeout", "message": message});
    assert_eq!(reply["response"], json!({"uid": "u-1", "allowed": false, "status": status}));
}

#[tokio::test]
async fn bad_requests_are_denied_in_the_words_of_controller_runtime() {
    let message = |reply: Reply| {
        let reply: Value = serde_json::from_slice(&reply.body).expect("JSON");
        let status = &reply["response"]["status"];
        format!("{} {}", status["code"], status["message"].as_str().unwrap_or_default())
    };
    assert_eq!(message(post(MUTATE, "").await), "400 request body is empty");
    let large = post(MUTATE, vec![b' '; 7 << 20]).await;
    assert_eq!(message(large), "413 request entity is too large; limit is 7340032 bytes");
    let body = Bytes::from_static(b"{}");
    let plain = Request { path: MUTATE, query: None, content_type: Some("text/plain"), body };
    let plain = dispatcher().answer(plain).await;
    assert_eq!(message(plain), "400 contentType=text/plain, expected application/json");
    assert_eq!(message(post(MUTATE, "{").await), "400 the review is not valid JSON, at line 1 column 1");
    for body in ["[]", "null", "1", "\"a\""] {
        assert_eq!(message(post(MUTATE, body).await), "400 the review is not an object");
    }
    let deep = format!("{{\"a\": {}", "[".repeat(1_000_000));
    assert_eq!(message(post(MUTATE, deep).await), "400 the review is nested deeper than 120 levels");
    let empty = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}).to_string();
    assert_eq!(message(post(MUTATE, empty).await), "400 the review has no request");
    let without = review("CREATE", Value::Null, Value::Null).to_string();
    assert_eq!(message(post(MUTATE, without).await), "400 there is no content to decode");
    let wrong = review("CREATE", config(json!({"password": 12345})), Value::Null).to_string();
    let wrong = message(post(VALIDATE, wrong).await);
    assert_eq!(wrong, "400 the object does not decode: data.password: expected a string, found an integer");
    assert_eq!(post("/other", "{}").await.code, 404);
}

/// The stored object may be older than the type.
#[tokio::test]
async fn a_stored_object_that_does_not_decode_is_named() {
    let review = review("UPDATE", config(json!({})), config(json!({"secret-key": ["sesame"]})));
    let reply = answer(VALIDATE, review).await;
    let status = &reply["response"]["status"];
    let message = "the stored object does not decode: data.secret-key: expected a string, found an array";
    assert_eq!((&status["code"], &status["message"]), (&json!(400), &json!(message)));
}

/// A type whose fields are written as null if they are absent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Plain {
    #[serde(flatten)]
    types: kube_core::TypeMeta,
    metadata: kube_core::ObjectMeta,
    size: Option<u32>,
    note: Option<String>,
    history: Option<History>,
    #[serde(default)]
    raw: Value,
    #[serde(default = "five")]
    limit: Option<u32>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct History {
    failed: Option<u32>,
    successful: Option<u32>,
}

#[expect(clippy::unnecessary_wraps, reason = "the type of the field")]
fn five() -> Option<u32> {
    Some(5)
}

impl kube_core::Resource for Plain {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;
    fn kind((): &()) -> std::borrow::Cow<'_, str> {
        "Plain".into()
    }
    fn group((): &()) -> std::borrow::Cow<'_, str> {
        "example.com".into()
    }
    fn version((): &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }
    fn plural((): &()) -> std::borrow::Cow<'_, str> {
        "plains".into()
    }
    fn meta(&self) -> &kube_core::ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut kube_core::ObjectMeta {
        &mut self.metadata
    }
}

#[tokio::test]
async fn a_defaulter_adds_no_null_for_an_absent_field() {
    async fn history(mut plain: Plain, _: AdmissionContext) -> Result<Plain, AdmissionDenial> {
        plain.history = Some(History { failed: Some(1), successful: None });
        plain.size = None;
        plain.raw = json!({"kept": null});
        plain.limit = None;
        Ok(plain)
    }
    let webhooks = Webhooks::new().defaulter::<Plain>(history);
    let pruning = Webhooks::new().admission(AdmissionWebhook::defaulter_that_prunes::<Plain>(history));
    for webhooks in [webhooks, pruning] {
        let types = kube_core::TypeMeta::resource::<Plain>();
        let admission = Admission::create(&Plain { types, limit: Some(7), ..Plain::default() })
            .with_field("/size", json!(3))
            .with_field("/note", json!(null));
        let admitted = webhooks.admit(admission).await;
        let object = admitted.json();
        assert_eq!(object["history"], json!({"failed": 1}), "a None of an added part");
        assert_eq!(object.get("size"), None, "a field that is now None");
        assert_eq!(object.get("note"), Some(&Value::Null), "a null of the user");
        assert_eq!(object["raw"], json!({"kept": null}), "a null in any JSON");
        assert_eq!(object.get("limit"), Some(&Value::Null), "a null that is not the default");
    }
}

#[tokio::test]
async fn a_raw_handler_gets_the_request_and_sets_everything() {
    async fn handle(request: AdmissionRequest<DynamicObject>) -> AdmissionResponse {
        let mut response = AdmissionResponse::from(&request);
        response.warnings = Some(vec![format!("{:?}", request.operation)]);
        response.audit_annotations.insert("a".to_owned(), "b".to_owned());
        let object = serde_json::to_value(&request.object).expect("JSON");
        let mut changed = object.clone();
        changed["data"] = json!({"x": "y"});
        response.patched(&object, &changed)
    }
    let webhooks = Webhooks::new().admission(
        AdmissionWebhook::mutating("/raw/handler", handle).rule(Rule::new("", "v1", "configmaps")),
    );
    let admitted = webhooks.admit(Admission::create(&ConfigMap::default())).await;
    assert_eq!(admitted.object().expect("allowed").data.expect("data")["x"], "y");
    assert_eq!(admitted.warnings(), ["Create"]);
    assert_eq!(webhooks.admissions()[0].name, "raw-handler.kb.io");
}

#[tokio::test]
async fn a_pruning_defaulter_removes_what_its_type_does_not_know() {
    async fn same(config: ConfigMap, _: AdmissionContext) -> Result<ConfigMap, AdmissionDenial> {
        Ok(config)
    }
    let admission = || Admission::create(&ConfigMap::default()).with_field("/extra", json!({"a": 1}));
    let keeps = Webhooks::new().defaulter::<ConfigMap>(same);
    assert_eq!(keeps.admit(admission()).await.json()["extra"], json!({"a": 1}));
    let prunes = Webhooks::new().admission(AdmissionWebhook::defaulter_that_prunes::<ConfigMap>(same));
    assert_eq!(prunes.admit(admission()).await.json().get("extra"), None);
}

#[tokio::test]
async fn operations_and_subresources_select_the_webhooks_that_are_called() {
    struct Never;
    impl Validator<ConfigMap> for Never {
        type Error = AdmissionDenial;
        async fn validate_delete(&self, _: ConfigMap, _: AdmissionContext) -> Result<(), AdmissionDenial> {
            Err(AdmissionDenial::new("never"))
        }
    }
    let all = [Operation::Create, Operation::Update, Operation::Delete];
    let webhook = AdmissionWebhook::validator::<ConfigMap>(Never).operations(all);
    let webhooks = Webhooks::new().admission(webhook);
    let config = ConfigMap::default();
    assert!(webhooks.admit(Admission::create(&config)).await.is_allowed());
    assert!(webhooks.admit(Admission::update(&config, &config)).await.is_allowed());
    let deleted = webhooks.admit(Admission::delete(&config)).await;
    assert_eq!((deleted.is_allowed(), &*deleted.status().message), (false, "never"));
    let scaled = Admission::delete(&config).subresource("scale").dry_run().user("bob", &["ops"]);
    assert!(webhooks.admit(scaled).await.is_allowed());
}

#[test]
fn mistakes_in_a_declaration_are_errors() {
    let error =
        |webhooks: Webhooks| webhooks.dispatcher(WebhookMetrics::default()).expect_err("refused").to_string();
    let twice = Webhooks::new().defaulter::<ConfigMap>(default).defaulter::<ConfigMap>(default);
    assert_eq!(error(twice), "two webhooks have the path /mutate--v1-configmap; set one with `.path(..)`");
    let webhook = AdmissionWebhook::defaulter::<ConfigMap>(default).path("no slash");
    assert!(error(Webhooks::new().admission(webhook)).starts_with("\"no slash\" is not a webhook path"));
}

#[test]
fn an_error_of_the_api_server_keeps_its_status() {
    #[derive(Debug, thiserror::Error)]
    #[error("wrapped")]
    struct Wrapper(#[source] Box<Status>);
    let status = Status { code: 404, reason: "NotFound".to_owned(), ..Status::default() };
    let denial = AdmissionDenial::from_error(&Wrapper(Box::new(status.clone())).into());
    assert_eq!(denial.status(), &status);
    let error = FieldError::not_supported("spec.colour", "grey", &["red", "blue"]);
    assert_eq!(
        error.to_string(),
        "spec.colour: Unsupported value: \"grey\": supported values: \"red\", \"blue\""
    );
    let errors = [FieldError::duplicate("a[1]", 3), FieldError::forbidden("b", "immutable")];
    let denial = AdmissionDenial::invalid::<ConfigMap>("a", errors);
    let wanted = "ConfigMap \"a\" is invalid: [a[1]: Duplicate value: 3, b: Forbidden: immutable]";
    assert_eq!(denial.to_string(), wanted);
}

/// Generates reviews with unusual values.
fn odd_review() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z\"\\\\]{0,5}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        let object = proptest::collection::btree_map("[a-z]{1,3}", inner.clone(), 0..3);
        prop_oneof![
            proptest::collection::vec(inner, 0..3).prop_map(Value::from),
            object.prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    let fields = ["uid", "operation", "object", "oldObject", "kind", "userInfo", "name", "dryRun", "options"];
    let places = proptest::sample::select(fields.to_vec());
    let changed = (places, value).prop_map(|(field, value)| {
        let mut review = review("UPDATE", config(json!({})), config(json!({})));
        review["request"][field] = value;
        review.to_string().into_bytes()
    });
    let cut = (0..400_usize).prop_map(|length| {
        let mut text = review("CREATE", config(json!({})), Value::Null).to_string().into_bytes();
        text.truncate(length);
        text
    });
    prop_oneof![changed, cut, proptest::collection::vec(any::<u8>(), 1..100)]
}

proptest! {
    #[test]
    fn any_body_gets_a_review(body in odd_review()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for path in [MUTATE, VALIDATE] {
            let reply = runtime.block_on(post(path, body.clone()));
            let reply: Value = serde_json::from_slice(&reply.body).unwrap();
            prop_assert!(reply["response"]["allowed"].is_boolean());
            prop_assert!(reply["response"]["status"]["code"].is_u64());
        }
    }
}
