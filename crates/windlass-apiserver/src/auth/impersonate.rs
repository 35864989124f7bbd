//! Impersonation: requests that run as another user (`kubectl --as`).
//!
//! There are several modes, which are tried in order. Constrained modes need two permissions:
//! `impersonate:MODE` for the user, and `impersonate-on:MODE:VERB` for the request. The legacy mode needs
//! only `impersonate`.

use std::collections::{BTreeMap, HashMap};

use http::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use windlass_schema::FieldError;

use super::{Attributes, Authorizer, Identity};
use crate::store::{Store, forbidden, service_account_groups, split_node, split_service_account};
use crate::wire::{ApiError, names};
use windlass_kinds::resources::{NODES, SERVICE_ACCOUNTS};

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const EXTRA: &str = "impersonate-extra-";

/// The API group of the things to impersonate, but for users and groups in the old mode.
const AUTHENTICATION: &str = "authentication.k8s.io";
/// From this number of values on, constrained modes ask for the permission for all values first.
const MANY: usize = 4;
/// How many users' modes are remembered.
const MAX_REMEMBERED: usize = 10_000;

/// The user that a request asks to be run as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RequestedUser {
    name: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl RequestedUser {
    /// Reads the headers. `None` if there are none.
    fn read(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let first = |name: HeaderName| headers.get(name).map(text).unwrap_or_default();
        let mut wanted = Self {
            name: first(USER),
            uid: first(UID),
            groups: headers.get_all(GROUP).iter().map(text).collect(),
            extra: BTreeMap::new(),
        };
        for (name, value) in headers {
            if let Some(key) = name.as_str().strip_prefix(EXTRA) {
                wanted.extra.entry(unescape(key)).or_default().push(text(value));
            }
        }
        if !wanted.name.is_empty() {
            return Ok(Some(wanted));
        }
        if wanted == Self::default() { Ok(None) } else { Err(wanted.without_user()) }
    }

    fn without_user(&self) -> ApiError {
        ApiError::bad_request(format!("requested {} without impersonating a user name", self.in_go()))
    }

    /// Formats the user as Go's `%#v` does.
    fn in_go(&self) -> String {
        let quote = windlass_schema::go_quote;
        let list = |values: &[String]| values.iter().map(|text| quote(text)).collect::<Vec<_>>().join(", ");
        let groups = if self.groups.is_empty() {
            "[]string(nil)".to_owned()
        } else {
            format!("[]string{{{}}}", list(&self.groups))
        };
        let extra = if self.extra.is_empty() {
            "map[string][]string(nil)".to_owned()
        } else {
            let entries =
                self.extra.iter().map(|(key, values)| format!("{}:[]string{{{}}}", quote(key), list(values)));
            format!("map[string][]string{{{}}}", entries.collect::<Vec<_>>().join(", "))
        };
        format!(
            "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:{extra}}}",
            quote(&self.name),
            quote(&self.uid)
        )
    }

    fn has_only_a_name(&self) -> bool {
        self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }

    /// Returns the user in `groups`, instead of the requested groups.
    fn identity(&self, mut groups: Vec<String>) -> Identity {
        let has = |group: &str| groups.iter().any(|other| other == group);
        let implied = if self.name == Identity::ANONYMOUS {
            Some(Identity::UNAUTHENTICATED)
        } else {
            Some(Identity::AUTHENTICATED).filter(|_| !has(Identity::UNAUTHENTICATED))
        };
        // The implied group is the last group, also behind `system:authenticated`.
        let implied = implied.filter(|group| !has(group));
        groups.extend(implied.map(str::to_owned));
        let mut identity = Identity::unverified(&*self.name);
        if !self.uid.is_empty() {
            identity = identity.with_uid(&*self.uid);
        }
        identity = identity.with_groups(groups);
        for (key, values) in &self.extra {
            identity = values.iter().fold(identity, |identity, value| identity.with_extra(&**key, &**value));
        }
        identity
    }
}

/// A way to permit impersonation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A service account as the node of the service account's pod.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    /// Any user that is neither a node nor a service account.
    UserInfo,
    /// The old way: the verb `impersonate`.
    Unconstrained,
}

