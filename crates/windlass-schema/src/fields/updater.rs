//! Computes the field managers of updates, and the objects and field managers of applies.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::compare::{Comparison, compare};
use super::conflicts::{Conflict, Conflicts};
use super::convert::{Convert, converted, existing};
use super::error::TypedErrors;
use super::field_set::FieldSet;
use super::filter::FieldFilter;
use super::managers::{Managed, Managers};
use super::merge::merge;
use super::value;
use crate::graph::NodeRef;

mod prune;

/// The error of an apply or an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// Other managers own fields that the apply changes.
    Conflicts(Conflicts),
    /// The objects do not match their schemas, or a conversion failed.
    Failed(String),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflicts(conflicts) => conflicts.fmt(f),
            Self::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ApplyError {}

type Result<T> = std::result::Result<T, ApplyError>;

/// Adds the failed operation to the message of an error.
fn failed<E: fmt::Display>(what: &str) -> impl FnOnce(E) -> ApplyError + '_ {
    move |error| ApplyError::Failed(format!("{what}: {error}"))
}

/// Computes the field managers of an object after an update, and the object and the managers after an apply.
///
/// ```
/// # use windlass_schema::{NodeRef, Schema};
/// use serde_json::{Value, json};
/// use windlass_schema::fields::{ApplyError, Convert, ConvertError, Managers, Updater};
///
/// struct OneVersion(Schema);
///
/// impl Convert for OneVersion {
///     fn schema(&self, api_version: &str) -> Option<NodeRef<'_>> {
///         (api_version == "v1").then(|| self.0.root())
///     }
///
///     async fn convert(&self, _: &Value, _: &str, to: &str) -> Result<Value, ConvertError> {
///         Err(ConvertError::MissingVersion(format!("no version {to}")))
///     }
/// }
///
/// # async fn example() -> Result<(), ApplyError> {
/// let kind = OneVersion(windlass_schema::Catalog::builtin().schema("", "v1", "ConfigMap").unwrap());
/// let updater = Updater::new(&kind);
/// let (live, config) = (json!({"data": {"a": "1"}}), json!({"data": {"b": "1"}}));
/// let managers = updater.update(&Value::Null, &live, "v1", Managers::default(), "kubectl").await?;
/// let (object, managers) = updater.apply(&live, &config, "v1", managers, "operator", false).await?;
/// assert_eq!(object, Some(json!({"data": {"a": "1", "b": "1"}})));
/// assert_eq!(managers.0["operator"].fields.to_string(), ".data.b");
///
/// let conflict = updater.apply(&live, &json!({"data": {"a": "2"}}), "v1", managers, "operator", false).await;
/// assert_eq!(conflict.unwrap_err().to_string(), r#"conflict with "kubectl": .data.a"#);
/// # Ok(())
/// # }
/// # let mut example = std::pin::pin!(example());
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert!(matches!(example.as_mut().poll(&mut context), std::task::Poll::Ready(Ok(()))));
/// ```
pub struct Updater<'a, C> {
    convert: &'a C,
    filters: Option<&'a BTreeMap<String, FieldFilter>>,
}

impl<'a, C: Convert> Updater<'a, C> {
    /// Creates an updater that tracks all fields.
    pub fn new(convert: &'a C) -> Self {
        Self { convert, filters: None }
    }

    /// Sets, by API version, the filters of the fields that are tracked. Versions without a filter track all fields.
    #[must_use]
    pub fn with_filters(mut self, filters: &'a BTreeMap<String, FieldFilter>) -> Self {
        self.filters = Some(filters);
        self
    }

