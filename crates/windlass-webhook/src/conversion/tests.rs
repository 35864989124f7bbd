use bytes::Bytes;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Converter, Spoke};
use crate::{BoxError, Dispatcher, Reply, Request, WebhookMetrics, Webhooks};

/// Declares a version of the kind `Bar`.
macro_rules! version {
    ($version:ident, $name:literal, { $($field:ident: $type:ty),* }) => {
        mod $version {
            use super::*;

            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
            #[serde(rename_all = "camelCase")]
            pub(super) struct Spec {
                $(#[serde(default, skip_serializing_if = "is_default")] pub(super) $field: $type),*
            }

            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
            pub(super) struct Bar {
                pub(super) metadata: kube_core::ObjectMeta,
                pub(super) spec: Spec,
            }

            impl kube_core::Resource for Bar {
                type DynamicType = ();
                type Scope = k8s_openapi::NamespaceResourceScope;
                fn kind((): &()) -> std::borrow::Cow<'_, str> { "Bar".into() }
                fn group((): &()) -> std::borrow::Cow<'_, str> { "example.com".into() }
                fn version((): &()) -> std::borrow::Cow<'_, str> { $name.into() }
                fn plural((): &()) -> std::borrow::Cow<'_, str> { "bars".into() }
                fn meta(&self) -> &kube_core::ObjectMeta { &self.metadata }
                fn meta_mut(&mut self) -> &mut kube_core::ObjectMeta { &mut self.metadata }
            }
        }
    };
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A part, with a field that v1 does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Part {
    name: String,
    #[serde(default, skip_serializing_if = "is_default")]
    weight: u32,
}

version!(v1, "v1", { size: u32, names: Vec<String>, legacy: String });
version!(v2, "v2", { min: u32, max: u32, parts: Vec<Part>, note: Option<String> });
version!(v3, "v3", { limit: u32 });

impl Spoke<v2::Bar> for v1::Bar {
    type Error = BoxError;

    fn to_hub(self) -> Result<v2::Bar, BoxError> {
        match self.spec.size {
            666 => return Err("an odd size".into()),
            667 => panic!("on purpose"),
            _ => {}
        }
        let parts = self.spec.names.into_iter().map(|name| Part { name, weight: 0 }).collect();
        let spec = v2::Spec { min: 0, max: self.spec.size, parts, note: None };
        Ok(v2::Bar { metadata: self.metadata, spec })
    }

    fn from_hub(hub: v2::Bar) -> Result<Self, BoxError> {
        let names = hub.spec.parts.into_iter().map(|part| part.name).collect();
        let spec = v1::Spec { size: hub.spec.max, names, legacy: String::new() };
        Ok(v1::Bar { metadata: hub.metadata, spec })
    }
}

fn webhooks() -> Webhooks {
    let converter = Converter::hub::<v2::Bar>().spoke::<v1::Bar>().lossless().spoke_with(
        |bar: v3::Bar| {
            let spec = v2::Spec { max: bar.spec.limit, ..v2::Spec::default() };
            Ok::<_, BoxError>(v2::Bar { metadata: bar.metadata, spec })
        },
        |hub| Ok(v3::Bar { metadata: hub.metadata, spec: v3::Spec { limit: hub.spec.max } }),
    );
    Webhooks::new().converter(converter)
}

fn dispatcher() -> Dispatcher {
    webhooks().dispatcher(WebhookMetrics::default()).expect("a good declaration")
}

fn bar(version: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Bar",
        "metadata": {"name": "a", "namespace": "default", "uid": "u", "labels": {"l": "1"}, "unknown": true},
        "spec": spec
    })
}

async fn post(body: impl Into<Bytes>) -> Reply {
    let body = body.into();
    let request = Request { path: "/convert", query: Some("timeout=30s"), content_type: None, body };
    dispatcher().answer(request).await
}

async fn review(objects: Value, version: &str) -> Value {
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "u-1", "desiredAPIVersion": format!("example.com/{version}"), "objects": objects}
    });
    let reply = post(review.to_string()).await;
    assert_eq!(reply.code, 200);
    serde_json::from_slice(&reply.body).expect("JSON")
}

