//! The names of the requests of a claim.

use std::collections::{BTreeMap, BTreeSet};

use windlass_wire::names;

use crate::field::{Errors, Field};
use crate::resource::limits::{distinct_texts, is_beyond};

/// The largest number of requests.
pub(super) const MOST_REQUESTS: usize = 32;

const UNKNOWN: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// The names of the requests of a claim, with the names of the alternatives of each request.
pub(super) struct RequestNames<'a>(BTreeMap<&'a str, BTreeSet<&'a str>>);

impl<'a> RequestNames<'a> {
    /// Returns the names of the requests in the devices of a claim.
    pub(super) fn of(devices: &Field<'a>) -> Self {
        let alternatives = |request: &Field<'a>| {
            request.at("firstAvailable").items().map(|alternative| alternative.at("name").text()).collect()
        };
        let requests = devices.at("requests").items();
        Self(requests.map(|request| (request.at("name").text(), alternatives(&request))).collect())
    }

    fn has(&self, name: &str) -> bool {
        match name.split_once('/') {
            None => self.0.contains_key(name),
            Some((request, rest)) => self.0.get(request).is_some_and(|names| names.contains(rest)),
        }
    }

    /// Validates a reference to a request, or to an alternative of a request.
    pub(super) fn check(&self, name: &Field<'_>, errors: &mut Errors) {
        let parts: Vec<&str> = name.text().split('/').collect();
        if parts.len() > 2 {
            errors.push(name.invalid_as(name.text(), UNKNOWN));
            return;
        }
        for part in parts {
            let problems = names::dns_1123_label(part).into_iter();
            errors.extend(problems.map(|why| name.invalid_as(part, why)));
        }
        if !self.has(name.text()) {
            errors.push(name.invalid_as(name.text(), UNKNOWN));
        }
    }

    /// Validates a list of references.
    pub(super) fn check_all(&self, list: &Field<'_>, errors: &mut Errors) {
        if !is_beyond(list, MOST_REQUESTS, errors) {
            errors.declared(|errors| distinct_texts(list, errors));
            list.items().for_each(|name| self.check(&name, errors));
        }
    }
}
