//! Names of signers of certificates, names of bundles of trusted authorities, and annotations for signers.

use serde_json::{Map, Value};
use windlass_schema::FieldError;
use windlass_wire::names;

use crate::checks::invalid_names;

/// The largest size of annotations, in bytes.
const LARGEST_ANNOTATIONS: usize = 256 << 10;

/// Returns whether a signer belongs to Kubernetes.
pub(super) fn is_of_kubernetes(signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    domain == "kubernetes.io" || domain.ends_with(".kubernetes.io")
}

/// Validates the required name of a signer at `field`.
pub(super) fn validate(field: &str, signer: &str) -> Vec<FieldError> {
    if signer.is_empty() {
        return vec![FieldError::required(field, "")];
    }
    let Some((domain, path)) = signer.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return vec![FieldError::invalid(field, signer, why)];
    };
    let mut errors = Vec::new();
    let mut check = |part: &str, labels: &dyn Fn(&str) -> Vec<String>| {
        let first = part.split('.').map(|label| (label, labels(label))).find(|(_, why)| !why.is_empty());
        for (label, why) in first.iter().flat_map(|(label, all)| all.iter().map(move |why| (label, why))) {
            let why = format!("validating label {}: {why}", windlass_schema::go_quote(label));
            errors.push(FieldError::invalid(field, part, why));
        }
    };
    check(domain, &names::dns_1123_label);
    check(path, &names::dns_1123_subdomain);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(field, domain, why));
    }
    errors
}

/// Returns the problems of the name of a bundle. The name of a bundle with a signer begins with the name of the signer.
pub(super) fn bundle_name_problems(name: &str, signer: &str) -> Vec<String> {
    if signer.is_empty() {
        if name.contains(':') {
            return vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()];
        }
        return names::subdomain_name(name, false);
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        Some(rest) => names::subdomain_name(rest, false),
        None => {
            vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")]
        }
    }
}

/// Validates annotations that a user passes on to a signer. Each key has a domain.
pub(super) fn validate_annotations(field: &str, annotations: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in annotations.keys().map(|key| key.to_lowercase()) {
        if key.is_empty() {
            errors.push(FieldError::required(field, ""));
            continue;
        }
        let problems = names::label_key(&key);
        if problems.is_empty() && key.split('/').count() != 2 {
            let why = "must be a domain-prefixed key (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid(field, key, why));
        } else {
            errors.extend(invalid_names(field, &key, problems));
        }
    }
    let sizes = annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len));
    if sizes.sum::<usize>() > LARGEST_ANNOTATIONS {
        errors.push(FieldError::too_long(field, LARGEST_ANNOTATIONS));
    }
    errors
}
