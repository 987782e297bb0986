package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
)

// readTools reads a configuration that is only tools.
func readTools(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

// asNobody is what a command needs where the test is root.
func asNobody() string {
	if os.Geteuid() == 0 {
		return ", user: nobody"
	}
	return ""
}

func TestTools(t *testing.T) {
	t.Parallel()
	c, err := readTools(t, `
tools:
  - name: lookup_order
    description: Where an order is.
    command: [/usr/bin/env, orders, --json]
    directory: /
    environment: { PATH: /usr/bin:/bin }
    timeout: 5s
    max_output: 64KiB
    answers: json
    record_arguments: true
    arguments:
      type: object
      required: [id]
      properties: { id: { type: string, pattern: "^[0-9]+$" } }
`+strings.ReplaceAll(asNobody(), ", ", "    ")+`
  - { name: search, endpoint: "http://127.0.0.1:9/search" }
`)
	if err != nil {
		t.Fatal(err)
	}
	set, err := toolSet(t, c)
	if err != nil {
		t.Fatal(err)
	}
	one, ok := set.Get("lookup_order")
	if !ok || !one.JSON || !one.Record || one.Limits.Output != 64<<10 || one.Limits.Time.String() != "5s" || one.Description != "Where an order is." ||
		one.Schema.Text() != `{"properties":{"id":{"pattern":"^[0-9]+$","type":"string"}},"required":["id"],"type":"object"}` {
		t.Errorf("%+v %v", one, ok)
	}
	if two, ok := set.Get("search"); !ok || two.JSON || two.Record || two.Schema.Text() != `{"type":"object"}` {
		t.Errorf("%+v %v", two, ok)
	}
}

func TestToolsThatCanNotBe(t *testing.T) {
	t.Parallel()
	command := "command: [/bin/true]" + asNobody()
	for text, want := range map[string]string{
		"{ name: a }": "either a command or an endpoint",
		"{ name: a, " + command + `, endpoint: "http://127.0.0.1:9" }`:              "either a command or an endpoint",
		"{ name: a b, " + command + " }":                                            "tools[0].name",
		"{ name: a, command: [true" + "x]" + asNobody() + " }":                      "absolute path",
		"{ name: a, command: [/bin/true], user: no-such-user-here }":                "no user",
		"{ name: a, command: [/bin/true], user: root }":                             "root",
		`{ name: a, endpoint: "ftp://x" }`:                                          "tools[0].endpoint",
		`{ name: a, endpoint: "http://u:p@x/" }`:                                    "credentials",
		`{ name: a, endpoint: "http://127.0.0.1:9", user: nobody }`:                 "a command's",
		"{ name: a, " + command + ", answers: xml }":                                "text or json",
		"{ name: a, " + command + ", timeout: 2h }":                                 "1h0m0s is the most",
		"{ name: a, " + command + ", max_output: 17MiB }":                           "16 MiB is the most",
		"{ name: a, " + command + ", arguments: { type: thing } }":                  "no JSON Schema",
		"{ name: a, " + command + ", arguments: [] }":                               "a JSON Schema is a map",
		"{ name: a, " + command + `, arguments: { $ref: "file:///etc/hostname" } }`: "whole by itself",
		"{ name: a, " + command + " }\n  - { name: a, " + command + " }":            "two tools are called a",
		"{ name: a, " + command + ", shell: true }":                                 "shell",
		"{ name: a, " + command + `, environment: { "A=B": c } }`:                   "can't be a variable",
	} {
		c, err := readTools(t, "tools:\n  - "+text+"\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", text, c.Tools, err)
		}
	}
}

// TestSchemasThatCanNotBe: the line and the column of what is wrong are told.
func TestSchemasThatCanNotBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"      type: object\n      properties:\n        id: { type: strin }\n": "line 7, column 21: arguments.properties.id.type: it is no JSON Schema",
		"      properties:\n        id: { pattern: \"(\" }\n":                  "line 6, column 24: arguments.properties.id.pattern: it is no JSON Schema",
		"      allOf: [ {}, { maximum: many } ]\n":                             "line 5, column 31: arguments.allOf.1.maximum: it is no JSON Schema",
		"      $ref: file:///etc/hostname\n":                                   "line 5, column 7: arguments: it is no JSON Schema",
		"      required: [a]\n      required: [b]\n":                           "line 6",
		"      - type: object\n":                                               "line 5, column 7: a JSON Schema is a map",
	} {
		_, err := readTools(t, "tools:\n  - name: a\n    endpoint: http://127.0.0.1:9\n    arguments:\n"+text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v; want %s", text, err, want)
		}
	}
}

// toolSet are a configuration's tools, with a broker of its secrets.
func toolSet(t *testing.T, c Config) (*tool.Set, error) {
	t.Helper()
	declared, err := c.DeclaredSecrets(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.ToolSet(secret.NewBroker(declared, time.Now), nil)
}

// TestProgramsAreGuarded: no sandbox gets to write what a tool or a secret is, or where it looks for more.
func TestProgramsAreGuarded(t *testing.T) {
	dir, modules := t.TempDir(), t.TempDir()
	c := Config{
		Tools:   []Tool{{Name: "t", Command: []string{"/bin/sh", "/etc/passwd"}, Directory: dir, Environment: map[string]string{"PYTHONPATH": modules}}},
		Secrets: []Secret{{Name: "s", Command: []string{"/bin/cat", "/etc/group"}}},
	}
	got := c.Programs()
	for _, want := range []string{"/bin/sh", "/etc/passwd", dir, modules, "/bin/cat", "/etc/group"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
}
