package isolation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// throughAPI are the channels that both try by the API, with their tokens.
func throughAPI() []channel {
	return []channel{
		{
			name: "log positions", shares: "the log: numbers of records, and pages of them", law: holding, timing: 10,
			send: runTrue,
			look: func(ctx context.Context, p *pair, slot int) (Observation, error) {
				name := nameOf("loggedb", slot)
				if _, err := lookAtOwnFile(p, name); err != nil {
					return Observation{}, err
				}
				return p.receiver.call(ctx, http.MethodGet, "/v1/installs?outcome=pending_approval&package="+name, nil)
			},
			deeds: recordsOf("command", "started"), renewed: heldRequests,
		},
		{
			name: "ids", shares: "ids of commands, and what is told of them", law: denying, timing: 10,
			send: runTrue,
			look: func(ctx context.Context, p *pair, _ int) (Observation, error) {
				return p.receiver.call(ctx, http.MethodPost, "/v1/sandboxes/"+p.receiver.box.ID+"/commands", api.StartCommand{Argv: []string{"true"}})
			},
			deeds: recordsOf("command", "started"),
		},
		{
			name: "lists", shares: "all that a token can ask: version, lists, runs, refusals, approvals, the log", law: denying, timing: 10,
			send: runTrue,
			look: func(ctx context.Context, p *pair, _ int) (Observation, error) {
				return lookAtAll(ctx, p.receiver, lists(p.receiver.box))
			},
			deeds: recordsOf("command", "started"), answered: `^/v1/version 200 `,
		},
		{
			name: "another's sandbox", shares: "routes of a sandbox whose id the other has told", law: denying, timing: 10,
			send: runTrue,
			look: func(ctx context.Context, p *pair, _ int) (Observation, error) {
				return lookAtAll(ctx, p.receiver, routesOf(p.sender.box.ID))
			},
			deeds: recordsOf("command", "started"), answered: `^/v1/sandboxes/\S+ 404 `,
		},
		{
			name: "template names", shares: "names of templates that clients build", law: denying, timing: 40,
			send: func(ctx context.Context, p *pair, slot int) error {
				return announce(ctx, p.sender, slot)
			},
			look: func(ctx context.Context, p *pair, slot int) (Observation, error) {
				seen, err := p.receiver.call(ctx, http.MethodGet, "/templates/aliases/"+nameOf("named", slot), nil)
				if err != nil {
					return seen, err
				}
				again, err := p.receiver.call(ctx, http.MethodGet, "/v2/templates", nil)
				return Observation{seen.Text + again.Text, seen.Took + again.Took}, err
			},
			deeds: func(*testing.T, *pair) int { return int(announced.Load()) },
		},
		{
			name: "rate limit", shares: "how often the API may be asked", law: denying, timing: 60, slow: 2,
			beside: flood,
			look: func(ctx context.Context, p *pair, _ int) (Observation, error) {
				return p.receiver.call(ctx, http.MethodGet, "/v1/version", nil)
			},
			deeds: func(*testing.T, *pair) int { return int(floods.Load()) },
		},
		{
			name: "calls", shares: "the engine of calls without a sandbox", law: denying, timing: 60,
			beside: func(ctx context.Context, p *pair, _ int) (func(), error) {
				return aside(func() error { return second(makeCall(ctx, p.sender)) }), nil
			},
			look: func(ctx context.Context, p *pair, _ int) (Observation, error) {
				return makeCall(ctx, p.receiver)
			},
			deeds: allCalls,
		},
		{
			name: "sandboxes", shares: "quotas, events and ids of sandboxes", law: denying, timing: 10, slow: 3,
			send: func(ctx context.Context, p *pair, _ int) error { return makeSandbox(ctx, p.sender, "") },
			look: lookAtSandboxes, answered: `(?m)^429 `, // what is past the quota
			deeds: func(t *testing.T, p *pair) int {
				t.Helper()
				return recordsOfToken(t, p.sender)
			},
		},
		{
			name: "run ids", shares: "names of runs, which one token takes from all others", law: denying, timing: 20, state: 20, slow: 2,
			send: func(ctx context.Context, p *pair, slot int) error {
				return makeSandbox(ctx, p.sender, p.sender.box.ID+nameOf("-", slot))
			},
			look: func(ctx context.Context, p *pair, slot int) (Observation, error) {
				return p.receiver.call(ctx, http.MethodPost, "/v1/sandboxes", api.CreateSandbox{Run: p.sender.box.ID + nameOf("-", slot), Template: "nosuch"})
			},
			deeds: func(t *testing.T, p *pair) int {
				t.Helper()
				return recordsOfToken(t, p.sender)
			},
		},
	}
}

