"""The plan document as frozen types, its one codec, and its JSON Schema."""
