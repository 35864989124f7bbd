//! `windlass kubeconfig`, and kubectl as another user.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::kubectl::{Kubectl, with_kubectl};
use crate::process::{Windlass, windlass};

/// Runs `windlass kubeconfig` against the cluster of a kubectl: exit code, stdout, stderr.
fn kubeconfig(admin: &str, arguments: &[&str]) -> (i32, String, String) {
    let arguments = [&["kubeconfig", "--kubeconfig", admin], arguments].concat();
    let output = windlass(&arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Writes the command's kubeconfig to a file, and returns the path.
fn written(kubectl: &Kubectl, name: &str, arguments: &[&str]) -> String {
    let (code, printed, said) = kubeconfig(&kubectl.kubeconfig(), arguments);
    assert_eq!((code, said.as_str()), (0, ""), "{printed}");
    kubectl.file(name, &printed)
}

#[test]
fn a_service_account_has_its_own_rights() {
    with_kubectl(|kubectl| {
        kubectl.ok(&["create", "serviceaccount", "bot"]);
        let bot = written(kubectl, "bot", &["--service-account", "default/bot", "--duration", "10m"]);
        let run = |arguments: &[&str]| kubectl.run(&[&["--kubeconfig", &*bot], arguments].concat(), "");
        let whoami = run(&["auth", "whoami"]);
        assert!(String::from_utf8_lossy(&whoami.stdout).contains("system:serviceaccount:default:bot"));
        let denied = run(&["get", "pods"]);
        let said = String::from_utf8_lossy(&denied.stderr).into_owned();
        let expected = r#"User "system:serviceaccount:default:bot" cannot list resource "pods" in API group "" in the namespace "default""#;
        assert!(!denied.status.success() && said.contains(expected), "{said}");
        kubectl.ok(&["create", "role", "reader", "--verb=get,list", "--resource=pods"]);
        kubectl.ok(&["create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:bot"]);
        assert!(run(&["get", "pods"]).status.success());
        let list = run(&["auth", "can-i", "--list"]);
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        assert!(list.lines().any(|line| line.starts_with("pods ") && line.contains("[get list]")), "{list}");
        assert_eq!(run(&["auth", "can-i", "delete", "pods"]).stdout, b"no\n");
    });
}

#[test]
fn a_user_is_impersonated() {
    with_kubectl(|kubectl| {
        let jane = written(kubectl, "jane", &["--as", "jane", "--as-group", "a", "--as-group", "b"]);
        let whoami =
            kubectl.ok(&["--kubeconfig", &jane, "auth", "whoami", "-o", "jsonpath={.status.userInfo}"]);
        assert!(
            whoami.contains("jane") && whoami.contains("\"a\",\"b\",\"system:authenticated\""),
            "{whoami}"
        );
        let said = kubectl.fails(&["--kubeconfig", &jane, "get", "nodes"], "");
        assert!(said.contains("User \"jane\" cannot list resource \"nodes\""), "{said}");
        let as_admin = kubectl.ok(&["--as", "root", "--as-group", "system:masters", "get", "nodes"]);
        assert!(as_admin.contains("windlass"), "{as_admin}");
    });
}

#[test]
fn a_written_kubeconfig_is_for_its_owner_only() {
    let cluster = Windlass::cluster(&["--bare"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("jane");
    let admin = cluster.kubeconfig().display().to_string();
    let (code, printed, said) =
        kubeconfig(&admin, &["--as", "jane", "--output", &file.display().to_string()]);
    assert_eq!((code, printed.as_str(), said.as_str()), (0, "", ""));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().contains("as: jane"));
}

#[test]
fn errors_say_what_to_do() {
    let cluster = Windlass::cluster(&["--bare"]);
    let admin = cluster.kubeconfig().display().to_string();
    let (code, _, said) = kubeconfig(&admin, &["--service-account", "default/none"]);
    assert!(code == 1 && said.contains("kubectl create serviceaccount none --namespace default"), "{said}");
    let (code, _, said) = kubeconfig("/nonexistent", &["--as", "jane"]);
    assert!(code == 1 && said.contains("windlass cluster") && said.contains("--kubeconfig"), "{said}");
    for wrong in [
        &["--service-account", "bot"][..],
        &["--as", "jane", "--service-account", "default/bot"],
        &["--as-group", "a"],
        &["--service-account", "default/bot", "--duration", "1d"],
        &[],
    ] {
        assert_eq!(kubeconfig(&admin, wrong).0, 2, "{wrong:?}");
    }
}
