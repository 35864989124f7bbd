//! Certificates for users, from the request to the first command with the certificate.

use std::process::Command;

use crate::kubectl::{Kubectl, missing, with_kubectl};

/// Runs openssl in kubectl's directory; `None` if there is none.
fn openssl(kubectl: &Kubectl, arguments: &[&str]) -> Option<String> {
    let directory = kubectl.file("openssl.txt", "");
    let directory = std::path::Path::new(&directory).parent().unwrap();
    let output = Command::new("openssl").args(arguments).current_dir(directory).output().ok()?;
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).ok()
}

fn request(name: &str, encoded: &str) -> String {
    format!(
        r#"{{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {{"name": "{name}"}},
            "spec": {{"request": "{encoded}", "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"], "expirationSeconds": 86400}}}}"#
    )
}

#[test]
fn a_user_gets_a_certificate_and_uses_it() {
    with_kubectl(|kubectl| {
        let new = [
            "req",
            "-new",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            "jane.key",
            "-subj",
            "/O=developers/CN=jane",
            "-out",
            "jane.csr",
        ];
        if openssl(kubectl, &new).is_none() {
            return missing();
        }
        let encoded = openssl(kubectl, &["base64", "-A", "-in", "jane.csr"]).unwrap();
        kubectl.apply(&request("jane", encoded.trim()));
        let row = kubectl.ok(&["get", "csr", "jane"]);
        assert!(row.contains("Pending") && row.contains("kubernetes.io/kube-apiserver-client"), "{row}");
        let said = kubectl.ok(&["certificate", "approve", "jane"]);
        assert_eq!(said, "certificatesigningrequest.certificates.k8s.io/jane approved\n");
        kubectl.until(&["get", "csr", "jane"], |row| row.contains("Approved,Issued"));
        let certificate = kubectl.ok(&["get", "csr", "jane", "-o", "jsonpath={.status.certificate}"]);
        kubectl.file("jane.b64", &certificate);
        openssl(kubectl, &["base64", "-A", "-d", "-in", "jane.b64", "-out", "jane.crt"]);
        let shown =
            openssl(kubectl, &["x509", "-in", "jane.crt", "-noout", "-subject", "-ext", "extendedKeyUsage"])
                .unwrap();
        assert!(shown.contains("CN=jane") || shown.contains("CN = jane"), "{shown}");
        assert!(shown.contains("TLS Web Client Authentication"), "{shown}");

        let as_jane = ["--client-certificate=jane.crt", "--client-key=jane.key"];
        let user = ["config", "set-credentials", "jane", as_jane[0], as_jane[1], "--embed-certs"];
        kubectl.ok(&user);
        let said = kubectl.ok(&[
            "auth",
            "whoami",
            "--user=jane",
            "-o",
            "jsonpath={.status.userInfo.username} {.status.userInfo.groups}",
        ]);
        assert_eq!(said, r#"jane ["developers","system:authenticated"]"#);
        let said = kubectl.fails(&["get", "pods", "--user=jane"], "");
        assert!(said.contains(r#"User "jane" cannot list resource "pods""#), "{said}");
        kubectl.ok(&["create", "rolebinding", "developers", "--clusterrole=view", "--group=developers"]);
        kubectl.ok(&["get", "pods", "--user=jane"]);
    });
}

#[test]
fn a_request_can_be_refused() {
    with_kubectl(|kubectl| {
        let new = [
            "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "eve.key", "-subj", "/CN=eve", "-out",
            "eve.csr",
        ];
        if openssl(kubectl, &new).is_none() {
            return missing();
        }
        let encoded = openssl(kubectl, &["base64", "-A", "-in", "eve.csr"]).unwrap();
        kubectl.apply(&request("eve", encoded.trim()));
        kubectl.ok(&["certificate", "deny", "eve"]);
        let row = kubectl.ok(&["get", "csr", "eve"]);
        assert!(row.contains("Denied") && !row.contains("Issued"), "{row}");
        let said = kubectl.fails(&["certificate", "approve", "eve"], "");
        assert!(said.contains(r#"certificate signing request "eve" is already Denied"#), "{said}");
    });
}
