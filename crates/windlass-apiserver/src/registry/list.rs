//! `GET` of a collection.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::get::{not_older, not_older_of};
use super::options::{self, ListOptions, VersionMatch};
use super::pieces::{ListText, PIECE, Pieces, WriteItem};
use super::{Call, protobuf_list, reply, text_list, undecodable};
use crate::body::Body;
use crate::meta;
use crate::resource::{InternalForm, Unconverted};
use crate::respond::write_partial_metadata;
use crate::store::{Stored, View};
use crate::verb::Verb;
use crate::wire::{ApiError, Format, Negotiated, Representation, TableVersion, continue_token};
use windlass_kinds::resources::FLOW_SCHEMAS;
use windlass_kinds::table::{IncludeObject, TableKind};

/// The seconds for which the pages of a list can be read, if the history reaches back that far: the interval
/// at which etcd forgets old states.
const LIST_LIFETIME: i64 = 5 * 60;

/// A page of a collection, at a revision.
pub(super) struct Page {
    /// The objects in the version of the request. If a webhook fails, lists of metadata alone and deletions of
    /// collections have the stored objects: a broken webhook must not keep a namespace.
    pub(super) items: Vec<Arc<Stored>>,
    pub(super) metadata: Map<String, Value>,
}

impl Page {
    /// Returns a page of objects that are not stored, and therefore have no revision.
    pub(super) fn of(items: Vec<Arc<Stored>>) -> Self {
        Self { items, metadata: Map::new() }
    }
}

pub(super) async fn list(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let negotiated = call.negotiate()?;
    let options = ListOptions::parse(&call.query, &call.resource, false)?;
    let page = select(call, &options, negotiated.representation).await?;
    reply(call, page, negotiated).await
}

/// Writes a page of a collection in the form that was asked for.
pub(super) async fn reply(
    call: &Call<'_>,
    mut page: Page,
    negotiated: Negotiated,
) -> Result<Response<Body>, ApiError> {
    let form = ItemForm::new(call, negotiated)?;
    if matches!(form, ItemForm::Row { .. }) && call.resource.storage == *FLOW_SCHEMAS {
        // The rows of flow schemas are in the order in which the schemas match requests.
        page.items.sort_by_cached_key(|item| precedence(&item.value()));
    }
    if negotiated.format == Format::Protobuf {
        return protobuf_list::reply(call, form, page, negotiated).await;
    }
    let is_long = is_long(&page.items);
    if is_long && (negotiated.format == Format::Yaml || negotiated.pretty) {
        let empty = form.head(call, page.metadata, true);
        let memory = call.state.reply_memory.clone();
        let pieces = text_list::pieces(&empty, form, page.items, negotiated.format, memory)?;
        return Ok(call.stream_apart(pieces, negotiated));
    }
    let head = form.head(call, page.metadata, page.items.is_empty());
    if page.items.is_empty() {
        return call.json(StatusCode::OK, head.into(), negotiated).await;
    }
    let text = ListText { head, separator: b",", end: b"]}".to_vec() };
    let writer = JsonItem { form, is_long };
    let mut pieces = Pieces::new(text, writer, page.items, call.state.reply_memory.clone());
    let first = pieces.next().unwrap_or_default();
    let Some(second) = pieces.next() else { return call.json(StatusCode::OK, first, negotiated).await };
    // A long list is serialised while the list is sent.
    let line_feed = Bytes::from_static(b"\n");
    Ok(call.stream([first, second].into_iter().chain(pieces).chain([line_feed]), negotiated))
}

/// Returns the precedence and the name of a flow schema.
fn precedence(schema: &Value) -> (i64, String) {
    let precedence = schema.pointer("/spec/matchingPrecedence").and_then(Value::as_i64);
    (precedence.unwrap_or_default(), meta::name(schema).to_owned())
}

/// Returns whether the objects do not fit into a piece.
fn is_long(items: &[Arc<Stored>]) -> bool {
    let mut size = 0;
    items.iter().any(|item| {
        size += item.json().len();
        size > PIECE
    })
}

/// Writes the items of a list in JSON. Large objects in a long list are not copied.
struct JsonItem {
    form: ItemForm,
    is_long: bool,
}

impl WriteItem for JsonItem {
    fn write(&mut self, item: &Stored, out: &mut Vec<u8>) {
        self.form.write(item, out);
    }

