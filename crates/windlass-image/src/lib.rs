//! OCI images without a daemon: build, store, push, pull and unpack images, and serve the images as a registry.
#![forbid(unsafe_code)]
