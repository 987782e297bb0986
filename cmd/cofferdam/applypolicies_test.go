package main

import (
	"strings"
	"testing"
)

// TestPolicySearch: the quick look at JSON says of no policy that it is none, and who was inside
// can't have what is parsed be without end, nor thereby hide a policy.
func TestPolicySearch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"packages": {"default": "allow"}}`: true, `{"name": "x", "\u0070ackages": {"default": "allow"}}`: true,
		"packages: { default: allow }\n": true, "allowed_packages: {}\n": true,
		`{"packages": {"default": "allow"}, "lockfileVersion": 3}`: false, `{"name": "x"}`: false, `{}`: false, `[]`: false, `"packages"`: false, "": false,
		"{\"packages\": {\"default\": \"allow\"},}": true, // YAML, and no JSON
	} {
		if got := (&policySearch{bytes: mostParsed}).isPolicy([]byte(text), false); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	filler := []byte("a: " + strings.Repeat("x", 1000) + "\n")
	s := policySearch{bytes: 3 * len(filler)}
	for i := range 5 {
		if got, want := s.isPolicy(filler, true), i >= 3; got != want {
			t.Errorf("text %d: %v, want %v", i, got, want)
		}
	}
	if s.isPolicy([]byte(`{"dependencies": {`+strings.Repeat(`"a": "b", `, 500)+`"c": "d"}}`), true) {
		t.Error("JSON that is no policy has to be parsed as YAML")
	}
}
