//! Shutting down.

use crate::script::play;
use expect_test::expect;

#[test]
fn ready_keys_are_handed_out_and_adds_are_ignored() {
    expect![[r#"
        add a                       wake a worker
        add b                       wake a worker
        shut down
        add c
        get                         a
        add a
        get                         b
        get                         nothing
        state                       ready 0 delayed 0 in flight 2
        done a
        done b
        state                       ready 0 delayed 0 in flight 0 drained
    "#]]
    .assert_eq(&play("add a; add b; shut down; add c; get; add a; get; get; state; done a; done b; state"));
}

#[test]
fn a_key_added_in_flight_before_the_shut_down_is_handed_out_again() {
    expect![[r#"
        add a                       wake a worker
        get                         a
        add a
        shut down
        state                       ready 0 delayed 0 in flight 1
        done a                      wake a worker
        get                         a
        done a
        get                         nothing
        state                       ready 0 delayed 0 in flight 0 drained
    "#]]
    .assert_eq(&play("add a; get; add a; shut down; state; done a; get; done a; get; state"));
}

#[test]
fn delayed_keys_are_dropped() {
    expect![[r#"
        add a after=1s              wake the timer
        add b after=2s
        shut down
        state                       ready 0 delayed 0 in flight 0 drained
        at 3s
        get                         nothing
        add c after=1s
        state                       ready 0 delayed 0 in flight 0 drained
    "#]]
    .assert_eq(&play("add a after=1s; add b after=2s; shut down; state; at 3s; get; add c after=1s; state"));
}
