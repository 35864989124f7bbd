//! Transcripts of a reflector and a scripted server.

mod script;

use std::time::Duration;

use expect_test::{Expect, expect};

use self::script::{play, play_with};

fn check(script: &str, expected: &Expect) {
    expected.assert_eq(&play(script));
}

#[test]
fn a_watch_can_begin_with_the_objects() {
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
                upsert a@5
            event ADDED b 3
                upsert b@3
            bookmark 9 initial-events-end
                list ends
                progress 9
            event MODIFIED a 10
                upsert a@10
                progress 10
            event DELETED b 11
                delete b@11
                progress 11
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=11&timeoutSeconds=300
        "#]],
    );
}

#[test]
fn without_initial_events_the_collection_is_listed_in_pages() {
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
                watch list unsupported
                0.0s GET ?limit=500
            answer 200
                list begins
            body {"metadata":{"resourceVersion":"7","continue":"more"},"items":[{"metadata":{"name":"a","resourceVersion":"1"}}]}
                upsert a@1
            end
                0.0s GET ?limit=500&continue=more
            answer 200
            body {"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"b","resourceVersion":"2"}}]}
                upsert b@2
            end
                list ends
                progress 7
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=309
            answer 200
            event ADDED c 8
                upsert c@8
                progress 8
        "#]],
    );
}

#[test]
fn a_list_that_the_driver_asks_for_replaces_the_watch() {
    check(
        "
        list-again
        answer 200
        bookmark 9 initial-events-end
        list-again
        answer 200
        bookmark 9 initial-events-end
        break reset
        list-again
        wait 2
        ",
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            list-again
            answer 200
                list begins
            bookmark 9 initial-events-end
                list ends
                progress 9
            list-again
                relisting: the test asks for it
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=300
            answer 200
                list begins
            bookmark 9 initial-events-end
                list ends
                progress 9
            break reset
                0.0s GET ?limit=1
            list-again
                relisting: the test asks for it
            wait 2
                0.9s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=309
        "#]],
    );
}

#[test]
fn silence_at_the_beginning_of_a_watch_leads_to_a_list() {
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
                upsert a@5
            wait 10
                watch list unsupported
                10.0s GET ?limit=500
            answer 200
                list begins
        "#]],
    );
}

#[test]
fn an_ordinary_bookmark_at_the_beginning_of_a_watch_leads_to_a_list() {
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
                upsert a@5
            bookmark 8
                watch list unsupported
                0.0s GET ?limit=500
        "#]],
    );
}

#[test]
fn slow_initial_events_are_awaited() {
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
                upsert a@5
            wait 9
            event ADDED b 6
                upsert b@6
            wait 9
            event ADDED c 7
                upsert c@7
            wait 9
            bookmark 9 initial-events-end
                list ends
                progress 9
        "#]],
    );
}

#[test]
fn a_dropped_watch_resumes_without_a_list() {
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
                progress 9
            event ADDED a 12
                upsert a@12
                progress 12
            wait 2
            break connection reset
                2.0s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"12","continue":"more"},"items":[{"metadata":{"name":"a","resourceVersion":"12"}}]}
            end
                2.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=12&timeoutSeconds=302
            answer 200
            event MODIFIED a 13
                upsert a@13
                progress 13
            end
                2.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=13&timeoutSeconds=309
            answer 200
            end
                failed, retry in 0.9s: pods: the watch ended right after it began
        "#]],
    );
}

/// A later watch from the same resource version would fail, too.
#[test]
fn a_deletion_that_the_server_cannot_show_leads_to_a_list() {
    check(
        r#"
        answer 200
        bookmark 9 initial-events-end
        line {"type":"ERROR","object":{"kind":"Status","code":500,"reason":"StorageReadError","message":"conversion failed"}}
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 9 initial-events-end
                list ends
                progress 9
            line {"type":"ERROR","object":{"kind":"Status","code":500,"reason":"StorageReadError","message":"conversion failed"}}
                relisting: the server cannot show the deletion of an unreadable object
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=300
        "#]],
    );
}

#[test]
fn an_expired_resource_version_leads_to_a_list() {
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
                progress 9
            line {"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}}
                relisting: the server no longer has the resourceVersion (410)
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=300
            answer 200
                list begins
            event ADDED a 20
                upsert a@20
            bookmark 21 initial-events-end
                list ends
                progress 21
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=21&timeoutSeconds=302
            answer 410
            end
                relisting: the server no longer has the resourceVersion (410)
            wait 2
                0.9s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=309
            answer 200
                list begins
        "#]],
    );
}

