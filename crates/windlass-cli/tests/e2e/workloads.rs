//! Workloads with kubectl's commands: rollouts, waits, scales, and objects that are made from other objects.

use crate::kubectl::{Kubectl, with_kubectl};

/// A set of pods of `kind`, with a template that `kubectl set image` changes.
fn set(kind: &str, rest: &str) -> String {
    format!(
        r#"{{"apiVersion": "apps/v1", "kind": "{kind}", "metadata": {{"name": "db"}}, "spec": {{ {rest}
            "selector": {{"matchLabels": {{"app": "db"}}}},
            "template": {{"metadata": {{"labels": {{"app": "db"}}}}, "spec": {{"containers": [{{"name": "c", "image": "db:1"}}]}}}}}}}}"#
    )
}

fn images(kubectl: &Kubectl) -> String {
    let path = "jsonpath={.items[*].spec.containers[0].image}";
    kubectl.ok(&["get", "pods", "-l", "app=db", "--field-selector=status.phase=Running", "-o", path])
}

/// Rolls a set forward, back and round again, and returns the set's history.
fn roll(kubectl: &Kubectl, set: &str, pods: usize) -> String {
    let all = |image: &str| vec![image; pods].join(" ");
    let ready = || kubectl.ok(&["rollout", "status", set, "--timeout=60s"]);
    ready();
    assert_eq!(images(kubectl), all("db:1"));
    kubectl.ok(&["set", "image", set, "c=db:2"]);
    ready();
    assert_eq!(images(kubectl), all("db:2"));
    assert!(kubectl.ok(&["rollout", "undo", set]).contains("rolled back"));
    ready();
    assert_eq!(images(kubectl), all("db:1"));
    let before = kubectl.ok(&["get", "pods", "-o", "jsonpath={.items[*].metadata.uid}"]);
    assert!(kubectl.ok(&["rollout", "restart", set]).contains("restarted"));
    ready();
    let after = kubectl.ok(&["get", "pods", "-o", "jsonpath={.items[*].metadata.uid}"]);
    assert!(after.split(' ').all(|uid| !before.contains(uid)), "{before}\n{after}");
    kubectl.ok(&["rollout", "history", set])
}

/// The numbers of the revisions.
fn revisions(history: &str) -> Vec<&str> {
    let first = history.lines().filter_map(|line| line.split_whitespace().next());
    first.filter(|word| word.parse::<u32>().is_ok()).collect()
}

