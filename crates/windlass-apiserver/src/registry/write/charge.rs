//! Quotas: the charges of a write to the ResourceQuotas of the namespace. The plugin `ResourceQuota` of
//! kube-apiserver.
//!
//! A quota's new usage is committed together with the object, and only if no other write has charged the
//! quota meanwhile. Concurrent writes therefore never exceed a quota, and a failed write charges no quota.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_kinds::Subresource;
use windlass_kinds::quota::{Evaluator, Operation, Quota, Request, ResourceList, charge};

use crate::managed_fields::{FieldManager, SERVER};
use crate::meta;
use crate::registry::Call;
use crate::store::{Draft, Stored, Write};
use crate::wire::ApiError;
use windlass_kinds::AdmissionPlugin;
use windlass_kinds::resources::RESOURCE_QUOTAS;

/// A write, and the charges of the write.
pub(super) struct QuotaCheck<'a> {
    pub(super) object: &'a Value,
    /// `None` for a new object.
    pub(super) old: Option<&'a Value>,
    pub(super) charges: Vec<QuotaUpdate>,
}

/// A quota with the new usage.
pub(super) struct QuotaUpdate {
    pub(super) key: String,
    expected: u64,
    draft: Draft,
}

impl QuotaUpdate {
    pub(super) fn into_write(self, key: &str, now: Timestamp) -> Write<'_> {
        Write { id: &RESOURCE_QUOTAS, key, expected: Some(self.expected), draft: Some(self.draft), now }
    }
}

impl Call<'_> {
    /// Returns the quotas that a write changes. `old` is `None` for a new object.
    ///
    /// # Errors
    ///
    /// 403 if a quota would be exceeded, or cannot be checked.
    pub(super) async fn charges(
        &self,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<QuotaUpdate>, ApiError> {
        let view = self.state.store.view();
        let namespace = &self.route.namespace;
        if namespace.is_empty()
            || view.count(&RESOURCE_QUOTAS) == 0
            || !self.state.plugins.has(AdmissionPlugin::ResourceQuota)
        {
            return Ok(Vec::new());
        }
        let Some(evaluator) = Evaluator::of(&self.resource.group, &self.resource.plural) else {
            return Ok(Vec::new());
        };
        let stored: Vec<&Arc<Stored>> =
            view.range(&RESOURCE_QUOTAS, Some(namespace)).map(|(_, stored)| stored).collect();
        let values: Vec<Value> = stored.iter().map(|stored| stored.value()).collect();
        let quotas: Vec<Quota> = values.iter().map(Quota::of).collect();
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let (subresource, now) = (&self.route.subresource, self.state.env.now());
        let request = Request { evaluator, operation, subresource, object, old, now };
        let refuse = |why| ApiError::forbidden(&self.resource.group_resource(), meta::name(object), why);
        let charges = charge(&quotas, &request).map_err(refuse)?;
        // Boxed, because almost no write gets here: this future must not enlarge the futures of all writes.
        let mut changed = Vec::new();
        for charge in charges {
            let old = &values[charge.quota];
            let draft = Box::pin(self.charged(old, &charge.used)).await;
            let key = format!("{namespace}/{}", quotas[charge.quota].name);
            changed.push(QuotaUpdate { key, expected: stored[charge.quota].rv, draft });
        }
        Ok(changed)
    }

    /// Makes the quota `old` with the new usage.
    async fn charged(&self, old: &Value, used: &ResourceList) -> Draft {
        let (state, now) = (self.state, self.state.env.now());
        let mut new = old.clone();
        let used = used.iter().map(|(name, amount)| (name.clone(), Value::from(amount.to_string())));
        new["status"]["used"] = json!(used.collect::<serde_json::Map<_, _>>());
        let served = state.served.load_full();
        let Some(resource) = served.builtin(&RESOURCE_QUOTAS, "v1") else {
            return self.resource.draft(&new, state.store.labels(), now);
        };
        let manager =
            FieldManager { resource, served: &served, subresource: &Subresource::Status, name: SERVER, now };
        manager.track(Some(old), &mut new).await;
        resource.draft(&new, state.store.labels(), now)
    }
}
