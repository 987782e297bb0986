package pnpm

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/installertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	lock := []byte("lockfileVersion: '9.0'\n\nimporters:\n\n  .:\n    dependencies:\n      express:\n        specifier: ^4\n        version: 4.0.0\n\npackages:\n\n  express@4.0.0:\n    resolution: {integrity: sha512-PYAthTa2m2VKxuvSD3DPC/Gy+U+sOA1LAuT8mkmRuvw+NACSaeXEQ+NHcVF7rONl6qcaxV3Uuemwawk+7+SJLw==}\n\nsnapshots:\n\n  express@4.0.0: {}\n")
	installertest.Run(t, installertest.Sample{
		Installer: New(),
		Asked:     []string{"pnpm add -D x", "pnpm9 i x"},
		Rewrites: []installertest.Rewrite{
			{Command: "pnpm add express", Resolver: "pnpm", Lines: []string{"pnpm add --lockfile-only --ignore-scripts express || exit"}},
			{Command: "pnpm install --frozen-lockfile", Resolver: "pnpm", Lines: []string{"pnpm install --lockfile-only --ignore-scripts --no-frozen-lockfile || exit"}, Not: " --frozen-lockfile"},
		},
		Refused: map[string]string{"pnpm add -g express": "not the project's install"},
		Others:  []string{"pnpm run build"},
		Results: []installertest.Result{{Command: "pnpm add express", Documents: installer.Documents{lockName: lock}, Releases: []string{"express 4.0.0"}}},
	})
}

// TestNoLockfileHoldsWhatIsMadeLater: a release whose file is made when it is first installed is
// part of a plan, and of no lockfile.
func TestNoLockfileHoldsWhatIsMadeLater(t *testing.T) {
	t.Parallel()
	docs := installer.Documents{lockName: []byte("lockfileVersion: '9.0'\npackages:\n  a@1.0.0:\n    resolution: {tarball: https://index.example/a/-/a-1.0.0.made.tgz}\n")}
	r := resolver()
	result, err := r.Read(docs)
	if err != nil || len(result.Choices) != 1 || result.Choices[0].Name != "a" || len(result.Choices[0].Digests) != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	if _, err := r.WriteLock(docs, result); err == nil || !strings.Contains(err.Error(), "no lockfile can hold a 1.0.0") {
		t.Errorf("%v", err)
	}
}