fn convert(object: &Value, version: &str) -> Value {
    webhooks().convert(object.clone(), &format!("example.com/{version}")).expect("converted")
}

#[tokio::test]
async fn a_review_is_answered_with_all_objects_in_their_order() {
    let objects =
        json!([bar("v1", json!({"size": 1})), bar("v2", json!({"max": 2})), bar("v1", json!({"size": 3}))]);
    let reply = review(objects, "v3").await;
    assert_eq!(
        (&reply["kind"], &reply["apiVersion"]),
        (&json!("ConversionReview"), &json!("apiextensions.k8s.io/v1"))
    );
    let response = &reply["response"];
    assert_eq!((&response["uid"], &response["result"]), (&json!("u-1"), &json!({"status": "Success"})));
    let limits: Vec<&Value> = response["convertedObjects"]
        .as_array()
        .expect("objects")
        .iter()
        .map(|one| &one["spec"]["limit"])
        .collect();
    assert_eq!(limits, [1, 2, 3]);
    let first = &response["convertedObjects"][0];
    assert_eq!(first["apiVersion"], "example.com/v3");
    assert_eq!(first["metadata"], bar("v1", json!({}))["metadata"]);
}

#[tokio::test]
async fn failures_are_told_and_nothing_is_guessed() {
    let message = async |object: Value, version: &str| {
        let reply = review(json!([object]), version).await;
        assert_eq!(reply["response"]["result"]["status"], "Failure");
        assert_eq!(reply["response"]["uid"], "u-1");
        reply["response"]["result"]["message"].as_str().unwrap_or_default().to_owned()
    };
    let same = "conversion is not allowed between same type example.com/v2, Kind=Bar";
    assert_eq!(message(bar("v2", json!({})), "v2").await, same);
    let odd = "failed to convert example.com/v1, Kind=Bar to example.com/v2, Kind=Bar: an odd size";
    assert_eq!(message(bar("v1", json!({"size": 666})), "v2").await, odd);
    let panicked = message(bar("v1", json!({"size": 667})), "v2").await;
    assert_eq!(panicked, "internal error occurred during conversion");
    let unknown = message(bar("v1", json!({})), "v9").await;
    assert_eq!(
        unknown,
        "failed to convert example.com/v1, Kind=Bar to example.com/v9, Kind=Bar: not convertible"
    );
    let mut other = bar("v1", json!({}));
    other["kind"] = json!("Foo");
    assert_eq!(message(other, "v2").await, "no kind \"Foo\" is registered for version \"example.com/v1\"");
    for body in ["", "{", "[]", "{\"request\": null}", "{\"request\": {\"uid\": 1}}"] {
        let reply = post(body).await;
        assert_eq!((reply.code, reply.body.len()), (400, 0), "{body}");
    }
}

#[test]
fn an_object_that_does_not_decode_is_refused_with_the_path_of_the_field() {
    let failed = |object: Value| webhooks().convert(object, "example.com/v2").expect_err("not decoded");
    assert_eq!(
        failed(bar("v1", json!({"size": "sesame"}))),
        "failed to convert example.com/v1, Kind=Bar to example.com/v2, Kind=Bar: \
         the object does not decode: spec.size: expected u32, found a string"
    );
    let webhooks = Webhooks::new().converter(plain::converter());
    let failed = webhooks.convert(plain::object("v1", json!({})), "example.com/v2").expect_err("no schedule");
    assert_eq!(
        failed,
        "failed to convert example.com/v1, Kind=Plain to example.com/v2, Kind=Plain: \
         the object does not decode: spec: the field `schedule` is missing"
    );
}

