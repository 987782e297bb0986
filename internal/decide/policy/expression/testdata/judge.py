"""What Python's re finds: for each line of standard input, a JSON list of an
expression and texts, one line of output: a character per text, 0 or 1; or "refused"."""

import json
import re
import sys
import warnings

warnings.simplefilter("ignore")
for line in sys.stdin:
    expression, texts = json.loads(line)
    try:
        compiled = re.compile(expression)
    except (re.error, OverflowError, ValueError, RecursionError):
        print("refused")
        continue
    print("".join("1" if compiled.search(text) else "0" for text in texts) + ".")
