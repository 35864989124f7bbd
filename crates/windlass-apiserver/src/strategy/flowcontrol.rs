//! Flow schemas and priority levels.

use super::{Facts, FactsOnly, Strategy, Writes};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "flowschemas" | "prioritylevelconfigurations" => &FactsOnly(&FLOW_CONTROL),
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const FLOW_CONTROL: Facts = Facts {
    writes: Writes::STATUS_ONLY,
    unenforced: Some("requests are neither queued nor limited"),
    ..Facts::SPEC
};
