//! The kinds of faults, and the requests that faults strike.

use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;
use kube_core::Resource;
use windlass_runtime::permission::{Access, Verb};

/// A fault of the API server, of the network, or of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// 409 `Conflict`. The request is not carried out.
    Conflict,
    /// 429 `TooManyRequests`, with `Retry-After` in whole seconds. The request is not carried out.
    TooManyRequests(Duration),
    /// 500 `InternalError`. The request is not carried out.
    ServerError,
    /// 403 `Forbidden`, like a refusal by RBAC. The request is not carried out.
    Forbidden,
    /// 404 `NotFound`. The request is not carried out.
    NotFound,
    /// 409 `AlreadyExists`. The request is not carried out.
    AlreadyExists,
    /// Any other status. The request is not carried out.
    Status {
        /// The HTTP status code.
        code: u16,
        /// The reason, a word in upper camel case.
        reason: String,
        /// The message.
        message: String,
    },
    /// 504 `Timeout` after 34 s, the limit of a real server for writes. If `committed`, the request was
    /// carried out.
    Timeout {
        /// True if the request is carried out before the time-out.
        committed: bool,
    },
    /// The connection breaks, without a reply. If `committed`, the request was carried out.
    Cut {
        /// True if the request is carried out before the connection breaks.
        committed: bool,
    },
    /// A watch ends after this many events, without an error. Other requests are not affected.
    WatchDrop {
        /// The number of events before the end.
        after: usize,
    },
    /// The connection of a watch breaks after this many events. Other requests are not affected.
    WatchCut {
        /// The number of events before the break.
        after: usize,
    },
    /// 410 `Expired`: a watch that resumes from a resource version is refused; any other watch ends with the
    /// error at the first event. A list at a resource version, or of a further page, is refused. Other
    /// requests are not affected.
    Expired,
    /// A watch is this many events behind: an event is delivered after this many later events, or at the
    /// latest after 30 s. A list repeats an earlier reply to the same request.
    Stale {
        /// The number of events that are held back.
        events: usize,
    },
    /// Another replica takes the Lease before the renewal. Only updates of Leases are affected.
    LeaseTaken,
    /// The operator's [clock](crate::Faults::clock) jumps. The request itself is carried out.
    ClockJump(SignedDuration),
    /// The operator's process ends: the process gets no further responses. If `committed`, the request with
    /// the fault was carried out.
    Crash {
        /// True if the request is carried out before the end.
        committed: bool,
    },
}

impl Fault {
    /// Returns a rule: this fault at requests with a verb.
    pub fn on(self, verb: Verb) -> FaultRule {
        FaultRule { verbs: Some(vec![verb]), ..self.on_any() }
    }

    /// Returns the fault at writes: create, update, patch, delete.
    pub fn on_writes(self) -> FaultRule {
        let verbs = vec![Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];
        FaultRule { verbs: Some(verbs), ..self.on_any() }
    }

    /// Returns the fault at any request.
    pub fn on_any(self) -> FaultRule {
        FaultRule {
            fault: self,
            verbs: None,
            resource: None,
            subresource: None,
            name: None,
            skip: 0,
            times: 1,
            struck: false,
        }
    }

    /// Returns the fault at creations of objects of kind `K`.
    pub fn on_create<K: Resource<DynamicType = ()>>(self) -> FaultRule {
        self.on(Verb::Create).to(K::plural(&()))
    }

    /// Returns the fault at updates (PUT) of objects of kind `K`.
    pub fn on_update<K: Resource<DynamicType = ()>>(self) -> FaultRule {
        self.on(Verb::Update).to(K::plural(&()))
    }

    /// Returns the fault at patches of objects of kind `K`, which include server-side apply. A [status](windlass_runtime::Context::update_status) is
    /// written by a patch of the [subresource](FaultRule::subresource) `status`.
    pub fn on_patch<K: Resource<DynamicType = ()>>(self) -> FaultRule {
        self.on(Verb::Patch).to(K::plural(&()))
    }

    /// Returns the fault at deletions of objects of kind `K`.
    pub fn on_delete<K: Resource<DynamicType = ()>>(self) -> FaultRule {
        self.on(Verb::Delete).to(K::plural(&()))
    }

