//! The check of the types in admission policies.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube_client::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass_test::{TestCluster, eventually};

use crate::support::WAIT_LIMIT;

/// Waits until a generation of the policy `p` is checked. Returns the warnings, a text for each.
async fn warnings(policies: &Api<ValidatingAdmissionPolicy>, generation: i64) -> Vec<String> {
    eventually(WAIT_LIMIT, || async {
        let policy = policies.get("p").await.map_err(|error| error.to_string())?;
        let status = policy.status.unwrap_or_default();
        if status.observed_generation != Some(generation) {
            return Err(format!("generation {:?} is checked", status.observed_generation));
        }
        // The server drops an empty `typeChecking` if the last warning is removed.
        let warnings = status.type_checking.and_then(|checking| checking.expression_warnings);
        let warnings = warnings.unwrap_or_default().into_iter();
        Ok(warnings.map(|warning| format!("{}: {}", warning.field_ref, warning.warning)).collect())
    })
    .await
}

#[tokio::test]
async fn the_types_of_expressions_are_checked_against_the_kinds_of_the_rules() {
    let cluster = TestCluster::with_controllers().await;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(cluster.client());
    let rules = json!([{
        "operations": ["CREATE"], "apiGroups": ["apps", ""], "apiVersions": ["v1"], "resources": ["deployments", "pods", "pods/exec"]
    }]);
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "variables": [{"name": "spec", "expression": "object.spec"}],
            "validations": [
                {"expression": "object.metadata.name == params.data.name && variables.spec.anything == 1"},
                {"expression": "object.spec.replicas > '1'", "messageExpression": "'replicas: ' + object.spec.replicas"},
            ],
        },
    }))
    .unwrap();
    policies.create(&PostParams::default(), &policy).await.unwrap();
    assert_eq!(
        warnings(&policies, 1).await,
        [
            "spec.validations[1].expression: /v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'replicas'\n | \
             object.spec.replicas > '1'\n | ...........^\n\napps/v1, Kind=Deployment: ERROR: <input>:1:22: found no \
             matching overload for '_>_' applied to '(int, string)'\n | object.spec.replicas > '1'\n | \
             .....................^\n",
            "spec.validations[1].messageExpression: /v1, Kind=Pod: ERROR: <input>:1:27: undefined field \
             'replicas'\n | 'replicas: ' + object.spec.replicas\n | ..........................^\n\napps/v1, \
             Kind=Deployment: ERROR: <input>:1:14: found no matching overload for '_+_' applied to '(string, \
             int)'\n | 'replicas: ' + object.spec.replicas\n | .............^\n",
        ]
    );
    let fixed = json!({"spec": {"validations": [{"expression": "params.data.size() > 0"}]}});
    policies.patch("p", &PatchParams::default(), &Patch::Merge(fixed)).await.unwrap();
    assert_eq!(warnings(&policies, 2).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_core_group_stands_for_all_groups_and_ten_kinds_of_a_rule_are_checked() {
    let cluster = TestCluster::with_controllers().await;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(cluster.client());
    let rule = |groups: &[&str], resources: &[&str]| json!({"operations": ["CREATE"], "apiGroups": groups, "apiVersions": ["v1"], "resources": resources});
    let core = [
        "configmaps",
        "deployments",
        "endpoints",
        "events",
        "namespaces",
        "nodes",
        "pods",
        "pods/exec",
        "secrets",
        "serviceaccounts",
        "services",
    ];
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [
                rule(&["batch"], &["Jobs", "cronjob"]), rule(&[""], &core), rule(&["apps"], &["daemonsets"]),
            ]},
            "validations": [{"expression": "object.absent == 1"}],
        },
    }))
    .unwrap();
    policies.create(&PostParams::default(), &policy).await.unwrap();
    let found = warnings(&policies, 1).await.concat();
    let kinds: Vec<&str> = found.split(": ERROR").filter_map(|text| text.split("Kind=").nth(1)).collect();
    let versions = found.matches("events.k8s.io/v1, Kind=Event:").count();
    // The tenth kind of a rule ends the search.
    assert_eq!(
        (kinds.join(" "), versions),
        (
            "ConfigMap Endpoints Event Namespace Node Pod Secret ServiceAccount Deployment CronJob Job Event"
                .to_owned(),
            1
        )
    );
}

#[tokio::test]
async fn a_policy_with_strange_groups_is_checked() {
    let cluster = TestCluster::with_controllers().await;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(cluster.client());
    let rules = json!([{
        "operations": ["CREATE"], "apiGroups": ["apps/v1/deployments?watch=true&x=", "a b", "", "absent.example.com"],
        "apiVersions": ["v1", "v1?watch=true&x="], "resources": ["configmaps"]
    }]);
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "object.spec.replicas > 1"}],
        },
    }))
    .unwrap();
    policies.create(&PostParams::default(), &policy).await.unwrap();
    let found = warnings(&policies, 1).await;
    assert!(found.len() == 1 && found[0].contains("/v1, Kind=ConfigMap"), "{found:?}");
}
