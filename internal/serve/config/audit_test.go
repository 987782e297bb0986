package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAuditSettings(t *testing.T) {
	for text, wrong := range map[string]string{
		"audit: { key_file: /k, publish: { file: /f, command: [/c, a], url: 'https://vault.example/x', every: 90s } }": "",
		"audit: { key_file: k }":                        "audit.key_file",
		"audit: { publish: { file: f } }":               "audit.publish.file",
		"audit: { publish: { command: [''] } }":         "audit.publish.command",
		"audit: { publish: { url: 'ftp://a.example' }}": "audit.publish.url",
		"audit: { publish: { every: 1m } }":             "audit.publish.every",
		"audit: { publish: { evry: 1m } }":              "evry",
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(path)
		switch {
		case wrong == "" && (err != nil || !c.Audit.Publish.Wanted() || c.Audit.KeyFile != "/k"):
			t.Errorf("%s: %+v, %v", text, c.Audit, err)
		case wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%s: %v, want an error with %q", text, err, wrong)
		}
	}
}
