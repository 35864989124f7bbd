//! The end.

use crate::script::play;
use expect_test::expect;

#[test]
fn the_rest_is_handed_out_and_nothing_is_added() {
    expect![[r#"
        add a                       wake a worker
        add b                       wake a worker
        shut down
        add c
        get                         a
        add a
        get                         b
        get                         nothing
        state                       ready 0 waiting 0 running 2
        done a
        done b
        state                       ready 0 waiting 0 running 0 drained
    "#]]
    .assert_eq(&play("add a; add b; shut down; add c; get; add a; get; get; state; done a; done b; state"));
}

#[test]
fn what_was_added_during_the_work_before_the_end_still_comes() {
    expect![[r#"
        add a                       wake a worker
        get                         a
        add a
        shut down
        state                       ready 0 waiting 0 running 1
        done a                      wake a worker
        get                         a
        done a
        get                         nothing
        state                       ready 0 waiting 0 running 0 drained
    "#]]
    .assert_eq(&play("add a; get; add a; shut down; state; done a; get; done a; get; state"));
}

#[test]
fn timers_are_dropped() {
    expect![[r#"
        add a after=1s              wake the clock
        add b after=2s
        shut down
        state                       ready 0 waiting 0 running 0 drained
        at 3s
        get                         nothing
        add c after=1s
        state                       ready 0 waiting 0 running 0 drained
    "#]]
    .assert_eq(&play("add a after=1s; add b after=2s; shut down; state; at 3s; get; add c after=1s; state"));
}
