//! Names of drivers, pools, requests and attributes.

use windlass_wire::names;

use crate::field::{Errors, Field};

/// The longest name of a pool, in bytes.
const LONGEST_POOL: usize = 253;
/// The longest name of a driver, and the longest domain of an attribute.
const LONGEST_DOMAIN: usize = 63;
/// The longest name of an attribute without the domain, in bytes.
const LONGEST_ATTRIBUTE: usize = 32;

/// Checks a subdomain, where kube-apiserver declares the rule in its types.
pub(super) fn declared_subdomain(name: &str) -> Vec<String> {
    in_bytes(names::dns_1123_subdomain(name))
}

/// Checks a label, where kube-apiserver declares the rule in its types.
pub(super) fn declared_label(name: &str) -> Vec<String> {
    in_bytes(names::dns_1123_label(name))
}

/// Returns the problems of a name with the longest length in bytes.
fn in_bytes(problems: Vec<String>) -> Vec<String> {
    let is_length = |problem: &str| problem.starts_with("must be no more than");
    let counted = |problem: String| {
        if is_length(&problem) { problem.replace("characters", "bytes") } else { problem }
    };
    problems.into_iter().map(counted).collect()
}

/// Validates the name of a pool: subdomains with slashes in between.
pub(super) fn pool(pool: &Field<'_>, errors: &mut Errors) {
    if pool.require(errors) {
        return;
    }
    if pool.text().len() > LONGEST_POOL {
        errors.push(pool.too_long(LONGEST_POOL));
    }
    for part in pool.text().split('/') {
        errors.extend(names::dns_1123_subdomain(part).into_iter().map(|why| pool.invalid_as(part, why)));
    }
}

/// Works like [`pool`], where kube-apiserver declares the rule in its types. The texts differ.
pub(super) fn declared_pool(pool: &Field<'_>, errors: &mut Errors) {
    if pool.require(errors) {
        return;
    }
    if pool.text().len() > LONGEST_POOL {
        errors.push(pool.too_long(LONGEST_POOL));
    }
    for (index, part) in pool.text().split('/').enumerate() {
        if part.is_empty() {
            errors.push(pool.invalid(format!("segment {index}: must not be empty")));
            continue;
        }
        let problems = declared_subdomain(part).into_iter();
        errors.extend(problems.map(|why| pool.invalid_as(part, format!("segment {index}: {why}"))));
    }
}

/// Validates the name of a driver, where kube-apiserver declares the rule in its types.
pub(super) fn declared_driver(driver: &Field<'_>, errors: &mut Errors) {
    if driver.require(errors) {
        return;
    }
    driver.check(names::dns_1123_subdomain_caseless, errors);
    if driver.text().chars().count() > LONGEST_DOMAIN {
        errors.push(driver.too_long_characters(LONGEST_DOMAIN));
    }
}

/// Validates the name of an attribute or a capacity, which may have a domain.
pub(super) fn qualified(name: &Field<'_>, errors: &mut Errors) {
    match *name.text().split('/').collect::<Vec<_>>() {
        [identifier] => check_identifier(name, identifier, errors),
        [domain, identifier] => {
            if domain.is_empty() {
                errors.push(name.invalid_as("", "the domain must not be empty"));
            } else {
                check_domain(name, domain, errors);
            }
            if identifier.is_empty() {
                errors.push(name.invalid_as("", "the name must not be empty"));
            } else {
                check_identifier(name, identifier, errors);
            }
        }
        _ => {}
    }
}

fn check_domain(name: &Field<'_>, domain: &str, errors: &mut Errors) {
    if domain.len() > LONGEST_DOMAIN {
        errors.push(name.too_long(LONGEST_DOMAIN));
    }
    let problems = names::dns_1123_subdomain(&domain.to_lowercase()).into_iter();
    errors.extend(problems.map(|why| name.invalid_as(domain, why)));
}

fn check_identifier(name: &Field<'_>, identifier: &str, errors: &mut Errors) {
    if identifier.len() > LONGEST_ATTRIBUTE {
        errors.push(name.too_long(LONGEST_ATTRIBUTE));
    }
    errors.extend(names::c_identifier(identifier).into_iter().map(|why| name.invalid_as(identifier, why)));
}

/// Validates the name of an attribute with a domain, where kube-apiserver declares the rule in its types.
pub(super) fn fully_qualified(name: &Field<'_>, errors: &mut Errors) {
    match *name.text().split('/').collect::<Vec<_>>() {
        [identifier] => {
            check_identifier(name, identifier, errors);
            let detail = "a fully qualified name must be a domain and a name separated by a slash";
            errors.push(name.invalid(detail));
        }
        [domain, identifier] => {
            if domain.is_empty() {
                errors.push(name.invalid_as("", "prefix must not be empty"));
            } else {
                check_prefix(name, domain, errors);
            }
            if identifier.is_empty() {
                errors.push(name.invalid_as("", "name must not be empty"));
            } else {
                check_identifier(name, identifier, errors);
            }
        }
        _ => {}
    }
}

fn check_prefix(name: &Field<'_>, prefix: &str, errors: &mut Errors) {
    if prefix.len() > LONGEST_DOMAIN {
        errors.push(name.too_long(LONGEST_DOMAIN));
    }
    let problems = declared_subdomain(prefix).into_iter();
    errors.extend(problems.map(|why| name.invalid_as(prefix, format!("prefix: {why}"))));
}

/// Validates the identity of a share of a device: a UUID in lower case.
pub(super) fn share_id(id: &Field<'_>, errors: &mut Errors) {
    let bytes = id.text().as_bytes();
    let fits = |(index, byte): (usize, &u8)| match index {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
    };
    if id.is_set() && !(bytes.len() == 36 && bytes.iter().enumerate().all(fits)) {
        errors.push(id.invalid("must be a lowercase UUID in 8-4-4-4-12 format"));
    }
}
