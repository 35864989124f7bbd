//! De-duplication, delays and back-off.

use crate::script::play;
use expect_test::expect;

#[test]
fn a_key_added_twice_is_queued_once() {
    expect![[r#"
        add a                       wake a worker
        add b                       wake a worker
        add a
        state                       ready 2 delayed 0 in flight 0
        get                         a
        get                         b
        get                         nothing
        done a
        done b
        state                       ready 0 delayed 0 in flight 0 drained
    "#]]
    .assert_eq(&play("add a; add b; add a; state; get; get; get; done a; done b; state"));
}

#[test]
fn a_key_added_in_flight_is_queued_when_it_is_done() {
    expect![[r#"
        add a                       wake a worker
        get                         a
        add a
        add a
        get                         nothing
        add b                       wake a worker
        done a                      wake a worker
        get                         b
        get                         a
        done b
        done a
        get                         nothing
    "#]]
    .assert_eq(&play("add a; get; add a; add a; get; add b; done a; get; get; done b; done a; get"));
}

#[test]
fn a_delayed_key_is_handed_out_when_the_delay_ends_and_not_before() {
    expect![[r#"
        add a after=5s              wake the timer
        get                         nothing
        at 4999ms
        get                         nothing
        at 5s
        state                       ready 0 delayed 1 in flight 0 next 5s drained
        get                         a
        state                       ready 0 delayed 0 in flight 1
    "#]]
    .assert_eq(&play("add a after=5s; get; at 4999ms; get; at 5s; state; get; state"));
}

#[test]
fn the_shorter_of_two_delays_wins() {
    expect![[r#"
        add a after=5s              wake the timer
        add a after=9s
        add b after=9s
        add b after=5s
        state                       ready 0 delayed 2 in flight 0 next 5s drained
        at 5s
        get                         a
        get                         b
        get                         nothing
        at 9s
        get                         nothing
    "#]].assert_eq(&play(
        "add a after=5s; add a after=9s; add b after=9s; add b after=5s; state; at 5s; get; get; get; at 9s; get",
    ));
}

#[test]
fn an_immediate_add_removes_the_timer() {
    expect![[r#"
        add a after=10h             wake the timer
        add a                       wake a worker
        state                       ready 1 delayed 0 in flight 0
        get                         a
        done a
        at 10h
        get                         nothing
    "#]]
    .assert_eq(&play("add a after=10h; add a; state; get; done a; at 10h; get"));
}

#[test]
fn a_ready_key_never_becomes_delayed() {
    expect![[r#"
        add a                       wake a worker
        add a after=5s
        state                       ready 1 delayed 0 in flight 0
        get                         a
        at 5s
        done a
        get                         nothing
    "#]]
    .assert_eq(&play("add a; add a after=5s; state; get; at 5s; done a; get"));
}

#[test]
fn a_delay_set_in_flight_outlasts_the_work() {
    expect![[r#"
        add a                       wake a worker
        get                         a
        add a after=5s              wake the timer
        done a
        state                       ready 0 delayed 1 in flight 0 next 5s drained
        get                         nothing
        at 5s
        get                         a
    "#]]
    .assert_eq(&play("add a; get; add a after=5s; done a; state; get; at 5s; get"));
}

#[test]
fn a_delay_that_ends_in_flight_queues_the_key_when_it_is_done() {
    expect![[r#"
        add a                       wake a worker
        get                         a
        add a after=5s              wake the timer
        at 6s
        get                         nothing
        state                       ready 0 delayed 0 in flight 1
        done a                      wake a worker
        get                         a
    "#]]
    .assert_eq(&play("add a; get; add a after=5s; at 6s; get; state; done a; get"));
}

#[test]
fn an_immediate_add_in_flight_removes_a_timer_set_in_flight() {
    expect![[r#"
        add a                       wake a worker
        get                         a
        add a after=10h             wake the timer
        add a
        done a                      wake a worker
        get                         a
        state                       ready 0 delayed 0 in flight 1
        done a
        at 10h
        get                         nothing
    "#]]
    .assert_eq(&play("add a; get; add a after=10h; add a; done a; get; state; done a; at 10h; get"));
}

#[test]
fn a_delayed_add_of_a_dirty_key_changes_nothing() {
    expect![[r#"
        add a                       wake a worker
        get                         a
        add a
        add a after=10h
        state                       ready 0 delayed 0 in flight 1
        done a                      wake a worker
        get                         a
    "#]]
    .assert_eq(&play("add a; get; add a; add a after=10h; state; done a; get"));
}

#[test]
fn keys_that_were_due_before_an_add_go_before_it() {
    expect![[r#"
        add a after=5s              wake the timer
        at 6s
        add b                       wake a worker
        get                         a
        get                         b
    "#]]
    .assert_eq(&play("add a after=5s; at 6s; add b; get; get"));
}

#[test]
fn equal_deadlines_fire_in_the_order_in_which_they_were_set() {
    expect![[r#"
        add c after=5s              wake the timer
        add a after=5s
        add b after=4s              wake the timer
        at 5s
        get                         b
        get                         c
        get                         a
    "#]]
    .assert_eq(&play("add c after=5s; add a after=5s; add b after=4s; at 5s; get; get; get"));
}

#[test]
fn a_failing_key_waits_twice_as_long_each_time() {
    expect![[r#"
        add a limited               wake the timer
        state                       ready 0 delayed 1 in flight 0 next 5ms drained
        at 5ms
        get                         a
        add a limited               wake the timer
        done a
        state                       ready 0 delayed 1 in flight 0 next 15ms drained
        at 15ms
        get                         a
        add a limited               wake the timer
        done a
        state                       ready 0 delayed 1 in flight 0 next 35ms drained
        failures a                  3
        at 35ms
        get                         a
        forget a
        failures a                  0
        add a limited               wake the timer
        state                       ready 0 delayed 1 in flight 1 next 40ms
    "#]].assert_eq(&play(
        "add a limited; state; at 5ms; get; add a limited; done a; state; at 15ms; get; add a limited; done a; state
         failures a; at 35ms; get; forget a; failures a; add a limited; state",
    ));
}

#[test]
fn the_shorter_of_a_delay_and_the_rate_limit_wins() {
    expect![[r#"
        add a limited after=1s      wake the timer
        state                       ready 0 delayed 1 in flight 0 next 5ms drained
        add b limited after=1ms     wake the timer
        state                       ready 0 delayed 2 in flight 0 next 1ms drained
        failures b                  1
    "#]]
    .assert_eq(&play("add a limited after=1s; state; add b limited after=1ms; state; failures b"));
}

#[test]
fn a_failure_waits_at_least_as_long_as_asked() {
    expect![[r#"
        add a limited at-least=1s   wake the timer
        state                       ready 0 delayed 1 in flight 0 next 1s drained
        failures a                  1
        add a after=2s
        state                       ready 0 delayed 1 in flight 0 next 1s drained
        add b limited at-least=1ms  wake the timer
        state                       ready 0 delayed 2 in flight 0 next 5ms drained
        add a                       wake a worker
        state                       ready 1 delayed 1 in flight 0 next 5ms
        add c at-least=1s           wake a worker
        state                       ready 2 delayed 1 in flight 0 next 5ms
    "#]]
    .assert_eq(&play(
        "add a limited at-least=1s; state; failures a; add a after=2s; state; add b limited at-least=1ms; state; add a; state
         add c at-least=1s; state",
    ));
}

#[test]
fn every_rate_limited_add_counts_as_a_failure_even_if_it_merges() {
    expect![[r#"
        add a                       wake a worker
        add a limited
        add a limited
        failures a                  2
        state                       ready 1 delayed 0 in flight 0
    "#]]
    .assert_eq(&play("add a; add a limited; add a limited; failures a; state"));
}

#[test]
fn failures_of_an_idle_key_expire() {
    expect![[r#"
        add a limited               wake the timer
        at 5ms
        get                         a
        done a
        at 2000004ms
        failures a                  1
        at 2000005ms
        failures a                  0
        add a limited               wake the timer
        state                       ready 0 delayed 1 in flight 0 next 2000.01s drained
        failures a                  1
    "#]]
    .assert_eq(&play(
        "add a limited; at 5ms; get; done a; at 2000004ms; failures a; at 2000005ms; failures a; add a limited; state
         failures a",
    ));
}

#[test]
fn failures_of_a_delayed_queued_or_in_flight_key_do_not_expire() {
    expect![[r#"
        add a limited               wake the timer
        add b                       wake a worker
        get                         b
        add b limited
        add c limited after=0s      wake a worker
        at 2h
        failures a                  1
        failures b                  1
        failures c                  1
        done b
        failures b                  1
        get                         c
        get                         a
        add a limited               wake the timer
        failures a                  2
        state                       ready 1 delayed 1 in flight 2 next 7200.01s
    "#]]
    .assert_eq(&play(
        "add a limited; add b; get; add b limited; add c limited after=0s; at 2h; failures a; failures b; failures c
         done b; failures b; get; get; add a limited; failures a; state",
    ));
}
