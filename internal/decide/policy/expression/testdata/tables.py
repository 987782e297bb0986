"""Prints, as Python knows them: the characters of \\d, \\s and \\w and those that
its Unicode has no character for, in ranges, and the groups of characters that
are one where case does not count. classes.txt is its output."""

import re
import sys
import unicodedata

everything = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]


def ranges(name, has):
    spans = []
    for c in filter(has, everything):
        if spans and spans[-1][1] == ord(c) - 1:
            spans[-1][1] += 1
        else:
            spans.append([ord(c), ord(c)])
    print(name, " ".join(f"{low:x}-{high:x}" for low, high in spans))


print("# Unicode", unicodedata.unidata_version)
for name in "dsw":
    ranges(name, re.compile("\\" + name).match)
ranges("unknown", lambda c: unicodedata.category(c) == "Cn")
cased = [c for c in everything if c.lower() != c or c.upper() != c]
for c in cased:
    same = re.findall("(?i)" + re.escape(c), "".join(cased))
    print("case", f"{ord(c):x}", " ".join(f"{ord(o):x}" for o in same))
