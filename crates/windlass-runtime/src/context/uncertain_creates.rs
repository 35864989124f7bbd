//! Creates that may have taken effect: the server is asked before the next attempt.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_cache::RawObject;

use super::{Context, Target};
use crate::{
    client::{Call, METADATA_LIST, OnUnknownOutcome, WithMetadata, path::GroupResourceRef},
    error::{Error, Result},
    read_your_writes::Uncertain,
};

#[derive(Deserialize)]
struct Page {
    metadata: PageMeta,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct PageMeta {
    #[serde(default, rename = "continue")]
    token: String,
}

type Item = Box<RawValue>;

impl<K> Context<K> {
    /// Returns a function that remembers the create, even after the caller has dropped the request.
    pub(super) fn observer(&self, uncertain: &Uncertain) -> OnUnknownOutcome {
        let (uncertain, journal) = (uncertain.clone(), self.shared.caches.journal().clone());
        OnUnknownOutcome(Arc::new(move || journal.creates().insert(uncertain.clone())))
    }

    /// Remembers the create if the failure leaves the outcome unknown.
    pub(super) fn note_uncertain(&self, uncertain: Uncertain, error: &Error) {
        let is_refused = error.is_too_many_requests();
        if (error.is_transient() || error.is_decode()) && !is_refused {
            self.shared.caches.journal().creates().insert(uncertain);
        }
    }

    /// Lets the next reconcile wait until the caches show an object, if the create may have made the object.
    fn await_created(&self, item: &Item, target: &Target, uncertain: &Uncertain) {
        let Ok(WithMetadata { metadata }) = serde_json::from_str(item.get()) else { return };
        if uncertain.may_have_made(&metadata)
            && let Ok(object) = RawObject::from_json(item.get().as_bytes())
        {
            self.shared.caches.journal().await_object(GroupResourceRef::of(target.resource()), &object);
        }
    }

    /// Fails with a conflict if an earlier create with the same prefix may have taken effect, after a list of
    /// the existing objects from the server. The next reconcile of the key begins when the caches show these
    /// objects.
    pub(super) async fn settle_uncertain(
        &self,
        target: &Target,
        uncertain: Option<&Uncertain>,
    ) -> Result<()> {
        let creates = self.shared.caches.journal().creates();
        let Some(uncertain) = uncertain.filter(|uncertain| creates.contains(uncertain)) else {
            return Ok(());
        };
        let listed = Box::pin(self.wait_for_all(target, uncertain)).await;
        if listed.as_ref().is_err_and(Error::is_forbidden) {
            tracing::warn!(
                collection = uncertain.collection,
                "an earlier create may have succeeded, but this controller may not list the objects; creating another one"
            );
            creates.remove(uncertain);
            return Ok(());
        }
        listed?;
        creates.remove(uncertain);
        Err(Error::conflict(format!(
            "an earlier attempt to create {} {}* may have succeeded; the reconcile is repeated when the caches show it",
            target.resource().kind,
            uncertain.prefix
        )))
    }

    /// Lets the next reconcile wait until the caches show all objects with the prefix.
    async fn wait_for_all(&self, target: &Target, uncertain: &Uncertain) -> Result<()> {
        let mut token = String::new();
        loop {
            let page = self.metadata_page(&uncertain.collection, &token).await?;
            page.items.iter().for_each(|item| self.await_created(item, target, uncertain));
            token = page.metadata.token;
            if token.is_empty() {
                return Ok(());
            }
        }
    }

    async fn metadata_page(&self, collection: &str, token: &str) -> Result<Page> {
        let call = Call::read(format!("{collection}?{}", page_query(token)))?;
        self.api().exchange(call.accept(METADATA_LIST)).await
    }
}

fn page_query(token: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("limit", "500");
    if !token.is_empty() {
        query.append_pair("continue", token);
    }
    query.finish()
}
