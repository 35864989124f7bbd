//! Validation of projected volumes.

use std::collections::BTreeSet;

use super::volumes::validate_downward_file;
use crate::field::{Errors, Field};
use crate::selector::label_selector;
use crate::signer_name;
use crate::volume::source::{descending_unreserved, file_mode, key_to_path};

/// The sources of files.
const SOURCES: [&str; 6] =
    ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];

/// The types of the keys of pods.
const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

/// The shortest life of the certificate of a pod, in seconds: an hour.
const SHORTEST: i64 = 60 * 60;
/// The longest life of a certificate by a signer of Kubernetes, in seconds: a day.
const LONGEST_OF_KUBERNETES: i64 = 24 * 60 * 60;
/// The longest life of a certificate by another signer, in seconds: 91 days.
const LONGEST: i64 = 91 * 24 * 60 * 60;

/// Validates a projected volume.
pub(crate) fn validate(volume: &Field<'_>, errors: &mut Errors) {
    file_mode(&volume.at("defaultMode"), errors);
    let mut paths = Paths { volume, seen: BTreeSet::new() };
    for source in volume.at("sources").items() {
        validate_source(&source, &mut paths, errors);
        if SOURCES.iter().filter(|name| source.at(name).is_set()).count() > 1 {
            errors.push(source.forbidden("may not specify more than 1 volume type per source"));
        }
    }
}

/// The paths of the files so far.
struct Paths<'a, 'b> {
    volume: &'b Field<'a>,
    seen: BTreeSet<&'a str>,
}

impl<'a> Paths<'a, '_> {
    /// Reports a path that another file has. `shown` is the value in the error.
    fn add(&mut self, path: &'a str, shown: &str, errors: &mut Errors) {
        if !self.seen.insert(path) {
            errors.push(self.volume.invalid_as(shown, "conflicting duplicate paths"));
        }
    }

    fn add_if_any(&mut self, path: &'a str, shown: &str, errors: &mut Errors) {
        if !path.is_empty() {
            self.add(path, shown, errors);
        }
    }
}

fn validate_source<'a>(source: &Field<'a>, paths: &mut Paths<'a, '_>, errors: &mut Errors) {
    for name in ["secret", "configMap"] {
        let keys = source.at(name);
        if keys.is_set() {
            let name = keys.at("name");
            name.require(errors);
            for item in keys.at("items").items() {
                key_to_path(&item, errors);
                paths.add_if_any(item.at("path").text(), name.text(), errors);
            }
        }
    }
    let fields = source.at("downwardAPI");
    for item in fields.at("items").items() {
        validate_downward_file(&item.at_path_of(&fields), errors);
        let path = item.at("path").text();
        paths.add_if_any(path, path, errors);
    }
    let token = source.at("serviceAccountToken");
    if token.is_set() {
        validate_token(&token, paths.volume, errors);
    }
    let bundle = source.at("clusterTrustBundle");
    if bundle.is_set() {
        validate_bundle(&bundle, paths, errors);
    }
    let certificate = source.at("podCertificate");
    if certificate.is_set() {
        validate_certificate(&certificate, paths, errors);
    }
}

/// Validates the certificates of trusted authorities: of one bundle, or of all bundles of a signer.
fn validate_bundle<'a>(bundle: &Field<'a>, paths: &mut Paths<'a, '_>, errors: &mut Errors) {
    let (name, signer, selector) = (bundle.at("name"), bundle.at("signerName"), bundle.at("labelSelector"));
    match (name.is_set(), signer.is_set()) {
        (true, true) => errors.push(bundle.invalid("only one of name and signerName may be used")),
        (true, false) => {
            if name.text().is_empty() {
                errors.push(name.required("must be a valid object name"));
            }
            let owner = name.text().rsplit_once(':').map(|(owner, _)| owner.replace(':', "/"));
            for problem in signer_name::bundle_name_problems(name.text(), &owner.unwrap_or_default()) {
                errors.push(name.invalid(format!("not a valid clustertrustbundlename: {problem}")));
            }
            if selector.is_set() {
                errors.push(selector.invalid("labelSelector must be unset if name is specified"));
            }
        }
        (false, true) => {
            if signer.text().is_empty() {
                errors.push(signer.required("must be a valid signer name"));
            }
            errors.extend(signer_name::validate(signer.path(), signer.text()));
            label_selector(&selector, errors);
        }
        (false, false) => errors.push(bundle.required("either name or signerName must be specified")),
    }
    let path = bundle.at("path");
    path.require(errors);
    descending_unreserved(&path, errors);
    paths.add(path.text(), path.text(), errors);
}

/// Validates the key and the certificate of a pod.
fn validate_certificate<'a>(certificate: &Field<'a>, paths: &mut Paths<'a, '_>, errors: &mut Errors) {
    let signer = certificate.at("signerName");
    errors.extend(signer_name::validate(signer.path(), signer.text()));
    let annotations = certificate.at("userAnnotations");
    if let Some(map) = annotations.map() {
        errors.extend(signer_name::validate_annotations(annotations.path(), map));
    }
    let key_type = certificate.at("keyType");
    if !KEY_TYPES.contains(&key_type.text()) {
        errors.push(key_type.unsupported_text(key_type.text(), &KEY_TYPES));
    }
    validate_life(&certificate.at("maxExpirationSeconds"), signer.text(), errors);
    let mut has_file = false;
    for file in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let file = certificate.at(file);
        if !file.text().is_empty() {
            has_file = true;
            descending_unreserved(&file, errors);
            paths.add(file.text(), file.text(), errors);
        }
    }
    if !has_file {
        let detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.push(certificate.required(detail));
    }
}

/// Validates the wanted life of a certificate. A signer of Kubernetes grants a day at most.
fn validate_life(seconds: &Field<'_>, signer: &str, errors: &mut Errors) {
    let longest = if signer_name::is_of_kubernetes(signer) { LONGEST_OF_KUBERNETES } else { LONGEST };
    if seconds.is_set() && seconds.int() < SHORTEST {
        errors.push(seconds.invalid(format!("if provided, maxExpirationSeconds must be >= {SHORTEST}")));
    }
    if seconds.int() > longest {
        errors.push(seconds.invalid(format!("if provided, maxExpirationSeconds must be <= {longest}")));
    }
}

fn validate_token(token: &Field<'_>, volume: &Field<'_>, errors: &mut Errors) {
    let seconds = token.at("expirationSeconds");
    if seconds.int() < 600 {
        errors.push(seconds.invalid_as(seconds.int(), "may not specify a duration less than 10 minutes"));
    }
    if seconds.int() > 1 << 32 {
        errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
    }
    let path = token.at("path").at_path_of(&volume.report_at("path"));
    if !path.require(errors) {
        descending_unreserved(&path, errors);
    }
}
