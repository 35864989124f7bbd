//! The client and the caches of admission webhooks.

use std::sync::Arc;

use kube_client::Client;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use windlass_webhook::{AdmissionContext, AdmissionDenial, AdmissionWebhook, Webhooks};

use crate::{
    cache_declaration::CacheDeclaration,
    context::Caches,
    error::{Error, Result},
    informer::CacheOptions,
    kind::Object,
    kind_ref::{IntoKind, kind},
    lister::Lister,
    permission::Permission,
};

/// Declares the caches and the rights of an admission webhook. Part of the prelude of `windlass`.
pub trait AdmissionWebhookExt: Sized {
    /// Declares a cache of a kind, which [`AdmissionContext::lister`](AdmissionContextExt::lister) reads, and the rights to list and
    /// watch the kind.
    #[must_use]
    fn reads<K: Object + Resource<DynamicType = ()>>(self) -> Self {
        self.reads_of(kind::<K>(), CacheOptions::new())
    }

    /// Works like [`reads`](Self::reads), for any [kind](crate::KindRef), with namespaces, selectors, indexes
    /// and other options of the cache. [`AdmissionContext::lister_of`](AdmissionContextExt::lister_of) reads
    /// the cache.
    #[must_use]
    fn reads_of(self, kind: impl IntoKind, options: CacheOptions) -> Self;

    /// Declares a right that requests of the [client](AdmissionContextExt::client) need.
    #[must_use]
    fn needs(self, permission: Permission) -> Self;
}

impl AdmissionWebhookExt for AdmissionWebhook {
    fn reads_of(mut self, kind: impl IntoKind, options: CacheOptions) -> Self {
        declarations(&mut self).reads.push(CacheDeclaration::new(kind, options));
        self
    }

    fn needs(mut self, permission: Permission) -> Self {
        declarations(&mut self).needs.push(permission);
        self
    }
}

/// The cluster in the context of an admission request. Part of the prelude of `windlass`.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
/// use windlass_runtime::{
///     AdmissionContextExt as _, AdmissionWebhookExt as _, ObjectKey,
///     webhook::{Admission, AdmissionChange, AdmissionContext, AdmissionDenial, AdmissionWebhook, Webhooks},
/// };
/// use windlass_test::fake::FakeCluster;
///
/// async fn validate(_: AdmissionChange<ConfigMap>, cx: AdmissionContext) -> Result<(), AdmissionDenial> {
///     let namespaces = cx.lister::<Namespace>().await?;
///     let key = ObjectKey::cluster(cx.namespace().unwrap_or_default());
///     match namespaces.get(&key)?.and_then(|namespace| namespace.metadata.labels.clone()) {
///         Some(labels) if labels.contains_key("team") => Ok(()),
///         _ => Err(AdmissionDenial::new("the namespace has no team")),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let webhook = AdmissionWebhook::validator::<ConfigMap>(validate).reads::<Namespace>();
///
/// // In a unit test:
/// let mut config = ConfigMap::default();
/// config.metadata.namespace = Some("shop".to_owned());
/// let mut namespace = Namespace::default();
/// namespace.metadata.name = Some("shop".to_owned());
/// let webhooks = FakeCluster::new([namespace]).webhooks(Webhooks::new().admission(webhook)).unwrap();
/// let admitted = webhooks.admit(Admission::create(&config)).await;
/// assert_eq!(admitted.status().message, "the namespace has no team");
/// # }
/// ```
pub trait AdmissionContextExt {
    /// Returns a lister of a kind, after the first list of the cache has ended.
    ///
    /// # Errors
    /// The webhook does not declare the kind with [`reads`](AdmissionWebhookExt::reads), or no manager serves the webhook.
    fn lister<K: Object>(&self) -> impl Future<Output = Result<Lister<K>>> + Send;

    /// Works like [`lister`](Self::lister), for any [kind](crate::KindRef).
    ///
    /// # Errors
    /// The webhook does not declare the kind with [`reads_of`](AdmissionWebhookExt::reads_of), or no manager serves the webhook.
    fn lister_of<I>(&self, kind: I) -> impl Future<Output = Result<Lister<I::Object>>> + Send
    where
        I: IntoKind<Object: DeserializeOwned + Send + Sync + 'static>;

    /// Returns the manager's client. Declare the rights of requests with [`needs`](AdmissionWebhookExt::needs).
    ///
    /// # Errors
    /// No manager serves the webhook.
    fn client(&self) -> Result<&Client>;
}

impl AdmissionContextExt for AdmissionContext {
    async fn lister<K: Object>(&self) -> Result<Lister<K>> {
        let lister = cluster_of(self)?.caches.lister::<K>()?;
        lister.synced().await;
        Ok(lister)
    }

    fn lister_of<I>(&self, kind: I) -> impl Future<Output = Result<Lister<I::Object>>> + Send
    where
        I: IntoKind<Object: DeserializeOwned + Send + Sync + 'static>,
    {
        let kind = kind.into_kind();
        async move {
            let lister = cluster_of(self)?.caches.lister_of(&kind)?;
            lister.synced().await;
            Ok(lister)
        }
    }

    fn client(&self) -> Result<&Client> {
        Ok(&cluster_of(self)?.client)
    }
}

/// The declared caches and rights of one webhook.
#[derive(Clone, Debug, Default)]
struct Declarations {
    reads: Vec<CacheDeclaration>,
    needs: Vec<Permission>,
}

fn declarations(webhook: &mut AdmissionWebhook) -> &mut Declarations {
    webhook.extensions_mut().get_or_insert_default::<Declarations>()
}

fn all_declarations(webhooks: &Webhooks) -> impl Iterator<Item = &Declarations> {
    webhooks.admission_webhooks().filter_map(|webhook| webhook.extensions().get())
}

/// Returns the caches that the webhooks declare.
pub(crate) fn reads_of(webhooks: &Webhooks) -> Vec<CacheDeclaration> {
    all_declarations(webhooks).flat_map(|declared| declared.reads.clone()).collect()
}

/// Returns the rights that the webhooks declare with `needs`.
pub(super) fn needs_of(webhooks: &Webhooks) -> Vec<Permission> {
    all_declarations(webhooks).flat_map(|declared| declared.needs.clone()).collect()
}

/// The cluster that the webhooks of a manager, or of a fake cluster, read.
#[derive(Clone)]
pub(crate) struct WebhookCluster {
    pub(crate) client: Client,
    pub(crate) caches: Arc<Caches>,
}

fn cluster_of(cx: &AdmissionContext) -> Result<&WebhookCluster> {
    cx.extensions().get().ok_or_else(|| {
        Error::setup(
            "the webhook has no cluster to read: serve it with `Manager::webhooks`, or in a unit test with `FakeCluster::webhooks`",
        )
    })
}

impl From<Error> for AdmissionDenial {
    /// Denies with the status that the API server sent, or else with the error's text, code 500 and reason `InternalError`.
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error.status() {
            Some(status) => Self::from_status(status.clone()),
            None => Self::new(text).with_code(500, "InternalError"),
        }
    }
}
