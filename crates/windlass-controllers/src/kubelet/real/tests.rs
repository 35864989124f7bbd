//! The state machine, with a scripted runtime and simulated time.

mod images;
mod roles;
mod stage;

use std::time::Duration;

use k8s_openapi::jiff::SignedDuration;
use serde_json::{Value, json};
use windlass_node::{Exit, Image, PullError};

use super::action::{Action, Observation, StartError};
use super::memory::RealMemory;
use super::probe::ProbeKind;
use crate::kubelet::resolve::MountError;

use stage::Stage;

fn image() -> Image {
    Image { id: "sha256:1".into(), digested: "app@sha256:2".into(), size: 5 }
}

fn one(container: &Value) -> Value {
    let mut all = json!({"name": "c", "image": "app:v1"});
    for (key, value) in container.as_object().unwrap() {
        all[key] = value.clone();
    }
    json!({"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "containers": [all]})
}

#[test]
fn a_pod_starts_in_the_order_of_a_kubelet_and_says_so() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.run_for(1.0);
    let made: Vec<String> = stage.actions.iter().map(|action| format!("{action:?}")).collect();
    let order = ["PrepareVolumes", "CreateSandbox", "FindImage", "Start"];
    assert!(made.iter().zip(order).all(|(made, wanted)| made.starts_with(wanted)), "{made:?}");
    assert_eq!(
        stage.events,
        [
            "Pulled: Container image \"app:v1\" already present on machine and can be accessed by the pod",
            "Created: Container created",
            "Started: Container started",
        ]
    );
    assert_eq!((stage.phase().as_str(), stage.is_ready()), ("Running", true));
    let status = stage.container("c");
    assert_eq!(status.container_id.as_deref(), Some("process://c1"));
    assert_eq!(status.image_id, "app@sha256:2");
    assert_eq!(stage.pod.status.unwrap().pod_ip.as_deref(), Some("10.244.0.2"));
}

#[test]
fn an_image_that_cannot_be_had_is_pulled_again_with_back_off() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.present = false;
    stage.pull_error = Some(PullError::NotFound("manifest unknown".into()));
    stage.run_for(1.0);
    assert_eq!((stage.state("c").as_str(), stage.phase().as_str()), ("ErrImagePull", "Pending"));
    stage.run_for(3.0);
    assert_eq!(stage.state("c"), "ImagePullBackOff");
    let message = stage.container("c").state.unwrap().waiting.unwrap().message.unwrap();
    assert_eq!(message, "Back-off pulling image \"app:v1\": ErrImagePull: manifest unknown");
    for text in [
        "Pulling: Pulling image \"app:v1\"",
        "Failed: Failed to pull image \"app:v1\": manifest unknown",
        "Failed: Error: ErrImagePull",
        "BackOff: Back-off pulling image \"app:v1\"",
        "Failed: Error: ImagePullBackOff",
    ] {
        stage.assert_event(text);
    }
    // Pulls at 0, 10, 30, 70, 150, 310 and 610 s.
    stage.run_for(606.5);
    let pulls =
        |stage: &Stage| stage.actions.iter().filter(|action| matches!(action, Action::Pull { .. })).count();
    assert_eq!(pulls(&stage), 7);
    stage.pull_error = None;
    stage.run_for(300.0);
    assert_eq!(stage.phase(), "Running");
    stage.assert_event(
        "Pulled: Successfully pulled image \"app:v1\" in 1.5s (1.5s including waiting). Image size: 5 bytes.",
    );
}

#[test]
fn the_pull_policy_decides() {
    let mut never = Stage::new(&one(&json!({"imagePullPolicy": "Never"})));
    never.present = false;
    never.run_for(1.0);
    assert_eq!(never.state("c"), "ErrImageNeverPull");
    never.assert_event(
        "ErrImageNeverPull: Container image \"app:v1\" is not present with pull policy of Never",
    );
    let mut wrong = Stage::new(&one(&json!({})));
    wrong.present = false;
    wrong.pull_error = Some(PullError::InvalidName("couldn't parse image name".into()));
    wrong.run_for(1.0);
    assert_eq!(wrong.state("c"), "InvalidImageName");
    // The image of a registry that cannot be reached is taken from this machine.
    let mut always = Stage::new(&one(&json!({"imagePullPolicy": "Always"})));
    always.run_for(1.0);
    assert_eq!(always.phase(), "Running");
}

