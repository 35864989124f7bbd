//! The limits of containers, by control groups of version 1 or 2.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Limits;

/// The period of a CPU quota, in microseconds.
const PERIOD: u64 = 100_000;

/// The controllers that limits need.
const CONTROLLERS: [&str; 3] = ["memory", "cpu", "pids"];

/// The file with the groups of a runtime, in the directory of the runtime.
const REMEMBERED: &str = "cgroups";

/// The control groups of a runtime, below those of this process.
#[derive(Debug)]
pub(crate) struct Cgroups {
    /// Version 2: one group. Version 1: a group for each controller.
    groups: HashMap<&'static str, PathBuf>,
    version_2: bool,
}

impl Cgroups {
    /// Creates groups named `name`. The error says why there are no limits.
    pub(crate) fn create(name: &str) -> Result<Self, String> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut reasons = Vec::new();
        match version_2(&mounts, &own, name) {
            Ok(group) => {
                let groups = CONTROLLERS.iter().map(|controller| (*controller, group.clone())).collect();
                return Ok(Self { groups, version_2: true });
            }
            Err(reason) => reasons.push(reason),
        }
        let mut groups = HashMap::new();
        for controller in CONTROLLERS {
            let made = base(&mounts, &own, controller)
                .ok_or_else(|| format!("there is no control group for {controller}"))
                .and_then(|base| {
                    let group = base.join(name);
                    fs::create_dir(&group).map_err(|error| format!("create {}: {error}", group.display()))?;
                    Ok(group)
                });
            match made {
                Ok(group) => drop(groups.insert(controller, group)),
                Err(reason) => {
                    groups.values().for_each(|group| drop(fs::remove_dir(group)));
                    reasons.push(reason);
                    return Err(reasons.join("; "));
                }
            }
        }
        Ok(Self { groups, version_2: false })
    }

    /// Remembers the groups in the directory of the runtime. See [`remove_cgroups`].
    pub(crate) fn remember(&self, directory: &Path) -> io::Result<()> {
        let lines: Vec<_> = self.all().iter().map(|group| group.display().to_string()).collect();
        fs::write(directory.join(REMEMBERED), lines.join("\n"))
    }

    /// Returns all groups of this runtime.
    fn all(&self) -> Vec<PathBuf> {
        let mut all: Vec<_> = self.groups.values().cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    /// Creates the groups of a container.
    pub(crate) fn container(&self, id: &str, limits: Limits) -> io::Result<Vec<PathBuf>> {
        let groups: Vec<PathBuf> = self.all().iter().map(|group| group.join(id)).collect();
        let written = groups.iter().try_for_each(fs::create_dir).and_then(|()| self.write(id, limits));
        if written.is_err() {
            groups.iter().for_each(|group| drop(fs::remove_dir(group)));
        }
        written.map(|()| groups)
    }

    fn write(&self, id: &str, limits: Limits) -> io::Result<()> {
        let file = |controller: &str, name: &str| self.groups[controller].join(id).join(name);
        if let Some(bytes) = limits.memory {
            if self.version_2 {
                fs::write(file("memory", "memory.max"), bytes.to_string())?;
                // Kernels without swap have no such file.
                let _ = fs::write(file("memory", "memory.swap.max"), "0");
            } else {
                fs::write(file("memory", "memory.limit_in_bytes"), bytes.to_string())?;
                let _ = fs::write(file("memory", "memory.memsw.limit_in_bytes"), bytes.to_string());
            }
        }
        if let Some(thousandths) = limits.cpu {
            let quota = (thousandths * PERIOD / 1000).max(1000);
            if self.version_2 {
                fs::write(file("cpu", "cpu.max"), format!("{quota} {PERIOD}"))?;
            } else {
                fs::write(file("cpu", "cpu.cfs_period_us"), PERIOD.to_string())?;
                fs::write(file("cpu", "cpu.cfs_quota_us"), quota.to_string())?;
            }
        }
        limits.processes.map_or(Ok(()), |most| fs::write(file("pids", "pids.max"), most.to_string()))
    }
}

/// Removes the control groups that the runtime with a directory has remembered. Returns whether no group is left.
pub(crate) fn remove_cgroups(directory: &Path) -> bool {
    let groups = fs::read_to_string(directory.join(REMEMBERED)).unwrap_or_default();
    for group in groups.lines() {
        for child in fs::read_dir(group).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(child.path());
        }
        let _ = fs::remove_dir(group);
    }
    groups.lines().all(|group| !Path::new(group).exists())
}

/// Returns whether the kernel has ended a process of the groups that exceeded the memory limit.
pub(crate) fn out_of_memory(groups: &[PathBuf]) -> bool {
    let killed = |text: &str| {
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse::<u64>().ok()).is_some_and(|count| count > 0)
    };
    let read = |group: &PathBuf, name| fs::read_to_string(group.join(name)).unwrap_or_default();
    groups
        .iter()
        .any(|group| killed(&read(group, "memory.events")) || killed(&read(group, "memory.oom_control")))
}

/// Creates a group of version 2 with all controllers.
fn version_2(mounts: &str, own: &str, name: &str) -> Result<PathBuf, String> {
    let base = base(mounts, own, "").ok_or("there are no control groups of version 2")?;
    let has_all = |file: &Path| {
        let text = fs::read_to_string(file).unwrap_or_default();
        CONTROLLERS.iter().all(|controller| text.split_whitespace().any(|word| word == *controller))
    };
    if !has_all(&base.join("cgroup.controllers")) {
        return Err(format!("{} has not all of the controllers memory, cpu, pids", base.display()));
    }
    let enable = |path: &Path| {
        fs::write(path.join("cgroup.subtree_control"), "+memory +cpu +pids")
            .map_err(|error| format!("enable controllers in {}: {error}", path.display()))
    };
    if !has_all(&base.join("cgroup.subtree_control")) {
        enable(&base)?;
    }
    let group = base.join(name);
    fs::create_dir(&group).map_err(|error| format!("create {}: {error}", group.display()))?;
    enable(&group).inspect_err(|_| drop(fs::remove_dir(&group)))?;
    Ok(group)
}

/// Finds the directory of this process's group of a controller. The empty name is version 2.
fn base(mounts: &str, own: &str, controller: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        controllers.split(',').any(|name| name == controller).then(|| fields.next()).flatten()
    })?;
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut fields = left.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let mut kind = right.split(' ');
        let matches = match kind.next()? {
            "cgroup2" => controller.is_empty(),
            "cgroup" => kind.nth(1)?.split(',').any(|option| option == controller),
            _ => false,
        };
        let below = Path::new(path).strip_prefix(root).ok()?;
        matches.then(|| Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_mounts_and_membership() {
        let mounts = "35 31 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n\
                      42 31 0:39 /docker /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
        let own = "4:memory:/a/b\n3:cpu,cpuacct:/docker/x\n0::/user.slice\n";
        assert_eq!(base(mounts, own, "memory"), Some("/sys/fs/cgroup/memory/a/b".into()));
        assert_eq!(base(mounts, own, "cpu"), Some("/sys/fs/cgroup/cpu,cpuacct/x".into()));
        assert_eq!(base(mounts, own, ""), Some("/sys/fs/cgroup/unified/user.slice".into()));
        assert_eq!(base(mounts, own, "pids"), None);
    }
}
