//! Objects of the everyday kinds, created and applied.

use crate::kubectl::{Kubectl, missing, on_path, with_kubectl};
use crate::process::Windlass;

#[test]
fn create_makes_the_everyday_kinds() {
    with_kubectl(|kubectl| {
        for arguments in [
            &["create", "namespace", "team"][..],
            &["create", "configmap", "c", "--from-literal=a=1"],
            &["create", "secret", "generic", "s", "--from-literal=password=x"],
            &["create", "serviceaccount", "robot"],
            &["create", "service", "clusterip", "web", "--tcp=80:8080"],
            &["create", "deployment", "web", "--image=nginx", "--replicas=2"],
            &["create", "role", "reader", "--verb=get", "--resource=pods"],
            &["create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:robot"],
            &["create", "clusterrole", "reader", "--verb=list", "--resource=pods"],
            &["create", "quota", "q", "--hard=pods=3"],
            &["run", "one", "--image=nginx"],
        ] {
            kubectl.ok(arguments);
        }
        assert_eq!(kubectl.ok(&["get", "secret", "s", "-o", "jsonpath={.data.password}"]), "eA==");
        assert!(!kubectl.ok(&["get", "service", "web", "-o", "jsonpath={.spec.clusterIP}"]).is_empty());
        assert_eq!(kubectl.ok(&["get", "pod", "one", "-o", "jsonpath={.spec.restartPolicy}"]), "Always");
        let complaint = kubectl.fails(&["create", "configmap", "c"], "");
        assert!(complaint.contains(r#"configmaps "c" already exists"#), "{complaint}");
    });
}

#[test]
fn apply_takes_a_file_of_many_kinds() {
    with_kubectl(|kubectl| {
        let manifest = include_str!("fixtures/app.yaml");
        let first = kubectl.apply(manifest);
        assert_eq!(first.matches(" created").count(), 6, "{first}");
        let second = kubectl.apply(manifest);
        // A Secret's stringData is never there to be compared with: the real server is told every time, too.
        assert_eq!(second.matches(" unchanged").count(), 5, "{second}");
        assert!(second.contains("secret/web configured"), "{second}");
        kubectl.ok(&["rollout", "status", "deployment/web", "-n", "shop", "--timeout=60s"]);
        let secret = kubectl.ok(&["get", "secret", "-n", "shop", "web", "-o", "jsonpath={.data.token}"]);
        assert_eq!(secret, "aHVzaA==", "stringData is data");
        // Objects in the namespace may already be gone with the namespace.
        kubectl.ok_with(&["delete", "-f", "-", "--ignore-not-found", "--timeout=60s"], manifest);
        kubectl.fails(&["get", "namespace", "shop"], "");
    });
}

#[test]
fn a_namespace_ends_with_all_that_is_in_it() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["create", "namespace", "team"]);
        kubectl.until(&["get", "serviceaccount", "default", "-n", "team", "-o", "name"], |name| {
            !name.is_empty()
        });
        kubectl.until(&["get", "configmap", "kube-root-ca.crt", "-n", "team", "-o", "name"], |name| {
            !name.is_empty()
        });
        kubectl.ok(&["create", "deployment", "web", "--image=nginx", "-n", "team"]);
        kubectl.ok(&["create", "configmap", "c", "-n", "team"]);
        kubectl.ok(&["delete", "namespace", "team", "--timeout=60s"]);
        kubectl.fails(&["get", "namespace", "team"], "");
        assert_eq!(kubectl.ok(&["get", "pods,configmaps,deployments", "-n", "team", "-o", "name"]), "");
    });
}

#[test]
fn pods_do_what_their_annotations_say() {
    with_kubectl(|kubectl| {
        let run = |name: &str, notes: &[&str]| {
            let notes: Vec<String> =
                notes.iter().map(|note| format!("--annotations=kubelet.windlass.dev/{note}")).collect();
            let mut arguments = vec!["run", name, "--image=busybox", "--restart=Never"];
            arguments.extend(notes.iter().map(String::as_str));
            kubectl.ok(&arguments);
        };
        run("good", &["run-for=200ms"]);
        run("bad", &["run-for=200ms", "exit-code=3"]);
        run("absent", &["image-pull=fail"]);
        kubectl.ok(&["wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/good", "--timeout=30s"]);
        kubectl.ok(&["wait", "--for=jsonpath={.status.phase}=Failed", "pod/bad", "--timeout=30s"]);
        let code = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}";
        assert_eq!(kubectl.ok(&["get", "pod", "bad", "-o", code]), "3");
        kubectl.until(&["get", "pods"], |pods| {
            pods.contains("ImagePullBackOff") && pods.contains("Completed") && pods.contains("Error")
        });
    });
}

const NEEDY: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"needy"},"spec":{"containers":[
    {"name":"c","image":"nginx","envFrom":[{"secretRef":{"name":"keys"}}]}]}}"#;

#[test]
fn a_pod_waits_for_its_secret_and_crashes_when_an_annotation_says_so() {
    with_kubectl(|kubectl| {
        kubectl.apply(NEEDY);
        kubectl.until(&["get", "pods"], |pods| pods.contains("CreateContainerConfigError"));
        kubectl
            .until(&["describe", "pod", "needy"], |text| text.contains(r#"Error: secret "keys" not found"#));
        kubectl.ok(&["create", "secret", "generic", "keys", "--from-literal=a=1"]);
        kubectl.ok(&["wait", "--for=condition=Ready", "pod/needy", "--timeout=30s"]);
        kubectl.ok(&[
            "annotate",
            "pod",
            "needy",
            "kubelet.windlass.dev/run-for=0s",
            "kubelet.windlass.dev/exit-code=1",
        ]);
        kubectl.until(&["get", "pods"], |pods| pods.contains("CrashLoopBackOff"));
    });
}

#[test]
fn a_cluster_that_is_not_strict_runs_every_pod() {
    let Some(program) = on_path() else { return missing() };
    let kubectl = Kubectl::new(program, Windlass::cluster(&["--strict=false"]));
    kubectl.apply(NEEDY);
    kubectl.ok(&["wait", "--for=condition=Ready", "pod/needy", "--timeout=30s"]);
}

#[test]
fn a_pod_that_fits_nowhere_says_why() {
    with_kubectl(|kubectl| {
        let picky = r#"{"spec":{"nodeSelector":{"disk":"ssd"}}}"#;
        kubectl.ok(&["run", "picky", "--image=nginx", &format!("--overrides={picky}")]);
        let message = "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}";
        let said = kubectl.until(&["get", "pod", "picky", "-o", message], |said| !said.is_empty());
        assert!(
            said.starts_with("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector"),
            "{said}"
        );
        kubectl.ok(&["label", "node", "windlass", "disk=ssd"]);
        kubectl.ok(&["wait", "--for=condition=Ready", "pod/picky", "--timeout=30s"]);
    });
}