#[test]
fn a_container_that_ends_is_restarted_with_back_off() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.run_for(1.0).exits("c1", 1);
    assert_eq!((stage.state("c").as_str(), stage.container("c").restart_count), ("Running", 1));
    stage.exits("c2", 1);
    assert_eq!((stage.state("c").as_str(), stage.is_ready()), ("CrashLoopBackOff", false));
    let status = stage.container("c");
    let waiting = status.state.unwrap().waiting.unwrap();
    assert_eq!(waiting.message.unwrap(), "back-off 10s restarting failed container=c pod=p_ns(u)");
    let last = status.last_state.unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.message.as_deref()), (1, Some("last words")));
    assert_eq!(last.container_id.as_deref(), Some("process://c2"));
    stage.assert_event("BackOff: Back-off restarting failed container c in pod p_ns(u)");
    stage.run_for(9.0);
    assert_eq!(stage.starts, 2);
    stage.run_for(2.0);
    assert_eq!((stage.starts, stage.phase().as_str()), (3, "Running"));
    stage.exits("c3", 1).run_for(19.0);
    assert_eq!(stage.starts, 3);
    stage.run_for(2.0);
    assert_eq!(stage.starts, 4);
    // A long run ends the back-off.
    stage.run_for(700.0).exits("c4", 0);
    assert_eq!((stage.starts, stage.container("c").restart_count), (5, 4));
}

#[test]
fn the_restart_policy_decides_what_becomes_of_a_pod() {
    for (policy, code, phase) in [
        ("Never", 0, "Succeeded"),
        ("Never", 3, "Failed"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 3, "Running"),
    ] {
        let mut spec = one(&json!({}));
        spec["restartPolicy"] = json!(policy);
        let mut stage = Stage::new(&spec);
        stage.run_for(1.0).exits("c1", code);
        assert_eq!(stage.phase(), phase, "{policy} {code}");
        let gone = stage.actions.contains(&Action::RemoveSandbox);
        assert_eq!(gone, phase != "Running", "{policy} {code}");
    }
}

#[test]
fn a_program_that_the_kernel_ended_for_its_memory_is_oom_killed() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.run_for(1.0);
    let Observation::Exited { id, exit, message } = stage.exit_of("c1", 137, None) else { unreachable!() };
    let exit = Exit { out_of_memory: true, ..exit };
    stage.inbox.push(Observation::Exited { id, exit, message });
    stage.run_for(0.0);
    let last = stage.container("c").last_state.unwrap().terminated.unwrap();
    assert_eq!((last.reason.as_deref(), last.exit_code, last.signal), (Some("OOMKilled"), 137, Some(9)));
}

#[test]
fn init_containers_run_one_after_the_other_and_sidecars_stay() {
    let mut spec = one(&json!({}));
    spec["initContainers"] = json!([
        {"name": "first", "image": "i"},
        {"name": "side", "image": "i", "restartPolicy": "Always", "startupProbe": {"periodSeconds": 1, "tcpSocket": {"port": 1}}},
        {"name": "second", "image": "i"},
    ]);
    spec["restartPolicy"] = json!("Never");
    let mut stage = Stage::new(&spec);
    stage.probes.insert("Startup", "dial tcp");
    stage.run_for(1.0);
    assert_eq!((stage.state("first").as_str(), stage.state("c").as_str()), ("Running", "PodInitializing"));
    stage.exits("first1", 0).run_for(1.0);
    assert_eq!(
        (stage.state("side").as_str(), stage.state("second").as_str()),
        ("Running", "PodInitializing")
    );
    stage.probes.clear();
    stage.run_for(2.0);
    assert_eq!((stage.state("second").as_str(), stage.phase().as_str()), ("Running", "Pending"));
    stage.exits("second3", 0);
    assert_eq!((stage.state("c").as_str(), stage.phase().as_str()), ("Running", "Running"));
    // A sidecar ends after the containers that it helps.
    stage.exits("c4", 0).run_for(1.0);
    assert_eq!((stage.state("side").as_str(), stage.phase().as_str()), ("Error 143", "Succeeded"));
}

