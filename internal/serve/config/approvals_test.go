package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestApprovals(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	const text = "approvals: { pending_expires: 3d, webhooks: [ { url: https://hooks.example/x, secret_file: /k, format: slack, events: [ asked ] } ] }\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	want := Approvals{
		PendingExpires: Span(72 * time.Hour),
		Webhooks:       []Webhook{{URL: "https://hooks.example/x", SecretFile: "/k", Format: "slack", Events: []string{"asked"}}},
	}
	if diff := cmp.Diff(want, c.Approvals); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, wrong := range []string{"approvals: { pending_expires: 3 }", "approvals: { webhooks: [ { secret: x } ] }"} {
		if err := os.WriteFile(path, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func TestParseSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "2w": 336 * time.Hour, "90s": 90 * time.Second, "5m": 5 * time.Minute, "1h": time.Hour} {
		if got, err := ParseSpan(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "0d", "-1d", "1.5d", "1y", "1d12h", "99999999w", "36501d", "0x10d", "1_0d"} {
		if got, err := ParseSpan(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestWebhookSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if secret, err := (Webhook{SecretFile: write("good", " 0123456789abcdef\n", 0o600)}).Secret(nil); err != nil || string(secret) != "0123456789abcdef" {
		t.Errorf("%q %v", secret, err)
	}
	if secret, err := (Webhook{}).Secret(nil); err != nil || secret != nil {
		t.Errorf("%q %v", secret, err)
	}
	for _, path := range []string{write("short", "0123456789abcde\n\n\n", 0o600), write("open", "0123456789abcdef", 0o644), dir, "relative", filepath.Join(dir, "none")} {
		if secret, err := (Webhook{SecretFile: path}).Secret(nil); err == nil {
			t.Errorf("%s: %q", path, secret)
		}
	}
}
