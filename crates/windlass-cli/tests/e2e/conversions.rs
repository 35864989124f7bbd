//! `windlass run` with an operator that converts: no read is wrong before, while and after the operator runs.

use crate::kubectl::{Kubectl, with_kubectl};
use crate::operator::{Project, SETTLED, one_version, two_versions};
use crate::process::Windlass;

const BAR: &str = "apiVersion: foo.abc.com/v1\nkind: Bar\nmetadata: { name: b }\nspec: { size: 7 }\n";

/// Runs the operator until the webhooks are registered and until each line was printed, in any order.
fn run(project: &Project, kubectl: &Kubectl, lines: &[&str]) -> Windlass {
    let mut run = project.start(&["run", "--kubeconfig", &kubectl.kubeconfig()]);
    run.until_all(&[&["the API server calls"], lines].concat());
    run
}

fn v1(kubectl: &Kubectl) -> String {
    kubectl.ok(&["get", "bars.v1.foo.abc.com", "b", "-o", "jsonpath={.spec}"])
}

#[test]
fn no_field_is_lost_when_the_operator_ends_and_begins_again() {
    with_kubectl(|kubectl| {
        let project = Project::with_operator(&two_versions());
        project.ok(&["install", "--kubeconfig", &kubectl.kubeconfig()]);
        let said = kubectl.fails(&["create", "-f", "-"], BAR);
        assert!(said.contains("conversion webhook"), "nobody converts yet: {said}");

        let mut first = run(&project, kubectl, &[]);
        kubectl.ok_with(&["create", "-f", "-"], BAR);
        first.until(&format!("{SETTLED}default/b 7"));
        assert_eq!(v1(kubectl), r#"{"size":7}"#);
        assert_eq!(kubectl.ok(&["get", "bars", "b", "-o", "jsonpath={.spec}"]), r#"{"width":7}"#);
        first.signal("INT");
        first.until("nothing converts bars.foo.abc.com now, because the operator is not deployed");
        first.end();
        let said = kubectl.fails(&["get", "bars.v1.foo.abc.com", "b"], "");
        assert!(said.contains("conversion webhook"), "{said}");

        // Killed, the command cannot give the conversion back.
        let settled = format!("{SETTLED}default/b 7");
        let mut second = run(&project, kubectl, &[&settled]);
        second.signal("KILL");
        second.end();
        let mut third = run(&project, kubectl, &[&settled]);
        assert_eq!(v1(kubectl), r#"{"size":7}"#);
        third.signal("INT");
        third.until("nothing converts bars.foo.abc.com now, because the operator is not deployed");
        third.end();
        let said = kubectl.fails(&["create", "-f", "-"], &BAR.replace("name: b", "name: c"));
        assert!(said.contains("conversion webhook"), "{said}");
        for mut ended in [first, second, third] {
            let said = format!("{}\n{}", ended.said().join("\n"), ended.rest());
            assert!(!said.contains("does not decode"), "{said}");
        }
        let said = project.ok(&["uninstall", "--yes", "--kubeconfig", &kubectl.kubeconfig()]);
        assert!(said.contains("deleted bars.foo.abc.com"), "{said}");
    });
}

#[test]
fn a_run_without_a_server_ends_as_the_operator_ends() {
    let mut cluster = Windlass::cluster(&[]);
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let project = Project::with_operator(&two_versions());
    project.ok(&["install", "--kubeconfig", &kubeconfig]);
    let mut run = project.start(&["run", "--kubeconfig", &kubeconfig]);
    run.until("the API server calls");
    cluster.signal("KILL");
    cluster.end();
    run.signal("INT");
    let status = run.end();
    let said = format!("{}\n{}", run.said().join("\n"), run.rest());
    assert!(said.contains("warning: webhooks: the con") && !said.contains("ServiceError"), "{said}");
    assert!(status.success(), "{status} {said}");
}

#[test]
fn a_conversion_without_a_service_stays() {
    with_kubectl(|kubectl| {
        let project = Project::with_operator(&two_versions());
        project.ok(&["install", "--kubeconfig", &kubectl.kubeconfig()]);
        let none = r#"{"spec":{"conversion":{"strategy":"None","webhook":null}}}"#;
        kubectl.ok(&["patch", "crd", "bars.foo.abc.com", "--type", "merge", "-p", none]);
        let mut run = run(&project, kubectl, &[]);
        run.signal("INT");
        run.until("stays, so that no field is lost: requests for other versions than v2 fail");
        run.end();
        let said = kubectl.fails(&["create", "-f", "-"], BAR);
        assert!(said.contains("conversion webhook"), "{said}");
    });
}

#[test]
fn a_conversion_that_was_deployed_meanwhile_stays() {
    with_kubectl(|kubectl| {
        let project = Project::with_operator(&two_versions());
        project.ok(&["install", "--kubeconfig", &kubectl.kubeconfig()]);
        let conversion =
            || kubectl.ok(&["get", "crd", "bars.foo.abc.com", "-o", "jsonpath={.spec.conversion}"]);
        let deployed = conversion();
        let mut run = run(&project, kubectl, &[]);
        assert_ne!(conversion(), deployed);
        let replaced = format!(r#"[{{"op":"replace","path":"/spec/conversion","value":{deployed}}}]"#);
        kubectl.ok(&["patch", "crd", "bars.foo.abc.com", "--type", "json", "-p", &replaced]);
        run.signal("INT");
        run.until("has been set by another command, and stays");
        run.end();
        assert_eq!(conversion(), deployed);
    });
}

#[test]
fn a_webhook_that_the_server_refuses_leaves_no_other_webhook_behind() {
    with_kubectl(|kubectl| {
        let project = Project::with_operator(&two_versions());
        let webhook = |name: &str, side_effects: &str| {
            serde_json::json!([{
                "name": name, "sideEffects": side_effects, "admissionReviewVersions": ["v1"],
                "clientConfig": { "service": { "namespace": "system", "name": "webhook-service", "path": "/a" } },
            }])
        };
        project.edit_inventory(|inventory| {
            inventory["webhooks"]["mutating"] = webhook("mbar.kb.io", "None");
            inventory["webhooks"]["validating"] = webhook("vbar.kb.io", "Some");
        });
        project.ok(&["install", "--kubeconfig", &kubectl.kubeconfig()]);
        let mut run = project.start(&["run", "--kubeconfig", &kubectl.kubeconfig()]);
        run.until("sideEffects");
        assert!(!run.end().success());
        assert_eq!(kubectl.ok(&["get", "mutatingwebhookconfigurations", "-o", "name"]), "");
    });
}

#[test]
fn webhooks_that_a_build_of_a_session_lacks_come_back() {
    with_kubectl(|kubectl| {
        let project = Project::with_operator(&two_versions());
        let mut dev = project.start(&["dev", "--kubeconfig", &kubectl.kubeconfig()]);
        dev.until("webhooks: the API server calls");
        project.build(&one_version());
        dev.until("after the save");
        project.build(&two_versions());
        dev.until("webhooks: the API server calls");
        dev.signal("INT");
        dev.end();
    });
}
