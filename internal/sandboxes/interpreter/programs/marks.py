# What kernels do to each message, so that a policy's scanning finds in it what it would find
# in its texts: see unmark in lines.go.
import re


def marked(text):
    """A message with a divider behind each control character."""
    return re.sub(r"\\(?:([bfnrt]|u00[01].)|.)", lambda found: found[0] + "\x7f" if found[1] else found[0], text) if "\\" in text else text
