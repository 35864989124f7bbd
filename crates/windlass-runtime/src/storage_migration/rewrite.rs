//! Listing objects in pages and writing each back.

use http::Request;
use kube_client::Client;
use serde_json::Value;
use tokio::time::sleep;

use super::{FIRST_PAUSE, MigrationReport, TRIES};
use crate::{
    client::path_segment,
    error::{Error, Result},
};

/// The most refused objects that an error names.
const SHOWN: usize = 5;

pub(super) struct Rewrite<'a> {
    pub(super) client: &'a Client,
    /// The path of the group and version.
    pub(super) path: String,
    pub(super) plural: &'a str,
    pub(super) crd: &'a str,
}

/// Returns the query of a page.
fn query(page: u32, token: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("limit", &page.to_string());
    if !token.is_empty() {
        query.append_pair("continue", token);
    }
    query.finish()
}

/// The result of a rewrite.
enum Written {
    Rewritten,
    ChangedMeanwhile,
}

impl Rewrite<'_> {
    /// Rewrites all objects.
    pub(super) async fn all(
        &self,
        page: u32,
        resume: Option<String>,
        report: &mut MigrationReport,
    ) -> Result<()> {
        let mut token = resume.unwrap_or_default();
        let mut refused = Vec::new();
        let mut restarts = 0;
        loop {
            let mut list = match self.list(page, &token).await {
                Ok(list) => list,
                // The token has expired: start from the beginning. The server does not write rewritten
                // objects again.
                Err(error) if error.status().is_some_and(|status| status.code == 410) && restarts < TRIES => {
                    tracing::info!(crd = self.crd, "the list has expired, starting again");
                    restarts += 1;
                    token.clear();
                    continue;
                }
                Err(error) => return Err(error),
            };
            for object in list.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                match self.write(object).await {
                    Ok(Written::Rewritten) => report.rewritten += 1,
                    Ok(Written::ChangedMeanwhile) => report.changed_meanwhile += 1,
                    Err(error) if error.is_transient() => return Err(error),
                    Err(error) => refused.push(error.to_string()),
                }
            }
            token = list["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            let remaining = list["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
            tracing::info!(
                crd = self.crd,
                rewritten = report.rewritten,
                remaining,
                next = token,
                "storage version migration"
            );
            if token.is_empty() {
                break;
            }
        }
        if refused.is_empty() {
            return Ok(());
        }
        let count = refused.len();
        refused.truncate(SHOWN);
        Err(Error::setup(format!("{count} objects cannot be written back: {}", refused.join("; "))))
    }

    async fn list(&self, page: u32, token: &str) -> Result<Value> {
        let path = format!("{}/{}?{}", self.path, self.plural, query(page, token));
        self.request(|| Request::get(&path).body(Vec::new())).await
    }

    /// Writes an object back unchanged.
    async fn write(&self, object: &Value) -> Result<Written> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let (place, key) = if namespace.is_empty() {
            (String::new(), name.to_owned())
        } else {
            (format!("namespaces/{}/", path_segment(namespace)?), format!("{namespace}/{name}"))
        };
        let path = format!("{}/{place}{}/{}", self.path, self.plural, path_segment(name)?);
        let body = object.to_string().into_bytes();
        let put = || {
            let request = Request::put(&path).header(http::header::CONTENT_TYPE, "application/json");
            request.body(body.clone())
        };
        match self.request(put).await {
            Ok(_) => Ok(Written::Rewritten),
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(Written::ChangedMeanwhile),
            Err(error) => Err(error.while_doing(key)),
        }
    }

    /// Sends a request, again if the API server is not there.
    async fn request(&self, request: impl Fn() -> http::Result<Request<Vec<u8>>>) -> Result<Value> {
        let mut pause = FIRST_PAUSE;
        let mut tries = 1;
        loop {
            let answer = self.client.request::<Value>(request().map_err(Error::other)?).await;
            match answer.map_err(Error::from) {
                Err(error) if error.is_transient() && tries < TRIES => {
                    sleep(error.server_retry_after().unwrap_or(pause)).await;
                    (pause, tries) = (pause * 2, tries + 1);
                }
                answer => return answer,
            }
        }
    }
}
