//! Admission webhook configurations and admission policies.

mod rule;
mod webhook;

use serde_json::Value;
use windlass_schema::FieldError;

use self::webhook::validate_webhooks;
use super::facts::not_enforced;
use super::fields::list_at;
use super::{Facts, FactsOnly, Generation, Strategy, StrategyContext, Writes, place};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => &Configurations,
        "validatingadmissionpolicies"
        | "mutatingadmissionpolicies"
        | "validatingadmissionpolicybindings"
        | "mutatingadmissionpolicybindings" => &FactsOnly(&POLICIES),
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const CONFIGURATIONS: Facts =
    Facts { generation: Generation::All, unconditional_update: false, ..Facts::SPEC };
const POLICIES: Facts = Facts {
    unconditional_update: false,
    writes: Writes::STATUS_ONLY,
    unenforced: Some("admission policies are not evaluated"),
    ..Facts::SPEC
};

struct Configurations;

impl Strategy for Configurations {
    fn facts(&self) -> &'static Facts {
        &CONFIGURATIONS
    }

    fn warnings(&self, _: &StrategyContext<'_>, object: &Value, _: Option<&Value>) -> Vec<String> {
        let webhooks = list_at(object, "/webhooks").iter();
        let mut conditional = webhooks.filter(|webhook| !list_at(webhook, "/matchConditions").is_empty());
        let why = "matchConditions are not evaluated: a webhook is called for each request that its rules and selectors match";
        conditional.next().map(|_| not_enforced(why)).into_iter().collect()
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let webhooks = object.get("webhooks").unwrap_or(&Value::Null);
        place::validate("webhooks", webhooks, validate_webhooks)
    }
}
