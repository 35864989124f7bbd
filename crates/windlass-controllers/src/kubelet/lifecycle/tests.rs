use std::time::Duration;

use k8s_openapi::jiff::SignedDuration;
use serde_json::{Value, json};

use super::*;
use crate::kubelet::resolve::{References, add_own_objects};

/// A pod with simulated time.
struct SimulatedPod {
    pod: Pod,
    memory: PodMemory,
    now: Timestamp,
    wake_at: Option<Timestamp>,
    events: Vec<String>,
    messages: Vec<String>,
    removed: bool,
    is_blocked: bool,
    /// The objects of the cluster. `None`: the pod is not strict.
    objects: Option<Objects>,
    /// How often the objects have been read.
    reads: usize,
}

impl SimulatedPod {
    fn new(annotations: &[(&str, &str)], spec: Value) -> Self {
        let annotations: BTreeMap<String, String> = annotations
            .iter()
            .map(|(key, value)| (format!("{}{key}", crate::kubelet::script::PREFIX), (*value).to_owned()))
            .collect();
        let pod = json!({
            "metadata": {"name": "p", "namespace": "default", "uid": "u", "annotations": annotations},
            "spec": spec,
        });
        let now = Timestamp::UNIX_EPOCH;
        Self {
            pod: serde_json::from_value(pod).unwrap(),
            memory: PodMemory::default(),
            now,
            wake_at: Some(now),
            events: Vec::new(),
            messages: Vec::new(),
            removed: false,
            is_blocked: false,
            objects: Some(Objects::default()),
            reads: 0,
        }
    }

    /// Performs a step. The status is serialized and parsed, as on the way through the server.
    fn step(&mut self) {
        let addresses = PodAddresses { host_ip: "10.0.0.2".into(), pod_ip: Some("10.244.0.2".into()) };
        let references = References::required_by(self.pod.spec.as_ref().unwrap());
        let is_strict = self.objects.is_some();
        let sources = if is_strict && !references.is_empty() { Sources::Unread } else { Sources::Unneeded };
        let around = Surroundings { addresses: &addresses, sources, has_probes: is_strict };
        let before = self.memory.clone();
        let mut step = advance(&self.pod, around, &mut self.memory, self.now);
        if step.needs_objects {
            self.reads += 1;
            self.memory = before;
            let mut objects = self.objects.clone().unwrap();
            add_own_objects(self.pod.spec.as_ref().unwrap(), &mut objects);
            let sources = Sources::Read(&objects);
            step = advance(&self.pod, Surroundings { sources, ..around }, &mut self.memory, self.now);
        }
        self.is_blocked = step.is_blocked;
        let mut status = serde_json::to_value(&step.status).unwrap();
        for container in status["containerStatuses"].as_array_mut().into_iter().flatten() {
            // As the server does.
            if container["lastState"].is_null() {
                container["lastState"] = json!({});
            }
        }
        self.pod.status = Some(serde_json::from_value(status).unwrap());
        self.events.extend(step.events.iter().map(|event| event.reason.to_owned()));
        self.messages.extend(step.events.into_iter().map(|event| event.message));
        self.wake_at = step.wake_at;
        self.removed = step.remove;
    }

    /// Runs for `seconds`, and performs every step on time.
    fn run_for(&mut self, seconds: f64) -> &mut Self {
        let end = self.now + SignedDuration::try_from(Duration::from_secs_f64(seconds)).unwrap();
        for _ in 0..1000 {
            match self.wake_at {
                Some(due) if due <= end => {
                    self.now = self.now.max(due);
                    self.step();
                }
                _ => {
                    self.now = end;
                    return self;
                }
            }
        }
        panic!("the pod never rests: {:?}", self.pod.status);
    }

    fn delete(&mut self, grace: i64) -> &mut Self {
        self.pod.metadata.deletion_timestamp = Some(Time(self.now + SignedDuration::from_secs(grace)));
        self.pod.metadata.deletion_grace_period_seconds = Some(grace);
        self.wake_at = Some(self.now);
        self
    }

