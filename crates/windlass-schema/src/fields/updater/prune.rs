//! Removes the fields that a manager has applied before and does not apply any more.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::Updater;
use crate::fields::convert::{Convert, converted, existing};
use crate::fields::field_set::FieldSet;
use crate::fields::managers::{Managed, Managers};
use crate::fields::remove::remove;
use crate::graph::NodeRef;

type Result<T> = std::result::Result<T, String>;

fn failed(what: &str, version: &str, error: impl std::fmt::Display) -> String {
    format!("{what} at version {version}: {error}")
}

/// An object that is being pruned: before the pruning, and the present result. Both have the same version.
struct Pruning<'p> {
    merged: Cow<'p, Value>,
    pruned: Cow<'p, Value>,
    version: String,
}

impl<C: Convert> Updater<'_, C> {
    /// Removes from a merged object the fields and list elements of `last`, the fields that the applying
    /// manager owned before and that no manager owns now.
    pub(super) async fn prune(
        &self,
        merged: Value,
        version: &str,
        managers: &Managers,
        last: &Managed,
    ) -> Result<Value> {
        if self.drops_nothing(&merged, managers, last) {
            return Ok(merged);
        }
        let at_last = existing(converted(self.convert, &merged, version, &last.api_version).await);
        let what = "failed to convert merged object to last applied version";
        let (Some(before), Some(schema)) =
            (at_last.map_err(|error| format!("{what}: {error}"))?, self.convert.schema(&last.api_version))
        else {
            return Ok(merged);
        };
        let last_fields = last.fields.with_named_fields(schema);
        let pruning = Pruning {
            merged: Cow::Borrowed(&*before),
            pruned: Cow::Owned(remove(schema, &before, &last_fields)),
            version: last.api_version.clone(),
        };
        let pruning = self.add_back_owned(pruning, managers).await;
        let pruning = pruning.map_err(|error| format!("failed add back owned items: {error}"))?;
        let pruned = self.add_back_unowned(&before, pruning, last, &last_fields, schema).await;
        let pruned = pruned.map_err(|error| format!("failed add back dangling items: {error}"))?;
        let pruned = converted(self.convert, &pruned, &last.api_version, version).await;
        pruned.map(Cow::into_owned).map_err(|error| error.to_string())
    }

    /// Returns whether other managers or the new configuration own all fields of `last`. A fast check.
    fn drops_nothing(&self, merged: &Value, managers: &Managers, last: &Managed) -> bool {
        let one_version = managers.0.values().all(|managed| managed.api_version == last.api_version);
        let Some(schema) = self.convert.schema(&last.api_version).filter(|_| one_version) else {
            return false;
        };
        let owned: Vec<&FieldSet> = managers.0.values().map(|next| &next.fields).collect();
        let owned = FieldSet::union_of(&owned);
        last.fields.is_covered_by(&owned, schema)
            && merged.as_object().is_some_and(|members| !members.is_empty())
    }

    /// Adds back the fields that managers own, at the version of each manager.
    async fn add_back_owned<'p>(&self, mut pruning: Pruning<'p>, managers: &Managers) -> Result<Pruning<'p>> {
        let mut owned: BTreeMap<&str, Vec<&FieldSet>> = BTreeMap::new();
        for managed in managers.0.values() {
            owned.entry(&managed.api_version).or_default().push(&managed.fields);
        }
        // The version of the pruned object is first: a conversion may need fields that have been removed.
        if let Some(fields) = owned.remove(&*pruning.version.clone()) {
            let version = pruning.version.clone();
            self.add_back_at(&mut pruning, &version, &FieldSet::union_of(&fields)).await?;
        }
        for (version, fields) in owned {
            self.add_back_at(&mut pruning, version, &FieldSet::union_of(&fields)).await?;
        }
        Ok(pruning)
    }

    async fn add_back_at(&self, pruning: &mut Pruning<'_>, version: &str, owned: &FieldSet) -> Result<()> {
        if version != pruning.version {
            let merged = existing(converted(self.convert, &pruning.merged, &pruning.version, version).await);
            let merged = merged.map_err(|error| failed("failed to convert merged object", version, error))?;
            let Some(merged) = merged else { return Ok(()) };
            let pruned = existing(converted(self.convert, &pruning.pruned, &pruning.version, version).await);
            let pruned = pruned.map_err(|error| failed("failed to convert pruned object", version, error))?;
            let Some(pruned) = pruned else { return Ok(()) };
            *pruning = Pruning {
                merged: Cow::Owned(merged.into_owned()),
                pruned: Cow::Owned(pruned.into_owned()),
                version: version.to_owned(),
            };
        }
        let Some(schema) = self.convert.schema(version) else { return Ok(()) };
        let fields = |object: &Value, what: &str| {
            let fields = FieldSet::of(schema, object);
            let fields = fields.map_err(|error| {
                failed(&format!("failed to create field set from {what} object"), version, error)
            });
            fields.map(|fields| fields.with_named_fields(schema))
        };
        let before = fields(&pruning.merged, "merged")?;
        let after = fields(&pruning.pruned, "pruned")?;
        let gone = before.difference(&after.union(&owned.with_named_fields(schema)));
        pruning.pruned = Cow::Owned(remove(schema, &pruning.merged, &gone));
        Ok(())
    }

    /// Adds back fields that the manager never owned: such a field was removed only together with an
    /// enclosing field of the manager.
    async fn add_back_unowned(
        &self,
        merged: &Value,
        pruning: Pruning<'_>,
        last: &Managed,
        last_fields: &FieldSet,
        schema: NodeRef<'_>,
    ) -> Result<Value> {
        let pruned = converted(self.convert, &pruning.pruned, &pruning.version, &last.api_version).await;
        let what = "failed to convert pruned object to last applied version";
        let pruned = existing(pruned).map_err(|error| format!("{what}: {error}"))?;
        let Some(pruned) = pruned else { return Ok(merged.clone()) };
        let fields = |object: &Value, what: &str| {
            let fields = FieldSet::of(schema, object);
            let fields = fields.map_err(|error| {
                format!("failed to create field set from {what} object in last applied version: {error}")
            });
            fields.map(|fields| fields.with_named_fields(schema))
        };
        let after = fields(&pruned, "pruned")?;
        let before = fields(merged, "merged")?;
        Ok(remove(schema, merged, &before.difference(&after).intersection(last_fields)))
    }
}
