"""The one error a person's input can cause: a single line saying what, where and what to do."""


class BadInput(ValueError):
    """Input from outside (a file, a knob, a request) that cannot be used.

    The message is one line for a person: what is wrong, where, and what to do about it. The command
    line prints it and exits with code 2; a server answers with a 4xx; nothing else stops.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
