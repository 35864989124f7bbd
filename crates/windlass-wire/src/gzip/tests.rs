use std::io::Read;

use super::*;

#[test]
fn large_bodies_are_compressed_for_those_who_ask() {
    let body = Bytes::from(vec![b'x'; GZIP_FROM]);
    let (compressed, done) = maybe_gzip(Some("deflate, gzip;q=0.5"), body.clone());
    assert!(done && compressed.len() < body.len());
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&compressed[..]).read_to_end(&mut plain).expect("gzip");
    assert_eq!(plain, body);
    assert!(!maybe_gzip(None, body.clone()).1);
    assert!(!maybe_gzip(Some("identity"), body).1);
    assert!(!maybe_gzip(Some("gzip"), Bytes::from(vec![b'x'; GZIP_FROM - 1])).1);
}
