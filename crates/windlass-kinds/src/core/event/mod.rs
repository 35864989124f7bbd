//! Events. The core group and `events.k8s.io` show the same objects with different names for some fields.

mod convert;
mod table;
mod validate;

use std::time::Duration;

use crate::kind::{IfEmpty, Kind, KindConfig};

pub(crate) static KIND: Kind =
    Kind { validate: &Events, convert: convert::convert, table: &table::TABLE, ..Kind::new(CORE) };

/// Events in the group `events.k8s.io`.
pub(crate) static NEW: Kind = Kind { config: EVENTS_GROUP, ..KIND };

/// The time that an event is kept after its last write: the default of `--event-ttl`.
const TTL: Duration = Duration::from_secs(3600);

const CORE: KindConfig = KindConfig {
    create_on_update: true,
    ttl: Some(TTL),
    selectable: &[
        ("involvedObject.kind", "/involvedObject/kind"),
        ("involvedObject.namespace", "/involvedObject/namespace"),
        ("involvedObject.name", "/involvedObject/name"),
        ("involvedObject.uid", "/involvedObject/uid"),
        ("involvedObject.apiVersion", "/involvedObject/apiVersion"),
        ("involvedObject.resourceVersion", "/involvedObject/resourceVersion"),
        ("involvedObject.fieldPath", "/involvedObject/fieldPath"),
        ("reason", "/reason"),
        ("reportingComponent", "/reportingComponent"),
        ("source", "/source/component"),
        ("type", "/type"),
    ],
    // The reporter stands in for a missing source.
    selectable_if_empty: &[("source", IfEmpty::Field("reportingComponent"))],
    ..KindConfig::DATA
};

const EVENTS_GROUP: KindConfig = KindConfig {
    stored_in_group: Some(""),
    selectable: &[
        ("regarding.kind", "/regarding/kind"),
        ("regarding.namespace", "/regarding/namespace"),
        ("regarding.name", "/regarding/name"),
        ("regarding.uid", "/regarding/uid"),
        ("regarding.apiVersion", "/regarding/apiVersion"),
        ("regarding.resourceVersion", "/regarding/resourceVersion"),
        ("regarding.fieldPath", "/regarding/fieldPath"),
        ("reason", "/reason"),
        ("reportingController", "/reportingController"),
        ("type", "/type"),
    ],
    selectable_if_empty: &[],
    ..CORE
};

struct Events;
