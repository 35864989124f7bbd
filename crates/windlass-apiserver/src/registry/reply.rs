//! The replies of verbs: objects in the representation that was asked for.

use std::borrow::Cow;
use std::panic::resume_unwind;
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, stream};
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;
use windlass_kinds::Subresource;

use super::Call;
use crate::apart::Apart;
use crate::body::Body;
use crate::respond::{self, indent, wants_pretty};
use crate::store::{Stored, managed_fields_in, read_value};
use crate::verb::Verb;
use crate::wire::{self, ApiError, Format, Negotiated, Representation, TableVersion, Target};
use windlass_kinds::table::{IncludeObject, partial_object_metadata};

/// The smallest object that a reply in JSON shares with the store, in bytes.
pub(super) const SHARED: usize = 64 << 10;

impl Call<'_> {
    /// Returns the representation that the client wants.
    pub(super) fn negotiate(&self) -> Result<Negotiated, ApiError> {
        let target = match (self.route.verb, self.resource.is_custom()) {
            (_, true) => Target::Custom,
            (Verb::Watch, false) => Target::Watch,
            (Verb::List, false) => Target::List,
            (Verb::Create, false) if self.is_action() => Target::Action,
            (_, false) if self.is_without_table() => Target::Action,
            (_, false) => Target::Object,
        };
        let mut negotiated = wire::negotiate(self.header(header::ACCEPT), target)?;
        negotiated.pretty |= self.query.pretty().unwrap_or_else(|| wants_pretty(self.headers, None));
        Ok(negotiated)
    }

    /// Returns whether the request performs an action on an object, or asks about an object, instead of
    /// storing an object.
    fn is_action(&self) -> bool {
        let is_only_created = self.resource.verbs.iter().all(|verb| verb == "create");
        is_only_created
            || matches!(
                self.route.subresource,
                Subresource::Token | Subresource::Eviction | Subresource::Binding
            )
    }

    /// Returns whether the request is about a part of an object that kube-apiserver makes no table of.
    fn is_without_table(&self) -> bool {
        match &self.route.subresource {
            Subresource::Status => !self.resource.strategy.config.has_status_table,
            other => other.is_part(),
        }
    }

    /// Returns a stored object in the version of the request and the representation that was asked for.
    pub(super) async fn object(
        &self,
        code: StatusCode,
        stored: &Arc<Stored>,
    ) -> Result<Response<Body>, ApiError> {
        let negotiated = self.negotiate()?;
        let shown = self.resource.present_one(stored).await?;
        let bytes = match negotiated.representation {
            Representation::Object if negotiated.drops_managed_fields => {
                shown.without_managed_fields().concat().into()
            }
            Representation::Object => shown.json().clone(),
            Representation::PartialObjectMetadata(version) => {
                let mut out = Vec::with_capacity(shown.metadata().len() + 128);
                let metadata = self.resource.internal_form().metadata(shown.metadata());
                let metadata = sent_metadata(&metadata, negotiated.drops_managed_fields);
                respond::write_partial_metadata(&metadata, version.api_version(), &mut out);
                out.into()
            }
            Representation::PartialObjectMetadataList(_) => return Err(self.not_a_list()),
            Representation::Table(version) => {
                let value = shown.value();
                respond::object_bytes(&self.table(version, &value)?)
            }
        };
        self.json(code, bytes, negotiated).await
    }

    /// Returns the part of an object that the rows of a table carry.
    pub(super) fn include_object(&self) -> Result<IncludeObject, ApiError> {
        IncludeObject::parse(self.query.get("includeObject"))
    }

    /// Returns the table of an object.
    fn table(&self, version: TableVersion, object: &Value) -> Result<Value, ApiError> {
        let include = self.include_object()?;
        let is_scale = self.route.subresource == Subresource::Scale;
        let kind = if is_scale { self.resource.scale_table_kind() } else { self.resource.table_kind() };
        let object = match include {
            IncludeObject::Object => object.clone(),
            _ => self.resource.internal_form().object(object.clone()),
        };
        Ok(crate::table::table(&kind, &self.state.env, version, include, &[&object], &object, true))
    }

    /// Returns an object that is not stored, in the representation that was asked for.
    pub(super) async fn value(&self, code: StatusCode, value: &Value) -> Result<Response<Body>, ApiError> {
        let negotiated = self.negotiate()?;
        let dropped = negotiated.drops_managed_fields.then(|| {
            let mut value = value.clone();
            if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            value
        });
        let value = dropped.as_ref().unwrap_or(value);
        let bytes = match negotiated.representation {
            Representation::Object => respond::object_bytes(value),
            Representation::PartialObjectMetadata(version) => {
                respond::object_bytes(&partial_object_metadata(value, version))
            }
            Representation::PartialObjectMetadataList(_) => return Err(self.not_a_list()),
            Representation::Table(version) => respond::object_bytes(&self.table(version, value)?),
        };
        self.json(code, bytes, negotiated).await
    }

    fn not_a_list(&self) -> ApiError {
        let go_type = match (&self.route.subresource, self.resource.is_custom()) {
            (Subresource::Scale, false) => "autoscaling.Scale".to_owned(),
            (Subresource::Scale, true) => "v1.Scale".to_owned(),
            _ => self.resource.go_type(),
        };
        if self.resource.is_custom() && self.route.subresource != Subresource::Scale {
            // Go's type for all custom resources may be a list.
            return ApiError::unexplained("content is not a list");
        }
        ApiError::wrong_form(false, &go_type)
    }

    /// Returns JSON bytes in the requested format, compressed if large.
    pub(super) async fn json(
        &self,
        code: StatusCode,
        json: Bytes,
        negotiated: Negotiated,
    ) -> Result<Response<Body>, ApiError> {
        let bytes = match negotiated.format {
            Format::Json if negotiated.pretty => {
                self.apart(json.len(), move || Ok(indent(&json).into())).await?
            }
            Format::Json if json.len() >= SHARED && !self.accepts_gzip() => {
                let line = [json, Bytes::from_static(b"\n")];
                return Ok(self.respond(code, Body::shared(line), negotiated));
            }
            Format::Json => respond::line(&json).into(),
            Format::Yaml => {
                let length = json.len();
                let write = move || {
                    let value = read_value(&json).map_err(ApiError::internal)?;
                    Ok(wire::to_yaml(&value)?.into())
                };
                self.apart(length, write).await?
            }
            Format::Protobuf => {
                self.apart(json.len(), move || respond::protobuf(&json).map(Bytes::from)).await?
            }
        };
        Ok(self.whole(code, bytes, negotiated))
    }

    /// Returns bytes in the requested format, compressed if large.
    pub(super) fn whole(&self, code: StatusCode, bytes: Bytes, negotiated: Negotiated) -> Response<Body> {
        let (bytes, compressed) = wire::maybe_gzip(self.header(header::ACCEPT_ENCODING), bytes);
        let mut response = self.respond(code, Body::full(bytes), negotiated);
        if compressed {
            say_gzip(&mut response);
        }
        response
    }

    /// Returns bytes that come piece by piece, compressed if the client accepts compression.
    pub(super) fn stream(
        &self,
        pieces: impl Iterator<Item = Bytes> + Send + 'static,
        negotiated: Negotiated,
    ) -> Response<Body> {
        self.stream_by(pieces, negotiated, one_by_one)
    }

    /// Works like [`stream`](Self::stream). Each piece takes long, and is made on another thread.
    pub(super) fn stream_apart(
        &self,
        pieces: impl Iterator<Item = Bytes> + Send + 'static,
        negotiated: Negotiated,
    ) -> Response<Body> {
        let apart = self.state.apart.clone();
        self.stream_by(pieces, negotiated, move |pieces| each_apart(apart, pieces))
    }

    fn stream_by<S: Stream<Item = Bytes> + Send + 'static>(
        &self,
        pieces: impl Iterator<Item = Bytes> + Send + 'static,
        negotiated: Negotiated,
        stream: impl FnOnce(Box<dyn Iterator<Item = Bytes> + Send>) -> S,
    ) -> Response<Body> {
        let compress = self.accepts_gzip();
        let pieces: Box<dyn Iterator<Item = Bytes> + Send> =
            if compress { Box::new(wire::gzip_pieces(pieces)) } else { Box::new(pieces) };
        let body = Body::stream(stream(pieces));
        let mut response = self.respond(StatusCode::OK, body, negotiated);
        if compress {
            say_gzip(&mut response);
        }
        response
    }

    fn accepts_gzip(&self) -> bool {
        wire::accepts_gzip(self.header(header::ACCEPT_ENCODING))
    }

    /// Runs long work on a large body on another thread.
    async fn apart(
        &self,
        length: usize,
        work: impl FnOnce() -> Result<Bytes, ApiError> + Send + 'static,
    ) -> Result<Bytes, ApiError> {
        /// Bodies up to this size are done with in a few milliseconds.
        const LARGE: usize = 512 << 10;
        if length < LARGE {
            return work();
        }
        let done = self.state.apart.run(async move { work() }).await;
        // The message of a panic may quote the object, and is not for the client.
        done.map_err(|_panic| ApiError::internal("the reply could not be written"))?
    }

    /// Returns a body in the negotiated format, and the warnings that came up.
    pub(super) fn respond(&self, code: StatusCode, body: Body, negotiated: Negotiated) -> Response<Body> {
        let mut response = Response::new(body);
        *response.status_mut() = code;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(negotiated.format.content_type()));
        respond::warn(headers, &self.warnings);
        response
    }
}

