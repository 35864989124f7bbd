//! A scenario finds an operator that does not reach the right state.

use windlass_runtime::Manager;
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
