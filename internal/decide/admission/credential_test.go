package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sigv4"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// place is a source of the test's own.
type place string

func (p place) Fetch(context.Context) (secret.Value, error) {
	if p == "" {
		return secret.Value{}, fault.New(fault.ErrUnavailable, "the place is sealed")
	}
	return secret.NewValue(string(p))
}

const (
	credits = `
network_allowlist: [ api.example, other.example, s3.example ]
credentials: { inject: [ { host: api.example, secret: one }, { host: api.example, secret: two }, { host: api.example, secret: push, git: push }, { host: s3.example, secret: key }, { host: s3.example, secret: session }, { host: s3.example, secret: none } ] }
`
	canary  = "canary-one-secret"
	signing = "canary-signing-key"
)

// credited is a controller with a sandbox, sb1, whose policy gives secrets.
func credited(t *testing.T) (*Controller, *approvaltest.Log) {
	t.Helper()
	declared := func(name string, source secret.Source) secret.Declared {
		return secret.Declared{Name: name, Hosts: []string{"api.example"}, How: exchange.Manner{Header: "X-" + name, Format: "{secret}"}, Source: source, Keep: time.Hour}
	}
	signs := func(name, id string, source secret.Source) secret.Declared {
		return secret.Declared{Name: name, Hosts: []string{"s3.example"}, How: exchange.Manner{Sign: exchange.SigV4}, KeyID: id, Source: source, Keep: time.Hour}
	}
	log := &approvaltest.Log{}
	c := New(Config{Log: log, Secrets: secret.NewBroker([]secret.Declared{
		signs("key", "AKIA0", place(signing)), signs("session", "", place(`{"AccessKeyId":"ASIA0","SecretAccessKey":"`+signing+`","SessionToken":"the-sessions-token"}`)), signs("none", "", place(signing)),
		declared("one", place(canary)), declared("two", place("canary-two-secret")), declared("gone", place("")), declared("push", place("canary-push-secret")),
	}, time.Now)})
	p, err := policy.Parse("p", []byte(credits))
	must(t, err)
	must(t, c.Register(Run{Sandbox: "sb1", Run: "run-sb1", Policy: p, Placeholders: map[string]string{"one": "fake-one", "two": "fake-two", "gone": "fake-gone", "push": "fake-push"}}))
	return c, log
}

func at(host string) door.HostPort { return door.HostPort{Sandbox: "sb1", Name: host, Port: 443} }

func using(host string, secrets ...string) door.SecretsAsk {
	ask := door.SecretsAsk{HostPort: at(host), Request: exchange.Request{Method: "POST", Path: "/v1/chat"}}
	for _, s := range secrets {
		ask.Uses = append(ask.Uses, exchange.Use{Secret: s, Where: "header X-" + s})
	}
	return ask
}

// uses are the records of secrets, shortly.
func uses(log *approvaltest.Log) []string {
	var all []string
	for _, r := range log.All() {
		if d := r.Detail; d["secret"] != "" {
			all = append(all, fmt.Sprint(r.Kind, " ", r.Outcome, " ", r.Rule, " ", d["name"], ":", d["port"], " ", d["request"], " ", d["secret"], " ", d["where"], " ", d["alarm"]))
		}
	}
	return all
}

// TestCredentials: which there are is told without a secret, and only over TLS.
func TestCredentials(t *testing.T) {
	c, _ := credited(t)
	got, err := c.Credentials(t.Context(), door.CredentialsAsk{HostPort: at("api.example"), TLS: true})
	must(t, err)
	if len(got.Credentials) != 3 || got.Credentials[2].Git != gitwire.Push || got.Credentials[0].Placeholder != "fake-one" || got.Credentials[0].Header != "X-one" || len(got.Placeholders) != 4 {
		t.Errorf("%+v", got)
	}
	if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), "canary") {
		t.Errorf("%s, %v", text, err)
	}
	for _, ask := range []door.CredentialsAsk{{HostPort: at("api.example")}, {HostPort: door.HostPort{Sandbox: "sb1", Name: "api.example", Port: 80}}, {HostPort: at("other.example"), TLS: true}, {HostPort: at("other.example")}} {
		withheld := ""
		if ask.Name == "api.example" {
			withheld = "the policy gives api.example the secret one, so plain HTTP to it is refused; use https"
		}
		if got, err := c.Credentials(t.Context(), ask); err != nil || len(got.Credentials) > 0 || len(got.Placeholders) != 4 || !got.Seek || got.Withheld != withheld {
			t.Errorf("%+v: %+v, %v", ask, got, err)
		}
	}
}

