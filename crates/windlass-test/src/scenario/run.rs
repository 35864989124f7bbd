//! One run of a scenario.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::replica::{Replica, ReplicaEnd};
use super::{HOLDS, SETTLES, Scenario};
use crate::faults::digest;
use crate::{Faults, TestClock, TestCluster};

/// The time at which each run begins: 2026-01-01T00:00:00Z.
const BEGIN: i64 = 1_767_225_600;

/// The longest pause between two checks.
const PAUSE: Duration = Duration::from_secs(5);

/// The longest pause after a step, in milliseconds.
const AFTER_STEP: u64 = 20_000;

/// A run of a [`Scenario`]. `Display` prints the result and the faults.
#[derive(Clone, Debug)]
pub struct ScenarioRun {
    seed: u64,
    failure: Option<String>,
    trace: Vec<String>,
    faults: Vec<String>,
    restarts: u64,
}

impl ScenarioRun {
    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the reason of a failed run.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Returns the faults that struck, with the request of each fault.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Returns how often the operator was started again.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Returns the requests of the operator with the replies, one a line.
    pub fn trace(&self) -> &[String] {
        &self.trace
    }

    /// Returns a digest of the trace: equal runs have equal digests.
    pub fn fingerprint(&self) -> u64 {
        digest(self.trace.join("\n").as_bytes())
    }

    #[expect(clippy::print_stdout, reason = "a developer asked for it by an environment variable")]
    pub(super) fn print(&self) {
        for line in &self.trace {
            println!("{line}");
        }
        println!("{self}fingerprint {:016x}", self.fingerprint());
    }
}

impl fmt::Display for ScenarioRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, restarts, .. } = self;
        match &self.failure {
            Some(failure) => {
                writeln!(f, "seed {seed}: {failure}; run it again with WINDLASS_FAULT_SEED={seed}")?;
            }
            None => writeln!(f, "seed {seed}: ends in the right state")?,
        }
        writeln!(f, "{} requests, {restarts} restarts, {} faults:", self.trace.len(), self.faults.len())?;
        for fault in &self.faults {
            writeln!(f, "  {fault}")?;
        }
        Ok(())
    }
}

impl Scenario {
    /// Runs the scenario with a seed, on a new thread.
    pub fn run(&self, seed: u64) -> ScenarioRun {
        let run = std::thread::scope(|scope| scope.spawn(|| self.run_here(seed)).join());
        run.unwrap_or_else(|panic| {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            let failure = Some(format!("a panic: {message}"));
            ScenarioRun { seed, failure, trace: Vec::new(), faults: Vec::new(), restarts: 0 }
        })
    }

    fn run_here(&self, seed: u64) -> ScenarioRun {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.unwrap_or_else(|error| panic!("no tokio runtime: {error}"));
        runtime.block_on(self.play(seed))
    }

    async fn play(&self, seed: u64) -> ScenarioRun {
        let begin = Timestamp::from_second(BEGIN).unwrap_or_default();
        let cluster = TestCluster::seeded(TestClock::starting_at(begin), seed).await;
        cluster.install_all(&self.crds).await;
        let clock = TestClock::starting_at(begin);
        let faults = Faults::seeded(cluster.client(), seed).clock(clock.clone());
        let replica = Replica { operator: self.operator.clone(), faults: faults.clone(), clock, seed };
        let (stop, stopped) = watch::channel(false);
        let operator = tokio::spawn(replica.run(stopped));

        let mut random = fastrand::Rng::with_seed(!seed);
        for step in &self.steps {
            step(cluster.client()).await;
            sleep(Duration::from_millis(random.u64(..AFTER_STEP))).await;
        }
        faults.clear_faults();
        let result = self.settled(&cluster).await;
        stop.send_replace(true);
        let ReplicaEnd { restarts, stop_error, last_error } =
            operator.await.unwrap_or_else(|error| ReplicaEnd {
                stop_error: Some(format!("the operator panicked: {error}")),
                ..ReplicaEnd::default()
            });
        let failure = result.err().or(stop_error).map(|failure| match last_error {
            Some(error) => format!("{failure}; the operator's last error: {error}"),
            None => failure,
        });
        ScenarioRun { seed, failure, trace: faults.trace(), faults: faults.injected(), restarts }
    }

    /// Waits until the check succeeds, and checks again a while later.
    async fn settled(&self, cluster: &TestCluster) -> Result<(), String> {
        let end = Instant::now() + SETTLES;
        let mut pause = Duration::from_millis(100);
        while let Err(reason) = (self.check)(cluster.client()).await {
            if Instant::now() >= end {
                return Err(format!("not within {SETTLES:?} after the last fault: {reason}"));
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE);
        }
        sleep(HOLDS).await;
        let again = (self.check)(cluster.client()).await;
        again.map_err(|reason| format!("the right state did not last {HOLDS:?}: {reason}"))
    }
}