#[test]
fn a_stateful_set_rolls_and_rolls_back() {
    with_kubectl(|kubectl| {
        kubectl.apply(&set("StatefulSet", r#""replicas": 2, "serviceName": "db","#));
        let history = roll(kubectl, "statefulset/db", 2);
        assert_eq!(revisions(&history), ["2", "3", "4"], "{history}");
        let shown = kubectl.ok(&["rollout", "history", "statefulset/db", "--revision=2"]);
        assert!(shown.contains("db:2"), "{shown}");
        assert!(kubectl.ok(&["scale", "statefulset/db", "--replicas=3"]).contains("scaled"));
        kubectl.ok(&["wait", "--for=jsonpath={.status.readyReplicas}=3", "statefulset/db", "--timeout=60s"]);
    });
}

#[test]
fn a_daemon_set_rolls_and_rolls_back() {
    with_kubectl(|kubectl| {
        kubectl.apply(&set("DaemonSet", ""));
        let history = roll(kubectl, "daemonset/db", 1);
        assert_eq!(revisions(&history), ["2", "3", "4"], "{history}");
    });
}

#[test]
fn a_paused_deployment_changes_when_it_is_resumed() {
    with_kubectl(|kubectl| {
        kubectl.apply(&set("Deployment", r#""replicas": 2,"#));
        kubectl.ok(&["rollout", "status", "deployment/db", "--timeout=60s"]);
        assert_eq!(kubectl.ok(&["rollout", "pause", "deployment/db"]), "deployment.apps/db paused\n");
        kubectl.ok(&["set", "image", "deployment/db", "c=db:2"]);
        kubectl.ok(&[
            "wait",
            "--for=jsonpath={.status.conditions[?(@.type==\"Progressing\")].reason}=DeploymentPaused",
            "deployment/db",
            "--timeout=60s",
        ]);
        assert_eq!(images(kubectl), "db:1 db:1");
        assert_eq!(kubectl.ok(&["rollout", "resume", "deployment/db"]), "deployment.apps/db resumed\n");
        kubectl.ok(&["rollout", "status", "deployment/db", "--timeout=60s"]);
        kubectl.until(&["get", "pods", "-o", "name"], |names| names.lines().count() == 2);
        assert_eq!(images(kubectl), "db:2 db:2");
        let history = kubectl.ok(&["rollout", "history", "deployment/db"]);
        assert_eq!(revisions(&history), ["1", "2"], "{history}");
    });
}

#[test]
fn wait_sees_conditions_fields_and_ends() {
    with_kubectl(|kubectl| {
        let said = kubectl.fails(&["wait", "--for=condition=Ready", "pod/web", "--timeout=1s"], "");
        assert!(said.contains(r#"pods "web" not found"#), "{said}");
        kubectl.ok(&["run", "web", "--image=nginx"]);
        let said = kubectl.ok(&["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"]);
        assert_eq!(said, "pod/web condition met\n");
        kubectl.ok(&["wait", "--for=jsonpath={.status.phase}=Running", "pod/web", "--timeout=60s"]);
        let said = kubectl.fails(&["wait", "--for=delete", "pod/web", "--timeout=1s"], "");
        assert!(said.contains("timed out waiting for the condition on pods/web"), "{said}");
        kubectl.ok(&["delete", "pod", "web", "--wait=false"]);
        kubectl.ok(&["wait", "--for=delete", "pod/web", "--timeout=60s"]);
        kubectl.ok(&["create", "job", "once", "--image=busybox"]);
        kubectl.ok(&["wait", "--for=condition=Complete", "job/once", "--timeout=60s"]);
        kubectl.ok(&["wait", "--for=create", "serviceaccount/default", "--timeout=60s"]);
    });
}

#[test]
fn a_job_is_made_from_a_cron_job_and_a_service_from_a_deployment() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["create", "cronjob", "nightly", "--image=busybox", "--schedule=0 3 * * *"]);
        kubectl.ok(&["create", "job", "now", "--from=cronjob/nightly"]);
        kubectl.ok(&["wait", "--for=condition=Complete", "job/now", "--timeout=60s"]);
        let owner = kubectl.ok(&["get", "job", "now", "-o", "jsonpath={.metadata.ownerReferences[0].name}"]);
        assert_eq!(owner, "nightly");

        kubectl.ok(&["create", "deployment", "web", "--image=nginx", "--replicas=2", "--port=80"]);
        assert_eq!(
            kubectl.ok(&["expose", "deployment", "web", "--port=8080", "--target-port=80"]),
            "service/web exposed\n"
        );
        let addresses = [
            "get",
            "endpointslices",
            "-l",
            "kubernetes.io/service-name=web",
            "-o",
            "jsonpath={.items[*].endpoints[*].addresses[0]}",
        ];
        kubectl
            .until(&addresses, |found| found.split(' ').filter(|ip| ip.starts_with("10.244.")).count() == 2);
    });
}

#[test]
fn an_autoscaler_scales_by_the_metrics_in_annotations() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["create", "deployment", "web", "--image=nginx"]);
        kubectl.ok(&["set", "resources", "deployment", "web", "--requests=cpu=1"]);
        kubectl.ok(&["annotate", "deployment", "web", "metrics.windlass.dev/cpu=1600m"]);
        kubectl.ok(&["rollout", "status", "deployment", "web", "--timeout=60s"]);
        let output =
            kubectl.run(&["autoscale", "deployment", "web", "--min=1", "--max=3", "--cpu-percent=80"], "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("not enforced"), "{said}");
        kubectl.until(&["get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}"], |ready| {
            ready == "2" || ready == "3"
        });
        let row = kubectl.ok(&["get", "hpa", "web"]);
        assert!(row.contains("Deployment/web") && row.contains("160%/80%"), "{row}");
        kubectl.until(&["get", "events", "--field-selector", "reason=SuccessfulRescale"], |events| {
            events.contains(
                "New size: 2; reason: cpu resource utilization (percentage of request) above target",
            )
        });
    });
}

#[test]
fn what_needs_a_kubelet_or_metrics_says_so() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["run", "web", "--image=nginx"]);
        kubectl.ok(&["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"]);
        for arguments in [&["top", "nodes"], &["top", "pods"]] {
            let said = kubectl.fails(arguments, "");
            assert!(said.contains("Metrics API not available"), "{said}");
        }
        for arguments in [&["exec", "web", "--", "true"][..], &["attach", "web"]] {
            let said = kubectl.fails(arguments, "");
            assert!(said.contains("is simulated, and no program runs in it"), "{arguments:?}: {said}");
        }
    });
}

#[test]
fn a_debugging_container_runs_and_cannot_be_attached_to() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["run", "web", "--image=nginx"]);
        kubectl.ok(&["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"]);
        let output = kubectl.run(&["debug", "web", "--image=busybox", "--container=look", "-it"], "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("couldn't attach to pod/web"), "{said}");
        assert!(said.contains("is simulated, and no program runs in it"), "{said}");
        let running = "jsonpath={.status.ephemeralContainerStatuses[?(@.name==\"look\")].state.running}";
        kubectl.until(&["get", "pod", "web", "-o", running], |state| state.contains("startedAt"));
    });
}
