//! Discovery of the server: the scope of a kind that is known only at run time, and the presence of the
//! status subresource.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube_core::ApiResource;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    client::{ApiClient, Call, path::version_path},
    error::{Error, Result},
};

/// The pause before the kind is looked up again.
const PAUSE: Duration = Duration::from_secs(1);

/// The time limit of a response.
const ATTEMPT: Duration = Duration::from_secs(30);

/// Returns whether objects of a resource are namespaced. Waits until the server serves the resource, at most
/// for `limit`.
pub(crate) async fn is_namespaced(
    client: &ApiClient,
    resource: &ApiResource,
    limit: Option<Duration>,
) -> Result<bool> {
    let begun = Instant::now();
    let path = version_path(resource);
    let mut reported = false;
    loop {
        let attempt = limit.map_or(ATTEMPT, |limit| ATTEMPT.min(limit.saturating_sub(begun.elapsed())));
        let missing = match timeout(attempt, look_up(client, &path, &resource.plural)).await {
            Ok(Ok(Some(namespaced))) => return Ok(namespaced),
            Ok(Ok(None)) => "the server does not serve it; is its CRD installed?".to_owned(),
            Ok(Err(error)) if error.is_not_found() => {
                "the server does not serve its group; is its CRD installed?".to_owned()
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the server did not answer".to_owned(),
        };
        if let Some(limit) = limit
            && begun.elapsed() + PAUSE >= limit
        {
            let kind = &resource.kind;
            return Err(Error::setup(format!("the scope of {kind} is not known after {limit:?}: {missing}")));
        }
        if !std::mem::replace(&mut reported, true) {
            tracing::warn!(kind = resource.kind, reason = missing, "waiting to learn the scope of a kind");
        }
        sleep(PAUSE).await;
    }
}

/// Returns whether the server serves the subresource `status` of a resource.
///
/// # Errors
/// The server did not answer, or does not serve the resource.
pub(crate) async fn serves_status(client: &ApiClient, resource: &ApiResource) -> Result<bool> {
    let status = format!("{}/status", resource.plural);
    let list = served(client, &version_path(resource)).await?;
    match list.resources.iter().find(|served| served.name == resource.plural) {
        Some(_) => Ok(list.resources.iter().any(|served| served.name == status)),
        None => Err(Error::setup(format!("the server does not serve {}", resource.plural))),
    }
}

async fn look_up(client: &ApiClient, path: &str, plural: &str) -> Result<Option<bool>> {
    let list = served(client, path).await?;
    Ok(list.resources.into_iter().find(|served| served.name == plural).map(|served| served.namespaced))
}

/// Returns the resources of a group and version.
async fn served(client: &ApiClient, path: &str) -> Result<APIResourceList> {
    client.exchange(Call::read(path.to_owned())?).await
}
