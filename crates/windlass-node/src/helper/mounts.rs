//! The file system of a container.
//!
//! Paths of an image are hostile: links may lead out of the root. All targets are resolved inside the root by the kernel
//! (`RESOLVE_IN_ROOT`), and mounts are made on file descriptors.

use std::ffi::{CStr, CString};
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    CWD, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstat, fstatvfs, mkdirat, openat, openat2,
    readlinkat, symlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_remount, unmount,
};
use rustix::process::{fchdir, pivot_root};

use super::protocol::{ContainerSetup, Doing, MountSetup, Refusal, RefusalKind, RootSetup};

/// The files of `/dev`, taken from the machine.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// The links of `/dev`.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Parts of `/proc` that cannot be written.
const READ_ONLY: [&str; 6] =
    ["proc/bus", "proc/fs", "proc/irq", "proc/sys", "proc/sysrq-trigger", "proc/asound"];

/// Files of `/proc` that cannot be read.
const HIDDEN: [&str; 5] =
    ["proc/kcore", "proc/keys", "proc/latency_stats", "proc/timer_list", "proc/sched_debug"];

/// The most links that are followed to create a target.
const MOST_LINKS: u8 = 16;

/// Flags of a file system that holds no programs.
const DATA: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

/// Mounts the `proc` file system of this process's PID namespace.
pub(super) fn mount_proc(target: &str) -> Result<(), Refusal> {
    mount("proc", target, "proc", DATA, None::<&CStr>).doing("mount /proc")
}

/// Makes a path of this program that cannot be written, so that no container can replace the program.
pub(super) fn read_only_launcher(directory: &Path) -> Result<PathBuf, Refusal> {
    let path = directory.join("launcher");
    fs::write(&path, "").doing("create the launcher")?;
    // The link itself belongs to the mounts of the machine, which cannot be bound here.
    let program = fs::read_link("/proc/self/exe").doing("find the launcher")?;
    mount_bind(&program, &path).doing(&format!("mount the launcher {}", program.display()))?;
    let file =
        openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).doing("open the launcher")?;
    remount(file.as_fd(), MountFlags::RDONLY).doing("make the launcher read-only")?;
    Ok(path)
}

