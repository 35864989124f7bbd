//! The trait of configurations of whole objects.

use kube_core::{DynamicObject, Resource};
use serde::Serialize;

/// The desired fields of an object. Only fields that were set are serialized. The field manager that applies
/// the configuration owns these fields.
///
/// [`DynamicObject`] implements the trait, for kinds that are known only at run time: `data` has the desired
/// fields.
///
/// A configuration is a [`Resource`]: methods that name an object or set an owner accept a configuration like
/// an object.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an apply configuration",
    note = "derive `ApplyConfiguration` for your own kinds, and enable the feature of the group of `windlass-apply` for built-in kinds",
    note = "an object of `k8s_openapi` serializes more than was set; `apply_object` applies it all the same"
)]
pub trait ApplyConfiguration: Resource + Serialize + Sized {
    /// The type of the object that the server responds with.
    type Object: Resource;

    /// Adds a label.
    #[must_use]
    fn label(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with_labels([(key, value)])
    }

    /// Adds labels. (kube's `ResourceExt::labels` reads the labels of an object.)
    #[must_use]
    fn with_labels(
        mut self,
        labels: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Self {
        let known = self.meta_mut().labels.get_or_insert_default();
        known.extend(labels.into_iter().map(|(key, value)| (key.into(), value.into())));
        self
    }

    /// Adds an annotation.
    #[must_use]
    fn annotation(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with_annotations([(key, value)])
    }

    /// Adds annotations.
    #[must_use]
    fn with_annotations(
        mut self,
        annotations: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Self {
        let known = self.meta_mut().annotations.get_or_insert_default();
        known.extend(annotations.into_iter().map(|(key, value)| (key.into(), value.into())));
        self
    }

    /// Adds a finalizer.
    #[must_use]
    fn finalizer(mut self, finalizer: impl Into<String>) -> Self {
        self.meta_mut().finalizers.get_or_insert_default().push(finalizer.into());
        self
    }
}

impl ApplyConfiguration for DynamicObject {
    type Object = Self;
}
