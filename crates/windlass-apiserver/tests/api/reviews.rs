//! Questions to the server about who one is and what one may do.

use expect_test::expect;
use serde_json::json;

use crate::harness::Api;

const AUTHORIZATION: &str = "/apis/authorization.k8s.io/v1";

#[tokio::test]
async fn who_am_i() {
    let api = Api::start();
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let reply = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", body).await.is(201);
    assert_eq!(reply.at("/kind"), "SelfSubjectReview");
    assert!(reply.text_at("/status/userInfo/username").contains("admin"));
    assert!(reply.at("/status/userInfo/groups").as_array().unwrap().contains(&json!("system:masters")));
}

#[tokio::test]
async fn may_i() {
    let api = Api::start();
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"namespace": "default", "verb": "create", "resource": "pods"}}});
    let reply = api.post(&format!("{AUTHORIZATION}/selfsubjectaccessreviews"), body).await.is(201);
    assert_eq!(reply.at("/status/allowed"), true);
    let body =
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}});
    api.post(&format!("{AUTHORIZATION}/selfsubjectaccessreviews"), body).await.shows(expect![[r#"
        422 Invalid: .authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified
        group="authorization.k8s.io"
        - FieldValueInvalid spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"#]]);
}

#[tokio::test]
async fn may_somebody_else() {
    let api = Api::start();
    let body = |user: &str, groups: &[&str]| {
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": user, "groups": groups, "resourceAttributes": {"namespace": "default", "verb": "delete", "resource": "secrets"}
        }})
    };
    let path = format!("{AUTHORIZATION}/subjectaccessreviews");
    let nobody = api.post(&path, body(&format!("user-{}", api.id), &[])).await.is(201);
    assert_eq!(nobody.at("/status/allowed"), false);
    let master = api.post(&path, body("root", &["system:masters"])).await.is(201);
    assert_eq!(master.at("/status/allowed"), true);
}

#[tokio::test]
async fn what_may_i() {
    let api = Api::start();
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}});
    let reply = api.post(&format!("{AUTHORIZATION}/selfsubjectrulesreviews"), body).await.is(201);
    assert_eq!(reply.at("/status/incomplete"), false);
    let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    assert!(reply.at("/status/resourceRules").as_array().unwrap().contains(&all));
}

#[tokio::test]
async fn reviews_cannot_be_read() {
    let api = Api::start();
    api.get(&format!("{AUTHORIZATION}/subjectaccessreviews")).await.shows(expect![
        "405 MethodNotAllowed: the server does not allow this method on the requested resource"
    ]);
}