// TestEachUseIsOnRecord before the secret is given, without it; all that the run has used or
// may use comes along, so that it is found in answers. A secret that can't be had is no use.
func TestEachUseIsOnRecord(t *testing.T) {
	c, log := credited(t)
	for _, one := range []struct {
		ask  door.SecretsAsk
		want map[string]string
	}{
		{using("api.example"), map[string]string{}},
		{using("other.example"), map[string]string{}},
		{using("api.example", "one"), map[string]string{"one": canary}},
		{using("api.example", "two"), map[string]string{"two": "canary-two-secret"}},
	} {
		got, err := c.Secrets(t.Context(), one.ask)
		must(t, err)
		if diff := cmp.Diff(one.want, got.Values); diff != "" {
			t.Error(diff)
		}
		sought := map[string][]string{"one": {canary}, "two": {"canary-two-secret"}, "push": {"canary-push-secret"}, "session": {"the-sessions-token"}}
		for name := range got.Values {
			delete(sought, name)
		}
		if diff := cmp.Diff(sought, got.Others); diff != "" {
			t.Errorf("%v: %s", one.ask, diff)
		}
	}
	for want, ask := range map[string]door.SecretsAsk{
		"does not give the secret":                              using("other.example", "one"),
		"evil.example is not on the policy's network_allowlist": using("evil.example", "one"),
	} {
		if got, err := c.Secrets(t.Context(), ask); err == nil || !strings.Contains(fault.Sentence(err, ""), want) || len(got.Values) > 0 {
			t.Errorf("%s: %+v, %v", want, got, err)
		}
	}
	want := []string{
		"network used credentials.one api.example:443 POST /v1/chat one header X-one ",
		"network used credentials.two api.example:443 POST /v1/chat two header X-two ",
	}
	if diff := cmp.Diff(want, uses(log)); diff != "" {
		t.Error(diff)
	}
	if text, err := json.Marshal(log.All()); err != nil || strings.Contains(string(text), "canary") {
		t.Errorf("the log has a secret: %s, %v", text, err)
	}
}

// TestASecretEndsWithTheRun, and with what a policy takes away. TestEachUseIsOnRecord is
// the control.
func TestASecretEndsWithTheRun(t *testing.T) {
	c, _ := credited(t)
	narrower, err := policy.Parse("n", []byte("network_allowlist: [ api.example ]\ncredentials: { inject: [ { host: api.example, secret: two } ] }\n"))
	must(t, err)
	must(t, c.NarrowPolicy(t.Context(), "sb1", narrower))
	if got, err := c.Secrets(t.Context(), using("api.example", "one")); !errors.Is(err, fault.ErrForbidden) || len(got.Values) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.Secrets(t.Context(), using("api.example", "two")); err != nil || got.Values["two"] == "" || got.Values["one"] != "" {
		t.Errorf("%+v, %v", got, err)
	}
	ended, err := c.tenants.getTenant("sb1")
	must(t, err)
	c.Unregister("sb1")
	if got, err := c.Secrets(t.Context(), using("api.example", "two")); err == nil || len(got.Values) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if ended.secrets.Any() {
		t.Error("what has ended holds a secret")
	}
}

// renewed is a source that has something else each time.
type renewed struct{ asked int }

func (r *renewed) Fetch(context.Context) (secret.Value, error) {
	r.asked++
	return secret.NewValue(fmt.Sprintf("the-token-%d", r.asked))
}

