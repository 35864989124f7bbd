use super::*;
use crate::auth::Tokens;

fn ask(asker: &Identity, namespace: &str, kind: &str, review: Value) -> Result<Value, ApiError> {
    let mut tokens = Tokens::default();
    tokens.add("t0ken", Identity::user("robot").with_uid("r1"));
    let reviewer = Reviewer {
        asker,
        namespace,
        identity_of: &|token| tokens.find(token).cloned(),
        now: "2026-01-02T03:04:05Z".to_owned(),
    };
    reviewer.answer(kind, review).expect("a review")
}

fn list_pods() -> Value {
    json!({ "spec": { "resourceAttributes": { "verb": "list", "resource": "pods", "namespace": "default" } } })
}

#[test]
fn may_i_depends_on_who_asks() {
    for (asker, expected) in [(Identity::admin(), true), (Identity::user("jane"), false)] {
        let answer = ask(&asker, "", "SelfSubjectAccessReview", list_pods()).unwrap();
        assert_eq!(answer["status"]["allowed"], json!(expected), "{asker:?}");
    }
}

#[test]
fn may_they_depends_on_who_is_named_not_on_who_asks() {
    let mut review = list_pods();
    review["spec"]["user"] = json!("jane");
    let answer = ask(&Identity::admin(), "", "SubjectAccessReview", review.clone()).unwrap();
    assert_eq!(answer["status"]["allowed"], json!(false));
    review["spec"]["groups"] = json!(["system:masters"]);
    let answer = ask(&Identity::admin(), "", "SubjectAccessReview", review).unwrap();
    assert_eq!(answer["status"]["allowed"], json!(true));
}

#[test]
fn questions_that_ask_nothing_are_refused() {
    let error = ask(&Identity::admin(), "", "SelfSubjectAccessReview", json!({ "spec": {} })).unwrap_err();
    assert_eq!(
        error.to_string(),
        ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of \
         nonResourceAttributes or resourceAttributes must be specified"
    );
    let error = ask(&Identity::admin(), "", "SubjectAccessReview", list_pods()).unwrap_err();
    assert!(error.to_string().contains("at least one of user or group must be specified"), "{error}");
    let mut elsewhere = list_pods();
    elsewhere["spec"]["user"] = json!("jane");
    let error = ask(&Identity::admin(), "other", "LocalSubjectAccessReview", elsewhere).unwrap_err();
    assert!(error.to_string().contains("must match metadata.namespace"), "{error}");
}

#[test]
fn a_token_names_its_user_or_is_invalid() {
    let known = json!({ "spec": { "token": "t0ken" } });
    let answer = ask(&Identity::admin(), "", "TokenReview", known).unwrap();
    assert_eq!(answer["status"]["authenticated"], json!(true));
    assert_eq!(
        answer["status"]["user"],
        json!({ "username": "robot", "uid": "r1", "groups": ["system:authenticated"] })
    );
    let answer = ask(&Identity::admin(), "", "TokenReview", json!({ "spec": { "token": "x" } })).unwrap();
    assert_eq!(answer["status"], json!({ "user": {}, "error": "invalid bearer token" }));
    assert!(ask(&Identity::admin(), "", "TokenReview", json!({ "spec": {} })).is_err());
}

#[test]
fn who_am_i() {
    let answer = ask(&Identity::admin(), "", "SelfSubjectReview", json!({ "metadata": {} })).unwrap();
    assert_eq!(answer["status"]["userInfo"]["username"], json!("kubernetes-admin"));
    assert_eq!(answer["metadata"]["creationTimestamp"], json!("2026-01-02T03:04:05Z"));
}

#[test]
fn the_rules_of_a_namespace() {
    let review = json!({ "spec": { "namespace": "default" } });
    let answer = ask(&Identity::admin(), "", "SelfSubjectRulesReview", review.clone()).unwrap();
    assert_eq!(answer["status"]["resourceRules"][0]["resources"], json!(["*"]));
    let answer = ask(&Identity::user("jane"), "", "SelfSubjectRulesReview", review).unwrap();
    assert_eq!(answer["status"]["resourceRules"][0]["verbs"], json!(["create"]));
    let error = ask(&Identity::admin(), "", "SelfSubjectRulesReview", json!({ "spec": {} })).unwrap_err();
    assert_eq!(error.to_string(), "no namespace on request");
}
