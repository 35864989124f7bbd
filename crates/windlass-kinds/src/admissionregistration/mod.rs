//! Admission webhook configurations and admission policies.

mod binding;
mod expression;
mod policy;
mod resources;
mod rights;
mod rule;
mod table;
mod webhook;

use serde_json::{Value, json};
use windlass_schema::FieldError;
use windlass_store::object_meta as meta;
use windlass_wire::ApiError;

use self::webhook::validate_webhooks;
use crate::checks::conditions;
use crate::field;
use crate::json::list_at;
use crate::kind::{AdmittedBy, Generation, Kind, KindConfig, Prepare, Validate, WriteContext, Writes};
use crate::subresource::Subresource;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[
    (MUTATING, &MUTATING_POLICIES),
    ("mutatingadmissionpolicybindings", &MUTATING_BINDINGS),
    ("mutatingwebhookconfigurations", &WEBHOOKS),
    (VALIDATING, &VALIDATING_POLICIES),
    ("validatingadmissionpolicybindings", &VALIDATING_BINDINGS),
    ("validatingwebhookconfigurations", &WEBHOOKS),
];

const GROUP: &str = "admissionregistration.k8s.io";
const MUTATING: &str = "mutatingadmissionpolicies";
const VALIDATING: &str = "validatingadmissionpolicies";

static WEBHOOKS: Kind = Kind { validate: &Configurations, table: &table::WEBHOOKS, ..Kind::new(CONFIG) };
static MUTATING_POLICIES: Kind = Kind {
    prepare: &Policies(policy::mutating),
    validate: &Policies(policy::mutating),
    table: &table::MUTATING_POLICIES,
    ..Kind::new(MUTATING_CONFIG)
};
static VALIDATING_POLICIES: Kind = Kind {
    prepare: &Policies(policy::validating),
    validate: &Policies(policy::validating),
    table: &table::VALIDATING_POLICIES,
    ..Kind::new(POLICIES)
};
static MUTATING_BINDINGS: Kind = Kind {
    validate: &Bindings { policies: MUTATING, validate: binding::mutating },
    table: &table::POLICY_BINDINGS,
    ..Kind::new(MUTATING_CONFIG)
};
static VALIDATING_BINDINGS: Kind = Kind {
    validate: &Bindings { policies: VALIDATING, validate: binding::validating },
    table: &table::POLICY_BINDINGS,
    ..Kind::new(POLICIES)
};

/// Webhooks do not see webhooks, so that a broken webhook can be removed.
const CONFIG: KindConfig = KindConfig {
    generation: Generation::All,
    unconditional_update: false,
    admitted_by: AdmittedBy::Policies,
    ..KindConfig::SPEC
};
/// Neither webhooks nor policies see policies, so that a broken policy can be removed.
const POLICIES: KindConfig = KindConfig {
    unconditional_update: false,
    writes: Writes::STATUS_ONLY,
    admitted_by: AdmittedBy::None,
    ..KindConfig::SPEC
};
/// Kinds that the real server stores in another version.
const MUTATING_CONFIG: KindConfig = KindConfig { stored_in_version: Some("v1beta1"), ..POLICIES };

struct Configurations;

/// Returns the error of a name that only manifests of the server may have.
fn reserved_name(object: &Value) -> Option<FieldError> {
    let name = meta::name(object);
    let why = "names ending with \".static.k8s.io\" are reserved for static manifest-based configurations and cannot be managed via the API";
    name.ends_with(".static.k8s.io").then(|| FieldError::invalid("metadata.name", name, why))
}

impl Validate for Configurations {
    fn validate_create(&self, _: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = self.validate(object);
        errors.extend(reserved_name(object));
        errors
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        validate_configuration(object, false)
    }

    fn validate_update(&self, _: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let conditions = |configuration: &'_ Value| -> Vec<Value> {
            let webhooks = list_at(configuration, "/webhooks").iter();
            webhooks.map(|webhook| webhook["matchConditions"].clone()).collect()
        };
        validate_configuration(object, conditions(object) == conditions(old))
    }

    fn warnings(&self, _: &WriteContext<'_>, object: &Value, _: Option<&Value>) -> Vec<String> {
        let webhooks = object.get("webhooks").unwrap_or(&Value::Null);
        field::validate("webhooks", webhooks, rule::without_effect)
    }
}

/// Validates a configuration. An update may keep match conditions that are not valid.
fn validate_configuration(object: &Value, keeps_conditions: bool) -> Vec<FieldError> {
    let webhooks = object.get("webhooks").unwrap_or(&Value::Null);
    field::validate("webhooks", webhooks, |webhooks, errors| {
        validate_webhooks(webhooks, keeps_conditions, errors);
    })
}

/// Policies, with the function that validates a policy that replaces another policy.
struct Policies(fn(&Value, Option<&Value>) -> Vec<FieldError>);

impl Prepare for Policies {
    fn prepare_create(&self, _: &WriteContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        if let Some(status) = object.get_mut("status") {
            *status = json!({});
        }
        Ok(())
    }
}

impl Validate for Policies {
    fn validate_create(&self, cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = (self.0)(object, None);
        errors.extend(reserved_name(object));
        if errors.is_empty() { rights::of_policy(cx, object, None) } else { errors }
    }

    fn validate_status(&self, object: &Value, _: &Value) -> Vec<FieldError> {
        let status = object.get("status").unwrap_or(&Value::Null);
        field::validate("status", status, |status, errors| conditions(&status.at("conditions"), errors))
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if *cx.subresource == Subresource::Status {
            return self.validate_status(object, old);
        }
        let errors = (self.0)(object, Some(old));
        if errors.is_empty() { rights::of_policy(cx, object, Some(old)) } else { errors }
    }
}

/// Bindings of policies.
struct Bindings {
    /// The resource of the policies.
    policies: &'static str,
    /// Validates a binding.
    validate: fn(&Value) -> Vec<FieldError>,
}

impl Bindings {
    fn validate_written(&self, cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        let errors = (self.validate)(object);
        if errors.is_empty() { rights::of_binding(cx, object, self.policies) } else { errors }
    }
}

impl Validate for Bindings {
    fn validate_create(&self, cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_written(cx, object);
        errors.extend(reserved_name(object));
        errors
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, _: &Value) -> Vec<FieldError> {
        self.validate_written(cx, object)
    }
}
