//! A reflector and a server, as scenarios: what the server does, and what comes of it.
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

mod script;

use std::time::Duration;

use expect_test::{Expect, expect};

use self::script::{play, play_with};

fn check(script: &str, expected: &Expect) {
    expected.assert_eq(&play(script));
}

#[test]
fn the_objects_come_as_the_beginning_of_the_watch() {
    check(
        "
        answer 200
        event ADDED a 5
        event ADDED b 3
        bookmark 9 initial-events-end
        event MODIFIED a 10
        event DELETED b 11
        end
        ",
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            event ADDED a 5
                is a@5
            event ADDED b 3
                is b@3
            bookmark 9 initial-events-end
                list ends
                seen 9
            event MODIFIED a 10
                is a@10
                seen 10
            event DELETED b 11
                gone b@11
                seen 11
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=11&timeoutSeconds=300
        "#]],
    );
}

#[test]
fn a_server_that_cannot_list_by_watch_is_asked_for_pages() {
    check(
        r#"
        answer 422
        body {"kind":"Status","code":422,"reason":"Invalid","message":"sendInitialEvents is forbidden"}
        end
        answer 200
        body {"metadata":{"resourceVersion":"7","continue":"more"},"items":[{"metadata":{"name":"a","resourceVersion":"1"}}]}
        end
        answer 200
        body {"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"b","resourceVersion":"2"}}]}
        end
        answer 200
        event ADDED c 8
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 422
            body {"kind":"Status","code":422,"reason":"Invalid","message":"sendInitialEvents is forbidden"}
            end
                no list by watch
                0.0s GET ?limit=500
            answer 200
                list begins
            body {"metadata":{"resourceVersion":"7","continue":"more"},"items":[{"metadata":{"name":"a","resourceVersion":"1"}}]}
                is a@1
            end
                0.0s GET ?limit=500&continue=more
            answer 200
            body {"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"b","resourceVersion":"2"}}]}
                is b@2
            end
                list ends
                seen 7
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=309
            answer 200
            event ADDED c 8
                is c@8
                seen 8
        "#]],
    );
}

#[test]
fn an_old_server_ignores_the_wish_and_is_silent() {
    check(
        "
        answer 200
        event ADDED a 5
        wait 10
        answer 200
        ",
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            event ADDED a 5
                is a@5
            wait 10
                no list by watch
                10.0s GET ?limit=500
            answer 200
                list begins
        "#]],
    );
}

#[test]
fn a_bookmark_that_ends_nothing_shows_an_old_server() {
    check(
        "
        answer 200
        event ADDED a 5
        bookmark 8
        ",
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            event ADDED a 5
                is a@5
            bookmark 8
                no list by watch
                0.0s GET ?limit=500
        "#]],
    );
}

#[test]
fn slow_beginnings_are_waited_for_as_long_as_something_comes() {
    check(
        "
        answer 200
        event ADDED a 5
        wait 9
        event ADDED b 6
        wait 9
        event ADDED c 7
        wait 9
        bookmark 9 initial-events-end
        ",
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            event ADDED a 5
                is a@5
            wait 9
            event ADDED b 6
                is b@6
            wait 9
            event ADDED c 7
                is c@7
            wait 9
            bookmark 9 initial-events-end
                list ends
                seen 9
        "#]],
    );
}

#[test]
fn a_dropped_watch_goes_on_where_it_was() {
    check(
        r#"
        answer 200
        bookmark 9 initial-events-end
        event ADDED a 12
        wait 2
        break connection reset
        answer 200
        body {"metadata":{"resourceVersion":"12","continue":"more"},"items":[{"metadata":{"name":"a","resourceVersion":"12"}}]}
        end
        answer 200
        event MODIFIED a 13
        end
        answer 200
        end
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 9 initial-events-end
                list ends
                seen 9
            event ADDED a 12
                is a@12
                seen 12
            wait 2
            break connection reset
                2.0s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"12","continue":"more"},"items":[{"metadata":{"name":"a","resourceVersion":"12"}}]}
            end
                2.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=12&timeoutSeconds=302
            answer 200
            event MODIFIED a 13
                is a@13
                seen 13
            end
                2.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=13&timeoutSeconds=309
            answer 200
            end
                failed, again in 0.9s: pods: the watch ended right after it began
        "#]],
    );
}

