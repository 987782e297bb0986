package e2b_test

import (
	"strings"
	"testing"
)

// TestSecretsAreToldOf: those that a token's policies name, and none of another's; never a value.
func TestSecretsAreToldOf(t *testing.T) {
	h := newHouse(t)
	for name, secret := range map[string]string{"data": "model-key", "secret": "others-key"} {
		document := "network_allowlist: [api.example, git.example]\ncredentials: { inject: [ { host: api.example, secret: " + secret + " }, { host: git.example, secret: " + secret + " } ] }\n"
		if _, err := h.policies.Put(name, name, []byte(document)); err != nil {
			t.Fatal(err)
		}
	}
	type secret struct {
		SecretID, Name, CreatedAt, UpdatedAt string
		CurrentVersion                       int
		Metadata                             map[string]string
	}
	var all []secret
	h.must(200, &all, h.ann, "GET /secrets?limit=100", "")
	if len(all) != 1 || all[0].Name != "model-key" || !strings.HasPrefix(all[0].SecretID, "sec_") || all[0].CurrentVersion != 1 || all[0].CreatedAt == "" ||
		all[0].Metadata["hosts"] != "api.example,git.example" || all[0].Metadata["policies"] != "data" {
		t.Fatalf("%+v", all)
	}
	for _, ref := range []string{"model-key", all[0].SecretID} {
		var one secret
		if h.must(200, &one, h.ann, "GET /secrets/"+ref, ""); one.Name != "model-key" {
			t.Errorf("%s: %+v", ref, one)
		}
		h.refused(404, "no secret", h.bob, "GET /secrets/"+ref, "")
	}
	h.refused(404, "no secret", h.ann, "GET /secrets/others-key", "")
}