    /// Returns 422 `Invalid`: the object breaks a rule.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Status { code: 422, reason: "Invalid".to_owned(), message: message.into() }
    }

    /// Returns whether the fault changes the outcome of a request.
    fn affects(&self, access: &Access, facts: RequestFacts) -> bool {
        let verb = access.verb();
        match self {
            Self::WatchDrop { .. } | Self::WatchCut { .. } => verb == Verb::Watch,
            Self::Stale { .. } => verb == Verb::Watch || facts.is_repeated,
            Self::Expired => verb == Verb::Watch || (verb == Verb::List && facts.is_versioned),
            Self::LeaseTaken => verb == Verb::Update && access.resource() == Some("leases"),
            _ => true,
        }
    }

    /// Returns whether the request is carried out in spite of the fault.
    pub(crate) fn is_committed(&self) -> bool {
        matches!(self, Self::Timeout { committed } | Self::Cut { committed } | Self::Crash { committed } if *committed)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = |committed: &bool| if *committed { "after the commit" } else { "before the commit" };
        match self {
            Self::Conflict => f.write_str("conflict"),
            Self::TooManyRequests(wait) => write!(f, "too many requests, retry after {wait:?}"),
            Self::ServerError => f.write_str("server error"),
            Self::Forbidden => f.write_str("forbidden"),
            Self::NotFound => f.write_str("not found"),
            Self::AlreadyExists => f.write_str("already exists"),
            Self::Status { code, reason, .. } => write!(f, "{code} {reason}"),
            Self::Timeout { committed } => write!(f, "time-out {}", when(committed)),
            Self::Cut { committed } => write!(f, "connection cut {}", when(committed)),
            Self::WatchDrop { after } => write!(f, "watch ended after {after} events"),
            Self::WatchCut { after } => write!(f, "watch cut after {after} events"),
            Self::Expired => f.write_str("expired"),
            Self::Stale { events } => write!(f, "stale by {events} events"),
            Self::LeaseTaken => f.write_str("lease taken"),
            Self::ClockJump(by) => write!(f, "clock jump of {} s", by.as_secs()),
            Self::Crash { committed } => write!(f, "crash {}", when(committed)),
        }
    }
}

/// Facts about a request that the verb and the resource do not tell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestFacts {
    /// True for a list that has had a reply before.
    pub(crate) is_repeated: bool,
    /// True for a read at a resource version, or of a further page.
    pub(crate) is_versioned: bool,
}

/// A fault and the requests that the fault strikes: by default the next request, once.
///
/// ```
/// use windlass_runtime::permission::Verb;
/// use windlass_test::Fault;
///
/// // The second and the third status that the operator writes are refused.
/// let rule = Fault::Conflict.on(Verb::Patch).to("pods/status").skip(1).times(2);
/// # let _ = rule;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRule {
    pub(crate) fault: Fault,
    verbs: Option<Vec<Verb>>,
    resource: Option<String>,
    subresource: Option<String>,
    name: Option<String>,
    skip: usize,
    times: usize,
    struck: bool,
}

impl FaultRule {
    /// Limits the rule to a resource, or with a slash to a subresource: `pods`, `pods/status`.
    pub fn to(mut self, resource: impl AsRef<str>) -> Self {
        let (resource, subresource) = split(resource.as_ref());
        self.resource = Some(resource.to_owned());
        self.subresource = subresource.map(str::to_owned);
        self
    }

    /// Limits the rule to a subresource: `status`.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// Limits the rule to the object with this name. The name of an object that is created is not in the request's path: only a
    /// [`FakeCluster`](crate::fake::FakeCluster) knows that name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Lets this many matching requests pass first.
    pub fn skip(mut self, requests: usize) -> Self {
        self.skip = requests;
        self
    }

    /// Strikes this many matching requests. Default: 1.
    pub fn times(mut self, requests: usize) -> Self {
        self.times = requests;
        self
    }

    /// Strikes every matching request.
    pub fn always(self) -> Self {
        self.times(ALWAYS)
    }

    /// Returns the fault if the rule strikes this request for the object with a name. A request that the fault does not affect passes, and
    /// does not count.
    pub(super) fn strike(
        &mut self,
        access: &Access,
        name: Option<&str>,
        facts: RequestFacts,
    ) -> Option<Fault> {
        let matches = self.fault.affects(access, facts)
            && self.verbs.as_ref().is_none_or(|verbs| verbs.contains(&access.verb()))
            && self.is_at(access.resource())
            && self.name.as_deref().is_none_or(|wanted| name == Some(wanted));
        if !matches || self.times == 0 {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        if self.times != ALWAYS {
            self.times -= 1;
        }
        self.struck = true;
        Some(self.fault.clone())
    }

    /// Returns whether the rule is for a resource, with the subresource in the form of a rule.
    fn is_at(&self, resource: Option<&str>) -> bool {
        let (resource, subresource) = resource.map_or((None, None), |resource| {
            let (resource, subresource) = split(resource);
            (Some(resource), subresource)
        });
        match &self.resource {
            Some(wanted) => resource == Some(wanted) && subresource == self.subresource.as_deref(),
            None => self.subresource.is_none() || subresource == self.subresource.as_deref(),
        }
    }

    /// Returns whether the fault has struck the wanted number of times: at least once, if the fault strikes every request.
    pub(super) fn is_over(&self) -> bool {
        self.times == 0 || (self.times == ALWAYS && self.struck)
    }
}

/// The number of requests of a rule that strikes every request.
const ALWAYS: usize = usize::MAX;

/// Splits a resource in the form of a rule: `pods/status`.
fn split(resource: &str) -> (&str, Option<&str>) {
    resource.split_once('/').map_or((resource, None), |(resource, subresource)| (resource, Some(subresource)))
}

impl fmt::Display for FaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs =
            self.verbs.as_ref().map(|verbs| verbs.iter().map(|verb| verb.as_str()).collect::<Vec<_>>());
        write!(
            f,
            "{} on {}",
            self.fault,
            verbs.map_or_else(|| "any request".to_owned(), |verbs| verbs.join("|"))
        )?;
        if let Some(resource) = &self.resource {
            write!(f, " {resource}")?;
        }
        if let Some(subresource) = &self.subresource {
            write!(f, "/{subresource}")?;
        }
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        Ok(())
    }
}
