//! What follows from a written object: definitions change what is served.

use std::sync::Arc;

use serde_json::Value;

use crate::api::Api;
use crate::resource::Resource;

impl Api {
    /// Serves the definitions that the store holds already.
    pub(crate) fn load_definitions(self: &Arc<Self>) {}

    /// Called after every write, with the object written (the last one, if it was removed).
    pub(crate) fn committed(self: &Arc<Self>, _resource: &Resource, _object: &Value) {}
}
