package preset

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/placeholder"
)

// TestShipped: the file is in order, and every agent has names to reach.
func TestShipped(t *testing.T) {
	t.Parallel()
	s, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Presets) < 6 || len(s.Agents) < 5 || s.Presets["anthropic"].Name != "anthropic" {
		t.Errorf("%+v", s)
	}
	for _, name := range s.WithKeys() {
		if _, known := placeholder.Find(s.Presets[name].Key.Placeholder); !known {
			t.Errorf("the key of %s has no form of a placeholder", name)
		}
	}
	for name, a := range s.Agents {
		if len(a.Presets) == 0 || a.Means == "" {
			t.Errorf("%s: %+v", name, a)
		}
		for _, dir := range a.State {
			if strings.HasPrefix(dir, "/") || strings.Contains(dir, "..") {
				t.Errorf("%s keeps %q, which is not below its home", name, dir)
			}
		}
	}
}

// TestAnAgentInstallsNothing by the policy that it has without another one.
func TestAnAgentInstallsNothing(t *testing.T) {
	t.Parallel()
	s, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range s.Agents {
		for _, keys := range [][]string{nil, s.WithKeys()} {
			if document := string(a.Document(s, keys)); !strings.Contains(document, "\npackages: { default: deny }\n") {
				t.Errorf("%s: %s", name, document)
			}
		}
	}
}

// TestMistakes: what is wrong in the file is told, and nothing of it is used.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"presets: { a: { means: x, hosts: [ a.example ], ports: [ 1 ] } }":                                                "ports",
		"presets: { a: { means: x } }":                                                                                    "preset a lacks its meaning or its hosts",
		"presets: { a: { hosts: [ a.example ] } }":                                                                        "preset a lacks its meaning or its hosts",
		"presets: { a: { means: x, hosts: [ a.example ] } }\nagents: { b: { means: y, presets: [ a, other ] } }":          "agent b needs the preset other",
		"presets: { a: { means: x, hosts: [ a.example ], key: { variable: A, header: B } } }":                             "key of the preset a lacks",
		"presets: { a: { means: x, hosts: [ \"*.a.example\" ], key: { variable: A, header: B, placeholder: c } } }":       "no plain name",
		"presets: { a: { means: x, hosts: [ a.example ] } }\nagents: { b: { means: y, presets: [ a ], keys: { a: A } } }": "agent b has a key of the preset a, which has none",
		"[": "can't be read",
	} {
		if s, err := parsePreset([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || len(s.Presets) > 0 {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
