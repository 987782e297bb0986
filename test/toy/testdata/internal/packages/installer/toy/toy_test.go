package toy

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/installertest"
)

func TestConformance(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	installertest.Run(t, installertest.Sample{
		Installer: New(),
		Rewrites:  []installertest.Rewrite{{Command: "toy get good@1.0.0", Resolver: "toy", Lines: []string{"toy get --lock-only good@1.0.0 || exit"}}},
		Others:    []string{"toy list", "toy"},
		Results: []installertest.Result{{
			Command: "toy get good", Documents: installer.Documents{lockName: []byte("good 1.0.0 " + digest + "\nother 2.0.0 " + digest + "\n")},
			Releases: []string{"good 1.0.0", "other 2.0.0"},
		}},
		Wanted:    [2]installer.Wanted{{Name: "good", Version: "1.0.0"}, {Name: "other"}},
		Asked:     []string{"toy get x", "toy -q get x"},
		Manifests: map[string]installertest.Manifest{"toys.list": {Text: "good\nother\n", Roots: []string{"good", "other"}}},
	})
}
