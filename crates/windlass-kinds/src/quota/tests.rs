use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::Subresource;

fn quota(hard: &Value, used: &Value, spec: Value) -> Quota {
    Quota::of(&json!({"metadata": {"name": "q"}, "spec": spec, "status": {"hard": hard, "used": used}}))
}

fn create(resource: (&str, &str), object: &Value, quotas: &[Quota]) -> Result<String, String> {
    let request = Request {
        evaluator: Evaluator::of(resource.0, resource.1).unwrap(),
        operation: Operation::Create,
        subresource: &Subresource::None,
        object,
        old: None,
        now: Timestamp::UNIX_EPOCH,
    };
    let charges = charge(quotas, &request).map_err(|error| error.to_string())?;
    Ok(charges.iter().map(|charge| resource_list::shown(&charge.used)).collect::<Vec<_>>().join("; "))
}

fn pod(requests: &Value, spec: &Value) -> Value {
    let mut pod = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    pod
}

#[test]
fn a_pod_is_counted_by_its_requests() {
    let hard = json!({"pods": "2", "requests.cpu": "1", "memory": "1Gi", "count/pods": "10"});
    let zero = json!({"pods": "0", "requests.cpu": "0", "memory": "0", "count/pods": "0"});
    let one = pod(&json!({"cpu": "600m", "memory": "512Mi"}), &json!({}));
    assert_eq!(
        create(("", "pods"), &one, &[quota(&hard, &zero, json!({}))]).unwrap(),
        "count/pods=1,memory=512Mi,pods=1,requests.cpu=600m"
    );
    let used = json!({"pods": "1", "requests.cpu": "600m", "memory": "512Mi", "count/pods": "1"});
    assert_eq!(
        create(("", "pods"), &one, &[quota(&hard, &used, json!({}))]).unwrap_err(),
        "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"
    );
    assert_eq!(
        create(("", "pods"), &pod(&json!({}), &json!({})), &[quota(&hard, &zero, json!({}))]).unwrap_err(),
        "failed quota: q: must specify memory for: c; requests.cpu for: c"
    );
}

#[test]
fn a_quota_without_usage_refuses_what_it_counts() {
    let hard = json!({"pods": "2", "configmaps": "1"});
    let quotas = [quota(&hard, &json!({}), json!({}))];
    let refused = create(("", "configmaps"), &json!({}), &quotas).unwrap_err();
    assert_eq!(refused, "status unknown for quota: q, resources: configmaps");
    assert_eq!(create(("", "secrets"), &json!({}), &quotas).unwrap(), "");
}

#[test]
fn all_scopes_must_match() {
    let (hard, used) = (json!({"pods": "1"}), json!({"pods": "1"}));
    let scoped = |spec: Value| [quota(&hard, &used, spec)];
    let class = |operator: &str, values: Value| {
        json!({"scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": operator, "values": values}
        ]}})
    };
    let high = pod(&json!({}), &json!({"priorityClassName": "high"}));
    let plain = pod(&json!({"cpu": "1"}), &json!({"activeDeadlineSeconds": 5}));
    for (spec, of_high, of_plain) in [
        (json!({"scopes": ["BestEffort"]}), true, false),
        (json!({"scopes": ["NotBestEffort", "Terminating"]}), false, true),
        (json!({"scopes": ["NotTerminating"]}), true, false),
        (class("In", json!(["high", "low"])), true, false),
        (class("NotIn", json!(["high"])), false, true),
        (class("Exists", json!(null)), true, false),
        (class("DoesNotExist", json!(null)), false, true),
    ] {
        let counts = |pod: &Value| create(("", "pods"), pod, &scoped(spec.clone())).is_err();
        assert_eq!((counts(&high), counts(&plain)), (of_high, of_plain), "{spec}");
    }
    let maps =
        [quota(&json!({"configmaps": "0"}), &json!({"configmaps": "0"}), json!({"scopes": ["BestEffort"]}))];
    assert!(create(("", "configmaps"), &json!({}), &maps).is_ok(), "scopes are about pods");
}

#[test]
fn services_and_claims_have_resources_of_their_own() {
    let hard = json!({
        "services": "5", "services.nodeports": "1", "services.loadbalancers": "1", "requests.storage": "1Gi",
        "gold.storageclass.storage.k8s.io/requests.storage": "1Gi", "persistentvolumeclaims": "3"
    });
    let mut zero = hard.clone();
    zero.as_object_mut().unwrap().values_mut().for_each(|amount| *amount = json!("0"));
    let quotas = [quota(&hard, &zero, json!({}))];
    let service = json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2}]}});
    assert_eq!(
        create(("", "services"), &service, &quotas).unwrap_err(),
        "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1"
    );
    let claim = json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "2Gi"}}}});
    assert_eq!(
        create(("", "persistentvolumeclaims"), &claim, &quotas).unwrap_err(),
        "exceeded quota: q, requested: gold.storageclass.storage.k8s.io/requests.storage=2Gi,requests.storage=2Gi, \
         used: gold.storageclass.storage.k8s.io/requests.storage=0,requests.storage=0, \
         limited: gold.storageclass.storage.k8s.io/requests.storage=1Gi,requests.storage=1Gi"
    );
}

#[test]
fn an_update_is_charged_with_what_it_adds() {
    let limit = |used: &str| {
        [quota(&json!({"services.nodeports": "3"}), &json!({"services.nodeports": used}), json!({}))]
    };
    let service = |ports: usize| json!({"spec": {"type": "NodePort", "ports": vec![json!({}); ports]}});
    let update = |from: usize, to: usize, used: &str| {
        let request = Request {
            evaluator: Evaluator::Services,
            operation: Operation::Update,
            subresource: &Subresource::None,
            object: &service(to),
            old: Some(&service(from)),
            now: Timestamp::UNIX_EPOCH,
        };
        charge(&limit(used), &request).map(|charges| charges.len())
    };
    assert_eq!(update(2, 3, "2"), Ok(1));
    assert_eq!(update(3, 1, "3"), Ok(0), "the controller gives back what is not used any more");
    assert!(update(1, 3, "2").is_err());
}

#[test]
fn ended_pods_count_as_objects_only() {
    let mut ended = pod(&json!({"cpu": "1"}), &json!({}));
    ended["status"] = json!({"phase": "Succeeded"});
    let quota = quota(&json!({"pods": "9", "cpu": "9", "count/pods": "9"}), &json!({}), json!({}));
    let running = pod(&json!({"cpu": "1"}), &json!({}));
    let used = Evaluator::Pods.used_of(&quota, [&ended, &running], Timestamp::UNIX_EPOCH);
    assert_eq!(resource_list::shown(&used), "count/pods=2,cpu=1,pods=1");
}
