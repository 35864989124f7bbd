//! Waits until the pods of a deployment are ready.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams, ResourceExt};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::Target;
use super::diagnosis;
use crate::error::{Advice, Result};
use crate::output::Output;

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(250);

/// The number of restarts after which a crashing container counts as failed.
const RESTARTS: i32 = 3;

/// The state of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Waiting(String),
    Failed(String),
}

/// Waits until all pods of the operator's Deployment are ready and of the deployed version, and prints the progress.
///
/// # Errors
///
/// The rollout has failed, or is not complete within `limit`. The events and the last lines of the log of the pods are printed before.
pub(crate) async fn wait(
    client: &Client,
    target: &Target,
    objects: &[Value],
    limit: Duration,
    out: &mut Output,
) -> Result<()> {
    for object in objects.iter().filter(|object| object["kind"] == "Deployment") {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(&target.namespace);
        wait_for(client, namespace, name, limit, out).await?;
    }
    Ok(())
}

async fn wait_for(
    client: &Client,
    namespace: &str,
    name: &str,
    limit: Duration,
    out: &mut Output,
) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let begun = Instant::now();
    let mut said = String::new();
    loop {
        let deployment = deployments.get(name).await?;
        let pods = pods(client, &deployment).await?;
        let state = state(&deployment, &pods);
        let reason = match state {
            State::Ready => {
                let seconds = begun.elapsed().as_secs_f32();
                out.line(format_args!("deployment.apps/{name} is ready after {seconds:.1} s"));
                return Ok(());
            }
            State::Failed(reason) => reason,
            State::Waiting(progress) if begun.elapsed() < limit => {
                if progress != said {
                    out.line(format_args!("waiting for deployment.apps/{name}: {progress}"));
                    said = progress;
                }
                sleep(LOOK).await;
                continue;
            }
            State::Waiting(progress) => format!("{progress} after {} s", limit.as_secs()),
        };
        if pods.is_empty() {
            diagnosis::print_of_replica_sets(client, namespace, name, out).await;
        }
        diagnosis::print(client, namespace, &pods, out).await;
        return Err(Advice::new(
            format!("deployment.apps/{name} in namespace {namespace} is not ready: {reason}"),
            "mend the cause and deploy again. --no-wait does not wait; --timeout waits longer",
        ));
    }
}

/// Returns the pods of the newest version of a Deployment, or all pods while the newest version is not known.
async fn pods(client: &Client, deployment: &Deployment) -> Result<Vec<Pod>> {
    let namespace = deployment.namespace().unwrap_or_default();
    let labels =
        deployment.spec.as_ref().and_then(|spec| spec.selector.match_labels.clone()).unwrap_or_default();
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let mut pods = pods.list(&ListParams::default().labels(&labels.join(","))).await?.items;
    let hash = |pod: &Pod| pod.labels().get("pod-template-hash").cloned();
    let newest = pods.iter().max_by_key(|pod| pod.creation_timestamp().map(|time| time.0)).and_then(hash);
    pods.retain(|pod| pod.metadata.deletion_timestamp.is_none() && (newest.is_none() || hash(pod) == newest));
    Ok(pods)
}

/// Returns the state of a rollout, as `kubectl rollout status` determines the state, and with the reasons of pods that cannot start.
fn state(deployment: &Deployment, pods: &[Pod]) -> State {
    let status = deployment.status.clone().unwrap_or_default();
    if deployment.metadata.generation > status.observed_generation {
        return State::Waiting("the controllers have not seen the Deployment".to_owned());
    }
    let conditions = status.conditions.unwrap_or_default();
    let exceeded = |reason: &Option<String>| reason.as_deref() == Some("ProgressDeadlineExceeded");
    if conditions.iter().any(|condition| condition.type_ == "Progressing" && exceeded(&condition.reason)) {
        return State::Failed("the Deployment exceeded its progress deadline".to_owned());
    }
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let count = |number: Option<i32>| number.unwrap_or_default();
    let (updated, available) = (count(status.updated_replicas), count(status.available_replicas));
    if updated >= wanted && count(status.replicas) <= updated && available >= updated {
        return State::Ready;
    }
    // Before the first pod of the new version, the pods are those of the last version.
    let pods = if updated == 0 { &[] } else { pods };
    if let Some(reason) = pods.iter().find_map(fatal) {
        return State::Failed(reason);
    }
    let failure =
        conditions.iter().find(|condition| condition.type_ == "ReplicaFailure" && condition.status == "True");
    if let Some(message) = failure.and_then(|condition| condition.message.clone()) {
        return State::Failed(message);
    }
    let reason =
        pods.iter().find_map(waiting_reason).map(|(reason, _)| format!(" ({reason})")).unwrap_or_default();
    State::Waiting(format!("{available} of {wanted} pods are ready{reason}"))
}

