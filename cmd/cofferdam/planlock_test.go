package main

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestALockfilePinsTheSourceOfWhatIsBuilt: beside what came of the plan's own build, and once;
// other releases keep their lines.
func TestALockfilePinsTheSourceOfWhatIsBuilt(t *testing.T) {
	t.Parallel()
	built, source, other := strings.Repeat("1", 64), strings.Repeat("2", 64), strings.Repeat("3", 64)
	lock := []byte("docopt==0.6.2 \\\n    --hash=sha256:" + built + "\nsix==1.17.0 \\\n    --hash=sha256:" + other + "\n")
	made := api.Plan{Releases: []api.PlanRelease{
		{Name: "docopt", Version: "0.6.2", Kind: "built", Digest: "sha256:" + source},
		{Name: "six", Version: "1.17.0", Kind: "wheel", Digest: "sha256:" + other},
	}}
	for range 2 {
		var err error
		if lock, err = withSources(lock, "folder/uv.txt", made); err != nil {
			t.Fatal(err)
		}
		for _, digest := range []string{built, source, other} {
			if strings.Count(string(lock), "--hash=sha256:"+digest) != 1 {
				t.Errorf("%s is not in it once:\n%s", digest, lock)
			}
		}
		if before, _, _ := strings.Cut(string(lock), "six=="); !strings.Contains(before, source) || strings.Contains(before, other) {
			t.Errorf("it pins another release's:\n%s", lock)
		}
	}
	if same, err := withSources(lock, "go.sum", made); err != nil || string(same) != string(lock) {
		t.Errorf("a lockfile of others was changed: %q, %v", same, err)
	}
}
