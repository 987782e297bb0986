package pkgref_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// TestLockfileOf: each name is one ecosystem's, and what is none's is nobody's.
func TestLockfileOf(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]pkgref.Ecosystem{
		"requirements.txt": pkgref.Python, "a.txt": pkgref.Python, ".txt": pkgref.Python, "uv.lock": pkgref.Python,
		"pylock.toml": pkgref.Python, "pylock.dev.toml": pkgref.Python,
		"package-lock.json": pkgref.Node, "npm-shrinkwrap.json": pkgref.Node, "pnpm-lock.yaml": pkgref.Node,
		"go.sum": pkgref.Go, "go.work.sum": pkgref.Go,
		"": "", "pylock.lock": "", "xpylock.toml": "", "yarn.lock": "", "txt": "", "UV.lock": "", "uv.lock.bak": "",
	} {
		if got, ok := pkgref.LockfileOf(base); got != want || ok != (want != "") {
			t.Errorf("%q is a lockfile of %q, %v; want %q", base, got, ok, want)
		}
	}
	const known = "requirements with hashes (*.txt), uv.lock, pylock.toml, package-lock.json, npm-shrinkwrap.json, pnpm-lock.yaml, go.sum and go.work.sum"
	if got := pkgref.KnownLockfiles(); got != known {
		t.Errorf("known are %s", got)
	}
}

// TestAlias: what has no aliases says so of each name.
func TestAlias(t *testing.T) {
	t.Parallel()
	for _, e := range append(pkgref.Ecosystems(), "none") {
		of, rang := pkgref.Alias(e, "a", "npm:b@^1")
		if alias := e == pkgref.Node; alias != (of == "b" && rang == "^1") || !alias && (of != "a" || rang != "npm:b@^1") {
			t.Errorf("%s: %q, %q", e, of, rang)
		}
	}
}
