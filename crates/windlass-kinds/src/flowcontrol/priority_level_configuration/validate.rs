//! Validation.

use serde_json::Value;
use windlass_schema::FieldError;

use super::PriorityLevels;
use crate::field::{self, Errors, Field};
use crate::flowcontrol::conditions;
use crate::kind::Validate;

const MAX_QUEUES: i64 = 10_000_000;
/// The number of bits of the hash from which the queues of a flow are dealt.
const HASH_BITS: f64 = 60.0;

impl Validate for PriorityLevels {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::validate("", object, |level, errors| {
            spec(&level.at("spec"), level.at_path("metadata/name").text(), errors);
            conditions(&level.at_path("status/conditions"), errors);
        })
    }

    fn validate_status(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        field::validate("", object, |level, errors| {
            conditions(&level.at_path("status/conditions"), errors);
        })
    }
}

fn spec(spec: &Field<'_>, name: &str, errors: &mut Errors) {
    let (kind, limited, exempt) = (spec.at("type"), spec.at("limited"), spec.at("exempt"));
    if (name == "exempt") != (kind.text() == "Exempt") {
        errors.push(kind.invalid("must be 'Exempt' if and only if `name` is 'exempt'"));
    }
    if kind.text() != "Limited" && limited.is_set() {
        errors.push(limited.forbidden(""));
        validate_response(&limited.at("limitResponse"), errors);
    }
    if kind.text() != "Exempt" && exempt.is_set() {
        errors.push(exempt.forbidden(""));
    }
    match kind.text() {
        "Exempt" => {
            if exempt.is_set() {
                shares(&exempt, errors);
                lendable(&exempt, errors);
            }
        }
        "Limited" => {
            if limited.is_set() {
                validate_limited(&limited, errors);
            } else {
                errors.push(limited.required(""));
            }
        }
        "" => errors.push(kind.required("")),
        _ => errors.push(kind.unsupported(&["Exempt", "Limited"])),
    }
}

fn shares(level: &Field<'_>, errors: &mut Errors) {
    let shares = level.at("nominalConcurrencyShares");
    if shares.int() < 0 {
        errors.push(shares.invalid("must be a non-negative integer"));
    }
}

fn lendable(level: &Field<'_>, errors: &mut Errors) {
    let percent = level.at("lendablePercent");
    if !(0..=100).contains(&percent.int()) {
        errors.push(percent.invalid("must be between 0 and 100, inclusive"));
    }
}

fn validate_limited(limited: &Field<'_>, errors: &mut Errors) {
    shares(limited, errors);
    let response = limited.at("limitResponse");
    validate_response(&response, errors);
    let queuing = response.at("queuing");
    if response.at("type").text() == "Queue" && queuing.is_set() {
        validate_queuing(&queuing, errors);
    }
    lendable(limited, errors);
    let borrowing = limited.at("borrowingLimitPercent");
    if borrowing.int() < 0 {
        errors.push(borrowing.invalid("if specified, must be a non-negative integer"));
    }
}

/// Validates the type of a response, and that exactly the type `Queue` has queues.
fn validate_response(response: &Field<'_>, errors: &mut Errors) {
    let (kind, queuing) = (response.at("type"), response.at("queuing"));
    match (kind.text() == "Queue", queuing.is_set()) {
        (true, false) => errors.push(queuing.required("")),
        (false, true) => errors.push(queuing.forbidden("")),
        _ => {}
    }
    match kind.text() {
        "Queue" | "Reject" => {}
        "" => errors.push(kind.required("")),
        _ => errors.push(kind.unsupported(&["Queue", "Reject"])),
    }
}

fn validate_queuing(queuing: &Field<'_>, errors: &mut Errors) {
    let (length, queues, hand) =
        (queuing.at("queueLengthLimit"), queuing.at("queues"), queuing.at("handSize"));
    if length.int() <= 0 {
        errors.push(length.invalid("must be positive"));
    }
    if queues.int() <= 0 {
        errors.push(queues.invalid("must be positive"));
    } else if queues.int() > MAX_QUEUES {
        errors.push(queues.invalid(format!("must not be greater than {MAX_QUEUES}")));
    }
    if hand.int() <= 0 {
        errors.push(hand.invalid("must be positive"));
    } else if hand.int() > queues.int() {
        errors.push(hand.invalid(format!("should not be greater than queues ({})", queues.int())));
    } else if entropy(queues.int(), hand.int()) > HASH_BITS {
        let (queues, size) = (queues.int(), hand.int());
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {size} should not be greater than {HASH_BITS}"
        );
        errors.push(hand.invalid(detail));
    }
}

/// Returns the bits that choose a hand of queues.
fn entropy(queues: i64, hand: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "the real server computes with floats as well")]
    let (queues, hand) = (queues as f64, hand as f64);
    (queues.log2() * hand).ceil()
}
