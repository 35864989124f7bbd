//! Typed conversions of a kind.

use std::{collections::BTreeMap, marker::PhantomData};

use kube_core::Resource;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::rest;
use crate::{
    decode::{self, NEW},
    denial::BoxError,
    json::remove_new_nulls,
};

/// A version of a kind that converts to and from the hub `H`. All conversions go through the hub.
///
/// Conversions are pure functions: no request, no clock. A conversion copies labels and annotations
/// (`metadata: hub.metadata`); other metadata cannot change and is taken from the source.
///
/// ```
/// # mod v1 {
/// #     use serde::{Deserialize, Serialize};
/// #     use schemars::JsonSchema;
/// #     #[derive(kube::CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
/// #     #[kube(group = "example.com", version = "v1", kind = "Bar", namespaced)]
/// #     pub struct BarSpec { pub size: u32 }
/// # }
/// # mod v2 {
/// #     use serde::{Deserialize, Serialize};
/// #     use schemars::JsonSchema;
/// #     #[derive(kube::CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
/// #     #[kube(group = "example.com", version = "v2", kind = "Bar", namespaced)]
/// #     pub struct BarSpec { pub min: u32, pub max: u32 }
/// # }
/// use windlass_webhook::{BoxError, Converter, Spoke, Webhooks};
///
/// impl Spoke<v2::Bar> for v1::Bar {
///     type Error = BoxError;
///
///     fn to_hub(self) -> Result<v2::Bar, BoxError> {
///         Ok(v2::Bar { metadata: self.metadata, spec: v2::BarSpec { min: 0, max: self.spec.size } })
///     }
///
///     fn from_hub(hub: v2::Bar) -> Result<Self, BoxError> {
///         Ok(v1::Bar { metadata: hub.metadata, spec: v1::BarSpec { size: hub.spec.max } })
///     }
/// }
///
/// // v1 has no `min`: `lossless` keeps it in an annotation.
/// let webhooks = Webhooks::new().converter(Converter::hub::<v2::Bar>().spoke::<v1::Bar>().lossless());
/// # drop(webhooks);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not convert to and from the hub `{H}`",
    note = "implement `Spoke<{H}>` for `{Self}`, or pass two functions to `Converter::spoke_with`"
)]
pub trait Spoke<H>: Sized {
    /// The error: any type that converts into [`BoxError`].
    type Error: Into<BoxError>;

    /// Converts this version to the hub.
    fn to_hub(self) -> Result<H, Self::Error>;

    /// Converts the hub to this version.
    fn from_hub(hub: H) -> Result<Self, Self::Error>;
}

/// The conversions between the versions of a kind.
///
/// Each version except the *hub* is a *spoke*, and converts to and from the hub. See [`Spoke`].
pub struct Converter<H> {
    conversions: Conversions,
    hub: PhantomData<fn() -> H>,
}

/// A [`Converter`] with erased types.
pub(crate) struct Conversions {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    hub: String,
    /// Decodes and encodes the hub.
    hub_normal: Step,
    spokes: BTreeMap<String, Steps>,
    lossless: bool,
    /// Mistakes in the declaration.
    errors: Vec<String>,
}

type Step = Box<dyn Fn(&Value) -> Result<Value, BoxError> + Send + Sync>;

/// The conversions between a spoke and the hub.
struct Steps {
    to_hub: Step,
    from_hub: Step,
    /// Decodes and encodes the spoke.
    normal: Step,
}

impl Converter<()> {
    /// Creates a converter with the hub `H`, usually the version that is stored.
    pub fn hub<H>() -> Converter<H>
    where
        H: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
    {
        Converter {
            conversions: Conversions {
                group: H::group(&()).into_owned(),
                kind: H::kind(&()).into_owned(),
                plural: H::plural(&()).into_owned(),
                hub: H::version(&()).into_owned(),
                hub_normal: step(Ok::<H, BoxError>),
                spokes: BTreeMap::new(),
                lossless: false,
                errors: Vec::new(),
            },
            hub: PhantomData,
        }
    }
}

impl<H> Converter<H>
where
    H: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
{
    /// Adds a version that implements [`Spoke`].
    pub fn spoke<S>(self) -> Self
    where
        S: Spoke<H> + Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
    {
        self.spoke_with::<S, _>(S::to_hub, S::from_hub)
    }

    /// Adds a version with the two conversions of the version as functions.
    pub fn spoke_with<S, E>(
        mut self,
        to_hub: impl Fn(S) -> Result<H, E> + Send + Sync + 'static,
        from_hub: impl Fn(H) -> Result<S, E> + Send + Sync + 'static,
    ) -> Self
    where
        S: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
        E: Into<BoxError>,
    {
        let conversions = &mut self.conversions;
        let (group, kind, version) = (S::group(&()), S::kind(&()), S::version(&()).into_owned());
        if (&*group, &*kind) != (&*conversions.group, &*conversions.kind) {
            let (hub_kind, hub_group) = (&conversions.kind, &conversions.group);
            conversions.errors.push(format!(
                "the spoke {kind}.{group} is not a version of the hub's kind {hub_kind}.{hub_group}"
            ));
        }
        let steps = Steps { to_hub: step(to_hub), from_hub: step(from_hub), normal: step(Ok::<S, BoxError>) };
        let is_hub = version == conversions.hub;
        if is_hub || conversions.spokes.insert(version.clone(), steps).is_some() {
            conversions.errors.push(format!("version {version} of {kind}.{group} is declared twice"));
        }
        self
    }

    /// Keeps values that a version cannot express in the annotation `conversion.windlass.dev/<version>`. A
    /// round trip then loses no value.
    ///
    /// Each conversion is checked by converting back. Values that did not survive are written into the
    /// annotation; the conversion back restores the values that no client changed meanwhile, and removes the
    /// annotation.
    ///
    /// A conversion fails if the annotation would be larger than 128 KiB.
    pub fn lossless(mut self) -> Self {
        self.conversions.lossless = true;
        self
    }

    pub(crate) fn erase(self) -> Conversions {
        self.conversions
    }
}

