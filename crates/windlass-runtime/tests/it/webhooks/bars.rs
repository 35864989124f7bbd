//! A kind in two versions: `spec.size` of v1 is `spec.max` of v2; v2 also has `spec.min`.

use std::borrow::Cow;

use k8s_openapi::{
    NamespaceResourceScope, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_client::{Api, Client, api::PostParams};
use kube_core::{ObjectMeta, Resource};
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_runtime::webhook::{
    BoxError, Converter, Spoke, Webhooks,
    manifests::{Endpoint, conversion_of},
};

macro_rules! version {
    ($version:ident, $name:literal, $($field:ident),*) => {
        pub(super) mod $version {
            use super::*;

            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
            pub(crate) struct Spec {
                $(#[serde(default)] pub(crate) $field: u32),*
            }

            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
            #[serde(rename_all = "camelCase")]
            pub(crate) struct Bar {
                api_version: String,
                kind: String,
                pub(crate) metadata: ObjectMeta,
                pub(crate) spec: Spec,
            }

            impl Bar {
                pub(crate) fn new(metadata: ObjectMeta, spec: Spec) -> Self {
                    Self {
                        api_version: concat!("example.com/", $name).to_owned(),
                        kind: "Bar".to_owned(),
                        metadata,
                        spec,
                    }
                }
            }

            impl Resource for Bar {
                type DynamicType = ();
                type Scope = NamespaceResourceScope;

                fn kind((): &()) -> Cow<'_, str> {
                    "Bar".into()
                }

                fn group((): &()) -> Cow<'_, str> {
                    "example.com".into()
                }

                fn version((): &()) -> Cow<'_, str> {
                    $name.into()
                }

                fn plural((): &()) -> Cow<'_, str> {
                    "bars".into()
                }

                fn meta(&self) -> &ObjectMeta {
                    &self.metadata
                }

                fn meta_mut(&mut self) -> &mut ObjectMeta {
                    &mut self.metadata
                }
            }
        }
    };
}

version!(v1, "v1", size);
version!(v2, "v2", min, max);

impl Spoke<v2::Bar> for v1::Bar {
    type Error = BoxError;

    fn to_hub(self) -> Result<v2::Bar, BoxError> {
        if self.spec.size == 13 {
            return Err("13 is unlucky".into());
        }
        Ok(v2::Bar::new(self.metadata, v2::Spec { min: 0, max: self.spec.size }))
    }

    fn from_hub(hub: v2::Bar) -> Result<Self, BoxError> {
        Ok(v1::Bar::new(hub.metadata, v1::Spec { size: hub.spec.max }))
    }
}

pub(super) fn webhooks() -> Webhooks {
    Webhooks::new().converter(Converter::hub::<v2::Bar>().spoke::<v1::Bar>().lossless())
}

/// Returns the definition, with `stored` as the storage version.
pub(super) fn definition(stored: &str, endpoint: &Endpoint) -> CustomResourceDefinition {
    let version = |name: &str, fields: &[&str]| {
        let properties: serde_json::Map<String, _> =
            fields.iter().map(|field| ((*field).to_owned(), json!({"type": "integer"}))).collect();
        let spec = json!({"type": "object", "properties": properties});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({"name": name, "served": true, "storage": name == stored, "schema": {"openAPIV3Schema": schema}})
    };
    let conversion = conversion_of(&webhooks().conversions()[0], endpoint);
    let definition = json!({
        "metadata": {"name": "bars.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "bars", "singular": "bar", "kind": "Bar"},
            "conversion": conversion,
            "versions": [version("v1", &["size"]), version("v2", &["min", "max"])],
        }
    });
    serde_json::from_value(definition).expect("a definition")
}

pub(super) fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

pub(super) fn old_bars(client: &Client) -> Api<v1::Bar> {
    Api::default_namespaced(client.clone())
}

pub(super) fn bars(client: &Client) -> Api<v2::Bar> {
    Api::default_namespaced(client.clone())
}

pub(super) async fn create_old(client: &Client, name: &str, size: u32) -> kube_client::Result<v1::Bar> {
    old_bars(client).create(&PostParams::default(), &v1::Bar::new(named(name), v1::Spec { size })).await
}
