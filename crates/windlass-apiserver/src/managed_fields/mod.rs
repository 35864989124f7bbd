//! Field management: the owner of each field of an object, in `metadata.managedFields`.
//!
//! Every write is tracked. Apply merges a configuration by the tracked owners; the merge is in
//! `windlass-schema`.

mod conflict;
mod entries;
mod last_applied;
mod reset;
mod scale;
mod versions;

use jiff::Timestamp;
use serde_json::Value;
use windlass_kinds::Subresource;
use windlass_schema::fields::{
    ApplyError, Duplicates, FieldPath, FieldSet, Managers, PathElement, TypedErrors, Updater, validate_typed,
};

use self::conflict::conflict;
use self::entries::{Entries, Operation, identifier};
pub(crate) use self::entries::{
    MAX_NAME, is_printable, is_reset, problems, problems_of_name, reset, restore_times,
};
use self::reset::Filters;
pub(crate) use self::scale::{ReplicasPaths, to_parent, to_scale};
use self::versions::Versions;
use crate::meta;
use crate::resource::{Resource, ServedResources};
use crate::wire::ApiError;

/// The field manager of the server's own writes.
pub(crate) const SERVER: &str = "kube-apiserver";
/// The manager that a write in progress is recorded as.
const CURRENT: &str = "current-operation";
/// The manager of an untracked object's fields before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// A writer of a resource.
pub(crate) struct FieldManager<'a> {
    /// The resource in the version of the request.
    pub(crate) resource: &'a Resource,
    /// All resources, including the other versions of this resource.
    pub(crate) served: &'a ServedResources,
    /// The subresource of the request.
    pub(crate) subresource: &'a Subresource,
    /// The name of the manager: `fieldManager` of the request, or the program in its `User-Agent`.
    pub(crate) name: &'a str,
    pub(crate) now: Timestamp,
}

