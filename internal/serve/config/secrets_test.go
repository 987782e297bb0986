package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/environ"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/file"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/keyring"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/program"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// loadedSecrets loads a file with these lines under secrets.
func loadedSecrets(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("secrets:\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

func TestSecrets(t *testing.T) {
	c, err := loadedSecrets(t, `
  - { name: one, hosts: [API.example, "*.corp.example"], environment: ONE_KEY, placeholder: openai, header: authorization }
  - { name: two, hosts: [git.example], file: /etc/two, where: [basic, query], keep: 30s }
  - { name: three, hosts: [api.example], command: [/usr/bin/pass, show, it] }
  - { name: five, hosts: [api.example], oauth: { token_url: "https://login.example/token", client_id: a, client_secret: { file: /etc/own }, scopes: [read], parameters: { audience: x } } }
  - { name: six, hosts: [api.example], keep: 1h, header: x-token, oauth: { token_url: "https://login.example/token", client_id: a, client_secret: { vault: { address: "https://vault.example:8200", path: team/key, field: key, token_file: /etc/token } } } }
  - { name: seven, hosts: [s3.example], file: /etc/seven, aws: { access_key_id: AKIA0 } }
  - { name: eight, hosts: [s3.example], command: [/usr/bin/keys], aws: {} }
  - { name: nine, hosts: [api.example], keyring: { service: model, username: me } }
  - { name: four, hosts: [api.example], vault: { address: "https://vault.example:8200", path: team/key, field: key, token_file: /etc/token } }
`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.DeclaredSecrets(nil)
	if err != nil || len(all) != 9 {
		t.Fatal(all, err)
	}
	one, two := all[0], all[1]
	if one.Name != "one" || !slices.Equal(one.Hosts, []string{"api.example", "*.corp.example"}) || one.Form.Name != "openai" || one.Keep != 5*time.Minute ||
		!reflect.DeepEqual(one.How, exchange.Manner{Header: "Authorization", Format: "Bearer {secret}"}) || one.Source != environ.Variable("ONE_KEY") {
		t.Errorf("%+v", one)
	}
	if !reflect.DeepEqual(two.How, exchange.Manner{Where: []exchange.Place{exchange.Basic, exchange.Query}}) || two.Form.Name != "plain" || two.Keep != 30*time.Second || two.Source != file.Path("/etc/two") {
		t.Errorf("%+v", two)
	}
	if !reflect.DeepEqual(all[2].Source, &program.Command{Argv: []string{"/usr/bin/pass", "show", "it"}}) || all[8].Source == nil {
		t.Errorf("%+v", all[2:])
	}
	if five := all[3]; five.Source == nil || five.Keep != 24*time.Hour || !reflect.DeepEqual(five.How, exchange.Manner{Header: "Authorization", Format: "Bearer {secret}"}) {
		t.Errorf("%+v", five)
	}
	if seven := all[5]; seven.How.Sign != exchange.SigV4 || seven.KeyID != "AKIA0" || seven.Form.Name != "aws" || all[6].How.Sign != exchange.SigV4 || all[6].KeyID != "" {
		t.Errorf("%+v", all[5:7])
	}
	if nine := all[7]; !reflect.DeepEqual(nine.Source, keyring.Item{Attributes: map[string]string{"service": "model", "username": "me"}}) {
		t.Errorf("%+v", nine)
	}
	if six := all[4]; six.Source == nil || six.Keep != time.Hour || !reflect.DeepEqual(six.How, exchange.Manner{Header: "X-Token", Format: "{secret}"}) {
		t.Errorf("%+v", six)
	}
}

// TestWrongSecrets: each is one sentence that says where. The first is the control.
func TestWrongSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"name: a, hosts: [h.example], environment: A":                                                                                   "",
		"name: a/b, hosts: [h.example], environment: A":                                                                                 `secrets[0].name is "a/b"`,
		"name: a, environment: A":                                                                                                       "secrets[0].hosts is missing",
		`name: a, hosts: ["h.example:443"], environment: A`:                                                                             `secrets[0].hosts has "h.example:443"`,
		`name: a, hosts: ["*"], environment: A`:                                                                                         `secrets[0].hosts has "*"`,
		`name: a, hosts: ["*.com"], environment: A`:                                                                                     `secrets[0].hosts has "*.com"`,
		"name: a, hosts: [h.example]":                                                                                                   "secrets[0] has 0 of environment, file, command, vault, keyring and oauth",
		"name: a, hosts: [h.example], environment: A, file: /a":                                                                         "secrets[0] has 2 of environment, file, command, vault, keyring and oauth",
		"name: a, hosts: [h.example], file: a":                                                                                          `secrets[0].file is "a"; it is an absolute path`,
		"name: a, hosts: [h.example], command: [pass]":                                                                                  `secrets[0].command begins with "pass"`,
		"name: a, hosts: [h.example], environment: A, placeholder: gold":                                                                `secrets[0].placeholder is "gold"`,
		"name: a, hosts: [h.example], environment: A, where: [cookie]":                                                                  `secrets[0].where has "cookie"`,
		"name: a, hosts: [h.example], environment: A, header: Host":                                                                     "secrets[0].header Host is not for secrets",
		"name: a, hosts: [h.example], vault: { address: 'http://v.example', path: a, field: b, token_file: /t }":                        "secrets[0].vault.address must begin with https://",
		"name: a, hosts: [h.example], vault: { address: 'https://v.example', path: a, field: b }":                                       "secrets[0].vault.token_file is",
		"name: a, hosts: [h.example], file: /a, aws: { access_key_id: A/B }":                                                            `secrets[0].aws.access_key_id is "A/B"`,
		"name: a, hosts: [h.example], file: /a, aws: {}, where: [header]":                                                               "secrets[0] signs requests, and so has none of header",
		"name: a, hosts: [h.example], file: /a, oauth: { token_url: 'https://l.example', client_id: a, client_secret: { file: /a } }":   "secrets[0] has 2 of environment, file, command, vault, keyring and oauth",
		"name: a, hosts: [h.example], oauth: { token_url: 'https://l.example', client_id: a }":                                          "secrets[0].oauth.client_secret has 0 of environment, file, command, vault and keyring",
		"name: a, hosts: [h.example], oauth: { token_url: 'https://l.example', client_id: a, client_secret: { file: a } }":              `secrets[0].oauth.client_secret.file is "a"`,
		"name: a, hosts: [h.example], oauth: { token_url: 'http://l.example', client_id: a, client_secret: { file: /a } }":              "secrets[0].oauth.token_url must begin with https://",
		"name: a, hosts: [h.example], oauth: { token_url: 'https://l.example', client_id: a, ca_file: a, client_secret: { file: /a } }": "secrets[0].oauth.ca_file is",
	} {
		_, err := loadedSecrets(t, "  - { "+text+" }\n")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || fault.Sentence(err, "") == "") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := loadedSecrets(t, strings.Repeat("  - { name: a, hosts: [h.example], environment: A }\n", 2)); err == nil || !strings.Contains(err.Error(), `secrets[1].name "a" is declared before`) {
		t.Error(err)
	}
}