    fn share(&mut self, item: &Stored, out: &mut Vec<u8>) -> Vec<Bytes> {
        match self.form {
            ItemForm::Object { is_custom, drops_managed_fields }
                if self.is_long && item.json().len() >= reply::SHARED =>
            {
                reply::share_item(is_custom, drops_managed_fields, item, out)
            }
            _ => Vec::new(),
        }
    }
}

/// How the items of a list are written.
pub(super) enum ItemForm {
    Object { is_custom: bool, drops_managed_fields: bool },
    Metadata { version: TableVersion, form: InternalForm, drops_managed_fields: bool },
    Row { kind: TableKind, include: IncludeObject, version: TableVersion, form: InternalForm, now: Timestamp },
}

impl ItemForm {
    fn new(call: &Call<'_>, negotiated: Negotiated) -> Result<Self, ApiError> {
        let Negotiated { representation, drops_managed_fields, .. } = negotiated;
        Ok(match representation {
            Representation::Object => {
                Self::Object { is_custom: call.resource.is_custom(), drops_managed_fields }
            }
            Representation::PartialObjectMetadata(_) => {
                return Err(ApiError::wrong_form(true, &call.resource.go_list_type()));
            }
            Representation::PartialObjectMetadataList(version) => {
                Self::Metadata { version, form: call.resource.internal_form(), drops_managed_fields }
            }
            Representation::Table(version) => Self::Row {
                kind: call.resource.table_kind(),
                include: call.include_object()?,
                version,
                form: call.resource.internal_form(),
                now: call.state.env.now(),
            },
        })
    }

    /// Returns whether an empty list is written as `null`, as kube-apiserver does in some forms.
    fn writes_null_for_nothing(&self) -> bool {
        match self {
            Self::Object { .. } => false,
            Self::Metadata { .. } => true,
            Self::Row { kind, .. } => kind.writes_null_for_no_rows(),
        }
    }

    /// Returns the kind and the API version of the list.
    pub(super) fn kind<'c>(&self, call: &'c Call<'_>) -> (&'c str, &'c str) {
        match self {
            Self::Object { .. } => (&call.resource.list_kind, call.resource.api_version()),
            Self::Metadata { version, .. } => ("PartialObjectMetadataList", version.api_version()),
            Self::Row { version, .. } => ("Table", version.api_version()),
        }
    }

    /// Returns the bytes of the list up to the first item, or all bytes of an empty list.
    fn head(&self, call: &Call<'_>, mut metadata: Map<String, Value>, is_empty: bool) -> Vec<u8> {
        let (kind, version) = self.kind(call);
        let items = if matches!(self, Self::Row { .. }) { "rows" } else { "items" };
        if !matches!(self, Self::Object { .. }) && metadata.get("continue").is_some_and(|token| token == "") {
            metadata.remove("continue");
        }
        let columns = match self {
            Self::Row { kind, .. } => format!("\"columnDefinitions\":{},", kind.column_definitions()),
            _ => String::new(),
        };
        let metadata = Value::Object(metadata);
        let end = if is_empty && self.writes_null_for_nothing() {
            "null}"
        } else if is_empty {
            "[]}"
        } else {
            "["
        };
        let head = format!(
            "{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",\"metadata\":{metadata},{columns}\"{items}\":{end}"
        );
        head.into_bytes()
    }

    pub(super) fn write(&self, item: &Stored, out: &mut Vec<u8>) {
        match self {
            Self::Object { is_custom, drops_managed_fields } => {
                reply::write_item(*is_custom, *drops_managed_fields, item, out);
            }
            Self::Metadata { version, form, drops_managed_fields } => {
                let metadata = form.metadata(item.metadata());
                let metadata = reply::sent_metadata(&metadata, *drops_managed_fields);
                write_partial_metadata(&metadata, version.api_version(), out);
            }
            Self::Row { kind, include, version, form, now } => {
                let object = match include {
                    IncludeObject::Object => item.value(),
                    _ => form.object(item.value()),
                };
                let row = kind.row(&object, *include, *version, *now);
                out.extend_from_slice(row.to_string().as_bytes());
            }
        }
    }
}