// TestADeclinedSecretIsFetchedAnew, if the host is one that gets it.
func TestADeclinedSecretIsFetchedAnew(t *testing.T) {
	source := &renewed{}
	c := New(Config{Log: &approvaltest.Log{}, Secrets: secret.NewBroker([]secret.Declared{{
		Name: "one", Hosts: []string{"api.example"}, How: exchange.Manner{Header: "X-One", Format: "{secret}"}, Source: source, Keep: time.Hour,
	}}, time.Now)})
	p, err := policy.Parse("p", []byte("network_allowlist: [ api.example, other.example ]\ncredentials: { inject: [ { host: api.example, secret: one } ] }\n"))
	must(t, err)
	must(t, c.Register(Run{Sandbox: "sb1", Run: "run-sb1", Policy: p}))
	for _, one := range []struct{ host, want string }{{"other.example", "the-token-1"}, {"api.example", "the-token-2"}} {
		_, err := c.Secrets(t.Context(), using("api.example", "one"))
		must(t, err)
		must(t, c.Declined(t.Context(), door.DeclinedAsk{HostPort: at(one.host), Secrets: []string{"one", "none"}}))
		if got, err := c.Secrets(t.Context(), using("api.example", "one")); err != nil || got.Values["one"] != one.want {
			t.Errorf("after %s has declined it: %q, %v", one.host, got.Values["one"], err)
		}
	}
	c.Unregister("sb1")
	if err := c.Declined(t.Context(), door.DeclinedAsk{HostPort: at("api.example"), Secrets: []string{"one"}}); err == nil {
		t.Error("a run that has ended declines secrets")
	}
}

// TestASealedPlace: no request is sent anywhere while a secret of the run can't be had, by
// which nobody could look for it in the answer; nor is a use on record. The second is the
// control.
func TestASealedPlace(t *testing.T) {
	for _, source := range []place{"", canary} {
		log := &approvaltest.Log{}
		c := New(Config{Log: log, Secrets: secret.NewBroker([]secret.Declared{
			{Name: "gone", Hosts: []string{"api.example"}, How: exchange.Manner{Header: "X-Gone", Format: "{secret}"}, Source: source, Keep: time.Hour},
			{Name: "one", Hosts: []string{"api.example"}, How: exchange.Manner{Header: "X-One", Format: "{secret}"}, Source: place(canary), Keep: time.Hour},
		}, time.Now)})
		p, err := policy.Parse("p", []byte("network_allowlist: [ api.example, other.example ]\ncredentials: { inject: [ { host: api.example, secret: gone }, { host: api.example, secret: one } ] }\n"))
		must(t, err)
		must(t, c.Register(Run{Sandbox: "sb1", Run: "run-sb1", Policy: p}))
		for _, ask := range []door.SecretsAsk{using("api.example", "one"), using("other.example"), using("api.example", "gone")} {
			got, err := c.Secrets(t.Context(), ask)
			if source != "" {
				must(t, err)
				continue
			}
			if err == nil || !strings.Contains(fault.Sentence(err, ""), "can't be had: the place is sealed") || len(got.Values)+len(got.Others) > 0 || len(uses(log)) > 0 {
				t.Errorf("%+v: %+v, %v, %q", ask, got, err, uses(log))
			}
		}
	}
}

// TestALeftPlaceholderIsAnAlarm, once for each secret and host.
func TestALeftPlaceholderIsAnAlarm(t *testing.T) {
	c, log := credited(t)
	for _, one := range []struct{ host, secret string }{{"other.example", "one"}, {"other.example", "one"}, {"other.example", "two"}, {"api.example", "one"}} {
		a, err := c.Leaked(t.Context(), door.LeakAsk{
			HostPort: at(one.host), Request: exchange.Request{Method: "GET", Path: "/"}, Leak: exchange.Leak{Secret: one.secret, Where: "query"},
		})
		if err != nil || a.Decision.Allowed() || a.RequestID == "" || !strings.Contains(a.Decision.Reason, "has the placeholder of the secret "+one.secret) {
			t.Errorf("%+v, %v", a, err)
		}
	}
	want := []string{
		"network blocked network.placeholder other.example:443 GET / one query true",
		"network blocked network.placeholder other.example:443 GET / two query true",
		"network blocked network.placeholder api.example:443 GET / one query true",
	}
	if diff := cmp.Diff(want, uses(log)); diff != "" {
		t.Error(diff)
	}
	refusals, err := c.Refusals(t.Context(), "sb1", "", 0)
	if err != nil || len(refusals) != 3 || !refusals[0].Alarm {
		t.Errorf("%+v, %v", refusals, err)
	}
	if all := log.All(); all[0].Kind != audit.KindNetwork {
		t.Errorf("%+v", all[0])
	}
}

