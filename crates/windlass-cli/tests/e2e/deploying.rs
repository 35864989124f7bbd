//! `windlass deploy` and `windlass undeploy`.

use serde_json::Value;

use crate::kubectl::{Kubectl, with_kubectl};
use crate::operator::{Project, one_version, two_versions};

const DEPLOYMENT: &str = "deployment/demo-controller-manager";

struct Demo<'a> {
    project: Project,
    kubectl: &'a Kubectl,
}

impl<'a> Demo<'a> {
    fn new(kubectl: &'a Kubectl) -> Self {
        Self::of(Project::new(&one_version(), "false"), kubectl)
    }

    fn of(project: Project, kubectl: &'a Kubectl) -> Self {
        let demo = Self { project, kubectl };
        demo.project.ok(&["manifests"]);
        demo
    }

    fn type_(&self, words: &[&str]) -> String {
        let kubeconfig = self.kubectl.kubeconfig();
        self.project.ok(&[words, &["--kubeconfig", &kubeconfig]].concat())
    }

    fn refused(&self, words: &[&str]) -> String {
        let kubeconfig = self.kubectl.kubeconfig();
        let output =
            self.project.command(&[words, &["--kubeconfig", &kubeconfig]].concat()).output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }

    fn deployment(&self, path: &str) -> String {
        self.kubectl.ok(&["get", DEPLOYMENT, "-n", "demo-system", "-o", &format!("jsonpath={path}")])
    }

    /// Writes an overlay of config/default with a namespace, a prefix of names and a container before the operator's. Returns the folder.
    fn overlay(&self, name: &str) -> String {
        let folder = self.project.path("demo/overlays").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let proxy = r#"[{"op": "add", "path": "/spec/template/spec/containers/0", "value": {"name": "proxy", "image": "proxy:1"}}]"#;
        let text = format!(
            "resources: [../../config/default]\nnamespace: {name}\nnamePrefix: {name}-\n\
             patches: [{{ target: {{ kind: Deployment }}, patch: '{proxy}' }}]\n"
        );
        std::fs::write(folder.join("kustomization.yaml"), text).unwrap();
        format!("overlays/{name}")
    }

    /// Returns the names of the Deployments and of the ClusterRoles of the project.
    fn deployed(&self) -> String {
        self.kubectl.ok(&[
            "get",
            "deployments,clusterroles",
            "-A",
            "-o",
            "name",
            "-l",
            "windlass.dev/project=demo",
        ])
    }