impl Mode {
    const ALL: [Self; 5] = [
        Self::AssociatedNode,
        Self::ArbitraryNode,
        Self::ServiceAccount,
        Self::UserInfo,
        Self::Unconstrained,
    ];

    /// Returns the name in verbs. `None` for the unconstrained mode.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::AssociatedNode => Some("associated-node"),
            Self::ArbitraryNode => Some("arbitrary-node"),
            Self::ServiceAccount => Some("serviceaccount"),
            Self::UserInfo => Some("user-info"),
            Self::Unconstrained => None,
        }
    }

    /// Returns whether the mode is for such a user at all.
    fn is_for(self, wanted: &RequestedUser, requestor: &Identity) -> bool {
        let node = split_node(&wanted.name);
        let account = split_service_account(&wanted.name);
        match self {
            Self::AssociatedNode => {
                let own = requestor.extra().get("authentication.kubernetes.io/node-name");
                wanted.has_only_a_name()
                    && split_service_account(requestor.name()).is_some()
                    && node.is_some_and(|node| own.is_some_and(|own| own.len() == 1 && own[0] == node))
            }
            Self::ArbitraryNode => wanted.has_only_a_name() && node.is_some(),
            Self::ServiceAccount => wanted.has_only_a_name() && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Unconstrained => true,
        }
    }
}

/// Runs requests as other users, where that is permitted.
#[derive(Default)]
pub(crate) struct Impersonation {
    /// The last successful mode, by the name of the requestor: this mode is tried first.
    successful: Mutex<HashMap<String, Mode>>,
}

impl Impersonation {
    /// Returns the user of a request: `requestor`, or the user in the headers.
    ///
    /// # Errors
    /// 403 if `requestor` may not do this as that user, and 400 if the headers name no user.
    pub(crate) fn user_of(
        &self,
        authorizer: &Authorizer,
        store: &Store,
        requestor: &Identity,
        headers: &HeaderMap,
        request: &Attributes<'_>,
    ) -> Result<Identity, ApiError> {
        let Some(wanted) = RequestedUser::read(headers)? else { return Ok(requestor.clone()) };
        let known = self.successful.lock().get(requestor.name()).copied();
        let others = Mode::ALL.into_iter().filter(|mode| Some(*mode) != known);
        let mut first_error = None;
        for mode in known.into_iter().chain(others) {
            if !mode.is_for(&wanted, requestor) {
                continue;
            }
            let check = Check { authorizer, store, requestor, mode };
            match check.impersonate(&wanted, request) {
                Ok(identity) => {
                    if known != Some(mode) {
                        self.remember(requestor.name(), mode);
                    }
                    return Ok(identity);
                }
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or_else(|| ApiError::internal("all impersonation modes failed")))
    }

    fn remember(&self, user: &str, mode: Mode) {
        let mut successful = self.successful.lock();
        if successful.len() >= MAX_REMEMBERED {
            successful.clear();
        }
        successful.insert(user.to_owned(), mode);
    }
}

/// The checks of a mode.
struct Check<'a> {
    authorizer: &'a Authorizer,
    store: &'a Store,
    requestor: &'a Identity,
    mode: Mode,
}