#[test]
fn expired_in_the_stream_and_at_the_door() {
    check(
        r#"
        answer 200
        bookmark 9 initial-events-end
        line {"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}}
        answer 200
        event ADDED a 20
        bookmark 21 initial-events-end
        end
        answer 410
        end
        wait 2
        answer 200
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 9 initial-events-end
                list ends
                seen 9
            line {"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}}
                list again: the server no longer has the resourceVersion (410)
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=300
            answer 200
                list begins
            event ADDED a 20
                is a@20
            bookmark 21 initial-events-end
                list ends
                seen 21
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=21&timeoutSeconds=302
            answer 410
            end
                list again: the server no longer has the resourceVersion (410)
            wait 2
                1.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
            answer 200
                list begins
        "#]],
    );
}

#[test]
fn an_expired_page_makes_the_list_begin_again_without_pages() {
    let config = |config: &mut windlass_cache::ReflectorConfig| config.watch_list = false;
    let told = play_with(
        config,
        r#"
        answer 200
        body {"metadata":{"resourceVersion":"7","continue":"more"},"items":[]}
        end
        answer 410
        end
        answer 200
        body {"metadata":{"resourceVersion":"9"},"items":[]}
        end
        "#,
    );
    expect![[r#"
            0.0s GET ?limit=500
        answer 200
            list begins
        body {"metadata":{"resourceVersion":"7","continue":"more"},"items":[]}
        end
            0.0s GET ?limit=500&continue=more
        answer 410
        end
            list again: the server no longer has the resourceVersion (410)
            0.0s GET ?
        answer 200
            list begins
        body {"metadata":{"resourceVersion":"9"},"items":[]}
        end
            list ends
            seen 9
            0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=9&timeoutSeconds=309
    "#]]
    .assert_eq(&told);
}

#[test]
fn bookmarks_alone_move_the_watch_on_and_silence_then_ends_it() {
    check(
        "
        answer 200
        bookmark 9 initial-events-end
        wait 60
        bookmark 30
        wait 60
        bookmark 40
        wait 150
        ",
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 9 initial-events-end
                list ends
                seen 9
            wait 60
            bookmark 30
                seen 30
            wait 60
            bookmark 40
                seen 40
            wait 150
                failed, again in 0.8s: pods: the watch was silent for too long and was cancelled
        "#]],
    );
}

#[test]
fn a_server_that_was_replaced_is_listed_again() {
    check(
        r#"
        answer 200
        bookmark 900 initial-events-end
        end
        answer 200
        bookmark 40
        answer 200
        body {"metadata":{"resourceVersion":"40"},"items":[]}
        end
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 900 initial-events-end
                list ends
                seen 900
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=300
            answer 200
            bookmark 40
                0.0s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"40"},"items":[]}
            end
                list again: the server's resourceVersion went back: it was replaced or restored
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=309
        "#]],
    );
}

#[test]
fn a_server_that_starts_anew_while_it_cannot_be_reached_is_listed_again() {
    check(
        r#"
        answer 200
        event ADDED a 5
        bookmark 900 initial-events-end
        end
        break connection refused
        wait 2
        break connection refused
        wait 4
        answer 200
        body {"metadata":{"resourceVersion":"26"},"items":[{"metadata":{"name":"b","resourceVersion":"20"}}]}
        end
        answer 200
        event ADDED b 20
        bookmark 26 initial-events-end
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            event ADDED a 5
                is a@5
            bookmark 900 initial-events-end
                list ends
                seen 900
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=300
            break connection refused
                failed, again in 0.9s: pods: the server cannot be reached: connection refused
            wait 2
                0.9s GET ?limit=1
            break connection refused
                failed, again in 1.7s: pods: the server cannot be reached: connection refused
            wait 4
                3.7s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"26"},"items":[{"metadata":{"name":"b","resourceVersion":"20"}}]}
            end
                list again: the server's resourceVersion went back: it was replaced or restored
                6.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=319
            answer 200
                list begins
            event ADDED b 20
                is b@20
            bookmark 26 initial-events-end
                list ends
                recovered
                seen 26
        "#]],
    );
}

#[test]
fn a_server_that_starts_anew_behind_a_proxy_is_listed_again() {
    check(
        r#"
        answer 200
        bookmark 900 initial-events-end
        end
        answer 502
        end
        wait 2
        answer 200
        body {"metadata":{"resourceVersion":"26"},"items":[]}
        end
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 900 initial-events-end
                list ends
                seen 900
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=300
            answer 502
            end
                failed, again in 0.9s: pods: the server responded 502
            wait 2
                0.9s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"26"},"items":[]}
            end
                list again: the server's resourceVersion went back: it was replaced or restored
                2.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
        "#]],
    );
}