#[test]
fn an_expired_page_leads_to_an_unpaged_list() {
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
            relisting: the server no longer has the resourceVersion (410)
            0.0s GET ?
        answer 200
            list begins
        body {"metadata":{"resourceVersion":"9"},"items":[]}
        end
            list ends
            progress 9
            0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=9&timeoutSeconds=309
    "#]]
    .assert_eq(&told);
}

/// The server sends no bookmarks, and nothing changes: the kind of an extension server, for instance.
#[test]
fn a_quiet_watch_works_again_after_ten_seconds() {
    check(
        r#"
        answer 200
        bookmark 9 initial-events-end
        end
        answer 500
        end
        wait 2
        answer 200
        wait 9
        wait 2
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
                progress 9
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=9&timeoutSeconds=300
            answer 500
            end
                failed, retry in 0.9s: pods: the server responded 500
            wait 2
                0.9s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=9&timeoutSeconds=309
            answer 200
            wait 9
            wait 2
                recovered
            end
                13.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=9&timeoutSeconds=302
            answer 200
            end
                failed, retry in 1.0s: pods: the watch ended right after it began
        "#]],
    );
}

/// A server that ends each watch after some seconds is a failure only if the watch could not begin.
#[test]
fn a_watch_that_ends_early_does_not_work_again() {
    check(
        r#"
        answer 200
        bookmark 9 initial-events-end
        end
        answer 500
        end
        wait 2
        answer 200
        wait 9
        end
        answer 500
        end
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 200
                list begins
            bookmark 9 initial-events-end
                list ends
                progress 9
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=9&timeoutSeconds=300
            answer 500
            end
                failed, retry in 0.9s: pods: the server responded 500
            wait 2
                0.9s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=9&timeoutSeconds=309
            answer 200
            wait 9
            end
                11.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=9&timeoutSeconds=302
            answer 500
            end
                failed, retry in 2.1s: pods: the server responded 500
        "#]],
    );
}

#[test]
fn a_watch_that_is_silent_after_bookmarks_is_cancelled() {
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
                progress 9
            wait 60
            bookmark 30
                progress 30
            wait 60
            bookmark 40
                progress 40
            wait 150
                failed, retry in 0.8s: pods: the watch was silent for too long and was cancelled
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
                progress 900
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=300
            answer 200
            bookmark 40
                0.0s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"40"},"items":[]}
            end
                relisting: the server's resourceVersion went back: it was replaced or restored
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=309
        "#]],
    );
}

#[test]
fn a_server_that_restarts_without_its_data_is_listed_again() {
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
                upsert a@5
            bookmark 900 initial-events-end
                list ends
                progress 900
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=300
            break connection refused
                failed, retry in 0.9s: pods: the server cannot be reached: connection refused
            wait 2
                0.9s GET ?limit=1
            break connection refused
                failed, retry in 1.7s: pods: the server cannot be reached: connection refused
            wait 4
                3.7s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"26"},"items":[{"metadata":{"name":"b","resourceVersion":"20"}}]}
            end
                relisting: the server's resourceVersion went back: it was replaced or restored
                6.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=319
            answer 200
                list begins
            event ADDED b 20
                upsert b@20
            bookmark 26 initial-events-end
                list ends
                recovered
                progress 26
        "#]],
    );
}

#[test]
fn a_server_that_restarts_without_its_data_behind_a_proxy_is_listed_again() {
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
                progress 900
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=300
            answer 502
            end
                failed, retry in 0.9s: pods: the server responded 502
            wait 2
                0.9s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"26"},"items":[]}
            end
                relisting: the server's resourceVersion went back: it was replaced or restored
                2.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
        "#]],
    );
}

#[test]
fn a_kind_that_was_deleted_and_created_again_is_listed_again() {
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
                progress 900
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=300
            break connection refused
                failed, retry in 0.9s: pods: the server cannot be reached: connection refused
            wait 2
                0.9s GET ?limit=1
            answer 404
            end
                failed, retry in 1.7s: pods: the server does not have this kind (404); waiting until its CRD is installed
                relisting: the server no longer has the kind (404)
            wait 4
                3.7s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=309
            answer 200
                list begins
            event ADDED a 7
                upsert a@7
            bookmark 901 initial-events-end
                list ends
                recovered
                progress 901
        "#]],
    );
}

#[test]
fn the_comparison_after_a_failed_connection_is_retried() {
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
                progress 900
            wait 60
            break connection reset
                60.0s GET ?limit=1
            answer 503
            end
                failed, retry in 0.9s: pods: the server responded 503
            wait 2
                60.9s GET ?limit=1
            answer 200
            piece {"metadata":{"resourceVersion":"9
            break connection reset
                failed, retry in 1.7s: pods: the server cannot be reached: connection reset
            wait 4
                63.7s GET ?limit=1
            answer 200
            wait 10
                failed, retry in 5.3s: pods: the list was silent for too long and was cancelled
            wait 8
                81.3s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"900"},"items":[]}
            end
                84.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=321
            answer 200
            event ADDED a 901
                upsert a@901
                recovered
                progress 901
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
                progress 900
            break connection reset
                0.0s GET ?limit=1
            answer 403
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=302
            answer 200
            bookmark 901
                progress 901
        "#]],
    );
}

