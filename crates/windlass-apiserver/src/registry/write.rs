//! The path of every write, in the steps of kube-apiserver:
//!
//! 1. decode, and default by schema and kind ([`decode`](super::decode));
//! 2. the change itself: the body of the request, or a patch of the present object;
//! 3. field management: the owners of fields after the write ([`managed_fields`](crate::managed_fields));
//! 4. mutating admission: the built-in plugins, and then webhooks;
//! 5. prepare: the kind sets, keeps or clears fields;
//! 6. validate;
//! 7. validating admission: webhooks, and then quotas ([`charge`](super::charge));
//! 8. commit, with a guard that runs on the state that is changed.
//!
//! If another write came first, the steps start over on the newer object.

use std::sync::{Arc, LazyLock};

use serde_json::Value;
use windlass_schema::FieldError;

use super::charge::Charged;
use super::commit::commit_charged;
pub(super) use super::commit::{commit, commit_draft};
use super::options::WriteOptions;
use super::{Call, custom, endpoints, metadata, privileged, validate};
use crate::admission::{Reinvocation, plugins};
use crate::auth::Attributes;
use crate::managed_fields;
use crate::meta;
use crate::resource::{Resource, definitions_id};
use crate::store::{Rejected, ResourceId, Stored, View};
use crate::wire::{ApiError, GroupResource};

static NAMESPACES: LazyLock<ResourceId> = LazyLock::new(|| ResourceId::new("", "namespaces"));
/// The number of taken names after which the client gets an error about the generated name.
const NAME_ATTEMPTS: usize = 8;
/// The longest generated name; the suffix has five characters.
const MAX_GENERATED_NAME: usize = 63;
/// Metadata that only the server writes, and that a client may leave out.
const SERVER_OWNED: [&str; 4] =
    ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid"];

/// The change of the present object. If another write came first, the change is made again.
pub(super) trait Change: Send {
    /// Makes the new object from `old`, and records the managers of the fields. Both objects are in the
    /// version of the request.
    fn make(
        &mut self,
        call: &mut Call<'_>,
        old: &Value,
    ) -> impl Future<Output = Result<Value, ApiError>> + Send;

    /// Runs mutating admission on `new`.
    fn mutate(
        &mut self,
        call: &mut Call<'_>,
        new: &mut Value,
        old: &Value,
    ) -> impl Future<Output = Result<(), ApiError>> + Send {
        admit(call, new, Some(old))
    }

    /// Runs validating admission on `new`. `new` is ready to be stored.
    fn validate(
        &mut self,
        call: &mut Call<'_>,
        new: &Value,
        old: &Value,
    ) -> impl Future<Output = Result<(), ApiError>> + Send {
        call.validate(new, Some(old))
    }

    /// Returns whether quotas limit the change.
    fn is_charged(&self) -> bool {
        true
    }
}

/// A change of the server's own: no manager owns the fields, and admission does not see the change.
pub(super) struct Untracked<F>(F);