#[test]
fn an_init_container_that_fails_fails_a_pod_that_is_not_restarted() {
    let mut spec = one(&json!({}));
    spec["initContainers"] = json!([{"name": "i", "image": "i"}]);
    spec["restartPolicy"] = json!("Never");
    let mut stage = Stage::new(&spec);
    stage.run_for(1.0).exits("i1", 2);
    assert_eq!((stage.phase().as_str(), stage.state("c").as_str()), ("Failed", "PodInitializing"));
}

#[test]
fn probes_decide_about_readiness_and_restarts() {
    let probe = json!({"periodSeconds": 2, "failureThreshold": 3, "httpGet": {"port": 80}});
    let mut stage = Stage::new(&one(&json!({"readinessProbe": probe, "livenessProbe": probe})));
    stage.run_for(0.0);
    stage.run_for(1.0);
    assert!(stage.is_ready());
    stage.probes.insert("Readiness", "HTTP probe failed with statuscode: 500");
    stage.run_for(7.0);
    assert!(!stage.is_ready());
    assert_eq!(stage.state("c"), "Running");
    stage.assert_event("Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 500");
    stage.probes.insert("Liveness", "connection refused");
    stage.run_for(3.0);
    assert_eq!(stage.container("c").restart_count, 0);
    stage.run_for(4.0);
    stage.assert_event("Killing: Container c failed liveness probe, will be restarted");
    assert_eq!(stage.container("c").restart_count, 1);
}

#[test]
fn no_other_probe_runs_before_the_startup_probe_has_succeeded() {
    let probe = json!({"periodSeconds": 1, "failureThreshold": 5, "exec": {"command": ["x"]}});
    let mut stage = Stage::new(&one(&json!({"startupProbe": probe, "livenessProbe": probe})));
    stage.probes.insert("Startup", "not yet");
    stage.run_for(3.0);
    assert!(!stage.is_ready());
    assert_eq!(stage.container("c").started, Some(false));
    let liveness = |stage: &Stage| {
        let is_it = |action: &&Action| matches!(action, Action::Check { kind: ProbeKind::Liveness, .. });
        stage.actions.iter().filter(is_it).count()
    };
    assert_eq!(liveness(&stage), 0);
    stage.probes.clear();
    stage.run_for(3.0);
    assert!(stage.is_ready() && liveness(&stage) > 0);
}

#[test]
fn a_deleted_pod_gets_its_signal_then_goes() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.run_for(1.0).delete(30).run_for(1.0);
    stage.assert_event("Killing: Stopping container c");
    assert_eq!((stage.state("c").as_str(), stage.phase().as_str()), ("Error 143", "Failed"));
    assert!(stage.removed && stage.actions.contains(&Action::RemoveSandbox));
}

#[test]
fn a_program_that_ignores_its_signal_is_killed_at_the_deadline() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.obedient = false;
    stage.run_for(1.0).delete(30).run_for(29.0);
    assert_eq!((stage.state("c").as_str(), stage.removed), ("Running", false));
    stage.run_for(1.5);
    assert_eq!((stage.state("c").as_str(), stage.removed), ("Error 137", true));
}

#[test]
fn a_program_that_outlives_its_kill_is_killed_again() {
    let mut stage = Stage::new(&one(&json!({})));
    (stage.obedient, stage.immortal) = (false, true);
    stage.run_for(1.0).delete(5).run_for(60.0);
    let kills =
        stage.actions.iter().filter(|action| matches!(action, Action::Signal { signal: Some(9), .. }));
    assert!(kills.count() > 2 && !stage.removed);
    stage.immortal = false;
    stage.run_for(15.0);
    assert!(stage.removed);
}

