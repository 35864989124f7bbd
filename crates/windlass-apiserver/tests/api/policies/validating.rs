//! Validating policies: refused requests, warnings, parameters, variables.

use expect_test::expect;
use serde_json::{Value, json};

use super::Policies;
use crate::harness::{Api, MERGE_PATCH, lines};

/// Returns the code and the message of a reply.
fn said(reply: &crate::harness::Reply, id: &str) -> String {
    let message = reply.at("/message").as_str().map(str::to_owned).unwrap_or_default();
    crate::harness::plain(&format!("{} {message}", reply.code), id).trim_end().to_owned()
}

#[tokio::test]
async fn a_violation_refuses_the_request() {
    let api = Api::start();
    let policies = Policies::new(&api, "validating").await;
    let validations = json!([
        {"expression": "!has(object.data) || object.data.all(key, key != 'bad')"},
        {"expression": "!has(object.data) || !('worse' in object.data)", "message": " not this ", "reason": "Forbidden"},
    ]);
    policies.add("keys", json!({"validations": validations}), json!({})).await;
    policies.try_config_map("a", json!({"good": "1"})).await.is(201);
    policies.try_config_map("a", json!({"bad": "1"})).await.shows(expect![[r#"
        422 Invalid: configmaps "a" is forbidden: ValidatingAdmissionPolicy 'keys-ID' with binding 'keys-ID' denied request: failed expression: !has(object.data) || object.data.all(key, key != 'bad')
        kind="configmaps" name="a"
        - - -: ValidatingAdmissionPolicy 'keys-ID' with binding 'keys-ID' denied request: failed expression: !has(object.data) || object.data.all(key, key != 'bad')"#]]);
    policies.try_config_map("a", json!({"worse": "1"})).await.shows(expect![[r#"
        403 Forbidden: configmaps "a" is forbidden: ValidatingAdmissionPolicy 'keys-ID' with binding 'keys-ID' denied request: not this
        kind="configmaps" name="a"
        - - -: ValidatingAdmissionPolicy 'keys-ID' with binding 'keys-ID' denied request: not this"#]]);
    policies.try_config_map("a", json!({"bad": "1", "worse": "1"})).await.shows(expect![[r#"
        422 Invalid: configmaps "a" is forbidden: ValidatingAdmissionPolicy 'keys-ID' with binding 'keys-ID' denied request: failed expression: !has(object.data) || object.data.all(key, key != 'bad')
        kind="configmaps" name="a"
        - - -: ValidatingAdmissionPolicy 'keys-ID' with binding 'keys-ID' denied request: failed expression: !has(object.data) || object.data.all(key, key != 'bad')"#]]);
}

#[tokio::test]
async fn a_message_may_be_computed() {
    let api = Api::start();
    let policies = Policies::new(&api, "validating").await;
    let validation = |key: &str, message: &str| {
        json!({
            "expression": format!("object.data[?'key'].orValue('') != '{key}'"),
            "messageExpression": message, "message": "the fixed message"
        })
    };
    let validations = json!([
        validation("fine", "'the key of ' + object.metadata.name"),
        validation("fails", "string(object.data.absent)"),
        validation("lines", "'a\\nb'"),
        validation("blank", "'  '"),
        validation("asks", "string(params == null)"),
    ]);
    policies
        .add(
            "messages",
            json!({"validations": validations, "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}),
            json!({}),
        )
        .await;
    let mut seen = Vec::new();
    for key in ["fine", "fails", "lines", "blank", "asks"] {
        let reply = policies.try_config_map("a", json!({"key": key})).await;
        seen.push(format!("{key}: {}", said(&reply, &api.id)));
    }
    expect![[r#"
        fine: 422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'messages-ID' with binding 'messages-ID' denied request: the key of a
        fails: 422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'messages-ID' with binding 'messages-ID' denied request: the fixed message
        lines: 422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'messages-ID' with binding 'messages-ID' denied request: the fixed message
        blank: 422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'messages-ID' with binding 'messages-ID' denied request: the fixed message
        asks: 422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'messages-ID' with binding 'messages-ID' denied request: true
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn bindings_may_only_warn() {
    let api = Api::start();
    let policies = Policies::new(&api, "validating").await;
    let validations = json!([
        {"expression": "false", "message": "never good"},
        {"expression": "object.metadata.name == 'a'"},
        {"expression": "object.data.absent == '1'"},
    ]);
    let audits = json!([{"key": "name", "valueExpression": "string(object.metadata.name)"}]);
    let spec = json!({"validations": validations, "auditAnnotations": audits});
    policies.add("warns", spec, json!({"validationActions": ["Warn", "Audit"]})).await;
    let reply = policies.try_config_map("b", json!({"k": "v"})).await.is(201);
    let warnings: Vec<String> =
        reply.warnings().iter().map(|text| crate::harness::plain(text, &api.id)).collect();
    expect![[r#"
        299 - "Validation failed for ValidatingAdmissionPolicy 'warns-ID' with binding 'warns-ID': never good"
        299 - "Validation failed for ValidatingAdmissionPolicy 'warns-ID' with binding 'warns-ID': failed expression: object.metadata.name == 'a'"
        299 - "Validation failed for ValidatingAdmissionPolicy 'warns-ID' with binding 'warns-ID': expression 'object.data.absent == '1'' resulted in error: no such key: absent"
    "#]].assert_eq(&lines(&warnings));
}

#[tokio::test]
async fn failures_follow_the_failure_policy() {
    let api = Api::start();
    let policies = Policies::new(&api, "validating").await;
    let spec = |policy: &str, key: &str| {
        let validations = json!([{"expression": "object.data.absent == '1'"}]);
        let selector = json!({"objectSelector": {"matchLabels": {"l": key}}});
        json!({"validations": validations, "failurePolicy": policy, "matchConstraints": selector})
    };
    policies.create("ignores", spec("Ignore", "ignore"), json!({})).await;
    policies.add("fails", spec("Fail", "fail"), json!({})).await;
    let mut seen = Vec::new();
    for label in ["ignore", "fail", "other"] {
        let body = json!({"metadata": {"name": "a", "labels": {"l": label}}, "data": {"k": "v"}});
        let reply = api.post(&format!("{}?dryRun=All", policies.config_maps()), body).await;
        seen.push(format!("{label}: {}", said(&reply, &api.id)));
    }
    expect![[r#"
        ignore: 201
        fail: 422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'fails-ID' with binding 'fails-ID' denied request: expression 'object.data.absent == '1'' resulted in error: no such key: absent
        other: 201
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn variables_are_computed_from_each_other() {
    let api = Api::start();
    let policies = Policies::new(&api, "validating").await;
    let variables = json!([
        {"name": "size", "expression": "int(object.data.size)"},
        {"name": "double", "expression": "variables.size * 2"},
        {"name": "names", "expression": "object.data.map(key, key)"},
    ]);
    let validations = json!([
        {"expression": "variables.double < 10", "messageExpression": "'twice the size is ' + string(variables.double)"},
        {"expression": "variables.names.size() == 1"},
        {"expression": "has(variables.size)"},
    ]);
    policies.add("variables", json!({"variables": variables, "validations": validations}), json!({})).await;
    let mut seen = Vec::new();
    for data in
        [json!({"size": "3"}), json!({"size": "7"}), json!({"size": "x"}), json!({"size": "1", "b": ""})]
    {
        seen.push(said(&policies.try_config_map("a", data).await, &api.id));
    }
    expect![[r#"
        201
        422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'variables-ID' with binding 'variables-ID' denied request: twice the size is 14
        422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'variables-ID' with binding 'variables-ID' denied request: expression 'variables.double < 10' resulted in error: composited variable "double" fails to evaluate: composited variable "size" fails to evaluate: type conversion error from 'string' to 'int'
        422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'variables-ID' with binding 'variables-ID' denied request: failed expression: variables.names.size() == 1
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn expressions_see_the_request_its_namespace_and_the_rights_of_its_user() {
    let api = Api::start();
    let policies = Policies::new(&api, "validating").await;
    let ns = &policies.namespace;
    let facts = [
        "request.operation in ['CREATE', 'UPDATE']".to_owned(),
        format!("request.namespace == '{ns}' && request.name == object.metadata.name"),
        "request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps' && request.kind.group == ''".to_owned(),
        "request.requestKind.version == 'v1' && request.requestResource.version == 'v1'".to_owned(),
        "!has(request.subResource) && request.dryRun".to_owned(),
        "request.options.kind in ['CreateOptions', 'UpdateOptions']".to_owned(),
        "request.userInfo.username != '' && request.userInfo.groups.size() > 0".to_owned(),
        format!("namespaceObject.metadata.name == '{ns}' && namespaceObject.status.phase == 'Active'"),
        "authorizer.group('').resource('configmaps').namespace('default').check('create').allowed()".to_owned(),
        "authorizer.requestResource.check('delete').allowed()".to_owned(),
        "!authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').namespace('default').check('get').allowed()".to_owned(),
        "request.operation == 'CREATE' ? oldObject == null : oldObject.metadata.uid != ''".to_owned(),
        "object.apiVersion == 'v1' && object.kind == 'ConfigMap'".to_owned(),
    ];
    let validations: Vec<Value> = facts.iter().map(|fact| json!({"expression": fact})).collect();
    policies.add("facts", json!({"validations": validations}), json!({"validationActions": ["Warn"]})).await;
    let reply = policies.try_config_map("a", json!({})).await.is(201);
    assert_eq!(reply.warnings(), Vec::<String>::new());
    let path = policies.config_maps();
    let created = api.post(&path, json!({"metadata": {"name": "a"}})).await.is(201);
    assert_eq!(created.warnings().len(), 1, "only the dry run is a dry run: {:?}", created.warnings());
    let patch = json!({"data": {"k": "v"}});
    let patched = api.patch(&format!("{path}/a?dryRun=All"), MERGE_PATCH, patch).await.is(200);
    assert_eq!(patched.warnings(), Vec::<String>::new());
}

#[tokio::test]
async fn parameters_are_found_by_name_and_by_selector() {
    let api = Api::start();
    let policies = Policies::new(&api, "validating").await;
    let path = policies.config_maps();
    for (name, max) in [("small", "2"), ("large", "4")] {
        let labels = json!({"limits": "yes"});
        let body = json!({"metadata": {"name": name, "labels": labels}, "data": {"max": max}});
        api.post(&path, body).await.is(201);
    }
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"objectSelector": {"matchExpressions": [{"key": "limits", "operator": "DoesNotExist"}, {"key": "probe", "operator": "DoesNotExist"}]}},
        "matchConditions": [{"name": "has-case", "expression": "has(object.data) && 'size' in object.data"}],
        "validations": [{
            "expression": "int(object.data.size) <= int(params.data.max)",
            "messageExpression": "'more than ' + params.data.max + ' of ' + params.metadata.name + ' in a ' + params.kind"
        }],
    });
    let mut seen = Vec::new();
    for (case, reference) in [
        ("by name", json!({"name": "small", "parameterNotFoundAction": "Deny"})),
        (
            "by selector",
            json!({"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny"}),
        ),
        ("all", json!({"selector": {}, "parameterNotFoundAction": "Deny"})),
        ("absent, denied", json!({"name": "other", "parameterNotFoundAction": "Deny"})),
        ("absent, allowed", json!({"name": "other", "parameterNotFoundAction": "Allow"})),
        (
            "another namespace",
            json!({"name": "small", "namespace": "default", "parameterNotFoundAction": "Deny"}),
        ),
    ] {
        let name = case.replace([' ', ','], "");
        policies.add(&name, spec.clone(), json!({"paramRef": reference})).await;
        // A size that several parameters refuse has the message of any of them on the real server.
        for size in ["1", "3"] {
            let reply = policies.try_config_map("a", json!({"size": size})).await;
            let causes = reply.at("/details/causes").as_array().cloned().unwrap_or_default();
            assert!(causes.len() <= 1, "one cause: {reply}");
            seen.push(format!("{case}, {size}: {}", said(&reply, &api.id)));
        }
        let bindings = format!("{}/validatingadmissionpolicybindings/{name}-{}", super::GROUP, api.id);
        api.delete(&bindings).await.is(200);
        policies.wait().await;
    }
    expect![[r#"
        by name, 1: 201
        by name, 3: 422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'byname-ID' with binding 'byname-ID' denied request: more than 2 of small in a ConfigMap
        by selector, 1: 201
        by selector, 3: 422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'byselector-ID' with binding 'byselector-ID' denied request: more than 2 of small in a ConfigMap
        all, 1: 201
        all, 3: 422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'all-ID' with binding 'all-ID' denied request: more than 2 of small in a ConfigMap
        absent, denied, 1: 422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'absentdenied-ID' with binding 'absentdenied-ID' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction
        absent, denied, 3: 422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'absentdenied-ID' with binding 'absentdenied-ID' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction
        absent, allowed, 1: 201
        absent, allowed, 3: 201
        another namespace, 1: 422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'anothernamespace-ID' with binding 'anothernamespace-ID' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction
        another namespace, 3: 422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'anothernamespace-ID' with binding 'anothernamespace-ID' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_policy_without_its_parameters_is_a_failure() {
    let api = Api::start();
    let policies = Policies::new(&api, "validating").await;
    let validations = json!([{"expression": "params == null || true"}]);
    let spec = json!({
        "paramKind": {"apiVersion": "absent.example.com/v1", "kind": "Absent"}, "validations": validations,
    });
    policies
        .add("nothing", spec, json!({"paramRef": {"name": "a", "parameterNotFoundAction": "Allow"}}))
        .await;
    policies.try_config_map("a", json!({})).await.shows(expect![[r#"
        422 Invalid: configmaps "a" is forbidden: ValidatingAdmissionPolicy 'nothing-ID' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'absent.example.com/v1, Kind=Absent'
        kind="configmaps" name="a"
        - - -: ValidatingAdmissionPolicy 'nothing-ID' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'absent.example.com/v1, Kind=Absent'"#]]);
}

#[tokio::test]
async fn match_conditions_choose_the_requests() {
    let api = Api::start();
    let policies = Policies::new(&api, "validating").await;
    let spec = |conditions: Value| json!({"matchConditions": conditions, "validations": [{"expression": "false", "message": "matched"}]});
    let condition = |name: &str, expression: &str| json!({"name": name, "expression": expression});
    let conditions = json!([
        condition("case", "object.metadata.name.startsWith('a')"),
        condition("fails", "object.metadata.name == 'ab' ? object.data.absent == '' : true"),
    ]);
    policies.add("conditions", spec(conditions), json!({})).await;
    let mut seen = Vec::new();
    for name in ["a", "b", "ab"] {
        seen.push(said(&policies.try_config_map(name, json!({"k": "v"})).await, &api.id));
    }
    expect![[r#"
        422 configmaps "a" is forbidden: ValidatingAdmissionPolicy 'conditions-ID' with binding 'conditions-ID' denied request: matched
        201
        422 configmaps "ab" is forbidden: ValidatingAdmissionPolicy 'conditions-ID' with binding 'conditions-ID' denied request: expression 'object.metadata.name == 'ab' ? object.data.absent == '' : true' resulted in error: no such key: absent
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn rules_choose_resources_operations_and_names() {
    let api = Api::start();
    let policies = Policies::new(&api, "validating").await;
    let rule = |operations: &[&str], groups: &[&str], resources: &[&str], names: &[&str]| {
        json!({
            "operations": operations, "apiGroups": groups, "apiVersions": ["*"], "resources": resources,
            "resourceNames": names
        })
    };
    let path = policies.config_maps();
    for name in ["kept", "excluded", "free"] {
        api.post(&path, json!({"metadata": {"name": name}})).await.is(201);
    }
    let never = json!([{"expression": "object != null || oldObject == null", "messageExpression": "'no ' + request.operation + ' of ' + request.resource.resource + '/' + request.?subResource.orValue('')"}]);
    let constraints = json!({
        "resourceRules": [
            rule(&["DELETE"], &[""], &["configmaps"], &["kept", "excluded"]),
            rule(&["CREATE"], &["autoscaling", ""], &["pods/eviction"], &[]),
        ],
        "excludeResourceRules": [rule(&["DELETE"], &[""], &["*"], &["excluded"])],
    });
    policies.add("rules", json!({"validations": never, "matchConstraints": constraints}), json!({})).await;
    let mut seen = Vec::new();
    for name in ["kept", "excluded", "free"] {
        let reply = api.delete(&format!("{path}/{name}")).await;
        let message = if reply.code == 200 { "200".to_owned() } else { said(&reply, &api.id) };
        seen.push(format!("{name}: {message}"));
    }
    expect![[r#"
        kept: 422 configmaps "kept" is forbidden: ValidatingAdmissionPolicy 'rules-ID' with binding 'rules-ID' denied request: no DELETE of configmaps/
        excluded: 200
        free: 200
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn policies_see_custom_resources_in_every_version() {
    let api = Api::start();
    let policies = Policies::new(&api, "validating").await;
    let group = format!("{}.example.com", api.id);
    let version = |name: &str| {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}})
    };
    api.crd(json!({
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1"), version("v2")]
        }
    }))
    .await;
    let rules = json!([{"operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["v1"], "resources": ["things"]}]);
    let validations = json!([{
        "expression": "object.spec.size < 3",
        "messageExpression": "request.kind.version + ' ' + request.requestKind.version + ' ' + object.apiVersion.split('/')[1] + ' ' + string(object.spec.size)"
    }]);
    let spec = json!({"validations": validations, "matchConstraints": {"resourceRules": rules}});
    policies.create("things", spec, json!({})).await;
    policies.wait().await;
    let mut seen = Vec::new();
    for version in ["v1", "v2"] {
        for size in [json!(1), json!(3), json!(2.5), json!(3.5), json!("3")] {
            let body = json!({
                "apiVersion": format!("{group}/{version}"), "kind": "Thing", "metadata": {"name": "a"},
                "spec": {"size": size}
            });
            let path = format!("/apis/{group}/{version}/namespaces/{}/things?dryRun=All", policies.namespace);
            let reply = api.post(&path, body).await;
            seen.push(format!("{version} {size}: {}", said(&reply, &api.id)));
        }
    }
    expect![[r#"
        v1 1: 201
        v1 3: 422 things.ID.example.com "a" is forbidden: ValidatingAdmissionPolicy 'things-ID' with binding 'things-ID' denied request: v1 v1 v1 3
        v1 2.5: 201
        v1 3.5: 422 things.ID.example.com "a" is forbidden: ValidatingAdmissionPolicy 'things-ID' with binding 'things-ID' denied request: v1 v1 v1 3.5
        v1 "3": 422 things.ID.example.com "a" is forbidden: ValidatingAdmissionPolicy 'things-ID' with binding 'things-ID' denied request: expression 'object.spec.size < 3' resulted in error: no such overload
        v2 1: 201
        v2 3: 422 things.ID.example.com "a" is forbidden: ValidatingAdmissionPolicy 'things-ID' with binding 'things-ID' denied request: v1 v2 v1 3
        v2 2.5: 201
        v2 3.5: 422 things.ID.example.com "a" is forbidden: ValidatingAdmissionPolicy 'things-ID' with binding 'things-ID' denied request: v1 v2 v1 3.5
        v2 "3": 422 things.ID.example.com "a" is forbidden: ValidatingAdmissionPolicy 'things-ID' with binding 'things-ID' denied request: expression 'object.spec.size < 3' resulted in error: no such overload
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn an_expensive_policy_is_a_failure() {
    let api = Api::start();
    let policies = Policies::new(&api, "validating").await;
    let range = |n: u32| format!("lists.range({n})");
    let loops =
        format!("{}.all(a, {}.all(b, {}.all(c, a + b + c >= 0)))", range(100), range(100), range(1000));
    let spec = json!({
        "validations": [{"expression": loops}],
        "matchConditions": [{"name": "case", "expression": "object.metadata.name == 'a'"}],
    });
    policies.add("expensive", spec, json!({})).await;
    let reply = policies.try_config_map("a", json!({})).await;
    let message = said(&reply, &api.id);
    let end = message.split("resulted in error: ").nth(1).unwrap_or(&message);
    expect!["operation cancelled: actual cost limit exceeded"].assert_eq(end);
    policies.try_config_map("b", json!({})).await.is(201);
}

#[tokio::test]
async fn policies_never_see_policies() {
    let api = Api::start();
    let policies = Policies::new(&api, "validating").await;
    let rules = json!([{
        "operations": ["*"], "apiGroups": ["admissionregistration.k8s.io", "authorization.k8s.io"],
        "apiVersions": ["*"], "resources": ["*"]
    }]);
    // Only the test's own policies, and reviews of all users.
    let conditions = json!([{
        "name": "own", "expression": format!("object.?metadata.?labels.?of.orValue('{0}') == '{0}'", api.id)
    }]);
    let mut policy = json!({
        "metadata": {"name": format!("all-{}", api.id)},
        "spec": {
            "matchConstraints": {"resourceRules": rules}, "matchConditions": conditions,
            "validations": [{"expression": "false"}]
        }
    });
    let path = format!("{}/validatingadmissionpolicies", super::GROUP);
    api.post(&path, policy.clone()).await.is(201);
    api.discard(format!("{path}/all-{}", api.id));
    let bindings = format!("{}/validatingadmissionpolicybindings", super::GROUP);
    let binding = json!({
        "metadata": {"name": format!("all-{}", api.id)},
        "spec": {"policyName": format!("all-{}", api.id), "validationActions": ["Deny"]}
    });
    api.post(&bindings, binding).await.is(201);
    api.discard(format!("{bindings}/all-{}", api.id));
    policies.wait().await;
    policy["metadata"] = json!({"name": format!("other-{}", api.id), "labels": {"of": api.id}});
    api.post(&format!("{path}?dryRun=All"), policy).await.is(201);
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).await.is(201);
}
