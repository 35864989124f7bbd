//! Validation of quotas and limit ranges.

use serde_json::{Value, json};

use crate::harness::Api;

/// Creates the object in a dry run, and returns the causes of the refusal, sorted.
async fn refused(api: &Api, path: &str, spec: Value) -> Vec<String> {
    let reply =
        api.post(&format!("{path}?dryRun=All"), json!({"metadata": {"name": "a"}, "spec": spec})).await;
    let causes = reply.at("/details/causes").as_array().cloned().unwrap_or_default();
    let mut shown: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap()))
        .collect();
    shown.sort();
    shown
}

#[tokio::test]
async fn quotas_count_whole_objects_and_fit_their_scopes() {
    let api = Api::start();
    let quotas = &format!("/api/v1/namespaces/{}/resourcequotas", api.namespace().await);
    let fraction = json!({"hard": {"pods": "1.5", "cpu": "1.5"}});
    assert_eq!(
        refused(&api, quotas, fraction).await,
        [r#"spec.hard[pods]: Invalid value: "1500m": must be an integer"#]
    );
    let misfit = json!({"hard": {"cpu": "1"}, "scopes": ["BestEffort"]});
    assert_eq!(
        refused(&api, quotas, misfit).await,
        [r#"spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource"#]
    );
    let no_values = json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]});
    assert_eq!(
        refused(&api, quotas, json!({"hard": {"pods": "1"}, "scopeSelector": no_values})).await,
        [
            "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        ]
    );
    assert!(
        refused(&api, quotas, json!({"hard": {"hugepages-2Mi": "1", "count/pods": "2"}})).await.is_empty()
    );
    let scoped =
        json!({"metadata": {"name": "scoped"}, "spec": {"hard": {"pods": "1"}, "scopes": ["BestEffort"]}});
    api.post(quotas, scoped).await.is(201);
    let other = json!({"metadata": {"name": "scoped"}, "spec": {"hard": {"pods": "1"}}});
    let reply = api.put(&format!("{quotas}/scoped"), other).await.is(422);
    assert!(
        reply.text_at("/message").ends_with("spec.scopes: Invalid value: null: field is immutable"),
        "{reply}"
    );
}

#[tokio::test]
async fn limit_ranges_do_not_contradict_themselves() {
    let api = Api::start();
    let ranges = &format!("/api/v1/namespaces/{}/limitranges", api.namespace().await);
    let of = |limit: Value| json!({"limits": [limit]});
    assert_eq!(
        refused(&api, ranges, of(json!({"type": "Foo"}))).await,
        [r#"spec.limits[0].type: Invalid value: "Foo": must be a standard limit type or fully qualified"#]
    );
    assert_eq!(
        refused(&api, ranges, of(json!({"type": "PersistentVolumeClaim"}))).await,
        [
            "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided"
        ]
    );
    assert_eq!(
        refused(&api, ranges, of(json!({"type": "Pod", "default": {"cpu": "1"}}))).await,
        ["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"]
    );
    let low_ratio = json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "500m"}});
    assert_eq!(
        refused(&api, ranges, of(low_ratio)).await,
        [r#"spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1"#]
    );
    let high_ratio = json!({
        "type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "2.500"}, "maxLimitRequestRatio": {"cpu": "3"},
    });
    assert_eq!(
        refused(&api, ranges, of(high_ratio)).await,
        [
            r#"spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.500000"#
        ]
    );
}
