package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const judgedDocument = "network_allowlist: [ { host: api.example, methods: [GET], paths: [\"/repos/acme/**\"], max_body: 1kB }, open.example ]\n"

func parsed(t *testing.T, document string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("p", []byte(document))
	must(t, err)
	return p
}

// judged is a controller with a sandbox, sb1, of whose requests to api.example are judged.
func judged(t *testing.T, limits Limits) (*Controller, *approvaltest.Log) {
	t.Helper()
	log := &approvaltest.Log{}
	c := New(Config{Log: log, Limits: limits, Leaf: func(_ context.Context, hosts []string, name string) (door.Certificate, error) {
		return door.Certificate{ChainPEM: []byte(fmt.Sprint(hosts, " ", name))}, nil
	}})
	must(t, c.Register(Run{Sandbox: "sb1", Run: "run-sb1", Policy: parsed(t, judgedDocument)}))
	return c, log
}

func judgedConnection(t *testing.T, c *Controller) door.Answer {
	t.Helper()
	ask := connectTo("api.example", 443, "93.184.215.14")
	ask.Protocol, ask.Judged = door.ProtocolHTTPS, true
	a, err := c.Connect(t.Context(), ask)
	must(t, err)
	return a
}

func ask(method, path string) door.RequestAsk {
	return door.RequestAsk{Sandbox: "sb1", Name: "api.example", Port: 443, Method: method, Path: path}
}

// requestTexts are the records of requests, shortly.
func requestTexts(log *approvaltest.Log) []string {
	var all []string
	for _, r := range log.All() {
		if d := r.Detail; r.Kind == audit.KindNetwork && (d["request"] != "" || d["requests"] != "" || r.Outcome == audit.Exceeded) {
			all = append(all, strings.Join(strings.Fields(fmt.Sprint(r.Outcome, " ", r.Rule, " ", d["name"], ":", d["port"], " ", d["requests"], " ", d["request"], " ", d["status"], " ", d["bytes_out"], " ", d["bytes_in"], " ", d["began_seq"], " x", r.Count)), " "))
		}
	}
	return all
}

// TestRequestsAreOnRecord: each that was refused, once, and each that was passed on, with
// what became of it; then its connection's end tells how many there were.
func TestRequestsAreOnRecord(t *testing.T) {
	c, log := judged(t, Limits{Requests: 2})
	n, err := c.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: "api.example", Port: 443})
	if err != nil || !n.Judged || n.TCP {
		t.Errorf("%+v %v", n, err)
	}
	if n, err := c.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: "open.example", Port: 443}); err != nil || n.Judged {
		t.Errorf("%+v %v", n, err)
	}
	a := judgedConnection(t, c)
	good, err := c.Request(t.Context(), ask("GET", "/repos/acme/x"))
	if err != nil || !good.Answer.Decision.Allowed() || good.Terms.MaxBody != 1_000 {
		t.Fatalf("%+v %v", good, err)
	}
	for _, bad := range []door.RequestAsk{ask("POST", "/repos/acme/x"), ask("GET", "/user"), ask("GET", "/user")} {
		if refused, err := c.Request(t.Context(), bad); err != nil || refused.Answer.Decision.Allowed() || refused.Answer.RequestID == "" || refused.Answer.Decision.Rule != door.RuleHostRequest {
			t.Errorf("%+v: %+v %v", bad, refused, err)
		}
	}
	one := door.RequestDone{Method: "GET", Path: "/repos/acme/x", Rule: good.Answer.Decision.Rule, Status: 200, BytesOut: 3, BytesIn: 4}
	for range 2 {
		must(t, c.Requested(t.Context(), door.RequestsDone{Sandbox: "sb1", Connection: a.Seq, Requests: []door.RequestDone{one, one}}))
	}
	if err := c.Requested(t.Context(), door.RequestsDone{Sandbox: "sb1", Connection: 99, Requests: []door.RequestDone{one}}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("requests on no connection: %v", err)
	}
	must(t, c.Disconnected(t.Context(), door.Disconnection{Sandbox: "sb1", Seq: a.Seq, Requests: 4}))
	want := []string{
		"started network_allowlist.api.example api.example:443 judged x0",
		"blocked network.request api.example:443 POST /repos/acme/x x0",
		"blocked network.request api.example:443 GET /user x0",
		"finished network_allowlist.api.example api.example:443 GET /repos/acme/x 200 3 4 0 x0",
		"finished network_allowlist.api.example api.example:443 GET /repos/acme/x 200 3 4 0 x0",
		"exceeded quota.requests : x0",
		"finished network_allowlist.api.example api.example:443 4 0 0 0 x0",
	}
	if diff := cmp.Diff(want, requestTexts(log)); diff != "" {
		t.Error(diff)
	}
	told, err := c.Refusals(t.Context(), "sb1", "", 0)
	if err != nil || len(told) != 2 || told[0].Name != "api.example:443 POST /repos/acme/x" || told[1].Count != 2 || !strings.Contains(told[1].Suggest, "paths: [\"/user\"]") {
		t.Errorf("%+v %v", told, err)
	}
	sum, err := c.Summary(t.Context(), "run-sb1")
	if err != nil || len(sum.Hosts) != 1 || sum.Hosts[0].Connections != 1 || sum.Hosts[0].BytesIn != 0 {
		t.Errorf("what requests carried is counted twice: %+v %v", sum.Hosts, err)
	}
}

