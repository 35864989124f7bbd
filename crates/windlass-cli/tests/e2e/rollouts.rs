//! Deployments with `kubectl rollout`.

use crate::kubectl::with_kubectl;

#[test]
fn a_deployment_becomes_ready_rolls_and_rolls_back() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["create", "deployment", "web", "--image=nginx:1", "--replicas=3"]);
        let said = kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=60s"]);
        assert!(said.contains("successfully rolled out"), "{said}");
        let row = kubectl.ok(&["get", "deployment", "web"]);
        assert!(row.contains("3/3     3            3"), "{row}");

        kubectl.ok(&["set", "image", "deployment/web", "nginx=nginx:2"]);
        kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=60s"]);
        let images = || {
            kubectl.ok(&[
                "get",
                "pods",
                "-l",
                "app=web",
                "-o",
                "jsonpath={.items[*].spec.containers[0].image}",
            ])
        };
        kubectl.until(&["get", "pods", "-o", "name"], |names| names.lines().count() == 3);
        assert_eq!(images(), "nginx:2 nginx:2 nginx:2");
        let history = kubectl.ok(&["rollout", "history", "deployment/web"]);
        assert_eq!(history.lines().filter(|line| line.starts_with(['1', '2'])).count(), 2, "{history}");

        kubectl.ok(&["rollout", "undo", "deployment/web"]);
        kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=60s"]);
        kubectl.until(&["get", "pods", "-o", "name"], |names| names.lines().count() == 3);
        assert_eq!(images(), "nginx:1 nginx:1 nginx:1");

        kubectl.ok(&["rollout", "restart", "deployment/web"]);
        kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=60s"]);
    });
}

#[test]
fn a_deployment_scales_and_heals() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["create", "deployment", "web", "--image=nginx"]);
        kubectl.ok(&["scale", "deployment", "web", "--replicas=4"]);
        kubectl.ok(&["rollout", "status", "deployment/web", "--timeout=60s"]);
        let pods = kubectl.ok(&["get", "pods", "-o", "name"]);
        assert_eq!(pods.lines().count(), 4);
        kubectl.ok(&["delete", pods.lines().next().unwrap()]);
        kubectl.until(&["get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}"], |ready| {
            ready == "4"
        });
        kubectl.ok(&["scale", "deployment", "web", "--replicas=0"]);
        kubectl.until(&["get", "pods", "-o", "name"], str::is_empty);
    });
}
