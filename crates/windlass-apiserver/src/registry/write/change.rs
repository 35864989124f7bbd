//! A change of a stored object, by a request or by the server.

use serde_json::Value;

use super::admit;
use crate::registry::Call;
use crate::wire::ApiError;

/// The change of the present object. If another write came first, the change is made again.
pub(in crate::registry) trait Change: Send {
    /// Makes the new object from `old`, and records the managers of the fields. Both objects are in the
    /// version of the request.
    fn make(
        &mut self,
        call: &mut Call<'_>,
        old: &Value,
    ) -> impl Future<Output = Result<Value, ApiError>> + Send;

    /// Runs mutating admission on `new`.
    fn mutate(
        &mut self,
        call: &mut Call<'_>,
        new: &mut Value,
        old: &Value,
    ) -> impl Future<Output = Result<(), ApiError>> + Send {
        admit::mutate(call, new, Some(old))
    }

    /// Runs validating admission on `new`. `new` is ready to be stored.
    fn validate(
        &mut self,
        call: &mut Call<'_>,
        new: &Value,
        old: &Value,
    ) -> impl Future<Output = Result<(), ApiError>> + Send {
        call.validate(new, Some(old))
    }

    /// Completes `new` for the store, after the validation.
    fn complete(&mut self, _call: &Call<'_>, _new: &mut Value) {}

    /// Returns whether quotas limit the change.
    fn is_charged(&self) -> bool {
        true
    }
}

/// A change of the server's own: no manager owns the fields, and admission does not see the change.
pub(in crate::registry) struct ServerWrite<F>(F);

/// Makes a change of a function.
pub(in crate::registry) fn server_write<F>(change: F) -> ServerWrite<F>
where
    F: FnMut(&mut Call<'_>, &Value) -> Result<Value, ApiError> + Send,
{
    ServerWrite(change)
}

impl<F> Change for ServerWrite<F>
where
    F: FnMut(&mut Call<'_>, &Value) -> Result<Value, ApiError> + Send,
{
    async fn make(&mut self, call: &mut Call<'_>, old: &Value) -> Result<Value, ApiError> {
        (self.0)(call, old)
    }

    async fn mutate(&mut self, _: &mut Call<'_>, _: &mut Value, _: &Value) -> Result<(), ApiError> {
        Ok(())
    }

    async fn validate(&mut self, _: &mut Call<'_>, _: &Value, _: &Value) -> Result<(), ApiError> {
        Ok(())
    }

    fn is_charged(&self) -> bool {
        false
    }
}
