//! RuntimeClasses.

use std::time::Instant;

use expect_test::expect;
use serde_json::{Value, json};

use super::{Objects, named};
use crate::harness::Api;

#[tokio::test]
async fn an_overhead_with_huge_pages_has_other_resources_too() {
    let api = Api::start();
    let mut seen = Objects::new(&api, "/apis/node.k8s.io/v1/runtimeclasses");
    let class = |fixed| named("checked", json!({"handler": "h", "overhead": {"podFixed": fixed}}));
    seen.try_create("huge pages", class(json!({"hugepages-2Mi": "2Mi"}))).await;
    seen.try_create("with memory", class(json!({"hugepages-2Mi": "2Mi", "memory": "1Mi"}))).await;
    seen.are(expect![[r#"
        huge pages: 422 Invalid: RuntimeClass.node.k8s.io "checked" is invalid: overhead: Forbidden: HugePages require cpu or memory
        group="node.k8s.io" kind="RuntimeClass" name="checked"
        - FieldValueForbidden overhead: Forbidden: HugePages require cpu or memory
        with memory: 201 {"handler":"h","overhead":{"podFixed":{"hugepages-2Mi":"2Mi","memory":"1Mi"}}}
    "#]]);
}

#[tokio::test]
async fn a_toleration_that_comes_twice_is_refused() {
    let api = Api::start();
    let toleration = json!({"key": "a", "operator": "Exists"});
    let class = json!({"handler": "h", "scheduling": {"tolerations": [toleration, toleration]}});
    let reply =
        api.post("/apis/node.k8s.io/v1/runtimeclasses?dryRun=All", named("checked", class)).await.is(422);
    assert_eq!(reply.at("/details/causes/0/reason"), "FieldValueDuplicate");
    assert_eq!(reply.at("/details/causes/0/field"), "scheduling.tolerations[1]");
}

#[tokio::test]
async fn many_tolerations_are_checked_in_linear_time() {
    let api = Api::start();
    let tolerations: Vec<Value> =
        (0..25_000).map(|n| json!({"key": format!("k{n}"), "operator": "Exists"})).collect();
    let class = json!({"handler": "h", "scheduling": {"tolerations": tolerations}});
    let started = Instant::now();
    api.post("/apis/node.k8s.io/v1/runtimeclasses?dryRun=All", named("checked", class)).await.is(201);
    let taken = started.elapsed();
    assert!(taken.as_secs() < 20, "comparing each toleration with each other takes minutes: {taken:?}");
}
