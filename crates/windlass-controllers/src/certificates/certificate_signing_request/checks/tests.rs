use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

use super::*;

/// Returns a request for a user in a group, with alternative names.
fn request(name: &str, group: &str, names: &[SanType]) -> Request {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.distinguished_name.push(DnType::CommonName, name);
    params.subject_alt_names = names.to_vec();
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    Request::parse(pem.as_bytes()).unwrap()
}

fn verdict(signer: &str, request: &Request, usages: &[&str]) -> String {
    let usages: Vec<String> = usages.iter().map(|usage| (*usage).to_owned()).collect();
    check(signer, request, &usages).err().unwrap_or_default()
}

fn dns() -> SanType {
    SanType::DnsName("a.example.com".try_into().unwrap())
}

#[test]
fn client_certificates_are_for_clients_only() {
    let jane = request("jane", "developers", &[]);
    let of = |usages| verdict(API_CLIENT, &jane, usages);
    assert_eq!(of(&["client auth", "digital signature", "key encipherment"]), "");
    assert_eq!(of(&["digital signature"]), "missing required usage for client certificate: client auth");
    assert_eq!(of(&["client auth", "server auth"]), "invalid usage for client certificate: server auth");
}

#[test]
fn a_kubelet_gets_the_certificate_of_a_node_only() {
    let usages = &["client auth", "digital signature"];
    let of = |name, group, names: &[SanType]| verdict(KUBELET_CLIENT, &request(name, group, names), usages);
    assert_eq!(of("system:node:a", "system:nodes", &[]), "");
    assert_eq!(of("jane", "system:nodes", &[]), "subject common name does not begin with system:node:");
    assert_eq!(of("system:node:a", "developers", &[]), "subject organization is not system:nodes");
    assert_eq!(of("system:node:a", "system:nodes", &[dns()]), "DNS subjectAltNames are not allowed");
    let node = request("system:node:a", "system:nodes", &[]);
    let exact = "usages did not match [client auth digital signature key encipherment]";
    assert_eq!(verdict(KUBELET_CLIENT, &node, &["client auth"]), exact);
}

#[test]
fn a_kubelet_serves_under_its_names() {
    let usages = &["server auth", "digital signature", "key encipherment"];
    let of = |names: &[SanType]| {
        verdict(KUBELET_SERVING, &request("system:node:a", "system:nodes", names), usages)
    };
    let address = SanType::IpAddress([10, 0, 0, 1].into());
    assert_eq!(of(&[dns(), address.clone()]), "");
    assert_eq!(of(&[]), "DNS or IP subjectAltName is required");
    let uri = SanType::URI("spiffe://a".try_into().unwrap());
    assert_eq!(of(&[address, uri]), "URI subjectAltNames are not allowed");
}

#[test]
fn the_legacy_signer_demands_nothing() {
    assert_eq!(verdict(LEGACY, &request("jane", "developers", &[]), &["any"]), "");
}
