//! Explains why this machine cannot make namespaces.

use std::fs;

/// Settings of the kernel that forbid user namespaces: the file, the value, and the command that allows.
const SETTINGS: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
];

/// Adds the setting to change to the text of a failure.
pub(super) fn explain(failure: &str) -> String {
    let setting = SETTINGS
        .iter()
        .find(|(file, forbidden, _)| fs::read_to_string(file).is_ok_and(|value| value.trim() == *forbidden));
    match setting {
        Some((_, _, command)) => format!("{failure}; run `{command}` as root"),
        None => format!(
            "{failure}; inside a container, allow user namespaces and an unmasked /proc \
             (Docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined)"
        ),
    }
}
