//! Unpacking, of good and of hostile layers.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;

use proptest::prelude::*;
use tar::EntryType;
use windlass_image::unpack::{self, Limits};
use windlass_image::{Digest, Error, Image, media_type};

use crate::sample::{Layer, Sandbox};

fn unpack(sandbox: &Sandbox, image: &Image, limits: &Limits) -> Result<PathBuf, Error> {
    let folder = sandbox.folder.path().join("files");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    unpack::layers(&sandbox.store, image, &folder, limits).map(|()| folder)
}

#[track_caller]
fn unpacked(sandbox: &Sandbox, layers: &[Layer]) -> PathBuf {
    unpack(sandbox, &sandbox.image("web", layers), &Limits::default()).unwrap()
}

#[track_caller]
fn refused(layers: &[Layer]) -> String {
    let sandbox = Sandbox::new();
    fs::write(sandbox.folder.path().join("secret"), "secret").unwrap();
    let result = unpack(&sandbox, &sandbox.image("web", layers), &Limits::default());
    assert_eq!(fs::read_to_string(sandbox.folder.path().join("secret")).unwrap(), "secret");
    let mut names: Vec<_> =
        fs::read_dir(sandbox.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["files", "secret", "store"], "nothing is written out of the root");
    let Err(Error::Invalid(message)) = result else { panic!("{result:?}") };
    message
}

#[test]
fn files_folders_and_links_of_all_layers() {
    let sandbox = Sandbox::new();
    let long = "d/".repeat(90) + "file";
    let first = Layer::new()
        .folder("usr/lib/")
        .link("lib", "usr/lib")
        .link("sys", "/usr")
        .file("etc/a", "old")
        .entry(EntryType::GNULongName, "././@LongLink", "", 0, long.as_bytes())
        .file("short", "long");
    let second = Layer::new()
        .file("lib/libc.so", "c")
        .file("sys/lib/libm.so", "m")
        .file("./etc/a", "new")
        .hard_link("etc/b", "/etc/a")
        .owned(EntryType::Regular, "bin/tool", "", 0o4750, 65532, b"#!");
    let root = unpacked(&sandbox, &[first, second]);
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    assert_eq!(
        (read("usr/lib/libc.so"), read("usr/lib/libm.so")),
        ("c".into(), "m".into()),
        "links lead inside"
    );
    assert_eq!((read("etc/a"), read("etc/b"), read(&long)), ("new".into(), "new".into(), "long".into()));
    let tool = fs::metadata(root.join("bin/tool")).unwrap();
    assert_eq!(
        tool.permissions().mode() & 0o7777,
        0o777 & !0o020 | 0o027,
        "no setuid, and all users run the tool"
    );
    assert_eq!(tool.mtime(), 1);
}

#[test]
fn whiteouts_remove_lower_files_only() {
    let sandbox = Sandbox::new();
    let lower =
        || Layer::new().file("etc/a", "1").file("etc/b", "1").file("var/x/1", "1").file("var/x/2", "1");
    // The markers come after new files of the same names.
    let upper = Layer::new()
        .file("etc/c", "2")
        .file("etc/.wh.a", "")
        .file("etc/.wh.c", "")
        .file("etc/.wh.missing", "")
        .file("no/such/.wh.folder", "")
        .file("var/x/2", "2")
        .file("var/x/.wh..wh..opq", "")
        .file(".wh..wh.plnk/1", "");
    let root = unpacked(&sandbox, &[lower(), upper]);
    let exists = |path: &str| root.join(path).exists();
    assert!(!exists("etc/a") && exists("etc/b") && exists("etc/c"));
    assert!(!exists("var/x/1") && exists("var/x/2"));
    assert!(!exists("no"));
    let root =
        unpacked(&sandbox, &[lower(), Layer::new().file("new/1", ""), Layer::new().file(".wh..wh..opq", "")]);
    assert_eq!(fs::read_dir(root).unwrap().count(), 0);
}

#[test]
fn gzip_zstd_and_no_compression() {
    let sandbox = Sandbox::new();
    let layer = |name: &str| Layer::new().file(name, name);
    let image = sandbox.image_of(
        "web",
        &[
            (media_type::LAYER_GZIP, layer("gzip").gzip(), layer("gzip").digest()),
            (
                media_type::LAYER_ZSTD,
                zstd::encode_all(layer("zstd").tar().as_slice(), 3).unwrap(),
                layer("zstd").digest(),
            ),
            (media_type::LAYER, layer("plain").tar(), layer("plain").digest()),
        ],
    );
    let root = unpack(&sandbox, &image, &Limits::default()).unwrap();
    for name in ["gzip", "zstd", "plain"] {
        assert_eq!(fs::read_to_string(root.join(name)).unwrap(), name);
    }
}