#[test]
fn a_kind_that_was_deleted_and_is_there_again_is_listed_again() {
    check(
        r#"
        answer 200
        bookmark 900 initial-events-end
        end
        break connection refused
        wait 2
        answer 404
        end
        wait 4
        answer 200
        event ADDED a 7
        bookmark 901 initial-events-end
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 900 initial-events-end
                list ends
                seen 900
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=300
            break connection refused
                failed, again in 0.9s: pods: the server cannot be reached: connection refused
            wait 2
                0.9s GET ?limit=1
            answer 404
            end
                failed, again in 1.7s: pods: the server does not have this kind (404); waiting until its CRD is installed
                list again: the server no longer has the kind (404)
            wait 4
                3.7s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=309
            answer 200
                list begins
            event ADDED a 7
                is a@7
            bookmark 901 initial-events-end
                list ends
                recovered
                seen 901
        "#]],
    );
}

#[test]
fn the_comparison_after_a_failed_connection_is_repeated_until_it_is_answered() {
    check(
        r#"
        answer 200
        bookmark 900 initial-events-end
        wait 60
        break connection reset
        answer 503
        end
        wait 2
        answer 200
        piece {"metadata":{"resourceVersion":"9
        break connection reset
        wait 4
        answer 200
        wait 10
        wait 8
        answer 200
        body {"metadata":{"resourceVersion":"900"},"items":[]}
        end
        answer 200
        event ADDED a 901
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 900 initial-events-end
                list ends
                seen 900
            wait 60
            break connection reset
                60.0s GET ?limit=1
            answer 503
            end
                failed, again in 0.9s: pods: the server responded 503
            wait 2
                60.9s GET ?limit=1
            answer 200
            piece {"metadata":{"resourceVersion":"9
            break connection reset
                failed, again in 1.7s: pods: the server cannot be reached: connection reset
            wait 4
                63.7s GET ?limit=1
            answer 200
            wait 10
                failed, again in 5.3s: pods: the list was silent for too long and was cancelled
            wait 8
                81.3s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"900"},"items":[]}
            end
                84.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=321
            answer 200
            event ADDED a 901
                is a@901
                recovered
                seen 901
        "#]],
    );
}

#[test]
fn without_permission_to_list_a_watch_resumes_without_a_comparison() {
    check(
        r#"
        answer 200
        bookmark 900 initial-events-end
        break connection reset
        answer 403
        end
        answer 200
        bookmark 901
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 900 initial-events-end
                list ends
                seen 900
            break connection reset
                0.0s GET ?limit=1
            answer 403
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=302
            answer 200
            bookmark 901
                seen 901
        "#]],
    );
}

#[test]
fn a_replica_that_lags_does_not_lead_to_a_list() {
    check(
        r#"
        answer 200
        bookmark 900 initial-events-end
        end
        answer 200
        bookmark 890
        answer 200
        body {"metadata":{"resourceVersion":"910"},"items":[]}
        end
        answer 200
        bookmark 891
        event ADDED a 905
        end
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 900 initial-events-end
                list ends
                seen 900
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=300
            answer 200
            bookmark 890
                0.0s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"910"},"items":[]}
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=309
            answer 200
            bookmark 891
            event ADDED a 905
                is a@905
                seen 905
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=905&timeoutSeconds=302
        "#]],
    );
}

#[test]
fn an_event_older_than_one_before_it_leads_to_a_list() {
    check(
        r#"
        answer 200
        bookmark 900 initial-events-end
        event ADDED a 910
        event ADDED b 905
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 900 initial-events-end
                list ends
                seen 900
            event ADDED a 910
                is a@910
                seen 910
            event ADDED b 905
                list again: the server's resourceVersion went back: it was replaced or restored
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=300
        "#]],
    );
}

