//! `POST …/token`: signs a token for a service account.

use http::{Response, StatusCode};
use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::Call;
use super::options::WriteOptions;
use crate::auth::{Claims, Reference};
use crate::body::Body;
use crate::managed_fields::FieldManager;
use crate::meta;
use crate::store::View;
use crate::store::rfc3339;
use crate::wire::{ApiError, GroupResource};
use windlass_kinds::kind_names::{self, NODE, POD, SECRET};
use windlass_kinds::resources;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = kind_names::TOKEN_REQUEST;
const DEFAULT_SECONDS: i64 = 3_600;
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;

pub(super) async fn request(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let mut wanted = call.decode_as(GROUP, "v1", KIND, options)?;
    let namespace = meta::namespace(&wanted);
    if !namespace.is_empty() && namespace != call.route.namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(why));
    }
    let managers = managers(call, &wanted).await;
    call.mutate_request(&mut wanted).await?;
    let view = call.state.store.view();
    check_metadata(call, &wanted)?;
    let account = view.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
    let uid = account.uid();
    check_uid(call, meta::uid(&wanted), uid)?;
    let spec = wanted.get("spec").cloned().unwrap_or_default();
    let seconds = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or(DEFAULT_SECONDS);
    check_duration(seconds)?;
    call.validate(&wanted, None).await?;
    let mut audiences: Vec<String> = texts(&spec, "audiences").collect();
    if audiences.is_empty() {
        audiences.extend_from_slice(call.state.issuer.audiences());
    }
    let bound = Bound::find(call, &view, &spec["boundObjectRef"])?;
    let now = call.state.env.now();
    let lifetime = bound.lifetime(seconds, audiences == call.state.issuer.audiences());
    let claims = Claims {
        namespace: call.route.namespace.clone(),
        name: call.route.name.clone(),
        uid: uid.to_owned(),
        audiences: audiences.clone(),
        expires: now.as_second() + lifetime,
        not_before: now.as_second(),
        id: call.state.env.uid(),
        pod: bound.pod,
        secret: bound.secret,
        node: bound.node,
    };
    let token = call.state.issuer.sign(&claims, now.as_second());
    let token = token.ok_or_else(|| ApiError::internal("failed to generate token: no randomness"))?;
    let reply = json!({
        "kind": KIND,
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": claims.name,
            "namespace": claims.namespace,
            "uid": claims.uid,
            "creationTimestamp": rfc3339(now),
            "managedFields": managers,
        },
        "spec": {
            "audiences": audiences,
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef").cloned().unwrap_or_default(),
        },
        "status": {
            "token": token,
            "expirationTimestamp": rfc3339(now + jiff::SignedDuration::from_secs(seconds)),
        },
    });
    call.value(StatusCode::CREATED, &reply).await
}

/// Returns the managers of the fields of a request.
async fn managers(call: &Call<'_>, wanted: &Value) -> Value {
    let mut tracked = wanted.clone();
    let (served, manager) = (call.state.served.load_full(), call.manager());
    let requests = &call.state.token_requests;
    windlass_schema::default(requests.schema.get(), &mut tracked);
    if let Some(Value::Object(spec)) = tracked.get_mut("spec") {
        spec.entry("expirationSeconds").or_insert_with(|| DEFAULT_SECONDS.into());
    }
    let fields = FieldManager { resource: requests, ..call.field_manager(&served, &manager) };
    fields.track(None, &mut tracked).await;
    tracked["metadata"]["managedFields"].take()
}

fn texts<'a>(spec: &'a Value, field: &str) -> impl Iterator<Item = String> + use<'a> {
    let values = spec.get(field).and_then(Value::as_array).into_iter().flatten();
    // Go decodes null in a list of texts as an empty text.
    values.map(|value| value.as_str().unwrap_or_default().to_owned())
}

