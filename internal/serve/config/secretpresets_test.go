package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/file"
)

// TestSecretsOfPresets: a preset says all of its secret but where it comes from.
func TestSecretsOfPresets(t *testing.T) {
	t.Parallel()
	c, err := loadedSecrets(t, `
  - { preset: anthropic, file: /etc/key }
  - { preset: openai, name: another, environment: KEY, keep: 1m }
`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.DeclaredSecrets(nil)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	if s := all[0]; s.Name != "anthropic" || !slices.Equal(s.Hosts, []string{"api.anthropic.com"}) || s.Form.Name != "anthropic" || s.Source != file.Path("/etc/key") ||
		!reflect.DeepEqual(s.How, exchange.Manner{Header: "X-Api-Key", Where: []exchange.Place{exchange.Header}}) {
		t.Errorf("%+v", s)
	}
	if s := all[1]; s.Name != "another" || s.How.Header != "Authorization" || s.Keep != time.Minute {
		t.Errorf("%+v", s)
	}
	for text, want := range map[string]string{
		"preset: github, environment: A":                           `secrets[0].preset is "github", which is no preset with a key; such are anthropic, gemini, openai`,
		"preset: anthropic, hosts: [evil.example], environment: A": "secrets[0].preset anthropic says hosts",
		"preset: anthropic, header: Cookie, environment: A":        "secrets[0].preset anthropic says hosts",
		"preset: anthropic":                                        "secrets[0] has 0 of environment",
	} {
		if _, err := loadedSecrets(t, "  - { "+text+" }\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
