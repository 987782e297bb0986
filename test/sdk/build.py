"""What a user of the Python SDK does to build templates.

The SDK's own variables say where the daemon is, OTHER_KEY is another client's. Each
line that it prints is a thing that worked.
"""

import json
import os
import subprocess
import tempfile
import uuid

from e2b import Sandbox, Template, wait_for_file, wait_for_port

OTHER = os.environ["OTHER_KEY"]
NAME = "app-" + uuid.uuid4().hex[:12]


def ok(name):
    print("ok " + name, flush=True)


def fails(template, name, *says, step=None):
    lines = []
    try:
        Template.build(template, name, on_build_logs=lambda e: lines.append(e.message))
    except Exception as err:
        for words in says:
            assert words in str(err), f"{err!r} does not say {words!r}: {lines}"
        return lines
    raise AssertionError(f"{name} was built")


context = tempfile.mkdtemp()
os.makedirs(os.path.join(context, "folder", "deep"))
os.symlink("run.sh", os.path.join(context, "link"))
for name, text in {"folder/a.txt": "one", "folder/b.txt": "two", "folder/deep/c.txt": "three", "run.sh": "#!/bin/sh\necho run\n"}.items():
    with open(os.path.join(context, name), "w") as f:
        f.write(text)

lines = []
template = (
    Template(file_context_path=context)
    .from_template("debian")
    .set_workdir("/app")
    .copy("folder/*.txt", "flat")
    .copy("folder", "/srv/whole")
    .copy("run.sh", "/usr/local/bin/hello", user="root", mode=0o755)
    .copy("folder", "/home/user/rooted", user="root")
    .copy("link", "/home/user/resolved", resolve_symlinks=True, gzip=True)
    .copy("link", "/home/user/link", resolve_symlinks=False, gzip=False)
    .set_envs({"GREETING": "good day", "N": "1"})
    .set_envs({"WHOLE": "$GREETING from ${HOME}, $N$", "N": "2"})
    .run_cmd("echo $GREETING > greeting && id -un > who && pwd > where")
    .run_cmd("id -un > /root-was-here", user="root")
    .make_dir("made/below")
    .make_symlink("greeting", "linked")
    .rename("who", "whoever")
    .remove("where")
    .pip_install("iniconfig")
    .set_start_cmd("echo began; touch /tmp/ready; exec python3 -m http.server 8123", wait_for_port(8123))
)
built = Template.build(template, NAME, tags=["v1"], on_build_logs=lambda e: lines.append(e.message))
assert built.template_id and uuid.UUID(built.build_id), built
text = "\n".join(lines)
for words in ("RUN echo $GREETING", "pip install iniconfig", "began", "the template is built"):
    assert words in text, f"the log does not say {words}: {text}"
ok("build")

for ref in (NAME, NAME + ":v1", built.template_id):
    box = Sandbox.create(ref, timeout=120)
    assert box.commands.run("pwd").stdout.strip() == "/app"
    assert box.commands.run("cat greeting linked; cat flat/a.txt flat/b.txt; ls flat; cat /srv/whole/deep/c.txt").stdout.split() == [
        "good", "day", "good", "day", "onetwoa.txt", "b.txt", "three"]
    assert box.commands.run("cat whoever /root-was-here; test -d made/below && ! test -e where").stdout.split() == ["user", "root"]
    assert box.commands.run("hello; echo $GREETING; echo $WHOLE").stdout == "run\ngood day\ngood day from /home/user, 1$\n"
    assert box.commands.run("stat -c '%U %a' /usr/local/bin/hello flat/a.txt").stdout == "root 755\nuser 644\n"
    assert box.commands.run("cd; stat -c '%U %a' rooted rooted/a.txt rooted/deep/c.txt; test ! -h resolved && tail -n 1 resolved; readlink link").stdout == "user 755\nroot 644\nroot 644\necho run\nrun.sh\n"
    assert box.commands.run("python3 -c 'import iniconfig; print(iniconfig.__name__)'").stdout == "iniconfig\n"
    said = box.commands.run("python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8123/greeting').read())\"").stdout
    assert "good day" in said, said
    box.kill()
    ok("sandbox of " + ("the id" if ref == built.template_id else ref[len(NAME):] or "the name"))

assert Template.exists(NAME) and not Template.exists(NAME + "-not")
assert not Template.exists(NAME, api_key=OTHER)
try:
    Sandbox.create(NAME, api_key=OTHER)
    raise AssertionError("another client has a sandbox of it")
