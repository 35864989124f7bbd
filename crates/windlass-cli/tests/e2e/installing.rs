//! `windlass install` and `kubectl apply --server-side` take turns on the CRDs of a project.

use kube::CustomResourceExt;
use serde_json::{Value, json};

use crate::kubectl::{Kubectl, with_kubectl};
use crate::operator::{Project, one_version, two_versions, v2};
use crate::process::{Windlass, windlass};

const CRD: &str = "bars.foo.abc.com";
/// A certificate that is its own authority, in base64.
const AUTHORITY: &str = "\
    LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJMakNCNGFBREFnRUNBaFJuWDVaODEzbGdJbnFaSVpIbk45T3BYVnBSQmpB\
    RkJnTXJaWEF3RERFS01BZ0cKQTFVRUF3d0JZVEFnRncweU5qRXhNamt3TnpRM01USmFHQTh5TVRJMk1URXdOVEEzTkRjeE1sb3dE\
    REVLTUFnRwpBMVVFQXd3QllUQXFNQVVHQXl0bGNBTWhBSEpOczg3cEI1NUlWemc5QW5BUnZWOUFTQ3pFaTFjLzJWb0VYZy9jCkpZ\
    MHVvMU13VVRBZEJnTlZIUTRFRmdRVXhXZjJHNTdWWllRbi9ZM0VOMEhCNTFRY3Y3NHdId1lEVlIwakJCZ3cKRm9BVXhXZjJHNTdW\
    WllRbi9ZM0VOMEhCNTFRY3Y3NHdEd1lEVlIwVEFRSC9CQVV3QXdFQi96QUZCZ01yWlhBRApRUUREeTdKcWZYY01VRWxPZXQ2ZklF\
    bzU4RElJZ0tmSkg1emJhQUNhaENiYUtNY3NBSm5TY1RZMjJ4RHNUdzFjCmZWanRaVEl5dmRuanQ5WmE2THZKQ0FRSAotLS0tLUVO\
    RCBDRVJUSUZJQ0FURS0tLS0tCg==";

struct Both<'a> {
    project: Project,
    kubectl: &'a Kubectl,
}

impl Both<'_> {
    fn install(&self) -> Value {
        self.project.ok(&["install", "--kubeconfig", &self.kubectl.kubeconfig()]);
        self.crd()
    }

    fn deploy(&self) -> Value {
        self.project.ok(&["manifests"]);
        let folder = self.project.path("demo/config/default").display().to_string();
        self.kubectl.ok(&["apply", "--server-side", "-k", &folder]);
        self.crd()
    }

    fn crd(&self) -> Value {
        let text = self.kubectl.ok(&["get", "crd", CRD, "-o", "json", "--show-managed-fields"]);
        serde_json::from_str(&text).unwrap()
    }
}

fn managers(crd: &Value) -> Vec<&str> {
    let entries = crd["metadata"]["managedFields"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["operation"] == "Apply")
        .map(|entry| entry["manager"].as_str().unwrap())
        .collect()
}

