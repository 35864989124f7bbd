//! API services.

use serde_json::Value;

use super::facts::not_enforced;
use super::{Facts, FactsOnly, Strategy, StrategyContext, Writes};
use crate::wire::names;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "apiservices" => &ApiServices,
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const FACTS: Facts = Facts {
    name: names::path_segment_name,
    unconditional_update: false,
    writes: Writes::STATUS_ONLY,
    ..Facts::DATA
};

struct ApiServices;

impl Strategy for ApiServices {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn warnings(&self, cx: &StrategyContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let has_service = object.pointer("/spec/service").is_some_and(|service| !service.is_null());
        if cx.subresource.is_empty() && has_service {
            vec![not_enforced("requests are not passed on to the service")]
        } else {
            Vec::new()
        }
    }
}
