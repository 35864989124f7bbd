//! `DELETE` of an object and of collections: finalizers, grace periods, preconditions, propagation.

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use serde_json::Value;

use super::delete_options::DeleteOptions;
use super::options::ListOptions;
use super::{Call, delete_undecodable, list, write};
use crate::body::Body;
use crate::meta;
use crate::resource::Resource;
use crate::store::rfc3339;
use crate::store::{CommitError, Stored, View};
use crate::verb::Verb;
use crate::wire::{self, ApiError, Details, Status};
use windlass_kinds::Grace;
use windlass_kinds::Subresource;
use windlass_kinds::resources::NAMESPACES;

/// The time for which an object stays terminating after the grace period, before the removal.
///
/// The real server needs a second write to etcd for the removal. Controllers that wake up for a terminating
/// pod rely on that time: such a controller finds the pod in the cache, and reacts to the pod's end.
const TERMINATING: Duration = Duration::from_millis(5);

/// The outcome of a deletion.
pub(crate) enum Deleted {
    /// The object is removed; the value is the last state.
    Gone(Arc<Stored>),
    /// The object is terminating.
    Pending(Arc<Stored>),
}

pub(super) async fn delete(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    call.negotiate()?;
    let options = DeleteOptions::parse(call)?;
    if options.ignores_read_errors {
        return Box::pin(delete_undecodable::delete(call, &options)).await;
    }
    warn(call, &options);
    let name = call.route.name.clone();
    let namespace = call.route.namespace.clone();
    let deleted = remove(call, &namespace, &name, &options).await?;
    match deleted {
        // An object that a webhook does not convert is marked, although the reply cannot show the object.
        Deleted::Pending(stored) if call.resource.present_one(&stored).await.is_ok() => {
            let code =
                if options.orphan_dependents == Some(false) { StatusCode::ACCEPTED } else { StatusCode::OK };
            call.object(code, &stored).await
        }
        Deleted::Gone(stored) if call.resource.strategy.config.returns_deleted_object => {
            call.object(StatusCode::OK, &stored).await
        }
        Deleted::Pending(stored) | Deleted::Gone(stored) => {
            let status = Status::success(Details {
                name,
                group: call.resource.group.clone(),
                kind: call.resource.plural.clone(),
                uid: stored.uid().to_owned(),
                ..Details::default()
            });
            let negotiated = call.negotiate()?;
            call.json(StatusCode::OK, status.to_json().into(), negotiated).await
        }
    }
}

/// Deletes the selected objects. The reply lists the objects before the deletion.
pub(super) async fn delete_collection(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let negotiated = call.negotiate()?;
    let mut list = ListOptions::parse(&call.query, &call.resource, false)?;
    if list.limit == 0 {
        // The real server lists in pages: a resource version is the exact version of the list.
        list.limit = usize::MAX;
    }
    let options = DeleteOptions::parse(call)?;
    options.expect_read_errors()?;
    warn(call, &options);
    let page = list::select(call, &list, negotiated.representation).await?;
    for stored in &page.items {
        let object = stored.value();
        match remove(call, meta::namespace(&object), meta::name(&object), &options).await {
            Err(error) if error.code() != 404 => return Err(error),
            _ => {}
        }
    }
    list::reply(call, page, negotiated).await
}

/// Adds the warning of kinds that orphan dependents by default, if the client did not choose a propagation
/// policy.
fn warn(call: &mut Call<'_>, options: &DeleteOptions) {
    if options.has_no_propagation() {
        call.warnings.extend(call.resource.strategy.config.orphaning_warning.map(str::to_owned));
    }
}

