//! Authorization: passwords, and tokens of token services.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use form_urlencoded::Serializer;
use http::{HeaderValue, Method, StatusCode, Uri};
use serde::Deserialize;

use super::challenge::Challenge;
use super::transport::Call;
use super::{Login, Registry};
use crate::{Error, Reference, Result};

/// The largest answer of a token service, in bytes.
const LARGEST_TOKEN: u64 = 1 << 20;

/// The name of this program at token services.
const CLIENT: &str = "windlass";

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
}

impl Registry {
    /// Returns the header `Authorization` for a login. Returns `None` if the login cannot answer the challenge.
    pub(super) async fn authorization(
        &self,
        reference: &Reference,
        challenges: &[Challenge],
        scope: &str,
        login: Option<&Login>,
    ) -> Result<Option<HeaderValue>> {
        for challenge in challenges {
            match (challenge, login) {
                (Challenge::Basic, Some(Login::Password { user, password })) => {
                    return secret(&basic(user, password)).map(Some);
                }
                (Challenge::Basic, _) => {}
                (Challenge::Bearer { realm, service, scope: asked }, login) => {
                    // A request to mount a blob needs rights to two repositories: the registry's scope names both.
                    let scope = asked.as_deref().unwrap_or(scope);
                    let realm = self.realm(reference, realm).await?;
                    let token = self.token(&realm, service.as_deref(), scope, login).await?;
                    return token.map(|token| secret(&format!("Bearer {token}"))).transpose();
                }
            }
        }
        Ok(None)
    }

    /// Checks the address of a token service: passwords are not sent to a plain address on behalf of a registry with TLS.
    async fn realm(&self, reference: &Reference, realm: &str) -> Result<Uri> {
        let uri: Uri = realm
            .parse()
            .map_err(|_| Error::invalid("the registry names a token service without an address"))?;
        let is_plain = self.scheme(reference).await? == "http";
        if uri.scheme_str() == Some("https") || (is_plain && uri.scheme_str() == Some("http")) {
            return Ok(uri);
        }
        Err(Error::Refused(format!(
            "the registry {} names a token service without TLS: {realm}",
            reference.registry()
        )))
    }

    /// Returns a token. Returns `None` if the token service refuses the login.
    async fn token(
        &self,
        realm: &Uri,
        service: Option<&str>,
        scope: &str,
        login: Option<&Login>,
    ) -> Result<Option<String>> {
        let call = token_call(realm, service, scope, login)?;
        let reply = self.transport.send(&call).await?;
        let refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::BAD_REQUEST];
        if refused.contains(&reply.status()) {
            return Ok(None);
        }
        let body = reply.successful().await?.bytes(LARGEST_TOKEN).await?;
        let answer: Answer = serde_json::from_slice(&body).map_err(|_| {
            Error::Unavailable(format!("the token service {realm} did not answer with a token"))
        })?;
        let token = if answer.token.is_empty() { answer.access_token } else { answer.token };
        Ok(Some(token).filter(|token| !token.is_empty()))
    }
}

/// Returns the request for a token: with a password or anonymous by GET, and with an identity token by POST.
fn token_call(realm: &Uri, service: Option<&str>, scope: &str, login: Option<&Login>) -> Result<Call> {
    let mut form = Serializer::new(String::new());
    form.extend_pairs(service.map(|service| ("service", service)));
    form.extend_pairs(scope.split(' ').filter(|scope| !scope.is_empty()).map(|scope| ("scope", scope)));
    if let Some(Login::IdentityToken(token)) = login {
        form.append_pair("grant_type", "refresh_token");
        form.append_pair("client_id", CLIENT);
        form.append_pair("refresh_token", token);
        let call = Call::new(Method::POST, realm.clone());
        return Ok(call.body("application/x-www-form-urlencoded", Bytes::from(form.finish())));
    }
    let separator = if realm.query().is_some() { '&' } else { '?' };
    let uri = format!("{realm}{separator}{}", form.finish());
    let mut call = Call::new(Method::GET, uri.parse().map_err(Error::invalid)?);
    if let Some(Login::Password { user, password }) = login {
        call.authorization = Some(secret(&basic(user, password))?);
    }
    Ok(call)
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

fn secret(text: &str) -> Result<HeaderValue> {
    let mut value =
        HeaderValue::from_str(text).map_err(|_| Error::invalid("a token contains control characters"))?;
    value.set_sensitive(true);
    Ok(value)
}
