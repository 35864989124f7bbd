//! All webhooks of an operator, by path.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Instant,
};

use bytes::Bytes;
use http::Extensions;
use kube_core::Resource;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    admission::{Admit, Defaulter, Validator, review, review_of_error},
    call::Deadline,
    conversion::{self, Conversions, Converter},
    declaration::{AdmissionDeclaration, AdmissionWebhook, ConversionDeclaration},
    metrics::WebhookMetrics,
};

/// The largest body of an admission request: two objects of 3 MB and the rest.
pub(crate) const MAX_ADMISSION_BODY: usize = 7 << 20;

/// The largest body of a conversion request. The body has all objects of a list.
pub(crate) const MAX_CONVERSION_BODY: usize = 128 << 20;

/// The path of conversions.
const CONVERT: &str = "/convert";

/// The admission and conversion webhooks of an operator.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass_webhook::{Admission, AdmissionContext, AdmissionChange, AdmissionDenial, Webhooks};
///
/// async fn default(mut config: ConfigMap, _: AdmissionContext) -> Result<ConfigMap, AdmissionDenial> {
///     config.data.get_or_insert_default().entry("colour".to_owned()).or_insert("red".to_owned());
///     Ok(config)
/// }
///
/// async fn validate(change: AdmissionChange<ConfigMap>, cx: AdmissionContext) -> Result<(), AdmissionDenial> {
///     match change.new_object().and_then(|config| config.data.as_ref()?.get("colour")) {
///         Some(colour) if colour == "grey" => Err(AdmissionDenial::new("grey is not a colour")),
///         _ => Ok(()),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let webhooks = Webhooks::new().defaulter::<ConfigMap>(default).validator::<ConfigMap>(validate);
///
/// // In a unit test: no server, no certificate.
/// let admitted = webhooks.admit(Admission::create(&ConfigMap::default())).await;
/// assert_eq!(admitted.object().unwrap().data.unwrap()["colour"], "red");
/// # }
/// ```
#[derive(Default)]
pub struct Webhooks {
    admission: Vec<AdmissionWebhook>,
    conversions: Vec<Conversions>,
    conversion_path: Option<String>,
    extensions: Arc<Extensions>,
}

impl Webhooks {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a defaulter of `K` with the usual declaration. See [`AdmissionWebhook::defaulter`].
    pub fn defaulter<K>(self, defaulter: impl Defaulter<K>) -> Self
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Serialize + Send + 'static,
    {
        self.admission(AdmissionWebhook::defaulter::<K>(defaulter))
    }

    /// Adds a validator of `K` with the usual declaration. See [`AdmissionWebhook::validator`].
    pub fn validator<K>(self, validator: impl Validator<K>) -> Self
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + 'static,
    {
        self.admission(AdmissionWebhook::validator::<K>(validator))
    }

    /// Adds an admission webhook.
    pub fn admission(mut self, webhook: AdmissionWebhook) -> Self {
        self.admission.push(webhook);
        self
    }

    /// Adds the conversions between the versions of a kind. All converters share the path `/convert`.
    pub fn converter<H>(mut self, converter: Converter<H>) -> Self
    where
        H: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
    {
        self.conversions.push(converter.erase());
        self
    }

    /// Sets the path of conversions. Default: `/convert`.
    pub fn conversion_path(mut self, path: impl Into<String>) -> Self {
        self.conversion_path = Some(path.into());
        self
    }

