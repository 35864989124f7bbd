//! IP addresses.

mod table;
mod validate;

use crate::addresses;
use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind = Kind { validate: &Addresses, table: &table::TABLE, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig {
    name: addresses::address_name,
    unsupported: Some("the address is not reserved for a service"),
    ..KindConfig::DATA
};

struct Addresses;
