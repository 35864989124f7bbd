use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use kube_client::{Client, client::Body};
use parking_lot::Mutex;

use super::{
    Broadcaster, EventType, RecordedEvent, Recorder,
    correlator::{Correlator, Decision, Limits},
    dropped::DropCause,
    series::{SeriesTracker, SeriesWrite},
};
use crate::{env::Env, supervisor::Supervisor};

fn event(object: &str, reason: &str, note: &str) -> RecordedEvent {
    RecordedEvent {
        component: "test".into(),
        regarding: ObjectReference { name: Some(object.to_owned()), ..ObjectReference::default() },
        related: None,
        action: None,
        annotations: BTreeMap::new(),
        kind: EventType::Normal,
        reason: reason.to_owned(),
        note: note.to_owned(),
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// Describes the decision about an event. An event chosen for writing counts as written.
fn tell(correlator: &mut Correlator, seconds: i64, event: &RecordedEvent) -> String {
    match correlator.correlate(event, at(seconds)) {
        Decision::Drop => "drop".to_owned(),
        Decision::Create { key, note } => {
            correlator.written(key, format!("event-{seconds}"), 1, at(seconds));
            format!("create {note}")
        }
        Decision::Count { key, name, note, count, first } => {
            correlator.written(key, name.clone(), count, first);
            format!("{name} x{count} {note}")
        }
    }
}

#[test]
fn the_same_again_is_counted() {
    let mut correlator = Correlator::new(Limits::default());
    let one = event("a", "Created", "created pod 1");
    assert_eq!(tell(&mut correlator, 0, &one), "create created pod 1");
    assert_eq!(tell(&mut correlator, 1, &one), "event-0 x2 created pod 1");
    assert_eq!(tell(&mut correlator, 2, &one), "event-0 x3 created pod 1");
    assert_eq!(tell(&mut correlator, 3, &event("b", "Created", "created pod 1")), "create created pod 1");
    assert_eq!(tell(&mut correlator, 4, &event("a", "Deleted", "created pod 1")), "create created pod 1");
}

#[test]
fn many_similar_ones_become_one() {
    let mut correlator = Correlator::new(Limits::default());
    for n in 0..9 {
        let told = tell(&mut correlator, n, &event("a", "Created", &format!("created pod {n}")));
        assert_eq!(told, format!("create created pod {n}"));
    }
    assert_eq!(
        tell(&mut correlator, 9, &event("a", "Created", "created pod 9")),
        "create (combined from similar events): created pod 9"
    );
    assert_eq!(
        tell(&mut correlator, 10, &event("a", "Created", "created pod 10")),
        "event-9 x2 (combined from similar events): created pod 10"
    );
    let later = 10 + 601;
    assert_eq!(
        tell(&mut correlator, later, &event("a", "Created", "created pod 11")),
        "create created pod 11",
        "after a pause they are told one by one again"
    );
}

#[test]
fn an_object_that_has_very_many_is_held_back() {
    let mut correlator = Correlator::new(Limits::default());
    let one = event("a", "Failed", "cannot pull");
    let told: Vec<_> = (0..30).map(|_| tell(&mut correlator, 0, &one)).collect();
    assert_eq!(told.iter().filter(|told| *told == "drop").count(), 5, "25 at once");
    assert_eq!(tell(&mut correlator, 299, &one), "drop");
    assert_eq!(tell(&mut correlator, 301, &one), "event-0 x26 cannot pull", "one more every 5 minutes");
    assert_eq!(tell(&mut correlator, 301, &one), "drop");
    assert_eq!(tell(&mut correlator, 301, &event("b", "Failed", "cannot pull")), "create cannot pull");
}

#[test]
fn an_event_the_server_forgot_is_a_first_one_again() {
    let mut correlator = Correlator::new(Limits::default());
    let one = event("a", "Created", "x");
    tell(&mut correlator, 0, &one);
    let Decision::Count { key, .. } = correlator.correlate(&one, at(1)) else { panic!("not counted") };
    correlator.forget(&key);
    assert_eq!(tell(&mut correlator, 2, &one), "create x");
}

#[test]
fn memory_is_bounded() {
    let mut correlator = Correlator::new(Limits { remembered: 2, ..Limits::default() });
    for name in ["a", "b", "c"] {
        tell(&mut correlator, 0, &event(name, "Created", "x"));
    }
    assert_eq!(tell(&mut correlator, 1, &event("a", "Created", "x")), "create x", "a was forgotten");
    assert_eq!(tell(&mut correlator, 1, &event("c", "Created", "x")), "event-0 x2 x");
}

/// Describes the writes of a tracker.
fn lines(writes: Vec<SeriesWrite>) -> Vec<String> {
    let line = |write| match write {
        SeriesWrite::Create { name, event, .. } => format!("create {name} {}", event.note),
        SeriesWrite::Series { name, count, last, .. } => format!("{name} x{count} {}", last.as_second()),
    };
    writes.into_iter().map(line).collect()
}

#[test]
fn the_second_event_makes_a_series_that_is_written_again_when_it_ends() {
    let mut tracker = SeriesTracker::default();
    let mut tell = |seconds, note: &str| {
        lines(tracker.record(event("a", "Failed", note), format!("event-{seconds}"), at(seconds)))
    };
    assert_eq!(tell(0, "one"), ["create event-0 one"]);
    assert_eq!(tell(1, "two"), ["event-0 x2 1"], "the note does not tell them apart");
    assert!(tell(2, "three").is_empty() && tell(3, "three").is_empty());
    assert_eq!(tracker.next_look(at(3)), Some(Duration::from_secs(357)));
    assert!(lines(tracker.look_through(at(360))).is_empty(), "it goes on");
    assert_eq!(lines(tracker.look_through(at(720))), ["event-0 x4 3"]);
    assert_eq!(tracker.next_look(at(720)), None, "nothing is remembered");
}

#[test]
fn a_series_that_goes_on_is_refreshed() {
    let mut tracker = SeriesTracker::default();
    let mut written = Vec::new();
    for minute in 0..40 {
        let at = at(minute * 60);
        written.extend(lines(tracker.record(event("a", "Failed", "x"), "e".to_owned(), at)));
        if minute % 6 == 0 {
            written.extend(lines(tracker.look_through(at)));
        }
    }
    assert_eq!(written, ["create e x", "e x2 60", "e x31 1800"]);
    assert_eq!(lines(tracker.finish()), ["e x40 2340"]);
}

#[test]
fn another_action_or_related_object_is_another_event() {
    let mut tracker = SeriesTracker::default();
    let plain = event("a", "Failed", "x");
    let acting = RecordedEvent { action: Some("Binding".to_owned()), ..plain.clone() };
    let other = RecordedEvent {
        related: Some(ObjectReference { name: Some("n".to_owned()), ..ObjectReference::default() }),
        ..plain.clone()
    };
    for (name, event) in [("1", plain), ("2", acting), ("3", other)] {
        assert_eq!(lines(tracker.record(event, name.to_owned(), at(0))), [format!("create {name} x")]);
    }
}

#[test]
fn the_memory_of_series_is_bounded_and_loses_no_count() {
    let mut tracker = SeriesTracker::default();
    for _ in 0..3 {
        tracker.record(event("first", "Failed", "x"), "e".to_owned(), at(0));
    }
    let mut evicted = Vec::new();
    for n in 0..4096 {
        evicted.extend(tracker.record(event(&n.to_string(), "Failed", "x"), n.to_string(), at(1)));
    }
    evicted.retain(|write| matches!(write, SeriesWrite::Series { .. }));
    assert_eq!(lines(evicted), ["e x3 0"]);
}

#[test]
fn the_name_of_an_event_is_a_valid_name() {
    let mut long = event(&"a".repeat(253), "Failed", "x");
    assert_eq!(long.event_name(at(1), 7).len(), 253);
    long.regarding.name = None;
    assert_eq!(long.event_name(at(1), 7), "unknown.3b9aca000007");
    let role = event("system:Reader", "Granted", "x");
    assert_eq!(role.event_name(at(1), 7), "event-0000000000000007.3b9aca00");
}

/// Returns a client with a server that keeps requests and answers with an empty object.
fn keeping_client() -> (Client, Arc<Mutex<Vec<String>>>) {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let kept = bodies.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let kept = kept.clone();
        async move {
            let body = request.into_body().collect().await?.to_bytes();
            kept.lock().push(String::from_utf8_lossy(&body).into_owned());
            Ok::<_, kube_client::Error>(Response::new(Body::from(b"{}".to_vec())))
        }
    });
    (crate::client::in_process(service).expect("a client"), bodies)
}