fn step<A, B, E>(convert: impl Fn(A) -> Result<B, E> + Send + Sync + 'static) -> Step
where
    A: DeserializeOwned,
    B: Serialize + DeserializeOwned,
    E: Into<BoxError>,
{
    Box::new(move |source| {
        let mut converted = serde_json::to_value(convert(decode(source)?).map_err(Into::into)?)?;
        remove_new_nulls::<B>(source, &mut converted);
        Ok(converted)
    })
}

/// Decodes an object. An object without a `spec` that does not decode gets an empty `spec`: server-side apply
/// removes the fields that a field manager applied in another version before, and asks for the conversion of
/// the remaining object.
fn decode<T: DeserializeOwned>(object: &Value) -> Result<T, String> {
    decode::decode(NEW, object).or_else(|error| {
        if object.get("spec").is_some() {
            return Err(error);
        }
        let mut object = object.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.insert("spec".to_owned(), Value::Object(serde_json::Map::new()));
        }
        T::deserialize(object).map_err(|_| error)
    })
}

impl Conversions {
    /// Returns the versions, including the hub, in order.
    pub(crate) fn versions(&self) -> Vec<String> {
        let mut versions: Vec<String> = self.spokes.keys().cloned().collect();
        versions.push(self.hub.clone());
        versions.sort();
        versions
    }

    pub(crate) fn hub_version(&self) -> &str {
        &self.hub
    }

    /// Returns the mistakes in the declaration.
    pub(crate) fn errors(&self) -> &[String] {
        &self.errors
    }

    fn api_version(&self, version: &str) -> String {
        format!("{}/{version}", self.group)
    }

    /// Converts an object to another version of the kind.
    pub(crate) fn convert(&self, object: Value, version: &str) -> Result<Value, String> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let from = api_version.rsplit('/').next().unwrap_or_default().to_owned();
        if from == version {
            return Err(format!(
                "conversion is not allowed between same type {api_version}, Kind={}",
                self.kind
            ));
        }
        let known = |version: &str| version == self.hub || self.spokes.contains_key(version);
        if !known(&from) || !known(version) {
            let (from, to) = (self.shown(&from), self.shown(version));
            return Err(format!("failed to convert {from} to {to}: not convertible"));
        }
        let object = if from == self.hub { object } else { self.step(&object, &from, &self.hub)? };
        if version == self.hub { Ok(object) } else { self.step(&object, &self.hub, version) }
    }

    /// Converts between the hub and a spoke.
    fn step(&self, source: &Value, from: &str, to: &str) -> Result<Value, String> {
        let failed = |error: BoxError| {
            let (from, to) = (self.shown(from), self.shown(to));
            format!("failed to convert {from} to {to}: {error}")
        };
        let mut converted = self.typed_step(source, from, to).map_err(failed)?;
        if self.lossless {
            rest::restore(&mut converted, to).map_err(failed)?;
            let back = self.typed_step(&converted, to, from).map_err(failed)?;
            let normal = self.normal(from, source).map_err(failed)?;
            rest::keep(source, &normal, &back, &mut converted, from).map_err(failed)?;
        }
        Ok(converted)
    }

    /// Returns an object in the JSON of the object's Rust type.
    fn normal(&self, version: &str, object: &Value) -> Result<Value, BoxError> {
        match self.spokes.get(version) {
            Some(steps) => (steps.normal)(object),
            None => (self.hub_normal)(object),
        }
    }

    fn typed_step(&self, source: &Value, from: &str, to: &str) -> Result<Value, BoxError> {
        let metadata = source["metadata"].clone();
        let spoke = |version: &str| self.spokes.get(version).ok_or("no such version");
        let mut converted =
            if to == self.hub { (spoke(from)?.to_hub)(source)? } else { (spoke(to)?.from_hub)(source)? };
        let Some(members) = converted.as_object_mut() else {
            return Err("the result is not an object".into());
        };
        members.insert("apiVersion".to_owned(), self.api_version(to).into());
        members.insert("kind".to_owned(), self.kind.clone().into());
        let own = members.remove("metadata").unwrap_or_default();
        members.insert("metadata".to_owned(), merged_metadata(metadata, own));
        Ok(converted)
    }

    fn shown(&self, version: &str) -> String {
        format!("{}, Kind={}", self.api_version(version), self.kind)
    }
}

/// Returns the metadata of the source with the labels and annotations of the result. All other metadata
/// stays.
fn merged_metadata(mut source: Value, mut result: Value) -> Value {
    if let Some(members) = source.as_object_mut() {
        for field in ["labels", "annotations"] {
            match result.get_mut(field).map(Value::take) {
                Some(Value::Object(map)) if !map.is_empty() => {
                    members.insert(field.to_owned(), Value::Object(map))
                }
                _ => members.remove(field),
            };
        }
    }
    source
}
