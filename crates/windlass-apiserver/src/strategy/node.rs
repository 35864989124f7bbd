//! Runtime classes.

use super::{Facts, FactsOnly, Strategy};

pub(super) fn of(resource: &str) -> &'static dyn Strategy {
    match resource {
        "runtimeclasses" => &FactsOnly(&RUNTIME_CLASSES),
        _ => &FactsOnly(&Facts::SPEC),
    }
}

const RUNTIME_CLASSES: Facts = Facts {
    create_on_update: true,
    unconditional_update: false,
    unenforced: Some("pods get neither overhead nor scheduling constraints from the class"),
    ..Facts::DATA
};