fn record(recorder: &Recorder, note: &str) {
    recorder.event(EventType::Normal, ObjectReference::default(), "Tested", note);
}

/// The events behind an Event that the server refuses do not wait for further attempts.
#[tokio::test(start_paused = true)]
async fn an_event_that_the_server_answers_with_500_is_not_sent_again() {
    let written = Arc::new(Mutex::new(Vec::new()));
    let kept = written.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let kept = kept.clone();
        async move {
            let refused = request.uri().path().contains("/namespaces/refused/");
            kept.lock().push(request.uri().path().to_owned());
            let status =
                json!({"kind": "Status", "status": "Failure", "reason": "InternalError", "code": 500});
            let (code, body) = if refused { (500, status.to_string()) } else { (201, "{}".to_owned()) };
            let response = Response::builder().status(code).body(Body::from(body.into_bytes()));
            Ok::<_, kube_client::Error>(response.expect("a response"))
        }
    });
    let client = crate::client::in_process(service).expect("a client");
    let broadcaster = Broadcaster::new();
    broadcaster.start_recording_to(client);
    let recorder = broadcaster.recorder("test");
    for namespace in ["refused", "good"] {
        let regarding =
            ObjectReference { namespace: Some(namespace.to_owned()), ..ObjectReference::default() };
        recorder.event(EventType::Normal, regarding, "Tested", "note");
    }
    broadcaster.shutdown(Duration::from_secs(1)).await;
    let paths = ["refused", "good"].map(|namespace| format!("/api/v1/namespaces/{namespace}/events"));
    assert_eq!(*written.lock(), paths);
    assert_eq!(broadcaster.dropped(DropCause::Rejected), 1);
}