    /// Returns the managers after `manager` has replaced `live` by `new`.
    ///
    /// Both objects are of version `api_version` and have passed [`validate_typed`](super::validate_typed).
    /// `live` is `null` for a create. Managers of a version that no longer exists, and managers without
    /// fields, are dropped.
    ///
    /// # Errors
    /// The objects do not match the schemas, or a conversion fails.
    pub async fn update(
        &self,
        live: &Value,
        new: &Value,
        api_version: &str,
        managers: Managers,
        manager: &str,
    ) -> Result<Managers> {
        let (managers, lives) = self.reconcile(live, api_version, managers).await?;
        let change = Change { live, lives, new, api_version, manager };
        let (mut managers, changed) = self.change(&change, managers, true).await?;
        let before = managers.0.remove(manager).unwrap_or_default().fields;
        let fields = before.difference(&changed.removed).union(&changed.modified).union(&changed.added);
        let fields = self.filtered(api_version, fields);
        if !fields.is_empty() {
            let managed = Managed { fields, api_version: api_version.to_owned(), applied: false };
            managers.0.insert(manager.to_owned(), managed);
        }
        Ok(managers)
    }

    /// Applies a configuration. Returns the object, or `None` if it equals `live`, and the managers.
    ///
    /// Both objects are of version `api_version` and have passed [`validate_typed`](super::validate_typed),
    /// the configuration without duplicates. `live` is `null` for a create. Fields that `manager` has applied
    /// before and does not apply any more are removed, unless another manager owns the field.
    ///
    /// # Errors
    /// [`ApplyError::Conflicts`] if the apply changes fields of other managers without `force`.
    /// [`ApplyError::Failed`] if the objects do not match the schemas, or a conversion fails.
    pub async fn apply(
        &self,
        live: &Value,
        config: &Value,
        api_version: &str,
        managers: Managers,
        manager: &str,
        force: bool,
    ) -> Result<(Option<Value>, Managers)> {
        let (mut managers, lives) = self.reconcile(live, api_version, managers).await?;
        let schema = self.schema(api_version)?;
        let merged = merge(schema, live, config).map_err(failed("failed to merge config"))?;
        let fields = FieldSet::of(schema, config).map_err(failed("failed to get field set"))?;
        let fields = self.filtered(api_version, fields);
        let managed = Managed { fields, api_version: api_version.to_owned(), applied: true };
        let last = managers.0.insert(manager.to_owned(), managed);
        let new = match last.filter(|last| !last.fields.is_empty()) {
            Some(last) => {
                let pruned = self.prune(merged, api_version, &managers, &last).await;
                pruned.map_err(failed("failed to prune fields"))?
            }
            None => merged,
        };
        let change = Change { live, lives, new: &new, api_version, manager };
        let (managers, changed) = self.change(&change, managers, force).await?;
        // A new order of list elements changes no field.
        let may_be_same = changed.is_same() || self.filter(api_version).is_some();
        let is_same = may_be_same && value::equal(live, &new);
        Ok(((!is_same).then_some(new), managers))
    }

