//! Validation of security contexts.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_wire::names;

use super::container::Pod;
use crate::field::{Errors, Field};
use crate::volume::source::descending;

/// The largest user and group ID.
const LARGEST_ID: i64 = i32::MAX as i64;
const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

/// Validates the security context of a container.
pub(crate) fn validate_of_container(context: &Field<'_>, pod: &Pod<'_>, errors: &mut Errors) {
    if !context.is_set() {
        return;
    }
    let privileged = context.at("privileged");
    context.at("runAsUser").within(0, LARGEST_ID, errors);
    context.at("runAsGroup").within(0, LARGEST_ID, errors);
    let mount = context.at("procMount");
    mount.one_of(&["Default", "Unmasked"], errors);
    if mount.text() == "Unmasked" && pod.uses_host_users() {
        errors.push(mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    validate_seccomp(&context.at("seccompProfile"), errors);
    let escalation = context.at("allowPrivilegeEscalation");
    if escalation.is_set() && !escalation.flag() {
        let shown = |detail: &str| context.invalid(detail).showing(show_context(context));
        if privileged.flag() {
            errors.push(shown("cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
        }
        let added = context.at_path("capabilities/add");
        for _ in added.items().filter(|capability| capability.text() == "CAP_SYS_ADMIN") {
            errors.push(shown(
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
            ));
        }
    }
    validate_windows(&context.at("windowsOptions"), errors);
    validate_app_armor(&context.at("appArmorProfile"), errors);
}

/// Formats a security context as Go prints it, with the names of the Go type.
fn show_context(context: &Field<'_>) -> String {
    const FIELDS: [(&str, &str); 12] = [
        ("Capabilities", "capabilities"),
        ("Privileged", "privileged"),
        ("SELinuxOptions", "seLinuxOptions"),
        ("WindowsOptions", "windowsOptions"),
        ("RunAsUser", "runAsUser"),
        ("RunAsGroup", "runAsGroup"),
        ("RunAsNonRoot", "runAsNonRoot"),
        ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem"),
        ("AllowPrivilegeEscalation", "allowPrivilegeEscalation"),
        ("ProcMount", "procMount"),
        ("SeccompProfile", "seccompProfile"),
        ("AppArmorProfile", "appArmorProfile"),
    ];
    let field = |(shown, name): (&str, &str)| {
        format!("\"{shown}\":{}", windlass_schema::go_json(context.at(name).value()))
    };
    format!("{{{}}}", FIELDS.map(field).join(","))
}

/// Validates the security context of a pod, and dependent fields.
pub(crate) fn validate_of_pod(spec: &Field<'_>, errors: &mut Errors) {
    let context = spec.at("securityContext");
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        context.at(name).within(0, LARGEST_ID, errors);
    }
    for group in context.at("supplementalGroups").items() {
        group.within(0, LARGEST_ID, errors);
    }
    let shares = spec.at("shareProcessNamespace");
    if shares.flag() && spec.at("hostPID").flag() {
        errors.push(shares.invalid("ShareProcessNamespace and HostPID cannot both be enabled"));
    }
    validate_sysctls(spec, &context.at("sysctls"), errors);
    context.at("fsGroupChangePolicy").one_of(&["Always", "OnRootMismatch"], errors);
    validate_seccomp(&context.at("seccompProfile"), errors);
    validate_windows(&context.at("windowsOptions"), errors);
    validate_app_armor(&context.at("appArmorProfile"), errors);
    context.at("supplementalGroupsPolicy").one_of(&["Merge", "Strict"], errors);
    context.at("seLinuxChangePolicy").one_of(&["MountOption", "Recursive"], errors);
}

fn validate_sysctls(spec: &Field<'_>, list: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for entry in list.items() {
        let name = entry.at("name");
        let text = name.text();
        if text.is_empty() {
            errors.push(name.required(""));
        } else if !is_sysctl(text) {
            let detail = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.push(name.invalid(detail));
        } else if seen.contains(text) {
            errors.push(name.duplicate());
        }
        let dotted = text.replace('/', ".");
        let is_of_ipc = dotted.starts_with("kernel.shm")
            || ["kernel.sem", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni"].contains(&dotted.as_str())
            || dotted.starts_with("fs.mqueue.");
        if spec.at("hostNetwork").flag() && dotted.starts_with("net.") {
            errors.push(name.invalid("may not be specified when 'hostNetwork' is true"));
        } else if spec.at("hostIPC").flag() && is_of_ipc {
            errors.push(name.invalid("may not be specified when 'hostIPC' is true"));
        }
        seen.insert(text);
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_outer = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_inner = |byte: u8| is_outer(byte) || matches!(byte, b'-' | b'_');
    name.len() <= 253
        && name.split(['.', '/']).map(str::as_bytes).all(|segment| {
            segment.first().copied().is_some_and(is_outer)
                && segment.last().copied().is_some_and(is_outer)
                && segment.iter().copied().all(is_inner)
        })
}

fn validate_seccomp(profile: &Field<'_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.at("type"), profile.at("localhostProfile"));
    if kind.text().is_empty() {
        errors.push(kind.required("type is required when seccompProfile is set"));
    } else if !PROFILES.contains(&kind.text()) {
        errors.push(kind.unsupported(&PROFILES));
    }
    match (kind.text() == "Localhost", file.is_set()) {
        (true, false) => errors.push(file.required("must be set when seccomp type is Localhost")),
        (true, true) => descending(&file, errors),
        (false, true) => {
            let json = |place: &Field<'_>| windlass_schema::go_json(&Value::from(place.text()));
            let shown = format!("{{\"Type\":{},\"LocalhostProfile\":{}}}", json(&kind), json(&file));
            errors.push(file.invalid("can only be set when seccomp type is Localhost").showing(shown));
        }
        (false, false) => {}
    }
}

fn validate_app_armor(profile: &Field<'_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.at("type"), profile.at("localhostProfile"));
    match kind.text() {
        "Localhost" => {
            let missing = "must be set when AppArmor type is Localhost";
            if !file.is_set() {
                errors.push(file.required(missing));
                return;
            }
            if file.text() != file.text().trim() {
                errors.push(file.invalid("must not be padded with whitespace"));
            } else if file.text().is_empty() {
                errors.push(file.required(missing));
            }
            if file.text().len() > 4095 {
                errors.push(file.too_long(4095));
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if file.is_set() {
                errors.push(file.invalid("can only be set when AppArmor type is Localhost"));
            }
        }
        "" => errors.push(kind.required("type is required when appArmorProfile is set")),
        _ => errors.push(kind.unsupported(&PROFILES)),
    }
}

fn validate_windows(options: &Field<'_>, errors: &mut Errors) {
    let name = options.at("gmsaCredentialSpecName");
    if name.is_set() {
        name.check(names::dns_1123_subdomain, errors);
    }
    let spec = options.at("gmsaCredentialSpec");
    if spec.is_set() && spec.text().is_empty() {
        errors.push(spec.invalid("gmsaCredentialSpec cannot be an empty string"));
    } else if spec.text().len() > 64 * 1024 {
        errors.push(spec.invalid("gmsaCredentialSpec size must be under 64 KiB"));
    }
    let user = options.at("runAsUserName");
    if user.is_set() {
        errors.extend(user_problems(user.text()).into_iter().map(|problem| user.invalid(problem)));
    }
}

/// Returns the problems of a user name of Windows: `DOMAIN\user` or `user`.
fn user_problems(text: &str) -> Vec<&'static str> {
    if text.is_empty() {
        return vec!["runAsUserName cannot be an empty string"];
    }
    if text.chars().any(|letter| letter.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters"];
    }
    if text.matches('\\').count() > 1 {
        return vec!["runAsUserName cannot contain more than one backslash"];
    }
    let mut problems = Vec::new();
    let (domain, user) = text.split_once('\\').map_or((None, text), |(domain, user)| (Some(domain), user));
    if let Some(domain) = domain {
        if domain.len() >= 256 {
            problems.push("runAsUserName's Domain length must be under 256 characters");
        }
        if !is_net_bios_name(domain) && !is_windows_domain(domain) {
            problems.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
        }
    }
    if user.is_empty() {
        problems.push("runAsUserName's User cannot be empty");
    } else if user.len() > 104 {
        problems.push("runAsUserName's User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|letter| matches!(letter, '.' | ' ')) {
        problems.push("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        problems.push("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
    problems
}

fn is_net_bios_name(name: &str) -> bool {
    let count = name.chars().count();
    (1..=15).contains(&count)
        && !name.starts_with('.')
        && !name.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|'])
}

fn is_windows_domain(name: &str) -> bool {
    name.split('.').all(|label| {
        let bytes = label.as_bytes();
        (1..=63).contains(&bytes.len())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
            && bytes.first() != Some(&b'-')
            && bytes.last() != Some(&b'-')
    })
}