#[test]
fn a_path_out_of_the_root_is_refused() {
    for path in ["../secret", "a/../../secret", "/../secret", "a/../b"] {
        assert!(refused(&[Layer::new().file(path, "hostile")]).contains("leaves the root"), "{path}");
        assert!(
            refused(&[Layer::new().file("a", "").hard_link("b", path)]).contains("leaves the root"),
            "{path}"
        );
    }
}

#[test]
fn links_do_not_lead_out_of_the_root() {
    let sandbox = Sandbox::new();
    let outside = sandbox.folder.path().join("secret");
    fs::write(&outside, "secret").unwrap();
    let absolute = sandbox.folder.path().to_str().unwrap().to_owned();
    for target in [absolute.as_str(), "../", "/..", "../../../../../.."] {
        let root = unpacked(&sandbox, &[Layer::new().link("out", target).file("out/secret", "hostile")]);
        assert_eq!(fs::read_to_string(&outside).unwrap(), "secret", "{target}");
        assert!(fs::symlink_metadata(root.join("out")).unwrap().is_symlink());
    }
    // The file behind a link is replaced by a file, and is not written.
    let file = format!("{absolute}/secret");
    let root = unpacked(&sandbox, &[Layer::new().link("x", &file), Layer::new().file("x", "new")]);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
    assert_eq!(fs::read_to_string(root.join("x")).unwrap(), "new");
    // A hard link to a symbolic link does not lead outside, and a write to the hard link does not either.
    let layers = [Layer::new().link("x", &file).hard_link("y", "x"), Layer::new().file("y", "new")];
    unpacked(&sandbox, &layers);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
    // A whiteout through a link.
    unpacked(&sandbox, &[Layer::new().link("out", &absolute), Layer::new().file("out/.wh.secret", "")]);
    unpacked(&sandbox, &[Layer::new().link("out", &absolute), Layer::new().file("out/.wh..wh..opq", "")]);
    unpacked(&sandbox, &[Layer::new().link("out", &absolute), Layer::new().folder("out")]);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
}

#[test]
fn hostile_entries_are_refused() {
    let missing = refused(&[Layer::new().hard_link("a", "etc/passwd")]);
    assert!(missing.contains("has no target"), "{missing}");
    let missing = refused(&[Layer::new().folder("etc").hard_link("a", "etc")]);
    assert!(missing.contains("has no target"), "{missing}");
    let links = refused(&[Layer::new().link("a", "b").link("b", "a").file("a/x", "")]);
    assert!(links.contains("too many links"), "{links}");
    let file = refused(&[Layer::new().file("a", "").file("a/b", "")]);
    assert!(file.contains("is not a folder"), "{file}");
    let deep = "d/".repeat(300);
    let deep =
        refused(&[Layer::new().entry(EntryType::GNULongName, "l", "", 0, deep.as_bytes()).folder("x")]);
    assert!(deep.contains("too deep"), "{deep}");
    let huge = vec![b'a'; 2 << 20];
    for kind in [EntryType::GNULongName, EntryType::XHeader, EntryType::XGlobalHeader] {
        let large = refused(&[Layer::new().entry(kind, "l", "", 0, &huge).file("x", "")]);
        assert!(large.contains("larger than 1 MiB"), "{large}");
    }
    let long = vec![b'a'; 5000];
    let long = refused(&[Layer::new().entry(EntryType::GNULongName, "l", "", 0, &long).file("x", "")]);
    assert!(long.contains("longer than 4096"), "{long}");
    let name = vec![b'a'; 300];
    let name = refused(&[Layer::new().entry(EntryType::GNULongName, "l", "", 0, &name).file("x", "")]);
    assert!(name.contains("too long"), "{name}");
    let sparse = refused(&[Layer::new().entry(EntryType::GNUSparse, "a", "", 0o644, b"")]);
    assert!(sparse.contains("sparse"), "{sparse}");
    let sizes =
        refused(&[Layer::new().entry(EntryType::XHeader, "p", "", 0, b"11 size=99\n").file("x", "1")]);
    assert!(sizes.contains("two sizes"), "{sizes}");
    let itself = refused(&[Layer::new().file(".wh...", "")]);
    assert!(itself.contains("removes no file"), "{itself}");
}

