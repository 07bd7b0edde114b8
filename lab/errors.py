"""The one exception for mistakes that a person can mend."""


class UserError(Exception):
    """A wrong flag, an unusable file, a full disk: shown as one sentence, without a traceback.

    The message says what was expected, what came and what to do. Commands print it and exit with 2.
    """
