package lockfile_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
)

// TestWhatAResolverCouldNotPin: a release without a hash is named, beside what is pinned, and
// all else is refused as in a lockfile. Nothing of that kind holds a run.
func TestWhatAResolverCouldNotPin(t *testing.T) {
	const strong = "sha512-PYAthTa2m2VKxuvSD3DPC/Gy+U+sOA1LAuT8mkmRuvw+NACSaeXEQ+NHcVF7rONl6qcaxV3Uuemwawk+7+SJLw=="
	for name, text := range map[string]string{
		"package-lock.json": `{"lockfileVersion": 3, "packages": {"node_modules/a": {"version": "1.0.0"}, "node_modules/b": {"version": "2.0.0", "integrity": "` + strong + `"}}}`,
		"pnpm-lock.yaml":    "lockfileVersion: '9.0'\npackages:\n  a@1.0.0:\n    resolution: {tarball: https://index.example/a/-/a-1.0.0.made.tgz}\n  b@2.0.0:\n    resolution: {integrity: " + strong + "}\n",
	} {
		lock, unpinned, err := lockfile.ParseResolved(name, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(unpinned) != 1 || unpinned[0].Name != "a" || unpinned[0].Version != "1.0.0" || len(lock.Pins) != 1 || len(lock.Pins["b"]) != 1 || len(lock.Pins["b"][0].Digests) != 1 {
			t.Errorf("%s: %v and %v", name, unpinned, lock.Pins)
		}
		if lock, err := lockfile.Parse(name, []byte(text)); err != nil || len(lock.Unpinned["a"]) != 1 || lock.Unpinned["a"][0].Reason != "has no hash" {
			t.Errorf("%s: %+v is noted, %v", name, lock, err)
		}
	}
	for name, text := range map[string]string{
		"package-lock.json": `{"lockfileVersion": 3, "packages": {"node_modules/a": {"version": "1.0.0", "resolved": "git+ssh://git@code.example/a.git#abc"}}}`,
		"pnpm-lock.yaml":    "lockfileVersion: '9.0'\npackages:\n  a@1.0.0:\n    resolution: {type: git, repo: https://code.example/a, commit: abc}\n",
	} {
		if _, unpinned, err := lockfile.ParseResolved(name, []byte(text)); err == nil {
			t.Errorf("%s: a repository is taken for a release: %v", name, unpinned)
		}
	}
}