#[test]
fn a_conversion_adds_no_null_for_an_absent_field() {
    for lossless in [false, true] {
        let convert = |object: &Value, version: &str| {
            let converter = plain::converter();
            let converter = if lossless { converter.lossless() } else { converter };
            let webhooks = Webhooks::new().converter(converter);
            webhooks.convert(object.clone(), &format!("example.com/{version}")).expect("converted")
        };
        // A list with absent fields, and nulls in fields of any JSON, also in a renamed field.
        let spec = json!({"schedule": "* * * * *", "raw": {"a": null}, "jobs": [{"name": "x"}], "any": [null, {"b": null}]});
        let old = plain::object("v1", spec);
        let new = convert(&old, "v2");
        let expected = json!({"schedule": "* * * * *", "raw": {"a": null}, "jobs": [{"name": "x"}], "all": [null, {"b": null}]});
        assert_eq!((&new["spec"], new.get("status")), (&expected, None));
        assert_eq!(convert(&new, "v1"), old);
        // A null of the user stays.
        let old = plain::object("v1", json!({"schedule": "", "raw": 1, "jobs": [], "any": 1, "image": null}));
        let new = convert(&old, "v2");
        assert_eq!(new["spec"].get("image"), Some(&Value::Null));
        assert_eq!(convert(&new, "v1"), old);
    }
}

/// Two versions of a kind whose fields are written as null if they are absent.
mod plain {
    use super::*;

    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub(super) struct Job {
        name: String,
        note: Option<String>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub(super) struct OneSpec {
        schedule: String,
        image: Option<String>,
        #[serde(default)]
        jobs: Vec<Job>,
        #[serde(default)]
        raw: Value,
        #[serde(default)]
        any: Value,
    }

    #[derive(Clone, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct TwoSpec {
        schedule: String,
        image: Option<String>,
        time_zone: Option<String>,
        #[serde(default)]
        jobs: Vec<Job>,
        #[serde(default)]
        raw: Value,
        #[serde(default)]
        all: Value,
    }

    pub(super) fn converter() -> Converter<Two> {
        let to_hub = |one: One| Ok::<_, BoxError>(one.into_two());
        Converter::hub::<Two>().spoke_with(to_hub, |two| Ok(two.into_one()))
    }

    impl One {
        fn into_two(self) -> Two {
            let OneSpec { schedule, image, jobs, raw, any } = self.spec;
            let spec = TwoSpec { schedule, image, time_zone: None, jobs, raw, all: any };
            Two { metadata: self.metadata, spec, status: self.status }
        }
    }

    impl Two {
        fn into_one(self) -> One {
            let TwoSpec { schedule, image, time_zone: _, jobs, raw, all } = self.spec;
            let spec = OneSpec { schedule, image, jobs, raw, any: all };
            One { metadata: self.metadata, spec, status: self.status }
        }
    }

    pub(super) fn object(version: &str, spec: Value) -> Value {
        json!({"apiVersion": format!("example.com/{version}"), "kind": "Plain", "metadata": {"name": "a"}, "spec": spec})
    }

    macro_rules! kind {
        ($name:ident, $spec:ident, $version:literal) => {
            #[derive(Clone, Debug, Serialize, Deserialize)]
            pub(super) struct $name {
                metadata: kube_core::ObjectMeta,
                spec: $spec,
                status: Option<Value>,
            }

            impl kube_core::Resource for $name {
                type DynamicType = ();
                type Scope = k8s_openapi::NamespaceResourceScope;
                fn kind((): &()) -> std::borrow::Cow<'_, str> {
                    "Plain".into()
                }
                fn group((): &()) -> std::borrow::Cow<'_, str> {
                    "example.com".into()
                }
                fn version((): &()) -> std::borrow::Cow<'_, str> {
                    $version.into()
                }
                fn plural((): &()) -> std::borrow::Cow<'_, str> {
                    "plains".into()
                }
                fn meta(&self) -> &kube_core::ObjectMeta {
                    &self.metadata
                }
                fn meta_mut(&mut self) -> &mut kube_core::ObjectMeta {
                    &mut self.metadata
                }
            }
        };
    }

    kind!(One, OneSpec, "v1");
    kind!(Two, TwoSpec, "v2");
}

