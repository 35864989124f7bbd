//! An operator's view of the cluster: objects as bytes and an index, stores with indexes, the reflector, the informer core.
//!
//! The cache keeps each object's JSON (without `managedFields`) and a fixed index over the metadata. Objects
//! are decoded on the first read. The crate knows no HTTP, no clock and no generated types: a [`Reflector`]
//! is a state machine that is given the time and the bytes, and `windlass-runtime` drives the state machine.

// From the surface down: a module uses only modules further down.
mod estimate;
mod informer;

mod reflector;
mod store;

mod delta;
pub mod frame;

mod selector;

mod scanner;

mod object;
pub mod scan;

mod key;

pub use self::{
    delta::Delta,
    estimate::MemoryEstimate,
    informer::{
        BatchApplier, ChangeBatch, InformerCore, InformerFeed, InformerMetrics, InformerOptions,
        ReflectorEventHandler, Subscription, SubscriptionGuard,
    },
    key::{ObjectKey, ParseKeyError},
    object::{DecodeError, Dictionary, OwnerReference, RawObject, describe_decode_error},
    reflector::{
        BackoffConfig, ListWatch, Reflector, ReflectorAction, ReflectorConfig, ReflectorEvent,
        ReflectorStore, WatchError,
    },
    scan::{FieldPath, FieldPathError, ScanError, ScanOptions, Transform},
    scanner::{Scanned, Scanner},
    selector::{Operator, Requirement, Selector, SelectorError},
    store::{
        Decoder, IndexFn, IndexValues, MemoryUse, ObjectEncoding, ObjectRef, Query, ReflectorId, Store,
        StoreOptions, StoreTransaction, StoreWriter, UnknownIndex,
    },
};
