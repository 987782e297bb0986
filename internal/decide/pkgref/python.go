package pkgref

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref/pep440"
)

// Python is what Python's installers get from an index.
const Python Ecosystem = "python"

type pythonFamily struct{ ordinary }

func (pythonFamily) ecosystem() Ecosystem               { return Python }
func (pythonFamily) words() []string                    { return []string{"pip", "uv", "pypi", "py"} }
func (pythonFamily) grammar() grammar                   { return pep440Grammar }
func (pythonFamily) name(written string) (string, bool) { return pythonName(written) }

func (pythonFamily) version(written string) (string, bool) {
	v, ok := pep440.Parse(written)
	if !ok {
		return "", false
	}
	return v.String(), true
}

func (pythonFamily) traits() Traits {
	return Traits{
		OSV: "PyPI", Table: 'p', SpecifierExample: ">=2.31,<3", Extras: true, Epochs: true, Backtracks: true,
		OlderOnPages: true, Archive: ".whl", Sources: true,
	}
}

func (pythonFamily) lockfiles() []Lockfile {
	return []Lockfile{{"*.txt", "requirements with hashes (*.txt)"}, {"uv.lock", "uv.lock"}, {"pylock.toml", "pylock.toml"}, {Name: "pylock.*.toml"}}
}

// pythonName normalises by PEP 503: ASCII letters, digits and runs of "-_.",
// beginning and ending with a letter or digit; lower case, each run one "-".
func pythonName(name string) (string, bool) {
	if name == "" || len(name) > maxName {
		return "", false
	}
	out := make([]byte, 0, len(name))
	run := false
	for i := range len(name) {
		c := name[i]
		switch {
		case isLower(c) || isDigit(c):
		case isUpper(c):
			c += 'a' - 'A'
		case c == '-' || c == '_' || c == '.':
			if len(out) == 0 {
				return "", false
			}
			run = true
			continue
		default:
			return "", false
		}
		if run {
			out = append(out, '-')
			run = false
		}
		out = append(out, c)
	}
	return string(out), !run
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Release is the one key of a release. Python's "1.0" and "1.0.0" are one release,
// whatever a file's name and its metadata say. The version is canonical.
func (r Ref) Release() Ref {
	if grammarOf(r.Ecosystem) != pep440Grammar {
		return r
	}
	epoch, rest, found := strings.Cut(r.Version, "!")
	if !found {
		epoch, rest = "", r.Version
	} else {
		epoch += "!"
	}
	suffix := strings.TrimLeft(rest, "0123456789.")
	release := rest[:len(rest)-len(suffix)]
	release, dot := strings.CutSuffix(release, ".") // of ".dev1", ".post1"
	for strings.HasSuffix(release, ".0") {
		release = strings.TrimSuffix(release, ".0")
	}
	if dot {
		release += "."
	}
	r.Version = epoch + release + suffix
	return r
}
