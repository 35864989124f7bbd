//! The resources that the server serves, and all that the registry must know about each.

pub(crate) mod builtin;
mod custom;
mod definitions;
mod fields;
mod internal;
mod present;
mod served;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use windlass_cel::Rules;
use windlass_schema::Schema;

pub(crate) use self::definitions::{CrdDiff, Definitions};
pub(crate) use self::fields::drop_malformed_metadata;
pub(crate) use self::internal::InternalForm;
pub(crate) use self::present::Unconverted;
pub(crate) use self::served::{Group, ServedResources, Version, version_rank};
use crate::conversion::Converter;
use crate::store::{Draft, Labels, Layout, ObjectAttrs, ResourceId, Stored};
use crate::verb::Verb;
use crate::wire::ApiError;
use crate::wire::GroupResource;
use windlass_kinds::Kind;
use windlass_kinds::table::TableKind;

/// The fingerprint of the schema in the layout of objects of built-in kinds that are stored without some defaults.
const WITHOUT_LATE_DEFAULTS: u64 = 1;

/// A subresource and the allowed verbs.
#[derive(Clone, Debug)]
pub(crate) struct ServedSubresource {
    /// `status`, `scale`, …
    pub(crate) name: String,
    /// The group of the subresource's kind, if the group differs from the resource's.
    pub(crate) group: String,
    /// Version of that kind.
    pub(crate) version: String,
    /// The kind of the subresource.
    pub(crate) kind: String,
    pub(crate) verbs: Vec<String>,
}

/// A resource in a version.
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
    pub(crate) subresources: Vec<ServedSubresource>,
    /// The storage of the objects; shared by all versions.
    pub(crate) storage: ResourceId,
    /// The `apiVersion` that stored objects carry.
    pub(crate) storage_version: Arc<str>,
    /// The `apiVersion` of the resource, and the schema that objects are defaulted and pruned by.
    pub(crate) layout: Layout,
    pub(crate) strategy: &'static Kind,
    /// The strategy of the storage resource: another group's strategy for events.
    pub(crate) storage_strategy: &'static Kind,
    pub(crate) schema: SchemaSource,
    /// The schema of the version that is stored. `None` if that is this version, and for built-in kinds.
    pub(crate) stored_schema: Option<SchemaSource>,
    /// The fingerprint of that schema in the layout of stored objects; 0 for built-in kinds.
    pub(crate) stored_fingerprint: u64,
    /// The further content of the CustomResourceDefinition; `None` for built-in kinds.
    pub(crate) custom: Option<CustomResource>,
}

/// The fields of custom resources only.
#[derive(Default)]
pub(crate) struct CustomResource {
    /// The name of the CustomResourceDefinition.
    pub(crate) definition: String,
    /// The uid of the definition: a definition that is created again serves other resources.
    pub(crate) definition_uid: String,
    /// The resource version of the definition from which this resource was made. Watches begin at this
    /// version at the earliest.
    pub(crate) since: u64,
    /// The generation of the definition from which this resource was made.
    pub(crate) generation: i64,
    /// The table with the `additionalPrinterColumns` of the version.
    pub(crate) table: TableKind,
    /// JSON paths of `selectableFields`, without the leading dot.
    pub(crate) selectable: Vec<String>,
    /// The scale subresource, if the version has a scale subresource.
    pub(crate) scale: Option<ScalePaths>,
    /// The warning that goes along with every reply, where the version is deprecated.
    pub(crate) deprecation: Option<String>,
    /// The webhook that converts between versions, if the definition has a webhook.
    pub(crate) converter: Option<Arc<Converter>>,
    /// The versions of the definition that are not served, for earlier writes of field managers.
    pub(crate) unserved: Arc<[Resource]>,
    /// The validation rules of the schema.
    pub(crate) rules: LazyRules,
    /// Set when the definition changes or goes: watches end then.
    pub(crate) retired: AtomicBool,
}

/// The validation rules of a schema: compiled when first needed.
#[derive(Default)]
pub(crate) struct LazyRules {
    compiled: std::sync::OnceLock<Option<Rules>>,
    compile: Option<CompileRules>,
}

/// Compiles the rules; called again if an earlier call has panicked, so that the rules are never skipped.
type CompileRules = Box<dyn Fn() -> Option<Rules> + Send + Sync>;

impl LazyRules {
    pub(crate) fn new(compile: impl Fn() -> Option<Rules> + Send + Sync + 'static) -> Self {
        Self { compiled: std::sync::OnceLock::new(), compile: Some(Box::new(compile)) }
    }

    /// Returns the rules; `None` if the schema has no rules.
    pub(crate) fn get(&self) -> Option<&Rules> {
        self.compiled.get_or_init(|| self.compile.as_ref().and_then(|compile| compile())).as_ref()
    }
}

/// Where the scale subresource of a custom resource reads and writes.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) label_selector: Option<String>,
}