    fn schema(&self, api_version: &str) -> Result<NodeRef<'a>> {
        let schema = self.convert.schema(api_version);
        schema.ok_or_else(|| ApplyError::Failed(format!("no schema for version {api_version}")))
    }

    fn filter(&self, api_version: &str) -> Option<&'a FieldFilter> {
        self.filters.and_then(|filters| filters.get(api_version))
    }

    fn filtered(&self, api_version: &str, fields: FieldSet) -> FieldSet {
        match self.filter(api_version) {
            Some(filter) => filter.apply(&fields),
            None => fields,
        }
    }

    /// Adapts the managers to changes of the schema, and drops managers of versions that no longer exist.
    /// Also returns the live object in each version of the remaining managers.
    ///
    /// # Errors
    /// The live object cannot be converted to a version.
    async fn reconcile(
        &self,
        live: &Value,
        api_version: &str,
        managers: Managers,
    ) -> Result<(Managers, Lives)> {
        let (mut reconciled, mut lives) = (Managers::default(), Lives::new());
        for (name, mut managed) in managers.0 {
            let version = &managed.api_version;
            if version != api_version && !lives.contains_key(version) {
                let live = existing(converted(self.convert, live, api_version, version).await);
                let live = live.map_err(|error| ApplyError::Failed(error.to_string()))?;
                lives.insert(version.clone(), live.map(Cow::into_owned));
            }
            let Some(schema) = self.convert.schema(version) else { continue };
            if lives.get(version).is_none_or(Option::is_some) {
                managed.fields = managed.fields.reconciled(schema);
                reconciled.0.insert(name, managed);
            }
        }
        Ok((reconciled, lives))
    }

    /// Takes the fields that a change modifies or removes from the owning managers; returns the managers and
    /// the changed fields. The fields of the changing manager stay.
    async fn change(
        &self,
        change: &Change<'_>,
        mut managers: Managers,
        force: bool,
    ) -> Result<(Managers, Comparison)> {
        let changed = self.compared(change.live, change.new, change.api_version)?;
        let mut elsewhere: BTreeMap<String, Option<Comparison>> = BTreeMap::new();
        for managed in managers.0.values() {
            let version = &managed.api_version;
            if version == change.api_version || elsewhere.contains_key(version) {
                continue;
            }
            let compared = self.compared_at(change, version).await?;
            elsewhere.insert(version.clone(), compared);
        }
        let at = |version: &str| match elsewhere.get(version) {
            Some(compared) => compared.as_ref(),
            None => Some(&changed),
        };
        let others = |name: &str| name != change.manager;
        managers.0.retain(|name, managed| !others(name) || at(&managed.api_version).is_some());
        let mut conflicts = BTreeMap::new();
        for (name, managed) in managers.0.iter().filter(|(name, _)| others(name)) {
            let Some(changed) = at(&managed.api_version) else { continue };
            let fields = &managed.fields;
            let lost = fields.intersection(&changed.modified).union(&fields.intersection(&changed.added));
            if !lost.is_empty() {
                conflicts.insert(name.clone(), lost);
            }
        }
        if !force && !conflicts.is_empty() {
            let conflicts = conflicts.into_iter().flat_map(|(manager, fields)| {
                let paths: Vec<_> = fields.iter().collect();
                paths.into_iter().map(move |path| Conflict { manager: manager.clone(), path })
            });
            return Err(ApplyError::Conflicts(Conflicts(conflicts.collect())));
        }
        managers.0.retain(|name, managed| {
            if let Some(lost) = conflicts.get(name) {
                managed.fields = managed.fields.difference(lost);
            }
            if let Some(changed) = at(&managed.api_version).filter(|_| others(name)) {
                managed.fields = managed.fields.difference(&changed.removed);
            }
            !managed.fields.is_empty()
        });
        Ok((managers, changed))
    }

    /// Compares the objects of a change in another version; returns `None` for a version that no longer
    /// exists.
    async fn compared_at(&self, change: &Change<'_>, version: &str) -> Result<Option<Comparison>> {
        let Some(Some(live)) = change.lives.get(version) else { return Ok(None) };
        let new = converted(self.convert, change.new, change.api_version, version).await;
        let Some(new) = existing(new).map_err(failed("failed to convert new object"))? else {
            return Ok(None);
        };
        self.compared(live, &new, version).map(Some)
    }

    /// Compares two objects of a version, as far as fields are tracked.
    fn compared(&self, live: &Value, new: &Value, api_version: &str) -> Result<Comparison> {
        let changed = compare(self.schema(api_version)?, live, new);
        let changed = changed.map_err(failed::<TypedErrors>("failed to compare objects"))?;
        Ok(match self.filter(api_version) {
            Some(filter) => changed.filtered(filter),
            None => changed,
        })
    }
}

/// An object in the versions of the managers; `None` for a version that does not exist.
type Lives = BTreeMap<String, Option<Value>>;

/// A change of an object by a manager.
struct Change<'c> {
    live: &'c Value,
    /// The live object in the other versions of the managers.
    lives: Lives,
    new: &'c Value,
    api_version: &'c str,
    manager: &'c str,
}
