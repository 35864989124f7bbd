//! Changing objects: label, annotate, patch, edit, replace, diff, apply.

use crate::custom_resources::{install, sample};
use crate::kubectl::with_kubectl;

#[test]
fn label_and_annotate_set_change_and_remove() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["create", "configmap", "c"]);
        assert_eq!(kubectl.ok(&["label", "configmap", "c", "tier=front"]), "configmap/c labeled\n");
        let complaint = kubectl.fails(&["label", "configmap", "c", "tier=back"], "");
        assert!(complaint.contains("--overwrite"), "{complaint}");
        kubectl.ok(&["label", "configmap", "c", "tier=back", "--overwrite"]);
        assert_eq!(kubectl.ok(&["get", "cm", "c", "-o", "jsonpath={.metadata.labels.tier}"]), "back");
        assert_eq!(kubectl.ok(&["label", "configmap", "c", "tier-"]), "configmap/c unlabeled\n");
        assert_eq!(kubectl.ok(&["annotate", "configmap", "c", "note=hello"]), "configmap/c annotated\n");
        assert_eq!(kubectl.ok(&["get", "cm", "c", "-o", "jsonpath={.metadata.annotations.note}"]), "hello");
        let complaint = kubectl.fails(&["label", "configmap", "c", "tier=not a label"], "");
        assert!(complaint.contains("a valid label must be an empty string or consist of"), "{complaint}");
    });
}

#[test]
fn patch_works_in_its_three_types() {
    with_kubectl(|kubectl| {
        install(kubectl);
        kubectl.apply(&sample(1));
        let replicas = || kubectl.ok(&["get", "custompod", "sample", "-o", "jsonpath={.spec.replicas}"]);
        kubectl.ok(&["patch", "custompod", "sample", "--type=merge", "-p", r#"{"spec":{"replicas":2}}"#]);
        assert_eq!(replicas(), "2");
        let json = r#"[{"op":"test","path":"/spec/replicas","value":2},{"op":"replace","path":"/spec/replicas","value":3}]"#;
        kubectl.ok(&["patch", "custompod", "sample", "--type=json", "-p", json]);
        assert_eq!(replicas(), "3");
        kubectl.fails(&["patch", "custompod", "sample", "--type=json", "-p", json], "");
        let complaint =
            kubectl.fails(&["patch", "custompod", "sample", "-p", r#"{"spec":{"replicas":4}}"#], "");
        assert!(
            complaint.contains("strategic merge patch is not supported") || complaint.contains("media type"),
            "{complaint}"
        );

        kubectl.ok(&["create", "deployment", "web", "--image=nginx"]);
        let sidecar = r#"{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"proxy"}]}}}}"#;
        kubectl.ok(&["patch", "deployment", "web", "-p", sidecar]);
        let images =
            kubectl.ok(&["get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}"]);
        assert!(images.contains("nginx") && images.contains("proxy"), "merged by name: {images}");
    });
}

#[test]
fn edit_writes_what_the_editor_leaves() {
    with_kubectl(|kubectl| {
        install(kubectl);
        kubectl.apply(&sample(1));
        let edit = |script: &str| {
            kubectl.command(&["edit", "custompod", "sample"]).env("KUBE_EDITOR", script).output().unwrap()
        };
        let edited = edit("sed -i s/replicas:.1/replicas:\\ 5/");
        assert!(edited.status.success(), "{}", String::from_utf8_lossy(&edited.stderr));
        assert_eq!(kubectl.ok(&["get", "custompod", "sample", "-o", "jsonpath={.spec.replicas}"]), "5");
        let untouched = edit("true");
        assert!(String::from_utf8_lossy(&untouched.stderr).contains("no changes made"));
    });
}

#[test]
fn replace_takes_the_whole_object_and_refuses_a_stale_one() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["create", "configmap", "c", "--from-literal=a=1"]);
        let read = kubectl.ok(&["get", "configmap", "c", "-o", "json"]);
        let changed = read.replace(r#""a": "1""#, r#""a": "2""#);
        assert_eq!(kubectl.ok_with(&["replace", "-f", "-"], &changed), "configmap/c replaced\n");
        let complaint = kubectl.fails(&["replace", "-f", "-"], &changed);
        assert!(
            complaint
                .contains("the object has been modified; please apply your changes to the latest version"),
            "{complaint}"
        );
        kubectl.ok_with(&["replace", "--force", "-f", "-"], &changed);
    });
}

#[test]
fn diff_shows_what_apply_would_change_and_changes_nothing() {
    with_kubectl(|kubectl| {
        install(kubectl);
        kubectl.apply(&sample(1));
        let same = kubectl.run(&["diff", "-f", "-"], &sample(1));
        assert_eq!(same.status.code(), Some(0), "{}", String::from_utf8_lossy(&same.stderr));
        let other = kubectl.run(&["diff", "-f", "-"], &sample(3));
        let shown = String::from_utf8_lossy(&other.stdout);
        assert_eq!(other.status.code(), Some(1), "{}", String::from_utf8_lossy(&other.stderr));
        assert!(shown.contains("-  replicas: 1") && shown.contains("+  replicas: 3"), "{shown}");
        assert_eq!(kubectl.ok(&["get", "custompod", "sample", "-o", "jsonpath={.spec.replicas}"]), "1");
    });
}

#[test]
fn apply_removes_what_the_manifest_lost_and_keeps_what_others_added() {
    with_kubectl(|kubectl| {
        let manifest =
            |data: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n{data}");
        kubectl.apply(&manifest("  a: '1'\n  b: '2'\n"));
        kubectl.ok(&["patch", "configmap", "c", "-p", r#"{"data":{"theirs":"3"}}"#]);
        assert_eq!(kubectl.apply(&manifest("  a: '1'\n")), "configmap/c configured\n");
        assert_eq!(kubectl.ok(&["get", "cm", "c", "-o", "jsonpath={.data}"]), r#"{"a":"1","theirs":"3"}"#);
        let dry = kubectl.ok_with(&["apply", "--dry-run=server", "-f", "-"], &manifest("  a: '9'\n"));
        assert!(dry.contains("(server dry run)"), "{dry}");
        assert_eq!(kubectl.ok(&["get", "cm", "c", "-o", "jsonpath={.data.a}"]), "1");
    });
}