/// Server-side apply asks for this conversion when a field manager applies an object in another version than
/// before.
#[test]
fn an_object_without_spec_is_converted() {
    let mut object = bar("v1", json!({}));
    object.as_object_mut().expect("an object").remove("spec");
    let converted = convert(&object, "v2");
    assert_eq!(converted["apiVersion"], "example.com/v2");
    assert_eq!(converted["metadata"], object["metadata"]);
    assert_eq!(convert(&converted, "v1")["metadata"], object["metadata"]);
}

#[test]
fn fields_that_a_version_lacks_survive_a_round_trip() {
    let hub = bar(
        "v2",
        json!({"min": 1, "max": 5, "parts": [{"name": "a", "weight": 3}, {"name": "b"}], "note": "n"}),
    );
    let spoke = convert(&hub, "v1");
    assert_eq!(spoke["spec"], json!({"size": 5, "names": ["a", "b"]}));
    assert_eq!(convert(&spoke, "v2"), hub);
    // And through two spokes.
    let old = bar("v1", json!({"size": 2, "legacy": "x"}));
    let new = convert(&old, "v3");
    assert_eq!(convert(&new, "v1"), old);
}

#[test]
fn what_was_changed_meanwhile_is_not_overwritten() {
    let hub = bar(
        "v2",
        json!({"min": 1, "max": 5, "parts": [{"name": "a", "weight": 3}, {"name": "b", "weight": 4}]}),
    );
    let mut spoke = convert(&hub, "v1");
    spoke["spec"] = json!({"size": 7, "names": ["b", "c"]});
    let back = convert(&spoke, "v2");
    let parts = json!([{"name": "b", "weight": 4}, {"name": "c"}]);
    assert_eq!(back["spec"], json!({"min": 1, "max": 7, "parts": parts}));
    assert_eq!(back["metadata"].get("annotations"), None);
}

#[test]
fn without_a_loss_there_is_no_annotation() {
    let hub = bar("v2", json!({"max": 5, "parts": [{"name": "a"}]}));
    assert_eq!(convert(&hub, "v1")["metadata"], hub["metadata"]);
}

#[test]
fn more_than_an_annotation_can_keep_is_an_error() {
    let hub = bar("v2", json!({"note": "n".repeat(200 << 10)}));
    let error = webhooks().convert(hub, "example.com/v1").expect_err("too much");
    assert!(error.ends_with("an annotation keeps 131072"), "{error}");
}

#[test]
fn mistakes_in_a_declaration_are_errors() {
    let error =
        |webhooks: Webhooks| webhooks.dispatcher(WebhookMetrics::default()).expect_err("refused").to_string();
    let twice = Converter::hub::<v2::Bar>().spoke::<v1::Bar>().spoke::<v1::Bar>();
    assert_eq!(error(Webhooks::new().converter(twice)), "version v1 of Bar.example.com is declared twice");
    let kinds = Webhooks::new().converter(Converter::hub::<v2::Bar>()).converter(Converter::hub::<v2::Bar>());
    assert_eq!(error(kinds), "Bar.example.com has two converters");
    let declared = webhooks().conversions();
    assert_eq!(
        (&*declared[0].crd_name(), declared[0].versions.join(",")),
        ("bars.example.com", "v1,v2,v3".to_owned())
    );
}

fn spec() -> impl Strategy<Value = Value> {
    let part = ("[a-c]", 0..3_u32).prop_map(|(name, weight)| json!({"name": name, "weight": weight}));
    let parts = proptest::collection::vec(part, 0..3);
    (0..3_u32, 0..9_u32, parts, proptest::option::of("[xy]"))
        .prop_map(|(min, max, parts, note)| json!({"min": min, "max": max, "parts": parts, "note": note}))
}

proptest! {
    #[test]
    fn every_object_survives_a_round_trip(spec in spec()) {
        let hub = bar("v2", spec);
        let back = convert(&convert(&hub, "v1"), "v2");
        let typed = |object: &Value| serde_json::from_value::<v2::Bar>(object.clone()).unwrap();
        prop_assert_eq!(typed(&back), typed(&hub));
    }

    #[test]
    fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..100)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let reply = runtime.block_on(post(body));
        prop_assert!(matches!(reply.code, 200 | 400));
    }
}
