package template

import (
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestWhatANormalUserLacks: a normal user is told what to install, and what else there
// is. A template of root's is not among that: each user has their own.
func TestWhatANormalUserLacks(t *testing.T) {
	b := &debianBuild{store: NewStore(t.TempDir(), Options{FindTool: useTools(t, t.TempDir())}), layout: layout{name: "dev"}}
	for lacks, paths := range map[string][2]string{
		"install -y mmdebstrap":  {"/usr/sbin/debootstrap", "/usr/bin/mkfs.erofs"},
		"install -y erofs-utils": {"/usr/bin/mmdebstrap", ""},
		"install -y uidmap":      {"/usr/bin/mmdebstrap", "/usr/bin/mkfs.erofs"},
	} {
		b.tool, b.mkfs = paths[0], paths[1]
		wantFault(t, b.checkRootless(), lacks)
	}
	wantFault(t, toolFault(errors.New("exit status 25"), "mmdebstrap", "dev", []string{"E: invalid /etc/subuid"}, "log", t.TempDir()), "line for the user")
}

func wantFault(t *testing.T, err error, what string) {
	t.Helper()
	if !errors.Is(err, fault.ErrUnavailable) {
		t.Fatalf("%s: %v", what, err)
	}
	for _, want := range []string{what, "sudo cofferdam template build dev, then sudo cofferdam run", "use the template host"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