    fn status(&self) -> &PodStatus {
        self.pod.status.as_ref().unwrap()
    }

    fn phase(&self) -> &str {
        self.status().phase.as_deref().unwrap()
    }

    fn main(&self) -> &ContainerStatus {
        &self.status().container_statuses.as_ref().unwrap()[0]
    }

    fn waits_for(&self) -> Option<&str> {
        self.main().state.as_ref()?.waiting.as_ref()?.reason.as_deref()
    }

    fn condition(&self, kind: &str) -> String {
        let found =
            self.status().conditions.iter().flatten().find(|condition| condition.type_ == kind).unwrap();
        match &found.reason {
            Some(reason) => format!("{} {reason}", found.status),
            None => found.status.clone(),
        }
    }
}

fn one() -> Value {
    json!({"containers": [{"name": "c", "image": "nginx"}]})
}

fn one_with(restart: &str) -> Value {
    json!({"restartPolicy": restart, "containers": [{"name": "c", "image": "nginx"}]})
}

#[test]
fn a_pod_is_pending_first_then_runs_with_an_address() {
    let mut world = SimulatedPod::new(&[], one());
    world.step();
    assert_eq!((world.phase(), world.waits_for()), ("Pending", Some("ContainerCreating")));
    assert_eq!(world.condition("Ready"), "False ContainersNotReady");
    assert_eq!(world.status().host_ip.as_deref(), Some("10.0.0.2"));
    assert_eq!(world.status().pod_ip, None);
    world.run_for(0.0);
    assert_eq!(world.phase(), "Running");
    assert_eq!(world.status().pod_ip.as_deref(), Some("10.244.0.2"));
    assert_eq!((world.main().ready, world.main().restart_count), (true, 0));
    for condition in ["PodScheduled", "Initialized", "Ready", "ContainersReady", "PodReadyToStartContainers"]
    {
        assert_eq!(world.condition(condition), "True", "{condition}");
    }
    assert_eq!(world.events, ["Simulated", "Created", "Started"]);
    assert_eq!(world.wake_at, None, "nothing more to do");
}

#[test]
fn a_container_whose_command_is_read_counts_as_pulled() {
    let sleeps = json!({"containers": [{"name": "c", "image": "busybox", "command": ["sleep", "30"]}]});
    let mut world = SimulatedPod::new(&[], sleeps);
    world.run_for(0.0);
    assert_eq!(world.events, ["Pulled", "Created", "Started"]);
}

#[test]
fn it_starts_and_becomes_ready_when_its_script_says() {
    let mut world = SimulatedPod::new(&[("start-after", "2s"), ("ready-after", "500ms")], one());
    assert_eq!(world.run_for(1.9).phase(), "Pending");
    assert_eq!(world.run_for(0.2).phase(), "Running");
    assert!(!world.main().ready);
    assert!(world.run_for(0.5).main().ready);
    assert_eq!(world.condition("Ready"), "True");
}

#[test]
fn an_annotation_makes_a_pod_that_runs_unready_for_a_while() {
    let mut world = SimulatedPod::new(&[], one());
    assert!(world.run_for(1.0).main().ready);
    let key = format!("{}ready", crate::kubelet::script::PREFIX);
    world.pod.annotations_mut().insert(key.clone(), "false".to_owned());
    world.step();
    assert_eq!((world.main().ready, world.condition("Ready").as_str()), (false, "False ContainersNotReady"));
    world.step();
    assert_eq!(world.events[3..], ["Unhealthy"], "the failure is reported once");
    world.pod.annotations_mut().remove(&key);
    world.step();
    assert!(world.main().ready);
}