// TestAnAnswerThatStopsWithinASecretIsAnAlarm of its own rule, which names the secret and nothing of it.
func TestAnAnswerThatStopsWithinASecretIsAnAlarm(t *testing.T) {
	c, log := credited(t)
	a, err := c.Leaked(t.Context(), door.LeakAsk{
		HostPort: at("api.example"), Request: exchange.Request{Method: "GET", Path: "/"}, Leak: exchange.Leak{Secret: "one", Where: "answer", Answer: true},
	})
	if err != nil || a.Decision.Allowed() || a.RequestID == "" || !strings.Contains(a.Decision.Reason, "an answer of api.example stopped") || !strings.Contains(a.Decision.Reason, "the secret one,") {
		t.Errorf("%+v, %v", a, err)
	}
	if diff := cmp.Diff([]string{"network blocked network.secret-begun api.example:443 GET / one answer true"}, uses(log)); diff != "" {
		t.Error(diff)
	}
}

// TestASecretOfAnOperation is given for that one alone.
func TestASecretOfAnOperation(t *testing.T) {
	c, log := credited(t)
	for operation, given := range map[gitwire.Operation]bool{gitwire.Push: true, gitwire.Fetch: false, "": false} {
		ask := using("api.example", "push")
		ask.Request.Git = operation
		got, err := c.Secrets(t.Context(), ask)
		if given != (err == nil && got.Values["push"] == "canary-push-secret") || !given && !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("%q: %v, %v", operation, got.Values, err)
		}
	}
	if n := len(uses(log)); n != 1 {
		t.Errorf("%d uses are on record", n)
	}
}

// TestAKeySignsAndIsNotGiven: the gateway gets a signature, and what of a session goes to
// the host. Asked for in another way, or for another host, there is neither.
func TestAKeySignsAndIsNotGiven(t *testing.T) {
	c, log := credited(t)
	asking := func(name, host string) door.SecretsAsk {
		ask := using("s3.example", name)
		ask.Uses[0].Where = "signature s3 eu-west-1"
		ask.Uses[0].Sign = &sigv4.Request{Method: "PUT", Host: host, Path: "/b/k", Payload: "UNSIGNED-PAYLOAD", Region: "eu-west-1", Service: "s3"}
		return ask
	}
	for name, want := range map[string]struct{ id, token string }{"key": {"AKIA0", ""}, "session": {"ASIA0", "the-sessions-token"}} {
		got, err := c.Secrets(t.Context(), asking(name, "s3.example:443"))
		must(t, err)
		if a := got.Header.Get("Authorization"); !strings.HasPrefix(a, "AWS4-HMAC-SHA256 Credential="+want.id+"/") || got.Header.Get("X-Amz-Security-Token") != want.token || got.Values[name] != want.token {
			t.Errorf("%s: %+v", name, got)
		}
		if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), signing) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	unsigned := asking("key", "s3.example")
	unsigned.Uses[0].Sign = nil
	raw := asking("one", "api.example")
	raw.HostPort = at("api.example")
	for want, ask := range map[string]door.SecretsAsk{
		"not used in that way": unsigned, `the secret "one" is not used in that way`: raw, "not signed for another host": asking("key", "evil.example"),
		`the secret "none" can't be had: it is no JSON`: asking("none", "s3.example"),
	} {
		got, err := c.Secrets(t.Context(), ask)
		if text, _ := json.Marshal(got); err == nil || !strings.Contains(fault.Sentence(err, ""), want) || strings.Contains(string(text)+err.Error(), "canary") || len(got.Header) > 0 {
			t.Errorf("%s: %s, %v", want, text, err)
		}
	}
	if all := strings.Join(uses(log), "\n"); strings.Count(all, "credentials.") != 2 || !strings.Contains(all, "network used credentials.key s3.example:443 POST /v1/chat key signature s3 eu-west-1 ") {
		t.Error(all)
	}
	if got, err := c.Secrets(t.Context(), using("s3.example")); err != nil || len(got.Values) > 0 || len(got.Others["key"]) > 0 || got.Others["session"][0] != "the-sessions-token" || strings.Contains(fmt.Sprint(got), signing) {
		t.Errorf("%+v, %v", got, err)
	}
}
