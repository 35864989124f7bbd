//! Options of a cache.

use kube_core::ApiResource;
use windlass_cache::{
    IndexFn, InformerOptions, ObjectEncoding, RawObject, ReflectorConfig, ScanOptions, Selector,
    StoreOptions, Transform,
};

use crate::{read_your_writes::Admission, resource_path::GroupResource};

/// Options of the cache of a kind: the watched objects, and the form in which the cache keeps the objects.
///
/// Users of a kind with equal namespaces and selectors share one watch, which has the options of the first user. The options of a later
/// user must agree with the options of the watch: `transform` and `keep_managed_fields` must be equal; any other option that the later user
/// does not set agrees with any value.
///
/// ```
/// use windlass_runtime::informer::{IndexFn, CacheOptions};
///
/// # fn example() -> Result<CacheOptions, Box<dyn std::error::Error>> {
/// let options = CacheOptions::new()
///     .namespaces(["default", "kube-system"])
///     .label_selector("app=web".parse()?)
///     .index("node", IndexFn::field("spec.nodeName".parse()?));
/// # Ok(options) }
/// # example().unwrap();
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CacheOptions {
    /// The namespaces to watch. Default: the manager's namespaces, or all.
    pub namespaces: Vec<String>,
    /// Watches only objects with matching labels.
    pub label_selector: Selector,
    /// Watches only objects with matching fields, in the server's syntax: `status.phase=Running,spec.nodeName!=x`.
    pub field_selector: Option<String>,
    /// Watches only the objects' metadata. Follows from the kind.
    pub(crate) metadata_only: bool,
    /// The fields to remove before an object is stored.
    pub transform: Option<Transform>,
    /// Keeps `metadata.managedFields`. Default: the field is dropped.
    pub keep_managed_fields: bool,
    /// How objects are kept. Default: [`ObjectEncoding::Raw`].
    pub encoding: Option<ObjectEncoding>,
    /// The size of the cache, in bytes, above which a warning is logged. Default: none.
    pub memory_limit: Option<usize>,
    /// The approximate memory limit of decoded objects of a type, in bytes. Default: 32 MiB.
    pub decoded_bytes: Option<usize>,
    /// Named indexes. If an earlier user of the watch has added an index under the same name, the earlier index is kept.
    pub indexes: Vec<(String, IndexFn)>,
    /// Timeouts, page size and back-off of the watch. The informer sets `resource`.
    pub reflector: Option<ReflectorConfig>,
}

impl CacheOptions {
    /// Watches every object of a kind.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches only these namespaces, with a watch for each namespace.
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Watches only objects with matching labels.
    pub fn label_selector(mut self, selector: Selector) -> Self {
        self.label_selector = selector;
        self
    }

    /// Watches only objects with matching fields, in the server's syntax: `status.phase=Running,spec.nodeName!=x`.
    pub fn field_selector(mut self, selector: impl Into<String>) -> Self {
        self.field_selector = Some(selector.into());
        self
    }

    /// Removes fields before an object is stored. Do not write such an object back with [`Context::update`](crate::Context::update), which
    /// would remove the fields on the server.
    pub fn transform(mut self, transform: Transform) -> Self {
        self.transform = Some(transform);
        self
    }

    /// Keeps `metadata.managedFields`.
    pub fn keep_managed_fields(mut self) -> Self {
        self.keep_managed_fields = true;
        self
    }

    /// Sets how objects are kept.
    pub fn encoding(mut self, encoding: ObjectEncoding) -> Self {
        self.encoding = Some(encoding);
        self
    }

    /// Logs a warning when the cache grows beyond this many bytes.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Limits the memory of decoded objects of a type to about this many bytes.
    pub fn decoded_bytes(mut self, bytes: usize) -> Self {
        self.decoded_bytes = Some(bytes);
        self
    }

    /// Adds a named index for [`Lister::by_index`](crate::Lister::by_index).
    pub fn index(mut self, name: impl Into<String>, function: IndexFn) -> Self {
        self.indexes.push((name.into(), function));
        self
    }

    /// Sets timeouts, page size and back-off of the watch.
    pub fn reflector(mut self, config: ReflectorConfig) -> Self {
        self.reflector = Some(config);
        self
    }

