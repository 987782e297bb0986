# Judges conditions on arguments by Python's own operators. A line in is
# [operator, the rule's value, the argument]; a line out is 1 (it holds), 0, or E (an error).
import json
import operator
import re
import sys

judge = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "lt": operator.lt,
    "gte": operator.ge,
    "lte": operator.le,
    "in": lambda argument, value: argument in value,
    "not_in": lambda argument, value: argument not in value,
    "contains": lambda argument, value: value in argument,
    "matches": lambda argument, value: re.search(value, str(argument)) is not None,
}
for line in sys.stdin:
    name, value, argument = json.loads(line)
    try:
        print(int(argument is not None and judge[name](argument, value)))
    except Exception:
        print("E")
