//! The trait of configurations of whole objects.

use kube_core::{DynamicObject, Resource};
use serde::Serialize;

/// The desired fields of one object. Only what was set is serialized, and so owned by the field manager that applies it.
///
/// [`DynamicObject`] implements it, for kinds that are known only at run time: its `data` has what was put in.
///
/// A configuration is a [`Resource`]: methods that name an object or set its owner take it as they take an object.
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

    /// Adds labels. (`labels` reads those of an object, by kube's `ResourceExt`.)
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
