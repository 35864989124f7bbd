//! Refused requests, in the real server's words.

use crate::custom_resources::install;
use crate::kubectl::with_kubectl;

#[test]
fn an_object_that_breaks_its_schema_is_refused() {
    with_kubectl(|kubectl| {
        install(kubectl);
        for (spec, part) in [
            (
                "  replicas: -1\n",
                "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0",
            ),
            (
                "  replicas: many\n",
                r#"spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer"#,
            ),
            ("  flavour: plain\n", "spec.replicas: Required value"),
            ("  replicas: 1\n  flavour: sweet\n", r#"spec.flavour: Unsupported value: "sweet""#),
            ("  replicas: 1\n  colour: red\n", r#"unknown field "spec.colour""#),
        ] {
            let manifest = format!(
                "apiVersion: zhhnzw.mock.com/v1\nkind: CustomPod\nmetadata:\n  name: bad\nspec:\n{spec}"
            );
            let complaint = kubectl.fails(&["create", "-f", "-"], &manifest);
            assert!(complaint.contains(part), "{part:?} is missing:\n{complaint}");
        }
        assert_eq!(kubectl.ok(&["get", "custompods", "-o", "name"]), "", "nothing is half-done");
    });
}

#[test]
fn what_does_not_exist_is_said_not_to() {
    with_kubectl(|kubectl| {
        let unknown = "apiVersion: nothing.example/v1\nkind: Nothing\nmetadata:\n  name: x\n";
        let complaint = kubectl.fails(&["apply", "-f", "-"], unknown);
        assert!(
            complaint.contains(r#"no matches for kind "Nothing" in version "nothing.example/v1""#),
            "{complaint}"
        );
        let complaint = kubectl.fails(&["get", "nothings"], "");
        assert!(complaint.contains(r#"the server doesn't have a resource type "nothings""#), "{complaint}");
        let complaint = kubectl.fails(&["get", "pod", "nobody"], "");
        assert_eq!(complaint, "Error from server (NotFound): pods \"nobody\" not found\n");
        let complaint = kubectl.fails(&["create", "configmap", "c", "-n", "nowhere"], "");
        assert!(complaint.contains(r#"namespaces "nowhere" not found"#), "{complaint}");
    });
}

#[test]
fn names_and_manifests_that_make_no_sense_are_refused() {
    with_kubectl(|kubectl| {
        let complaint = kubectl.fails(&["create", "configmap", "Not_A_Name"], "");
        assert!(complaint.contains("a lowercase RFC 1123 subdomain must consist of"), "{complaint}");
        kubectl.fails(&["apply", "-f", "-"], "apiVersion: v1\nkind: [broken\n");
        let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers: []\n";
        let complaint = kubectl.fails(&["create", "-f", "-"], pod);
        assert!(complaint.contains("spec.containers: Required value"), "{complaint}");
        let typo = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndatum:\n  a: b\n";
        let complaint = kubectl.fails(&["create", "-f", "-"], typo);
        assert!(complaint.contains(r#"unknown field "datum""#), "{complaint}");
    });
}

#[test]
fn a_crd_that_is_not_structural_is_refused() {
    with_kubectl(|kubectl| {
        let broken = crate::custom_resources::CRD
            .replace("                type: integer\n                minimum: 0\n", "");
        let complaint = kubectl.fails(&["create", "-f", "-"], &broken);
        assert!(
            complaint.contains("type: Required value: must not be empty for specified object fields"),
            "{complaint}"
        );
    });
}

#[test]
fn without_the_kubeconfigs_certificate_nobody_gets_in() {
    with_kubectl(|kubectl| {
        let config = kubectl.ok(&["config", "view", "--raw"]);
        let anonymous: Vec<&str> = config.lines().filter(|line| !line.contains("client-")).collect();
        let path = kubectl.file("anonymous", &anonymous.join("\n"));
        let arguments = ["get", "pods", "--kubeconfig", &path];
        let complaint = kubectl.fails(&[&arguments[..], &["--token=guessed"]].concat(), "");
        assert!(complaint.contains("Unauthorized") || complaint.contains("must be logged in"), "{complaint}");
        let complaint = kubectl.fails(&["get", "pods", "--kubeconfig", "/nowhere/kubeconfig"], "");
        assert!(complaint.contains("/nowhere/kubeconfig"), "{complaint}");
    });
}
