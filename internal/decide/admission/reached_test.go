package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
)

// TestAnotherRunsSecretIsLookedForAtItsHost: one run has a host keep its secret, and another asks that host for it, whose policy names
// no secret, or another one. At the hosts that the configuration has for a secret all values that are known of it are looked for,
// and answers wait as those to a run that gets it do. None is fetched for that. The controls: another host, and a secret that nobody had.
func TestAnotherRunsSecretIsLookedForAtItsHost(t *testing.T) {
	for text, seeks := range map[string]bool{
		"network_allowlist: [ { host: api.example, methods: [GET] }, other.example ]\n":                                        false,
		"network_allowlist: [ api.example, other.example ]\ncredentials: { inject: [ { host: api.example, secret: two } ] }\n": true,
	} {
		c, log := credited(t)
		p, err := policy.Parse("q", []byte(text))
		must(t, err)
		must(t, c.Register(Run{Sandbox: "sb2", Run: "run-sb2", Policy: p}))
		ask := func(host string) door.CredentialsAnswer {
			t.Helper()
			got, err := c.Credentials(t.Context(), door.CredentialsAsk{HostPort: door.HostPort{Sandbox: "sb2", Name: host, Port: 443}, TLS: true})
			must(t, err)
			return got
		}
		lent := func(since uint64) door.LentAnswer {
			t.Helper()
			a, err := c.Lent(t.Context(), door.LentAsk{Sandbox: "sb2", Since: since})
			must(t, err)
			return a
		}
		if _, err := c.Secrets(t.Context(), using("api.example", "one")); err != nil {
			t.Fatal(err)
		}
		if got := ask("other.example"); got.Seek != seeks || len(got.Kept) > 0 {
			t.Errorf("the control: another host: %+v", got)
		}
		before := lent(0)
		if len(before.Values["one"]) > 0 {
			t.Errorf("the control: the run has not come to the host: %v", before)
		}
		if got := ask("api.example"); !got.Seek || !slices.Equal(got.Kept, []string{"gone", "one", "push", "two"}) {
			t.Errorf("%+v", got)
		}
		after := lent(before.Moment)
		if !slices.Equal(after.Values["one"], []string{canary}) {
			t.Errorf("lent are %v", after)
		}
		if again := lent(after.Moment); len(again.Values) > 0 {
			t.Errorf("it is told again: %v", again)
		}
		given, err := c.Secrets(t.Context(), door.SecretsAsk{HostPort: door.HostPort{Sandbox: "sb2", Name: "api.example", Port: 443}, Request: exchange.Request{Method: "GET", Path: "/v1/chat"}})
		must(t, err) // though "gone" can't be fetched
		if !slices.Equal(given.Others["one"], []string{canary}) || len(given.Values) > 0 {
			t.Errorf("others are %v", given.Others)
		}
		if slices.ContainsFunc(uses(log), func(u string) bool { return !strings.Contains(u, " one ") }) {
			t.Errorf("on record are %v", uses(log))
		}
	}
}

// TestAHeldNameOfASecretsHostIsAskedFor: a run asks for a name that waits for a person, and for which the configuration has a secret. Its
// request is told what to look for and goes on to where a person is asked; one that is to get the secret is refused, and so is any request
// to a name that is denied (the controls).
func TestAHeldNameOfASecretsHostIsAskedFor(t *testing.T) {
	for text, ok := range map[string]bool{"network_unlisted: hold\n": true, "network_unlisted: deny\n": false} {
		log := &approvaltest.Log{}
		queue, err := approval.Open(t.Context(), approval.Config{Store: approvaltest.NewMemory(), Log: log})
		must(t, err)
		t.Cleanup(queue.Close)
		declared := secret.Declared{Name: "one", Hosts: []string{"api.example"}, How: exchange.Manner{Header: "X-one", Format: "{secret}"}, Source: place(canary), Keep: time.Hour}
		c := New(Config{Log: log, Approvals: queue, Holder: newHolder(), Secrets: secret.NewBroker([]secret.Declared{declared}, time.Now)})
		p, err := policy.Parse("q", []byte(text))
		must(t, err)
		must(t, c.Register(Run{Sandbox: "sb2", Run: "run-sb2", Policy: p}))
		ask := door.SecretsAsk{HostPort: door.HostPort{Sandbox: "sb2", Name: "api.example", Port: 80}, Request: exchange.Request{Method: "GET", Path: "/c"}}
		if _, err := c.Secrets(t.Context(), ask); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
		ask.Uses = []exchange.Use{{Secret: "one", Where: "header"}}
		if _, err := c.Secrets(t.Context(), ask); err == nil {
			t.Errorf("%s: it gets the secret", text)
		}
	}
}