#[test]
fn a_job_like_pod_succeeds_or_fails_by_its_exit_code() {
    let mut good = SimulatedPod::new(&[("run-for", "200ms")], one_with("Never"));
    assert_eq!(good.run_for(1.0).phase(), "Succeeded");
    assert_eq!(good.condition("Ready"), "False PodCompleted");
    let mut bad = SimulatedPod::new(
        &[("run-for", "200ms"), ("exit-code", "3"), ("message", "no luck")],
        one_with("Never"),
    );
    assert_eq!(bad.run_for(1.0).phase(), "Failed");
    let end = bad.main().state.clone().unwrap().terminated.unwrap();
    assert_eq!(
        (end.exit_code, end.reason.as_deref(), end.message.as_deref()),
        (3, Some("Error"), Some("no luck"))
    );
}

#[test]
fn a_pod_that_does_not_restart_succeeds_after_a_second_unless_it_is_told_to_go_on() {
    let mut task = SimulatedPod::new(&[], one_with("Never"));
    assert_eq!(task.run_for(0.9).phase(), "Running");
    assert_eq!(task.run_for(0.2).phase(), "Succeeded");
    let mut endless = SimulatedPod::new(&[("run-for", "forever")], one_with("OnFailure"));
    assert_eq!(endless.run_for(60.0).phase(), "Running");
}

/// A pod whose container has a command.
fn running(restart_policy: &str, command: &[&str]) -> Value {
    json!({"restartPolicy": restart_policy, "containers": [{"name": "main", "image": "busybox", "command": command}]})
}

#[test]
fn a_plain_command_does_what_it_says_unless_an_annotation_says_otherwise() {
    let mut task = SimulatedPod::new(&[], running("Never", &["sleep", "30"]));
    assert_eq!(task.run_for(29.0).phase(), "Running");
    assert_eq!(task.run_for(2.0).phase(), "Succeeded");
    let failing = ["sh", "-c", "echo no; exit 42"];
    let mut failed = SimulatedPod::new(&[], running("Never", &failing));
    assert_eq!(failed.run_for(0.0).phase(), "Failed");
    assert_eq!(exit_code(failed.main()), Some(42));
    let mut told = SimulatedPod::new(&[("exit-code", "0"), ("run-for", "2s")], running("Never", &failing));
    assert_eq!(told.run_for(1.0).phase(), "Running");
    assert_eq!(told.run_for(2.0).phase(), "Succeeded");
    let mut looping = SimulatedPod::new(&[], running("Always", &["false"]));
    looping.run_for(1.0);
    assert_eq!(looping.waits_for(), Some("CrashLoopBackOff"));
    let mut unknown = SimulatedPod::new(&[], running("Never", &["perl", "-e", "sleep 30"]));
    assert_eq!(unknown.run_for(1.1).phase(), "Succeeded");
}

#[test]
fn on_failure_restarts_what_failed_and_rests_with_what_succeeded() {
    let mut world = SimulatedPod::new(&[("run-for", "1s")], one_with("OnFailure"));
    assert_eq!(world.run_for(5.0).phase(), "Succeeded");
    let mut world = SimulatedPod::new(&[("run-for", "1s"), ("exit-code", "1")], one_with("OnFailure"));
    assert_eq!(world.run_for(3.0).phase(), "Running");
    assert_eq!(world.main().restart_count, 1);
}

#[test]
fn a_crash_loop_backs_off_ten_seconds_then_twenty() {
    let mut world = SimulatedPod::new(&[("run-for", "1s"), ("exit-code", "1")], one());
    world.run_for(2.5);
    assert_eq!((world.main().restart_count, world.waits_for()), (1, Some("CrashLoopBackOff")));
    world.run_for(9.0);
    assert_eq!(world.main().restart_count, 1);
    world.run_for(2.0);
    assert_eq!(world.main().restart_count, 2);
    world.run_for(15.0);
    assert_eq!((world.main().restart_count, world.waits_for()), (2, Some("CrashLoopBackOff")));
    assert!(world.main().last_state.as_ref().unwrap().terminated.is_some());
    assert!(world.events.contains(&"BackOff".to_owned()));
    let message = world.main().state.clone().unwrap().waiting.unwrap().message.unwrap();
    assert_eq!(message, "back-off 20s restarting failed container=c pod=p_default(u)");
}