/// Where a resource's schema comes from: compiled when first needed.
pub(crate) struct SchemaSource {
    compiled: std::sync::OnceLock<Schema>,
    zero: std::sync::OnceLock<Value>,
    compile: Mutex<Option<Compile>>,
}

type Compile = Box<dyn FnOnce() -> Schema + Send>;

impl SchemaSource {
    pub(crate) fn lazy(compile: impl FnOnce() -> Schema + Send + 'static) -> Self {
        let compile = Mutex::new(Some(Box::new(compile) as Compile));
        Self { compiled: std::sync::OnceLock::new(), zero: std::sync::OnceLock::new(), compile }
    }

    /// Returns an object without any field set.
    pub(crate) fn zero(&self) -> &Value {
        self.zero.get_or_init(|| windlass_schema::zero(self.get()))
    }

    pub(crate) fn get(&self) -> &Schema {
        self.compiled.get_or_init(|| {
            let compile = self.compile.lock().take();
            compile.map_or_else(Schema::unconstrained, |compile| compile())
        })
    }
}

impl Resource {
    /// Returns the API version, such as `v1` or `apps/v1`.
    pub(crate) fn api_version(&self) -> &str {
        &self.layout.api_version
    }

    /// Returns group and plural, for errors.
    pub(crate) fn group_resource(&self) -> GroupResource {
        GroupResource::new(&*self.group, &*self.plural)
    }