/// Returns the reason and the message of a waiting container.
fn waiting_reason(pod: &Pod) -> Option<(String, String)> {
    let status = pod.status.as_ref()?;
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    containers
        .filter_map(|container| container.state.as_ref()?.waiting.as_ref())
        .find_map(|waiting| Some((waiting.reason.clone()?, waiting.message.clone().unwrap_or_default())))
}

/// Returns why a pod will not start without help.
fn fatal(pod: &Pod) -> Option<String> {
    let (reason, message) = waiting_reason(pod)?;
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let restarts =
        containers.into_iter().flatten().map(|container| container.restart_count).max().unwrap_or_default();
    let is_fatal = match reason.as_str() {
        "InvalidImageName" | "ImagePullBackOff" | "ErrImageNeverPull" => true,
        "CrashLoopBackOff" => restarts >= RESTARTS,
        _ => false,
    };
    is_fatal.then(|| format!("pod {}: {reason}: {message}", pod.name_any()).trim_end_matches(": ").to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(status: &Value) -> Deployment {
        serde_json::from_value(json!({
            "metadata": { "generation": 2 },
            "spec": { "replicas": 2, "selector": {}, "template": {} },
            "status": status,
        }))
        .expect("a Deployment")
    }

    fn pod(reason: &str, restarts: i32) -> Pod {
        let state = json!({ "waiting": { "reason": reason, "message": "text" } });
        let container = json!({ "name": "manager", "image": "a", "imageID": "", "ready": false, "restartCount": restarts, "state": state });
        serde_json::from_value(
            json!({ "metadata": { "name": "p" }, "status": { "containerStatuses": [container] } }),
        )
        .expect("a pod")
    }

    fn waiting(text: &str) -> State {
        State::Waiting(text.to_owned())
    }

    #[test]
    fn a_rollout_is_ready_when_all_pods_are_new_and_available() {
        let unseen = deployment(
            &json!({ "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2 }),
        );
        assert_eq!(state(&unseen, &[]), waiting("the controllers have not seen the Deployment"));
        let old =
            json!({ "observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 2 });
        assert_eq!(
            state(&deployment(&old), &[]),
            waiting("2 of 2 pods are ready"),
            "a pod of the last version is there"
        );
        let done =
            json!({ "observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2 });
        assert_eq!(state(&deployment(&done), &[]), State::Ready);
    }

    #[test]
    fn a_pod_that_cannot_start_ends_the_wait() {
        let begun = deployment(&json!({ "observedGeneration": 2, "replicas": 2, "updatedReplicas": 2 }));
        assert_eq!(state(&begun, &[pod("ErrImagePull", 0)]), waiting("0 of 2 pods are ready (ErrImagePull)"));
        assert_eq!(
            state(&begun, &[pod("ImagePullBackOff", 0)]),
            State::Failed("pod p: ImagePullBackOff: text".to_owned())
        );
        assert_eq!(
            state(&begun, &[pod("CrashLoopBackOff", 1)]),
            waiting("0 of 2 pods are ready (CrashLoopBackOff)")
        );
        assert!(matches!(state(&begun, &[pod("CrashLoopBackOff", 3)]), State::Failed(_)));
        let unborn = deployment(&json!({ "observedGeneration": 2, "replicas": 2 }));
        assert_eq!(
            state(&unborn, &[pod("ImagePullBackOff", 0)]),
            waiting("0 of 2 pods are ready"),
            "a pod of the last version"
        );
        let condition =
            json!({ "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded" });
        let late = deployment(&json!({ "observedGeneration": 2, "conditions": [condition] }));
        assert!(matches!(state(&late, &[]), State::Failed(_)));
    }
}
