package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func load(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

func TestUpstreams(t *testing.T) {
	t.Parallel()
	c, err := load(t, `
upstreams:
  - { ecosystem: node, index: auto }
  - { ecosystem: node, index: "https://ci:secret@npm.corp.example/acme", token: t }
  - { ecosystem: go, index: "https://go.example/", log: "sum.example+0+k", log_url: "https://sum.example" }
namespaces:
  - { ecosystem: node, pattern: "@acme/*", upstream: "https://npm.corp.example/acme/" }
  - { ecosystem: node, pattern: left-pad, upstream: auto }
`)
	if err != nil || len(c.Upstreams) != 3 || len(c.Namespaces) != 2 {
		t.Fatalf("%+v %v", c, err)
	}
	const node = "upstreams: [{ecosystem: node, index: 'https://u:hunter2@npm.example/'}]\n"
	for text, want := range map[string]string{
		"upstreams: [{ecosystem: perl, index: auto}]":                                                                                                          "upstreams[0].ecosystem",
		"upstreams: [{ecosystem: node}]":                                                                                                                       "upstreams[0].index is missing",
		"upstreams: [{ecosystem: node, index: auto, proxy: p}]":                                                                                                "leave the other keys out",
		"upstreams: [{ecosystem: node, index: 'https://a.example', log: x}]":                                                                                   "checksum database",
		"upstreams: [{ecosystem: go, index: 'https://a.example', log_url: x}]":                                                                                 ".log is missing",
		"namespaces: [{ecosystem: node, pattern: '@a/*', upstream: auto}]":                                                                                     "has none for node",
		node + "namespaces: [{ecosystem: node, pattern: '*', upstream: 'https://npm.example'}]":                                                                "namespaces[0].pattern",
		node + "namespaces: [{ecosystem: node, pattern: 'a*b', upstream: 'https://npm.example'}]":                                                              "namespaces[0].pattern",
		node + "namespaces: [{ecosystem: node, pattern: 'a', upstream: 'https://other.example'}]":                                                              "must be the index of one",
		node + "namespaces: [{ecosystem: node, pattern: 'a', upstream: 'https://u:hunter2@x.example:port'}]":                                                   "namespaces[0].upstream is no http or https URL",
		node + "namespaces: [{ecosystem: node, pattern: 'a', upstream: 'u:hunter2@x.example'}]":                                                                "namespaces[0].upstream is no http or https URL",
		"namespaces: [{ecosystem: node, pattern: 'a', upstream: '//u:hunter2@x.example:%zz/'}]":                                                                "namespaces[0].upstream is no http or https URL",
		"upstreams: [{ecosystem: node, index: 'https://a.example', address: 'https://u:hunter2@a.example:443'}]":                                               "upstreams[0].address is no IP address with a port; write it as 192.0.2.1:443",
		"upstreams: [{ecosystem: node, index: 'https://u:hunter2@a.example:port/'}]":                                                                           "upstreams[0].index is no",
		"upstreams: [{ecosystem: node, index: ' https://u:hunter2@a.example/'}]\nnamespaces: [{ecosystem: node, pattern: 'a', upstream: 'https://b.example'}]": "for node: https://a.example/",
		node + "namespaces: [{ecosystem: python, pattern: 'a', upstream: 'https://npm.example'}]":                                                              "has none for python",
		node + "namespaces: [{ecosystem: node, pattern: 'a', upstream: 'https://npm.example', x: 1}]":                                                          "x",
	} {
		_, err := load(t, text)
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
