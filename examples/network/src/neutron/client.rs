//! Typed requests.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Credentials, Error, Network, NetworkChange, NewNetwork, NewSubnet, Subnet, SubnetChange,
    keystone::Tokens,
    transport::{Reply, Transport},
};

/// How to reach Neutron.
#[derive(Clone, Debug)]
pub struct NeutronConfig {
    /// The URL of the server, without a version: `http://127.0.0.1:9696`.
    pub url: String,
    /// The credentials for Keystone. Without credentials, no token is sent (`auth_strategy = noauth`).
    pub credentials: Option<Credentials>,
    /// The project of new objects, for `noauth`. Otherwise, the token decides.
    pub project: Option<String>,
    /// The longest time of a request. Default: 30 s.
    pub timeout: Duration,
    /// The number of objects in a page of a list. Default: 500.
    pub page: usize,
}

/// A client of Neutron. Cheap to clone.
#[derive(Clone)]
pub struct Neutron {
    base: String,
    project: Option<String>,
    page: usize,
    transport: Transport,
    tokens: Option<Tokens>,
}

impl NeutronConfig {
    /// Creates a client of a server without authentication. New objects belong to the project `kubernetes`; a
    /// request takes at most 30 s.
    pub fn noauth(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            credentials: None,
            project: Some("kubernetes".to_owned()),
            timeout: Duration::from_secs(30),
            page: 500,
        }
    }

    /// Creates a client of a server that asks Keystone.
    pub fn keystone(url: impl Into<String>, credentials: Credentials) -> Self {
        Self {
            url: url.into(),
            credentials: Some(credentials),
            project: None,
            timeout: Duration::from_secs(30),
            page: 500,
        }
    }
}

impl Neutron {
    /// Makes a client. No request is sent.
    ///
    /// # Errors
    /// The URL is none, or the system has no root certificates.
    pub fn new(config: NeutronConfig) -> Result<Self, Error> {
        let NeutronConfig { url, credentials, project, timeout, page } = config;
        let base = url.trim_end_matches('/').trim_end_matches("/v2.0").to_owned();
        if base.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).is_none() {
            return Err(Error::Config(format!("{url:?} is not the URL of a Neutron server")));
        }
        let tokens = credentials.map(|credentials| Tokens::new(credentials, timeout)).transpose()?;
        Ok(Self { base, project, page: page.max(1), transport: Transport::new("Neutron", timeout)?, tokens })
    }

    /// Returns the networks with these field values.
    pub async fn networks(&self, filter: &[(&str, &str)]) -> Result<Vec<Network>, Error> {
        self.list("networks", filter).await
    }

    /// Returns the network with an ID, if the network exists.
    pub async fn network(&self, id: &str) -> Result<Option<Network>, Error> {
        match self.send(Method::GET, &format!("networks/{id}"), None).await {
            Err(error) if error.is_not_found() => Ok(None),
            reply => part(&reply?, "network").map(Some),
        }
    }

    /// Creates a network.
    pub async fn create_network(&self, network: &NewNetwork) -> Result<Network, Error> {
        self.create("networks", "network", network).await
    }

    /// Changes a network.
    pub async fn update_network(&self, id: &str, change: &NetworkChange) -> Result<Network, Error> {
        let body = json!({ "network": change });
        part(&self.send(Method::PUT, &format!("networks/{id}"), Some(&body)).await?, "network")
    }

    /// Deletes a network with all subnets. A missing network is not an error.
    pub async fn delete_network(&self, id: &str) -> Result<(), Error> {
        self.delete(&format!("networks/{id}")).await
    }

    /// Returns the subnets with these field values.
    pub async fn subnets(&self, filter: &[(&str, &str)]) -> Result<Vec<Subnet>, Error> {
        self.list("subnets", filter).await
    }

    /// Creates a subnet. Neutron refuses a second subnet with the same addresses in a network.
    pub async fn create_subnet(&self, subnet: &NewSubnet) -> Result<Subnet, Error> {
        self.create("subnets", "subnet", subnet).await
    }

    /// Changes a subnet.
    pub async fn update_subnet(&self, id: &str, change: &SubnetChange) -> Result<Subnet, Error> {
        let body = json!({ "subnet": change });
        part(&self.send(Method::PUT, &format!("subnets/{id}"), Some(&body)).await?, "subnet")
    }

    /// Deletes a subnet. A missing subnet is not an error.
    pub async fn delete_subnet(&self, id: &str) -> Result<(), Error> {
        self.delete(&format!("subnets/{id}")).await
    }

    async fn list<T: DeserializeOwned>(
        &self,
        plural: &str,
        filter: &[(&str, &str)],
    ) -> Result<Vec<T>, Error> {
        let mut all: Vec<T> = Vec::new();
        let mut marker: Option<String> = None;
        loop {
            let query = query(filter, self.page, marker.as_deref());
            let page: Value = self.send(Method::GET, &format!("{plural}?{query}"), None).await?.json()?;
            let items = page[plural].as_array().cloned().unwrap_or_default();
            marker = items.last().and_then(|item| item["id"].as_str().map(str::to_owned));
            for item in items {
                all.push(decode(item)?);
            }
            let links = page[format!("{plural}_links")].as_array().cloned().unwrap_or_default();
            if marker.is_none() || !links.iter().any(|link| link["rel"] == "next") {
                return Ok(all);
            }
        }
    }

    async fn create<T: DeserializeOwned>(
        &self,
        plural: &str,
        singular: &str,
        object: &impl Serialize,
    ) -> Result<T, Error> {
        let mut body = json!({ singular: object });
        if let Some(project) = &self.project {
            body[singular]["tenant_id"] = json!(project);
        }
        part(&self.send(Method::POST, plural, Some(&body)).await?, singular)
    }

    async fn delete(&self, path: &str) -> Result<(), Error> {
        match self.send(Method::DELETE, path, None).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(drop),
        }
    }

    /// Sends a request with a token. A token that is refused is replaced once.
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Reply, Error> {
        let url = format!("{}/v2.0/{path}", self.base);
        let Some(tokens) = &self.tokens else {
            return self.transport.send(method, &url, None, body).await;
        };
        let token = tokens.token(Timestamp::now()).await?;
        let reply = self.transport.send(method.clone(), &url, Some(&token.id), body).await;
        match reply {
            // A request with a refused token has had no effect.
            Err(error) if error.is_unauthorized() => {
                tokens.forget(&token).await;
                let token = tokens.token(Timestamp::now()).await?;
                self.transport.send(method, &url, Some(&token.id), body).await
            }
            other => other,
        }
    }
}

/// Returns the query of a page of a list.
fn query(filter: &[(&str, &str)], page: usize, marker: Option<&str>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(filter).append_pair("limit", &page.to_string());
    if let Some(marker) = marker {
        query.append_pair("marker", marker);
    }
    query.finish()
}

/// Decodes a part of a body.
fn part<T: DeserializeOwned>(reply: &Reply, name: &str) -> Result<T, Error> {
    let mut body: Value = reply.json()?;
    decode(body[name].take())
}

fn decode<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value)
        .map_err(|error| Error::Undecodable { server: "Neutron", reason: error.to_string() })
}

impl std::fmt::Debug for Neutron {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Neutron").field("url", &self.base).finish_non_exhaustive()
    }
}
