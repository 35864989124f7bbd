use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;

use super::{
    EventType, Occurrence,
    correlator::{Correlator, Limits, Verdict},
};

fn occurrence(object: &str, reason: &str, note: &str) -> Occurrence {
    Occurrence {
        component: "test".into(),
        regarding: ObjectReference { name: Some(object.to_owned()), ..ObjectReference::default() },
        kind: EventType::Normal,
        reason: reason.to_owned(),
        note: note.to_owned(),
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// What becomes of an occurrence, in a word; what is to be written counts as written.
fn tell(correlator: &mut Correlator, seconds: i64, occurrence: &Occurrence) -> String {
    match correlator.correlate(occurrence, at(seconds)) {
        Verdict::Drop => "drop".to_owned(),
        Verdict::Create { key, note } => {
            correlator.written(key, format!("event-{seconds}"), 1, at(seconds));
            format!("create {note}")
        }
        Verdict::Count { key, name, note, count, first } => {
            correlator.written(key, name.clone(), count, first);
            format!("{name} x{count} {note}")
        }
    }
}

#[test]
fn the_same_again_is_counted() {
    let mut correlator = Correlator::new(Limits::default());
    let one = occurrence("a", "Created", "created pod 1");
    assert_eq!(tell(&mut correlator, 0, &one), "create created pod 1");
    assert_eq!(tell(&mut correlator, 1, &one), "event-0 x2 created pod 1");
    assert_eq!(tell(&mut correlator, 2, &one), "event-0 x3 created pod 1");
    assert_eq!(
        tell(&mut correlator, 3, &occurrence("b", "Created", "created pod 1")),
        "create created pod 1"
    );
    assert_eq!(
        tell(&mut correlator, 4, &occurrence("a", "Deleted", "created pod 1")),
        "create created pod 1"
    );
}

#[test]
fn many_similar_ones_become_one() {
    let mut correlator = Correlator::new(Limits::default());
    for n in 0..9 {
        let told = tell(&mut correlator, n, &occurrence("a", "Created", &format!("created pod {n}")));
        assert_eq!(told, format!("create created pod {n}"));
    }
    assert_eq!(
        tell(&mut correlator, 9, &occurrence("a", "Created", "created pod 9")),
        "create (combined from similar events): created pod 9"
    );
    assert_eq!(
        tell(&mut correlator, 10, &occurrence("a", "Created", "created pod 10")),
        "event-9 x2 (combined from similar events): created pod 10"
    );
    let later = 10 + 601;
    assert_eq!(
        tell(&mut correlator, later, &occurrence("a", "Created", "created pod 11")),
        "create created pod 11",
        "after a pause they are told one by one again"
    );
}

#[test]
fn an_object_that_has_very_many_is_held_back() {
    let mut correlator = Correlator::new(Limits::default());
    let one = occurrence("a", "Failed", "cannot pull");
    let told: Vec<_> = (0..30).map(|_| tell(&mut correlator, 0, &one)).collect();
    assert_eq!(told.iter().filter(|told| *told == "drop").count(), 5, "25 at once");
    assert_eq!(tell(&mut correlator, 299, &one), "drop");
    assert_eq!(tell(&mut correlator, 301, &one), "event-0 x26 cannot pull", "one more every 5 minutes");
    assert_eq!(tell(&mut correlator, 301, &one), "drop");
    assert_eq!(tell(&mut correlator, 301, &occurrence("b", "Failed", "cannot pull")), "create cannot pull");
}

#[test]
fn an_event_the_server_forgot_is_a_first_one_again() {
    let mut correlator = Correlator::new(Limits::default());
    let one = occurrence("a", "Created", "x");
    tell(&mut correlator, 0, &one);
    let Verdict::Count { key, .. } = correlator.correlate(&one, at(1)) else { panic!("not counted") };
    correlator.forget(&key);
    assert_eq!(tell(&mut correlator, 2, &one), "create x");
}

#[test]
fn memory_is_bounded() {
    let mut correlator = Correlator::new(Limits { remembered: 2, ..Limits::default() });
    for name in ["a", "b", "c"] {
        tell(&mut correlator, 0, &occurrence(name, "Created", "x"));
    }
    assert_eq!(tell(&mut correlator, 1, &occurrence("a", "Created", "x")), "create x", "a was forgotten");
    assert_eq!(tell(&mut correlator, 1, &occurrence("c", "Created", "x")), "event-0 x2 x");
}
