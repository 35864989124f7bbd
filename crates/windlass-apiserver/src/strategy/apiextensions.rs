//! CustomResourceDefinitions.

use serde_json::Value;
use windlass_schema::{FieldError, go_quote};

use super::{Facts, FactsOnly, Generation, Strategy, StrategyContext};
use crate::crd::{self, CLEANUP_FINALIZER, set_condition};
use crate::meta;
use crate::wire::ApiError;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "customresourcedefinitions" => &Definitions,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const FACTS: Facts = Facts { unconditional_update: false, generation: Generation::All, ..Facts::SPEC };

struct Definitions;

impl Strategy for Definitions {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn default(&self, object: &mut Value) {
        crd::default(object);
    }

    fn prepare_create(&self, _cx: &StrategyContext<'_>, object: &mut Value) -> Result<(), ApiError> {
        crd::prepare_create(object);
        Ok(())
    }

    fn validate_create(&self, _cx: &StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        crd::validate_create(object)
    }

    fn prepare_update(
        &self,
        cx: &StrategyContext<'_>,
        object: &mut Value,
        old: &Value,
    ) -> Result<(), ApiError> {
        if cx.subresource.is_empty() {
            crd::prepare_update(object, old);
        }
        Ok(())
    }

    fn validate_update(&self, cx: &StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if cx.subresource.is_empty() { crd::validate_update(object, old) } else { Vec::new() }
    }

    fn warnings(&self, cx: &StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        if !cx.subresource.is_empty() {
            return warnings;
        }
        let known = old.map(crd::unknown_formats).unwrap_or_default();
        let formats = crd::unknown_formats(object).into_iter().filter(|format| !known.contains(format));
        warnings.extend(formats.map(|format| format!("unrecognized format {}", go_quote(&format))));
        warnings
    }

    fn prepare_delete(&self, cx: &StrategyContext<'_>, object: &mut Value) -> Result<bool, ApiError> {
        if !meta::is_deleting(object) {
            let mut finalizers: Vec<String> = meta::finalizers(object).map(str::to_owned).collect();
            if !finalizers.iter().any(|finalizer| finalizer == CLEANUP_FINALIZER) {
                finalizers.push(CLEANUP_FINALIZER.to_owned());
            }
            meta::set_finalizers(object, &finalizers);
            let message =
                "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
            set_condition(
                object,
                "Terminating",
                true,
                "InstanceDeletionPending",
                message,
                &cx.env.now_rfc3339(),
            );
        }
        Ok(true)
    }
}