#[test]
fn a_container_that_ends_at_once_never_spins() {
    let mut world = SimulatedPod::new(&[("run-for", "0s")], one());
    world.run_for(5.0);
    assert_eq!(world.waits_for(), Some("CrashLoopBackOff"));
}

#[test]
fn an_image_that_never_arrives_is_pulled_again_with_back_off() {
    let mut world = SimulatedPod::new(&[("image-pull", "fail")], one());
    world.run_for(1.0);
    assert_eq!((world.phase(), world.waits_for()), ("Pending", Some("ErrImagePull")));
    assert_eq!(world.events, ["Pulling", "Failed", "Failed"]);
    world.run_for(2.0);
    assert_eq!(world.waits_for(), Some("ImagePullBackOff"));
    assert_eq!(world.events[3..], ["BackOff", "Failed"]);
    assert_eq!(world.messages[0], "Pulling image \"nginx\"");
    assert!(world.messages[1].starts_with("Failed to pull image \"nginx\": "), "{}", world.messages[1]);
    assert_eq!(
        world.messages[2..],
        ["Error: ErrImagePull", "Back-off pulling image \"nginx\"", "Error: ImagePullBackOff"]
    );
    let pulls = |world: &SimulatedPod| world.events.iter().filter(|reason| *reason == "Pulling").count();
    // The pulls come after 10 s and 20 s more.
    assert_eq!(pulls(world.run_for(6.9)), 1);
    assert_eq!(pulls(world.run_for(0.2)), 2);
    assert_eq!(pulls(world.run_for(19.8)), 2);
    assert_eq!(pulls(world.run_for(0.2)), 3);
    world.pod.metadata.annotations = None;
    assert_eq!(world.run_for(41.0).phase(), "Running");
}

/// A pod with a volume and a variable of this kind.
fn referring(volume: Value, source: Value) -> Value {
    let mut volume = volume;
    volume["name"] = json!("files");
    json!({
        "volumes": [volume],
        "containers": [{"name": "c", "image": "nginx", "env": [{"name": "X", "valueFrom": source}]}],
    })
}

fn secret(data: Value) -> k8s_openapi::api::core::v1::Secret {
    serde_json::from_value(json!({"data": data})).unwrap()
}

#[test]
fn a_missing_object_keeps_a_pod_waiting_until_the_object_exists() {
    let spec = referring(
        json!({"secret": {"secretName": "files"}}),
        json!({"secretKeyRef": {"name": "keys", "key": "k"}}),
    );
    let mut world = SimulatedPod::new(&[], spec);
    world.run_for(1.0);
    assert_eq!(
        (world.phase(), world.waits_for(), world.is_blocked),
        ("Pending", Some("ContainerCreating"), true)
    );
    assert_eq!(world.events, ["FailedMount"]);
    assert_eq!(
        world.messages,
        ["MountVolume.SetUp failed for volume \"files\" : secret \"files\" not found"]
    );
    assert_eq!((world.status().pod_ip.as_deref(), world.wake_at), (None, None));
    assert_eq!(world.condition("PodReadyToStartContainers"), "False");
    // Nothing is said twice.
    world.step();
    assert_eq!(world.events.len(), 1);

    world.objects.as_mut().unwrap().secrets.insert("files".into(), secret(json!({})));
    world.step();
    assert_eq!((world.phase(), world.waits_for()), ("Pending", Some("CreateContainerConfigError")));
    assert_eq!(world.events[1..], ["Simulated", "Failed"]);
    assert_eq!(world.messages[2], "Error: secret \"keys\" not found");
    let message = |world: &SimulatedPod| {
        world.main().state.clone().unwrap().waiting.unwrap().message.unwrap_or_default()
    };
    assert_eq!(message(&world), "secret \"keys\" not found");

    world.objects.as_mut().unwrap().secrets.insert("keys".into(), secret(json!({})));
    world.step();
    assert_eq!(message(&world), "couldn't find key k in Secret default/keys");
    world.objects.as_mut().unwrap().secrets.insert("keys".into(), secret(json!({"k": "dg=="})));
    world.step();
    assert_eq!((world.phase(), world.main().ready, world.is_blocked), ("Running", true, false));
    // A pod that runs needs no object.
    let reads = world.reads;
    world.objects.as_mut().unwrap().secrets.clear();
    world.step();
    assert_eq!((world.phase(), world.reads), ("Running", reads));
}