#[test]
fn a_lagging_replica_does_not_lead_to_a_list() {
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
                progress 900
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
                upsert a@905
                progress 905
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
                progress 900
            event ADDED a 910
                upsert a@910
                progress 910
            event ADDED b 905
                relisting: the server's resourceVersion went back: it was replaced or restored
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=300
        "#]],
    );
}

#[test]
fn initial_events_are_requested_again_ten_minutes_after_silence_but_not_after_a_refusal() {
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
                watch list unsupported
                10.0s GET ?limit=500
            answer 200
                list begins
            body {"metadata":{"resourceVersion":"7"},"items":[]}
            end
                list ends
                progress 7
                10.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=302
            answer 200
            line {"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}
                relisting: the server no longer has the resourceVersion (410)
                10.0s GET ?limit=500
            answer 200
                list begins
            body {"metadata":{"resourceVersion":"7"},"items":[]}
            end
                list ends
                progress 7
                10.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=302
            answer 200
            wait 300
            end
                310.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=309
            answer 200
            wait 300
            line {"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}
                relisting: the server no longer has the resourceVersion (410)
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
                watch list unsupported
                0.0s GET ?limit=500
            answer 200
                list begins
            body {"metadata":{"resourceVersion":"7"},"items":[]}
            end
                list ends
                progress 7
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=302
            answer 200
            wait 300
            end
                300.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=309
            answer 200
            wait 300
            line {"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}
                relisting: the server no longer has the resourceVersion (410)
                600.0s GET ?limit=500
        "#]],
    );
}

/// Each list succeeds, and each watch has expired: a list of a large collection must not be sent every second.
#[test]
fn lists_become_rare_while_each_watch_has_expired() {
    let round =
        |wait: u32| format!("answer 200\nbookmark 7 initial-events-end\nend\nanswer 410\nend\nwait {wait}\n");
    // Each wait is as long as the longest pause before the next list.
    let waits = [2, 4, 7, 13, 26, 52];
    let log = play(&[0].iter().chain(&waits).map(|&wait| round(wait)).collect::<String>());
    let lists = log.lines().filter(|line| line.contains("sendInitialEvents"));
    let mut lists = lists.map(|line| line.trim().split_once('s').expect("a time").0.parse::<f64>());
    assert_eq!(lists.next(), Some(Ok(0.0)));
    assert_eq!(lists.next(), Some(Ok(0.0)), "the first list after the expiry is sent at once");
    let (mut expired, mut shortest) = (0.0, 0.7);
    for wait in waits {
        let pause = lists.next().expect("a list").expect("seconds") - expired;
        assert!(pause >= shortest, "{pause} s, and not {shortest} s or more");
        (expired, shortest) = (expired + f64::from(wait), shortest * 2.0);
    }
}

/// A list takes 40 s: longer than the longest pause before a list.
#[test]
fn slow_lists_become_rare_while_each_watch_has_expired() {
    let objects = r#"line {"type":"ADDED","object":{"metadata":{"name":"a"}}}
        wait 8
    "#;
    let list = format!("answer 200\n{}bookmark 7 initial-events-end\nend\n", objects.repeat(5));
    // Each wait is as long as the longest pause before the next list.
    let waits = [0, 2, 4, 7, 13, 26];
    let log = play(&waits.map(|wait| format!("{list}answer 410\nend\nwait {wait}\n")).concat());
    let lists = log.lines().filter(|line| line.contains("sendInitialEvents"));
    let mut lists = lists.map(|line| line.trim().split_once('s').expect("a time").0.parse::<f64>());
    assert_eq!(lists.next(), Some(Ok(0.0)));
    assert_eq!(lists.next(), Some(Ok(40.0)), "the first list after the expiry is sent at once");
    let (mut expired, mut shortest) = (80.0, 0.7);
    for wait in &waits[1..] {
        let pause = lists.next().expect("a list").expect("seconds") - expired;
        assert!(pause >= shortest, "{pause} s, and not {shortest} s or more");
        (expired, shortest) = (expired + f64::from(*wait) + 40.0, shortest * 2.0);
    }
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
                progress 900
            end
                0.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=300
            answer 504
            body {"code":504,"reason":"Timeout","message":"Too large resource version: 900, current: 40","details":{"retryAfterSeconds":1}}
            end
                failed, retry in 1.0s: pods: the server responded 504 Timeout: Too large resource version: 900, current: 40
            wait 2
                1.0s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"901"},"items":[]}
            end
                2.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=302
            answer 504
            body {"code":504,"message":"Too large resource version: 900, current: 40"}
            end
                failed, retry in 2.1s: pods: the server responded 504: Too large resource version: 900, current: 40
            wait 4
                4.1s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"902"},"items":[]}
            end
                6.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=900&timeoutSeconds=310
            answer 504
            body {"code":504,"message":"Too large resource version: 900, current: 40"}
            end
                relisting: the server stays behind the resourceVersion: it was replaced or restored
                6.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=321
        "#]],
    );
}

