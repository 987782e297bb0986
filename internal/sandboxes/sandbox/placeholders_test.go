package sandbox_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/environ"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/placeholder"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

const canary = "canary-of-the-host"

// sealed is a studio with one declared secret.
func sealed(t *testing.T) *studio {
	t.Helper()
	t.Setenv("TEST_SECRET", canary)
	form, _ := placeholder.Find("openai")
	s := newStudio(t)
	s.secrets = secret.NewBroker([]secret.Declared{{
		Name: "model", Hosts: []string{"api.example"}, How: exchange.Manner{Header: "Authorization", Format: "Bearer {secret}"}, Form: form,
		Source: environ.Variable("TEST_SECRET"), Keep: time.Minute,
	}}, time.Now)
	s.restart("sha256:template")
	return s
}

func crediting(entry string) string {
	return house + "network_allowlist: [ api.example ]\ncredentials: { inject: [ { " + entry + " } ] }\n"
}

// finds tells whether a new command in a sandbox has a variable with a text.
func (s *studio) finds(id, name, text string) bool {
	s.t.Helper()
	before := len(s.records(id, audit.Finished))
	s.run(id, "/bin/sh", "-c", `[ "$`+name+`" = "`+text+`" ]`)
	ends := s.records(id, audit.Finished)
	return len(ends) == before+1 && *ends[before].Exit == 0
}

// TestPlaceholders: a sandbox holds one that looks like the secret and is not, over a
// restart of the daemon; copies hold the same one, since their memory does; another
// sandbox has another. The door knows it in each.
func TestPlaceholders(t *testing.T) {
	s := sealed(t)
	req := s.request(crediting("host: api.example, secret: model, env: API_KEY"))
	source := s.create(req).Info()
	text := source.Placeholders["model"]
	if !strings.HasPrefix(text, "sk-proj-") || strings.Contains(text, canary) || !s.finds(source.ID, "API_KEY", text) || s.finds(source.ID, "API_KEY", canary) {
		t.Fatalf("it holds %q", text)
	}
	if other := s.create(req).Info().Placeholders["model"]; other == text || other == "" {
		t.Errorf("another sandbox holds %q", other)
	}
	s.restart("sha256:template")
	_, err := s.Snapshot(t.Context(), source.ID, "base", "")
	must(t, err)
	forks, err := s.Fork(t.Context(), source.ID, 1, sandbox.Lifetime{})
	must(t, err)
	ids := []string{source.ID, forks[0].Sandbox.Info().ID, s.create(sandbox.Request{Snapshot: "base"}).Info().ID}
	for _, id := range ids {
		info := mustGet(t, s, id).Info()
		known, err := s.door.Credentials(t.Context(), door.CredentialsAsk{HostPort: door.HostPort{Sandbox: id, Name: "api.example", Port: 443}, TLS: true})
		if err != nil || info.Placeholders["model"] != text || known.Placeholders["model"] != text {
			t.Errorf("%s holds %q, the door knows %v, %v", id, info.Placeholders, slices.Collect(maps.Values(known.Placeholders)), err)
		}
		if !s.finds(id, "API_KEY", text) {
			t.Errorf("%s has another one in its environment", id)
		}
	}
}

// TestASecretThatThePolicyCanNotHave is refused before there is a sandbox. The first is
// the control.
func TestASecretThatThePolicyCanNotHave(t *testing.T) {
	s := sealed(t)
	for entry, want := range map[string]string{
		"host: api.example, secret: model, header: authorization": "",
		"host: api.example, secret: other":                        `declares no secret "other"`,
		"host: elsewhere.example, secret: model":                  `the secret "model" is not for elsewhere.example`,
		"host: api.example, secret: model, header: X-Key":         "put into the header X-Key",
		"host: api.example, secret: model, env: MINE":             "the variable MINE has the placeholder",
		`host: "api.example:8443", secret: model, env: API_KEY`:   "",
		"host: sub.api.example, secret: model, env: API_KEY":      "is not for sub.api.example",
	} {
		made, err := s.Create(t.Context(), s.request(crediting(entry)))
		if want == "" {
			must(t, err)
			must(t, s.Destroy(t.Context(), made.Info().ID))
			continue
		}
		if err == nil || !strings.Contains(fault.Sentence(err, ""), want) || errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("%s: %v", entry, err)
		}
	}
	if left := len(s.List()); left > 0 {
		t.Errorf("%d sandboxes live", left)
	}
}
