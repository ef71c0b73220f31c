"""The one error a person's input can cause: a single line saying what, where and what to do."""

LONGEST = 1200  # characters of a message


class BadInput(ValueError):
    """Input from outside (a file, a knob, a request) that cannot be used.

    The message is one line for a person: what is wrong, where, and what to do about it. The command
    line prints it and exits with code 2; a server answers with a 4xx; nothing else stops.
    """

    def __init__(self, message: str) -> None:
        line = " ".join(message.split())
        if not line.isprintable():  # a terminal would obey them
            line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
        if len(line) > LONGEST:  # somebody's name of a megabyte
            line = f"{line[: LONGEST * 3 // 4]} … {line[-LONGEST // 4 :]}"
        super().__init__(line)
