package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
	"github.com/cofferdam-dev/cofferdam/internal/network/authority"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// TestWhatCanNotBeServedIsFound before anything is started, and New refuses the same.
func TestWhatCanNotBeServedIsFound(t *testing.T) {
	t.Parallel()
	hook := func(url string) config.Approvals {
		return config.Approvals{Webhooks: []config.Webhook{{URL: url, Format: "slack"}}}
	}
	for name, c := range map[string]struct {
		cfg     config.Config
		want    string
		passing bool
	}{
		"right":                    {config.Config{DefaultTemplate: "host", Approvals: hook("https://hooks.example/x"), Pool: []config.Pool{{Template: "debian", Size: 1}}}, "", false},
		"webhook in plain text":    {config.Config{Approvals: hook("http://hooks.example/x")}, "approvals.webhooks[0]", false},
		"webhook that is no URL":   {config.Config{Approvals: hook("hooks")}, "approvals.webhooks[0].url", false},
		"unknown default template": {config.Config{DefaultTemplate: "debain"}, "default_template", false},
		"pool, unknown template":   {config.Config{Pool: []config.Pool{{Template: "debain", Size: 1}}}, "pool[0].template", false},
		"pool, unknown policy":     {config.Config{Pool: []config.Pool{{Policy: "nobody", Size: 1}}}, "pool[0].policy", true},
	} {
		dir := t.TempDir()
		paths := config.Paths{State: dir, Runtime: dir}
		must(t, os.MkdirAll(paths.Policies(), 0o700))
		found := Examine(paths, c.cfg)
		err := (&Daemon{opts: Options{Paths: paths, Config: c.cfg, Log: quiet()}}).examine(t.Context())
		switch {
		case c.want == "" && (len(found) > 0 || err != nil):
			t.Errorf("%s: %v (%v)", name, found, err)
		case c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Err.Error(), c.want) || found[0].Passing != c.passing):
			t.Errorf("%s: %v", name, found)
		case c.want != "" && (err == nil) != c.passing:
			t.Errorf("%s: the start says %v", name, err)
		}
	}
}

// TestWhatNewReadsIsFound: the files that a start reads, and the upstreams, are looked
// at before the daemon that runs is asked to end. The control is the first case.
func TestWhatNewReadsIsFound(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, path, text string, mode os.FileMode) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), mode))
	}
	key, err := checkpoint.Generate("")
	must(t, err)
	for name, c := range map[string]struct {
		make    func(t *testing.T, p config.Paths, cfg *config.Config)
		want    string
		passing bool
	}{
		"right": {make: func(t *testing.T, p config.Paths, _ *config.Config) {
			t.Helper()
			write(t, p.AuditKey(), string(key.Secret()), 0o600)
			write(t, filepath.Join(p.Audit(), "checkpoints"), "signed", 0o600)
		}},
		"a key that others can read": {make: func(t *testing.T, p config.Paths, _ *config.Config) {
			t.Helper()
			write(t, p.AuditKey(), string(key.Secret()), 0o644)
		}, want: "its mode is 0644"},
		"no key, and signed checkpoints": {make: func(t *testing.T, p config.Paths, _ *config.Config) {
			t.Helper()
			write(t, filepath.Join(p.Audit(), "checkpoints"), "signed", 0o600)
		}, want: "is missing, and its checkpoints are signed"},
		"a clock's mark that is none": {make: func(t *testing.T, p config.Paths, _ *config.Config) {
			t.Helper()
			write(t, p.Clock(), "{}", 0o600)
		}, want: "what time it was"},
		"an upstream's certificates": {make: func(t *testing.T, _ config.Paths, cfg *config.Config) {
			t.Helper()
			cfg.Upstreams = []config.Upstream{{Ecosystem: "python", Index: "https://index.example/simple/", CAFile: "/there/is/none"}}
		}, want: "upstreams[0]"},
		"an upstream's address that is none": {make: func(t *testing.T, _ config.Paths, cfg *config.Config) {
			t.Helper()
			cfg.Upstreams = []config.Upstream{{Ecosystem: "python", Index: "https://index.example/simple/", Address: "here"}}
		}, want: `upstreams[0] can't be used: the upstream's address is not an IP address and a port`},
		"an upstream's proxy of another kind": {make: func(t *testing.T, _ config.Paths, cfg *config.Config) {
			t.Helper()
			cfg.Upstreams = []config.Upstream{{Ecosystem: "python", Index: "https://index.example/simple/", Proxy: "ftp://me:pass-word@there"}}
		}, want: "upstreams[0] can't be used: the upstream's proxy is not an http or https URL"},
		"a checksum database without a key": {make: func(t *testing.T, _ config.Paths, cfg *config.Config) {
			t.Helper()
			cfg.Upstreams = []config.Upstream{{Ecosystem: "go", Index: "https://proxy.example", Log: "sums.example+00000000+AAAA"}}
		}, want: "upstreams[0]", passing: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			paths, cfg := config.Paths{State: dir, Runtime: dir}, config.Config{}
			must(t, os.MkdirAll(paths.Policies(), 0o700))
			c.make(t, paths, &cfg)
			found := Examine(paths, cfg)
			if c.want == "" {
				if len(found) > 0 {
					t.Errorf("found %v", found)
				}
				return
			}
			if len(found) != 1 || !strings.Contains(found[0].Err.Error(), c.want) || found[0].Passing != c.passing {
				t.Errorf("found %v; want %q", found, c.want)
			}
		})
	}
}

// TestACAThatCanNotBeReadIsFound, one that Open refuses too.
func TestACAThatCanNotBeReadIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	paths := config.Paths{State: dir, Runtime: dir}
	ca, err := authority.Open(paths.Authority())
	must(t, err)
	_, err = ca.Certificate(t.Context(), []string{"index.example"})
	must(t, err)
	if found := Examine(paths, config.Config{}); len(found) > 0 {
		t.Fatalf("INCONCLUSIVE: a CA that is whole: %v", found)
	}
	files, err := os.ReadDir(paths.Authority())
	must(t, err)
	for _, f := range files {
		must(t, os.WriteFile(filepath.Join(paths.Authority(), f.Name()), []byte("x"), 0o600))
	}
	found := Examine(paths, config.Config{})
	if _, err := authority.Open(paths.Authority()); err == nil || len(found) != 1 || found[0].Err.Error() != err.Error() {
		t.Errorf("found %v; Open says %v", found, err)
	}
}
