//! Label and field selectors.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use expect_test::expect;
use serde_json::json;

use crate::fixtures::{labelled, pod, secret, widget, widgets_path};
use crate::harness::Api;

async fn selected(api: &Api, path: &str, selector: &str) -> Vec<String> {
    let selector = selector
        .replace('=', "%3D")
        .replace(' ', "%20")
        .replace('!', "%21")
        .replace('<', "%3C")
        .replace('>', "%3E");
    api.get(&format!("{path}?labelSelector={selector}")).await.is(200).names()
}

#[tokio::test]
async fn label_selectors_select() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    api.post(&path, labelled(secret("a"), json!({"env": "prod", "n": "1"}))).await.is(201);
    api.post(&path, labelled(secret("b"), json!({"env": "test", "n": "2"}))).await.is(201);
    api.post(&path, secret("c")).await.is(201);
    assert_eq!(selected(&api, &path, "env=prod").await, ["a"]);
    assert_eq!(selected(&api, &path, "env==prod").await, ["a"]);
    assert_eq!(selected(&api, &path, "env!=prod").await, ["b", "c"]);
    assert_eq!(selected(&api, &path, "env in (prod, test)").await, ["a", "b"]);
    assert_eq!(selected(&api, &path, "env notin (prod)").await, ["b", "c"]);
    assert_eq!(selected(&api, &path, "env").await, ["a", "b"]);
    assert_eq!(selected(&api, &path, "!env").await, ["c"]);
    assert_eq!(selected(&api, &path, "env,n=2").await, ["b"]);
    assert_eq!(selected(&api, &path, "n>1").await, ["b"]);
    assert_eq!(selected(&api, &path, "n<2").await, ["a"]);
    assert_eq!(selected(&api, &path, "env=").await, Vec::<String>::new());
    assert_eq!(selected(&api, &path, "").await, ["a", "b", "c"]);
}

