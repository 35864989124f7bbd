//! The requirements of Kubernetes' signers for a request.

use std::collections::BTreeSet;

use super::request::Request;
use super::{API_CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY};

const CLIENT_AUTH: &str = "client auth";
const SERVER_AUTH: &str = "server auth";
const DIGITAL_SIGNATURE: &str = "digital signature";
const KEY_ENCIPHERMENT: &str = "key encipherment";

/// The user name of a node begins with this.
const NODE: &str = "system:node:";
const NODES: &str = "system:nodes";

/// Returns whether a signer belongs to this cluster.
pub(super) fn is_signer(signer: &str) -> bool {
    [API_CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY].contains(&signer)
}

/// Checks a request for a signer of this cluster.
///
/// # Errors
/// The reason of the signer's refusal.
pub(super) fn check(signer: &str, request: &Request, usages: &[String]) -> Result<(), String> {
    match signer {
        API_CLIENT => client_usages(usages),
        KUBELET_CLIENT => kubelet_client(request, usages),
        KUBELET_SERVING => kubelet_serving(request, usages),
        _ => Ok(()),
    }
}

fn client_usages(usages: &[String]) -> Result<(), String> {
    let optional = [DIGITAL_SIGNATURE, KEY_ENCIPHERMENT];
    if let Some(other) = usages.iter().find(|usage| *usage != CLIENT_AUTH && !optional.contains(&&***usage)) {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    if usages.iter().any(|usage| usage == CLIENT_AUTH) {
        Ok(())
    } else {
        Err(format!("missing required usage for client certificate: {CLIENT_AUTH}"))
    }
}

/// Checks the request of a kubelet for a client certificate.
///
/// # Errors
/// The reason why the request is not a kubelet's.
pub(super) fn kubelet_client(request: &Request, usages: &[String]) -> Result<(), String> {
    of_node_group(request)?;
    for (has, kind) in [
        (request.has_dns_names(), "DNS"),
        (request.has_mail_addresses(), "Email"),
        (request.has_ip_addresses(), "IP"),
        (request.has_uris(), "URI"),
    ] {
        not_allowed(has, kind)?;
    }
    named_as_node(request)?;
    exact_usages(usages, CLIENT_AUTH)
}

fn kubelet_serving(request: &Request, usages: &[String]) -> Result<(), String> {
    of_node_group(request)?;
    if !request.has_dns_names() && !request.has_ip_addresses() {
        return Err("DNS or IP subjectAltName is required".to_owned());
    }
    not_allowed(request.has_mail_addresses(), "Email")?;
    not_allowed(request.has_uris(), "URI")?;
    exact_usages(usages, SERVER_AUTH)?;
    named_as_node(request)
}

fn of_node_group(request: &Request) -> Result<(), String> {
    if request.organizations() == [NODES] {
        return Ok(());
    }
    Err(format!("subject organization is not {NODES}"))
}

fn named_as_node(request: &Request) -> Result<(), String> {
    if request.common_name().starts_with(NODE) {
        return Ok(());
    }
    Err(format!("subject common name does not begin with {NODE}"))
}

fn not_allowed(has: bool, kind: &str) -> Result<(), String> {
    if has { Err(format!("{kind} subjectAltNames are not allowed")) } else { Ok(()) }
}

/// Keys that are not RSA keys encipher no keys.
fn exact_usages(usages: &[String], purpose: &str) -> Result<(), String> {
    let found: BTreeSet<&str> = usages.iter().map(String::as_str).collect();
    let with = BTreeSet::from([DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, purpose]);
    let without = BTreeSet::from([DIGITAL_SIGNATURE, purpose]);
    if found == with || found == without {
        return Ok(());
    }
    Err(format!("usages did not match [{}]", with.into_iter().collect::<Vec<_>>().join(" ")))
}

#[cfg(test)]
mod tests;
