//! Patches: JSON, merge and strategic.

use expect_test::expect;
use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{config_map, deployment, pod, widget, widgets_path};
use crate::harness::{Api, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH};

#[tokio::test]
async fn a_merge_patch_changes_what_it_names_and_null_removes() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let created = api.post(&path, config_map("a")).await.is(201);
    let patch = json!({"data": {"k": null, "n": "w"}, "metadata": {"labels": {"l": "v"}}});
    let patched = api.patch(&format!("{path}/a"), MERGE_PATCH, patch.clone()).await.is(200);
    assert_eq!(patched.at("/data"), json!({"n": "w"}));
    assert_eq!(patched.at("/metadata/labels"), json!({"l": "v"}));
    assert!(patched.version() > created.version());
    let again = api.patch(&format!("{path}/a"), MERGE_PATCH, patch).await.is(200);
    assert_eq!(again.version(), patched.version(), "a patch that changes nothing writes nothing");
}

#[tokio::test]
async fn a_json_patch_is_a_list_of_operations() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let patch = json!([
        {"op": "test", "path": "/data/k", "value": "v"},
        {"op": "add", "path": "/metadata/labels", "value": {"x.y/z": "l"}},
        {"op": "copy", "from": "/data/k", "path": "/data/copy"},
        {"op": "move", "from": "/data/k", "path": "/data/moved"},
        {"op": "replace", "path": "/metadata/labels/x.y~1z", "value": "r"},
        {"op": "add", "path": "/data/gone", "value": "g"},
        {"op": "remove", "path": "/data/gone"}
    ]);
    let patched = api.patch(&format!("{path}/a"), JSON_PATCH, patch).await.is(200);
    assert_eq!(patched.at("/data"), json!({"copy": "v", "moved": "v"}));
    assert_eq!(patched.at("/metadata/labels"), json!({"x.y/z": "r"}));
}

#[tokio::test]
async fn a_json_patch_that_does_not_apply_is_refused_whole() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let created = api.post(&path, config_map("a")).await.is(201);
    let path = format!("{path}/a");
    let test = json!([
        {"op": "add", "path": "/data/n", "value": "w"},
        {"op": "test", "path": "/data/k", "value": "other"}
    ]);
    api.patch(&path, JSON_PATCH, test)
        .await
        .shows(expect!["422 Invalid: the server rejected our request due to an error in our request"]);
    api.patch(&path, JSON_PATCH, json!([{"op": "remove", "path": "/data/none"}]))
        .await
        .shows(expect!["422 Invalid: the server rejected our request due to an error in our request"]);
    api.patch(&path, JSON_PATCH, json!([{"op": "add", "path": "/none/x", "value": 1}]))
        .await
        .shows(expect!["422 Invalid: the server rejected our request due to an error in our request"]);
    api.patch(&path, JSON_PATCH, json!([{"op": "dance", "path": "/data/k"}]))
        .await
        .shows(expect!["422 Invalid: the server rejected our request due to an error in our request"]);
    api.patch(&path, JSON_PATCH, json!({"op": "remove", "path": "/data/k"})).await.shows(expect!["400 BadRequest: error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"]);
    assert_eq!(api.get(&path).await.json(), created.json());
}

#[tokio::test]
async fn a_json_patch_may_replace_what_is_not_there() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let patch = json!([{"op": "replace", "path": "/data/none", "value": "w"}]);
    let patched = api.patch(&format!("{path}/a"), JSON_PATCH, patch).await.is(200);
    assert_eq!(patched.at("/data"), json!({"k": "v", "none": "w"}));
}