#[test]
fn a_pod_stays_until_its_sandbox_is_removed() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.removal_error = Some("the runtime does not answer".into());
    stage.run_for(1.0).delete(30).run_for(120.0);
    stage.assert_event("FailedKillPod: error killing pod: the runtime does not answer");
    let removals =
        |stage: &Stage| stage.actions.iter().filter(|action| **action == Action::RemoveSandbox).count();
    assert!(removals(&stage) > 10 && !stage.removed, "{}", removals(&stage));
    stage.removal_error = None;
    stage.run_for(10.0);
    assert!(stage.removed);
}

#[test]
fn a_pod_whose_sandbox_has_ended_gets_another() {
    let mut spec = one(&json!({}));
    spec["initContainers"] = json!([{"name": "i", "image": "i"}]);
    let mut stage = Stage::new(&spec);
    stage.run_for(1.0).exits("i1", 0).run_for(1.0);
    assert_eq!((stage.phase().as_str(), stage.starts), ("Running", 2));
    // All containers end with the sandbox.
    stage.sandbox_ended = true;
    stage.exits("c2", 137);
    stage.assert_event("SandboxChanged: Pod sandbox changed, it will be killed and re-created.");
    let sandboxes = stage.actions.iter().filter(|action| **action == Action::CreateSandbox).count();
    assert_eq!((sandboxes, stage.state("i").as_str(), stage.phase().as_str()), (2, "Running", "Running"));
    stage.exits("i3", 0).run_for(1.0);
    assert_eq!((stage.state("c").as_str(), stage.starts), ("Running", 4));
    assert_eq!((stage.container("i").restart_count, stage.container("c").restart_count), (1, 1));
    stage.delete(30).run_for(1.0);
    assert!(stage.removed);
}

#[test]
fn the_hook_before_the_stop_has_the_grace_period_and_two_seconds_remain() {
    let hook = json!({"lifecycle": {"preStop": {"exec": {"command": ["x"]}}}});
    let signals = |stage: &Stage| -> Vec<Option<i32>> {
        let signal = |action: &Action| match action {
            Action::Signal { signal, .. } => Some(*signal),
            _ => None,
        };
        stage.actions.iter().filter_map(signal).collect()
    };
    let mut stage = Stage::new(&one(&hook));
    (stage.hold_hooks, stage.obedient) = (true, false);
    stage.run_for(1.0).delete(10).run_for(9.0);
    assert_eq!(signals(&stage), []);
    stage.run_for(1.5);
    assert_eq!(signals(&stage), [None]);
    stage.run_for(2.0);
    assert_eq!((signals(&stage), stage.removed), (vec![None, Some(9)], true));
}

#[test]
fn a_pod_beyond_its_deadline_fails() {
    let mut spec = one(&json!({}));
    spec["activeDeadlineSeconds"] = json!(5);
    let mut stage = Stage::new(&spec);
    stage.run_for(4.0);
    assert_eq!(stage.phase(), "Running");
    stage.run_for(2.0);
    assert_eq!(stage.phase(), "Failed");
    assert_eq!(stage.pod.status.clone().unwrap().reason.as_deref(), Some("DeadlineExceeded"));
    assert_eq!(stage.state("c"), "Error 143");
}

#[test]
fn a_missing_object_is_named_and_waited_for() {
    let mut stage = Stage::new(&one(&json!({})));
    let message = "couldn't find key k in ConfigMap ns/cm".to_owned();
    stage.start_error = Some(StartError { reason: "CreateContainerConfigError", message: message.clone() });
    stage.run_for(1.0);
    assert_eq!(stage.state("c"), "CreateContainerConfigError");
    stage.assert_event(&format!("Failed: Error: {message}"));
    stage.start_error = None;
    stage.inbox.push(Observation::ObjectsChanged);
    stage.run_for(0.0);
    assert_eq!((stage.phase().as_str(), stage.container("c").restart_count), ("Running", 0));
}

