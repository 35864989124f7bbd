//! Reports objects that do not decode into the requested type.

use hashbrown::HashMap;
use k8s_openapi::api::core::v1::ObjectReference;
use kube_core::ApiResource;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use windlass_cache::{DecodeError, RawObject};

use crate::events::{EventType, Recorder};

/// The most objects that are remembered as reported. Beyond that, all are forgotten and may be reported again.
const MOST_REPORTED: usize = 4096;

/// Reports each error of an undecodable object once: a log line, a metric, and an Event on the object.
pub(crate) struct UndecodableReporter {
    recorder: Recorder,
    count: Counter,
    /// The reported error of each object, by uid. An error names the resource version and the field.
    reported: Mutex<HashMap<String, String, foldhash::fast::FixedState>>,
}

impl UndecodableReporter {
    pub(crate) fn new(recorder: Recorder, count: Counter) -> Self {
        Self { recorder, count, reported: Mutex::default() }
    }

    pub(crate) fn report(&self, resource: &ApiResource, object: &RawObject, error: &DecodeError) {
        {
            let mut reported = self.reported.lock();
            if reported.len() >= MOST_REPORTED {
                reported.clear();
            }
            let error = error.to_string();
            if reported.get(object.uid()) == Some(&error) {
                return;
            }
            reported.insert(object.uid().to_owned(), error);
        }
        self.count.inc();
        tracing::error!(kind = resource.kind, object = %object.key(), %error, "an object does not decode, and is not retried until the object or its CRD changes");
        let regarding = ObjectReference {
            api_version: Some(resource.api_version.clone()),
            kind: Some(resource.kind.clone()),
            name: Some(object.name().to_owned()),
            namespace: object.namespace().map(str::to_owned),
            uid: Some(object.uid().to_owned()),
            resource_version: Some(object.resource_version().to_owned()),
            ..ObjectReference::default()
        };
        self.recorder.event(EventType::Warning, regarding, "FailedDecode", error.to_string());
    }
}
