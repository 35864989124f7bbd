//! The kubeconfig of a listener.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::ClientCertificate;

/// Returns a kubeconfig with one cluster, one user and one context, all named `windlass`. The context names the namespace `default`: some clients,
/// such as fabric8 for Java, refuse requests without a namespace.
pub(super) fn kubeconfig(server: &str, authority_pem: &str, user: &ClientCertificate) -> String {
    let authority = STANDARD.encode(authority_pem);
    let certificate = STANDARD.encode(user.certificate_pem());
    let key = STANDARD.encode(user.key_pem());
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: windlass
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: windlass
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: windlass
  context:
    cluster: windlass
    namespace: default
    user: windlass
current-context: windlass
"
    )
}