/// Returns whether an overlay can be mounted on the file system of `directory`.
pub(super) fn overlay_works(directory: &Path) -> bool {
    let probe = directory.join("overlay");
    let [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map(|name| probe.join(name));
    let made = [&lower, &upper, &work, &merged].iter().all(|path| fs::create_dir_all(path).is_ok());
    let mounted = made && mount_overlay(&lower, &upper, &work, &merged).is_ok();
    mounted && fs::write(merged.join("probe"), "").is_ok() && unmount(&merged, UnmountFlags::DETACH).is_ok()
}

fn mount_overlay(lower: &Path, upper: &Path, work: &Path, merged: &Path) -> Result<(), Refusal> {
    let mut options = Vec::new();
    for (name, path) in [("lowerdir", lower), (",upperdir", upper), (",workdir", work)] {
        options.extend_from_slice(name.as_bytes());
        options.push(b'=');
        options.extend_from_slice(path.as_os_str().as_bytes());
    }
    options.extend_from_slice(b",userxattr");
    let options = CString::new(options).map_err(|_| Refusal::config("a path with a NUL byte"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("overlay", merged, "overlay", flags, Some(options.as_c_str())).doing("mount the root file system")
}

/// Makes the file system of a container and moves this process into the file system.
pub(super) fn enter(setup: &ContainerSetup) -> Result<(), Refusal> {
    let root = root(&setup.root)?;
    let root = root.as_fd();
    let proc = directory(root, Path::new("proc"))?;
    mount_proc(&link(proc.as_fd()))?;
    devices(root)?;
    if let Ok(sys) = directory(root, Path::new("sys")) {
        let _ = mount("sysfs", link(sys.as_fd()), "sysfs", DATA | MountFlags::RDONLY, None::<&CStr>);
    }
    let mut mounts: Vec<&MountSetup> = setup.mounts.iter().collect();
    mounts.sort_by_key(|mount| mount.target.components().count());
    for mount in mounts {
        bind(root, mount)?;
    }
    protect(root)?;
    directory(root, Path::new(&setup.program.directory)).map_err(|refusal| Refusal {
        text: format!("create the working directory {}: {}", setup.program.directory, refusal.text),
        ..refusal
    })?;
    if setup.read_only {
        remount(root, MountFlags::RDONLY).doing("make the root file system read-only")?;
    }
    fchdir(root).doing("enter the root file system")?;
    pivot_root(".", ".").doing("change the root file system")?;
    unmount(".", UnmountFlags::DETACH).doing("leave the file system of the machine")?;
    rustix::process::chdir("/").doing("enter the root file system")
}

fn root(setup: &RootSetup) -> Result<OwnedFd, Refusal> {
    let path = match setup {
        RootSetup::Overlay { lower, upper, work, merged } => {
            mount_overlay(lower, upper, work, merged)?;
            merged
        }
        RootSetup::Directory(path) => {
            mount_bind_recursive(path, path).doing("mount the root file system")?;
            path
        }
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, path, flags, Mode::empty()).doing("open the root file system")?;
    if matches!(setup, RootSetup::Directory(_)) {
        remount(root.as_fd(), MountFlags::empty()).doing("restrict the root file system")?;
    }
    Ok(root)
}

fn devices(root: BorrowedFd<'_>) -> Result<(), Refusal> {
    let below = directory(root, Path::new("dev"))?;
    tmpfs(below.as_fd(), c"mode=755,size=64k", MountFlags::NOSUID).doing("mount /dev")?;
    let dev = directory(root, Path::new("dev"))?;
    for name in DEVICES {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&dev, name, flags, Mode::from_raw_mode(0o666)).doing("create a device")?;
        mount_bind(format!("/dev/{name}"), link(file.as_fd())).doing(&format!("mount /dev/{name}"))?;
    }
    for (name, target) in LINKS {
        symlinkat(target, &dev, name).doing(&format!("create /dev/{name}"))?;
    }
    let pts = directory(root, Path::new("dev/pts"))?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=0620";
    mount("devpts", link(pts.as_fd()), "devpts", flags, Some(options)).doing("mount /dev/pts")?;
    let shm = directory(root, Path::new("dev/shm"))?;
    tmpfs(shm.as_fd(), c"mode=1777,size=64m", DATA).doing("mount /dev/shm")?;
    let mqueue = directory(root, Path::new("dev/mqueue"))?;
    let _ = mount("mqueue", link(mqueue.as_fd()), "mqueue", DATA, None::<&CStr>);
    Ok(())
}

fn tmpfs(target: BorrowedFd<'_>, options: &CStr, flags: MountFlags) -> Result<(), Errno> {
    mount("tmpfs", link(target), "tmpfs", flags, Some(options))
}

fn bind(root: BorrowedFd<'_>, mount: &MountSetup) -> Result<(), Refusal> {
    let source = openat2(
        CWD,
        &mount.source,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
    .map_err(|error| source_refusal(mount, error))?;
    let kind = fstat(&source).doing("look at the source of a mount")?.st_mode;
    let text = format!("mount {}", mount.target.display());
    let is_directory = FileType::from_raw_mode(kind) == FileType::Directory;
    let target = if is_directory { directory(root, &mount.target)? } else { file(root, &mount.target)? };
    mount_bind_recursive(link(source.as_fd()), link(target.as_fd())).doing(&text)?;
    let mounted = open(root, &mount.target, OFlags::PATH).doing(&text)?;
    let flags = if mount.read_only { MountFlags::RDONLY } else { MountFlags::empty() };
    remount(mounted.as_fd(), flags).doing(&text)
}

fn source_refusal(mount: &MountSetup, error: Errno) -> Refusal {
    let (source, target) = (mount.source.display(), mount.target.display());
    match error {
        Errno::LOOP => {
            Refusal::config(format!("the source {source} of mount {target} contains a symbolic link"))
        }
        error => Refusal::start(format!(
            "open the source {source} of mount {target}: {}",
            std::io::Error::from(error)
        )),
    }
}

/// Protects the parts of `/proc` that belong to the machine. Not all kernels have all parts.
fn protect(root: BorrowedFd<'_>) -> Result<(), Refusal> {
    for name in READ_ONLY {
        let Ok(part) = open(root, Path::new(name), OFlags::PATH) else { continue };
        mount_bind(link(part.as_fd()), link(part.as_fd())).doing(&format!("protect /{name}"))?;
        let mounted = open(root, Path::new(name), OFlags::PATH).doing(&format!("protect /{name}"))?;
        remount(mounted.as_fd(), DATA | MountFlags::RDONLY).doing(&format!("protect /{name}"))?;
    }
    for name in HIDDEN {
        let Ok(part) = open(root, Path::new(name), OFlags::PATH) else { continue };
        mount_bind("/dev/null", link(part.as_fd())).doing(&format!("hide /{name}"))?;
    }
    Ok(())
}

/// Changes the flags of a mount. Keeps the flags that the mount has already: a user namespace cannot remove the flags.
fn remount(mounted: BorrowedFd<'_>, more: MountFlags) -> Result<(), Errno> {
    let present = fstatvfs(mounted)?.f_flag;
    let mut flags = more | MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV;
    let kept = [
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    for (flag, kept) in kept {
        if present.contains(flag) {
            flags |= kept;
        }
    }
    mount_remount(link(mounted), flags, c"")
}

/// Returns the path of a file descriptor, for operations that take paths only.
fn link(descriptor: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

/// Opens a path inside the root.
fn open(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let inside = path.strip_prefix("/").unwrap_or(path);
    let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let attempt = || openat2(root, inside, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
    retried(attempt)
}

/// The most attempts to resolve a path with `..`.
const MOST_ATTEMPTS: usize = 256;

/// Repeats an attempt to resolve a path. For a path with `..`, the kernel answers `EAGAIN` if a mount or a rename, of any process of the
/// machine, happened during the attempt (openat2(2)).
fn retried<T>(mut attempt: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 1..MOST_ATTEMPTS {
        match attempt() {
            Err(Errno::AGAIN) => std::thread::yield_now(),
            result => return result,
        }
    }
    attempt()
}

/// Opens a directory inside the root. Creates the directory if it does not exist.
fn directory(root: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Refusal> {
    create_directory(root, path, MOST_LINKS).map_err(|error| refused(path, error))
}

fn refused(path: &Path, error: Errno) -> Refusal {
    let text = format!("create {} in the container: {}", path.display(), std::io::Error::from(error));
    let kind = if matches!(error, Errno::NOTDIR | Errno::LOOP | Errno::INVAL) {
        RefusalKind::Config
    } else {
        RefusalKind::Start
    };
    Refusal { kind, text }
}

fn create_directory(root: BorrowedFd<'_>, path: &Path, links: u8) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let mut present = PathBuf::new();
    let mut parent = open(root, Path::new("."), flags)?;
    for component in path.components() {
        let name = match component {
            Component::RootDir | Component::CurDir => continue,
            Component::Normal(name) => name,
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL),
        };
        let next = present.join(name);
        parent = match open(root, &next, flags) {
            Err(Errno::NOENT) => match mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
                Ok(()) => open(root, &next, flags)?,
                Err(Errno::EXIST) => follow(root, &parent, &present, Path::new(name), links)?,
                Err(error) => return Err(error),
            },
            opened => opened?,
        };
        present = next;
    }
    Ok(parent)
}

/// Creates the target of a link that leads to nothing.
fn follow(
    root: BorrowedFd<'_>,
    parent: &OwnedFd,
    present: &Path,
    name: &Path,
    links: u8,
) -> Result<OwnedFd, Errno> {
    let links = links.checked_sub(1).ok_or(Errno::LOOP)?;
    let target = readlinkat(parent, name, Vec::new())?;
    let target = Path::new(std::ffi::OsStr::from_bytes(target.as_bytes()));
    create_directory(root, &inside(present, target), links)
}

/// Opens a file inside the root. Creates an empty file if the file does not exist.
fn file(root: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Refusal> {
    create_file(root, path, MOST_LINKS).map_err(|error| refused(path, error))
}

fn create_file(root: BorrowedFd<'_>, path: &Path, links: u8) -> Result<OwnedFd, Errno> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let parent = create_directory(root, folder, MOST_LINKS)?;
    match open(root, path, OFlags::PATH) {
        Err(Errno::NOENT) => {}
        opened => return opened,
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match openat(&parent, name, flags, Mode::from_raw_mode(0o644)) {
        // A link that leads to nothing, such as /etc/resolv.conf of some images.
        Err(Errno::EXIST) => {
            let links = links.checked_sub(1).ok_or(Errno::LOOP)?;
            let target = readlinkat(&parent, name, Vec::new())?;
            create_file(
                root,
                &inside(folder, Path::new(std::ffi::OsStr::from_bytes(target.as_bytes()))),
                links,
            )
        }
        created => created,
    }
}

/// Joins the target of a link to the directory of the link. `..` never leads above the root.
fn inside(folder: &Path, target: &Path) -> PathBuf {
    let mut result = PathBuf::from("/");
    for component in folder.join(target).components() {
        match component {
            Component::Normal(name) => result.push(name),
            Component::ParentDir => drop(result.pop()),
            _ => {}
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_another_process_disturbs_is_repeated() {
        let mut attempts = 0;
        let mut disturbed = |times: usize| {
            attempts = 0;
            retried(|| {
                attempts += 1;
                if attempts <= times { Err(Errno::AGAIN) } else { Ok(attempts) }
            })
        };
        assert_eq!(disturbed(3), Ok(4));
        assert_eq!(disturbed(usize::MAX), Err(Errno::AGAIN));
        assert_eq!(retried(|| Err::<(), _>(Errno::NOENT)), Err(Errno::NOENT));
    }
}