#[test]
fn what_is_installed_is_deployed_and_installed_again_without_a_conflict() {
    with_kubectl(|kubectl| {
        let both = Both { project: Project::new(&one_version(), "false"), kubectl };
        let installed = both.install();
        let schema = &installed["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_eq!((&schema["title"], &schema["description"]), (&Value::Null, &Value::Null));
        assert_eq!(managers(&installed), ["kubectl"]);
        let deployed = both.deploy();
        assert_eq!(deployed["spec"], installed["spec"], "one CRD, from one place");
        assert_eq!(deployed["metadata"]["generation"], installed["metadata"]["generation"]);
        let again = both.install();
        assert_eq!(again["metadata"]["generation"], installed["metadata"]["generation"]);
        // A second version, first from one side and then from the other side.
        both.project.declare(&two_versions());
        let upgraded = both.install();
        assert_eq!(upgraded["spec"]["versions"].as_array().unwrap().len(), 2);
        assert_eq!(both.deploy()["spec"], upgraded["spec"]);
        both.project.declare(&one_version());
        both.project.declare(&two_versions());
        both.deploy();
        assert_eq!(both.install()["spec"], upgraded["spec"]);
    });
}

#[test]
fn a_label_of_an_overlay_and_a_certificate_survive_an_install() {
    with_kubectl(|kubectl| {
        let both = Both { project: Project::new(&two_versions(), "false"), kubectl };
        both.deploy();
        let folder = both.project.path("overlay");
        std::fs::create_dir(&folder).unwrap();
        let overlay = "resources: [../demo/config/default]\nlabels: [{ pairs: { team: web } }]\n";
        std::fs::write(folder.join("kustomization.yaml"), overlay).unwrap();
        kubectl.ok(&["apply", "--server-side", "-k", &folder.display().to_string()]);
        let certified =
            json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": AUTHORITY}}}}});
        kubectl.run(&["patch", "crd", CRD, "--type", "merge", "-p", &certified.to_string()], "");
        let before = both.crd();
        let after = both.install();
        assert_eq!(after["metadata"]["labels"], before["metadata"]["labels"]);
        assert_eq!(after["metadata"]["labels"]["team"], "web");
        assert_eq!(after["spec"], before["spec"]);
    });
}

#[test]
fn a_crd_of_an_earlier_release_is_taken_over() {
    with_kubectl(|kubectl| {
        // The form of an earlier release has the descriptions of derive macros; the schema is older, too.
        let mut old = serde_json::to_value(v2::Bar::crd()).unwrap();
        old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["description"] =
            "Another text.".into();
        kubectl.ok_with(
            &["apply", "--server-side", "--field-manager", "windlass-dev", "-f", "-"],
            &old.to_string(),
        );
        let both = Both { project: Project::new(&one_version(), "false"), kubectl };
        let installed = both.install();
        assert_eq!(managers(&installed), ["kubectl"]);
        assert_eq!(both.deploy()["spec"], installed["spec"]);
        assert_eq!(both.install()["metadata"]["generation"], installed["metadata"]["generation"]);
    });
}

#[test]
fn an_uninstall_deletes_objects_only_after_a_yes() {
    with_kubectl(|kubectl| {
        let both = Both { project: Project::new(&one_version(), "false"), kubectl };
        both.install();
        kubectl.apply("apiVersion: foo.abc.com/v2\nkind: Bar\nmetadata: { name: a }\nspec: { width: 1 }\n");
        let kubeconfig = kubectl.kubeconfig();
        let words = ["uninstall", "--kubeconfig", &kubeconfig];
        let refused = both.project.command(&words).output().unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("1 objects of the project's kinds") && said.contains("--yes"), "{said}");
        assert_eq!(kubectl.ok(&["get", "bars", "-o", "name"]).trim(), "bar.foo.abc.com/a");
        kubectl.ok(&["delete", "bar", "a"]);
        assert!(both.project.ok(&words).contains("deleted bars.foo.abc.com"));
    });
}

#[test]
fn a_cluster_of_a_subfolder_is_the_cluster_of_the_project() {
    let project = Project::new(&one_version(), "false");
    let mut command = project.command(&["cluster", "--bare"]);
    command.current_dir(project.path("demo/src"));
    let mut cluster = Windlass::of(command);
    cluster.until("kubeconfig: ");
    let said = project.ok(&["install"]);
    assert!(said.contains("(.windlass/kubeconfig)"), "{said}");
    assert!(!project.path("demo/src/.windlass").exists());
}

#[test]
fn an_uninstall_says_which_objects_it_waits_for() {
    with_kubectl(|kubectl| {
        let both = Both { project: Project::new(&one_version(), "false"), kubectl };
        both.install();
        kubectl.apply(
            "apiVersion: foo.abc.com/v2\nkind: Bar\nmetadata: { name: a, finalizers: [abc.com/volumes] }\nspec: { width: 1 }\n",
        );
        let mut uninstall =
            both.project.start(&["uninstall", "--yes", "--kubeconfig", &kubectl.kubeconfig()]);
        uninstall.until("bars.foo.abc.com waits for objects: default/a (finalizers abc.com/volumes)");
        uninstall.until("run it with `windlass run`");
        kubectl.ok(&["patch", "bars", "a", "--type", "merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
        uninstall.until("deleted bars.foo.abc.com");
        assert!(uninstall.end().success());
    });
}

#[test]
fn every_kubeconfig_names_a_namespace_and_kubeconfig_uses_the_usual_order() {
    with_kubectl(|kubectl| {
        let namespace = ["config", "view", "--minify", "-o", "jsonpath={.contexts[0].context.namespace}"];
        assert_eq!(kubectl.ok(&namespace), "default");
        let mut jane = windlass(&["kubeconfig", "--as", "jane"]);
        let folder = tempfile::tempdir().unwrap();
        let output =
            jane.env("KUBECONFIG", kubectl.kubeconfig()).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let file = kubectl.file("jane", &String::from_utf8(output.stdout).unwrap());
        let whoami = kubectl.ok(&[
            "--kubeconfig",
            &file,
            "auth",
            "whoami",
            "-o",
            "jsonpath={.status.userInfo.username}",
        ]);
        assert_eq!(whoami, "jane");
    });
}