// runTrue has the sender's sandbox run a command, which is on record twice.
func runTrue(ctx context.Context, p *pair, _ int) error {
	return second(p.sender.api.StartCommand(ctx, p.sender.box.ID, api.StartCommand{Argv: []string{"true"}}))
}

// lists are routes that tell a token about its own.
func lists(own api.Sandbox) []string {
	return []string{
		"/v1/version", "/v1/sandboxes", "/v1/snapshots", "/v1/templates", "/v1/policies", "/v1/homes", "/v1/secrets", "/v1/tokens", "/v1/approvals",
		"/v1/audit/records", "/v1/installs", "/v1/refusals", "/v1/refusals?run=" + own.Run, "/v1/alarms?run=" + own.Run, "/v1/runs/" + own.Run + "/summary", "/v1/runs/" + own.Run + "/suggest",
		"/v1/events?after=4503599627370494", "/v1/advisories/check?ecosystem=python&name=known", "/sandboxes", "/v2/sandboxes", "/templates", "/snapshots", "/metrics",
	}
}

func routesOf(id string) []string {
	of := "/v1/sandboxes/" + id
	return []string{of, of + "/usage", of + "/holds", of + "/ports/8000", of + "/files?path=/etc/passwd", of + "/files/stat?path=/tmp", "/v1/refusals?sandbox=" + id, "/v1/alarms?sandbox=" + id, "/v1/installs?sandbox=" + id, "/sandboxes/" + id, "/sandboxes/" + id + "/metrics", "/sandboxes/" + id + "/logs"}
}

// lookAtAll returns what all of the routes say.
func lookAtAll(ctx context.Context, n *tenant, paths []string) (all Observation, err error) {
	for _, path := range paths {
		one, err := n.call(ctx, http.MethodGet, path, nil)
		if err != nil {
			return all, err
		}
		all.Text += path + " " + one.Text + "\n"
		all.Took += one.Took
	}
	return all, nil
}

// announced counts the templates that the daemon took for building.
var announced atomic.Int64

// fewBuilds is after how many of them another token announces: one may have so many that
// have not begun.
const fewBuilds = 30

func announce(ctx context.Context, n *tenant, slot int) error {
	if at := announced.Load(); at%fewBuilds == 0 {
		made, err := n.admin.MakeToken(ctx, api.MakeToken{Name: fmt.Sprintf("%s-announces-%d", n.name, at), Policy: string(denying)})
		if err != nil {
			return err
		}
		n.announcing = made.Secret
	}
	seen, err := n.callWith(ctx, n.announcing, http.MethodPost, "/v3/templates", map[string]any{"name": nameOf("named", slot)})
	if err == nil && !strings.HasPrefix(seen.Text, "202") {
		err = fmt.Errorf("a template was not announced: %s", seen.Text)
	}
	if err == nil {
		announced.Add(1)
	}
	return err
}

// floods counts those at whose end the daemon refused the sender for its pace.
var floods atomic.Int64

// flood asks until the daemon refuses for the pace, from before the receiver looks on.
func flood(ctx context.Context, p *pair, _ int) (func(), error) {
	refused, rest := make(chan struct{}), &sync.WaitGroup{}
	var once sync.Once
	over, cancel := context.WithCancel(ctx)
	for range 8 {
		safego.In(rest, func() {
			for over.Err() == nil {
				seen, err := p.sender.call(over, http.MethodGet, "/v1/version", nil)
				if err == nil && strings.HasPrefix(seen.Text, "429") {
					once.Do(func() { floods.Add(1); close(refused) })
				}
			}
		})
	}
	stop := func() { cancel(); rest.Wait() }
	select {
	case <-refused:
		return stop, nil
	case <-ctx.Done():
		return stop, ctx.Err()
	}
}

