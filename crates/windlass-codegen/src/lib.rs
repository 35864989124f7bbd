//! Generators: from what an operator declares to the files of its project.
//!
//! - [`Inventory`]: what an operator declares. Its hidden command `manifests` prints it as JSON.
#![forbid(unsafe_code)]

mod inventory;

pub use self::inventory::{
    CertificateOrigin, ControllerItem, ConversionItem, ElectionItem, Inventory, MetricsItem, Rights,
    ServiceItem, WatchItem, WebhooksItem,
};
