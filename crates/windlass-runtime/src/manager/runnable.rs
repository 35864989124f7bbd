//! The parts that a manager starts and stops, in groups.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use kube_core::Resource;
use tokio::{
    sync::mpsc,
    task::{Id, JoinError, JoinSet},
    time::{Instant, timeout, timeout_at},
};

use super::RunContext;
use crate::{
    cache_declaration::CacheDeclaration,
    error::{BoxError, Error},
    informer::{CacheOptions, SharedInformerFactory},
    kind::Object,
    kind_ref::{IntoKind, kind},
    permission::Permission,
    shared_state::SharedState,
    shutdown::Shutdown,
    supervisor::panic_message,
};

/// The time that an aborted task may take to end. A task can only be aborted at an await point.
const ABORT_LIMIT: Duration = Duration::from_secs(1);

/// The interval of log lines that name the caches a runnable waits for.
const CACHE_REPORT: Duration = Duration::from_secs(10);

/// When a runnable is started. Groups are started in this order and stopped in the reverse order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Metrics and health endpoints, which report on all other parts.
    Http,
    /// Webhooks. Webhooks start before the caches, because a list may need a conversion webhook.
    Webhooks,
    /// Everything else that runs on every replica.
    Others,
    /// Everything that runs on the leader only.
    LeaderElected,
}

impl Group {
    pub(super) const ALL: [Self; 4] = [Self::Http, Self::Webhooks, Self::Others, Self::LeaderElected];
}

/// A part of an operator that runs until the shutdown, or until the work is done.
///
/// An error or a panic ends the manager.
pub struct Runnable {
    pub(super) name: String,
    pub(super) group: Group,
    /// The controller that the runnable belongs to.
    pub(super) part_of: Option<String>,
    pub(super) needs_caches: bool,
    pub(super) needs: Vec<Permission>,
    pub(super) reads: Vec<CacheDeclaration>,
    run: Run,
}

/// The function of a runnable.
enum Run {
    Once(Box<dyn FnOnce(RunContext) -> RunFuture + Send>),
    Repeatable(Arc<dyn Fn(RunContext) -> RunFuture + Send + Sync>),
}

type RunFuture = BoxFuture<'static, Result<(), BoxError>>;

impl Runnable {
    /// Wraps a function. The function runs on every replica unless [`group`](Self::group) selects the leader.
    pub fn new<F, Fut, E>(name: impl Into<String>, run: F) -> Self
    where
        F: FnOnce(RunContext) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let run = move |cx| -> RunFuture { Box::pin(async move { run(cx).await.map_err(Into::into) }) };
        Self::with(name.into(), Run::Once(Box::new(run)))
    }

    /// Wraps a function that can be called again: for each term of a leader that becomes a
    /// [follower](crate::leader_election::LeaderElection::back_to_follower) between the terms.
    ///
    /// ```
    /// use windlass_runtime::{Error, RunContext, Runnable, manager::Group};
    ///
    /// let report = Runnable::repeatable("report", |cx: RunContext| async move {
    ///     tracing::info!("this replica leads");
    ///     cx.shutdown().requested().await;
    ///     Ok::<_, Error>(())
    /// });
    /// let report = report.group(Group::LeaderElected);
    /// # drop(report);
    /// ```
    pub fn repeatable<F, Fut, E>(name: impl Into<String>, run: F) -> Self
    where
        F: Fn(RunContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let run = move |cx| -> RunFuture {
            let running = run(cx);
            Box::pin(async move { running.await.map_err(Into::into) })
        };
        Self::with(name.into(), Run::Repeatable(Arc::new(run)))
    }

    fn with(name: String, run: Run) -> Self {
        Self {
            name,
            group: Group::Others,
            part_of: None,
            needs_caches: true,
            needs: Vec::new(),
            reads: Vec::new(),
            run,
        }
    }

    /// Returns a runnable for a further term of the leader; `None` if the function can be called only once.
    pub(super) fn again(&self) -> Option<Self> {
        let Run::Repeatable(run) = &self.run else { return None };
        Some(Self {
            name: self.name.clone(),
            group: self.group,
            part_of: self.part_of.clone(),
            needs_caches: self.needs_caches,
            needs: self.needs.clone(),
            reads: self.reads.clone(),
            run: Run::Repeatable(run.clone()),
        })
    }

    /// Sets when the runnable is started and stopped.
    pub fn group(mut self, group: Group) -> Self {
        self.group = group;
        self
    }

    /// Starts the runnable without waiting for caches.
    ///
    /// By default, a runnable of [`Group::Others`] or [`Group::LeaderElected`] starts when the first lists of all watches that there are
    /// have ended.
    pub fn without_caches(mut self) -> Self {
        self.needs_caches = false;
        self
    }

    /// Declares a right that the runnable needs, for [`Manager::permissions`](crate::Manager::permissions).
    pub fn needs(mut self, permission: Permission) -> Self {
        self.needs.push(permission);
        self
    }

    /// Declares a cache of a kind for [`RunContext::lister`], and the rights to list and watch the kind.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Node;
    /// use windlass_runtime::{Error, RunContext, Runnable};
    ///
    /// let count = Runnable::new("count nodes", |cx: RunContext| async move {
    ///     tracing::info!(nodes = cx.lister::<Node>()?.all()?.len());
    ///     Ok::<_, Error>(())
    /// });
    /// let count = count.reads::<Node>();
    /// # drop(count);
    /// ```
    pub fn reads<K: Object + Resource<DynamicType = ()>>(self) -> Self {
        self.reads_of(kind::<K>(), CacheOptions::new())
    }

    /// Works like [`reads`](Self::reads), for any [kind](crate::KindRef), with namespaces, selectors, indexes
    /// and other options of the cache. [`RunContext::lister_of`] reads the cache.
    pub fn reads_of(self, kind: impl IntoKind, options: CacheOptions) -> Self {
        self.reads_cache(CacheDeclaration::new(kind, options))
    }

    pub(crate) fn reads_cache(mut self, cache: CacheDeclaration) -> Self {
        self.reads.push(cache);
        self
    }

    /// Returns the declared rights, with the rights of the caches.
    pub(super) fn permissions(&self) -> impl Iterator<Item = Permission> {
        let caches = self.reads.iter().flat_map(CacheDeclaration::permissions);
        self.needs.iter().cloned().chain(caches)
    }

    /// Makes the runnable part of a controller. Both are stopped together.
    pub(super) fn part_of(mut self, controller: &str) -> Self {
        self.part_of = Some(controller.to_owned());
        self.without_caches()
    }

    /// Returns the name by which the runnable is stopped.
    pub(super) fn part(&self) -> &str {
        self.part_of.as_deref().unwrap_or(&self.name)
    }
}