#[test]
fn a_container_that_restarts_needs_the_objects_again() {
    let spec = referring(json!({"emptyDir": {}}), json!({"secretKeyRef": {"name": "keys", "key": "k"}}));
    let mut world = SimulatedPod::new(&[("run-for", "5s")], spec);
    world.objects.as_mut().unwrap().secrets.insert("keys".into(), secret(json!({"k": "dg=="})));
    assert_eq!(world.run_for(1.0).phase(), "Running");
    world.objects.as_mut().unwrap().secrets.clear();
    world.run_for(5.0);
    assert_eq!((world.waits_for(), world.main().restart_count), (Some("CreateContainerConfigError"), 0));
    world.objects.as_mut().unwrap().secrets.insert("keys".into(), secret(json!({"k": "dg=="})));
    world.step();
    assert_eq!((world.waits_for(), world.main().restart_count), (None, 1));
}

#[test]
fn a_pod_runs_without_objects_that_are_optional_or_its_own() {
    let mut spec = referring(
        json!({"configMap": {"name": "none", "optional": true}}),
        json!({"configMapKeyRef": {"name": "none", "key": "k", "optional": true}}),
    );
    spec["volumes"].as_array_mut().unwrap().push(json!({"name": "token", "projected": {"sources": [
        {"serviceAccountToken": {"path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]}}));
    let mut world = SimulatedPod::new(&[], spec.clone());
    world.run_for(0.0);
    assert_eq!((world.phase(), world.reads), ("Running", 0));
    let needs = referring(
        json!({"secret": {"secretName": "none"}}),
        json!({"secretKeyRef": {"name": "none", "key": "k"}}),
    );
    let mut kind = SimulatedPod::new(&[], needs);
    kind.objects = None;
    kind.run_for(0.0);
    assert_eq!((kind.phase(), kind.reads), ("Running", 0));
}

#[test]
fn a_missing_secret_of_a_registry_is_a_warning() {
    let spec = json!({
        "imagePullSecrets": [{"name": "pull"}],
        "containers": [{"name": "c", "image": "nginx"}],
    });
    let mut world = SimulatedPod::new(&[], spec);
    assert_eq!(world.run_for(0.0).phase(), "Running");
    assert_eq!(world.events[0], "FailedToRetrieveImagePullSecret");
    assert!(world.messages[0].contains("(pull)"), "{}", world.messages[0]);
}

#[test]
fn a_pod_that_waits_for_objects_can_be_deleted_and_can_pass_its_deadline() {
    let mut spec = referring(
        json!({"secret": {"secretName": "none"}}),
        json!({"fieldRef": {"fieldPath": "metadata.name"}}),
    );
    let mut deleted = SimulatedPod::new(&[], spec.clone());
    deleted.run_for(1.0).delete(30).run_for(0.0);
    assert!(deleted.removed);
    spec["activeDeadlineSeconds"] = json!(5);
    let mut late = SimulatedPod::new(&[], spec);
    assert_eq!(late.run_for(4.0).phase(), "Pending");
    assert_eq!(late.run_for(2.0).phase(), "Failed");
}

#[test]
fn probes_delay_the_start_and_the_readiness() {
    let probed = |probes: Value| {
        let mut container = json!({"name": "c", "image": "nginx"});
        for (name, probe) in probes.as_object().unwrap() {
            container[name] = probe.clone();
        }
        json!({"containers": [container]})
    };
    let readiness = json!({"initialDelaySeconds": 5, "periodSeconds": 2, "successThreshold": 3});
    let mut world = SimulatedPod::new(&[], probed(json!({"readinessProbe": readiness})));
    world.run_for(8.9);
    assert_eq!((world.phase(), world.main().ready), ("Running", false));
    assert_eq!(world.main().started, Some(true));
    assert!(world.run_for(0.2).main().ready);

    let both =
        json!({"startupProbe": {"initialDelaySeconds": 10}, "readinessProbe": {"initialDelaySeconds": 3}});
    let mut slow = SimulatedPod::new(&[], probed(both.clone()));
    slow.run_for(9.9);
    assert_eq!((slow.main().started, slow.main().ready), (Some(false), false));
    slow.run_for(0.2);
    assert_eq!((slow.main().started, slow.main().ready), (Some(true), true));

    let mut told = SimulatedPod::new(&[("ready-after", "1s")], probed(both.clone()));
    assert!(told.run_for(1.1).main().ready);
    let mut kind = SimulatedPod::new(&[], probed(both));
    kind.objects = None;
    assert!(kind.run_for(0.0).main().ready);
}

#[test]
fn init_containers_go_first_and_in_order() {
    let spec = json!({
        "initContainers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}],
        "containers": [{"name": "c", "image": "nginx"}],
    });
    let mut world = SimulatedPod::new(&[("run-for.a", "1s"), ("run-for.b", "1s")], spec);
    world.run_for(0.5);
    assert_eq!((world.phase(), world.waits_for()), ("Pending", Some("PodInitializing")));
    assert_eq!(world.condition("Initialized"), "False ContainersNotInitialized");
    let ready = |world: &SimulatedPod| -> Vec<bool> {
        world.status().init_container_statuses.iter().flatten().map(|status| status.ready).collect()
    };
    assert_eq!(ready(&world), [false, false]);
    world.run_for(1.0);
    assert_eq!(ready(&world), [true, false]);
    assert_eq!(world.run_for(1.0).phase(), "Running");
    assert_eq!(world.condition("Initialized"), "True");
}

#[test]
fn a_failing_init_container_fails_a_pod_that_never_restarts() {
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "a", "image": "i"}],
        "containers": [{"name": "c", "image": "nginx"}],
    });
    let mut world = SimulatedPod::new(&[("exit-code.a", "1")], spec);
    assert_eq!(world.run_for(1.0).phase(), "Failed");
}

#[test]
fn a_sidecar_ends_with_the_containers_that_it_helps() {
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "helper", "image": "i", "restartPolicy": "Always"}],
        "containers": [{"name": "main", "image": "i", "command": ["sleep", "2"]}],
    });
    let mut world = SimulatedPod::new(&[], spec);
    assert_eq!(world.run_for(1.0).phase(), "Running");
    assert_eq!(world.run_for(1.5).phase(), "Succeeded");
    let status = world.pod.status.as_ref().unwrap();
    let helper = &status.init_container_statuses.as_ref().unwrap()[0];
    assert_eq!((exit_code(helper), helper.ready), (Some(0), false));
}

