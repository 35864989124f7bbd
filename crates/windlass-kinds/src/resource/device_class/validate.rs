//! Validation.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::Classes;
use crate::field::{self, Errors, Field};
use crate::kind::{Validate, WriteContext};
use crate::resource::configuration::{MOST_CONFIGURATIONS, configuration};
use crate::resource::limits::is_beyond;
use crate::resource::selectors::selectors;

impl Validate for Classes {
    fn validate_create(&self, _: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        spec_errors(object, None)
    }

    fn validate_update(&self, _: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        spec_errors(object, Some(old))
    }
}

fn spec_errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let keeps = |name: &str| old.is_some_and(|old| old["spec"].get(name) == object["spec"].get(name));
    field::validate("spec", &object["spec"], |spec, errors| {
        selectors(&spec.at("selectors"), keeps("selectors"), errors);
        let list = spec.at("config");
        if !is_beyond(&list, MOST_CONFIGURATIONS, errors) {
            list.items().for_each(|item| configuration(&item, keeps("config"), errors));
        }
        let name = spec.at("extendedResourceName");
        if name.is_set() {
            errors.declared(|errors| extended_resource(&name, errors));
        }
    })
}

/// Validates the name of an extended resource.
fn extended_resource(name: &Field<'_>, errors: &mut Errors) {
    let text = name.text();
    if !text.contains('/') {
        errors.push(name.invalid("a name must be a domain-prefixed path, such as 'example.com/my-prop'"));
    } else if text.contains("kubernetes.io/") {
        errors.push(name.invalid("must not have \"kubernetes.io/\" domain"));
    }
    if text.starts_with("requests.") {
        errors.push(name.invalid("must not have \"requests.\" prefix"));
    }
    // The name in quotas.
    name.check(|text| names::label_key(&format!("requests.{text}")), errors);
}