/// A runnable that ended before the shutdown.
pub(super) struct Ended {
    pub(super) group: Group,
    pub(super) task: Id,
    pub(super) name: String,
    pub(super) part: String,
    pub(super) result: Result<(), BoxError>,
}

impl Ended {
    /// Returns the failure of the runnable, with the runnable's name.
    pub(super) fn failure(&mut self) -> Result<(), Error> {
        let result = std::mem::replace(&mut self.result, Ok(()));
        result.map_err(|error| Error::other(error).while_doing(format_args!("running {}", self.name)))
    }
}

/// The running members of a group.
pub(super) struct RunningGroup {
    shutdown: Shutdown,
    tasks: JoinSet<()>,
    members: BTreeMap<Id, Member>,
    ended: mpsc::UnboundedSender<Ended>,
}

/// A running member of a group.
struct Member {
    name: String,
    part: String,
    shutdown: Shutdown,
}

/// How a group stopped.
#[derive(Debug, Default)]
pub(super) struct StoppedGroup {
    /// The members that did not end by the deadline and were aborted.
    pub(super) aborted: Vec<String>,
    /// True if a member still runs because the member blocks a thread and cannot be aborted.
    pub(super) still_running: bool,
}

impl RunningGroup {
    pub(super) fn new(ended: mpsc::UnboundedSender<Ended>) -> Self {
        Self { shutdown: Shutdown::new(), tasks: JoinSet::new(), members: BTreeMap::new(), ended }
    }