/// Deletes an object, or marks the object for deletion if a finalizer or a grace period holds the object.
pub(super) async fn remove(
    call: &mut Call<'_>,
    namespace: &str,
    name: &str,
    options: &DeleteOptions,
) -> Result<Deleted, ApiError> {
    let resource = &Arc::clone(&call.resource);
    let told = call.warnings.len();
    let key = resource.key(namespace, name);
    let (mut last, mut granted) = (None::<Arc<Stored>>, None);
    loop {
        let view = call.state.store.view();
        let current = match (view.get(&resource.storage, &key), last.clone()) {
            // Another client removed the object after this request set deletionTimestamp. A new object may have
            // the name.
            (current, Some(marked)) if current.is_none_or(|current| current.uid() != marked.uid()) => {
                return Ok(Deleted::Gone(marked));
            }
            (Some(current), _) => current,
            (None, _) if name == call.route.name => return Err(call.not_found()),
            (None, _) => return Err(ApiError::not_found(&resource.group_resource(), name)),
        };
        let old = current.value();
        if last.is_none() {
            check_preconditions_of(resource, name, &old, options)?;
        }
        let mut object = old.clone();
        let Some(GracefulDeletion { outcome, grace }) = mark(call, &view, &mut object, options)? else {
            return Ok(Deleted::Pending(Arc::clone(current)));
        };
        let grace = grace.or(granted);
        call.warnings.truncate(told);
        // The real server first stores the object with the grace period, and calls admission again for the
        // removal.
        Box::pin(admit(call, &old, current, options, grace)).await?;
        let renewed = match outcome {
            DeletionOutcome::Now => None,
            DeletionOutcome::Kept | DeletionOutcome::Graceful => resource.renewed(current, &object).await,
        };
        if outcome == DeletionOutcome::Kept && *renewed.as_ref().unwrap_or(&object) == old {
            return Ok(Deleted::Pending(Arc::clone(current)));
        }
        let labels = call.state.store.labels();
        if options.dry_run {
            return Ok(match outcome {
                DeletionOutcome::Kept => {
                    Deleted::Pending(Arc::new(resource.dry_like(current, &object, labels)))
                }
                DeletionOutcome::Graceful => {
                    Deleted::Gone(Arc::new(resource.dry_like(current, &object, labels)))
                }
                DeletionOutcome::Now => Deleted::Gone(Arc::clone(current)),
            });
        }
        // The request's version never decoded the object: the object stays in the present layout.
        let now = call.state.env.now();
        let draft = match renewed {
            Some(renewed) => Some(resource.draft(&renewed, labels, now)),
            None => {
                (outcome != DeletionOutcome::Now).then(|| resource.draft_like(current, &object, labels, now))
            }
        };
        match write::commit_draft(call.state, resource, &key, Some(current.rv), draft, |_| Ok(())).await {
            Ok(stored) => match outcome {
                DeletionOutcome::Kept => return Ok(Deleted::Pending(stored)),
                DeletionOutcome::Graceful => {
                    (last, granted) = (Some(stored), grace);
                    if call.route.verb == Verb::Delete {
                        tokio::time::sleep(TERMINATING).await;
                    }
                }
                DeletionOutcome::Now => return Ok(Deleted::Gone(stored)),
            },
            Err(CommitError::Refused(error)) => return Err(error),
            Err(CommitError::Conflict | CommitError::ClaimTaken | CommitError::QuotaConflict) => {}
        }
    }
}

/// The effect of a deletion on an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DeletionOutcome {
    /// The object stays, terminating.
    Kept,
    /// The object is marked and then removed, because the grace period is over.
    Graceful,
    /// The object is removed.
    Now,
}

/// Checks the preconditions of the deletion of an object.
fn check_preconditions_of(
    resource: &Resource,
    name: &str,
    current: &Value,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    if resource.storage != *NAMESPACES {
        // The real server names the kind here where a resource belongs.
        let names = wire::GroupResource::new(&*resource.storage.group, &*resource.kind);
        return check_preconditions(&names, name, current, options);
    }
    let checks = [
        ("UID", &options.uid, meta::uid(current)),
        ("ResourceVersion", &options.resource_version, meta::resource_version(current)),
    ];
    for (field, wanted, found) in checks {
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) {
            let why = format!(
                "Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}"
            );
            return Err(ApiError::conflict(&resource.group_resource(), name, why));
        }
    }
    Ok(())
}

/// Checks the preconditions of a deletion. Errors name the object by `names`.
pub(super) fn check_preconditions(
    names: &wire::GroupResource,
    name: &str,
    current: &Value,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let uid = meta::uid(current);
    if let Some(wanted) = &options.uid
        && wanted != uid
    {
        return Err(ApiError::conflict(
            names,
            name,
            format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            ),
        ));
    }
    let version = meta::resource_version(current);
    if let Some(wanted) = &options.resource_version
        && wanted != version
    {
        return Err(ApiError::conflict(
            names,
            name,
            format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({version}). The object might have been modified"
            ),
        ));
    }
    Ok(())
}

/// Lets webhooks see the deletion of `object`, which is in the layout of `current`. Webhooks do not see the
/// deletion of another request, such as an eviction.
async fn admit(
    call: &mut Call<'_>,
    object: &Value,
    current: &Stored,
    options: &DeleteOptions,
    grace: Option<i64>,
) -> Result<(), ApiError> {
    if !call.route.subresource.is_empty() || !call.is_admitted() {
        return Ok(());
    }
    let resource = Arc::clone(&call.resource);
    let object = Arc::new(resource.dry_like(current, object, call.state.store.labels()));
    let object = resource.present_one(&object).await?.value();
    call.admit_deletion(&object, options, grace).await
}

