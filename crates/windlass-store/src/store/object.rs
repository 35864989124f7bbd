//! Stored objects: exact bytes, and a small head with the values that are needed without parsing.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::labels::{LabelSet, Labels};
use crate::object_meta as meta;
use windlass_wire::ApiError;

/// The width of a resource version in a draft: servers with a clock of this century have resource versions of
/// 16 digits.
const DIGITS: usize = 16;
/// The number of other representations that are kept with an object.
const MAX_REPRESENTATIONS: usize = 3;
/// The size of representations that every object may keep, in bytes: fields with defaults may multiply a small object.
const MIN_REPRESENTATIONS: usize = 4 << 10;

/// The largest object: etcd's limit for one request.
const MAX_OBJECT: usize = 1536 << 10;

/// The origin of the bytes of an object: the API version, and the schema that defaulted and pruned the
/// object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The `apiVersion` of the bytes.
    pub api_version: Arc<str>,
    /// A fingerprint of the schema's defaults and pruning; 0 for built-in kinds.
    pub schema: u64,
}

/// The values that the store keeps beside the bytes of an object. The kind determines the values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectAttrs {
    /// The values of the kind's selectable fields, in order of declaration.
    pub selectable: Box<[Box<str>]>,
    /// The exclusive claims of the object within the resource: addresses, ports.
    pub claims: Box<[Box<str>]>,
    /// The time at which the server removes the object.
    pub expires: Option<Timestamp>,
}

/// An object that is ready to be stored, except for the resource version.
#[derive(Debug)]
pub struct Draft(Stored);

/// A stored object.
#[derive(Debug)]
pub struct Stored {
    /// The revision of the write; 0 for an object that was never stored.
    pub rv: u64,
    /// `{"kind":…,"apiVersion":…,` and then the other fields.
    json: Bytes,
    /// Where the fields after kind and apiVersion begin.
    tail: usize,
    /// Where the metadata is.
    metadata: Range<usize>,
    /// Where the digits of the resource version are; empty where there are none.
    version: Range<usize>,
    head: Head,
    layout: Layout,
    attrs: ObjectAttrs,
    /// The size of the protobuf message of this object; 0 if no list has needed the size.
    protobuf_size: AtomicU32,
    /// This object in other versions, or under other schemas.
    representations: Mutex<Vec<(Layout, Arc<Stored>)>>,
}

#[derive(Clone, Debug)]
struct Head {
    uid: Box<str>,
    labels: LabelSet,
    terminating: bool,
    has_finalizers: bool,
}

impl Head {
    fn of(value: &Value, labels: &Labels) -> Self {
        Self {
            uid: meta::uid(value).into(),
            labels: labels.intern(meta::labels(value)),
            terminating: meta::is_deleting(value),
            has_finalizers: meta::finalizers(value).next().is_some(),
        }
    }
}

impl Draft {
    /// Serialises an object. The commit fills in the resource version.
    pub fn new(value: &Value, layout: Layout, attrs: ObjectAttrs, labels: &Labels) -> Self {
        let mut written = Written::with_room_for_version(value);
        written.json.shrink_to_fit();
        Self(Stored::from_parts(written, Head::of(value, labels), layout, attrs))
    }

    /// Checks that the object is not larger than etcd would take.
    ///
    /// # Errors
    ///
    /// The object is too large. The error has the words of etcd.
    pub fn check_size(&self) -> Result<(), ApiError> {
        if self.0.json.len() > MAX_OBJECT { Err(ApiError::storage_too_large()) } else { Ok(()) }
    }

    /// Returns a copy with another uid, and with the first text of each pair replaced by the second text.
    /// Both texts must be equally long.
    pub fn stamped(&self, uid: &str, texts: &[(&str, &str)]) -> Self {
        let mut copy = self.0.copy();
        let mut json = copy.json.to_vec();
        for (old, new) in texts.iter().filter(|(old, new)| old.len() == new.len()) {
            let mut from = 0;
            while let Some(found) = memchr::memmem::find(&json[from..], old.as_bytes()) {
                let at = from + found;
                from = at + old.len();
                json[at..from].copy_from_slice(new.as_bytes());
            }
        }
        copy.json = json.into();
        copy.head.uid = uid.into();
        Self(copy)
    }

    /// Returns the exclusive claims of the object.
    pub(super) fn claims(&self) -> &[Box<str>] {
        &self.0.attrs.claims
    }

    /// Returns the object with a resource version.
    pub(super) fn at(self, rv: u64) -> Stored {
        self.0.renumbered(rv)
    }