#[test]
fn a_silent_beginning_is_tried_again_after_ten_minutes_and_a_refused_one_is_not() {
    let expired = r#"line {"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
    let list = r#"
        answer 200
        body {"metadata":{"resourceVersion":"7"},"items":[]}
        end
        answer 200
        "#;
    let later = "wait 300
        end
        answer 200
        wait 300
        ";
    let silent = format!("answer 200\nwait 10\n{list}{expired}\n{list}{later}\n{expired}");
    check(
        &silent,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            wait 10
                no list by watch
                10.0s GET ?limit=500
            answer 200
                list begins
            body {"metadata":{"resourceVersion":"7"},"items":[]}
            end
                list ends
                seen 7
                10.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=302
            answer 200
            line {"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}
                list again: the server no longer has the resourceVersion (410)
                10.0s GET ?limit=500
            answer 200
                list begins
            body {"metadata":{"resourceVersion":"7"},"items":[]}
            end
                list ends
                seen 7
                10.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=302
            answer 200
            wait 300
            end
                310.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=309
            answer 200
            wait 300
            line {"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}
                list again: the server no longer has the resourceVersion (410)
                610.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=319
        "#]],
    );
    let refused = format!("answer 400\nend\n{list}{later}\n{expired}\n");
    check(
        &refused,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 400
            end
                no list by watch
                0.0s GET ?limit=500
            answer 200
                list begins
            body {"metadata":{"resourceVersion":"7"},"items":[]}
            end
                list ends
                seen 7
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=302
            answer 200
            wait 300
            end
                300.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=309
            answer 200
            wait 300
            line {"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}
                list again: the server no longer has the resourceVersion (410)
                600.0s GET ?limit=500
        "#]],
    );
}

#[test]
fn a_server_that_stays_behind_is_listed_again() {
    check(
        r#"
        answer 200
        bookmark 900 initial-events-end
        end
        answer 504
        body {"code":504,"reason":"Timeout","message":"Too large resource version: 900, current: 40","details":{"retryAfterSeconds":1}}
        end
        wait 2
        answer 200
        body {"metadata":{"resourceVersion":"901"},"items":[]}
        end
        answer 504
        body {"code":504,"message":"Too large resource version: 900, current: 40"}
        end
        wait 4
        answer 200
        body {"metadata":{"resourceVersion":"902"},"items":[]}
        end
        answer 504
        body {"code":504,"message":"Too large resource version: 900, current: 40"}
        end
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 900 initial-events-end
                list ends
                seen 900
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=300
            answer 504
            body {"code":504,"reason":"Timeout","message":"Too large resource version: 900, current: 40","details":{"retryAfterSeconds":1}}
            end
                failed, again in 1.0s: pods: the server responded 504 Timeout: Too large resource version: 900, current: 40
            wait 2
                1.0s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"901"},"items":[]}
            end
                2.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=302
            answer 504
            body {"code":504,"message":"Too large resource version: 900, current: 40"}
            end
                failed, again in 2.1s: pods: the server responded 504: Too large resource version: 900, current: 40
            wait 4
                4.1s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"902"},"items":[]}
            end
                6.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=310
            answer 504
            body {"code":504,"message":"Too large resource version: 900, current: 40"}
            end
                list again: the server stays behind the resourceVersion: it was replaced or restored
                6.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=321
        "#]],
    );
}

#[test]
fn a_kind_that_is_not_there_yet_is_waited_for() {
    check(
        r#"
        answer 404
        body 404 page not found
        end
        wait 2
        answer 404
        end
        wait 10
        answer 200
        bookmark 9 initial-events-end
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 404
            body 404 page not found
            end
                failed, again in 0.8s: pods: the server does not have this kind (404); waiting until its CRD is installed
            wait 2
                0.8s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
            answer 404
            end
                failed, again in 2.1s: pods: the server does not have this kind (404); waiting until its CRD is installed
            wait 10
                4.1s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
            answer 200
                list begins
            bookmark 9 initial-events-end
                list ends
                recovered
                seen 9
        "#]],
    );
}

#[test]
fn retry_after_is_obeyed_and_forbidden_says_what_to_do() {
    check(
        r#"
        answer 429 retry-after 17
        end
        wait 16
        wait 1
        answer 403
        body {"code":403,"reason":"Forbidden","message":"pods is forbidden: User \"x\" cannot list resource \"pods\""}
        end
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 429 retry-after 17
            end
                failed, again in 17.0s: pods: the server responded 429
            wait 16
            wait 1
                17.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
            answer 403
            body {"code":403,"reason":"Forbidden","message":"pods is forbidden: User \"x\" cannot list resource \"pods\""}
            end
                failed, again in 2.1s: pods: forbidden (403): pods is forbidden: User "x" cannot list resource "pods"; grant the verbs list and watch on this resource
        "#]],
    );
}