/// Selects the objects that a list request asks for, to be shown in a representation.
pub(super) async fn select(
    call: &Call<'_>,
    options: &ListOptions,
    representation: Representation,
) -> Result<Page, ApiError> {
    call.expect_namespace()?;
    // From now on there is a log: a watch can continue from this list, even after older history is forgotten.
    call.state.store.log(&call.resource.storage);
    let namespace = (!call.route.namespace.is_empty()).then_some(call.route.namespace.as_str());
    let position = position(call, options, namespace).await?;
    let accepts_any_state = options.continue_token.is_empty() && options.resource_version == "0";
    match select_at(call, options, representation, position).await {
        Err(Failure::Undecodable(objects)) if accepts_any_state => {
            let earlier = Box::pin(select_earlier(call, options, representation, &objects)).await;
            earlier.ok_or_else(|| undecodable::at_list(call, &objects))
        }
        Err(Failure::Undecodable(objects)) => Err(undecodable::at_list(call, &objects)),
        Err(Failure::Other(error)) => Err(error),
        Ok(page) => Ok(page),
    }
}

/// Selects from the last state in which all objects can be converted, if the history reaches back that far. `undecodable` are
/// objects of now, not all. The cache of the real server has this state, because the watch of etcd fails at the first object that
/// cannot be decoded.
async fn select_earlier(
    call: &Call<'_>,
    options: &ListOptions,
    representation: Representation,
    undecodable: &[Unconverted],
) -> Option<Page> {
    let mut first = earliest(undecodable)?;
    for _ in 0..EARLIER_STATES {
        let view = call.state.store.view_at(&call.resource.storage, first.checked_sub(1)?)?;
        let Some(earlier) = earliest_in(call, options, &view).await else {
            let position = Position { view, start: None, limit: 0, remaining: None, began: 0 };
            return select_at(call, options, representation, position).await.ok();
        };
        first = earlier;
    }
    None
}

/// The most states that a list looks at. An object that was written many times while the object could not be converted goes back by one write
/// with each state, and each state costs as much as a list.
const EARLIER_STATES: usize = 10;

/// Returns the revision of the first object that a list shows and that cannot be converted. The objects are converted in the order
/// of the writes: there may be many more of these objects than an error names.
async fn earliest_in(call: &Call<'_>, options: &ListOptions, view: &View) -> Option<u64> {
    let namespace = (!call.route.namespace.is_empty()).then_some(call.route.namespace.as_str());
    let (resource, selection) = (&call.resource, &options.selection);
    let all = selection.candidates(&call.state.store, view, &resource.storage, namespace, None);
    let all = all.filter(|(key, stored)| selection.may_match(key, stored));
    let mut all: Vec<_> = all.map(|(_, stored)| Arc::clone(stored)).collect();
    all.sort_unstable_by_key(|stored| stored.rv);
    for together in all.chunks(ApiError::MAX_UNREADABLE) {
        if let Err(undecodable) = resource.present_list(together).await {
            return earliest(&undecodable);
        }
    }
    None
}

fn earliest(undecodable: &[Unconverted]) -> Option<u64> {
    undecodable.iter().map(|Unconverted { object, .. }| object.rv).min()
}

/// Why objects were not selected.
enum Failure {
    /// Stored objects cannot be converted.
    Undecodable(Vec<Unconverted>),
    Other(ApiError),
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Other(error)
    }
}

impl From<Vec<Unconverted>> for Failure {
    fn from(objects: Vec<Unconverted>) -> Self {
        Self::Undecodable(objects)
    }
}