impl FieldManager<'_> {
    /// Records the changed fields in `new`. `old` is `None` for a new object.
    ///
    /// If that is impossible, because a webhook does not convert the object for example, `new` gets the managers of
    /// `old`.
    pub(crate) async fn track(&self, old: Option<&Value>, new: &mut Value) {
        let before = self.entries_before(old, new);
        entries::remove(new);
        if old.is_some() && before.managers.0.is_empty() {
            // A client that drops all entries ends the tracking until the next apply.
            return;
        }
        match self.updated(old, new, before, self.name).await {
            Ok(entries) => entries.write(new),
            Err(why) => {
                entries::keep(new, old);
                tracing::warn!(
                    resource = %self.resource.group_resource(),
                    name = meta::name(new),
                    "a write is not tracked, and the managers of the fields stay: {why}"
                );
            }
        }
    }

    /// Returns the entries before an update. A client may change the entries, but not through a subresource.
    fn entries_before(&self, old: Option<&Value>, new: &Value) -> Entries {
        let of_old = || old.and_then(Entries::of).unwrap_or_default();
        if !self.subresource.is_empty() {
            return of_old();
        }
        if is_reset(new) {
            return Entries::default();
        }
        // Clients that do not know the field leave the field out, and do not mean to remove the field.
        Entries::of(new).filter(|entries| !entries.managers.0.is_empty()).unwrap_or_else(of_old)
    }

    /// Adds the changed fields of `manager`.
    async fn updated(
        &self,
        old: Option<&Value>,
        new: &Value,
        entries: Entries,
        manager: &str,
    ) -> Result<Entries, String> {
        let live = old.unwrap_or_else(|| self.resource.schema.zero());
        let new = &*self.resource.encoded(new);
        self.check_structure(new, Duplicates::Allow)
            .map_err(|why| self.not_typed("convert new", new, &why))?;
        self.check_structure(live, Duplicates::Allow)
            .map_err(|why| self.not_typed("convert live", live, &why))?;
        let Entries { managers, mut times } = entries;
        let (versions, filters) = (self.versions(), self.filters());
        let updater = Updater::new(&versions).with_filters(&filters);
        let version = self.resource.api_version();
        let updated = updater.update(live, new, version, managers, CURRENT).await;
        let mut managers = updated.map_err(|error| error.to_string())?;
        strip(&mut managers, CURRENT);
        if let Some(mut current) = managers.0.remove(CURRENT) {
            let id = self.id(manager, Operation::Update);
            if let Some(previous) = managers.0.get(&id) {
                current.fields = current.fields.union(&previous.fields);
            }
            times.insert(id.clone(), self.now_text());
            managers.0.insert(id, current);
        }
        let mut entries = Entries { managers, times };
        entries.merge_oldest();
        Ok(entries)
    }

    /// Checks that an object has the structure of the schema.
    fn check_structure(&self, object: &Value, duplicates: Duplicates) -> Result<(), TypedErrors> {
        validate_typed(self.resource.schema.get().root(), object, duplicates)
    }

    /// Returns the error of an update that could not `convert new` or `live`, an object without the structure
    /// of the schema.
    fn not_typed(&self, convert: &str, object: &Value, why: &TypedErrors) -> String {
        format!("failed to {convert} object ({}) to smd typed: {why}", self.identity(object))
    }

    /// Returns the error of an apply that could not use the `patch` or the `live` object.
    fn not_applied(&self, which: &str, object: &Value, why: &TypedErrors) -> ApiError {
        ApiError::unexplained(format!(
            "failed to create typed {which} object ({}): {why}",
            self.identity(object)
        ))
    }

    /// Names an object in kube-apiserver's form for these errors.
    fn identity(&self, object: &Value) -> String {
        let kind = group_version_kind(self.resource.api_version(), &self.resource.kind);
        format!("{}/{}; {kind}", meta::namespace(object), meta::name(object))
    }

    /// Merges a configuration into `old`, or makes a new object from the configuration.
    ///
    /// # Errors
    ///
    /// 409 if another manager owns a field that the configuration would change, unless `force`; 400 or 500, as the real
    /// server, if the configuration does not follow the schema.
    pub(crate) async fn apply(
        &self,
        old: Option<&Value>,
        config: &Value,
        force: bool,
    ) -> Result<Value, ApiError> {
        self.expect_kind(config)?;
        let live = old.unwrap_or_else(|| self.resource.schema.zero());
        let mut before = Entries::of(live)
            .ok_or_else(|| ApiError::unexplained("failed to decode managed fields: an entry is malformed"))?;
        if before.managers.0.is_empty() {
            before = self.updated(None, live, before, BEFORE_FIRST_APPLY).await.map_err(|why| {
                ApiError::unexplained(format!("failed to create manager for existing fields: {why}"))
            })?;
        }
        expect_no_managers(config)?;
        let (checked, given) = (self.check_structure(live, Duplicates::Allow), Duplicates::Forbid);
        self.check_structure(config, given).map_err(|why| self.not_applied("patch", config, &why))?;
        checked.map_err(|why| self.not_applied("live", live, &why))?;
        let merged = match self.merged(live, config, &before, force).await {
            Err(ApplyError::Conflicts(conflicts)) if self.name == "kubectl" => {
                match self.conflicts_beside_last_applied(live, conflicts) {
                    None => self.merged(live, config, &before, true).await,
                    Some(conflicts) => Err(ApplyError::Conflicts(conflicts)),
                }
            }
            other => other,
        };
        let (object, managers) = merged.map_err(|error| match error {
            ApplyError::Conflicts(conflicts) => conflict(&conflicts),
            ApplyError::Failed(why) => ApiError::unexplained(why),
        })?;
        let mut entries = Entries { managers, times: before.times };
        let mut object = match object {
            Some(mut object) => {
                // Null stays null in custom resources, and may be invalid.
                if self.resource.is_custom() && *self.subresource != Subresource::Status {
                    windlass_schema::default_missing(self.resource.schema.get(), &mut object);
                } else {
                    // Convert numbers to Go's numbers. Values that do not fit are refused when the managers
                    // are known.
                    let _ = windlass_schema::restore(self.resource.schema.get(), &mut object);
                    self.resource.default_and_prune(&mut object);
                }
                entries.times.insert(self.id(self.name, Operation::Apply), self.now_text());
                object
            }
            None => live.clone(),
        };
        entries.write(&mut object);
        if self.name == "kubectl" {
            last_applied::renew(&mut object, config);
        }
        Ok(object)
    }

    async fn merged(
        &self,
        live: &Value,
        config: &Value,
        before: &Entries,
        force: bool,
    ) -> Result<(Option<Value>, Managers), ApplyError> {
        let (versions, filters) = (self.versions(), self.filters());
        let updater = Updater::new(&versions).with_filters(&filters);
        let id = self.id(self.name, Operation::Apply);
        let version = self.resource.api_version();
        let (object, mut managers) =
            updater.apply(live, config, version, before.managers.clone(), &id, force).await?;
        strip(&mut managers, &id);
        Ok((object, managers))
    }

    /// Checks that a configuration has the kind of this resource.
    fn expect_kind(&self, config: &Value) -> Result<(), ApiError> {
        let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if version != self.resource.api_version() || kind != self.resource.kind {
            let found = group_version_kind(version, kind);
            return Err(ApiError::bad_request(format!("invalid object type: {found}")));
        }
        Ok(())
    }

    /// Returns the fields that a write to the subresource may own.
    fn filters(&self) -> Filters {
        reset::filters(self.resource, self.served, self.subresource)
    }

    fn versions(&self) -> Versions<'_> {
        Versions { resource: self.resource, served: self.served }
    }

    fn id(&self, manager: &str, operation: Operation) -> String {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        identifier(manager, operation, self.resource.api_version(), self.subresource)
    }

    fn now_text(&self) -> String {
        crate::store::rfc3339(self.now)
    }
}

/// Checks that a configuration has no managers: a configuration names only fields.
fn expect_no_managers(config: &Value) -> Result<(), ApiError> {
    let found = config.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    if found.is_some_and(|found| !found.is_null()) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

/// Returns the error of malformed entries.
pub(crate) fn invalid(object: &Value) -> Option<&'static str> {
    Entries::of(object).is_none().then_some("an entry is malformed")
}

/// Formats a kind as Go does; the core group is empty.
fn group_version_kind(api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!("{group}/{version}, Kind={kind}")
}

/// Removes name, namespace and other identity fields, which no manager may own.
fn strip(managers: &mut Managers, manager: &str) {
    static UNOWNED: std::sync::LazyLock<FieldSet> = std::sync::LazyLock::new(|| {
        const IN_METADATA: [&str; 9] = [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ];
        let mut fields = FieldSet::default();
        for field in ["apiVersion", "kind", "metadata"] {
            fields.insert(&[PathElement::field(field)]);
        }
        for field in IN_METADATA {
            fields.insert(&FieldPath::of_fields(["metadata", field]));
        }
        fields
    });
    let Some(managed) = managers.0.get_mut(manager) else { return };
    managed.fields = managed.fields.difference(&UNOWNED);
    if managed.fields.is_empty() {
        managers.0.remove(manager);
    }
}