#[tokio::test]
async fn bodies_that_are_no_patch_are_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let path = format!("{path}/a");
    let send =
        |media_type, body: &'static str| api.request(Method::PATCH, &path).body(media_type, body).send();
    send(MERGE_PATCH, "{").await.shows(expect!["400 BadRequest: invalid JSON patch"]);
    send(MERGE_PATCH, "[]").await.shows(expect!["400 BadRequest: error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"]);
    send(MERGE_PATCH, "").await.shows(expect!["400 BadRequest: invalid JSON patch"]);
    send(JSON_PATCH, "[").await.shows(expect!["400 BadRequest: invalid JSON patch"]);
    send(JSON_PATCH, "").await.shows(expect!["400 BadRequest: invalid JSON patch"]);
    send(STRATEGIC_PATCH, "{").await.shows(expect!["400 BadRequest: invalid JSON patch"]);
    send(STRATEGIC_PATCH, "[]").await.shows(expect![
        "400 BadRequest: json: cannot unmarshal array into Go value of type map[string]interface {}"
    ]);
    send(STRATEGIC_PATCH, "").await.shows(expect!["400 BadRequest: invalid JSON patch"]);
    let absent = format!("{path}bsent");
    let send =
        |media_type, body: &'static str| api.request(Method::PATCH, &absent).body(media_type, body).send();
    send(MERGE_PATCH, "{").await.shows(expect!["400 BadRequest: invalid JSON patch"]);
    send(MERGE_PATCH, "[]").await.is(404);
    send(JSON_PATCH, "{}").await.is(404);
    let send =
        |media_type, body: &'static str| api.request(Method::PATCH, &path).body(media_type, body).send();
    send("application/json", "{}")
        .await
        .shows(expect!["415 UnsupportedMediaType: 415: Unsupported Media Type"]);
    send("text/plain", "{}").await.shows(expect!["415 UnsupportedMediaType: 415: Unsupported Media Type"]);
    api.request(Method::PATCH, &path)
        .send()
        .await
        .shows(expect!["415 UnsupportedMediaType: 415: Unsupported Media Type"]);
}

