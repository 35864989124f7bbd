//! Validation of probes and lifecycle handlers.

use serde_json::Value;
use windlass_wire::names;

use super::container::Pod;
use crate::field::{Errors, Field};

/// Validates the three probes of a container.
pub(crate) fn validate_probes(container: &Field<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.at(kind);
        if !probe.is_set() {
            continue;
        }
        validate_probe(&probe, pod, errors);
        let seconds = probe.at("terminationGracePeriodSeconds");
        let successes = probe.at("successThreshold");
        if kind != "readinessProbe" {
            if successes.int() != 1 {
                errors.push(successes.invalid_as(successes.int(), "must be 1"));
            }
        } else if seconds.is_set() {
            errors.push(seconds.invalid("must not be set for readinessProbes"));
        }
    }
}

fn validate_probe(probe: &Field<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    validate_handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], pod, errors);
    for name in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        probe.at(name).not_negative(errors);
    }
    let seconds = probe.at("terminationGracePeriodSeconds");
    if seconds.is_set() && seconds.int() <= 0 {
        errors.push(seconds.invalid("must be greater than 0"));
    }
}

/// Validates what runs after the start and before the end of a container.
pub(crate) fn validate_lifecycle(lifecycle: &Field<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    for name in ["postStart", "preStop"] {
        let handler = lifecycle.at(name);
        if handler.is_set() {
            validate_handler(&handler, &["exec", "httpGet", "tcpSocket", "sleep"], pod, errors);
        }
    }
}

fn validate_handler(handler: &Field<'_>, kinds: &[&str], pod: &Pod<'_>, errors: &mut Errors) {
    let mut is_found = false;
    for kind in kinds {
        let action = handler.at(kind);
        if !action.is_set() {
            continue;
        }
        if is_found {
            errors.push(action.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        is_found = true;
        match *kind {
            "exec" => {
                let command = action.at("command");
                if command.is_empty() {
                    errors.push(command.required(""));
                }
            }
            "httpGet" => validate_http(&action, errors),
            "sleep" => validate_sleep(&action, pod, errors),
            _ => port_number_or_name(&action.at("port"), errors),
        }
    }
    if !is_found {
        errors.push(handler.required("must specify a handler type"));
    }
}

fn validate_http(action: &Field<'_>, errors: &mut Errors) {
    action.at("path").require(errors);
    port_number_or_name(&action.at("port"), errors);
    let scheme = action.at("scheme");
    if !["HTTP", "HTTPS"].contains(&scheme.text()) {
        errors.push(scheme.unsupported(&["HTTP", "HTTPS"]));
    }
    let headers = action.at("httpHeaders");
    for header in headers.items() {
        let name = header.at("name").text();
        let fits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !fits {
            let detail = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
            errors.push(headers.invalid_as(name, detail));
        }
    }
}

fn validate_sleep(action: &Field<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    let seconds = action.at("seconds").int();
    if let Some(period) = pod.grace_period()
        && !(0..=period).contains(&seconds)
    {
        let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({period})");
        errors.push(action.invalid_as(seconds, detail));
    }
}

/// Validates a port by number or name.
pub(crate) fn port_number_or_name(port: &Field<'_>, errors: &mut Errors) {
    if let Value::String(_) = port.value() {
        port.check(names::port_name, errors);
    } else {
        let number = port.int();
        errors.extend(names::port_number(number).into_iter().map(|problem| port.invalid_as(number, problem)));
    }
}