impl Check<'_> {
    fn impersonate(&self, wanted: &RequestedUser, request: &Attributes<'_>) -> Result<Identity, ApiError> {
        let mut verb = "impersonate".to_owned();
        if let Some(mode) = self.mode.name() {
            let on = format!("impersonate-on:{mode}:{}", request.verb);
            self.authorize(&Attributes { verb: &on, ..request.clone() })?;
            verb = format!("impersonate:{mode}");
        }
        let groups = self.check_name(&verb, wanted)?;
        if !wanted.uid.is_empty() {
            self.authorize(&Attributes {
                verb: &verb,
                group: AUTHENTICATION,
                resource: "uids",
                name: &wanted.uid,
                ..Attributes::default()
            })?;
        }
        self.check_groups(&verb, &wanted.groups)?;
        self.check_extra(&verb, &wanted.extra)?;
        Ok(wanted.identity(groups))
    }

    fn is_constrained(&self) -> bool {
        self.mode != Mode::Unconstrained
    }

    /// Returns the API group of users and groups.
    fn group(&self) -> &'static str {
        if self.is_constrained() { AUTHENTICATION } else { "" }
    }

    fn authorize(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        self.authorizer.authorize(self.store, self.requestor, attributes)
    }

    /// Checks the name, and returns the groups of the user.
    fn check_name(&self, verb: &str, wanted: &RequestedUser) -> Result<Vec<String>, ApiError> {
        let mut groups = wanted.groups.clone();
        let mut target = Attributes {
            verb,
            group: self.group(),
            resource: "users",
            name: &wanted.name,
            ..Attributes::default()
        };
        if let Some(node) = split_node(&wanted.name).filter(|_| self.is_constrained()) {
            // A service account needs the permission for the nodes of all pods at once.
            let name = if self.mode == Mode::AssociatedNode { "*" } else { node };
            target = Attributes { resource: &NODES.resource, name, ..target };
            groups = vec!["system:nodes".to_owned()];
        }
        if let Some((namespace, name)) = split_service_account(&wanted.name) {
            target = Attributes { resource: &SERVICE_ACCOUNTS.resource, namespace, name, ..target };
            if groups.is_empty() {
                groups = service_account_groups(namespace).to_vec();
            }
        }
        self.authorize(&target)?;
        Ok(groups)
    }

    fn check_groups(&self, verb: &str, groups: &[String]) -> Result<(), ApiError> {
        let target = |name| Attributes {
            verb,
            group: self.group(),
            resource: "groups",
            name,
            ..Attributes::default()
        };
        if self.is_constrained() {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(forbidden(self.requestor, &target(""), why));
            }
            if groups.iter().any(|group| group == Identity::MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(forbidden(self.requestor, &target(Identity::MASTERS), why));
            }
            if groups.len() >= MANY && self.authorize(&target("*")).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.authorize(&target(group)))
    }

    fn check_extra(&self, verb: &str, extra: &BTreeMap<String, Vec<String>>) -> Result<(), ApiError> {
        let target = |subresource, name| Attributes {
            verb,
            group: AUTHENTICATION,
            resource: "userextras",
            subresource,
            name,
            ..Attributes::default()
        };
        if self.is_constrained() {
            if let Some(why) = extra.iter().find_map(|(key, values)| problem_of_extra(key, values)) {
                return Err(forbidden(self.requestor, &target("", ""), &why));
            }
            let count: usize = extra.values().map(Vec::len).sum();
            if extra.len().max(count) >= MANY && self.authorize(&target("*", "*")).is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            values.iter().try_for_each(|value| self.authorize(&target(key, value)))?;
        }
        Ok(())
    }
}

/// Returns why a constrained mode does not permit an extra attribute.
fn problem_of_extra(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    if let Some(problem) = problem_of_path(key) {
        return Some(format!("impersonating an invalid key in extra is not allowed: {problem}"));
    }
    if key.chars().any(char::is_uppercase) {
        let quoted = windlass_schema::go_quote(key);
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {quoted}"));
    }
    let has_empty = values.iter().any(String::is_empty);
    has_empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

/// Returns why a text is not a domain and a path, such as `example.com/a`.
fn problem_of_path(text: &str) -> Option<FieldError> {
    const FIELD: &str = "extra.key";
    const SIGNS: &str = "/-._~%!$&'()*+,;=:";
    let (domain, path) = text.split_once('/').unwrap_or_default();
    if domain.is_empty() || path.is_empty() {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return Some(FieldError::invalid(FIELD, text, why));
    }
    if let Some(why) = names::dns_1123_subdomain(domain).into_iter().next() {
        return Some(FieldError::invalid(FIELD, domain, why));
    }
    let is_valid = path.chars().all(|sign| sign.is_ascii_alphanumeric() || SIGNS.contains(sign));
    (!is_valid).then(|| {
        let why = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
        FieldError::invalid(FIELD, path, why)
    })
}

/// Decodes percent encoding. A text with a broken escape stays unchanged.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let Some((high, low)) = digit().zip(digit()) else { return text.to_owned() };
        bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
