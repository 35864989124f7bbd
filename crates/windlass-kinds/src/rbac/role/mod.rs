//! Roles.

mod validate;

use serde_json::Value;
use windlass_wire::ApiError;

use super::{CONFIG, escalation};
use crate::kind::{Admission, Kind, WriteContext};

pub(crate) static ROLES: Kind = roles(&Roles { cluster: false });

pub(crate) static CLUSTER_ROLES: Kind = roles(&Roles { cluster: true });

const fn roles(roles: &'static Roles) -> Kind {
    Kind { validate: roles, admission: roles, ..Kind::new(CONFIG) }
}

struct Roles {
    cluster: bool,
}

impl Admission for Roles {
    fn authorize(&self, cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
        let resource = if self.cluster { "clusterroles" } else { "roles" };
        escalation::of_role(cx, resource, object, old)
    }
}