#[test]
fn devices_and_pipes_are_left_out() {
    let sandbox = Sandbox::new();
    let layer = [EntryType::Char, EntryType::Block, EntryType::Fifo]
        .into_iter()
        .fold(Layer::new(), |layer, kind| layer.entry(kind, "dev/x", "", 0o666, b""))
        .entry(EntryType::Directory, "tmp", "", 0o7777, b"");
    let root = unpacked(&sandbox, &[layer]);
    assert!(!root.join("dev").exists());
    assert_eq!(fs::metadata(root.join("tmp")).unwrap().permissions().mode() & 0o7777, 0o1777);
}

#[test]
fn bombs_are_refused() {
    let sandbox = Sandbox::new();
    let zeros = vec![0; 80 << 20];
    let image = sandbox.image("bomb", &[Layer::new().entry(EntryType::Regular, "zeros", "", 0o644, &zeros)]);
    let refused = |limits: Limits| unpack(&sandbox, &image, &limits).unwrap_err().to_string();
    assert!(refused(Limits::default()).contains("times larger than its compressed form"));
    assert!(refused(Limits { bytes: 1 << 20, ..Limits::default() }).contains("larger than 1048576 bytes"));
    let many = (0..20).fold(Layer::new(), |layer, number| layer.file(&format!("f{number}"), ""));
    let image = sandbox.image("many", &[many]);
    let error = unpack(&sandbox, &image, &Limits { entries: 10, ..Limits::default() }).unwrap_err();
    assert!(error.to_string().contains("more than 10 entries"), "{error}");
}

#[test]
fn a_layer_with_another_digest_or_without_its_end_is_refused() {
    let sandbox = Sandbox::new();
    let layer = Layer::new().file("a", "1");
    let other = sandbox.image_of("web", &[(media_type::LAYER_GZIP, layer.gzip(), Digest::of(b"other"))]);
    let error = unpack(&sandbox, &other, &Limits::default()).unwrap_err();
    assert!(matches!(error, Error::WrongDigest { .. }), "{error}");
    let mut cut = layer.gzip();
    cut.truncate(cut.len() / 2);
    let cut = sandbox.image_of("web", &[(media_type::LAYER_GZIP, cut, layer.digest())]);
    assert!(unpack(&sandbox, &cut, &Limits::default()).is_err());
    // Nothing of an image that is refused stays in the store.
    assert!(unpack::root(&sandbox.store, &cut, &Limits::default()).is_err());
    let left: Vec<_> =
        fs::read_dir(sandbox.store.folder().join("roots")).unwrap().map(|it| it.unwrap().path()).collect();
    assert!(
        left.iter().all(|path| path.extension().is_some_and(|extension| extension == "lock")),
        "{left:?}"
    );
}

#[test]
fn an_image_is_unpacked_once_by_many_threads() {
    let sandbox = Sandbox::new();
    let image = sandbox.image("web", &[Layer::new().file("a", "1"), Layer::new().file("b", "1")]);
    let numbers: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let root = unpack::root(&sandbox.store, &image, &Limits::default()).unwrap();
                    fs::metadata(root.path().join("b")).unwrap().ino()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(numbers.windows(2).all(|pair| pair[0] == pair[1]), "{numbers:?}");
}

/// Entries that meet each other: few names, all kinds, and paths with `..`.
fn entries() -> impl Strategy<Value = Vec<(u8, String, String)>> {
    let part =
        prop::sample::select(vec!["a", "b", "..", ".", "", ".wh.a", ".wh.b", ".wh..wh..opq", "secret"]);
    let path = prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"));
    prop::collection::vec((0..6_u8, path.clone(), path), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_layer_writes_out_of_the_root(first in entries(), second in entries()) {
        let sandbox = Sandbox::new();
        let secret = sandbox.folder.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        let layer = |entries: Vec<(u8, String, String)>| entries.into_iter().fold(Layer::new(), |layer, (kind, path, target)| {
            match kind {
                0 => layer.folder(&path),
                1 => layer.link(&path, &target),
                2 => layer.link(&path, &format!("/{target}")),
                3 => layer.hard_link(&path, &target),
                _ => layer.file(&path, "hostile"),
            }
        });
        let image = sandbox.image("web", &[layer(first), layer(second)]);
        let _ = unpack(&sandbox, &image, &Limits::default());
        prop_assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        prop_assert_eq!(fs::metadata(&secret).unwrap().nlink(), 1);
        prop_assert_eq!(fs::read_dir(sandbox.folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn any_bytes_unpack_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let sandbox = Sandbox::new();
        let image = sandbox.image_of("web", &[(media_type::LAYER, bytes.clone(), Digest::of(&bytes))]);
        let _ = unpack(&sandbox, &image, &Limits::default());
    }
}