    /// Returns the object for the reply to a dry run: the object that would have been stored.
    pub fn unversioned(value: &Value, layout: Layout, attrs: ObjectAttrs, labels: &Labels) -> Stored {
        let written = Written::plain(value);
        Stored::from_parts(written, Head::of(value, labels), layout, attrs)
    }
}

impl Stored {
    fn from_parts(written: Written, head: Head, layout: Layout, attrs: ObjectAttrs) -> Self {
        Self {
            rv: 0,
            json: written.json.into(),
            tail: written.tail,
            metadata: written.metadata,
            version: written.version,
            head,
            layout,
            attrs,
            protobuf_size: AtomicU32::new(0),
            representations: Mutex::default(),
        }
    }

    /// Returns the exact bytes.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// Returns the bytes after `"kind":…,"apiVersion":…,` to the closing brace: the part that does not depend
    /// on the version alone. Lists of built-in kinds show an item as this after an opening brace.
    pub fn tail(&self) -> &[u8] {
        self.json.get(self.tail..).unwrap_or_default()
    }

    /// Returns the bytes of `metadata`.
    pub fn metadata(&self) -> &[u8] {
        self.json.get(self.metadata.clone()).unwrap_or_default()
    }

    /// The bytes without `metadata.managedFields`, in two parts.
    pub fn without_managed_fields(&self) -> [&[u8]; 2] {
        self.parts_from(0)
    }

    /// The [`tail`](Self::tail) without `metadata.managedFields`, in two parts.
    pub fn tail_without_managed_fields(&self) -> [&[u8]; 2] {
        self.parts_from(self.tail)
    }

    fn parts_from(&self, start: usize) -> [&[u8]; 2] {
        let Some(cut) = managed_fields_in(self.metadata()) else { return [&self.json[start..], &[]] };
        let offset = self.metadata.start;
        [&self.json[start..offset + cut.start], &self.json[offset + cut.end..]]
    }

    /// Returns the size of the protobuf message of this object. Calls `measure` only if the size is not known.
    ///
    /// # Errors
    /// The error of `measure`.
    pub fn protobuf_size<E>(&self, measure: impl FnOnce() -> Result<usize, E>) -> Result<usize, E> {
        match self.protobuf_size.load(Ordering::Relaxed) {
            0 => {
                let size = measure()?;
                self.protobuf_size.store(u32::try_from(size).unwrap_or_default(), Ordering::Relaxed);
                Ok(size)
            }
            known => Ok(known as usize),
        }
    }

    /// Parses the bytes.
    pub fn value(&self) -> Value {
        let value = read_value(&self.json);
        debug_assert!(value.is_ok(), "the store holds JSON that it wrote");
        value.unwrap_or_default()
    }

    /// Returns the uid.
    pub fn uid(&self) -> &str {
        &self.head.uid
    }

    /// Returns the labels.
    pub fn labels(&self) -> &LabelSet {
        &self.head.labels
    }

    /// Returns whether the object is terminating.
    pub fn is_terminating(&self) -> bool {
        self.head.terminating
    }

    /// Returns whether the object has finalizers.
    pub fn has_finalizers(&self) -> bool {
        self.head.has_finalizers
    }

    /// Returns the origin of the bytes.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the values that the store keeps beside the bytes.
    pub fn attrs(&self) -> &ObjectAttrs {
        &self.attrs
    }

    /// Returns an estimate of the memory that the object takes, together with the cached representations.
    pub fn weight(&self) -> usize {
        const OVERHEAD: usize = 320;
        /// A larger label set counts: few objects share the set.
        const SMALL: usize = 4 << 10;
        let labels = self.head.labels.weight();
        let representations = self.representations.lock();
        let representations: usize =
            representations.iter().map(|(_, other)| OVERHEAD + other.json.len()).sum();
        OVERHEAD + self.json.len() + representations + if labels > SMALL { labels } else { 0 }
    }

    /// Returns the same object with another resource version: the last state of a deleted object has the
    /// resource version of the deletion.
    pub fn at(&self, rv: u64) -> Self {
        self.copy().renumbered(rv)
    }

    /// Returns the same object without the other representations.
    fn copy(&self) -> Self {
        Self {
            rv: self.rv,
            json: self.json.clone(),
            tail: self.tail,
            metadata: self.metadata.clone(),
            version: self.version.clone(),
            head: self.head.clone(),
            layout: self.layout.clone(),
            attrs: self.attrs.clone(),
            protobuf_size: AtomicU32::new(0),
            representations: Mutex::default(),
        }
    }

