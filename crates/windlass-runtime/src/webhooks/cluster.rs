//! The reads and writes of self-issued certificates in the cluster.

use std::collections::BTreeMap;

use http::Request;
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube_client::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use windlass_webhook::certificates::{SecretState, SecretWrite};

use super::configurations::Configurations;
use crate::error::{Error, Result};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The objects of the cluster that certificates are written to.
pub(super) struct Cluster {
    pub(super) client: Client,
    pub(super) configurations: Configurations,
    /// The namespace and the name of the Secret.
    pub(super) secret: (String, String),
    /// The names of the CustomResourceDefinitions that have conversion webhooks.
    pub(super) crds: Vec<String>,
}

/// An object with `caBundle`s.
pub(super) struct Trusting {
    /// The path in the API.
    path: String,
    /// The plural of the kind, if the kind is a webhook configuration.
    plural: Option<String>,
}

impl Cluster {
    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.secret.0)
    }

    /// Reads the Secret; `None` for a missing Secret.
    pub(super) async fn secret(&self) -> Result<Option<SecretState>> {
        let (namespace, name) = &self.secret;
        let doing = |error: kube_client::Error| {
            Error::from(error).while_doing(format_args!("reading Secret {namespace}/{name}"))
        };
        let secret = self.secrets().get_opt(name).await.map_err(doing)?;
        Ok(secret.map(|secret| SecretState {
            resource_version: secret.metadata.resource_version.unwrap_or_default(),
            data: secret.data.into_iter().flatten().map(|(key, value)| (key, value.0)).collect(),
        }))
    }

    /// Writes the Secret, unless another replica was faster.
    pub(super) async fn write_secret(&self, write: SecretWrite) -> Result<()> {
        let (namespace, name) = &self.secret;
        let data: BTreeMap<String, ByteString> =
            write.data.into_iter().map(|(key, value)| (key, ByteString(value))).collect();
        let written = match write.resource_version {
            None => {
                let metadata = ObjectMeta {
                    name: Some(name.clone()),
                    namespace: Some(namespace.clone()),
                    ..ObjectMeta::default()
                };
                let type_ = Some("kubernetes.io/tls".to_owned());
                let secret = Secret { metadata, data: Some(data), type_, ..Secret::default() };
                self.secrets().create(&PostParams::default(), &secret).await
            }
            // Labels and owners of other writers stay.
            Some(version) => {
                let patch = Patch::Merge(json!({ "metadata": { "resourceVersion": version }, "data": data }));
                self.secrets().patch(name, &PatchParams::default(), &patch).await
            }
        };
        let doing = |error: kube_client::Error| {
            Error::from(error).while_doing(format_args!("writing Secret {namespace}/{name}"))
        };
        written.map(drop).map_err(doing)
    }

    /// Reads the webhook configurations and the CustomResourceDefinitions.
    pub(super) async fn trusting(&self) -> Result<(Vec<Trusting>, Vec<Value>)> {
        let (mut places, mut objects) = (Vec::new(), Vec::new());
        for (plural, name, object) in self.configurations.all().await? {
            places.push(Trusting { path: format!("{CONFIGURATIONS}/{plural}/{name}"), plural: Some(plural) });
            objects.push(object);
        }
        for name in &self.crds {
            let path = format!("{CRDS}/{name}");
            match self.get(&path, "customresourcedefinitions").await {
                Ok(object) => {
                    places.push(Trusting { path, plural: None });
                    objects.push(object);
                }
                // The object will be installed later.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok((places, objects))
    }

    async fn get(&self, path: &str, what: &str) -> Result<Value> {
        let request = Request::get(path).body(Vec::new()).map_err(Error::other)?;
        let read = self.client.request(request).await;
        read.map_err(|error| Error::from(error).while_doing(format_args!("reading {what}")))
    }

    /// Applies a JSON patch.
    pub(super) async fn patch(&self, place: &Trusting, patch: &Value) -> Result<()> {
        let request = Request::patch(&place.path)
            .header(http::header::CONTENT_TYPE, "application/json-patch+json")
            .body(patch.to_string().into_bytes())
            .map_err(Error::other)?;
        let patched = self.client.request::<Value>(request).await;
        let doing = |error: kube_client::Error| {
            Error::from(error).while_doing(format_args!("writing the caBundle of {}", place.path))
        };
        let patched = patched.map_err(doing)?;
        if let Some(plural) = &place.plural {
            self.configurations.shown(plural, &patched).await;
        }
        Ok(())
    }
}