#[test]
fn a_retry_after_beyond_reason_is_cut_to_two_minutes() {
    check(
        r#"
        answer 429 retry-after 18446744073709551615
        end
        wait 120
        answer 503
        body {"code":503,"details":{"retryAfterSeconds":18446744073709551615}}
        end
        wait 120
        answer 429 retry-after 4000000000
        end
        wait 120
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 429 retry-after 18446744073709551615
            end
                failed, again in 120.0s: pods: the server responded 429
            wait 120
                120.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
            answer 503
            body {"code":503,"details":{"retryAfterSeconds":18446744073709551615}}
            end
                failed, again in 120.0s: pods: the server responded 503
            wait 120
                240.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
            answer 429 retry-after 4000000000
            end
                failed, again in 120.0s: pods: the server responded 429
            wait 120
                360.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=319
        "#]],
    );
}

#[test]
fn times_beyond_reason_do_not_overflow() {
    let config = |config: &mut windlass_cache::ReflectorConfig| {
        config.watch_timeout = Duration::MAX;
        config.response_timeout = Duration::MAX;
        config.quiet_timeout = Duration::MAX;
        config.idle_timeout = Duration::MAX;
        config.backoff.initial = Duration::MAX;
        config.backoff.max = Duration::MAX;
    };
    let told = play_with(
        config,
        "
        break connection refused
        wait 50000000
        answer 200
        bookmark 9 initial-events-end
        bookmark 10
        ",
    );
    expect![[r#"
            0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=33436446
        break connection refused
            failed, again in 31692081.0s: pods: the server cannot be reached: connection refused
        wait 50000000
            31692081.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=31834832
        answer 200
            list begins
        bookmark 9 initial-events-end
            list ends
            recovered
            seen 9
        bookmark 10
            seen 10
    "#]].assert_eq(&told);
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    check(
        "
        wait 60
        wait 2
        answer 200
        ",
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            wait 60
                failed, again in 0.8s: pods: the server did not respond in time
            wait 2
                60.8s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
            answer 200
                list begins
        "#]],
    );
}

#[test]
fn one_bad_object_does_not_stop_the_watch() {
    check(
        r#"
        answer 200
        line {"type":"ADDED","object":{"metadata":{"labels":{"x":1},"name":"typed","namespace":"n"}}}
        line {"type":"ADDED","object":{"metadata":{}}}
        line {"type":"ADDED","object":
        event ADDED a 5
        bookmark 9 initial-events-end
        line nonsense
        event ADDED b 10
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            line {"type":"ADDED","object":{"metadata":{"labels":{"x":1},"name":"typed","namespace":"n"}}}
                unreadable, not gone: Some(n/typed)
                skipped: pods: an object could not be read (n/typed): a label's value is not a string
            line {"type":"ADDED","object":{"metadata":{}}}
                unreadable, not gone: None
                skipped: pods: an object could not be read: metadata.name is not set
            line {"type":"ADDED","object":
            event ADDED a 5
                unreadable, not gone: None
                skipped: pods: an object could not be read: not JSON: expected an event that ends with its line at byte 0
                is a@5
            bookmark 9 initial-events-end
                list ends
                seen 9
            line nonsense
                skipped: pods: an object could not be read: not JSON: expected an event at byte 0
            event ADDED b 10
                is b@10
                seen 10
        "#]],
    );
}

#[test]
fn a_body_that_breaks_off_within_an_event_twice_is_listed_again() {
    check(
        r#"
        answer 200
        bookmark 9 initial-events-end
        event ADDED a 10
        piece {"type":"ADDED","obj
        end
        wait 2
        answer 200
        body {"metadata":{"resourceVersion":"10"},"items":[]}
        end
        answer 200
        piece {"type":"ADDED","obj
        end
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 9 initial-events-end
                list ends
                seen 9
            event ADDED a 10
                is a@10
                seen 10
            piece {"type":"ADDED","obj
            end
                failed, again in 0.8s: pods: the response ended before it was complete
            wait 2
                0.8s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"10"},"items":[]}
            end
                2.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds=309
            answer 200
            piece {"type":"ADDED","obj
            end
                list again: the watch broke off within an event twice
                2.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
        "#]],
    );
}
