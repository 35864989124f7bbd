//! A scenario finds an operator that does not reach the right state.

use std::time::Duration;

use windlass_runtime::{Manager, RunContext, Runnable};
use windlass_test::Scenario;

#[test]
fn an_end_state_that_is_wrong_is_a_failure_with_its_seed() {
    let scenario =
        Scenario::new(Manager::new).check(|_| async { Err("the operator has no controller".to_owned()) });
    let run = scenario.run(3);
    assert_eq!(run.failure(), Some("not within 7200s after the last fault: the operator has no controller"));
    assert!(run.to_string().contains("WINDLASS_FAULT_SEED=3"), "{run}");
}

#[test]
#[should_panic(expected = "seed 5: a panic: a step failed")]
fn a_step_that_panics_is_a_failure_with_its_seed() {
    Scenario::new(Manager::new).step(|_| async { panic!("a step failed") }).run_seeds([5]);
}

#[test]
fn a_failure_has_the_last_error_of_the_operator() {
    let broken = async |_: RunContext| {
        tokio::time::sleep(Duration::from_secs(1800)).await;
        Err::<(), _>("no disk")
    };
    let operator = move |client| Manager::new(client).runnable(Runnable::new("broken", broken));
    let scenario = Scenario::new(operator).check(|_| async { Err("there is no pod".to_owned()) });
    let failure = scenario.run(3).failure().map(str::to_owned).unwrap_or_default();
    let (reason, error) = failure.split_once("; the operator's last error: ").expect("the last error");
    assert!(reason.ends_with("after the last fault: there is no pod"), "{failure}");
    assert!(error.contains("broken") && error.contains("no disk"), "{failure}");
}