    /// Returns whether a cache with these options holds an object.
    pub(crate) fn admits(&self, object: &RawObject) -> Admission {
        let namespaces = &self.namespaces;
        let namespace = object.namespace().unwrap_or_default();
        let held = (namespaces.is_empty() || namespaces.iter().any(|watched| watched == namespace))
            && self.label_selector.matches(object);
        match (held, &self.field_selector) {
            (false, _) => Admission::NotHeld,
            (true, None) => Admission::Held,
            (true, Some(_)) => Admission::Unknown,
        }
    }

    /// Returns the canonical form: equal options have equal keys.
    pub(super) fn normalized(mut self) -> Self {
        self.namespaces.retain(|namespace| !namespace.is_empty());
        self.namespaces.sort();
        self.namespaces.dedup();
        self.field_selector = self.field_selector.filter(|selector| !selector.trim().is_empty());
        self
    }

    /// Returns the name of the option on which a further user of a watch with these options does not agree.
    pub(super) fn conflict(&self, other: &Self) -> Option<&'static str> {
        /// An option of the further user needs the same option of the watch, which does not change any more.
        fn differ<T: PartialEq>(watch: Option<&T>, other: Option<&T>) -> bool {
            other.is_some() && watch != other
        }
        let (encoding, decoded_bytes) = (ObjectEncoding::default(), StoreOptions::default().memo_bytes);
        if self.transform != other.transform {
            Some("transform")
        } else if self.keep_managed_fields != other.keep_managed_fields {
            Some("keep_managed_fields")
        } else if differ(self.encoding.as_ref().or(Some(&encoding)), other.encoding.as_ref()) {
            Some("encoding")
        } else if differ(self.memory_limit.as_ref(), other.memory_limit.as_ref()) {
            Some("memory_limit")
        } else if differ(self.decoded_bytes.as_ref().or(Some(&decoded_bytes)), other.decoded_bytes.as_ref()) {
            Some("decoded_bytes")
        } else if differ(self.reflector.as_ref(), other.reflector.as_ref()) {
            Some("reflector")
        } else {
            None
        }
    }

    pub(super) fn scan_options(&self, resource: &ApiResource) -> ScanOptions {
        ScanOptions {
            transform: self.transform.clone(),
            keep_managed_fields: self.keep_managed_fields,
            metadata_only: self.metadata_only,
            type_meta: Some((resource.api_version.clone(), resource.kind.clone())),
            one_kind: self.encoding != Some(ObjectEncoding::Unshared),
            ..ScanOptions::default()
        }
    }

    pub(super) fn informer_options(&self) -> InformerOptions {
        let usual = StoreOptions::default();
        InformerOptions {
            store: StoreOptions {
                encoding: self.encoding.unwrap_or_default(),
                indexes: self.indexes.iter().cloned().collect(),
                memo_bytes: self.decoded_bytes.unwrap_or(usual.memo_bytes),
            },
            sources: self.namespaces.len().max(1) as u16,
            memory_limit: self.memory_limit,
        }
    }

    pub(super) fn reflector_config(&self, resource: &ApiResource, seed: u64) -> ReflectorConfig {
        let mut config = self.reflector.clone().unwrap_or_else(|| ReflectorConfig::new(""));
        config.resource = GroupResource::of(resource).to_string();
        config.seed ^= seed;
        config
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use windlass_cache::Scanner;

    use super::*;

    #[test]
    fn sharing_of_text_is_switched_off() {
        let pod = |number: usize| {
            format!(
                r#"{{"metadata":{{"name":"p{number}"}},"spec":{{"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler"}}}}"#
            )
        };
        let is_smaller_than_json = |options: CacheOptions| {
            let mut scanner = Scanner::new(&options.scan_options(&ApiResource::erase::<Pod>(&())));
            let stored = (0..10).map(|number| scanner.object(pod(number).as_bytes()).expect("an object"));
            stored.last().is_some_and(|object| object.memory() < object.json().len())
        };
        assert!(is_smaller_than_json(CacheOptions::new()));
        assert!(is_smaller_than_json(CacheOptions::new().encoding(ObjectEncoding::Compressed)));
        assert!(!is_smaller_than_json(CacheOptions::new().encoding(ObjectEncoding::Unshared)));
    }
}
