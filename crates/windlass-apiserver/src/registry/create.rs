//! `POST`: creates an object.

use http::{Response, StatusCode};

use super::options::WriteOptions;
use super::write::{self, OwnerCheck};
use super::{Call, metadata};
use crate::body::Body;
use crate::wire::ApiError;

pub(super) async fn create(call: &mut Call<'_>) -> Result<Response<Body>, ApiError> {
    call.negotiate()?;
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let mut object = call.decode(options)?;
    metadata::wipe_system_metadata(&mut object);
    write::remove_duplicate_owners(call, &mut object, OwnerCheck::Decoded);
    call.track(None, &mut object).await;
    let stored = write::create(call, object, options).await?;
    call.object(StatusCode::CREATED, &stored).await
}