#[test]
fn a_program_that_cannot_be_started_is_a_crash() {
    let mut stage = Stage::new(&one(&json!({})));
    let message = "exec: \"x\": executable file not found in $PATH".to_owned();
    stage.start_error = Some(StartError { reason: "RunContainerError", message });
    stage.run_for(1.0);
    assert_eq!((stage.state("c").as_str(), stage.container("c").restart_count), ("RunContainerError", 1));
    let text = stage.container("c").state.unwrap().waiting.unwrap().message.unwrap();
    assert_eq!(text, "exec: \"x\": executable file not found in $PATH");
    stage.run_for(2.0);
    assert_eq!((stage.state("c").as_str(), stage.container("c").restart_count), ("CrashLoopBackOff", 1));
    let last = stage.container("c").last_state.unwrap().terminated.unwrap();
    assert_eq!((last.reason.as_deref(), last.exit_code), (Some("StartError"), 128));
    let last: Vec<&str> = stage.events.iter().rev().take(4).rev().map(String::as_str).collect();
    let [_, created, failed, back_off] = last[..] else { panic!("{:?}", stage.events) };
    assert_eq!(created, "Created: Container created");
    assert_eq!(failed, "Failed: Error: exec: \"x\": executable file not found in $PATH");
    assert_eq!(back_off, "BackOff: Back-off restarting failed container c in pod p_ns(u)");
}

#[test]
fn a_name_that_is_no_image_is_named_once() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.present = false;
    let why = "couldn't parse image name \"A b\": invalid reference format";
    stage.pull_error = Some(PullError::InvalidName(why.into()));
    stage.run_for(1.0);
    stage.assert_event(&format!("InspectFailed: Failed to apply default image tag \"app:v1\": {why}"));
    assert_eq!(stage.state("c"), "InvalidImageName");
}

#[test]
fn a_pod_that_is_deleted_during_a_pull_starts_no_program() {
    let mut stage = Stage::new(&one(&json!({})));
    (stage.present, stage.hold_pull) = (false, Some("c"));
    stage.run_for(1.0).delete(30);
    assert!(stage.removed);
    stage.inbox.push(pulled("c"));
    stage.run_for(1.0);
    assert_eq!(stage.starts, 0);
    // A sidecar of the pod may take the grace period.
    let mut spec = one(&json!({}));
    spec["initContainers"] = json!([{"name": "side", "image": "i", "restartPolicy": "Always"}]);
    let mut stage = Stage::new(&spec);
    (stage.present, stage.hold_pull, stage.obedient) = (false, Some("c"), false);
    stage.run_for(1.0).delete(30).run_for(1.0);
    assert_eq!((stage.state("side").as_str(), stage.removed), ("Running", false));
    stage.inbox.push(pulled("c"));
    stage.run_for(1.0);
    assert_eq!(stage.starts, 1, "a program starts in a pod that ends");
    stage.run_for(30.0);
    assert!(stage.removed);
}

fn pulled(container: &str) -> Observation {
    Observation::Pulled { container: container.into(), outcome: Ok(image()), took: Duration::ZERO }
}

#[test]
fn a_pod_that_is_deleted_in_its_init_container_stops_the_init_container_alone() {
    let mut spec = one(&json!({}));
    spec["initContainers"] = json!([{"name": "i", "image": "i"}]);
    let mut stage = Stage::new(&spec);
    stage.run_for(1.0).delete(30).run_for(1.0);
    assert_eq!((stage.state("i").as_str(), stage.starts, stage.removed), ("Error 143", 1, true));
}

#[test]
fn a_pod_that_is_evicted_is_stopped() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.run_for(1.0);
    stage.pod.status.as_mut().unwrap().phase = Some("Failed".into());
    stage.wake_at = Some(stage.now);
    stage.run_for(1.0);
    stage.assert_event("Killing: Stopping container c");
    assert!(stage.actions.contains(&Action::RemoveSandbox));
    assert_eq!(stage.phase(), "Failed");
}

#[test]
fn a_token_is_renewed_when_its_time_has_come() {
    let mut stage = Stage::new(&one(&json!({})));
    // A token of 600 s is renewed after 480 s.
    stage.renew_after = Some(SignedDuration::from_secs(480));
    let writes =
        |stage: &Stage| stage.actions.iter().filter(|action| **action == Action::PrepareVolumes).count();
    stage.run_for(479.0);
    assert_eq!(writes(&stage), 1);
    stage.run_for(2.0);
    assert_eq!(writes(&stage), 2);
    // The clock of the machine jumps.
    stage.now += SignedDuration::from_hours(5);
    stage.run_for(1.0);
    assert_eq!(writes(&stage), 3);
    assert_eq!((stage.phase().as_str(), stage.container("c").restart_count), ("Running", 0));
}