    /// Gives all admission webhooks a value, by its type:
    /// [`AdmissionContext::extensions`](crate::AdmissionContext::extensions) returns the value. A later value
    /// of the same type replaces an earlier value.
    pub fn extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        Arc::make_mut(&mut self.extensions).insert(value);
        self
    }

    pub(crate) fn extensions(&self) -> &Arc<Extensions> {
        &self.extensions
    }

    /// Returns the admission webhooks, in order of addition.
    pub fn admission_webhooks(&self) -> impl Iterator<Item = &AdmissionWebhook> {
        self.admission.iter()
    }

    /// Returns the declarations of the admission webhooks.
    pub fn admissions(&self) -> Vec<AdmissionDeclaration> {
        self.admission.iter().map(|webhook| webhook.declaration().clone()).collect()
    }

    /// Returns the declarations of the converters.
    pub fn conversions(&self) -> Vec<ConversionDeclaration> {
        let path = self.conversion_path.as_deref().unwrap_or(CONVERT);
        self.conversions
            .iter()
            .map(|conversions| ConversionDeclaration {
                group: conversions.group.clone(),
                kind: conversions.kind.clone(),
                plural: conversions.plural.clone(),
                versions: conversions.versions(),
                hub: conversions.hub_version().to_owned(),
                path: path.to_owned(),
            })
            .collect()
    }

    /// Returns the admission webhooks of a kind with this declaration, in order of addition.
    pub(crate) fn of(
        &self,
        wanted: impl Fn(&AdmissionDeclaration) -> bool,
    ) -> impl Iterator<Item = &AdmissionWebhook> {
        self.admission.iter().filter(move |webhook| wanted(webhook.declaration()))
    }

    /// Converts objects to another API version, such as `example.com/v2`, like a request of the API server.
    ///
    /// # Errors
    ///
    /// The message of the failed conversion.
    pub fn convert(&self, object: Value, api_version: &str) -> Result<Value, String> {
        let from = object["apiVersion"].as_str().unwrap_or_default();
        let group = from.rsplit_once('/').map_or("", |(group, _)| group);
        let wanted = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let mut conversions = self.conversions.iter();
        match conversions.find(|one| one.group == group && object["kind"] == *one.kind && group == wanted) {
            Some(conversions) => {
                let version = api_version.rsplit('/').next().unwrap_or_default();
                conversions.convert(object, version)
            }
            None => Err(format!("no kind {} is registered for version {api_version:?}", object["kind"])),
        }
    }

    /// Makes the deterministic core of a server.
    ///
    /// # Errors
    ///
    /// Two webhooks have the same path, a path is not valid, or a converter's declaration is wrong.
    pub fn dispatcher(self, metrics: WebhookMetrics) -> Result<Dispatcher, DeclarationError> {
        let failed = |message: String| Err(DeclarationError(message));
        let mut routes = BTreeMap::new();
        for webhook in self.admission {
            let path = webhook.declaration().path.clone();
            if !is_path(&path) {
                return failed(format!(
                    "{path:?} is not a webhook path: it has letters, digits, `-`, `_` and `/`"
                ));
            }
            metrics.prepare(&path);
            if routes.insert(path.clone(), Route::Admission(webhook.admit)).is_some() {
                return failed(format!("two webhooks have the path {path}; set one with `.path(..)`"));
            }
        }
        let mut seen = BTreeSet::new();
        for conversions in &self.conversions {
            let kind = format!("{}.{}", conversions.kind, conversions.group);
            if let Some(error) = conversions.errors().first() {
                return failed(error.clone());
            }
            if !seen.insert(kind.clone()) {
                return failed(format!("{kind} has two converters"));
            }
        }
        if !self.conversions.is_empty() {
            let path = self.conversion_path.unwrap_or_else(|| CONVERT.to_owned());
            let by_kind =
                self.conversions.into_iter().map(|one| ((one.group.clone(), one.kind.clone()), one));
            metrics.prepare(&path);
            if !is_path(&path) || routes.insert(path.clone(), Route::Conversion(by_kind.collect())).is_some()
            {
                return failed(format!("{path:?} cannot be the path of conversions"));
            }
        }
        Ok(Dispatcher(Arc::new(Inner { routes, extensions: self.extensions, metrics })))
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks")
            .field("admissions", &self.admissions())
            .field("conversions", &self.conversions())
            .finish()
    }
}

/// Returns whether a path is valid, by controller-runtime's rule for custom paths.
fn is_path(path: &str) -> bool {
    let is_segment = |segment: &str| {
        !segment.is_empty()
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    path == "/" || path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_segment))
}

