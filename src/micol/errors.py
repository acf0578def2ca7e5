"""What the library raises when the user, not the program, has to act."""


class MicolError(Exception):
    """One sentence that says what is wrong, where, what was expected and what to do."""


class UsageError(MicolError):
    """The request itself makes no sense (a malformed meta-path, an impossible option)."""
