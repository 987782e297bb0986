"""Downloads one file of a project from the index that this machine's pip uses, without building anything."""

import sys

from pip._internal.commands import create_command
from pip._internal.models.format_control import FormatControl

project, name = sys.argv[1:]
command = create_command("download")
options, _ = command.parse_args([])
options.format_control = FormatControl(set(), set())
with command.main_context():
    session = command.get_default_session(options)
    finder = command._build_package_finder(options, session)
    link = next(c.link for c in finder.find_all_candidates(project) if c.link.filename == name)
    answer = session.get(link.url_without_fragment)
    answer.raise_for_status()
    with open(name, "wb") as file:
        file.write(answer.content)
