//! Priorities and ageing.

use crate::script::{play, play_with};
use expect_test::expect;
use windlass_workqueue::core::Config;

#[test]
fn higher_goes_first_and_equals_keep_their_order() {
    expect![[r#"
        add a p=-100                wake a worker
        add b                       wake a worker
        add c p=7                   wake a worker
        add d p=-100                wake a worker
        add e                       wake a worker
        add f p=7                   wake a worker
        add g p=-3                  wake a worker
        get                         c p=7
        get                         f p=7
        get                         b
        get                         e
        get                         g p=-3
        get                         a p=-100
        get                         d p=-100
        get                         nothing
    "#]]
    .assert_eq(&play(
        "add a p=-100; add b; add c p=7; add d p=-100; add e; add f p=7; add g p=-3
         get; get; get; get; get; get; get; get",
    ));
}

#[test]
fn the_higher_of_two_priorities_wins_and_the_key_goes_to_the_end_of_its_lane() {
    expect![[r#"
        add a p=-100                wake a worker
        add b                       wake a worker
        add c                       wake a worker
        add a                       wake a worker
        add c p=-100
        state                       ready 3 delayed 0 in flight 0
        get                         b
        get                         c
        get                         a
        get                         nothing
    "#]]
    .assert_eq(&play("add a p=-100; add b; add c; add a; add c p=-100; state; get; get; get; get"));
}

#[test]
fn the_least_and_the_greatest_priority_are_valid() {
    expect![[r#"
        add a p=-2147483648         wake a worker
        add b p=2147483647          wake a worker
        add c                       wake a worker
        get                         b p=2147483647
        get                         c
        get                         a p=-2147483648
    "#]]
    .assert_eq(&play("add a p=-2147483648; add b p=2147483647; add c; get; get; get"));
}

#[test]
fn a_delayed_key_keeps_the_highest_priority_it_was_given() {
    expect![[r#"
        add a after=5s p=-100       wake the timer
        add a after=9s p=3
        add b after=5s p=9
        add b p=1                   wake a worker
        get                         b p=9
        at 5s
        get                         a p=3
        get                         nothing
    "#]]
    .assert_eq(&play(
        "add a after=5s p=-100; add a after=9s p=3; add b after=5s p=9; add b p=1; get; at 5s; get; get",
    ));
}

#[test]
fn a_delayed_add_raises_the_priority_of_a_ready_key() {
    expect![[r#"
        add a p=-100                wake a worker
        add b                       wake a worker
        add a p=5 after=1h          wake a worker
        get                         a p=5
        get                         b
        state                       ready 0 delayed 0 in flight 2
    "#]]
    .assert_eq(&play("add a p=-100; add b; add a p=5 after=1h; get; get; state"));
}

#[test]
fn an_add_of_a_key_in_flight_has_its_own_priority() {
    expect![[r#"
        add a p=9                   wake a worker
        get                         a p=9
        add a p=-100
        add a p=-7
        add b p=-50                 wake a worker
        done a                      wake a worker
        get                         a p=-7
        get                         b p=-50
    "#]]
    .assert_eq(&play("add a p=9; get; add a p=-100; add a p=-7; add b p=-50; done a; get; get"));
}

#[test]
fn a_lower_priority_gets_every_nth_turn() {
    let config = Config { ageing: 3, ..Config::default() };
    expect![[r#"
        add l1 p=-100               wake a worker
        add l2 p=-100               wake a worker
        add a                       wake a worker
        add b                       wake a worker
        add c                       wake a worker
        add d                       wake a worker
        add e                       wake a worker
        get                         a
        get                         b
        get                         l1 p=-100
        get                         c
        get                         d
        get                         l2 p=-100
        get                         e
        get                         nothing
    "#]].assert_eq(&play_with(
        &config,
        "add l1 p=-100; add l2 p=-100; add a; add b; add c; add d; add e; get; get; get; get; get; get; get; get",
    ));
}

#[test]
fn lower_priorities_share_these_turns() {
    let config = Config { ageing: 2, ..Config::default() };
    expect![[r#"
        add x1 p=-5                 wake a worker
        add x2 p=-5                 wake a worker
        add y1 p=-9                 wake a worker
        add y2 p=-9                 wake a worker
        add a                       wake a worker
        add b                       wake a worker
        add c                       wake a worker
        add d                       wake a worker
        add e                       wake a worker
        get                         a
        get                         x1 p=-5
        get                         b
        get                         y1 p=-9
        get                         c
        get                         x2 p=-5
        get                         d
        get                         y2 p=-9
        get                         e
    "#]]
    .assert_eq(&play_with(
        &config,
        "add x1 p=-5; add x2 p=-5; add y1 p=-9; add y2 p=-9; add a; add b; add c; add d; add e
         get; get; get; get; get; get; get; get; get",
    ));
}

#[test]
fn many_priorities_come_out_in_order_and_leave_nothing_behind() {
    use windlass_workqueue::AddOptions;
    use windlass_workqueue::core::{Queue, Timestamp};
    let queue = Queue::new(&Config { ageing: 1024, ..Config::default() });
    for round in 0..3 {
        for key in 0..300_i32 {
            let priority = (key * 7919 + round) % 300 - 150;
            let _ = queue.add(key, AddOptions::new().priority(priority), Timestamp::ZERO);
        }
        let mut last = i32::MAX;
        while let Some(item) = queue.get(Timestamp::ZERO) {
            assert!(item.priority() <= last, "{} after {last}", item.priority());
            last = item.priority();
            let _ = queue.done(item, Timestamp::ZERO);
        }
        assert!(queue.is_drained());
        assert_eq!(queue.snapshot(Timestamp::ZERO).depth, [(0, 0)]);
    }
}