// TestRequestsAreCountedAfterARestart: those before it have had their records.
func TestRequestsAreCountedAfterARestart(t *testing.T) {
	c, log := judged(t, Limits{Requests: 1})
	a := judgedConnection(t, c)
	one := door.RequestDone{Method: "GET", Path: "/repos/acme/x", Status: 200, BytesIn: 7}
	must(t, c.Requested(t.Context(), door.RequestsDone{Sandbox: "sb1", Connection: a.Seq, Requests: []door.RequestDone{one}}))
	must(t, c.Disconnected(t.Context(), door.Disconnection{Sandbox: "sb1", Seq: a.Seq, BytesIn: 9, Requests: 1}))
	later := New(Config{Log: log, Limits: Limits{Requests: 1}})
	must(t, later.Restore(t.Context(), Run{Sandbox: "sb1", Run: "run-sb1", Policy: parsed(t, judgedDocument)}))
	if n, err := later.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: "api.example", Port: 443}); err != nil || n.Carried != 9 {
		t.Errorf("it has carried %d, want 9: what requests carried is counted twice; %v", n.Carried, err)
	}
	b := judgedConnection(t, later)
	for range 2 {
		must(t, later.Requested(t.Context(), door.RequestsDone{Sandbox: "sb1", Connection: b.Seq, Requests: []door.RequestDone{one}}))
	}
	got := requestTexts(log)
	if last := got[len(got)-1]; !strings.HasPrefix(last, "exceeded quota.requests") || len(got) != 5 {
		t.Errorf("%q", got)
	}
}

// TestWhoCarriesJudgedRequests: nobody who does not ask about each, also where the rules
// came after the connection.
func TestWhoCarriesJudgedRequests(t *testing.T) {
	c, _ := judged(t, Limits{})
	a, err := c.Connect(t.Context(), connectTo("api.example", 443, "93.184.215.14"))
	if err != nil || a.Decision.Allowed() || a.Decision.Rule != door.RuleHostRequest {
		t.Errorf("a connection that nobody reads: %+v %v", a, err)
	}
	open, err := c.Connect(t.Context(), connectTo("open.example", 443, "93.184.215.14"))
	if err != nil || !open.Decision.Allowed() {
		t.Fatalf("%+v %v", open, err)
	}
	kept := judgedConnection(t, c)
	must(t, c.NarrowPolicy(t.Context(), "sb1", parsed(t, "network_allowlist: [ api.example, { host: open.example, methods: [GET] } ]\n")))
	gone, err := c.Standing(t.Context(), "sb1", []uint64{open.Seq, kept.Seq})
	if err != nil || fmt.Sprint(gone) != fmt.Sprint([]uint64{open.Seq}) {
		t.Errorf("%v %v, want %d alone", gone, err, open.Seq)
	}
}