#[test]
fn a_sidecar_starts_before_the_others_and_keeps_running() {
    let spec = json!({
        "initContainers": [{"name": "proxy", "image": "i", "restartPolicy": "Always"}],
        "containers": [{"name": "c", "image": "nginx"}],
    });
    let mut world = SimulatedPod::new(&[], spec);
    assert_eq!(world.run_for(1.0).phase(), "Running");
    let proxy = &world.status().init_container_statuses.as_ref().unwrap()[0];
    assert!(proxy.state.as_ref().unwrap().running.is_some());
}

#[test]
fn a_pod_keeps_running_while_a_sidecar_restarts() {
    let spec = json!({
        "initContainers": [{"name": "proxy", "image": "i", "restartPolicy": "Always", "command": ["sleep", "5"]}],
        "containers": [{"name": "c", "image": "nginx"}],
    });
    let mut world = SimulatedPod::new(&[], spec);
    assert_eq!(world.run_for(4.0).condition("Ready"), "True");
    // The first restart is immediate, the second waits.
    world.run_for(8.0);
    let proxy = &world.status().init_container_statuses.as_ref().unwrap()[0];
    assert!(proxy.state.as_ref().unwrap().waiting.is_some(), "{proxy:?}");
    assert_eq!(world.phase(), "Running");
    assert_eq!(world.condition("Initialized"), "True");
    assert_eq!(world.condition("Ready"), "False ContainersNotReady");
    assert_eq!(world.run_for(10.0).condition("Ready"), "True");
}

