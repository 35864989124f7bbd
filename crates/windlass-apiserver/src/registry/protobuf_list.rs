//! Lists in protobuf. The head of a list has the size of the list: each object is measured first, and the objects are
//! encoded again, piece by piece, while the list is sent. The size of a stored object is measured once.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::Value;
use windlass_schema::{Catalog, EncodeError, ProtobufEncoder, ProtobufList, Schema};

use super::list::{ItemForm, Page};
use super::pieces::{ListText, Pieces, WriteItem};
use super::reply::SHARED;
use super::{Call, reply};
use crate::body::Body;
use crate::resource::InternalForm;
use crate::store::Stored;
use crate::wire::{ApiError, Negotiated};

/// After this many bytes were measured, other requests are let in between.
const MEASURED_IN_A_ROW: usize = 256 << 10;

/// Writes a page of a collection in protobuf.
///
/// # Errors
/// 500 if an object has no encoding.
pub(super) async fn reply(
    call: &Call<'_>,
    form: ItemForm,
    page: Page,
    negotiated: Negotiated,
) -> Result<Response<Body>, ApiError> {
    let catalog = Catalog::builtin();
    let mut items = Items::new(call, &form, &catalog)?;
    let (kind, api_version) = form.kind(call);
    let metadata = Value::Object(page.metadata).to_string();
    let list = ProtobufList::new(&mut items.encoder, &catalog, api_version, kind, metadata.as_bytes());
    let list = list.map_err(ApiError::internal)?;
    let (mut size, mut measured) = (0, 0);
    for item in &page.items {
        size += ProtobufList::size_of_item(items.size(item).map_err(ApiError::internal)?);
        items.forget(item);
        measured += item.json().len();
        if measured > MEASURED_IN_A_ROW {
            measured = 0;
            tokio::task::yield_now().await;
        }
    }
    let (mut head, mut end) = (Vec::new(), Vec::new());
    list.write_head(size, &mut head);
    list.write_end(&mut end);
    let text = ListText { head, separator: b"", end };
    let writer = ProtobufItem { list, encoder: items };
    let mut pieces = Pieces::new(text, writer, page.items, call.state.reply_memory.clone());
    let first = pieces.next().unwrap_or_default();
    match pieces.next() {
        None => Ok(call.whole(StatusCode::OK, first, negotiated)),
        Some(second) => Ok(call.stream([first, second].into_iter().chain(pieces), negotiated)),
    }
}

/// Writes the items of a list.
struct ProtobufItem {
    list: ProtobufList,
    encoder: Items,
}

impl WriteItem for ProtobufItem {
    fn write(&mut self, item: &Stored, out: &mut Vec<u8>) {
        match self.encoder.message(item) {
            Ok(message) => self.list.write_item(message, out),
            // The object was measured, and therefore has an encoding.
            Err(error) => tracing::error!(%error, "an object of a list cannot be encoded"),
        }
        self.encoder.forget(item);
    }
}

/// Encodes the items of a list.
struct Items {
    encoder: ProtobufEncoder,
    form: MessageForm,
    drops_managed_fields: bool,
}

/// The message of an item.
enum MessageForm {
    Object(Schema),
    Metadata(InternalForm),
}

impl Items {
    fn new(call: &Call<'_>, form: &ItemForm, catalog: &Arc<Catalog>) -> Result<Self, ApiError> {
        let (form, drops_managed_fields) = match form {
            ItemForm::Object { drops_managed_fields, .. } => {
                (MessageForm::Object(call.resource.schema.get().clone()), *drops_managed_fields)
            }
            ItemForm::Metadata { form, drops_managed_fields, .. } => {
                (MessageForm::Metadata(*form), *drops_managed_fields)
            }
            ItemForm::Row { .. } => return Err(ApiError::internal("a table has no encoding in protobuf")),
        };
        Ok(Self { encoder: ProtobufEncoder::new(Arc::clone(catalog)), form, drops_managed_fields })
    }

    /// Returns the size of the message of an item.
    fn size(&mut self, item: &Stored) -> Result<usize, EncodeError> {
        match self.form {
            MessageForm::Object(_) if !self.drops_managed_fields => {
                item.protobuf_size(|| self.message(item).map(<[u8]>::len))
            }
            _ => self.message(item).map(<[u8]>::len),
        }
    }

    /// Drops the memory of the message of a large item: a list that no client reads must not keep the memory.
    fn forget(&mut self, item: &Stored) {
        if item.json().len() >= SHARED {
            self.encoder = ProtobufEncoder::new(Catalog::builtin());
        }
    }

    /// Returns the message of an item.
    fn message(&mut self, item: &Stored) -> Result<&[u8], EncodeError> {
        match &self.form {
            MessageForm::Object(schema) if self.drops_managed_fields => {
                self.encoder.message(schema, &item.without_managed_fields().concat())
            }
            MessageForm::Object(schema) => self.encoder.message(schema, item.json()),
            MessageForm::Metadata(form) => {
                let metadata = form.metadata(item.metadata());
                self.encoder.partial_metadata(&reply::sent_metadata(&metadata, self.drops_managed_fields))
            }
        }
    }
}