#[tokio::test]
async fn a_patch_whose_result_is_no_object_of_the_kind_is_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let path = format!("{path}/a");
    api.patch(&path, MERGE_PATCH, json!({"data": {"k": 5}})).await.shows(expect![[r#"
        422 Invalid:  "" is invalid: patch: Invalid value: (the object): json: cannot unmarshal number into Go struct field ConfigMap.data of type string
        - FieldValueInvalid patch: Invalid value: (the object): json: cannot unmarshal number into Go struct field ConfigMap.data of type string"#]]);
    api.patch(&path, MERGE_PATCH, json!({"data": "text"})).await.shows(expect![[r#"
        422 Invalid:  "" is invalid: patch: Invalid value: (the object): json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string
        - FieldValueInvalid patch: Invalid value: (the object): json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string"#]]);
    api.patch(&path, MERGE_PATCH, json!({"kind": "Secret", "data": null})).await.shows(expect![[r#"
        422 Invalid:  "" is invalid: patch: Invalid value: (the object): converting (v1.Secret) to (core.ConfigMap): unknown conversion
        - FieldValueInvalid patch: Invalid value: (the object): converting (v1.Secret) to (core.ConfigMap): unknown conversion"#]]);
    api.patch(&path, MERGE_PATCH, json!({"apiVersion": "v2"})).await.shows(expect![[r#"
        422 Invalid:  "" is invalid: patch: Invalid value: (the object): no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"
        - FieldValueInvalid patch: Invalid value: (the object): no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111""#]]);
    api.patch(&path, MERGE_PATCH, json!({"metadata": {"name": "b"}}))
        .await
        .shows(expect!["400 BadRequest: the name of the object (b) does not match the name on the URL (a)"]);
    api.patch(&path, MERGE_PATCH, json!({"metadata": {"namespace": "b"}})).await.shows(expect!["400 BadRequest: the namespace of the provided object does not match the namespace sent on the request"]);
    api.patch(&path, MERGE_PATCH, json!({"metadata": {"uid": "b6d2d2b4-0000-0000-0000-000000000000"}}))
        .await
        .shows(expect![[r#"
            422 Invalid: ConfigMap "a" is invalid: metadata.uid: Invalid value: "UID": field is immutable
            kind="ConfigMap" name="a"
            - FieldValueInvalid metadata.uid: Invalid value: "UID": field is immutable"#]]);
    api.patch(&path, MERGE_PATCH, json!({"metadata": null})).await.shows(expect![
        "400 BadRequest: the name of the object (a based on URL) was undeterminable: name must be provided"
    ]);
    api.patch(&path, MERGE_PATCH, json!({"unknown": {"field": 1}})).await.is(200);
}

#[tokio::test]
async fn a_version_in_a_patch_is_a_precondition() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let created = api.post(&path, config_map("a")).await.is(201);
    let version = created.at("/metadata/resourceVersion");
    let path = format!("{path}/a");
    let with =
        |version: Value, value: &str| json!({"metadata": {"resourceVersion": version}, "data": {"k": value}});
    api.patch(&path, MERGE_PATCH, with(version.clone(), "one")).await.is(200);
    api.patch(&path, MERGE_PATCH, with(version.clone(), "two")).await.shows(expect![[r#"
        409 Conflict: Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again
        kind="configmaps" name="a""#]]);
    api.patch(&path, STRATEGIC_PATCH, with(version, "two")).await.is(409);
    assert_eq!(api.get(&path).await.at("/data/k"), "one");
}

#[tokio::test]
async fn a_patch_of_what_is_not_there_is_not_found() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps/none");
    api.patch(&path, MERGE_PATCH, json!({"data": {}})).await.shows(expect![[r#"
        404 NotFound: configmaps "none" not found
        kind="configmaps" name="none""#]]);
}

#[tokio::test]
async fn a_strategic_patch_merges_lists_by_their_key() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    api.post(&path, deployment("a")).await.is(201);
    let path = format!("{path}/a");
    let containers = |patch: Value| json!({"spec": {"template": {"spec": {"containers": patch}}}});
    let image = containers(json!([{"name": "main", "image": "nginx:2"}]));
    let patched = api.patch(&path, STRATEGIC_PATCH, image).await.is(200);
    assert_eq!(patched.at("/spec/template/spec/containers/0/image"), "nginx:2");
    let side = containers(
        json!([{"name": "side", "image": "busybox", "ports": [{"containerPort": 80}], "env": [{"name": "E", "value": "1"}]}]),
    );
    let patched = api.patch(&path, STRATEGIC_PATCH, side).await.is(200);
    assert_eq!(names(&patched.at("/spec/template/spec/containers")), ["side", "main"]);
    let env = containers(
        json!([{"name": "side", "env": [{"name": "F", "value": "2"}, {"name": "E", "$patch": "delete"}]}]),
    );
    let patched = api.patch(&path, STRATEGIC_PATCH, env).await.is(200);
    assert_eq!(patched.at("/spec/template/spec/containers/0/env"), json!([{"name": "F", "value": "2"}]));
    let gone = containers(json!([{"name": "side", "$patch": "delete"}]));
    let patched = api.patch(&path, STRATEGIC_PATCH, gone).await.is(200);
    assert_eq!(names(&patched.at("/spec/template/spec/containers")), ["main"]);
}

#[tokio::test]
async fn a_strategic_patch_orders_replaces_and_removes() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    let mut body = deployment("a");
    body["spec"]["template"]["spec"]["containers"] = json!([
        {"name": "one", "image": "i"}, {"name": "two", "image": "i"}, {"name": "three", "image": "i"}
    ]);
    body["metadata"]["finalizers"] = json!(["x.io/a", "x.io/b"]);
    body["metadata"]["annotations"] = json!({"a": "1", "b": "2"});
    api.post(&path, body).await.is(201);
    let path = format!("{path}/a");
    let order = json!({"spec": {"template": {"spec": {
        "$setElementOrder/containers": [{"name": "three"}, {"name": "one"}, {"name": "two"}],
        "containers": [{"name": "two", "image": "j"}]
    }}}});
    let patched = api.patch(&path, STRATEGIC_PATCH, order).await.is(200);
    assert_eq!(names(&patched.at("/spec/template/spec/containers")), ["three", "one", "two"]);
    let primitive = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a"]}});
    let patched = api.patch(&path, STRATEGIC_PATCH, primitive).await.is(200);
    assert_eq!(patched.at("/metadata/finalizers"), json!(["x.io/b"]));
    let merged = json!({"metadata": {"finalizers": ["x.io/c"]}});
    let patched = api.patch(&path, STRATEGIC_PATCH, merged).await.is(200);
    assert_eq!(patched.at("/metadata/finalizers"), json!(["x.io/c", "x.io/b"]));
    let map = json!({"metadata": {"annotations": {"$patch": "replace", "c": "3"}}});
    let patched = api.patch(&path, STRATEGIC_PATCH, map).await.is(200);
    assert_eq!(patched.at("/metadata/annotations"), json!({"c": "3"}));
    let list = json!({"spec": {"template": {"spec": {"containers": [{"name": "only", "image": "k"}, {"$patch": "replace"}]}}}});
    let patched = api.patch(&path, STRATEGIC_PATCH, list).await.is(200);
    assert_eq!(names(&patched.at("/spec/template/spec/containers")), ["only"]);
    let retain = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    let patched = api.patch(&path, STRATEGIC_PATCH, retain).await.is(200);
    assert_eq!(patched.at("/spec/strategy"), json!({"type": "Recreate"}));
    let gone = json!({"metadata": {"finalizers": null, "annotations": null}});
    api.patch(&path, STRATEGIC_PATCH, gone).await.is(200);
}

#[tokio::test]
async fn a_strategic_patch_merges_by_other_keys_than_name() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services");
    let body = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
        "spec": {"selector": {"app": "a"}, "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}]}
    });
    api.post(&path, body).await.is(201);
    let ports = json!({"spec": {"ports": [{"port": 443, "targetPort": 8443}], "selector": {"app": null, "tier": "web"}}});
    let patched = api.patch(&format!("{path}/a"), STRATEGIC_PATCH, ports).await.is(200);
    assert_eq!(patched.at("/spec/ports/1/targetPort"), 8443);
    assert_eq!(patched.at("/spec/ports/0/targetPort"), 80);
    assert_eq!(patched.at("/spec/selector"), json!({"tier": "web"}));
}

#[tokio::test]
async fn strategic_patches_that_make_no_sense_are_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    api.post(&path, deployment("a")).await.is(201);
    let path = format!("{path}/a");
    let nameless = json!({"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}});
    api.patch(&path, STRATEGIC_PATCH, nameless)
        .await
        .shows(expect!["500 -: map: map[image:x] does not contain declared merge key: name"]);
    let directive = json!({"spec": {"$patch": "explode"}});
    api.patch(&path, STRATEGIC_PATCH, directive)
        .await
        .shows(expect!["500 -: unknown patch type: explode in map: map[$patch:explode]"]);
    let mistyped = api.patch(&path, STRATEGIC_PATCH, json!({"spec": {"replicas": "many"}})).await.is(422);
    let start = " \"\" is invalid: patch: Invalid value: \"map[spec:map[replicas:many]]\": ";
    assert!(mistyped.text_at("/message").starts_with(start), "{mistyped}");
}

#[tokio::test]
async fn custom_resources_know_no_strategic_patch() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    api.patch(&format!("{path}/a"), STRATEGIC_PATCH, json!({"spec": {"size": 4}})).await.shows(expect!["415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"]);
    let patched = api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"spec": {"size": 4}})).await.is(200);
    assert_eq!(patched.at("/spec/size"), 4);
    let patch = json!([{"op": "replace", "path": "/spec/size", "value": 11}]);
    api.patch(&format!("{path}/a"), JSON_PATCH, patch).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"#]]);
}

#[tokio::test]
async fn a_patched_pod_may_change_little() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&path, pod("a")).await.is(201);
    let image = json!({"spec": {"containers": [{"name": "main", "image": "other"}]}});
    let patched = api.patch(&format!("{path}/a"), STRATEGIC_PATCH, image).await.is(200);
    assert_eq!(patched.at("/spec/containers/0/image"), "other");
    let reply = api
        .patch(&format!("{path}/a"), STRATEGIC_PATCH, json!({"spec": {"hostNetwork": true}}))
        .await
        .is(422);
    let start = "Pod \"a\" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`";
    assert!(reply.text_at("/message").starts_with(start), "{reply}");
}

#[tokio::test]
async fn many_patches_at_once_lose_nothing() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let path = format!("{path}/a");
    let patches = (0..20).map(|n| api.patch(&path, MERGE_PATCH, json!({"data": {format!("k{n}"): "v"}})));
    for reply in futures::future::join_all(patches).await {
        reply.is(200);
    }
    assert_eq!(api.get(&path).await.at("/data").as_object().unwrap().len(), 21);
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

const REFUSED: &str = "the server rejected our request due to an error in our request";

#[tokio::test]
async fn the_result_of_a_json_patch_is_bounded() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let created = api.post(&path, config_map("a")).await.is(201);
    let path = format!("{path}/a");
    let patch = async |operations: Vec<Value>| api.patch(&path, JSON_PATCH, operations.into()).await.is(422);

    // 14,000 levels are too deep for every server.
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
    let deeper = |operation: usize| json!({"op": "add", "path": format!("/x{}", "/a".repeat(350 * operation)), "value": nested(350)});
    assert_eq!(patch((0..40).map(deeper).collect()).await.text_at("/message"), REFUSED);

    let double =
        |operation: usize| json!({"op": "copy", "from": "/data", "path": format!("/data/x{operation}")});
    assert_eq!(patch((0..40).map(double).collect()).await.text_at("/message"), REFUSED);

    let megabyte = json!({"op": "add", "path": "/data/x", "value": "x".repeat(1_000_000)});
    let copy = json!({"op": "copy", "from": "/data/x", "path": "/data/y"});
    let operations = std::iter::once(megabyte).chain(vec![copy; 3_000]).collect();
    assert_eq!(patch(operations).await.text_at("/message"), REFUSED);
    assert_eq!(api.get(&path).await.json(), created.json());
}

#[tokio::test]
async fn a_json_patch_reads_missing_members_as_null_and_counts_from_the_end() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let mut body = config_map("a");
    body["metadata"]["finalizers"] = json!(["x.io/a", "x.io/b"]);
    api.post(&path, body).await.is(201);
    let path = format!("{path}/a");
    let patch = json!([
        {"op": "test", "path": "/data/none"},
        {"op": "copy", "from": "/data/none", "path": "/data/copy"},
        {"op": "add", "path": "/data/empty"},
        {"op": "add", "path": "text before/data/k2", "value": "v"},
        {"op": "add", "path": "/metadata/finalizers/-1", "value": "x.io/d"},
        {"op": "add", "path": "/metadata/finalizers/-2", "value": "x.io/c"},
        {"op": "remove", "path": "/metadata/finalizers/-4"}
    ]);
    let patched = api.patch(&path, JSON_PATCH, patch).await.is(200);
    assert_eq!(patched.at("/data"), json!({"k": "v", "copy": "", "empty": "", "k2": "v"}));
    assert_eq!(patched.at("/metadata/finalizers"), json!(["x.io/b", "x.io/c", "x.io/d"]));
    for operation in [
        json!({"op": "replace", "path": "/metadata/finalizers/3", "value": "x.io/e"}),
        json!({"op": "replace", "path": "/metadata/finalizers/-", "value": "x.io/e"}),
        json!({"op": "move", "from": "/data/none", "path": "/data/moved"}),
        json!({"op": "test", "path": "/data/k"}),
        json!({"op": "replace", "path": "", "value": 1}),
        json!(null),
    ] {
        let reply = api.patch(&path, JSON_PATCH, json!([operation])).await.is(422);
        assert_eq!(reply.text_at("/message"), REFUSED, "{operation}");
    }
    let gone = json!([{"op": "remove", "path": "/metadata/finalizers"}]);
    api.patch(&path, JSON_PATCH, gone).await.is(200);
}

#[tokio::test]
async fn the_members_of_operations_are_checked() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let path = format!("{path}/a");
    let send = |query: &str, body: &'static str| {
        api.request(Method::PATCH, &format!("{path}{query}")).body(JSON_PATCH, body).send()
    };
    send("", r#"["x"]"#).await.shows(expect!["400 BadRequest: error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp"]);
    send("", r#"[{"op": "add", "path": 5}]"#).await.shows(expect!["400 BadRequest: error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string"]);
    let lenient = "?fieldValidation=Ignore";
    send(lenient, r#"["x"]"#).await.shows(expect![
        "400 BadRequest: json: cannot unmarshal string into Go value of type jsonpatch.Operation"
    ]);
    send(lenient, "{}").await.shows(expect![
        "400 BadRequest: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
    ]);
    send(lenient, r#"[{"op": "add", "path": 5}]"#).await.is(422);
    send("", "null").await.is(200);
    let twice = r#"[{"op": "test", "op": "test", "path": "/data/k", "value": "v", "odd": 1}]"#;
    let reply = send("", twice).await.is(200);
    assert_eq!(
        reply.warnings(),
        [
            r#"299 - "json patch duplicate field \"[0].op\"""#,
            r#"299 - "json patch unknown field \"[0].odd\"""#
        ]
    );
    let list = send("", r#"[{"op": "replace", "path": "", "value": []}]"#).await.is(422);
    assert!(
        list.text_at("/message").contains("json: cannot unmarshal array into Go value of type struct"),
        "{list}"
    );
}

#[tokio::test]
async fn a_patch_is_not_read_where_no_object_is() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps/none");
    api.patch(&path, JSON_PATCH, json!({})).await.is(404);
    api.patch(&path, MERGE_PATCH, json!("x")).await.is(404);
    api.patch(&path, STRATEGIC_PATCH, json!([])).await.is(404);
    api.patch(&path, "text/plain", json!([])).await.is(415);
}

#[tokio::test]
async fn a_json_patch_that_fails_has_empty_details() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&path, config_map("a")).await.is(201);
    let patch = json!([{"op": "remove", "path": "/data/none"}]);
    let reply = api.patch(&format!("{path}/a"), JSON_PATCH, patch).await.is(422);
    assert_eq!(reply.at("/details"), json!({}));
}

#[tokio::test]
async fn a_patch_that_removes_the_api_version_is_refused() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    let reply = api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"apiVersion": null})).await.is(500);
    assert!(reply.text_at("/message").contains("Object 'apiVersion' is missing"), "{reply}");
    let owners = json!({"metadata": {"ownerReferences": [{"kind": ["x"]}]}});
    let reply = api.patch(&format!("{path}/a"), MERGE_PATCH, owners).await.is(422);
    assert!(reply.text_at("/message").contains("OwnerReference.ownerReferences.kind"), "{reply}");
    // An empty list of managers gets lost on the way.
    let reply = api
        .patch(&format!("{path}/a"), MERGE_PATCH, json!({"metadata": {"managedFields": []}}))
        .await
        .is(200);
    assert!(reply.at("/metadata/managedFields/0").is_object());
}

#[tokio::test]
async fn the_order_of_a_list_that_the_kind_lacks_is_an_error() {
    let api = Api::start();
    let ns = api.namespace().await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&maps, json!({"metadata": {"name": "a"}})).await.is(201);
    let patch = json!({"$setElementOrder/x": ["a"]});
    api.patch(&format!("{maps}/a"), STRATEGIC_PATCH, patch)
        .await
        .shows(expect![[r#"500 -: unable to find api field in struct ConfigMap for the json field "x""#]]);
}