#[test]
fn a_container_has_a_restart_policy_of_its_own() {
    let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
    for (container, restarts, phase) in [
        (json!({"restartPolicy": "Never", "command": ["sh", "-c", "exit 1"]}), 0, "Failed"),
        (json!({"restartPolicy": "OnFailure", "command": ["sh", "-c", "exit 0"]}), 0, "Succeeded"),
        (json!({"restartPolicy": "Never"}), 0, "Succeeded"),
        (
            json!({"restartPolicy": "Never", "restartPolicyRules": rules, "command": ["sh", "-c", "exit 42"]}),
            1,
            "Running",
        ),
    ] {
        let mut all = json!({"name": "c", "image": "busybox"});
        all.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
        let mut world = SimulatedPod::new(&[], json!({"containers": [all]}));
        world.run_for(5.0);
        assert_eq!((world.main().restart_count, world.phase()), (restarts, phase), "{container}");
    }
}

#[test]
fn a_deleted_pod_stops_its_containers_and_may_go() {
    let mut world = SimulatedPod::new(&[], one());
    world.run_for(1.0).delete(30).run_for(0.0);
    assert!(world.removed);
    assert!(world.main().state.as_ref().unwrap().terminated.is_some());
    assert_eq!(world.events.last().unwrap(), "Killing");
}

#[test]
fn stopping_takes_its_time_but_not_longer_than_the_grace_period() {
    let mut slow = SimulatedPod::new(&[("stop-after", "2s")], one());
    slow.run_for(1.0).delete(30).run_for(1.9);
    assert!(!slow.removed);
    slow.run_for(0.2);
    assert!(slow.removed);
    assert_eq!(exit_code(slow.main()), Some(0));
    let mut stubborn = SimulatedPod::new(&[("stop-after", "1h")], one());
    stubborn.run_for(1.0).delete(3).run_for(2.9);
    assert!(!stubborn.removed);
    stubborn.run_for(0.2);
    assert!(stubborn.removed);
    assert_eq!((exit_code(stubborn.main()), stubborn.phase()), (Some(137), "Failed"));
}

#[test]
fn a_pod_deleted_before_it_started_may_go_at_once() {
    let mut world = SimulatedPod::new(&[("start-after", "1h")], one());
    world.run_for(1.0).delete(30).run_for(0.0);
    assert!(world.removed);
}

#[test]
fn an_active_deadline_fails_the_pod() {
    let spec = json!({"activeDeadlineSeconds": 5, "containers": [{"name": "c", "image": "nginx"}]});
    let mut world = SimulatedPod::new(&[], spec);
    assert_eq!(world.run_for(4.0).phase(), "Running");
    assert_eq!(world.run_for(2.0).phase(), "Failed");
    assert_eq!(world.status().reason.as_deref(), Some("DeadlineExceeded"));
}

#[test]
fn a_readiness_gate_holds_ready_until_somebody_opens_it() {
    let spec = json!({"readinessGates": [{"conditionType": "example.com/open"}], "containers": [{"name": "c", "image": "nginx"}]});
    let mut world = SimulatedPod::new(&[], spec);
    world.run_for(1.0);
    assert_eq!(world.condition("Ready"), "False ReadinessGatesNotReady");
    let open =
        PodCondition { type_: "example.com/open".into(), status: "True".into(), ..PodCondition::default() };
    world.pod.status.as_mut().unwrap().conditions.as_mut().unwrap().push(open);
    world.step();
    assert_eq!(world.condition("Ready"), "True");
    assert_eq!(world.condition("example.com/open"), "True");
}
