"""Unpacks archives as pip does: a line of JSON for each, and one in answer."""

import json
import logging
import os
import sys

from pip._internal.models.scheme import Scheme
from pip._internal.operations.install.wheel import install_wheel
from pip._internal.utils.unpacking import unpack_file

# A wheel is installed with every scheme in a folder of its own but the two that
# are one in practice.
SCHEMES = {"purelib": "site", "platlib": "site", "headers": "include", "scripts": "bin", "data": "data"}


def install(file: str, dest: str) -> None:
    scheme = Scheme(**{key: os.path.join(dest, folder) for key, folder in SCHEMES.items()})
    name = os.path.basename(file).split("-")[0]
    install_wheel(name, file, scheme, name, pycompile=False, warn_script_location=False)


def main() -> None:
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        order = json.loads(line)
        answer = {}
        try:
            if order["file"].endswith(".whl"):
                install(order["file"], order["dest"])
            else:
                unpack_file(order["file"], order["dest"])
        except BaseException as err:  # whatever it is, it installed nothing
            answer["error"] = f"{type(err).__name__}: {err}"
        print(json.dumps(answer), flush=True)


main()
