//! API services.

use super::{Facts, FactsOnly, Strategy};
use crate::wire::names;

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "apiservices" => &FactsOnly(&API_SERVICES),
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const API_SERVICES: Facts =
    Facts { name: names::path_segment_name, unconditional_update: false, ..Facts::DATA };