    /// Returns whether another resource has replaced this resource. Watches of this resource then end.
    pub(crate) fn is_retired(&self) -> bool {
        self.custom.as_ref().is_some_and(|custom| custom.retired.load(Ordering::Acquire))
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.custom.is_some()
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&ServedSubresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    pub(crate) fn allows(&self, verb: Verb) -> bool {
        self.verbs.iter().any(|allowed| allowed == verb.as_str())
    }

    /// Returns the type of an object in kube-apiserver, for example `core.Pod`, for errors.
    pub(crate) fn go_type(&self) -> String {
        if self.is_custom() {
            return "unstructured.Unstructured".to_owned();
        }
        format!("{}.{}", self.go_package(), self.kind)
    }

    /// Returns the type of a list of objects in kube-apiserver, for example `core.PodList`, for errors.
    pub(crate) fn go_list_type(&self) -> String {
        if self.is_custom() {
            return "unstructured.UnstructuredList".to_owned();
        }
        format!("{}.{}", self.go_package(), self.list_kind)
    }

    /// Returns the package of the kind in kube-apiserver.
    pub(crate) fn go_package(&self) -> &str {
        go_package(&self.storage.group)
    }

    /// Returns the key an object is stored under.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    /// Returns the storage key of an object in the real server, for errors.
    pub(crate) fn registry_key(&self, key: &str) -> String {
        if self.is_custom() {
            format!("/registry/{}/{}/{key}", self.group, self.plural)
        } else {
            let path = self.strategy.config.registry_path.unwrap_or(&self.plural);
            format!("/registry/{path}/{key}")
        }
    }

    /// Fills in the schema's defaults and drops unknown fields. Returns the paths of the dropped fields.
    pub(crate) fn default_and_prune(&self, object: &mut Value) -> Vec<String> {
        windlass_schema::default(self.schema.get(), object);
        self.prune_defaulted(object)
    }

    /// Works like [`Resource::default_and_prune`], for an object that a client sent.
    ///
    /// # Errors
    ///
    /// With all defaults, the object would be much larger than an object that can be stored.
    pub(crate) fn default_and_prune_new(&self, object: &mut Value) -> Result<Vec<String>, ApiError> {
        if windlass_schema::default(self.schema.get(), object) {
            Ok(self.prune_defaulted(object))
        } else {
            Err(ApiError::storage_too_large())
        }
    }

    fn prune_defaulted(&self, object: &mut Value) -> Vec<String> {
        let schema = self.schema.get();
        // Before the strategy drops fields without an effect: such fields may contain unknown fields as well.
        let unknown = windlass_schema::prune(schema, object);
        self.strategy.defaults.default(object);
        unknown
    }

    /// Fills in the defaults of a version, either this version or the storage version, and drops the fields
    /// that the version does not have. Objects of any other version stay as they are.
    fn default_and_prune_as(&self, api_version: &str, object: &mut Value) {
        let schema = match &self.stored_schema {
            Some(stored) if *api_version == *self.storage_version => stored,
            _ if *api_version == *self.layout.api_version => &self.schema,
            _ => return,
        };
        windlass_schema::default(schema.get(), object);
        windlass_schema::prune(schema.get(), object);
    }

    /// Names of fields that selectors may use besides name and namespace.
    pub(crate) fn selectable_fields(&self) -> Vec<&str> {
        match &self.custom {
            Some(custom) => custom.selectable.iter().map(String::as_str).collect(),
            None => self.strategy.config.selectable_fields(),
        }
    }

    /// Returns the attrs of an object in this version.
    pub(crate) fn attrs(&self, object: &Value) -> ObjectAttrs {
        self.attrs_by(self.strategy, object)
    }

    fn attrs_by(&self, strategy: &Kind, object: &Value) -> ObjectAttrs {
        let value = |field: &str| match &self.custom {
            Some(_) => scalar_at(object, field),
            None => strategy.config.selectable_value(object, field),
        };
        let fields = match &self.custom {
            Some(custom) => custom.selectable.iter().map(String::as_str).collect(),
            None => strategy.config.selectable_fields(),
        };
        ObjectAttrs {
            selectable: fields.into_iter().map(|field| value(field).into()).collect(),
            claims: strategy.claims(object).into_iter().map(String::into_boxed_str).collect(),
            expires: None,
        }
    }

    /// Returns the layout of objects that are written through this version.
    fn storage_layout(&self) -> Layout {
        Layout { api_version: Arc::clone(&self.storage_version), schema: self.stored_fingerprint }
    }

    /// Returns whether an update of `stored` without a change may change the stored bytes.
    pub(crate) fn rewrites(&self, stored: &Stored) -> bool {
        let is_converted = *self.storage_version != *self.api_version();
        let may_differ = self.is_custom() || !self.strategy.config.defaults_on_update.is_empty();
        is_converted || may_differ && *stored.layout() != self.storage_layout()
    }

    /// Makes a new object of the storage version ready to be stored at `now`.
    pub(crate) fn draft_new(&self, object: &Value, labels: &Labels, now: Timestamp) -> Draft {
        let late = self.strategy.config.defaults_on_update;
        if late.is_empty() {
            return self.draft(object, labels, now);
        }
        let mut object = object.clone();
        for pointer in late {
            let Some((parent, field)) = pointer.rsplit_once('/') else { continue };
            if let Some(Value::Object(fields)) = object.pointer_mut(parent) {
                fields.remove(field);
            }
        }
        let layout = Layout { schema: WITHOUT_LATE_DEFAULTS, ..self.storage_layout() };
        Draft::new(&object, layout, self.attrs_by(self.storage_strategy, &object), labels)
    }

    /// Makes an object of the storage version ready to be stored at `now`.
    pub(crate) fn draft(&self, object: &Value, labels: &Labels, now: Timestamp) -> Draft {
        let mut attrs = self.attrs_by(self.storage_strategy, object);
        attrs.expires = self.storage_strategy.config.ttl.and_then(|ttl| now.checked_add(ttl).ok());
        Draft::new(object, self.storage_layout(), attrs, labels)
    }

    /// Returns a draft of `object`. `object` is an edited copy of `stored`, and was never decoded in this
    /// version.
    pub(crate) fn draft_like(
        &self,
        stored: &Stored,
        object: &Value,
        labels: &Labels,
        now: Timestamp,
    ) -> Draft {
        if !self.is_custom() && stored.layout().schema == WITHOUT_LATE_DEFAULTS {
            let mut object = object.clone();
            self.default_and_prune(&mut object);
            return self.draft(&object, labels, now);
        }
        let mut attrs = self.facets_like(stored, object);
        attrs.expires = self.storage_strategy.config.ttl.and_then(|ttl| now.checked_add(ttl).ok());
        Draft::new(object, stored.layout().clone(), attrs, labels)
    }

    /// Returns `object`, an edited copy of `stored` as in [`Resource::draft_like`], for the reply to a dry
    /// run.
    pub(crate) fn dry_like(&self, stored: &Stored, object: &Value, labels: &Labels) -> Stored {
        Draft::unversioned(object, stored.layout().clone(), self.facets_like(stored, object), labels)
    }

    /// Returns the attrs of an edited copy of `stored`. A deletion never changes selectable fields of custom
    /// resources.
    fn facets_like(&self, stored: &Stored, object: &Value) -> ObjectAttrs {
        if self.is_custom() { stored.attrs().clone() } else { self.attrs_by(self.storage_strategy, object) }
    }

    /// Returns an object of the storage version for the reply to a dry run.
    pub(crate) fn dry(&self, object: &Value, labels: &Labels) -> Stored {
        let attrs = self.attrs_by(self.storage_strategy, object);
        Draft::unversioned(object, self.storage_layout(), attrs, labels)
    }
}

/// Returns the text of the scalar at a dotted path, the empty string if there is none.
fn scalar_at(object: &Value, path: &str) -> String {
    let found = path.split('.').try_fold(object, |value, segment| value.get(segment));
    match found {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
        _ => String::new(),
    }
}

/// Returns the package of the kinds of a group in kube-apiserver.
pub(crate) fn go_package(group: &str) -> &str {
    match group.split('.').next() {
        None | Some("") => "core",
        Some(package) => package,
    }
}

/// Returns the API version, such as `v1` or `apps/v1`.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