    /// Returns the texts of all files below config/.
    fn config(&self) -> Vec<(std::path::PathBuf, String)> {
        fn collect(folder: &std::path::Path, texts: &mut Vec<(std::path::PathBuf, String)>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    collect(&path, texts);
                } else {
                    texts.push((path.clone(), std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
        let mut texts = Vec::new();
        collect(&self.project.path("demo/config"), &mut texts);
        texts.sort();
        texts
    }
}

#[test]
fn a_deployment_is_applied_repeated_and_removed_without_a_write_to_config() {
    with_kubectl(|kubectl| {
        let demo = Demo::new(kubectl);
        let before = demo.config();
        let first =
            demo.type_(&["deploy", "--image", "registry.invalid/demo:v1", "--set", "manager.replicas=2"]);
        assert!(first.contains("created: namespace/demo-system"), "{first}");
        assert!(first.contains("deployment.apps/demo-controller-manager is ready after"), "{first}");
        assert_eq!(
            demo.deployment("{.spec.template.spec.containers[0].image} {.spec.replicas}"),
            "registry.invalid/demo:v1 2"
        );
        assert_eq!(demo.deployment("{.metadata.labels.windlass\\.dev/project}"), "demo");
        let again =
            demo.type_(&["deploy", "--image", "registry.invalid/demo:v1", "--set", "manager.replicas=2"]);
        assert!(again.contains("0 objects changed"), "{again}");
        demo.type_(&["install"]);
        assert_eq!(demo.config(), before);

        let gone = demo.type_(&["undeploy"]);
        assert!(
            gone.contains("deleted namespace/demo-system") && gone.contains("deleted bars.foo.abc.com"),
            "{gone}"
        );
        let left = kubectl.ok(&["get", "clusterroles,clusterrolebindings,crds", "-o", "name"]);
        assert!(!left.contains("demo") && !left.contains("bars"), "{left}");
        assert!(!demo.type_(&["undeploy"]).contains("deleted"));
        assert_eq!(demo.config(), before);
    });
}

#[test]
fn an_object_that_the_project_does_not_have_any_more_is_pruned() {
    with_kubectl(|kubectl| {
        let demo = Demo::new(kubectl);
        demo.type_(&["deploy", "--no-wait"]);
        let roles = || kubectl.ok(&["get", "clusterroles", "-o", "name"]);
        assert!(roles().contains("demo-bar-viewer-role"));
        demo.project.declare(&[]);
        let would = demo.type_(&["deploy", "--no-wait", "--dry-run"]);
        let line = "pruned: clusterrole.rbac.authorization.k8s.io/demo-bar-viewer-role";
        assert!(
            would.contains(&format!("would be {line}")) && roles().contains("demo-bar-viewer-role"),
            "{would}"
        );
        let said = demo.type_(&["deploy", "--no-wait"]);
        assert!(said.contains(line) && !roles().contains("demo-bar-viewer-role"), "{said}");
        assert!(
            kubectl.ok(&["get", "crd", "-o", "name"]).contains("bars.foo.abc.com"),
            "CRDs are never pruned"
        );
    });
}

#[test]
fn a_diff_and_a_dry_run_change_nothing() {
    with_kubectl(|kubectl| {
        let demo = Demo::new(kubectl);
        let said = demo.type_(&["deploy", "--dry-run"]);
        assert!(said.contains("would be created: deployment.apps/demo-controller-manager"), "{said}");
        let namespaces = kubectl.ok(&["get", "namespaces,crds", "-o", "name"]);
        assert!(!namespaces.contains("demo") && !namespaces.contains("bars"), "{namespaces}");
        demo.type_(&["deploy", "--image", "a:1"]);
        let diff = demo.type_(&["deploy", "--image", "a:2", "--diff"]);
        assert!(
            diff.contains("\n-      - args") || diff.contains("-        image: a:1\n+        image: a:2\n"),
            "{diff}"
        );
        assert_eq!(demo.deployment("{.spec.template.spec.containers[0].image}"), "a:1");
    });
}

#[test]
fn custom_resources_go_first_and_a_namespace_of_others_stays() {
    with_kubectl(|kubectl| {
        let demo = Demo::new(kubectl);
        demo.type_(&["deploy", "--namespace", "default", "--image", "a:1"]);
        assert_eq!(
            kubectl.ok(&[
                "get",
                "namespace",
                "default",
                "-o",
                "jsonpath={.metadata.labels.windlass\\.dev/project}"
            ]),
            ""
        );
        kubectl.apply("apiVersion: foo.abc.com/v2\nkind: Bar\nmetadata: { name: a, finalizers: [abc.com/volumes] }\nspec: { width: 1 }\n");
        let said = demo.refused(&["undeploy", "--namespace", "default"]);
        assert!(said.contains("1 objects of the project's kinds") && said.contains("--yes"), "{said}");
        let kubeconfig = kubectl.kubeconfig();
        let mut undeploy =
            demo.project.start(&["undeploy", "--yes", "--namespace", "default", "--kubeconfig", &kubeconfig]);
        undeploy.until("bars.foo.abc.com waits for objects: default/a (finalizers abc.com/volumes)");
        let operator = kubectl.ok(&["get", DEPLOYMENT, "-o", "json"]);
        let operator: Value = serde_json::from_str(&operator).unwrap();
        assert_eq!(
            operator["metadata"]["deletionTimestamp"],
            Value::Null,
            "the operator runs until its objects are gone"
        );
        kubectl.ok(&["patch", "bars", "a", "--type", "merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
        undeploy.until("deleted bars.foo.abc.com");
        assert!(undeploy.end().success());
        assert!(kubectl.ok(&["get", "namespaces", "-o", "name"]).contains("namespace/default"));
    });
}

#[test]
fn definitions_and_their_objects_may_be_kept() {
    with_kubectl(|kubectl| {
        let demo = Demo::new(kubectl);
        demo.type_(&["deploy", "--no-wait"]);
        kubectl.apply("apiVersion: foo.abc.com/v2\nkind: Bar\nmetadata: { name: a }\nspec: { width: 1 }\n");
        let said = demo.type_(&["undeploy", "--keep-crds"]);
        assert!(
            said.contains("kept bars.foo.abc.com") && said.contains("deleted namespace/demo-system"),
            "{said}"
        );
        assert_eq!(kubectl.ok(&["get", "bars", "-o", "name"]).trim(), "bar.foo.abc.com/a");
    });
}

#[test]
fn an_object_of_another_project_is_refused() {
    with_kubectl(|kubectl| {
        let demo = Demo::new(kubectl);
        demo.type_(&["deploy", "--no-wait"]);
        kubectl.ok(&[
            "label",
            "clusterrole",
            "demo-bar-viewer-role",
            "windlass.dev/project=other",
            "--overwrite",
        ]);
        let said = demo.refused(&["deploy", "--no-wait"]);
        assert!(said.contains("demo-bar-viewer-role belongs to the deployed project \"other\""), "{said}");
    });
}

#[test]
fn deployments_in_two_namespaces_leave_each_other_alone() {
    with_kubectl(|kubectl| {
        let demo = Demo::new(kubectl);
        demo.type_(&["deploy", "--no-wait", "--namespace", "team-a"]);
        let said = demo.type_(&["deploy", "--no-wait", "--namespace", "team-b"]);
        assert!(!said.contains("pruned"), "{said}");
        let operators = |namespace: &str| {
            kubectl.ok(&["get", "deployments,serviceaccounts", "-n", namespace, "-o", "name"])
        };
        assert!(operators("team-a").contains("demo-controller-manager"));
        kubectl.apply("apiVersion: foo.abc.com/v2\nkind: Bar\nmetadata: { name: b, namespace: team-b }\nspec: { width: 1 }\n");
        for words in
            [&["undeploy", "--namespace", "team-a"][..], &["undeploy", "--yes", "--namespace", "team-a"]]
        {
            let said = demo.refused(words);
            assert!(said.contains("the project is also deployed in namespace team-b"), "{said}");
        }
        assert_eq!(kubectl.ok(&["get", "bars", "-n", "team-b", "-o", "name"]).trim(), "bar.foo.abc.com/b");
        assert!(operators("team-a").contains("demo-controller-manager"));
        demo.type_(&["undeploy", "--namespace", "team-a", "--keep-crds"]);
        assert!(!kubectl.ok(&["get", "namespaces", "-o", "name"]).contains("team-a"));
        assert!(operators("team-b").contains("deployment.apps/demo-controller-manager"));
        assert!(demo.deployed().contains("clusterrole.rbac.authorization.k8s.io/demo-bar-viewer-role"));
        demo.type_(&["undeploy", "--yes", "--namespace", "team-b"]);
        assert_eq!(demo.deployed(), "");
    });
}

#[test]
fn two_overlays_are_two_deployments() {
    with_kubectl(|kubectl| {
        let demo = Demo::new(kubectl);
        let (staging, production) = (demo.overlay("staging"), demo.overlay("production"));
        for namespace in ["staging", "production"] {
            kubectl.ok(&["create", "namespace", namespace]);
        }
        demo.type_(&["deploy", "--no-wait", "-k", &staging]);
        let said = demo.type_(&["deploy", "--no-wait", "-k", &production]);
        assert!(!said.contains("pruned"), "{said}");
        for name in ["staging", "production"] {
            assert!(demo.deployed().contains(&format!("deployment.apps/{name}-demo-controller-manager")));
            assert!(demo.deployed().contains(&format!("{name}-demo-bar-viewer-role")));
        }
        for words in [&["undeploy", "--yes"][..], &["undeploy", "--keep-crds"]] {
            let said = demo.refused(words);
            assert!(said.contains("namespace demo-system has no deployment"), "{said}");
            assert!(said.contains("production, staging") && said.contains("--namespace"), "{said}");
        }
        demo.project.declare(&[]);
        demo.project.ok(&["manifests"]);
        let said = demo.type_(&["deploy", "--no-wait", "-k", &production]);
        assert!(
            said.contains("pruned: clusterrole.rbac.authorization.k8s.io/production-demo-bar-viewer-role"),
            "{said}"
        );
        assert!(demo.deployed().contains("staging-demo-bar-viewer-role"));
        demo.project.declare(&one_version());
        demo.type_(&["undeploy", "--namespace", "production", "--keep-crds"]);
        assert!(
            !demo.deployed().contains("production")
                && demo.deployed().contains("staging-demo-controller-manager")
        );
        demo.type_(&["deploy", "--no-wait", "-k", &production]);
        demo.type_(&["undeploy", "--delete-shared-crds", "--namespace", "production"]);
        assert!(!kubectl.ok(&["get", "crds", "-o", "name"]).contains("bars"));
        assert!(demo.deployed().contains("staging-demo-controller-manager"));
    });
}

#[test]
fn objects_of_an_earlier_release_outside_of_the_namespace_stay() {
    with_kubectl(|kubectl| {
        let demo = Demo::new(kubectl);
        kubectl.ok(&["create", "namespace", "demo-system"]);
        for (kind, namespace) in [("serviceaccount", "demo-system"), ("serviceaccount", "default")] {
            kubectl.ok(&["create", kind, "old", "-n", namespace]);
            kubectl.ok(&["label", kind, "old", "-n", namespace, "windlass.dev/project=demo"]);
        }
        kubectl.ok(&["create", "clusterrole", "old", "--verb=get", "--resource=pods"]);
        kubectl.ok(&["label", "clusterrole", "old", "windlass.dev/project=demo"]);
        let said = demo.type_(&["deploy", "--no-wait"]);
        assert_eq!(said.matches("pruned: ").count(), 1, "{said}");
        assert!(said.contains("pruned: serviceaccount/old in namespace demo-system"), "{said}");
    });
}

#[test]
fn flags_change_the_operators_container_of_an_overlay_or_fail() {
    with_kubectl(|kubectl| {
        let demo = Demo::new(kubectl);
        let overlay = demo.overlay("staging");
        kubectl.ok(&["create", "namespace", "staging"]);
        demo.type_(&[
            "deploy",
            "--no-wait",
            "-k",
            &overlay,
            "--image",
            "a:1",
            "--set",
            "manager.env.LEVEL=debug",
        ]);
        let containers = kubectl.ok(&[
            "get",
            "deployment/staging-demo-controller-manager",
            "-n",
            "staging",
            "-o",
            "jsonpath={range .spec.template.spec.containers[*]}{.name}={.image},{.env[*].name};{end}",
        ]);
        assert_eq!(containers, "proxy=proxy:1,;manager=a:1,LEVEL;");
        let empty = demo.project.path("demo/overlays/empty");
        std::fs::create_dir_all(&empty).unwrap();
        std::fs::write(empty.join("kustomization.yaml"), "resources: [account.yaml]\n").unwrap();
        std::fs::write(
            empty.join("account.yaml"),
            "apiVersion: v1\nkind: ServiceAccount\nmetadata: { name: a, namespace: default }\n",
        )
        .unwrap();
        for flags in [["--image", "a:1"], ["--set", "manager.replicas=2"]] {
            let words = [&["deploy", "--no-wait", "-k", "overlays/empty"][..], &flags].concat();
            let said = demo.refused(&words);
            assert!(said.contains("no Deployment of the operator"), "{said}");
        }
    });
}

#[test]
fn a_deployment_replaces_the_conversion_of_a_developer_who_has_left() {
    with_kubectl(|kubectl| {
        let demo = Demo::of(Project::new(&two_versions(), "false"), kubectl);
        demo.type_(&["install"]);
        let conversion = "jsonpath={.spec.conversion.webhook.clientConfig}";
        let client = || kubectl.ok(&["get", "crd", "bars.foo.abc.com", "-o", conversion]);
        let crd = kubectl.ok(&["get", "crd", "bars.foo.abc.com", "-o", "json"]);
        let mut crd: Value = serde_json::from_str(&crd).unwrap();
        for field in ["managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"] {
            crd["metadata"].as_object_mut().unwrap().remove(field);
        }
        let mut convert_at = |url: &str| {
            crd["spec"]["conversion"]["webhook"]["clientConfig"] = serde_json::json!({ "url": url });
            kubectl.ok_with(&["apply", "--server-side", "-f", "-"], &crd.to_string());
        };
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let answered = format!("https://{}/convert", listener.local_addr().unwrap());
        for url in [answered.as_str(), "https://conversion.invalid/convert"] {
            convert_at(url);
            demo.type_(&["deploy", "--no-wait"]);
            assert!(client().contains(url), "a server may convert at {url}");
        }
        // A bound socket that does not listen refuses connections, and keeps the port.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        convert_at(&format!("https://{}/convert", socket.local_addr().unwrap()));
        let said = demo.type_(&["deploy", "--no-wait"]);
        assert!(client().contains("demo-webhook-service"), "{}: {said}", client());
    });
}

#[test]
fn a_failed_rollout_shows_the_events_of_the_pods() {
    with_kubectl(|kubectl| {
        let demo = Demo::new(kubectl);
        kubectl.apply("apiVersion: v1\nkind: Namespace\nmetadata: { name: demo-system }\n");
        kubectl.apply(
            "apiVersion: v1\nkind: ResourceQuota\nmetadata: { name: none, namespace: demo-system }\nspec: { hard: { pods: 0 } }\n",
        );
        let said = demo.refused(&["deploy", "--image", "a:1", "--timeout", "20"]);
        assert!(
            said.contains("deployment.apps/demo-controller-manager in namespace demo-system is not ready"),
            "{said}"
        );
        assert!(said.contains("exceeded quota: none"), "{said}");
    });
}

#[test]
fn a_chart_and_a_bundle_are_written_once_and_keep_the_users_files() {
    let project = Project::new(&one_version(), "false");
    let first = project.ok(&["chart", "--image", "a:1"]);
    assert!(first.contains("created dist/chart/templates/manager/manager.yaml"), "{first}");
    assert!(project.ok(&["chart", "--image", "a:1"]).contains("nothing to write"));
    let values = project.path("demo/dist/chart/values.yaml");
    std::fs::write(&values, "manager: {}\n").unwrap();
    assert!(
        project.ok(&["chart", "--image", "a:2"]).contains("nothing to write"),
        "the values are the user's"
    );

    let first = project.ok(&["bundle", "--version", "1.2.0"]);
    assert!(first.contains("created config/manifests/bases/demo.clusterserviceversion.yaml"), "{first}");
    // The bundle of a later commit is the same: only the time of the commit differs.
    let mut later = project.command(&["bundle", "--version", "1.2.0"]);
    let later = later.env("SOURCE_DATE_EPOCH", "1000000000").output().unwrap();
    assert!(String::from_utf8(later.stdout).unwrap().contains("nothing to write"));
    project.ok(&["bundle", "--version", "1.3.0"]);
    let path = project.path("demo/bundle/manifests/demo.clusterserviceversion.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains("replaces: demo.v1.2.0"), "{text}");
}
