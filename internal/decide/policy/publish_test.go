package policy

import (
	"strings"
	"testing"
)

func TestPublishes(t *testing.T) {
	p, err := Parse("p", []byte("published_ports: [ 8080, \"3000-3010\", 1 ]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for port, want := range map[int]bool{
		8080: true, 3000: true, 3005: true, 3010: true, 1: true,
		0: false, -1: false, 2: false, 2999: false, 3011: false, 8079: false, 8081: false, 65536: false,
	} {
		if p.Publishes(port) != want {
			t.Errorf("%d: %t", port, !want)
		}
	}
	if got, want := p.PublishSuggestion(9000), "published_ports: [1, \"3000-3010\", 8080, 9000]\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := Parse("suggested", []byte(p.PublishSuggestion(9000))); err != nil {
		t.Error(err)
	}
	if new(Policy).Publishes(8080) {
		t.Error("a policy that says nothing publishes a port")
	}
	explained := ""
	for _, e := range p.Check() {
		explained += e.Key + ": " + e.Meaning + "\n"
	}
	if !strings.Contains(explained, "published_ports[1]: clients of the daemon may connect to ports 3000-3010") {
		t.Error(explained)
	}
}

// TestLeavesToHost: a document that says anything of ports is kept to by the host's own
// users, too.
func TestLeavesToHost(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"packages: { default: deny }\n":      true,
		"published_ports: [8000]\n":          true,
		"published_ports: [9000]\n":          false,
		"published_ports: []\n":              false,
		"network: { ingress: deny_all }\n":   false,
		"network: { mode: restricted }\n":    true,
		"published_ports: [\"7000-8001\"]\n": true,
	} {
		p, err := Parse("p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.LeavesToHost(8000); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func TestPublishedPortsAreStrict(t *testing.T) {
	for text, want := range map[string]string{
		"published_ports: 8080":                                             "p:1:18: published_ports must be a list",
		"published_ports: [0]":                                              "published_ports[0] must be from 1 to 65535",
		"published_ports: [65536]":                                          "must be from 1 to 65535",
		"published_ports: [80.5]":                                           "must be a whole number",
		"published_ports: [\"8080\"]":                                       "must be a port like 8080 or a range",
		"published_ports: [\"3000 - 3010\"]":                                "must be a port like 8080 or a range",
		"published_ports: [\"3000-\"]":                                      "must be a port like 8080 or a range",
		"published_ports: [\"03000-3010\"]":                                 "must be a port like 8080 or a range",
		"published_ports: [\"3000-3010-3020\"]":                             "must be a port like 8080 or a range",
		"published_ports: [\"3010-3000\"]":                                  "ends before it begins",
		"published_ports: [true]":                                           "must be text",
		"published_ports: [8080,\n  8080]":                                  "p:2:3: published_ports[1]: 8080 overlaps with 8080",
		"published_ports: [\"80-90\", 85]":                                  "overlaps with 80-90",
		"published_ports: [80]\nnetwork: { ingress: deny_all }":             "network.ingress says the same as published_ports on line 1",
		"published_ports: []\nnetwork: { ingress: deny_all }":               "network.ingress says the same as published_ports on line 1",
		"published_port: [80]":                                              "did you mean published_ports?",
		"published_ports: [" + strings.Repeat("8080, ", 101) + "8080" + "]": "has 102 entries",
	} {
		if _, err := Parse("p", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
