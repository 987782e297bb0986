package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// TestFilesThatOnlyItsUserMayHave: each file of the state directory that has keys, people's data
// or who may do what in it is refused when it is a link, no file, another user's or open to
// others; as it is made, it is taken.
func TestFilesThatOnlyItsUserMayHave(t *testing.T) {
	t.Parallel()
	paths := func(t *testing.T) config.Paths {
		t.Helper()
		dir := t.TempDir()
		return config.Paths{State: dir, Runtime: dir}
	}
	files := map[string]func(p config.Paths) string{
		"the log's key":        config.Paths.AuditKey,
		"the findings' key":    config.Paths.FindingsKey,
		"the access key":       config.Paths.AccessKey,
		"tokens":               config.Paths.Tokens,
		"tokens, not yet in":   func(p config.Paths) string { return p.Tokens() + "-wal" },
		"tokens were made":     config.Paths.TokensMade,
		"sandboxes":            config.Paths.Sandboxes,
		"approvals":            config.Paths.Approvals,
		"the CA":               func(p config.Paths) string { return filepath.Join(p.Authority(), "ca-1.key") },
		"a hosts' CA":          func(p config.Paths) string { return filepath.Join(p.HostAuthorities(), "ab12", "ca-1.key") },
		"the API's CA":         func(p config.Paths) string { return filepath.Join(p.APIAuthority(), "ca-1.key") },
		"the log":              func(p config.Paths) string { return filepath.Join(p.Audit(), "000000000000.jsonl") },
		"personal data":        func(p config.Paths) string { return filepath.Join(p.Audit(), "000000000000.personal") },
		"the last checkpoint":  config.Paths.AuditSeen,
		"the clock":            config.Paths.Clock,
		"written directories":  config.Paths.Written,
		"hidden files":         config.Paths.Hidden,
		"what has not ended":   config.Paths.Unended,
		"allowed projects":     config.Paths.Projects,
		"an SSH key":           func(p config.Paths) string { return filepath.Join(p.State, "ssh", "sb1", "id_ed25519") },
		"a registry's address": func(p config.Paths) string { return filepath.Join(p.Upstreams(), "upstream-python.json") },
	}
	wrong := map[string]struct {
		make func(t *testing.T, path string)
		says string // "": nothing
	}{
		"as it is made":      {ofMode(0o600), ""},
		"that others read":   {ofMode(0o644), "its mode is 0644"},
		"that a group reads": {ofMode(0o640), "its mode is 0640"},
		"a link": {func(t *testing.T, path string) {
			t.Helper()
			write(t, path+".elsewhere", 0o600)
			if err := os.Symlink(path+".elsewhere", path); err != nil {
				t.Fatal(err)
			}
		}, "it is a link"},
		"a directory": {func(t *testing.T, path string) {
			t.Helper()
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "it is no regular file"},
		"another user's": {func(t *testing.T, path string) {
			t.Helper()
			write(t, path, 0o600)
			if err := os.Chown(path, 65_534, 65_534); err != nil {
				processtest.NeedRoot(t, err)
			}
		}, "it belongs to another user"},
	}
	for name, of := range files {
		for how, w := range wrong {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				p := paths(t)
				path := of(p)
				w.make(t, path)
				err := p.CheckKept()
				switch {
				case w.says == "" && err != nil:
					t.Errorf("it is refused: %v", err)
				case w.says != "" && (err == nil || !strings.Contains(err.Error(), w.says) || !strings.Contains(err.Error(), path)):
					t.Errorf("it says %v; want %q and the path", err, w.says)
				}
			})
		}
	}
}

func ofMode(mode os.FileMode) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		write(t, path, mode)
	}
}

func write(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