    /// Writes `rv` over the digits of the resource version.
    fn renumbered(self, rv: u64) -> Self {
        if self.version.is_empty() {
            return Self { rv, ..self };
        }
        let mut digits = String::with_capacity(20);
        // Writing to a string does not fail.
        let _ = write!(digits, "{rv}");
        let same_width = digits.len() == self.version.len();
        let mut json = match self.json.try_into_mut() {
            Ok(unique) => Vec::from(unique),
            Err(shared) => shared.to_vec(),
        };
        if same_width {
            json[self.version.clone()].copy_from_slice(digits.as_bytes());
        } else {
            json.splice(self.version.clone(), digits.bytes());
        }
        // Kind and apiVersion come before the metadata: the start of the tail does not move.
        let metadata = self.metadata.start..self.metadata.end + digits.len() - self.version.len();
        let version = self.version.start..self.version.start + digits.len();
        Self { rv, json: json.into(), metadata, version, ..self }
    }

    /// Returns this object in another layout. Calls `make` if the representation is not cached.
    ///
    /// The cached representations together have at most three times the size of the object, and 4 KiB: a hostile
    /// conversion webhook could fill the memory otherwise. A larger representation is not cached.
    pub fn representation(
        self: &Arc<Self>,
        layout: &Layout,
        make: impl FnOnce() -> Arc<Stored>,
    ) -> Arc<Stored> {
        if self.layout == *layout {
            return Arc::clone(self);
        }
        if let Some(found) = self.known_representation(layout) {
            return found;
        }
        let made = make();
        let mut known = self.representations.lock();
        if let Some((_, found)) = known.iter().find(|(other, _)| other == layout) {
            // Another request made the representation meanwhile.
            return Arc::clone(found);
        }
        let room = self.room_for_representations();
        if made.json.len() > room {
            return made;
        }
        let is_full = |known: &[(Layout, Arc<Self>)]| {
            let size: usize = known.iter().map(|(_, other)| other.json.len()).sum();
            known.len() == MAX_REPRESENTATIONS || size + made.json.len() > room
        };
        while is_full(&known) {
            known.remove(0);
        }
        known.push((layout.clone(), Arc::clone(&made)));
        made
    }

    /// Returns the limit of the size of all cached representations together, in bytes.
    fn room_for_representations(&self) -> usize {
        self.json.len() * MAX_REPRESENTATIONS + MIN_REPRESENTATIONS
    }

    /// Returns this object in another layout, if the representation is cached.
    pub fn known_representation(&self, layout: &Layout) -> Option<Arc<Stored>> {
        let known = self.representations.lock();
        known.iter().find(|(other, _)| other == layout).map(|(_, found)| Arc::clone(found))
    }

    /// Returns the same object in another version with the same fields: only `apiVersion` differs.
    pub fn relabelled(&self, layout: &Layout, kind: &str) -> Self {
        let mut json = Vec::with_capacity(self.json.len() + layout.api_version.len());
        let mut head = Map::new();
        head.insert("kind".to_owned(), kind.into());
        head.insert("apiVersion".to_owned(), (*layout.api_version).into());
        write_object(&Value::Object(head), &mut json);
        json.pop();
        if self.tail().first() != Some(&b'}') {
            json.push(b',');
        }
        let tail = json.len();
        let moved = |at: usize| at + tail - self.tail;
        let version =
            if self.version.is_empty() { 0..0 } else { moved(self.version.start)..moved(self.version.end) };
        json.extend_from_slice(self.tail());
        Self {
            rv: self.rv,
            json: json.into(),
            tail,
            metadata: moved(self.metadata.start)..moved(self.metadata.end),
            version,
            head: self.head.clone(),
            layout: layout.clone(),
            attrs: self.attrs.clone(),
            protobuf_size: AtomicU32::new(0),
            representations: Mutex::default(),
        }
    }

    /// Returns the same object in another layout, with the content `value`.
    pub fn converted(&self, value: &Value, layout: Layout, attrs: ObjectAttrs) -> Self {
        let mut written = if self.version.is_empty() {
            Written::plain(value)
        } else {
            Written::with_room_for_version(value)
        };
        written.json.shrink_to_fit();
        let mut converted = Self::from_parts(written, self.head.clone(), layout, attrs).renumbered(self.rv);
        if converted.json == self.json {
            converted.json = self.json.clone();
        }
        converted
    }
}

