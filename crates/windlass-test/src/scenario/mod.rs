//! An operator under faults, many times, with different faults each time.

mod replica;
mod run;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Client;
use windlass_runtime::Manager;

pub use self::run::ScenarioRun;

/// The environment variable with the number of runs.
const RUNS: &str = "WINDLASS_FAULT_RUNS";

/// The environment variable with the only seed to run. The trace of the run is printed.
const SEED: &str = "WINDLASS_FAULT_SEED";

/// An operator, the steps of the operator's user, and a check of the end state.
///
/// Each run has a new cluster in this process, with paused time. The operator meets
/// [faults](crate::Faults::seeded) that the seed chooses. After a crash, the operator is started again on the
/// same cluster. When the steps are done, all faults end, and the check must succeed within two hours of the
/// paused time, and still succeed two minutes later.
///
/// A run depends only on the seed: the same seed gives the same requests, faults and replies, also in another
/// process.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_client::api::{Api, PostParams};
/// use kube_core::ResourceExt;
/// use windlass_runtime::{Action, Context, Controller, Manager, ObjectKey, Permission, Result, Verb};
/// use windlass_test::Scenario;
///
/// async fn reconcile(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
///     if let Some(config) = cx.get(&key)?
///         && config.name_any() == "a"
///         && config.data.is_none()
///     {
///         let mut filled = (*config).clone();
///         filled.data = Some([("color".to_owned(), "blue".to_owned())].into());
///         cx.update(&filled).await?;
///     }
///     Ok(Action::done())
/// }
///
/// Scenario::new(|client| Manager::new(client).controller(Controller::of::<ConfigMap>(reconcile)))
///     .step(|client| async move {
///         let mut config = ConfigMap::default();
///         config.metadata.name = Some("a".to_owned());
///         let configs: Api<ConfigMap> = Api::default_namespaced(client);
///         configs.create(&PostParams::default(), &config).await.expect("created");
///     })
///     .check(|client| async move {
///         let configs: Api<ConfigMap> = Api::default_namespaced(client);
///         let config = configs.get("a").await.map_err(|error| error.to_string())?;
///         config.data.map(drop).ok_or("it has no data".to_owned())
///     })
///     .run_seeds(0..3);
/// ```
#[must_use = "call `run_seeds` or `run_many`"]
pub struct Scenario {
    operator: Arc<dyn Fn(Client) -> Manager + Send + Sync>,
    crds: Vec<CustomResourceDefinition>,
    steps: Vec<Step>,
    check: Check,
}

type Step = Arc<dyn Fn(Client) -> BoxFuture<'static, ()> + Send + Sync>;
type Check = Arc<dyn Fn(Client) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

impl Scenario {
    /// Creates a scenario. `operator` makes the operator's manager from a client, and is called for each
    /// process of the operator.
    pub fn new(operator: impl Fn(Client) -> Manager + Send + Sync + 'static) -> Self {
        let check: Check = Arc::new(|_| Box::pin(std::future::ready(Ok(()))));
        Self { operator: Arc::new(operator), crds: Vec::new(), steps: Vec::new(), check }
    }

    /// Installs a CRD before the operator starts.
    pub fn crd(mut self, definition: CustomResourceDefinition) -> Self {
        self.crds.push(definition);
        self
    }

    /// Adds a step of the user, who meets no faults: `step` gets the client of an administrator. After each step, up to 20 s pass.
    pub fn step<Fut>(mut self, step: impl Fn(Client) -> Fut + Send + Sync + 'static) -> Self
    where
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.steps.push(Arc::new(move |client| Box::pin(step(client))));
        self
    }

    /// Sets the check of the end state. The error of the check names the wrong object or field.
    pub fn check<Fut>(mut self, check: impl Fn(Client) -> Fut + Send + Sync + 'static) -> Self
    where
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.check = Arc::new(move |client| Box::pin(check(client)));
        self
    }

    /// Runs the scenario once with each seed, on all cores.
    ///
    /// # Panics
    /// A run failed: the message has the seed, the reason and the faults.
    #[track_caller]
    pub fn run_seeds(&self, seeds: impl IntoIterator<Item = u64>) {
        let caller = std::panic::Location::caller();
        if let Err(failed) = self.first_failure(seeds.into_iter().collect()) {
            panic!("{caller}: {failed}");
        }
    }

    /// Runs the scenario with the seeds from 0 to `runs`, or as the environment variables say: with
    /// `WINDLASS_FAULT_RUNS` seeds, or only with the seed `WINDLASS_FAULT_SEED`. The single seed's requests
    /// are printed.
    ///
    /// # Panics
    /// As [`run_seeds`](Self::run_seeds); or a variable is not a number.
    #[track_caller]
    pub fn run_many(&self, runs: u64) {
        match number(SEED) {
            Some(seed) => {
                let run = self.run(seed);
                run.print();
                assert!(run.failure().is_none(), "{run}");
            }
            None => self.run_seeds(0..number(RUNS).unwrap_or(runs)),
        }
    }

    /// Runs all seeds. Returns the failed run with the lowest seed.
    fn first_failure(&self, seeds: Vec<u64>) -> Result<(), Box<ScenarioRun>> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let next = std::sync::atomic::AtomicUsize::new(0);
        let failed = parking_lot::Mutex::new(None::<Box<ScenarioRun>>);
        std::thread::scope(|scope| {
            for _ in 0..threads.min(seeds.len()) {
                scope.spawn(|| {
                    while failed.lock().is_none() {
                        let place = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(seed) = seeds.get(place) else { return };
                        report_progress(place, seeds.len());
                        let run = self.run(*seed);
                        let mut failed = failed.lock();
                        let first = failed.as_ref().is_none_or(|known| known.seed() > run.seed());
                        if run.failure().is_some() && first {
                            *failed = Some(Box::new(run));
                        }
                    }
                });
            }
        });
        failed.into_inner().map_or(Ok(()), Err)
    }
}

/// Says every hundred runs how many there are.
#[expect(clippy::print_stderr, reason = "progress is for the person at the terminal")]
fn report_progress(done: usize, all: usize) {
    if done > 0 && done.is_multiple_of(100) {
        eprintln!("{done} of {all} runs");
    }
}

/// Returns the number in an environment variable.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text}: not a number")))
}

/// The limit until the check succeeds, and the time for which the check must then hold.
const SETTLES: Duration = Duration::from_secs(2 * 3600);
const HOLDS: Duration = Duration::from_secs(120);