/// The reply to the first attempt is lost. The server answers the second attempt with a conflict of names.
#[tokio::test(start_paused = true)]
async fn an_event_whose_first_reply_was_lost_is_written() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let kept = requests.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let kept = kept.clone();
        async move {
            let attempts = {
                let mut kept = kept.lock();
                kept.push(request.method().to_string());
                kept.len()
            };
            let status =
                json!({"kind": "Status", "status": "Failure", "reason": "AlreadyExists", "code": 409});
            match attempts {
                1 => Err(std::io::Error::other("the connection broke")),
                2 => Ok(Response::builder().status(409).body(Body::from(status.to_string().into_bytes()))),
                _ => Ok(Response::builder().body(Body::from(b"{}".to_vec()))),
            }
            .map(|response| response.expect("a response"))
        }
    });
    let broadcaster = Broadcaster::new();
    broadcaster.start_recording_to(crate::client::in_process(service).expect("a client"));
    let recorder = broadcaster.recorder("test");
    record(&recorder, "note");
    record(&recorder, "note");
    broadcaster.shutdown(Duration::from_secs(60)).await;
    assert_eq!(*requests.lock(), ["POST", "POST", "PATCH"], "the second event counts the first");
    assert_eq!(broadcaster.dropped(DropCause::Rejected), 0);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_panics_is_restarted() {
    let (client, bodies) = keeping_client();
    let reads = Arc::new(AtomicUsize::new(0));
    let clock = {
        let reads = reads.clone();
        move || {
            assert_ne!(reads.fetch_add(1, Ordering::SeqCst), 0, "the clock stands still");
            Timestamp::UNIX_EPOCH
        }
    };
    let supervisor = Supervisor::default();
    let broadcaster = Broadcaster::supervised(Env::new(1, clock), supervisor.clone());
    broadcaster.start_recording_to(client);
    let recorder = broadcaster.recorder("test");
    record(&recorder, "first");
    while supervisor.down().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(supervisor.down(), ["event sink"]);
    record(&recorder, "second");
    broadcaster.shutdown(Duration::from_secs(10)).await;
    assert!(supervisor.down().is_empty());
    let bodies = bodies.lock();
    assert!(matches!(&bodies[..], [one] if one.contains("second")), "{bodies:?}");
}

#[tokio::test]
async fn events_after_the_shutdown_are_ignored() {
    let (client, bodies) = keeping_client();
    let broadcaster = Broadcaster::new();
    broadcaster.start_recording_to(client);
    let recorder = broadcaster.recorder("test");
    record(&recorder, "before");
    broadcaster.shutdown(Duration::from_secs(10)).await;
    record(&recorder, "after");
    assert_eq!(bodies.lock().len(), 1);
    assert_eq!(broadcaster.dropped(DropCause::QueueFull), 0);
}

#[tokio::test]
async fn events_are_dropped_and_counted_when_too_many_wait() {
    let (client, _) = keeping_client();
    let broadcaster = Broadcaster::new();
    broadcaster.start_recording_to(client);
    let recorder = broadcaster.recorder("test");
    // The sink cannot run before this task waits.
    for n in 0..1005 {
        record(&recorder, &n.to_string());
    }
    assert_eq!(broadcaster.dropped(DropCause::QueueFull), 5);
}

/// A layer of the log, for example, may record an event while an event is logged.
#[test]
fn a_callback_may_record_an_event() {
    let broadcaster = Broadcaster::new();
    let seen = Arc::new(AtomicUsize::new(0));
    broadcaster.start_watching({
        let (recorder, seen) = (broadcaster.recorder("inner"), seen.clone());
        move |_| {
            if seen.fetch_add(1, Ordering::SeqCst) == 0 {
                recorder.event(EventType::Normal, ObjectReference::default(), "Inner", "from a callback");
            }
        }
    });
    let recorder = broadcaster.recorder("outer");
    recorder.event(EventType::Normal, ObjectReference::default(), "Outer", "from outside");
    assert_eq!(seen.load(Ordering::SeqCst), 2);
}
