//! Lists in Kubernetes' protobuf. The head of a list has the length of the list: the sizes of all items are known before
//! the first item is written.

use super::wire::{push_head, varint_size};
use super::{EncodeResult as Result, MAGIC, ProtobufEncoder};
use crate::catalog::Catalog;
use crate::graph::Schema;

/// The definition of the metadata of lists.
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// A list in protobuf, except for the items.
pub struct ProtobufList {
    api_version: String,
    kind: String,
    metadata: Vec<u8>,
    /// The number of the field with the metadata.
    metadata_number: u32,
    /// The number of the field with the items.
    items_number: u32,
}

impl ProtobufList {
    /// Creates a list. `metadata` is the JSON of the metadata of the list.
    ///
    /// # Errors
    /// A value of the metadata does not have the type of the field.
    pub fn new(
        encoder: &mut ProtobufEncoder,
        catalog: &Catalog,
        api_version: &str,
        kind: &str,
        metadata: &[u8],
    ) -> Result<Self> {
        let schema = catalog.definition(LIST_META).unwrap_or_else(Schema::unconstrained);
        let metadata = encoder.message(&schema, metadata)?.to_vec();
        // All other lists have the metadata first.
        let (metadata_number, items_number) =
            if api_version == "meta.k8s.io/v1beta1" { (2, 1) } else { (1, 2) };
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        Ok(Self { api_version, kind, metadata, metadata_number, items_number })
    }

    /// Returns the size of an item in the list. `message` is the size of the message of the item.
    pub fn size_of_item(message: usize) -> usize {
        1 + varint_size(message) + message
    }

    /// Appends the list up to the first item. `items` is the sum of the
    /// [sizes of all items](Self::size_of_item).
    pub fn write_head(&self, items: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(MAGIC);
        push_head(out, 1, Self::size_of_item(self.api_version.len()) + Self::size_of_item(self.kind.len()));
        push_field(out, 1, self.api_version.as_bytes());
        push_field(out, 2, self.kind.as_bytes());
        push_head(out, 2, Self::size_of_item(self.metadata.len()) + items);
        if self.metadata_number < self.items_number {
            push_field(out, self.metadata_number, &self.metadata);
        }
    }

    /// Appends an item. `message` is the message of the item.
    pub fn write_item(&self, message: &[u8], out: &mut Vec<u8>) {
        push_field(out, self.items_number, message);
    }

    /// Appends the end of the list, after the last item.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        if self.metadata_number > self.items_number {
            push_field(out, self.metadata_number, &self.metadata);
        }
        // The content encoding and the content type of the list.
        push_field(out, 3, &[]);
        push_field(out, 4, &[]);
    }
}

fn push_field(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    push_head(out, number, bytes.len());
    out.extend_from_slice(bytes);
}
