package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// TestConfigOfAnotherUser: the file names programs that are run with the daemon's rights, so that
// another user's is not believed; nor are directories in which another could put one.
func TestConfigOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("takes root to give files to others")
	}
	for name, test := range map[string]struct {
		do   func(state string) error
		want bool // it is believed
	}{
		"ours":                  {func(string) error { return nil }, true},
		"another user's":        {func(state string) error { return os.Chown(filepath.Join(state, "config.yaml"), 65534, 65534) }, false},
		"writable":              {func(state string) error { return os.Chmod(filepath.Join(state, "config.yaml"), 0o622) }, false},
		"in another's":          {func(state string) error { return os.Chown(filepath.Dir(state), 65534, 65534) }, false},
		"in one that is theirs": {func(state string) error { return os.Chown(state, 65534, 65534) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "above", "state")
			if err := errors.Join(os.MkdirAll(state, 0o700), os.WriteFile(filepath.Join(state, "config.yaml"), []byte("default_template: host\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if err := test.do(state); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(filepath.Join(state, "config.yaml"))
			if (err == nil) != test.want || err != nil && !errors.Is(err, fault.ErrForbidden) {
				t.Errorf("%v, %v", c.DefaultTemplate, err)
			}
			t.Setenv("COFFERDAM_STATE", state)
			t.Setenv("COFFERDAM_RUNTIME", filepath.Join(t.TempDir(), "run"))
			_, err = config.DefaultPaths()
			theirs := strings.Contains(name, "in ")
			if (err != nil) != theirs {
				t.Errorf("its directories: %v", err)
			}
		})
	}
}