// makeCall has the daemon run some code without a sandbox.
func makeCall(ctx context.Context, n *tenant) (Observation, error) {
	seen, err := n.call(ctx, http.MethodPost, "/v1/calls", api.Call{Code: "let n = 0; for (let i = 0; i < 100000; i++) { n += i } n", Policy: api.Policy{Name: string(calling)}})
	if err == nil && !strings.HasPrefix(seen.Text, "200") {
		err = fmt.Errorf("a call was not made: %s", seen.Text)
	}
	return seen, err
}

// allCalls counts the calls on record: those that have no sandbox of the pair.
func allCalls(t *testing.T, p *pair) int {
	t.Helper()
	return countRecords(t, p.sender, "command", func(r map[string]any) bool {
		return r["outcome"] == "started" && strings.HasPrefix(fmt.Sprint(r["sandbox"]), "call-")
	})
}

// recordsOfToken counts the sandboxes that a token began, by the log.
func recordsOfToken(t *testing.T, n *tenant) int {
	t.Helper()
	return countRecords(t, n, "sandbox", func(r map[string]any) bool {
		return r["outcome"] == "started" && r["token"] == n.tokenID
	})
}

func countRecords(t *testing.T, n *tenant, kind string, counts func(map[string]any) bool) (count int) {
	t.Helper()
	for line, err := range n.admin.Records(t.Context(), client.RecordFilter{Kinds: []string{kind}}) {
		if err != nil {
			t.Fatal(err)
		}
		var record map[string]any
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatal(err)
		}
		if counts(record) {
			count++
		}
	}
	return count
}

// makeSandbox makes a sandbox and takes it away.
func makeSandbox(ctx context.Context, n *tenant, run string) error {
	made, err := n.api.CreateSandbox(ctx, api.CreateSandbox{Run: run, Linger: true})
	if err != nil {
		return err
	}
	return n.api.DestroySandbox(ctx, made.ID)
}

// lookAtSandboxes makes one and sees all that is told of it, of its end, and of the quota.
func lookAtSandboxes(ctx context.Context, p *pair, _ int) (Observation, error) {
	n := p.receiver
	seen, err := n.call(ctx, http.MethodPost, "/v1/sandboxes", api.CreateSandbox{Linger: true})
	if err != nil {
		return seen, err
	}
	_, body, _ := strings.Cut(seen.Text, "\n")
	var made api.Sandbox
	if err := json.Unmarshal([]byte(body), &made); err != nil {
		return seen, fmt.Errorf("%w: %s", err, seen.Text)
	}
	past, err := n.call(ctx, http.MethodPost, "/v1/sandboxes", api.CreateSandbox{Linger: true}) // more than the quota has
	if err != nil {
		return seen, err
	}
	if !strings.HasPrefix(past.Text, "429") {
		return seen, fmt.Errorf("past the quota: %s", past.Text)
	}
	seen.Text = past.Text + seen.Text
	ctxEvents, cancel := context.WithCancel(ctx)
	defer cancel()
	for event, err := range n.api.Events(ctxEvents, made.ID, 0) {
		if err != nil {
			return seen, err
		}
		text, err := json.Marshal(event)
		if err != nil {
			return seen, err
		}
		if seen.Text = string(text) + "\n" + seen.Text; event.To == "running" {
			break
		}
	}
	lists, err := lookAtAll(ctx, n, []string{"/v1/events?after=4503599627370494", "/v1/sandboxes?limit=1", "/v1/sandboxes/" + url.PathEscape(made.ID)})
	if err != nil {
		return seen, err
	}
	seen.Text = lists.Text + seen.Text
	return seen, n.api.DestroySandbox(ctx, made.ID)
}
