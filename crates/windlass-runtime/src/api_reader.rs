//! Reads from the API server.

use kube_client::Client;
use kube_core::{ListMeta, Resource};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use windlass_cache::{ObjectKey, Selector};

use crate::{
    client::{
        ApiClient, Call, JSON, METADATA, METADATA_LIST,
        path::{collection_path, object_path},
    },
    error::{Error, Result},
    kind::Object,
    kind_ref::{IntoKind, KindRef, kind},
};

/// The number of objects of one page of a list.
const PAGE: &str = "500";

/// Reads from the API server instead of a cache: controller-runtime's `APIReader`. Cheap to clone.
///
/// A read sends a request, and returns the state of the server at the time of the request. Most reads belong to a cache
/// ([`Context::lister`](crate::Context::lister)); an `ApiReader` is for a kind that is read seldom, and for a decision that must not rest on
/// an old state. The controller declares the rights with [`needs`](crate::Controller::needs): `get`, and `list` for lists.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use windlass_runtime::{Action, Context, Controller, ObjectKey, Permission, Result, Verb};
///
/// async fn reconcile(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
///     let password = cx.api_reader().get::<Secret>(&key).await?;
///     tracing::info!(there = password.is_some());
///     Ok(Action::done())
/// }
///
/// let controller = Controller::of::<ConfigMap>(reconcile).needs(Permission::to::<Secret>([Verb::Get]));
/// # let _ = controller;
/// ```
#[derive(Clone)]
pub struct ApiReader {
    client: ApiClient,
}

impl ApiReader {
    /// Makes a reader that sends requests with `client`.
    pub fn new(client: Client) -> Self {
        Self::of(client.into())
    }

    pub(crate) fn of(client: ApiClient) -> Self {
        Self { client }
    }

    /// Returns the object under a key, or `None` if the server has no such object.
    ///
    /// # Errors
    /// The server refused the request, the server does not serve the kind, or the object does not decode.
    pub async fn get<K>(&self, key: &ObjectKey) -> Result<Option<K>>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        self.get_of(kind::<K>(), key).await
    }

    /// Works like [`get`](Self::get), for any [kind](KindRef).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_of<I>(&self, kind: I, key: &ObjectKey) -> Result<Option<I::Object>>
    where
        I: IntoKind<Object: DeserializeOwned>,
    {
        let kind = kind.into_kind();
        let explained =
            |error: Error| error.while_doing(format_args!("reading {} {key}", kind.resource().kind));
        let path = object_path(kind.resource(), key).map_err(|invalid| explained(invalid.into()))?;
        match self.read(path, if kind.metadata_only { METADATA } else { JSON }).await {
            Ok(object) => decode(&kind, object).map(Some),
            Err(error) if names_object(&error, key.name()) => Ok(None),
            Err(error) => Err(explained(error)),
        }
    }

    /// Returns the objects with matching labels, of one namespace or of all. Large collections are read in pages.
    ///
    /// # Errors
    /// The server refused a request, or an object does not decode.
    pub async fn list<K>(&self, namespace: Option<&str>, selector: &Selector) -> Result<Vec<K>>
    where
        K: Object + Resource<DynamicType = ()>,
    {
        self.list_of(kind::<K>(), namespace, selector).await
    }

    /// Works like [`list`](Self::list), for any [kind](KindRef).
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn list_of<I>(
        &self,
        kind: I,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Result<Vec<I::Object>>
    where
        I: IntoKind<Object: DeserializeOwned>,
    {
        let kind = kind.into_kind();
        let explained = |error: Error| error.while_doing(format_args!("listing {}", kind.resource().plural));
        let collection = collection_path(kind.resource(), namespace);
        let collection = collection.map_err(|invalid| explained(invalid.into()))?;
        let (mut objects, mut token) = (Vec::new(), None::<String>);
        loop {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("limit", PAGE);
            if !selector.is_everything() {
                query.append_pair("labelSelector", &selector.to_string());
            }
            query.extend_pairs(token.iter().map(|token| ("continue", token)));
            let path = format!("{collection}?{}", query.finish());
            let page = self.read::<Page>(path, if kind.metadata_only { METADATA_LIST } else { JSON }).await;
            let page = page.map_err(explained)?;
            for object in page.items {
                objects.push(decode(&kind, object)?);
            }
            token = page.metadata.continue_.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(objects);
            }
        }
    }

    async fn read<T: DeserializeOwned>(&self, path: String, accept: &'static str) -> Result<T> {
        self.client.exchange(Call::read(path)?.accept(accept)).await
    }
}

/// A page of a list.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<Value>,
}

/// Decodes an object. An item of a list names neither API version nor kind, and the metadata of an object names another kind.
fn decode<K: DeserializeOwned>(kind: &KindRef<K>, mut object: Value) -> Result<K> {
    if let Some(members) = object.as_object_mut()
        && (kind.metadata_only || !members.contains_key("kind"))
    {
        members.insert("apiVersion".to_owned(), json!(kind.resource().api_version));
        members.insert("kind".to_owned(), json!(kind.resource().kind));
    }
    serde_json::from_value(object).map_err(|cause| Error::undecodable_answer(&cause))
}

/// Returns whether the server did not find the object, and not the resource.
fn names_object(error: &Error, name: &str) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    error.is_not_found() && details.is_some_and(|details| details.name == name)
}

impl std::fmt::Debug for ApiReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiReader").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use k8s_openapi::api::core::v1::Secret;
    use kube_client::client::Body;

    use super::*;

    #[tokio::test]
    async fn a_key_that_names_no_single_object_is_not_sent() {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let code = if request.uri().path() == "/version" { 200 } else { 500 };
            Response::builder().status(code).body(Body::empty())
        });
        let reader = ApiReader::new(crate::client::in_process(service).expect("a client"));
        for key in [
            ObjectKey::namespaced("a", ""),
            ObjectKey::namespaced("a", "b/status"),
            ObjectKey::namespaced("a", "b%3Fwatch=true"),
            ObjectKey::namespaced("..", "b"),
        ] {
            let error = reader.get::<Secret>(&key).await.expect_err("refused").to_string();
            assert!(error.contains("cannot be a name"), "{error}");
        }
    }
}
