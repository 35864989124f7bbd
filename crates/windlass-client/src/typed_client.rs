//! Reads and writes of a kind.

use std::{borrow::Cow, fmt::Debug, marker::PhantomData};

use futures::{Stream, StreamExt};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, api::autoscaling::v1::Scale};
use kube_client::{Api, Client};
use kube_core::{ApiResource, ObjectList, Resource, ResourceExt, params::Patch, watch::WatchEvent};
use serde::{Serialize, de::DeserializeOwned};
use windlass_apply::ApplyConfiguration;
use windlass_runtime::{
    Error, Result,
    client::{InvalidName, path_segment},
};

use crate::{
    options::{
        ApplyOptions, CreateOptions, DeleteOptions, GetOptions, ListOptions, PatchOptions, UpdateOptions,
        WatchOptions,
    },
    verb,
};

/// Reads and writes the objects of a kind, in a namespace or in the cluster. Cheap to clone.
///
/// `V` is the [verb set](crate::verb) of the kind. The methods are the methods of a generated Go client; the
/// options of a request have Go's names, too. Every method sends a request: for reads from memory, use
/// listers and informers.
///
/// # Errors
/// Each method returns the error of the server, with the kind and the name in the text: see
/// [`Error::is_not_found`], [`Error::is_conflict`] and the other predicates.
///
/// ```no_run
/// # #[cfg(feature = "core-v1")] mod example {
/// use windlass_client::{CreateOptions, DeleteOptions, clientset::Clientset};
/// # use k8s_openapi::api::core::v1::ConfigMap;
///
/// # pub async fn example(clientset: Clientset, config: ConfigMap) -> windlass_runtime::Result<()> {
/// let config_maps = clientset.core_v1().config_maps("default");
/// config_maps.create(&config, &CreateOptions::default()).await?;
/// config_maps.delete("settings", &DeleteOptions::default()).await?;
/// # Ok(()) }
/// # }
/// ```
pub struct TypedClient<K, V = verb::AllVerbs> {
    api: Api<K>,
    plural: String,
    namespace: Result<(), InvalidName>,
    verbs: PhantomData<fn() -> V>,
}

/// The namespace of kube's client if the namespace has an invalid name: no name of a namespace has a `-` at the end.
const INVALID_NAMESPACE: &str = "invalid-";

impl<K: Resource<DynamicType = ()>, V> TypedClient<K, V> {
    /// Makes a client of a namespace. An empty namespace means all namespaces; such a client can list and
    /// watch objects. The methods of a client whose namespace has an invalid name fail; see [`api`](Self::api) for kube's client.
    pub fn namespaced(client: Client, namespace: &str) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        if namespace.is_empty() {
            return Self::of(Api::all(client));
        }
        match path_segment(namespace) {
            Ok(segment) => Self::of(Api::namespaced(client, &segment)),
            Err(invalid) => {
                let api = Api::namespaced(client, INVALID_NAMESPACE);
                Self { namespace: Err(invalid), ..Self::of(api) }
            }
        }
    }

    /// Makes a client of a kind that has no namespaces.
    pub fn cluster(client: Client) -> Self
    where
        K: Resource<Scope = ClusterResourceScope>,
    {
        Self::of(Api::all(client))
    }

    fn of(api: Api<K>) -> Self {
        let plural = ApiResource::erase::<K>(&()).plural;
        Self { api, plural, namespace: Ok(()), verbs: PhantomData }
    }
}

impl<K, V> TypedClient<K, V> {
    /// Returns kube's client of the same kind and namespace, for other requests: logs, `exec`, evictions and
    /// other subresources. kube's client encodes no name: pass names through
    /// [`path_segment`](windlass_runtime::client::path_segment). If the namespace of this client has an invalid name, kube's client has
    /// a namespace that no cluster has.
    pub fn api(&self) -> &Api<K> {
        &self.api
    }

    /// Returns the name of an object as a part of a path.
    fn segment<'a>(&self, doing: &str, name: &'a str) -> Result<Cow<'a, str>> {
        self.check_namespace(doing, name)?;
        self.explain(path_segment(name), doing, name)
    }

    fn check_namespace(&self, doing: &str, name: &str) -> Result<()> {
        self.explain(self.namespace.clone(), doing, name)
    }

    /// Adds the verb and the name of the object to an error.
    fn explain<T, E: Into<Error>>(&self, result: Result<T, E>, doing: &str, name: &str) -> Result<T> {
        let separator = if name.is_empty() { "" } else { " " };
        result.map_err(|error| {
            let error: Error = error.into();
            error.while_doing(format_args!("{doing} {}{separator}{name}", self.plural))
        })
    }
}