/// The outcome of marking an object for deletion.
struct GracefulDeletion {
    outcome: DeletionOutcome,
    /// The grace period, for a kind with grace periods.
    grace: Option<i64>,
}

/// Marks the object for deletion. Returns `None` if the object is terminating already, and the grace period
/// continues.
fn mark(
    call: &Call<'_>,
    view: &View,
    object: &mut Value,
    options: &DeleteOptions,
) -> Result<Option<GracefulDeletion>, ApiError> {
    let strategy = &call.resource.strategy;
    if meta::is_deleting(object) && !strategy.delete.may_be_removed(object) {
        return Ok(None);
    }
    let mut context = call.context(view);
    context.subresource = &Subresource::None;
    let grace = strategy.delete.grace(&context, object, options.grace());
    let is_graceful = match graceful(call, object, options, grace) {
        Some(true) => return Ok(None),
        Some(false) => true,
        None => false,
    };
    let graceful_seconds = meta::integer(object, "deletionGracePeriodSeconds").unwrap_or(0);
    let graceful_stay = meta::is_deleting(object) && graceful_seconds > 0;
    // Events have no dependents.
    let orphans = strategy.config.ttl.is_none().then_some(strategy.config.orphans_by_default);
    options.mark(object, orphans);
    let held = meta::finalizers(object).next().is_some();
    let kept = strategy.delete.prepare_delete(&context, object)?;
    if kept && !meta::is_deleting(object) {
        // An object that the kind keeps has no grace period.
        meta::set(object, "deletionTimestamp", Some(call.state.env.now_rfc3339().into()));
    } else if held && !kept && !is_graceful {
        mark_deleting(call, object);
    }
    let grace = is_graceful.then_some(graceful_seconds);
    let outcome = match held || kept || graceful_stay {
        true => DeletionOutcome::Kept,
        false if is_graceful => DeletionOutcome::Graceful,
        false => DeletionOutcome::Now,
    };
    Ok(Some(GracefulDeletion { outcome, grace }))
}

/// Applies a grace period. Returns `Some(true)` if the object is terminating already and does not change.
fn graceful(call: &Call<'_>, object: &mut Value, options: &DeleteOptions, grace: Grace) -> Option<bool> {
    if let (true, Some(present)) =
        (meta::is_deleting(object), meta::integer(object, "deletionGracePeriodSeconds"))
    {
        if present == 0 {
            // Only finalizers hold the object.
            return None;
        }
        let Some(wanted) = options.grace() else { return Some(true) };
        if wanted >= present {
            return Some(true);
        }
        let at: Option<jiff::Timestamp> = meta::text(object, "deletionTimestamp").parse().ok();
        let now = call.state.env.now();
        // A deletion beyond the range of times gets a time from now on.
        let asked = at.and_then(|at| at.checked_sub(jiff::SignedDuration::from_secs(present)).ok());
        let asked = asked.filter(|asked| *asked > jiff::Timestamp::UNIX_EPOCH).unwrap_or(now);
        let at = later(asked, wanted);
        if at < now {
            // The granted time is over already; a granted deletion is still graceful.
            set_deletion(object, now, wanted.min(1));
        } else {
            set_deletion(object, at, wanted);
        }
        return Some(false);
    }
    if meta::is_deleting(object) {
        return None;
    }
    let Grace::Seconds(seconds) = grace else { return None };
    set_deletion(object, later(call.state.env.now(), seconds), seconds);
    bump_generation(object);
    Some(false)
}

/// Returns the time `seconds` after `at`, or the end of time.
fn later(at: jiff::Timestamp, seconds: i64) -> jiff::Timestamp {
    at.saturating_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(at)
}

fn set_deletion(object: &mut Value, at: jiff::Timestamp, grace: i64) {
    meta::set(object, "deletionTimestamp", Some(rfc3339(at).into()));
    meta::set(object, "deletionGracePeriodSeconds", Some(grace.into()));
}

fn bump_generation(object: &mut Value) {
    if let Some(generation) = meta::integer(object, "generation").filter(|generation| *generation > 0) {
        meta::set(object, "generation", Some((generation + 1).into()));
    }
}

/// Marks an object for deletion that finalizers hold.
fn mark_deleting(call: &Call<'_>, object: &mut Value) {
    let now = call.state.env.now();
    if meta::is_deleting(object) {
        let later = meta::text(object, "deletionTimestamp").parse().is_ok_and(|at: jiff::Timestamp| at > now);
        if later {
            meta::set(object, "deletionTimestamp", Some(rfc3339(now).into()));
        }
    } else {
        bump_generation(object);
        meta::set(object, "deletionTimestamp", Some(rfc3339(now).into()));
    }
    meta::set(object, "deletionGracePeriodSeconds", Some(0.into()));
}