#[test]
fn a_missing_kind_is_retried_often() {
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
                failed, retry in 0.8s: pods: the server does not have this kind (404); waiting until its CRD is installed
            wait 2
                0.8s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
            answer 404
            end
                failed, retry in 2.1s: pods: the server does not have this kind (404); waiting until its CRD is installed
            wait 10
                4.1s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
            answer 200
                list begins
            bookmark 9 initial-events-end
                list ends
                recovered
                progress 9
        "#]],
    );
}

#[test]
fn retry_after_is_respected_and_forbidden_says_what_to_do() {
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
                failed, retry in 17.0s: pods: the server responded 429
            wait 16
            wait 1
                17.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
            answer 403
            body {"code":403,"reason":"Forbidden","message":"pods is forbidden: User \"x\" cannot list resource \"pods\""}
            end
                failed, retry in 2.1s: pods: forbidden (403): pods is forbidden: User "x" cannot list resource "pods"; grant the verbs list and watch on this resource
        "#]],
    );
}

#[test]
fn retry_after_is_limited_to_two_minutes() {
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
        answer 429
        body {"code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":1e30}}
        end
        wait 120
        answer 429
        body {"code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":-5}}
        end
        "#,
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            answer 429 retry-after 18446744073709551615
            end
                failed, retry in 120.0s: pods: the server responded 429
            wait 120
                120.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
            answer 503
            body {"code":503,"details":{"retryAfterSeconds":18446744073709551615}}
            end
                failed, retry in 120.0s: pods: the server responded 503
            wait 120
                240.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
            answer 429 retry-after 4000000000
            end
                failed, retry in 120.0s: pods: the server responded 429
            wait 120
                360.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=319
            answer 429
            body {"code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":1e30}}
            end
                failed, retry in 120.0s: pods: the server responded 429 TooManyRequests
            wait 120
                480.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=321
            answer 429
            body {"code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":-5}}
            end
                failed, retry in 21.9s: pods: the server responded 429 TooManyRequests
        "#]],
    );
}

#[test]
fn extreme_durations_do_not_overflow() {
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
            failed, retry in 31692081.0s: pods: the server cannot be reached: connection refused
        wait 50000000
            31692081.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=31834832
        answer 200
            list begins
        bookmark 9 initial-events-end
            list ends
            recovered
            progress 9
        bookmark 10
            progress 10
    "#]].assert_eq(&told);
}

#[test]
fn a_request_without_a_response_is_cancelled() {
    check(
        "
        wait 60
        wait 2
        answer 200
        ",
        &expect![[r#"
                0.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=318
            wait 60
                failed, retry in 0.8s: pods: the server did not respond in time
            wait 2
                60.8s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
            answer 200
                list begins
        "#]],
    );
}

#[test]
fn an_unreadable_object_does_not_stop_the_watch() {
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
                unreadable: Some(n/typed)
                skipped: pods: an object could not be read (n/typed): a label's value is not a string
            line {"type":"ADDED","object":{"metadata":{}}}
                unreadable: None
                skipped: pods: an object could not be read: metadata.name is not set
            line {"type":"ADDED","object":
            event ADDED a 5
                unreadable: None
                skipped: pods: an object could not be read: not JSON: expected an event that ends with its line at byte 0
                upsert a@5
            bookmark 9 initial-events-end
                list ends
                progress 9
            line nonsense
                skipped: pods: an object could not be read: not JSON: expected an event at byte 0
            event ADDED b 10
                upsert b@10
                progress 10
        "#]],
    );
}

#[test]
fn a_watch_that_breaks_off_within_an_event_twice_leads_to_a_list() {
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
                progress 9
            event ADDED a 10
                upsert a@10
                progress 10
            piece {"type":"ADDED","obj
            end
                failed, retry in 0.8s: pods: the response ended before it was complete
            wait 2
                0.8s GET ?limit=1
            answer 200
            body {"metadata":{"resourceVersion":"10"},"items":[]}
            end
                2.0s GET ?watch=true&allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds=309
            answer 200
            piece {"type":"ADDED","obj
            end
                relisting: the watch broke off within an event twice
                2.0s GET ?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=302
        "#]],
    );
}
