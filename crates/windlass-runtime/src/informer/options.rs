//! What is watched of a kind, and how it is kept.

use kube_core::ApiResource;
use windlass_cache::{
    IndexFn, InformerOptions, RawObject, ReflectorConfig, ScanOptions, Selector, StoreOptions, Tier,
    Transform,
};

/// What is watched of a kind, and how it is kept.
///
/// Users whose namespaces, selectors and `metadata_only` are the same share one watch. The other options must then agree;
/// those that are `None` agree with any.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// The namespaces to watch; none means all, or a kind that is in none.
    pub namespaces: Vec<String>,
    /// Only objects with these labels.
    pub label_selector: Selector,
    /// Only objects with these fields, in the server's syntax: `status.phase=Running,spec.nodeName!=x`.
    pub field_selector: Option<String>,
    /// Only the objects' metadata.
    pub metadata_only: bool,
    /// Fields to leave out before they cost memory.
    pub transform: Option<Transform>,
    /// Keeps `metadata.managedFields`, which are left out otherwise.
    pub keep_managed_fields: bool,
    /// How objects are kept.
    pub tier: Option<Tier>,
    /// Bytes beyond which a warning is given.
    pub memory_limit: Option<usize>,
    /// About how many bytes decoded objects may take.
    pub decoded_bytes: Option<usize>,
    /// Named indexes. An index that a fellow user has added under the same name is kept.
    pub indexes: Vec<(String, IndexFn)>,
    /// How to list and watch, if not as usual. The `resource` in it is filled in.
    pub reflector: Option<ReflectorConfig>,
}

impl WatchOptions {
    /// Whether the cache would hold an object. Field selectors are the server's: with one, nothing is known to be held.
    pub fn admits(&self, object: &RawObject) -> bool {
        let namespaces = &self.namespaces;
        let namespace = object.namespace().unwrap_or_default();
        self.field_selector.is_none()
            && (namespaces.is_empty() || namespaces.iter().any(|watched| watched == namespace))
            && self.label_selector.matches(object)
    }

    /// In a form that is the same for the same wishes.
    pub(super) fn normalized(mut self) -> Self {
        self.namespaces.retain(|namespace| !namespace.is_empty());
        self.namespaces.sort();
        self.namespaces.dedup();
        self.field_selector = self.field_selector.filter(|selector| !selector.trim().is_empty());
        self
    }

    /// The option on which two users of one watch do not agree.
    pub(super) fn conflict(&self, other: &Self) -> Option<&'static str> {
        fn differ<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
            one.zip(other).is_some_and(|(one, other)| one != other)
        }
        if self.transform != other.transform {
            Some("transform")
        } else if self.keep_managed_fields != other.keep_managed_fields {
            Some("keep_managed_fields")
        } else if differ(self.tier.as_ref(), other.tier.as_ref()) {
            Some("tier")
        } else if differ(self.memory_limit.as_ref(), other.memory_limit.as_ref()) {
            Some("memory_limit")
        } else if differ(self.decoded_bytes.as_ref(), other.decoded_bytes.as_ref()) {
            Some("decoded_bytes")
        } else if differ(self.reflector.as_ref(), other.reflector.as_ref()) {
            Some("reflector")
        } else {
            None
        }
    }

    pub(super) fn scan(&self, resource: &ApiResource) -> ScanOptions {
        let (api_version, kind) = if self.metadata_only {
            ("meta.k8s.io/v1", "PartialObjectMetadata")
        } else {
            (resource.api_version.as_str(), resource.kind.as_str())
        };
        ScanOptions {
            transform: self.transform.clone(),
            keep_managed_fields: self.keep_managed_fields,
            metadata_only: self.metadata_only,
            type_meta: Some((api_version.to_owned(), kind.to_owned())),
            one_kind: true,
            ..ScanOptions::default()
        }
    }

    pub(super) fn informer(&self) -> InformerOptions {
        let usual = StoreOptions::default();
        InformerOptions {
            store: StoreOptions {
                tier: self.tier.unwrap_or_default(),
                indexes: self.indexes.iter().cloned().collect(),
                memo_bytes: self.decoded_bytes.unwrap_or(usual.memo_bytes),
            },
            sources: self.namespaces.len().max(1) as u16,
            memory_limit: self.memory_limit,
        }
    }

    pub(super) fn reflector(&self, resource: &ApiResource, seed: u64) -> ReflectorConfig {
        let mut config = self.reflector.clone().unwrap_or_else(|| ReflectorConfig::new(""));
        config.resource = if resource.group.is_empty() {
            resource.plural.clone()
        } else {
            format!("{}.{}", resource.plural, resource.group)
        };
        config.seed ^= seed;
        config
    }
}
