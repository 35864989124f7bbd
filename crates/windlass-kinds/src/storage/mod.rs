//! Storage classes, volume attributes classes, and the objects of CSI drivers.

mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

use crate::kind::{Kind, KindConfig};

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[
    ("csidrivers", &csi_driver::KIND),
    ("csinodes", &csi_node::KIND),
    ("csistoragecapacities", &csi_storage_capacity::KIND),
    ("storageclasses", &storage_class::KIND),
    ("volumeattachments", &volume_attachment::KIND),
    ("volumeattributesclasses", &volume_attributes_class::KIND),
];

const CLASSES: KindConfig = KindConfig { returns_deleted_object: true, ..KindConfig::DATA };

const DRIVERS: KindConfig = KindConfig {
    unconditional_update: false,
    returns_deleted_object: true,
    unsupported: Some(
        "no CSI driver is called: simulated pods use volumes without attaching or mounting the volumes",
    ),
    ..KindConfig::DATA
};