/// Makes a change of a function.
pub(super) fn untracked<F>(change: F) -> Untracked<F>
where
    F: FnMut(&mut Call<'_>, &Value) -> Result<Value, ApiError> + Send,
{
    Untracked(change)
}

impl<F> Change for Untracked<F>
where
    F: FnMut(&mut Call<'_>, &Value) -> Result<Value, ApiError> + Send,
{
    async fn make(&mut self, call: &mut Call<'_>, old: &Value) -> Result<Value, ApiError> {
        (self.0)(call, old)
    }

    async fn mutate(&mut self, _: &mut Call<'_>, _: &mut Value, _: &Value) -> Result<(), ApiError> {
        Ok(())
    }

    async fn validate(&mut self, _: &mut Call<'_>, _: &Value, _: &Value) -> Result<(), ApiError> {
        Ok(())
    }

    fn is_charged(&self) -> bool {
        false
    }
}

/// Creates a decoded object with recorded managers.
pub(super) async fn create(
    call: &mut Call<'_>,
    mut object: Value,
    options: WriteOptions,
) -> Result<Arc<Stored>, ApiError> {
    metadata::settle_namespace(call, &mut object)?;
    admit(call, &mut object, None).await?;
    metadata::settle_namespace(call, &mut object)?;
    let base = meta::text(&object, "generateName");
    if !meta::name(&object).is_empty() || base.is_empty() {
        return create_named(call, object, options).await;
    }
    let base = base.to_owned();
    let stem: String = base.chars().take(MAX_GENERATED_NAME - 5).collect();
    let mut taken = ApiError::generate_name_conflict(&call.resource.group_resource(), &base);
    for _ in 0..NAME_ATTEMPTS {
        let mut attempt = object.clone();
        let name = format!("{stem}{}", call.state.env.suffix());
        meta::set(&mut attempt, "name", Some(name.into()));
        match create_named(call, attempt, options).await {
            Err(error) if error.reason() == "AlreadyExists" => taken = error,
            other => return other,
        }
    }
    Err(taken)
}

async fn create_named(
    call: &mut Call<'_>,
    mut object: Value,
    options: WriteOptions,
) -> Result<Arc<Stored>, ApiError> {
    let resource = Arc::clone(&call.resource);
    // A version that is not a number does not count, and a dry run stores no object.
    let is_versioned = meta::resource_version(&object).parse().is_ok_and(|version: u64| version > 0);
    let given_version = meta::resource_version(&object).to_owned();
    if call.route.verb != "create" && !given_version.is_empty() {
        metadata::version_number(&given_version)?;
    }
    metadata::begin(call, &mut object);
    let view = call.state.store.view();
    resource.strategy.prepare_create(&call.context(&view), &mut object)?;
    let warned = call.warnings.len();
    loop {
        let view = call.state.store.view();
        // Only allocations can lose against another write; the object is then needed once more.
        let mut new =
            if resource.strategy.allocates() { object.clone() } else { std::mem::take(&mut object) };
        resource.strategy.allocate(&call.context(&view), &mut new, None)?;
        call.warnings.truncate(warned);
        validate_new(call, &resource, &view, &new).await?;
        resource.to_storage(&mut new).await?;
        let name = meta::name(&new);
        // An apply or an update stores at the path of the request, even if a webhook has changed the name of
        // the object.
        let at_path = call.route.verb != "create";
        let key = if at_path { call.key() } else { resource.key(meta::namespace(&new), name) };
        let charges = call.charges(&new, None).await?;
        if options.dry_run {
            if view.get(&resource.storage, &key).is_some() {
                return Err(exists(call, &key, &new));
            }
            let version = (!given_version.is_empty()).then(|| given_version.into());
            meta::set(&mut new, "resourceVersion", version);
            return Ok(Arc::new(resource.dry(&new, call.state.store.labels())));
        }
        if is_versioned && call.route.verb == "create" {
            return Err(ApiError::unexplained("resourceVersion should not be set on objects to be created"));
        }
        let mut charged = Charged { object: &new, old: None, charges };
        let committed = commit_charged(call, &key, None, Some(&new), &mut charged, |view| {
            may_create(view, &resource, meta::namespace(&new), name)
        });
        match committed.await {
            Ok(stored) => return Ok(stored),
            Err(Rejected::Raced) => return Err(exists(call, &key, &new)),
            Err(Rejected::Guarded(error)) => return Err(error),
            Err(Rejected::Claimed | Rejected::Overtaken) => {}
        }
    }
}

/// Validates a new object, and adds the warnings.
async fn validate_new(
    call: &mut Call<'_>,
    resource: &Resource,
    view: &View,
    new: &Value,
) -> Result<(), ApiError> {
    let errors = validate::create(resource, new, || {
        let mut errors = custom::validate(resource, &call.route.subresource, new, None);
        errors.extend(resource.strategy.validate_create(&call.context(view), new));
        if !call.state.allows_privileged {
            errors.extend(privileged::errors(resource, new));
        }
        errors
    });
    refuse_invalid(resource, new, &errors)?;
    let mut warnings = custom::warnings(resource, new, None);
    warnings.extend(resource.strategy.warnings(&call.context(view), new, None));
    call.warnings.extend(warnings);
    resource.strategy.review(&call.context(view), new, None)?;
    if call.route.verb != "create" {
        authorize_create(call)?;
    }
    call.validate(new, None).await
}

/// Authorises the creation of an object by an update or an apply.
fn authorize_create(call: &Call<'_>) -> Result<(), ApiError> {
    let (route, state) = (&call.route, call.state);
    let create = Attributes {
        verb: "create",
        group: &route.group,
        resource: &route.resource,
        subresource: &route.subresource,
        namespace: &route.namespace,
        name: &route.name,
        path: None,
    };
    state.authorizer.authorize(&state.store, call.identity, &create)
}

/// Returns 409 for a taken name.
fn exists(call: &Call<'_>, key: &str, new: &Value) -> ApiError {
    let (resource, name) = (call.resource.group_resource(), meta::name(new));
    let error = if meta::text(new, "generateName").is_empty() {
        ApiError::already_exists(&resource, name)
    } else {
        ApiError::generate_name_conflict(&resource, name)
    };
    let view = call.state.store.view();
    match view.get(&call.resource.storage, key) {
        Some(other) if other.is_terminating() => error.while_deleting(),
        _ => error,
    }
}

/// Replaces the object of the request, and retries as long as other writes come first.
pub(super) async fn update(
    call: &mut Call<'_>,
    options: WriteOptions,
    mut change: impl Change,
) -> Result<Arc<Stored>, ApiError> {
    let key = call.key();
    let resource = Arc::clone(&call.resource);
    let warned = call.warnings.len();
    loop {
        call.warnings.truncate(warned);
        let view = call.state.store.view();
        let current = view.get(&resource.storage, &key).ok_or_else(|| call.not_found())?;
        let old = resource.present_one(current).await?.value();
        let mut new = change.make(call, &old).await?;
        metadata::check_uid(call, &new, &old)?;
        metadata::settle_namespace(call, &mut new)?;
        change.mutate(call, &mut new, &old).await?;
        metadata::settle_namespace(call, &mut new)?;
        metadata::check_version(call, &new, &old)?;
        prepare(call, &view, &mut new, &old)?;
        managed_fields::restore_times(&mut new, &old);
        let link = new.pointer("/metadata/selfLink").filter(|_| !call.is_dry_run()).cloned();
        if link.is_some() {
            // Drop selfLink from the stored object; the reply keeps selfLink.
            meta::set(&mut new, "selfLink", None);
        }
        let mut warnings = custom::warnings(&resource, &new, Some(&old));
        warnings.extend(resource.strategy.warnings(&call.context(&view), &new, Some(&old)));
        call.warnings.extend(warnings);
        change.validate(call, &new, &old).await?;
        let charges = if change.is_charged() { call.charges(&new, Some(&old)).await? } else { Vec::new() };
        let same = new == old;
        if resource.is_custom() && call.route.subresource == "scale" {
            // The replicas may be the first field of the `spec`, and the schema may not have replicas.
            windlass_schema::default(resource.schema.get(), &mut new);
            windlass_schema::prune(resource.schema.get(), &mut new);
        }
        let goes = meta::is_deleting(&old)
            && meta::finalizers(&new).next().is_none()
            && meta::integer(&new, "deletionGracePeriodSeconds").unwrap_or(0) == 0
            && resource.strategy.may_go(&new);
        if same && !goes && !resource.rewrites(current) {
            return Ok(Arc::clone(current));
        }
        resource.to_storage(&mut new).await?;
        keep_other_part(call, &mut new, current);
        // An update without a change is still a write if the definition now stores the object in another
        // form.
        let is_encoded = !resource.is_custom() && *resource.storage_version != *resource.api_version();
        if (same || is_encoded) && !goes && new == current.value() {
            return Ok(Arc::clone(current));
        }
        if options.dry_run {
            return Ok(Arc::new(resource.dry(&new, call.state.store.labels())));
        }
        let draft = (!goes).then_some(&new);
        let mut charged = Charged { object: &new, old: Some(&old), charges };
        match commit_charged(call, &key, Some(current.rv), draft, &mut charged, |_| Ok(())).await {
            Ok(_) if goes => {
                endpoints::remove_with(call.state, &resource, &key).await;
                // The reply shows the last write, although the write removes the object.
                if link.is_some() {
                    meta::set(&mut new, "selfLink", link);
                }
                return Ok(Arc::new(resource.dry(&new, call.state.store.labels())));
            }
            Ok(stored) => return Ok(stored),
            Err(Rejected::Raced | Rejected::Claimed | Rejected::Overtaken) => {}
            Err(Rejected::Guarded(error)) => return Err(error),
        }
    }
}

/// Copies the parts that the write may not change from the stored object, if the object was converted:
/// another version may be less exact, such as version 1 of an autoscaler.
fn keep_other_part(call: &Call<'_>, new: &mut Value, stored: &Stored) {
    let resource = &call.resource;
    if resource.is_custom() || *resource.storage_version == *resource.api_version() {
        return;
    }
    let part = match call.route.subresource.as_str() {
        "" if resource.has_status() => "status",
        "status" => "spec",
        _ => return,
    };
    if let Some(old) = stored.value().get_mut(part) {
        new[part] = old.take();
    }
}

/// Returns whether an object may be created in this state: the namespace and the definition exist, and are
/// not terminating.
fn may_create(view: &View, resource: &Resource, namespace: &str, name: &str) -> Result<(), ApiError> {
    if let Some(custom) = &resource.custom {
        let definition = view.get(definitions_id(), &custom.definition);
        let Some(definition) = definition.filter(|found| found.uid() == custom.definition_uid) else {
            return Err(ApiError::not_found(&resource.group_resource(), name));
        };
        if definition.is_terminating() {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(&resource.group_resource(), name, why));
        }
    }
    if !resource.namespaced {
        return Ok(());
    }
    may_create_in(view, resource, namespace, name)
}

/// Returns whether the namespace of an object that is to be created is there, and stays.
pub(super) fn may_create_in(
    view: &View,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<(), ApiError> {
    match view.get(&NAMESPACES, namespace) {
        Some(found) if !found.is_terminating() => Ok(()),
        Some(_) => Err(ApiError::namespace_terminating(&resource.group_resource(), name, namespace)),
        None => Err(ApiError::not_found(&GroupResource::new("", "namespaces"), namespace)),
    }
}

/// Runs mutating admission: the built-in plugins, and then webhooks. If a webhook changed the object, runs
/// the plugins again, and the webhooks that ask for a second call.
pub(super) async fn admit(
    call: &mut Call<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let mut rounds = Reinvocation::default();
    run_plugins(call, object, old).await?;
    call.mutate(object, old, &mut rounds).await?;
    if rounds.is_needed() {
        run_plugins(call, object, old).await?;
        call.mutate(object, old, &mut rounds).await?;
    }
    Ok(())
}

/// Runs the built-in plugins.
async fn run_plugins(call: &Call<'_>, object: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
    if !call.route.subresource.is_empty() {
        return Ok(());
    }
    let view = call.state.store.view();
    if old.is_none() {
        may_create(&view, &call.resource, &call.route.namespace, meta::name(object))?;
    }
    if plugins::Write::concerns(&call.resource) {
        Box::pin(call.plugin_write().mutate(object, old)).await?;
    }
    call.resource.strategy.admit(&call.context(&view), object, old)
}

/// Prepares `new` as a replacement of `old`, and validates `new`.
fn prepare(call: &Call<'_>, view: &View, new: &mut Value, old: &Value) -> Result<(), ApiError> {
    let resource = &call.resource;
    restrict_to_subresource(call, new, old);
    for field in SERVER_OWNED {
        if meta::text(new, field).is_empty() && meta::integer(new, field).is_none() {
            meta::copy(new, old, field);
        }
    }
    for field in ["resourceVersion", "generation", "creationTimestamp"] {
        meta::copy(new, old, field);
    }
    if meta::is_deleting(old) {
        meta::copy(new, old, "deletionTimestamp");
    }
    meta::drop_empty(new);
    resource.strategy.prepare_update(&call.context(view), new, old)?;
    resource.strategy.allocate(&call.context(view), new, Some(old))?;
    let mut errors = validate::update(resource, &call.route.subresource, new, old);
    errors.extend(custom::validate(resource, &call.route.subresource, new, Some(old)));
    errors.extend(resource.strategy.validate_update(&call.context(view), new, old));
    if !call.state.allows_privileged && call.route.subresource != "status" {
        errors.extend(privileged::errors(resource, new));
    }
    refuse_invalid(resource, new, &errors)?;
    resource.strategy.review(&call.context(view), new, Some(old))?;
    if !["status", "binding"].contains(&call.route.subresource.as_str()) && counts(resource, new, old) {
        let generation = meta::integer(old, "generation").unwrap_or(0) + 1;
        meta::set(new, "generation", Some(generation.into()));
    }
    Ok(())
}

fn refuse_invalid(resource: &Resource, object: &Value, errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or(&resource.kind);
    // The group of a custom resource is the group in the object.
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let group = match version.split_once('/') {
        Some((group, _)) if resource.is_custom() => group,
        None if resource.is_custom() => "",
        _ => &*resource.storage.group,
    };
    Err(ApiError::invalid(group, kind, meta::name(object), errors))
}

/// Returns whether `metadata.generation` counts the change.
fn counts(resource: &Resource, new: &Value, old: &Value) -> bool {
    if !resource.is_custom() {
        return resource.strategy.has_generation() && resource.strategy.generation_changes(new, old);
    }
    let has_status = resource.has_status();
    let is_counted = |field: &str| field != "metadata" && !(has_status && field == "status");
    let counted = |object: &'_ Value| -> Vec<(String, Value)> {
        let fields = object.as_object().into_iter().flatten().filter(|(field, _)| is_counted(field));
        fields.map(|(field, value)| (field.clone(), value.clone())).collect()
    };
    counted(new) != counted(old)
}

/// Copies the parts that a write to the subresource, or to the main resource, may not change from `old`.
fn restrict_to_subresource(call: &Call<'_>, new: &mut Value, old: &Value) {
    let (resource, subresource) = (&call.resource, &call.route.subresource);
    if subresource.is_empty() && !resource.has_status() {
        return;
    }
    resource.strategy.restrict(subresource, new, old);
}