except Exception as err:
    assert "no template" in str(err), err
assert not [s for s in Sandbox.list().next_items() if s.metadata]
ok("exists")

status = Template.get_build_status(built)
assert status.status.value == "ready" and status.template_id == built.template_id, status
try:
    Template.get_build_status(built, api_key=OTHER)
    raise AssertionError("another client sees the build")
except Exception as err:
    assert "no build" in str(err), err
ok("status")

made = Template.assign_tags(NAME + ":v1", ["stable", "latest"])
assert made.build_id == built.build_id and made.tags == ["stable", "latest"], made
again = Template.build(Template().from_template(NAME).apt_install(["gawk", "plocate"], no_install_recommends=True).run_cmd("cat greeting > second"), NAME + ":v2")
tags = {t.tag: t.build_id for t in Template.get_tags(NAME)}
assert tags == {"default": built.build_id, "v1": built.build_id, "stable": built.build_id, "v2": again.build_id}, tags
Template.remove_tags(NAME, ["v1", "stable"])
assert {t.tag for t in Template.get_tags(NAME)} == {"default", "v2"}
for bad in (":x", NAME + ":", "a b"):
    try:
        Template.assign_tags(NAME, bad)
        raise AssertionError(f"the tag {bad!r} was assigned")
    except Exception as err:
        assert "not valid" in str(err), err
box = Sandbox.create(NAME + ":v2")
assert box.commands.run("cat second; cat folder 2>&1 || true").stdout.startswith("good day")
assert box.commands.run("gawk 'BEGIN { print 1 + 1 }' && ls -A /var/cache | grep packages || true").stdout == "2\n"
agent = box.commands.run("stat -c '%U:%G %a' /usr/bin/plocate; plocate --version | head -1 | cut -c1-7; grep Cap /proc/self/status | tr -d '\\n\\t'; chown 7:8 $(mktemp) 2>&1 || true", user="root")
assert agent.stdout.startswith("root:plocate 2755\nplocate\n" + "".join(f"Cap{n}:{'0' * 16}" for n in ("Inh", "Prm", "Eff", "Bnd", "Amb"))) and "not permitted" in agent.stdout, agent
box.kill()
listed = subprocess.run([os.environ["COFFERDAM"], "snapshots", "list", "--json"], capture_output=True, text=True, check=True)
ledgers = [{p["name"]: p for p in s["system"]} for s in json.loads(listed.stdout) if s.get("system")]
assert len(ledgers) == 1 and {"gawk", "libsigsegv2", "plocate"} <= set(ledgers[0]), listed.stdout
assert len(ledgers[0]["gawk"]["sha256"]) == 64 and ledgers[0]["gawk"]["version"], ledgers
ok("tags, and a template of a template")

broken = NAME + "-broken"
lines = fails(Template().from_template("debian").run_cmd("true").run_cmd("echo seen; echo why >&2; exit 3"), broken, "exit code 3", "why")
assert "seen" in lines, lines
fails(Template().from_template("debian").pip_install("attrs"), broken, "exit code")
fails(Template().from_template("debian").set_user("nobody-here"), broken, "no user")
fails(Template().from_template("debian").set_workdir("/etc/passwd"), broken, "no directory")
fails(Template().from_template("debian").apt_install("cofferdam-has-no-such-package"), broken, "Unable to locate package")
fails(Template().from_image("ubuntu:22.04"), broken, "pulls no images")
fails(Template().from_template("not-there"), broken, "no template")
fails(Template().from_template("debian").set_start_cmd("./not-there", wait_for_file("/tmp/never")), broken, "start command failed")
assert not Template.exists(broken)
ok("what fails says why, and leaves nothing")

info = Template.build_in_background(Template().from_debian_image().run_cmd("sleep 1").pip_install("iniconfig", g=False).set_user("root").set_workdir("/opt"), NAME + "-bg")
assert Template.get_build_status(info).status.value in ("waiting", "building")
while (status := Template.get_build_status(info)).status.value in ("waiting", "building"):
    pass
assert status.status.value == "ready", status
box = Sandbox.create(NAME + "-bg")
assert box.commands.run("id -un; pwd").stdout == "root\n/opt\n"
assert box.commands.run("id -un; python3 -c 'import iniconfig'", user="user").stdout == "user\n"
box.kill()
ok("in the background")

for info in (built, info):
    assert Sandbox.delete_snapshot(info.template_id)
assert not Template.exists(NAME) and not Template.exists(NAME + "-bg")
ok("delete")
