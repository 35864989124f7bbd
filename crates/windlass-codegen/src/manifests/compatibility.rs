//! Changes of CustomResourceDefinitions that break clients or stored objects.
