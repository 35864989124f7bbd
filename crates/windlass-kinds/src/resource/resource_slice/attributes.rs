//! Validation of the attributes of devices.

use crate::field::{Errors, Field};

/// The longest value of an attribute, in bytes.
const LONGEST_VALUE: usize = 64;

/// The fields that may have the value of an attribute. Lists of values belong to a feature that is off by default.
const VALUES: [&str; 4] = ["int", "bool", "string", "version"];

const ALL: &str = "`int`, `bool`, `string`, `version`, `ints`, `bools`, `strings`, `versions`";

/// Validates an attribute: one value.
pub(super) fn attribute(attribute: &Field<'_>, errors: &mut Errors) {
    let (text, version) = (attribute.at("string"), attribute.at("version"));
    check_length(&text, errors);
    if version.is_set() {
        if !is_semantic_version(version.text()) {
            errors.push(version.invalid("must be a string compatible with semver.org spec 2.0.0"));
        }
        check_length(&version, errors);
    }
    let set: Vec<&str> = VALUES.into_iter().filter(|name| attribute.at(name).is_set()).collect();
    let error = match set.as_slice() {
        [] => attribute.invalid_as("", format!("must specify one of: {ALL}")),
        [_] => return,
        _ => attribute
            .invalid_as(format!("{{{}}}", set.join(", ")), format!("must specify exactly one of: {ALL}")),
    };
    errors.declared(|errors| errors.push(error));
}

fn check_length(text: &Field<'_>, errors: &mut Errors) {
    if text.text().len() > LONGEST_VALUE {
        errors.push(text.too_long(LONGEST_VALUE));
    }
}

/// Returns whether a text is a version as semver.org describes versions: `1.2.3-alpha.1+build`.
fn is_semantic_version(text: &str) -> bool {
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, label) = text.split_once('-').map_or((text, None), |(core, label)| (core, Some(label)));
    let is_number = |part: &str| {
        part == "0"
            || (!part.starts_with('0') && !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let has_letter = |part: &str| part.bytes().any(|byte| !byte.is_ascii_digit());
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && label.is_none_or(|label| {
            label.split('.').all(|part| is_word(part) && (has_letter(part) || is_number(part)))
        })
        && build.is_none_or(|build| build.split('.').all(is_word))
}
