"""Why the tuner has nothing to offer; told to the reader in prose, never raised out of `answer`."""


class CannotTrace(Exception):  # noqa: N818 (an honest limit, not an error)
    """The module does something that the tuner doesn't understand; the message says what."""