impl<K, V> TypedClient<K, V>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    /// Creates an object and returns the stored object.
    pub async fn create(&self, object: &K, options: &CreateOptions) -> Result<K>
    where
        K: Serialize,
        V: verb::Create,
    {
        let name = object.name_any();
        self.check_namespace("creating", &name)?;
        self.explain(self.api.create(options, object).await, "creating", &name)
    }

    /// Replaces an object. An object with a resource version replaces only that version; other fields than the status are written
    /// if the kind has the subresource `status`.
    pub async fn update(&self, object: &K, options: &UpdateOptions) -> Result<K>
    where
        K: Serialize,
        V: verb::Update,
    {
        let name = object.name_any();
        let segment = self.segment("updating", &name)?;
        self.explain(self.api.replace(&segment, options, object).await, "updating", &name)
    }

    /// Replaces only the status of an object.
    pub async fn update_status(&self, object: &K, options: &UpdateOptions) -> Result<K>
    where
        K: Serialize,
        V: verb::UpdateStatus,
    {
        let name = object.name_any();
        let doing = "updating the status of";
        let segment = self.segment(doing, &name)?;
        self.explain(self.api.replace_status(&segment, options, object).await, doing, &name)
    }

    /// Deletes an object. An object with finalizers or a grace period stays for a while, terminating.
    pub async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<()>
    where
        V: verb::Delete,
    {
        let segment = self.segment("deleting", name)?;
        self.explain(self.api.delete(&segment, options).await.map(drop), "deleting", name)
    }

    /// Deletes the objects that match the list options.
    pub async fn delete_collection(&self, options: &DeleteOptions, list: &ListOptions) -> Result<()>
    where
        V: verb::DeleteCollection,
    {
        let doing = "deleting a collection of";
        self.check_namespace(doing, "")?;
        self.explain(self.api.delete_collection(options, list).await.map(drop), doing, "")
    }

    /// Returns an object. An error that [is "not found"](Error::is_not_found) means that there is none of this name.
    pub async fn get(&self, name: &str, options: &GetOptions) -> Result<K>
    where
        V: verb::Get,
    {
        let segment = self.segment("getting", name)?;
        self.explain(self.api.get_with(&segment, options).await, "getting", name)
    }

    /// Returns the objects that match the options, with the resource version of the list.
    pub async fn list(&self, options: &ListOptions) -> Result<ObjectList<K>>
    where
        V: verb::List,
    {
        self.check_namespace("listing", "")?;
        self.explain(self.api.list(options).await, "listing", "")
    }

    /// Returns the changes since a resource version, until the server ends the stream. `"0"` begins with the objects that there are.
    ///
    /// An informer is better for a long watch: an informer resumes, lists again after an expired version, and
    /// keeps the objects.
    pub async fn watch(
        &self,
        options: &WatchOptions,
        resource_version: &str,
    ) -> Result<impl Stream<Item = Result<WatchEvent<K>>> + use<K, V>>
    where
        V: verb::Watch,
    {
        self.check_namespace("watching", "")?;
        let events = self.explain(self.api.watch(options, resource_version).await, "watching", "")?;
        Ok(events.map(|event| event.map_err(Error::from)))
    }

    /// Patches an object: a JSON patch, a merge patch or a strategic merge patch.
    pub async fn patch<P: Serialize + Debug>(
        &self,
        name: &str,
        patch: &Patch<P>,
        options: &PatchOptions,
    ) -> Result<K>
    where
        V: verb::Patch,
    {
        let segment = self.segment("patching", name)?;
        self.explain(self.api.patch(&segment, options, patch).await, "patching", name)
    }

    /// Applies a configuration: server-side apply. The options must name the field manager ([`ApplyOptions::apply`]).
    pub async fn apply<C>(&self, configuration: &C, options: &ApplyOptions) -> Result<K>
    where
        C: ApplyConfiguration<Object = K>,
        V: verb::Apply,
    {
        let name = configuration.meta().name.clone().unwrap_or_default();
        let body = serde_json::to_value(configuration)?;
        let segment = self.segment("applying", &name)?;
        self.explain(self.api.patch(&segment, options, &Patch::Apply(body)).await, "applying", &name)
    }

    /// Applies the status of a configuration. The options must name the field manager ([`ApplyOptions::apply`]).
    pub async fn apply_status<C>(&self, configuration: &C, options: &ApplyOptions) -> Result<K>
    where
        C: ApplyConfiguration<Object = K>,
        V: verb::ApplyStatus,
    {
        let name = configuration.meta().name.clone().unwrap_or_default();
        let body = serde_json::to_value(configuration)?;
        let doing = "applying the status of";
        let segment = self.segment(doing, &name)?;
        self.explain(self.api.patch_status(&segment, options, &Patch::Apply(body)).await, doing, &name)
    }

    /// Returns the scale of an object.
    pub async fn get_scale(&self, name: &str) -> Result<Scale>
    where
        V: verb::GetScale,
    {
        let doing = "getting the scale of";
        let segment = self.segment(doing, name)?;
        self.explain(self.api.get_scale(&segment).await, doing, name)
    }

    /// Sets the number of replicas of an object.
    pub async fn update_scale(&self, name: &str, scale: &Scale, options: &UpdateOptions) -> Result<Scale>
    where
        V: verb::UpdateScale,
    {
        let segment = self.segment("scaling", name)?;
        self.explain(self.api.replace_scale(&segment, options, scale).await, "scaling", name)
    }
}

impl<K: Clone, V> Clone for TypedClient<K, V> {
    fn clone(&self) -> Self {
        let (api, plural, namespace) = (self.api.clone(), self.plural.clone(), self.namespace.clone());
        Self { api, plural, namespace, verbs: PhantomData }
    }
}

impl<K, V> Debug for TypedClient<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypedClient").field("resource", &self.plural).finish_non_exhaustive()
    }
}
