//! Validation of projected volumes.

use std::collections::BTreeSet;

use super::volumes::validate_downward_file;
use crate::field::{Errors, Field};
use crate::volume::source::{descending_unreserved, file_mode, key_to_path};

/// The sources of files. Sources of certificates are features that are off by default.
const SOURCES: [&str; 4] = ["secret", "configMap", "downwardAPI", "serviceAccountToken"];

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
