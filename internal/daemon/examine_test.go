package daemon

import (
	"os"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/config"
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
