//! Looks up users and groups in the files of an image.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use super::protocol::{Identity, Refusal, UserSetup};

/// The most that is read of a file, in bytes.
const MOST: u64 = 1 << 20;

/// The largest ID of a user or a group.
const MOST_ID: u32 = i32::MAX.unsigned_abs();

/// An ID above the largest, in the words of runc.
const OUT_OF_RANGE: &str = "uids and gids must be in range 0-2147483647";

/// Looks up a user in `/etc/passwd` and `/etc/group` below `/`.
pub(super) fn resolve(user: &UserSetup) -> Result<Identity, Refusal> {
    match user {
        UserSetup::Known(identity) => Ok(identity.clone()),
        UserSetup::LookUp { image, user, group, groups } => {
            find(image, *user, *group, groups, &read("/etc/passwd"), &read("/etc/group"))
        }
    }
}

/// Reads a file of an image. A pipe or device of a hostile image is not read: it might block.
fn read(path: &str) -> String {
    let regular = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut text = Vec::new();
    if regular && let Ok(file) = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(path) {
        let _ = file.take(MOST).read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// `O_NONBLOCK`.
const NO_WAIT: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

fn find(
    image: &str,
    user: Option<u32>,
    group: Option<u32>,
    more: &[u32],
    passwd: &str,
    groups: &str,
) -> Result<Identity, Refusal> {
    let (name, group_name) = image.split_once(':').unwrap_or((image, ""));
    let name = user.map_or_else(|| name.to_owned(), |number| number.to_string());
    let entry = passwd_entry(passwd, if name.is_empty() { "0" } else { &name });
    let number = match (&entry, name.as_str()) {
        (Some(entry), _) => entry.user,
        (None, "") => 0,
        (None, name) => name.parse().map_err(|_| no_such("user", name, "passwd"))?,
    };
    let first = match (group, user, group_name) {
        (Some(group), _, _) => group,
        (None, None, name) if !name.is_empty() => group_number(groups, name)?,
        _ => entry.as_ref().map_or(0, |entry| entry.group),
    };
    let mut others = more.to_vec();
    if let Some(entry) = &entry {
        others.extend(memberships(groups, &entry.name));
    }
    others.sort_unstable();
    others.dedup();
    // The kernel reads the largest ID as "no change": the program would stay root.
    if [number, first].iter().chain(&others).any(|id| *id > MOST_ID) {
        return Err(Refusal::create(OUT_OF_RANGE));
    }
    let home =
        entry.map(|entry| entry.home).filter(|home| home.starts_with('/')).unwrap_or_else(|| "/".to_owned());
    Ok(Identity { user: number, group: first, groups: others, home })
}

/// A line of `/etc/passwd`.
struct Entry {
    name: String,
    user: u32,
    group: u32,
    home: String,
}

/// Finds a user by name, or else by number.
fn passwd_entry(passwd: &str, name: &str) -> Option<Entry> {
    let entries = || passwd.lines().filter_map(entry);
    let number = name.parse::<u32>().ok();
    entries().find(|entry| entry.name == name).or_else(|| entries().find(|entry| Some(entry.user) == number))
}

fn entry(line: &str) -> Option<Entry> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let user = fields.nth(1)?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let home = fields.nth(1).unwrap_or_default().to_owned();
    Some(Entry { name, user, group, home })
}

fn group_number(groups: &str, name: &str) -> Result<u32, Refusal> {
    let by_name = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok()).flatten()
    });
    by_name.or_else(|| name.parse().ok()).ok_or_else(|| no_such("group", name, "group"))
}

/// Returns why a user or a group is not known. The words are those of runc.
fn no_such(kind: &str, name: &str, file: &str) -> Refusal {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Refusal::create(OUT_OF_RANGE);
    }
    Refusal::create(format!("unable to find {kind} {name}: no matching entries in {file} file"))
}

fn memberships(groups: &str, user: &str) -> Vec<u32> {
    let member = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let number = fields.next()?.parse().ok()?;
        fields.next()?.split(',').any(|name| name == user).then_some(number)
    };
    groups.lines().filter_map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34::/srv:/bin/false\nbroken\n";
    const GROUPS: &str = "root:x:0:\nwww:x:34:\nlogs:x:40:other,web\n";

    fn known(image: &str, user: Option<u32>, group: Option<u32>) -> (u32, u32, Vec<u32>, String) {
        let identity = find(image, user, group, &[7], PASSWD, GROUPS).unwrap();
        (identity.user, identity.group, identity.groups, identity.home)
    }

    #[test]
    fn users_are_found_by_name_and_number() {
        assert_eq!(known("web", None, None), (33, 34, vec![7, 40], "/srv".into()));
        assert_eq!(known("33", None, None), (33, 34, vec![7, 40], "/srv".into()));
        assert_eq!(known("web:logs", None, None), (33, 40, vec![7, 40], "/srv".into()));
        assert_eq!(known("web:99", None, None), (33, 99, vec![7, 40], "/srv".into()));
        assert_eq!(known("", None, None), (0, 0, vec![7], "/root".into()));
        assert_eq!(known("65532:65532", None, None), (65532, 65532, vec![7], "/".into()));
    }

    #[test]
    fn numbers_of_the_pod_replace_those_of_the_image() {
        assert_eq!(known("web:logs", Some(1000), None), (1000, 0, vec![7], "/".into()));
        assert_eq!(known("web", Some(0), Some(5)), (0, 5, vec![7], "/root".into()));
    }

    #[test]
    fn an_unknown_name_is_an_error_with_the_name() {
        let refusal = find("nobody", None, None, &[], PASSWD, GROUPS).unwrap_err();
        assert_eq!(refusal.text, "unable to find user nobody: no matching entries in passwd file");
        assert!(find("web:nowhere", None, None, &[], PASSWD, GROUPS).unwrap_err().text.contains("nowhere"));
    }

    #[test]
    fn an_id_that_is_too_large_is_refused_and_does_not_leave_the_program_root() {
        let hostile = "evil:x:4294967295:0::/:/bin/sh\nworse:x:5:4294967295::/:/bin/sh\n";
        for image in
            ["4294967295", "2147483648", "9999999999", "1:4294967295", "1:9999999999", "evil", "worse"]
        {
            let refusal = find(image, None, None, &[], hostile, "").unwrap_err();
            assert_eq!(refusal.text, OUT_OF_RANGE, "{image}");
        }
        assert_eq!(find("2147483647", None, None, &[], hostile, "").unwrap().user, 2_147_483_647);
    }
}