/// Makes a stream of pieces. Each piece is sent, and other requests run, before the next piece.
fn one_by_one(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(pieces, |mut pieces| async move {
        let piece = pieces.next()?;
        tokio::task::yield_now().await;
        Some((piece, pieces))
    })
}

/// Makes a stream of pieces. Each piece is made on another thread, when the client has taken the piece before.
fn each_apart(
    apart: Apart,
    pieces: impl Iterator<Item = Bytes> + Send + 'static,
) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(pieces, move |mut pieces| {
        let apart = apart.clone();
        async move {
            let next = apart.run(async move { (pieces.next(), pieces) }).await;
            match next {
                Ok((piece, pieces)) => Some((piece?, pieces)),
                // The end of the stream would make a part of the reply look complete.
                Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                Err(_stopped) => None,
            }
        }
    })
}

fn say_gzip(response: &mut Response<Body>) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// Appends an object as an item of a list: built-in kinds do not repeat kind and version there.
pub(super) fn write_item(is_custom: bool, drops_managed_fields: bool, shown: &Stored, out: &mut Vec<u8>) {
    if !is_custom {
        out.push(b'{');
    }
    item_parts(is_custom, drops_managed_fields, shown).iter().for_each(|part| out.extend_from_slice(part));
}

/// Works like [`write_item`], but returns most of the item, without a copy.
pub(super) fn share_item(
    is_custom: bool,
    drops_managed_fields: bool,
    shown: &Stored,
    out: &mut Vec<u8>,
) -> Vec<Bytes> {
    if !is_custom {
        out.push(b'{');
    }
    let parts = item_parts(is_custom, drops_managed_fields, shown);
    parts.iter().filter(|part| !part.is_empty()).map(|part| shown.json().slice_ref(part)).collect()
}

fn item_parts(is_custom: bool, drops_managed_fields: bool, shown: &Stored) -> [&[u8]; 2] {
    match (is_custom, drops_managed_fields) {
        (true, false) => [&shown.json()[..], &[]],
        (true, true) => shown.without_managed_fields(),
        (false, false) => [shown.tail(), &[]],
        (false, true) => shown.tail_without_managed_fields(),
    }
}

/// Returns metadata as a reply has the metadata, with or without `managedFields`.
pub(super) fn sent_metadata(metadata: &[u8], drops_managed_fields: bool) -> Cow<'_, [u8]> {
    match managed_fields_in(metadata).filter(|_| drops_managed_fields) {
        Some(cut) => [&metadata[..cut.start], &metadata[cut.end..]].concat().into(),
        None => metadata.into(),
    }
}