async fn select_at(
    call: &Call<'_>,
    options: &ListOptions,
    representation: Representation,
    Position { view, start, limit, remaining, began }: Position,
) -> Result<Page, Failure> {
    let resource = &call.resource;
    let namespace = (!call.route.namespace.is_empty()).then_some(call.route.namespace.as_str());
    let selection = &options.selection;
    let mut items: Vec<Arc<Stored>> = Vec::new();
    let mut last_key = None;
    let mut is_cut = false;
    let store = &call.state.store;
    if selection.reads_fields() && resource.is_converted_by_webhook() {
        // The webhook converts all objects in one call, instead of one by one below.
        let all = selection.candidates(store, &view, &resource.storage, namespace, start.as_deref());
        let all = all.filter(|(key, stored)| selection.may_match(key, stored));
        let all: Vec<_> = all.map(|(_, stored)| Arc::clone(stored)).collect();
        resource.present_list(&all).await?;
    }
    for (key, stored) in selection.candidates(store, &view, &resource.storage, namespace, start.as_deref()) {
        selection.pause().await;
        if !selection.may_match(key, stored) {
            continue;
        }
        if selection.reads_fields() {
            let shown = resource.present_one(stored).await?;
            if !selection.matches(key, &shown) {
                continue;
            }
            items.push(shown);
        } else {
            items.push(Arc::clone(stored));
        }
        last_key = Some(key);
        if limit > 0 && items.len() == limit {
            // The remaining objects are not filtered yet.
            let mut rest = view.range_from(&resource.storage, namespace, Some(&format!("{key}\0")));
            is_cut = selection.only_key(namespace).is_none() && rest.next().is_some();
            break;
        }
    }
    let may_be_stored_form = call.route.verb == Verb::DeleteCollection
        || matches!(representation, Representation::PartialObjectMetadataList(_));
    if !may_be_stored_form {
        items = resource.present_list(&items).await?;
    } else if let Ok(shown) = resource.present(&items).await {
        items = shown;
    }
    let mut metadata = Map::new();
    if resource.is_custom() {
        // Lists of custom resources always have the field.
        metadata.insert("continue".into(), "".into());
    }
    metadata.insert("resourceVersion".into(), view.revision().to_string().into());
    if let Some(last_key) = last_key.filter(|_| is_cut) {
        call.state.store.keep(&resource.storage, &view);
        // The number of objects that match selectors is unknown.
        let remaining = selection.is_everything().then(|| {
            let from_here = remaining.unwrap_or_else(|| {
                view.range_from(&resource.storage, namespace, start.as_deref()).count() as u64
            });
            from_here.saturating_sub(items.len() as u64)
        });
        let prefix = namespace.map_or(0, |namespace| namespace.len() + 1);
        let next = continue_token::Position {
            revision: i64::try_from(view.revision()).unwrap_or(i64::MAX),
            start_key: format!("{}\0", last_key.get(prefix..).unwrap_or_default()),
            remaining,
            began: Some(began),
        };
        metadata.insert("continue".into(), continue_token::encode(&next).into());
        if let Some(remaining) = remaining {
            metadata.insert("remainingItemCount".into(), remaining.into());
        }
    }
    Ok(Page { items, metadata })
}

/// The state of a page, and the position of the page in the state.
struct Position {
    view: Arc<View>,
    /// The first key; `None` for the first of the collection.
    start: Option<String>,
    /// The largest number of objects; 0 for no limit.
    limit: usize,
    /// The number of remaining objects, if an earlier page has counted the objects.
    remaining: Option<u64>,
    /// When the first page was made, in seconds since 1970.
    began: i64,
}

/// Returns 410 with a token that goes on from the same key in the state of now.
fn continue_expired(position: &continue_token::Position, prefix: &str) -> ApiError {
    let start = position.start_key.strip_prefix(prefix).unwrap_or(&position.start_key);
    let now =
        continue_token::Position { revision: -1, start_key: start.to_owned(), remaining: None, began: None };
    ApiError::continue_expired(continue_token::encode(&now))
}

async fn position(
    call: &Call<'_>,
    options: &ListOptions,
    namespace: Option<&str>,
) -> Result<Position, ApiError> {
    let store = &call.state.store;
    let id = &call.resource.storage;
    let now = call.state.env.now().as_second();
    let prefix = namespace.map_or_else(String::new, |namespace| format!("{namespace}/"));
    if !options.continue_token.is_empty() {
        let position = continue_token::decode(&options.continue_token, &prefix)?;
        if !matches!(options.resource_version.as_str(), "" | "0") {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let began = position.began.unwrap_or(now);
        let view = match u64::try_from(position.revision) {
            Ok(revision) => {
                let view = store.view_at(id, revision).filter(|_| now.saturating_sub(began) < LIST_LIFETIME);
                view.ok_or_else(|| continue_expired(&position, &prefix))?
            }
            Err(_) => store.view(),
        };
        return Ok(Position {
            view,
            start: Some(position.start_key),
            limit: options.limit,
            remaining: position.remaining,
            began,
        });
    }
    let whole = |view, limit| Position { view, start: None, limit, remaining: None, began: now };
    let revision = options::revision(&options.resource_version)
        .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
    match revision {
        // Resource version "0": any cached state is acceptable, and `limit` is ignored. Another zero, such as "00", is no such wish.
        Some(0) => Ok(whole(store.view(), if options.resource_version == "0" { 0 } else { options.limit })),
        Some(revision)
            if options.version_match == VersionMatch::Exact
                || options.version_match == VersionMatch::Unset && options.limit > 0 =>
        {
            not_older(call.state, Some(revision)).await?;
            let view = store
                .view_at(id, revision)
                .ok_or_else(|| ApiError::expired("The resourceVersion for the provided list is too old."))?;
            Ok(whole(view, options.limit))
        }
        revision => Ok(whole(not_older_of(call, revision).await?, options.limit)),
    }
}
