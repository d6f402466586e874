"""The journal's own protobuf: what is on disk, apart from what is on the wire."""
