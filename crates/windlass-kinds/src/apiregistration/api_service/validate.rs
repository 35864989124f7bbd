//! Validation and warnings.

use serde_json::Value;

use super::ApiServices;
use crate::kind::{Validate, WriteContext, not_enforced};

impl Validate for ApiServices {
    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let has_service = object.pointer("/spec/service").is_some_and(|service| !service.is_null());
        if cx.subresource.is_empty() && has_service {
            vec![not_enforced("requests are not passed on to the service")]
        } else {
            Vec::new()
        }
    }
}
