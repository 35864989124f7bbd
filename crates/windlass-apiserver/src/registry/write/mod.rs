//! The path of every write, in the steps of kube-apiserver:
//!
//! 1. decode, and default by schema and kind ([`Call::decode`]);
//! 2. the change itself: the body of the request, or a patch of the present object ([`Change::make`]);
//! 3. field management: the owners of fields after the write ([`Call::track`], a part of the change);
//! 4. mutating admission: the built-in plugins, then webhooks, and then the rights of the user for the result
//!    ([`admit::mutate`]); duplicate owner references are removed ([`remove_duplicate_owners`]), those of a body also
//!    before step 3;
//! 5. prepare: the kind sets, keeps or clears fields ([`prepare_create`], [`prepare_update`]);
//! 6. validate ([`validate_create`], [`validate_update`]);
//! 7. validating admission: plugins and webhooks, and then quotas ([`admit::validate_create`], [`admit::validate_update`]);
//! 8. commit, with a guard that runs on the state that is changed ([`commit_create`], [`commit_update`]).
//!
//! If another write came first, the steps start over on the newer object.

pub(super) mod admit;
mod change;
mod charge;
mod commit;
mod followers;
mod guard;
mod object_meta;
mod owners;
mod prepare;
mod validate;

use std::sync::Arc;

use serde_json::Value;

pub(super) use self::change::{Change, server_write};
use self::commit::{Creation, commit_create, commit_update};
pub(super) use self::commit::{commit, commit_draft};
pub(super) use self::guard::may_create_in;
pub(super) use self::owners::{OwnerCheck, remove_duplicate_owners};
use self::prepare::{prepare_create, prepare_update};
use self::validate::{validate_create, validate_update};
use super::options::WriteOptions;
use super::{Call, metadata, undecodable};
use crate::apart::checkpoint;
use crate::meta;
use crate::store::Stored;
use crate::verb::Verb;
use crate::wire::ApiError;

/// The number of taken names after which the client gets an error about the generated name.
const NAME_ATTEMPTS: usize = 8;
/// The longest generated name; the suffix has five characters.
const MAX_GENERATED_NAME: usize = 63;

/// Creates a decoded object with recorded managers.
pub(super) async fn create(
    call: &mut Call<'_>,
    mut object: Value,
    options: WriteOptions,
) -> Result<Arc<Stored>, ApiError> {
    metadata::settle_namespace(call, &mut object)?;
    checkpoint().await;
    admit::mutate(call, &mut object, None).await?;
    remove_duplicate_owners(call, &mut object, OwnerCheck::Mutated);
    checkpoint().await;
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
    let given_version = meta::resource_version(&object).to_owned();
    if call.route.verb != Verb::Create && !given_version.is_empty() {
        metadata::version_number(&given_version)?;
    }
    call.warnings.extend(resource.strategy.prepare.warnings(&object));
    prepare_create(call, &mut object)?;
    let warned = call.warnings.len();
    loop {
        let view = call.state.store.view();
        // Only allocations can lose against another write; the object is then needed once more.
        let mut new =
            if resource.strategy.allocate.is_some() { object.clone() } else { std::mem::take(&mut object) };
        resource.strategy.allocate(&call.context(&view), &mut new, None)?;
        call.warnings.truncate(warned);
        validate_create(call, &view, &new)?;
        admit::validate_create(call, &view, &new).await?;
        checkpoint().await;
        match commit_create(call, &view, new, &given_version, options).await? {
            Creation::Created(stored) => return Ok(stored),
            Creation::Exists(error) => return Err(error),
            Creation::ClaimTaken => {}
        }
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
        let old = resource.present_one(current).await;
        let old = old.map_err(|error| undecodable::before_write(current, &error))?.value();
        let mut new = change.make(call, &old).await?;
        checkpoint().await;
        metadata::check_uid(call, &new, &old)?;
        metadata::settle_namespace(call, &mut new)?;
        change.mutate(call, &mut new, &old).await?;
        remove_duplicate_owners(call, &mut new, OwnerCheck::Mutated);
        metadata::settle_namespace(call, &mut new)?;
        metadata::check_version(call, &new, &old)?;
        checkpoint().await;
        prepare_update(call, &view, &mut new, &old)?;
        checkpoint().await;
        validate_update(call, &view, &new, &old)?;
        admit::validate_update(call, &view, &mut change, &new, &old).await?;
        if let Some(stored) = commit_update(call, options, &mut change, current, (new, &old)).await? {
            return Ok(stored);
        }
    }
}
