use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::*;

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}

fn deployments() -> GroupResource {
    GroupResource::new("apps", "deployments")
}

fn wire(error: &ApiError) -> Value {
    serde_json::from_slice(&error.status().to_json()).expect("a Status is JSON")
}

#[test]
fn not_found_is_the_real_servers() {
    assert_eq!(
        wire(&ApiError::not_found(&deployments(), "x")),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "deployments.apps \"x\" not found", "reason": "NotFound",
            "details": {"name": "x", "group": "apps", "kind": "deployments"}, "code": 404})
    );
}

#[test]
fn invalid_names_the_kind_and_lists_causes() {
    let one = [FieldError::required("metadata.name", "name or generateName is required")];
    assert_eq!(
        wire(&ApiError::invalid("", "ConfigMap", "", &one)),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
            "reason": "Invalid",
            "details": {"kind": "ConfigMap", "causes": [{"reason": "FieldValueRequired",
                "message": "Required value: name or generateName is required", "field": "metadata.name"}]},
            "code": 422})
    );
    let two = [FieldError::required("a", ""), FieldError::required("a", ""), FieldError::required("b", "")];
    let error = ApiError::invalid("apps", "Deployment", "d", &two);
    assert_eq!(error.to_string(), "Deployment.apps \"d\" is invalid: [a: Required value, b: Required value]");
}

#[test]
fn denials_name_who_what_and_where() {
    let mut denied = Denied {
        user: "u",
        verb: "list",
        resource: pods(),
        subresource: "",
        namespace: "d",
        name: "",
        path: "/api/v1/namespaces/d/pods",
    };
    assert_eq!(
        ApiError::denied(&denied).to_string(),
        "pods is forbidden: User \"u\" cannot list resource \"pods\" in API group \"\" in the namespace \"d\""
    );
    denied.namespace = "";
    denied.subresource = "log";
    denied.name = "p";
    assert_eq!(
        ApiError::denied(&denied).to_string(),
        "pods \"p\" is forbidden: User \"u\" cannot list resource \"pods/log\" in API group \"\" at the cluster scope"
    );
    denied.resource = GroupResource::default();
    denied.path = "/me<tr>ics";
    assert_eq!(
        ApiError::denied(&denied).to_string(),
        "forbidden: User \"u\" cannot list path \"/me&lt;tr&gt;ics\""
    );
    // The path `/api/v1/namespaces///p` has an object without a resource.
    (denied.path, denied.subresource) = ("", "");
    assert_eq!(
        ApiError::denied(&denied).to_string(),
        "forbidden: User \"u\" cannot list resource \"\" in API group \"\" at the cluster scope"
    );
}

#[test]
fn a_version_ahead_of_the_server_says_so_in_a_cause() {
    assert_eq!(
        wire(&ApiError::resource_version_too_large(100, 7, 1)),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "Timeout: Too large resource version: 100, current: 7", "reason": "Timeout",
            "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1},
            "code": 504})
    );
}

#[test]
fn an_expired_token_carries_the_next_one() {
    let error = ApiError::continue_expired("abc".to_owned());
    assert_eq!(wire(&error)["metadata"], json!({"continue": "abc"}));
    assert_eq!((error.code(), error.reason()), (410, "Expired"));
}

#[test]
fn of_very_many_errors_the_first_are_listed() {
    let errors = |count: usize| -> Vec<FieldError> {
        (0..count).map(|number| FieldError::required(format!("f{number}"), "")).collect()
    };
    let causes = |count: usize| {
        let status = wire(&ApiError::invalid("", "Pod", "x", &errors(count)));
        status["details"]["causes"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(causes(MAX_ERRORS), MAX_ERRORS);
    assert_eq!(causes(MAX_ERRORS * 10), MAX_ERRORS + 1);
}