// TestManyValuesOfAHostAreTold: a run comes to a host of whose secret thousands of values are known, and is told of each of them, bit by bit,
// though the gateway has asked before.
func TestManyValuesOfAHostAreTold(t *testing.T) {
	const many = 1_500
	declared := secret.Declared{Name: "one", Hosts: []string{"*.api.example"}, How: exchange.Manner{Header: "X-One", Format: "{secret}"}, Source: &renewed{}, Keep: time.Hour}
	c := New(Config{Log: &approvaltest.Log{}, Secrets: secret.NewBroker([]secret.Declared{declared}, time.Now)})
	gives, err := policy.Parse("p", []byte("network_allowlist: [ a.api.example ]\ncredentials: { inject: [ { host: a.api.example, secret: one } ] }\n"))
	must(t, err)
	for i := range many {
		sandbox := fmt.Sprintf("sb-%d", i)
		must(t, c.Register(Run{Sandbox: sandbox, Run: "run-" + sandbox, Policy: gives}))
		ask := using("a.api.example", "one")
		ask.Sandbox, ask.Name = sandbox, "a.api.example"
		if _, err := c.Secrets(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	p, err := policy.Parse("q", []byte("network_allowlist: [ { host: b.api.example, methods: [GET] } ]\n"))
	must(t, err)
	must(t, c.Register(Run{Sandbox: "sb2", Run: "run-sb2", Policy: p}))
	first, err := c.Lent(t.Context(), door.LentAsk{Sandbox: "sb2"})
	must(t, err)
	_, err = c.Credentials(t.Context(), door.CredentialsAsk{HostPort: door.HostPort{Sandbox: "sb2", Name: "b.api.example", Port: 443}, TLS: true})
	must(t, err)
	told := map[string]bool{}
	for since, more := first.Moment, true; more; {
		a, err := c.Lent(t.Context(), door.LentAsk{Sandbox: "sb2", Since: since})
		must(t, err)
		if a.Moment == since && a.More {
			t.Fatal("it does not go on")
		}
		for _, v := range a.Values["one"] {
			told[v] = true
		}
		since, more = a.Moment, a.More
	}
	if len(told) != many {
		t.Errorf("of %d values %d are told", many, len(told))
	}
}

// TestTheGatewayIsNotBelievedWhereASandboxHasBeen: it asks what a host gets that the sandbox may not have, in each way of
// asking, and is told none of what other runs have there. One that waits for a person counts once a person has allowed
// it and the connection is on record; one that is allowed counts at once (the controls).
func TestTheGatewayIsNotBelievedWhereASandboxHasBeen(t *testing.T) {
	for name, test := range map[string]struct {
		policy string
		closed bool // by the sandbox's own client
		told   bool
		held   bool
	}{
		"denied":                     {policy: "network_unlisted: deny\n"},
		"closed by its client":       {policy: "network_allowlist: [ api.example ]\n", closed: true},
		"held":                       {policy: "network_unlisted: hold\n", held: true},
		"the control: it is allowed": {policy: "network_allowlist: [ api.example ]\n", told: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newAskingHouse(t, "fail", Limits{}, nil)
			declared := secret.Declared{Name: "one", Hosts: []string{"api.example"}, How: exchange.Manner{Header: "X-one", Format: "{secret}"}, Source: place(canary), Keep: time.Hour}
			broker := secret.NewBroker([]secret.Declared{declared}, time.Now)
			c := New(Config{Log: h.log, Approvals: h.queue, Holder: h.holder, Secrets: broker})
			h.Controller = c
			if _, err := broker.Lease().Value(t.Context(), "one", "api.example"); err != nil {
				t.Fatal(err)
			}
			p, err := policy.Parse("q", []byte(test.policy))
			must(t, err)
			must(t, c.Register(Run{Sandbox: "sb1", Run: "run-sb1", Policy: p}))
			if test.closed {
				must(t, c.Narrow(t.Context(), "sb1", policy.Narrowing{Deny: []string{policy.Everything}}))
			}
			host := door.HostPort{Sandbox: "sb1", Name: "api.example", Port: 443}
			told := func() bool {
				t.Helper()
				a, err := c.Lent(t.Context(), door.LentAsk{Sandbox: "sb1"})
				must(t, err)
				return slices.Equal(a.Values["one"], []string{canary})
			}
			for _, tls := range []bool{true, false} {
				if _, err := c.Credentials(t.Context(), door.CredentialsAsk{HostPort: host, TLS: tls}); err != nil {
					t.Errorf("credentials: %v", err)
				}
			}
			_, _ = c.Secrets(t.Context(), door.SecretsAsk{HostPort: host, Request: exchange.Request{Method: "GET", Path: "/"}}) // as it likes
			if _, err := c.Connect(t.Context(), connectTo("api.example", 443, "93.184.215.14")); err != nil {
				t.Errorf("connect: %v", err)
			}
			if told() != test.told {
				t.Errorf("it is told: %v", !test.told)
			}
			if !test.held {
				return
			}
			h.await(t, hostAsk("api.example"))
			h.answer(t, approval.Approved, approval.ScopeRun, h.pending(t)[0].ID)
			if a, err := c.Connect(t.Context(), connectTo("api.example", 443, "93.184.215.14")); err != nil || !a.Decision.Allowed() || !told() {
				t.Errorf("a person has allowed it: %+v %v, told: %v", a, err, told())
			}
		})
	}
}