    /// Starts a runnable. A runnable that `ManagerHandle::stop` stops is aborted after `grace`.
    pub(super) fn start(&mut self, runnable: Runnable, state: &Arc<SharedState>, grace: Option<Duration>) {
        let part = runnable.part().to_owned();
        let Runnable { name, run, needs_caches, reads, group, .. } = runnable;
        let shutdown = self.shutdown.child();
        let lacks_scope = |read: &&CacheDeclaration| read.lacks_scope(&state.own.namespaces);
        // Webhooks answer while the server does not serve a kind: all other requests do not need the kind.
        let waits_for_kinds = group != Group::Webhooks && reads.iter().any(|read| lacks_scope(&read));
        let late =
            if waits_for_kinds { Vec::new() } else { reads.iter().filter(lacks_scope).cloned().collect() };
        // Before the task, unless the server must be asked: the caches must exist when the manager starts all caches.
        let made = (!waits_for_kinds).then(|| RunContext::new(&name, &reads, state, shutdown.clone()));
        let waits = needs_caches && group > Group::Webhooks;
        let (label, informers) = (name.clone(), state.informers());
        let (state, requested) = (state.clone(), shutdown.clone());
        let run = async move {
            let cx = if let Some(cx) = made {
                cx?
            } else {
                let discovered = RunContext::discovering(&label, reads, &state, requested.clone());
                let Some(cx) = requested.token().run_until_cancelled(discovered).await else { return Ok(()) };
                cx?
            };
            if waits && !caches_synced(&label, &informers, &cx.shutdown).await {
                return Ok(());
            }
            let declared = cx.clone().declare_served(late);
            let running = match run {
                Run::Once(run) => run(cx),
                Run::Repeatable(run) => run(cx),
            };
            tokio::select! {
                biased;
                result = running => result,
                Err(error) = declared => Err(error.into()),
            }
        };
        let (ended, label, part_of) = (self.ended.clone(), name.clone(), part.clone());
        let (own, of_group) = (shutdown.clone(), self.shutdown.clone());
        self.remove_ended();
        let task = self.tasks.spawn(async move {
            let run = std::pin::pin!(AssertUnwindSafe(run).catch_unwind());
            let result = match stopped_alone(run, &own, &of_group, grace).await {
                Some(Ok(result)) => result,
                Some(Err(payload)) => Err(format!("panicked: {}", panic_message(payload.as_ref())).into()),
                None => {
                    tracing::warn!(part = label, "did not stop in time and was ended by force");
                    Ok(())
                }
            };
            let _ = ended.send(Ended { group, task: tokio::task::id(), name: label, part: part_of, result });
        });
        self.members.insert(task.id(), Member { name, part, shutdown });
    }

    /// Asks the members of a part to stop. Returns the number of members.
    pub(super) fn stop_part(&mut self, part: &str) -> usize {
        let members = self.members.values().filter(|member| member.part == part);
        members.map(|member| member.shutdown.request()).count()
    }

    /// Forgets a member that has ended.
    pub(super) fn remove(&mut self, task: Id) {
        self.members.remove(&task);
    }

    /// Returns whether members of a part run.
    pub(super) fn runs(&self, part: &str) -> bool {
        self.members.values().any(|member| member.part == part)
    }

    /// Forgets tasks that have ended.
    fn remove_ended(&mut self) {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.members.remove(&ended_id(ended));
        }
    }

    /// Asks all members to stop, waits for the members, and aborts the members that have not ended by the deadline.
    ///
    /// Returns when no task of the group runs any more, unless a task blocks a thread.
    pub(super) async fn stop(&mut self, deadline: Option<Instant>) -> StoppedGroup {
        self.shutdown.request();
        match deadline {
            Some(deadline) => {
                let _ = timeout_at(deadline, self.joined()).await;
            }
            None => self.joined().await,
        }
        self.abort().await
    }

    /// Aborts the members, without a request to stop before.
    pub(super) async fn abort(&mut self) -> StoppedGroup {
        let aborted: Vec<String> = self.members.values().map(|member| member.name.clone()).collect();
        self.tasks.abort_all();
        let all_ended = async {
            self.joined().await;
            self.shutdown.tracked_ended().await;
        };
        let still_running = timeout(ABORT_LIMIT, all_ended).await.is_err();
        StoppedGroup { aborted, still_running }
    }

    /// Returns an empty group that reports to the same manager.
    pub(super) fn renewed(&self) -> Self {
        Self::new(self.ended.clone())
    }

    async fn joined(&mut self) {
        while let Some(ended) = self.tasks.join_next_with_id().await {
            self.members.remove(&ended_id(ended));
        }
    }
}

fn ended_id(ended: Result<(Id, ()), JoinError>) -> Id {
    match ended {
        Ok((id, ())) => id,
        Err(error) => error.id(),
    }
}

/// Runs a member. Returns `None` if only this member was asked to stop and did not stop within `grace`.
async fn stopped_alone<F: Future>(
    mut run: std::pin::Pin<&mut F>,
    own: &Shutdown,
    group: &Shutdown,
    grace: Option<Duration>,
) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = &mut run => return Some(output),
        () = own.requested() => {}
    }
    match grace {
        // The stop of a group has a separate deadline, for all groups together.
        Some(grace) if !group.is_requested() => timeout(grace, run).await.ok(),
        _ => Some(run.await),
    }
}

/// Waits until the first lists of all watches have ended. Returns false if the shutdown is requested before.
async fn caches_synced(runnable: &str, informers: &[SharedInformerFactory], shutdown: &Shutdown) -> bool {
    for informers in informers {
        loop {
            let synced = informers.wait_for_cache_sync(CACHE_REPORT);
            match shutdown.token().run_until_cancelled(synced).await {
                None => return false,
                Some(Ok(())) => break,
                Some(Err(error)) => tracing::warn!(runnable, %error, "waiting for caches before it starts"),
            }
        }
    }
    true
}
