//! The options of requests, with the names in Go's `metav1`.

pub use kube_core::params::{
    DeleteParams as DeleteOptions, GetParams as GetOptions, ListParams as ListOptions,
    PatchParams as PatchOptions, PatchParams as ApplyOptions, PostParams as CreateOptions,
    PostParams as UpdateOptions, WatchParams as WatchOptions,
};
