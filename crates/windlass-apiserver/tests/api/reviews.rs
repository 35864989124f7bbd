//! Questions to the server about the user and the user's rights.

use expect_test::expect;
use serde_json::json;

use crate::harness::{Api, lines};

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
        422 Invalid: .authorization.k8s.io "" is invalid: spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified
        group="authorization.k8s.io"
        - FieldValueInvalid spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"#]]);
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

/// A role binding of a user of this test, who may list config maps in its namespace.
async fn lister(api: &Api) -> (String, String) {
    let (ns, user) = (api.namespace().await, format!("jane-{}", api.id));
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}");
    let rules =
        json!([{"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"]}]);
    api.post(&format!("{rbac}/roles"), json!({"metadata": {"name": "r"}, "rules": rules})).await.is(201);
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": "b"},
        "subjects": [{"kind": "User", "apiGroup": group, "name": user}],
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "r"}
    });
    api.post(&format!("{rbac}/rolebindings"), binding).await.is(201);
    let jane = api.impersonating(&user, &[]);
    let list = format!("/api/v1/namespaces/{ns}/configmaps?fieldSelector=metadata.name%3Da");
    jane.eventually(&list, |reply| reply.code == 200).await;
    (ns, user)
}

#[tokio::test]
async fn the_reason_names_the_binding() {
    let api = Api::start();
    let (ns, user) = lister(&api).await;
    let attributes =
        |verb: &str| json!({"namespace": ns, "verb": verb, "resource": "configmaps", "name": "a"});
    let reviews = format!("{AUTHORIZATION}/subjectaccessreviews");
    let review = |verb: &str| json!({"spec": {"user": user, "uid": "7", "extra": {"a": ["b"]}, "resourceAttributes": attributes(verb)}});
    api.post(&reviews, review("list")).await.is(201).shows(expect![[r#"
        201
        {
          "apiVersion": "authorization.k8s.io/v1",
          "kind": "SubjectAccessReview",
          "metadata": {
            "managedFields": [
              "api-test Update authorization.k8s.io/v1: {'f:spec':{'f:extra':{'.':{},'f:a':{}},'f:resourceAttributes':{'.':{},'f:name':{},'f:namespace':{},'f:resource':{},'f:verb':{}},'f:uid':{},'f:user':{}}}"
            ]
          },
          "spec": {
            "extra": {
              "a": [
                "b"
              ]
            },
            "resourceAttributes": {
              "name": "a",
              "namespace": "ns-ID",
              "resource": "configmaps",
              "verb": "list"
            },
            "uid": "7",
            "user": "jane-ID"
          },
          "status": {
            "allowed": true,
            "reason": "RBAC: allowed by RoleBinding \"b/ns-ID\" of Role \"r\" to User \"jane-ID\""
          }
        }"#]]);
    api.post(&reviews, review("get")).await.is(201).shows(expect![[r#"
        201
        {
          "apiVersion": "authorization.k8s.io/v1",
          "kind": "SubjectAccessReview",
          "metadata": {
            "managedFields": [
              "api-test Update authorization.k8s.io/v1: {'f:spec':{'f:extra':{'.':{},'f:a':{}},'f:resourceAttributes':{'.':{},'f:name':{},'f:namespace':{},'f:resource':{},'f:verb':{}},'f:uid':{},'f:user':{}}}"
            ]
          },
          "spec": {
            "extra": {
              "a": [
                "b"
              ]
            },
            "resourceAttributes": {
              "name": "a",
              "namespace": "ns-ID",
              "resource": "configmaps",
              "verb": "get"
            },
            "uid": "7",
            "user": "jane-ID"
          },
          "status": {
            "allowed": false
          }
        }"#]]);
    let local = format!("{AUTHORIZATION}/namespaces/{ns}/localsubjectaccessreviews");
    let reply = api.post(&local, review("list")).await.is(201);
    assert_eq!(reply.at("/status/allowed"), true);
    assert_eq!(reply.at("/metadata/namespace"), ns);
    let paths = json!({"spec": {"groups": ["system:authenticated"], "nonResourceAttributes": {"verb": "get", "path": "/apis/x"}}});
    assert_eq!(
        api.post(&reviews, paths).await.is(201).text_at("/status/reason"),
        "RBAC: allowed by ClusterRoleBinding \"system:discovery\" of ClusterRole \"system:discovery\" to Group \"system:authenticated\""
    );
    let master =
        json!({"spec": {"user": "m", "groups": ["system:masters"], "resourceAttributes": attributes("get")}});
    assert_eq!(api.post(&reviews, master).await.is(201).at("/status"), json!({"allowed": true}));
    let jane = api.impersonating(&user, &[]);
    let myself = json!({"spec": {"resourceAttributes": attributes("list")}});
    let reply = jane.post(&format!("{AUTHORIZATION}/selfsubjectaccessreviews"), myself).await.is(201);
    assert_eq!(reply.at("/status/allowed"), true);
}

#[tokio::test]
async fn reviews_are_validated() {
    let api = Api::start();
    let reviews = format!("{AUTHORIZATION}/subjectaccessreviews");
    let local = format!("{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews");
    let paths = json!({"verb": "get", "path": "/a"});
    let pods = json!({"namespace": "other", "verb": "get", "resource": "pods"});
    let mut seen = Vec::new();
    for (path, body) in [
        (&reviews, json!({"spec": {"resourceAttributes": pods, "nonResourceAttributes": paths}})),
        (&reviews, json!({"spec": {"user": "u", "resourceAttributes": {"fieldSelector": {}}}})),
        (
            &reviews,
            json!({"spec": {"user": "u", "resourceAttributes": {"labelSelector": {"rawSelector": "a", "requirements": [{"key": "a", "operator": "Exists"}]}}}}),
        ),
        (
            &reviews,
            json!({"spec": {"user": "u", "resourceAttributes": {
                "labelSelector": {"requirements": [
                    {"key": "", "operator": "Frob", "values": ["a b"]}, {"key": "a", "operator": "In"}
                ]},
                "fieldSelector": {"requirements": [
                    {"key": "", "operator": "Exists", "values": ["b"]}, {"key": "a", "operator": "NotIn"}
                ]}
            }}}),
        ),
        (&local, json!({"spec": {"user": "u", "resourceAttributes": pods}})),
        (&local, json!({"spec": {"user": "u", "nonResourceAttributes": paths}})),
        (
            &local,
            json!({"metadata": {"namespace": "other"}, "spec": {"user": "u", "nonResourceAttributes": paths}}),
        ),
    ] {
        seen.push(api.post(path, body).await.to_string());
    }
    expect![[r#"
        422 Invalid: .authorization.k8s.io "" is invalid: [as below]
        group="authorization.k8s.io"
        - FieldValueInvalid spec.user: Invalid value: "": at least one of user or group must be specified
        - FieldValueInvalid spec: Invalid value: {"Path":"/a","Verb":"get"}: exactly one of nonResourceAttributes or resourceAttributes must be specified
        422 Invalid: .authorization.k8s.io "" is invalid: spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required
        group="authorization.k8s.io"
        - FieldValueRequired spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required
        422 Invalid: .authorization.k8s.io "" is invalid: spec.resourceAttributes.labelSelector.rawSelector: Invalid value: "a": may not specified at the same time as requirements
        group="authorization.k8s.io"
        - FieldValueInvalid spec.resourceAttributes.labelSelector.rawSelector: Invalid value: "a": may not specified at the same time as requirements
        422 Invalid: .authorization.k8s.io "" is invalid: [as below]
        group="authorization.k8s.io"
        - FieldValueForbidden spec.resourceAttributes.fieldSelector.requirements[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'
        - FieldValueInvalid spec.resourceAttributes.labelSelector.requirements[0].key: Invalid value: "": name part must be non-empty
        - FieldValueInvalid spec.resourceAttributes.labelSelector.requirements[0].key: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        - FieldValueInvalid spec.resourceAttributes.labelSelector.requirements[0].values[0]: Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        - FieldValueRequired spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified
        - FieldValueRequired spec.resourceAttributes.fieldSelector.requirements[1].values: Required value: must be specified when `operator` is 'In' or 'NotIn'
        - FieldValueRequired spec.resourceAttributes.labelSelector.requirements[1].values: Required value: must be specified when `operator` is 'In' or 'NotIn'
        422 Invalid: .authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace
        group="authorization.k8s.io"
        - FieldValueInvalid spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace
        422 Invalid: .authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: {"Path":"/a","Verb":"get"}: disallowed on this kind of request
        group="authorization.k8s.io"
        - FieldValueInvalid spec.nonResourceAttributes: Invalid value: {"Path":"/a","Verb":"get"}: disallowed on this kind of request
        400 BadRequest: the namespace of the provided object does not match the namespace sent on the request
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn the_rules_of_a_user_are_those_of_all_bindings() {
    let api = Api::start();
    let (ns, user) = lister(&api).await;
    let jane = api.impersonating(&user, &[]);
    let reviews = format!("{AUTHORIZATION}/selfsubjectrulesreviews");
    let reply = jane.post(&reviews, json!({"spec": {"namespace": ns}})).await.is(201);
    let mut rules: Vec<String> = ["resourceRules", "nonResourceRules"]
        .iter()
        .flat_map(|rules| reply.at(&format!("/status/{rules}")).as_array().unwrap().clone())
        .map(|rule| rule.to_string())
        .collect();
    // The real server finds them in any order.
    rules.sort();
    expect![[r#"
        {"apiGroups":[""],"resourceNames":["a"],"resources":["configmaps"],"verbs":["list"]}
        {"apiGroups":["authentication.k8s.io"],"resources":["selfsubjectreviews"],"verbs":["create"]}
        {"apiGroups":["authorization.k8s.io"],"resources":["selfsubjectaccessreviews","selfsubjectrulesreviews"],"verbs":["create"]}
        {"nonResourceURLs":["/api","/api/*","/apis","/apis/*","/healthz","/livez","/openapi","/openapi/*","/readyz","/version","/version/"],"verbs":["get"]}
        {"nonResourceURLs":["/healthz","/livez","/readyz","/version","/version/"],"verbs":["get"]}
    "#]].assert_eq(&lines(&rules));
    assert_eq!(reply.at("/spec"), json!({}));
    jane.post(&reviews, json!({"spec": {}})).await.shows(expect!["400 BadRequest: no namespace on request"]);
}

#[tokio::test]
async fn a_selector_that_cannot_be_parsed_is_ignored() {
    let api = Api::start();
    let selectors = json!({
        "verb": "list", "resource": "pods",
        "labelSelector": {"rawSelector": "a in (b"}, "fieldSelector": {"rawSelector": "a"}
    });
    let review = json!({"spec": {"groups": ["system:masters"], "resourceAttributes": selectors}});
    let reply = api.post(&format!("{AUTHORIZATION}/subjectaccessreviews"), review).await.is(201);
    assert_eq!(reply.at("/status/allowed"), true);
    assert_eq!(
        reply.text_at("/status/evaluationError"),
        "spec.resourceAttributes.fieldSelector ignored due to parse error; \
         spec.resourceAttributes.labelSelector ignored due to parse error"
    );
}

#[tokio::test]
async fn a_review_whose_metadata_is_no_object_is_refused() {
    let api = Api::start();
    let attributes = json!({"namespace": "default", "verb": "get", "resource": "pods"});
    let spec = json!({"user": "u", "namespace": "default", "resourceAttributes": attributes});
    let mut seen = Vec::new();
    for resource in
        ["subjectaccessreviews", "namespaces/default/localsubjectaccessreviews", "selfsubjectrulesreviews"]
    {
        let path = format!("{AUTHORIZATION}/{resource}");
        for metadata in [json!("x"), json!([]), json!(1)] {
            seen.push(api.post(&path, json!({"metadata": metadata, "spec": spec})).await.to_string());
        }
        api.post(&path, json!({"metadata": null, "spec": spec})).await.is(201);
    }
    expect![[r#"
        400 BadRequest: SubjectAccessReview in version "v1" cannot be handled as a SubjectAccessReview: json: cannot unmarshal string into Go struct field SubjectAccessReview.metadata of type v1.ObjectMeta
        400 BadRequest: SubjectAccessReview in version "v1" cannot be handled as a SubjectAccessReview: json: cannot unmarshal array into Go struct field SubjectAccessReview.metadata of type v1.ObjectMeta
        400 BadRequest: SubjectAccessReview in version "v1" cannot be handled as a SubjectAccessReview: json: cannot unmarshal number into Go struct field SubjectAccessReview.metadata of type v1.ObjectMeta
        400 BadRequest: LocalSubjectAccessReview in version "v1" cannot be handled as a LocalSubjectAccessReview: json: cannot unmarshal string into Go struct field LocalSubjectAccessReview.metadata of type v1.ObjectMeta
        400 BadRequest: LocalSubjectAccessReview in version "v1" cannot be handled as a LocalSubjectAccessReview: json: cannot unmarshal array into Go struct field LocalSubjectAccessReview.metadata of type v1.ObjectMeta
        400 BadRequest: LocalSubjectAccessReview in version "v1" cannot be handled as a LocalSubjectAccessReview: json: cannot unmarshal number into Go struct field LocalSubjectAccessReview.metadata of type v1.ObjectMeta
        400 BadRequest: SelfSubjectRulesReview in version "v1" cannot be handled as a SelfSubjectRulesReview: json: cannot unmarshal string into Go struct field SelfSubjectRulesReview.metadata of type v1.ObjectMeta
        400 BadRequest: SelfSubjectRulesReview in version "v1" cannot be handled as a SelfSubjectRulesReview: json: cannot unmarshal array into Go struct field SelfSubjectRulesReview.metadata of type v1.ObjectMeta
        400 BadRequest: SelfSubjectRulesReview in version "v1" cannot be handled as a SelfSubjectRulesReview: json: cannot unmarshal number into Go struct field SelfSubjectRulesReview.metadata of type v1.ObjectMeta
    "#]].assert_eq(&lines(&seen));
}
