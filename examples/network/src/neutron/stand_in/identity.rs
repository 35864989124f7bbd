//! A Keystone with a single account.

use std::{collections::BTreeMap, time::Duration};

use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::reply::Reply;

/// The account that a stand-in knows.
#[derive(Clone, Debug)]
pub struct Account {
    /// The name of the user.
    pub username: String,
    /// The password.
    pub password: String,
    /// The name of the project.
    pub project: String,
    /// How long a token is valid.
    pub lifetime: Duration,
}

/// Issues and checks tokens.
pub(super) struct Identity {
    account: Account,
    tokens: BTreeMap<String, Timestamp>,
    issued: usize,
}

impl Identity {
    pub(super) fn new(account: Account) -> Self {
        Self { account, tokens: BTreeMap::new(), issued: 0 }
    }

    pub(super) fn revoke(&mut self) {
        self.tokens.clear();
    }

    pub(super) fn issued(&self) -> usize {
        self.issued
    }

    /// Handles `POST /v3/auth/tokens`.
    pub(super) fn authenticate(&mut self, method: &Method, body: &[u8], now: Timestamp) -> Reply {
        if *method != Method::POST {
            return Reply::error(405, "HTTPMethodNotAllowed", "The method is not allowed.");
        }
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let user = &body["auth"]["identity"]["password"]["user"];
        let project = &body["auth"]["scope"]["project"]["name"];
        let Account { username, password, project: own, lifetime } = &self.account;
        if user["name"] != username.as_str()
            || user["password"] != password.as_str()
            || *project != own.as_str()
        {
            return Reply::unauthorized();
        }
        let expires = now + SignedDuration::try_from(*lifetime).unwrap_or(SignedDuration::from_hours(1));
        self.issued += 1;
        let token = format!("token-{}", self.issued);
        self.tokens.insert(token.clone(), expires);
        let body = json!({ "token": { "methods": ["password"], "issued_at": now.to_string(), "expires_at": expires.to_string(),
            "project": { "name": own, "domain": { "name": "Default" } } } });
        Reply { token: Some(token), ..Reply::ok(201, body) }
    }

    /// Returns the project of a valid token.
    pub(super) fn project_of(&self, token: Option<&str>, now: Timestamp) -> Option<&str> {
        let expires = self.tokens.get(token?)?;
        (*expires > now).then_some(self.account.project.as_str())
    }
}