#[tokio::test]
async fn broken_label_selectors_are_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    api.get(&format!("{path}?labelSelector=a%20b")).await.shows(expect![
        "400 BadRequest: unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
    ]);
    api.get(&format!("{path}?labelSelector=a%3Db%20c"))
        .await
        .shows(expect!["400 BadRequest: found 'c', expected: ',' or 'end of string'"]);
    api.get(&format!("{path}?labelSelector=in%20(")).await.shows(expect![
        "400 BadRequest: unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt"
    ]);
    api.get(&format!("{path}?labelSelector=a%20in%20()")).await.is(200);
    api.get(&format!("{path}?labelSelector=a%2Fb%2Fc%3Dd")).await.shows(expect![[r#"400 BadRequest: unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"#]]);
    api.get(&format!("{path}?labelSelector=a%3Db%25")).await.shows(expect![[r#"400 BadRequest: unable to parse requirement: values[0][a]: Invalid value: "b%": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#]]);
    api.get(&format!("{path}?labelSelector=a%3Ex")).await.shows(expect![[r#"400 BadRequest: unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer"#]]);
    api.get(&format!("{path}?labelSelector=,"))
        .await
        .shows(expect!["400 BadRequest: found ',', expected: !, identifier, or 'end of string'"]);
}

#[tokio::test]
async fn every_kind_is_selected_by_name_and_namespace() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    for name in ["a", "b", "c"] {
        api.post(&path, secret(name)).await.is(201);
    }
    let select =
        async |selector: &str| api.get(&format!("{path}?fieldSelector={selector}")).await.is(200).names();
    assert_eq!(select("metadata.name%3Da").await, ["a"]);
    assert_eq!(select("metadata.name%3D%3Da").await, ["a"]);
    assert_eq!(select("metadata.name%21%3Da").await, ["b", "c"]);
    assert_eq!(select("metadata.name%21%3Da,metadata.name%21%3Db").await, ["c"]);
    assert_eq!(select(&format!("metadata.namespace%3D{ns}")).await, ["a", "b", "c"]);
    assert_eq!(select("metadata.namespace%3Dother").await, Vec::<String>::new());
    assert_eq!(select("type%3DOpaque").await, ["a", "b", "c"]);
    assert_eq!(select("type%21%3DOpaque").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_name_that_path_and_selector_disagree_about_is_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    api.get(&format!("{path}/a?watch=true&fieldSelector=metadata.name%3Db")).await.shows(expect![[r#"
        404 NotFound: secrets "a" not found
        kind="secrets" name="a""#]]);
}

#[tokio::test]
async fn pods_are_selected_by_node_and_phase() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    let mut there = pod("a");
    there["spec"]["nodeName"] = json!("node-x");
    api.post(&path, there).await.is(201);
    api.post(&path, pod("b")).await.is(201);
    let select =
        async |selector: &str| api.get(&format!("{path}?fieldSelector={selector}")).await.is(200).names();
    assert_eq!(select("spec.nodeName%3Dnode-x").await, ["a"]);
    assert_eq!(select("spec.nodeName%3D").await, ["b"]);
    assert_eq!(select("status.phase%3DPending").await, ["a", "b"]);
    assert_eq!(select("status.phase%3DRunning").await, Vec::<String>::new());
    assert_eq!(
        select("spec.restartPolicy%3DAlways,spec.schedulerName%3Ddefault-scheduler").await,
        ["a", "b"]
    );
    assert_eq!(
        select(
            "spec.serviceAccountName%3D,status.podIP%3D,status.nominatedNodeName%3D,spec.hostNetwork%3Dfalse"
        )
        .await,
        ["a", "b"]
    );
    api.delete_with(&format!("{path}/a"), json!({"gracePeriodSeconds": 0})).await.is(200);
}

#[tokio::test]
async fn unknown_fields_and_broken_field_selectors_are_refused() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let ns = format!("ns-{}", api.id);
    let secrets = format!("/api/v1/namespaces/{ns}/secrets");
    api.get(&format!("{secrets}?fieldSelector=data.k%3Dv"))
        .await
        .shows(expect!["400 BadRequest: field label not supported: data.k"]);
    api.get(&format!("{secrets}?fieldSelector=metadata.name")).await.shows(expect![
        "400 BadRequest: invalid selector: 'metadata.name'; can't understand 'metadata.name'"
    ]);
    api.get(&format!("/api/v1/namespaces/{ns}/pods?fieldSelector=spec.x%3Dv"))
        .await
        .shows(expect!["400 BadRequest: field label not supported: spec.x"]);
    api.get(&format!("{path}?fieldSelector=spec.size%3D3"))
        .await
        .shows(expect!["400 BadRequest: field label not supported: spec.size"]);
    api.get(&format!("{secrets}?watch=true&fieldSelector=data.k%3Dv")).await.is(400);
}

#[tokio::test]
async fn custom_resources_are_selected_by_label_and_name() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    for name in ["a", "b"] {
        api.post(&path, labelled(widget(&api, name), json!({"n": name}))).await.is(201);
    }
    assert_eq!(api.get(&format!("{path}?labelSelector=n%3Db")).await.names(), ["b"]);
    assert_eq!(api.get(&format!("{path}?fieldSelector=metadata.name%3Da")).await.names(), ["a"]);
}

#[tokio::test]
async fn events_are_selected_by_what_they_are_about() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/events");
    for (name, about, reason, kind) in [("a", "one", "Made", "Normal"), ("b", "two", "Broke", "Warning")] {
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "reason": reason, "type": kind,
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": about, "namespace": ns, "uid": about}
        });
        api.post(&path, event).await.is(201);
    }
    let select =
        async |selector: &str| api.get(&format!("{path}?fieldSelector={selector}")).await.is(200).names();
    assert_eq!(select("involvedObject.name%3Done").await, ["a"]);
    assert_eq!(select("involvedObject.uid%3Dtwo,type%3DWarning").await, ["b"]);
    assert_eq!(select("reason%3DMade").await, ["a"]);
    assert_eq!(select("involvedObject.kind%3DPod,involvedObject.fieldPath%3D").await, ["a", "b"]);
    let newer = format!("/apis/events.k8s.io/v1/namespaces/{ns}/events?fieldSelector=reason%3DBroke");
    assert_eq!(api.get(&newer).await.names(), ["b"]);
}

#[tokio::test]
async fn an_event_without_a_source_is_selected_by_its_reporter() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/events.k8s.io/v1/namespaces/{ns}/events");
    let event = json!({
        "metadata": {"name": "a"}, "eventTime": "2026-01-01T00:00:00.000000Z", "action": "Test",
        "reason": "Tested", "type": "Normal", "reportingController": "tester", "reportingInstance": "tester-1",
        "regarding": {"kind": "Pod", "name": "p", "namespace": ns}
    });
    api.post(&path, event).await.is(201);
    let event = json!({
        "metadata": {"name": "b"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": ns},
        "source": {"component": "other"}, "reportingComponent": "tester"
    });
    api.post(&format!("/api/v1/namespaces/{ns}/events"), event).await.is(201);
    let old = format!("/api/v1/namespaces/{ns}/events?fieldSelector=source%3D");
    assert_eq!(api.get(&format!("{old}tester")).await.is(200).names(), ["a"]);
    assert_eq!(api.get(&format!("{old}other")).await.is(200).names(), ["b"]);
}

#[tokio::test]
async fn jobs_name_the_field_that_they_do_not_support() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/batch/v1/namespaces/{ns}/jobs");
    api.get(&format!("{path}?fieldSelector=status.failed%3D1"))
        .await
        .shows(expect![[r#"400 BadRequest: field label "status.failed" not supported for Job"#]]);
    api.get(&format!("{path}?fieldSelector=%3D")).await.is(200);
    let watch = format!("{path}?watch=1&resourceVersionMatch=Exact&fieldSelector=a%3Db");
    api.get(&watch).await.shows(expect![[r#"
        422 Invalid: ListOptions.meta.k8s.io "" is invalid: [as below]
        group="meta.k8s.io" kind="ListOptions"
        - FieldValueForbidden resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided
        - FieldValueNotSupported resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan""#]]);
}

#[tokio::test]
async fn a_long_selector_lets_others_in() {
    let api = Api::start();
    if api.is_shared() {
        // The real server has several threads.
        return;
    }
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/secrets");
    for number in 0..1_000 {
        api.post(&path, secret(&format!("s{number}"))).await.is(201);
    }
    let selector = vec!["metadata.name%21%3Dx"; 200].join(",");
    for query in ["", "&watch=true&resourceVersion=0"] {
        let turns = Arc::new(AtomicU32::new(0));
        let other = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move {
                loop {
                    turns.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            }
        });
        let path = format!("{path}?fieldSelector={selector}{query}");
        // The head of the reply comes when the objects are selected.
        let reply = api.request(http::Method::GET, &path).stream().await;
        other.abort();
        assert_eq!(reply.code, 200);
        assert!(turns.load(Ordering::Relaxed) > 5);
    }
}

#[tokio::test]
async fn nodes_and_namespaces_have_no_namespace_to_be_selected_by() {
    let api = Api::start();
    let selector = "fieldSelector=metadata.namespace%3Dx";
    for kind in ["nodes", "namespaces"] {
        api.get(&format!("/api/v1/{kind}?{selector}")).await.is(400);
    }
    api.get(&format!("/api/v1/persistentvolumes?{selector}")).await.is(200);
    // Objects in namespaces, and a kind with a text of its own.
    let requests =
        api.get(&format!("/apis/certificates.k8s.io/v1/podcertificaterequests?{selector}")).await.is(400);
    assert_eq!(requests.text_at("/message"), "field label not supported: metadata.namespace");
    for (selector, field) in [(selector, "metadata.namespace"), ("fieldSelector=type%3Dx", "type")] {
        let slices = api.get(&format!("/apis/resource.k8s.io/v1/resourceslices?{selector}")).await.is(400);
        let message =
            format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {field}");
        assert_eq!(slices.text_at("/message"), message);
    }
}
