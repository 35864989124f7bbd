//! The code of a kind. Each method has a default without an effect.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::ApiError;

use super::WriteContext;
use crate::subresource::Subresource;

/// Sets defaults.
pub trait Defaults: Send + Sync {
    /// Sets the defaults that the catalog does not have. Runs whenever an object is decoded, before admission.
    fn default(&self, _object: &mut Value) {}

    /// Completes an empty object for bookmarks, in Go's encoding of the internal type.
    fn complete_zero(&self, _object: &mut Value) {}
}

/// Sets and clears the fields that a client may not set.
pub trait Prepare: Send + Sync {
    /// Prepares a new object.
    ///
    /// # Errors
    /// The object must not be created.
    fn prepare_create(&self, _cx: &WriteContext<'_>, _object: &mut Value) -> Result<(), ApiError> {
        Ok(())
    }

    /// Returns the texts of `Warning` headers for a new object before the preparation.
    fn warnings(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Prepares an update of the object or of `cx.subresource`. Runs after the fields that the write may not change were
    /// restored.
    ///
    /// # Errors
    /// The update must not be made.
    fn prepare_update(
        &self,
        _cx: &WriteContext<'_>,
        _object: &mut Value,
        _old: &Value,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Returns whether the fields that a write to `subresource` may not change are restored. If not, validation must
    /// refuse a change of these fields.
    fn is_restricted(&self, _subresource: &Subresource, _object: &Value, _old: &Value) -> bool {
        true
    }
}

/// Allocates values that are unique in the cluster, such as addresses and ports.
pub trait Allocate: Send + Sync {
    /// Allocates the values. Runs after the preparation, and again if another write took a claimed value.
    ///
    /// # Errors
    /// No value is left, or the wanted value is taken.
    fn allocate(
        &self,
        cx: &WriteContext<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError>;

    /// Returns the exclusive claims of the object within the resource, such as `ip/10.0.0.7`. If another
    /// object has a claim when the write is committed, the write begins again with the preparation.
    fn claims(&self, object: &Value) -> Vec<String>;
}

/// Does the work of the admission plugins of kube-apiserver for the kind.
pub trait Admission: Send + Sync {
    /// Runs mutating admission before an object is created (`old` is `None`) and before an update of the main resource.
    ///
    /// # Errors
    /// The write is not admitted.
    fn mutate(
        &self,
        _cx: &WriteContext<'_>,
        _object: &mut Value,
        _old: Option<&Value>,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Checks the rights of the user for an object after mutating admission. Runs before an object is created (`old` is
    /// `None`) and before an update of the main resource.
    ///
    /// # Errors
    /// The user may not make the write.
    fn authorize(
        &self,
        _cx: &WriteContext<'_>,
        _object: &Value,
        _old: Option<&Value>,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Runs validating admission for a write of a valid object, or of `cx.subresource`. `old` is `None` for a new object.
    ///
    /// # Errors
    /// The user may not make the write.
    fn validate_admission(
        &self,
        _cx: &WriteContext<'_>,
        _object: &Value,
        _old: Option<&Value>,
    ) -> Result<(), ApiError> {
        Ok(())
    }
}

/// Validates objects.
pub trait Validate: Send + Sync {
    /// Validates an object. Runs at each write except of the status.
    fn validate(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Validates the change of an object from `old`. Runs at each update except of the status.
    fn validate_change(&self, _object: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Validates a write of the status.
    fn validate_status(&self, _object: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Validates a new object.
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        self.validate(object)
    }

    /// Validates an update of the object or of `cx.subresource`.
    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if *cx.subresource == Subresource::Status {
            return self.validate_status(object, old);
        }
        let mut errors = self.validate(object);
        errors.extend(self.validate_change(object, old));
        errors
    }

    /// Returns the texts of `Warning` headers for a write.
    fn warnings(&self, _cx: &WriteContext<'_>, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }
}

/// The grace period of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// The kind has no grace period: the object is deleted at once.
    Immediate,
    /// The object becomes terminating and is deleted by a second request with a grace period of zero.
    Seconds(i64),
}

/// Deletes objects.
pub trait Delete: Send + Sync {
    /// Returns the grace period of a deletion. `requested` is `gracePeriodSeconds` of the request.
    fn grace(&self, _cx: &WriteContext<'_>, _object: &Value, _requested: Option<i64>) -> Grace {
        Grace::Immediate
    }

    /// Prepares an object for deletion. A namespace becomes `Terminating`.
    ///
    /// Returns whether the object must be kept, even without `metadata.finalizers`.
    ///
    /// # Errors
    /// The object must not be deleted.
    fn prepare_delete(&self, _cx: &WriteContext<'_>, _object: &mut Value) -> Result<bool, ApiError> {
        Ok(false)
    }

    /// Returns whether a terminating object without `metadata.finalizers` is removed.
    fn may_be_removed(&self, _object: &Value) -> bool {
        true
    }
}
