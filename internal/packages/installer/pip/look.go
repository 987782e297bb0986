package pip

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// lookScript asks for the head of one file of each release, as NAME DIGEST...: that has
// the gateway fetch the file, verify it and look into it, and gives no byte of it. Of a
// release with several files it is the one that this machine would install. The plan tells of a failure here.
const lookScript = `
import json, sys, urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urljoin
try:
    from pip._internal.models.index import PyPI
    from pip._vendor.packaging.tags import sys_tags
    from pip._vendor.packaging.utils import parse_wheel_filename
except ImportError:
    sys.exit("no pip")
import os
base = os.environ.get("PIP_INDEX_URL") or os.environ.get("UV_DEFAULT_INDEX") or PyPI.simple_url
rank = {tag: n for n, tag in enumerate(sys_tags())}
def place(name):
    if not name.endswith(".whl"):
        return 1 << 20
    try:
        return min(rank.get(tag, 1 << 21) for tag in parse_wheel_filename(name)[3])
    except Exception:
        return 1 << 21
def look(words):
    name, digests = words[0], {d.partition(":")[2] for d in words[1:]}
    page = urljoin(base.rstrip("/") + "/", name + "/")
    ask = urllib.request.Request(page, headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(ask, timeout=60) as answer:
        files = [f for f in json.load(answer)["files"] if f["hashes"].get("sha256") in digests]
    files.sort(key=lambda f: place(f["filename"]))
    if files:
        url = urljoin(page, files[0]["url"])
        urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=60).close()
def tried(words):
    try:
        look(words)
    except Exception as e:
        print(words[0], e, file=sys.stderr)
with ThreadPoolExecutor(8) as pool:
    list(pool.map(tried, [a.split() for a in sys.argv[1:]]))
`

// maxLooked bounds the releases whose files are looked into, and maxLookedDigests the
// digests of one.
const (
	maxLooked        = 500
	maxLookedDigests = 60
)

// Look has the gateway look into the files of what a resolver of Python's packages chose.
func Look(choices []installer.Choice) [][]string {
	argv := []string{"python3", "-c", lookScript}
	for _, c := range choices[:min(len(choices), maxLooked)] {
		var digests []string
		for _, d := range c.Digests[:min(len(c.Digests), maxLookedDigests)] {
			if strings.HasPrefix(d, "sha256:") {
				digests = append(digests, d)
			}
		}
		if len(digests) > 0 {
			argv = append(argv, strings.Join(slices.Concat([]string{c.Name}, digests), " "))
		}
	}
	if len(argv) == 3 {
		return nil
	}
	return [][]string{argv}
}