#[test]
fn a_volume_that_cannot_be_mounted_holds_the_pod_back() {
    let mut stage = Stage::new(&one(&json!({})));
    let message = "configmap \"cm\" not found".to_owned();
    stage.mount_error = Some(MountError { volume: "v".into(), message });
    stage.run_for(1.0);
    assert_eq!((stage.state("c").as_str(), stage.starts), ("ContainerCreating", 0));
    stage.assert_event("FailedMount: MountVolume.SetUp failed for volume \"v\" : configmap \"cm\" not found");
    stage.mount_error = None;
    stage.inbox.push(Observation::ObjectsChanged);
    stage.run_for(0.0);
    assert_eq!(stage.phase(), "Running");
    // Later changes refresh the files.
    stage.inbox.push(Observation::ObjectsChanged);
    stage.run_for(0.0);
    let writes = stage.actions.iter().filter(|action| **action == Action::PrepareVolumes).count();
    assert!(writes >= 3, "{writes}");
}

#[test]
fn volumes_of_the_downward_api_follow_the_labels() {
    let writes =
        |stage: &Stage| stage.actions.iter().filter(|action| **action == Action::PrepareVolumes).count();
    let labels = json!([{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]);
    for (volume, follows) in [
        (json!({"name": "v", "downwardAPI": {"items": labels}}), true),
        (json!({"name": "v", "projected": {"sources": [{"downwardAPI": {"items": labels}}]}}), true),
        (json!({"name": "v", "emptyDir": {}}), false),
    ] {
        let mut spec = one(&json!({}));
        spec["volumes"] = json!([volume]);
        let mut stage = Stage::new(&spec);
        stage.run_for(1.0);
        stage.wake_at = Some(stage.now);
        stage.run_for(1.0);
        assert_eq!(writes(&stage), 1, "{volume}");
        stage.pod.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
        stage.wake_at = Some(stage.now);
        stage.run_for(1.0);
        assert_eq!(writes(&stage), 1 + usize::from(follows), "{volume}");
    }
}

#[test]
fn an_ephemeral_container_joins_a_running_pod() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.run_for(1.0);
    let debugger = json!([{"name": "debug", "image": "i", "targetContainerName": "c"}]);
    stage.pod.spec.as_mut().unwrap().ephemeral_containers = serde_json::from_value(debugger).unwrap();
    stage.wake_at = Some(stage.now);
    stage.run_for(1.0);
    assert_eq!(stage.state("debug"), "Running");
    stage.exits("debug2", 1);
    assert_eq!((stage.state("debug").as_str(), stage.phase().as_str()), ("Error 1", "Running"));
}

#[test]
fn a_new_image_restarts_the_container_whatever_its_policy() {
    let mut spec = one(&json!({}));
    spec["restartPolicy"] = json!("Never");
    let mut stage = Stage::new(&spec);
    stage.run_for(1.0);
    stage.pod.spec.as_mut().unwrap().containers[0].image = Some("app:v2".into());
    stage.wake_at = Some(stage.now);
    stage.run_for(1.0);
    stage.assert_event("Killing: Container c definition changed, will be restarted");
    assert_eq!((stage.phase().as_str(), stage.starts), ("Running", 2));
}

#[test]
fn a_kubelet_that_starts_anew_shows_no_process_of_the_last_one() {
    let mut stage = Stage::new(&one(&json!({})));
    stage.run_for(1.0);
    stage.memory = RealMemory::default();
    stage.step();
    assert_ne!(stage.state("c"), "Running");
    stage.run_for(1.0);
    assert_eq!((stage.state("c").as_str(), stage.container("c").restart_count), ("Running", 1));
    assert_eq!(stage.container("c").container_id.as_deref(), Some("process://c2"));
}
