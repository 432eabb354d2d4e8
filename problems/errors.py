"""The user's own mistakes, reported in one line with the remedy."""


class UsageError(Exception):
    """A mistake of the user's: its text is one line that says what is wrong and how to fix it.

    Command lines print the text on stderr, without a traceback, and leave with exit code 2.
    """


class UnknownProblemError(UsageError):
    """The suite has no problem of that name."""


class UndecodableError(UsageError):
    """A Python file is not text in UTF-8 or in the encoding that it declares."""


def first_line(error: BaseException) -> str:
    """What an error says, for a message of one line."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