/// A mistake in the declaration of webhooks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeclarationError(String);

enum Route {
    Admission(Admit),
    Conversion(BTreeMap<(String, String), Conversions>),
}

/// The webhooks as functions from the bytes of a request to the bytes of a reply. Cheap to clone.
///
/// A dispatcher knows neither HTTP nor TLS: [`WebhookServer`](crate::WebhookServer) adds both.
#[derive(Clone)]
pub struct Dispatcher(Arc<Inner>);

struct Inner {
    routes: BTreeMap<String, Route>,
    extensions: Arc<Extensions>,
    metrics: WebhookMetrics,
}

/// A request to a webhook.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The path.
    pub path: &'a str,
    /// The query. The parameter `timeout` is the time that the API server waits.
    pub query: Option<&'a str>,
    /// The header `Content-Type`.
    pub content_type: Option<&'a str>,
    /// The body.
    pub body: Bytes,
}

/// The reply of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status code. A denial has 200, too.
    pub code: u16,
    /// The header `Content-Type`.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

impl Dispatcher {
    /// Answers a request. Never panics, and returns before the API server's time-out.
    pub async fn answer(&self, request: Request<'_>) -> Reply {
        let deadline = Deadline::from_query(request.query);
        self.answer_by(deadline, request).await
    }

    /// Works like [`answer`](Self::answer), with a deadline that started when the request began to arrive.
    pub(crate) async fn answer_by(&self, deadline: Deadline, request: Request<'_>) -> Reply {
        let Some(route) = self.0.routes.get(request.path) else {
            return plain(404, "404 page not found\n");
        };
        let start = Instant::now();
        let in_flight = self.0.metrics.begin(request.path);
        let reply = match route {
            Route::Admission(admit) => self.admit(admit, &request, deadline).await,
            Route::Conversion(converters) => {
                match conversion::review(converters, request.body.clone(), deadline, &self.0.metrics).await {
                    Some(body) => json(body),
                    None => plain(400, ""),
                }
            }
        };
        drop(in_flight);
        self.0.metrics.finish(request.path, reply.code, start.elapsed());
        reply
    }

    async fn admit(&self, admit: &Admit, request: &Request<'_>, deadline: Deadline) -> Reply {
        let content_type = request.content_type.unwrap_or_default();
        if request.body.is_empty() {
            return json(review_of_error(400, "request body is empty"));
        }
        if request.body.len() >= MAX_ADMISSION_BODY {
            return self.too_large(request.path);
        }
        if content_type != "application/json" {
            let message = format!("contentType={content_type}, expected application/json");
            return json(review_of_error(400, message));
        }
        let Inner { extensions, metrics, .. } = &*self.0;
        json(review(admit, request.body.clone(), extensions, deadline, metrics).await)
    }

    /// Returns the largest body that a path accepts, or `None` if there is no webhook.
    pub(crate) fn body_limit(&self, path: &str) -> Option<usize> {
        Some(match self.0.routes.get(path)? {
            Route::Admission(_) => MAX_ADMISSION_BODY,
            Route::Conversion(_) => MAX_CONVERSION_BODY,
        })
    }

    /// Returns the reply to a body that is too large to be read.
    pub(crate) fn too_large(&self, path: &str) -> Reply {
        match self.0.routes.get(path) {
            Some(Route::Conversion(_)) => plain(413, "request entity is too large\n"),
            _ => json(review_of_error(
                413,
                format!("request entity is too large; limit is {MAX_ADMISSION_BODY} bytes"),
            )),
        }
    }
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dispatcher").field(&self.0.routes.keys()).finish()
    }
}

fn json(body: Vec<u8>) -> Reply {
    Reply { code: 200, content_type: "application/json", body }
}

fn plain(code: u16, text: &str) -> Reply {
    Reply { code, content_type: "text/plain; charset=utf-8", body: text.as_bytes().to_vec() }
}