/// Returns the range of the member `managedFields` in compact metadata, with the comma before the member.
pub fn managed_fields_in(metadata: &[u8]) -> Option<Range<usize>> {
    // No text has this sequence: a quote in a text is escaped. The name of an object comes first, or its labels.
    const MEMBER: &[u8] = b",\"managedFields\":[";
    let start = memchr::memmem::find(metadata, MEMBER)?;
    let mut depth = 1;
    let mut at = start + MEMBER.len();
    while depth > 0 {
        match metadata.get(at)? {
            b'"' => at = end_of_text(metadata, at + 1)?,
            b'[' => depth += 1,
            b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    Some(start..at)
}

/// Returns the position of the quote that ends a text.
fn end_of_text(json: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
        if json[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// An object as bytes.
struct Written {
    json: Vec<u8>,
    tail: usize,
    metadata: Range<usize>,
    version: Range<usize>,
}

impl Written {
    /// Serialises an object with a resource version of zeros, to be written over.
    fn with_room_for_version(value: &Value) -> Self {
        let mut version = 0..0;
        let written = Self::by(value, |metadata, json| version = write_metadata(metadata, json));
        Self { version, ..written }
    }

    fn plain(value: &Value) -> Self {
        Self::by(value, write_value)
    }

    fn by(value: &Value, write_metadata: impl FnOnce(&Value, &mut Vec<u8>)) -> Self {
        let mut json = Vec::with_capacity(2048);
        let mut metadata = 0..0;
        let tail = write_fields(value, &mut json, |field, json| {
            let start = json.len();
            write_metadata(field, json);
            metadata = start..json.len();
        });
        Self { json, tail, metadata, version: 0..0 }
    }
}

/// Parses JSON that this server wrote. The depth was limited when the object was received, to more than
/// serde_json's limit.
pub fn read_value(json: &[u8]) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    reader.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut reader)
}

/// Appends an object in the form of the real server, kind and apiVersion first, and returns the position of
/// the rest.
pub fn write_object(value: &Value, out: &mut Vec<u8>) -> usize {
    write_fields(value, out, write_value)
}

fn write_fields(
    value: &Value,
    out: &mut Vec<u8>,
    write_metadata: impl FnOnce(&Value, &mut Vec<u8>),
) -> usize {
    let Some(fields) = value.as_object() else {
        write_value(value, out);
        return 0;
    };
    out.push(b'{');
    for name in ["kind", "apiVersion"] {
        if let Some(field) = fields.get(name) {
            write_name(name, out);
            write_value(field, out);
            out.push(b',');
        }
    }
    let tail = out.len();
    let mut write_metadata = Some(write_metadata);
    for (name, field) in fields {
        if name == "kind" || name == "apiVersion" {
            continue;
        }
        write_name(name, out);
        match write_metadata.take_if(|_| name == "metadata") {
            Some(write_metadata) => write_metadata(field, out),
            None => write_value(field, out),
        }
        out.push(b',');
    }
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.push(b'}');
    tail
}

/// Writes metadata with a resource version of zeros, and returns the position of the resource version.
fn write_metadata(metadata: &Value, out: &mut Vec<u8>) -> Range<usize> {
    const FIELD: &str = "resourceVersion";
    let empty = Map::new();
    let fields = metadata.as_object().unwrap_or(&empty);
    let mut version = None;
    let mut write_version = |out: &mut Vec<u8>| {
        write_name(FIELD, out);
        out.push(b'"');
        let start = out.len();
        out.extend_from_slice(&[b'0'; DIGITS]);
        version = Some(start..out.len());
        out.extend_from_slice(b"\",");
    };
    out.push(b'{');
    let before = fields.iter().take_while(|(name, _)| name.as_str() < FIELD);
    let after = fields.iter().skip_while(|(name, _)| name.as_str() <= FIELD);
    for (name, field) in before {
        write_name(name, out);
        write_value(field, out);
        out.push(b',');
    }
    write_version(out);
    for (name, field) in after {
        write_name(name, out);
        write_value(field, out);
        out.push(b',');
    }
    out.pop();
    out.push(b'}');
    version.unwrap_or_default()
}

fn write_name(name: &str, out: &mut Vec<u8>) {
    // Writing a string to memory does not fail.
    let written = serde_json::to_writer(&mut *out, name);
    debug_assert!(written.is_ok());
    out.push(b':');
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    // Writing a tree with string keys to memory does not fail.
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok());
}