/// Checks that a request with metadata is for the service account in the path.
fn check_metadata(call: &Call<'_>, request: &Value) -> Result<(), ApiError> {
    let name = meta::name(request);
    if name.is_empty() || name == call.route.name {
        return Ok(());
    }
    let why = "must match the service account name if specified";
    let error = FieldError::invalid("metadata.name", name, why);
    Err(ApiError::invalid(GROUP, KIND, &call.route.name, std::slice::from_ref(&error)))
}

fn check_uid(call: &Call<'_>, wanted: &str, found: &str) -> Result<(), ApiError> {
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    let why = format!(
        "the UID in the token request ({wanted}) does not match the UID of the service account ({found})"
    );
    Err(ApiError::conflict(&GroupResource::new(GROUP, KIND), &call.route.name, why))
}

/// The object that a bound token depends on.
#[derive(Default)]
struct Bound {
    pod: Option<Reference>,
    secret: Option<Reference>,
    /// The node that the token is bound to, or the node of the pod.
    node: Option<Reference>,
}

impl Bound {
    /// Looks up the object that a token request refers to.
    fn find(call: &Call<'_>, view: &View, reference: &Value) -> Result<Self, ApiError> {
        if !reference.is_object() {
            return Ok(Self::default());
        }
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let namespace = &call.route.namespace;
        let (resource, key) = match (group, kind) {
            ("", POD) => (&resources::PODS, format!("{namespace}/{name}")),
            ("", SECRET) => (&resources::SECRETS, format!("{namespace}/{name}")),
            ("", NODE) => (&resources::NODES, name.to_owned()),
            _ => {
                let shown = format!("{group}/{version}, Kind={kind}");
                return Err(ApiError::bad_request(format!("cannot bind token to object of type {shown}")));
            }
        };
        if name.is_empty() {
            return Err(ApiError::bad_request("Name parameter required."));
        }
        let found = view.get(resource, &key);
        let found = found.ok_or_else(|| ApiError::not_found(&resource.group_resource(), name))?;
        let bound = || Some(Reference { name: name.to_owned(), uid: found.uid().to_owned() });
        let bound = match kind {
            POD => Self { pod: bound(), node: node_of(call, view, &found.value())?, secret: None },
            SECRET => Self { secret: bound(), ..Self::default() },
            _ => Self { node: bound(), ..Self::default() },
        };
        let uid = text("uid");
        if uid.is_empty() || uid == found.uid() {
            return Ok(bound);
        }
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        Err(ApiError::conflict(&GroupResource::new("", kind), name, why))
    }

    /// Returns the lifetime of a token in seconds. Tokens that clients mount into pods are valid for a year,
    /// as in the real server, which counts late uses.
    fn lifetime(&self, seconds: i64, for_this_server: bool) -> i64 {
        const MOUNTED: i64 = 3_607;
        const YEAR: i64 = 365 * 24 * 3_600;
        let is_mounted = self.pod.is_some() && seconds == MOUNTED;
        if is_mounted && for_this_server { YEAR } else { seconds }
    }
}

/// Returns the node of a pod with a service account that requests a token.
fn node_of(call: &Call<'_>, view: &View, pod: &Value) -> Result<Option<Reference>, ApiError> {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/spec/serviceAccountName") != call.route.name {
        return Err(ApiError::bad_request(format!(
            "cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
            windlass_schema::go_quote(&call.route.name)
        )));
    }
    let name = text("/spec/nodeName");
    let uid = view.get(&resources::NODES, name).map(|node| node.uid().to_owned());
    Ok((!name.is_empty()).then(|| Reference { name: name.to_owned(), uid: uid.unwrap_or_default() }))
}

fn check_duration(seconds: i64) -> Result<(), ApiError> {
    let why = if seconds < SHORTEST {
        "may not specify a duration less than 10 minutes"
    } else if seconds > LONGEST {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let error = FieldError::invalid("spec.expirationSeconds", seconds, why);
    Err(ApiError::invalid(GROUP, KIND, "", std::slice::from_ref(&error)))
}