// TestLeaves: of the hosts that the sandbox began with, and of none that came later if it
// can't be told of them.
func TestLeaves(t *testing.T) {
	c, _ := judged(t, Limits{})
	leaf, err := c.Leaf(t.Context(), door.LeafAsk{Sandbox: "sb1", Name: "api.example"})
	if err != nil || string(leaf.ChainPEM) != "[api.example] api.example" {
		t.Errorf("%s %v", leaf.ChainPEM, err)
	}
	must(t, c.NarrowPolicy(t.Context(), "sb1", parsed(t, "network_allowlist: [ api.example, { host: open.example, methods: [GET] } ]\n")))
	for _, name := range []string{"open.example", "evil.example", "x.api.example"} {
		if _, err := c.Leaf(t.Context(), door.LeafAsk{Sandbox: "sb1", Name: name}); !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Leaf(t.Context(), door.LeafAsk{Sandbox: "sb2", Name: "api.example"}); err == nil {
		t.Error("a sandbox that nobody knows has a certificate")
	}
}

// TestLeavesOfALaterPolicy: a sandbox is told of the authority once, before it has a leaf
// under it; where it can't be told, it has none, and is told again the next time.
func TestLeavesOfALaterPolicy(t *testing.T) {
	c, _ := judged(t, Limits{})
	var told []string
	deaf := errors.New("its agent does not answer")
	c.tell = func(_ context.Context, sandbox string, hosts []string) error {
		told = append(told, fmt.Sprint(sandbox, hosts))
		return deaf
	}
	must(t, c.TrustAnew(t.Context(), "sb1"))
	must(t, c.NarrowPolicy(t.Context(), "sb1", parsed(t, "network_allowlist: [ api.example, { host: open.example, methods: [GET] } ]\n")))
	open := door.LeafAsk{Sandbox: "sb1", Name: "open.example"}
	if err := c.TrustAnew(t.Context(), "sb1"); !errors.Is(err, deaf) {
		t.Errorf("%v", err)
	}
	if _, err := c.Leaf(t.Context(), open); !errors.Is(err, fault.ErrForbidden) || !strings.Contains(err.Error(), "start another one") {
		t.Errorf("%v", err)
	}
	if got := c.Trusted("sb1"); len(got) > 0 {
		t.Errorf("it trusts %v, and was told of nothing", got)
	}
	deaf = nil
	for range 2 {
		leaf, err := c.Leaf(t.Context(), open)
		if err != nil || string(leaf.ChainPEM) != "[api.example open.example] open.example" {
			t.Errorf("%s %v", leaf.ChainPEM, err)
		}
	}
	must(t, c.TrustAnew(t.Context(), "sb1"))
	if leaf, err := c.Leaf(t.Context(), door.LeafAsk{Sandbox: "sb1", Name: "api.example"}); err != nil || string(leaf.ChainPEM) != "[api.example] api.example" {
		t.Errorf("of a host that it began with: %s %v", leaf.ChainPEM, err)
	}
	const once = "sb1[api.example open.example]"
	if fmt.Sprint(told) != fmt.Sprint([]string{once, once, once}) || fmt.Sprint(c.Trusted("sb1")) != "[api.example open.example]" {
		t.Errorf("told %q, trusts %v", told, c.Trusted("sb1"))
	}
	if _, err := c.Leaf(t.Context(), door.LeafAsk{Sandbox: "sb1", Name: "evil.example"}); !errors.Is(err, fault.ErrForbidden) || len(told) > 3 {
		t.Errorf("%v, told %q", err, told)
	}
}
