//! Admission webhook configurations and admission policies.

mod rule;
mod table;
mod webhook;

use serde_json::Value;
use windlass_schema::FieldError;

use self::webhook::validate_webhooks;
use crate::field;
use crate::json::list_at;
use crate::kind::{Generation, Kind, KindConfig, Validate, WriteContext, Writes, not_enforced};

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[
    ("mutatingadmissionpolicies", &MUTATING_POLICIES),
    ("mutatingadmissionpolicybindings", &POLICY_BINDINGS),
    ("mutatingwebhookconfigurations", &WEBHOOKS),
    ("validatingadmissionpolicies", &VALIDATING_POLICIES),
    ("validatingadmissionpolicybindings", &POLICY_BINDINGS),
    ("validatingwebhookconfigurations", &WEBHOOKS),
];

static WEBHOOKS: Kind = Kind { validate: &Configurations, table: &table::WEBHOOKS, ..Kind::new(CONFIG) };
static MUTATING_POLICIES: Kind = Kind { table: &table::MUTATING_POLICIES, ..Kind::new(POLICIES) };
static VALIDATING_POLICIES: Kind = Kind { table: &table::VALIDATING_POLICIES, ..Kind::new(POLICIES) };
static POLICY_BINDINGS: Kind = Kind { table: &table::POLICY_BINDINGS, ..Kind::new(POLICIES) };

const CONFIG: KindConfig =
    KindConfig { generation: Generation::All, unconditional_update: false, ..KindConfig::SPEC };

const POLICIES: KindConfig = KindConfig {
    unconditional_update: false,
    writes: Writes::STATUS_ONLY,
    unsupported: Some("admission policies are not evaluated"),
    ..KindConfig::SPEC
};

struct Configurations;

impl Validate for Configurations {
    fn warnings(&self, _: &WriteContext<'_>, object: &Value, _: Option<&Value>) -> Vec<String> {
        let webhooks = list_at(object, "/webhooks").iter();
        let mut conditional = webhooks.filter(|webhook| !list_at(webhook, "/matchConditions").is_empty());
        let why = "matchConditions are not evaluated: a webhook is called for each request that its rules and selectors match";
        conditional.next().map(|_| not_enforced(why)).into_iter().collect()
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let webhooks = object.get("webhooks").unwrap_or(&Value::Null);
        field::validate("webhooks", webhooks, validate_webhooks)
    }
}
