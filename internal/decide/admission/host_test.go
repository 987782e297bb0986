package admission

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// hosted is a controller with a sandbox, sb1, whose policy has names.
func hosted(t *testing.T, change func(*Run)) (*Controller, *approvaltest.Log) {
	t.Helper()
	log := &approvaltest.Log{}
	c := New(Config{Log: log})
	p, err := policy.Parse("p", []byte("network_allowlist: [ api.example, \"*.example.org:8443\" ]\n"))
	if err != nil {
		t.Fatal(err)
	}
	run := Run{Sandbox: "sb1", Run: "run-sb1", Policy: p}
	if change != nil {
		change(&run)
	}
	if err := c.Register(run); err != nil {
		t.Fatal(err)
	}
	return c, log
}

func connectTo(name string, port int, addresses ...string) door.ConnectAsk {
	ask := door.ConnectAsk{Sandbox: "sb1", Name: name, Port: port, Protocol: door.ProtocolTLS}
	for _, a := range addresses {
		ask.Addresses = append(ask.Addresses, netip.MustParseAddr(a))
	}
	return ask
}

// texts are the records, shortly.
func texts(log *approvaltest.Log) []string {
	var all []string
	for _, r := range log.All() {
		if r.Kind == audit.KindNetwork {
			d := r.Detail
			all = append(all, strings.Join(strings.Fields(fmt.Sprint(r.Outcome, " ", r.Rule, " ", d["name"], ":", d["port"], " ", d["protocol"], " ", d["addresses"], " ", d["address"], " ", d["bytes_out"], " ", d["bytes_in"], " ", d["took_ms"], " ", d["began_seq"], " ", r.Reason, " x", r.Count)), " "))
		}
	}
	return all
}

// TestConnections: on record as they begin, before anything is dialled, and as they end.
func TestConnections(t *testing.T) {
	c, log := hosted(t, nil)
	ctx := t.Context()
	if a, err := c.Name(ctx, door.NameAsk{Sandbox: "sb1", Name: "api.example"}); err != nil || !a.Answer.Decision.Allowed() || fmt.Sprint(a.Ports) != "[80 443]" {
		t.Errorf("%+v %v", a, err)
	}
	a, err := c.Connect(ctx, connectTo("api.example", 443, "93.184.215.14", "2606::1"))
	if err != nil || !a.Decision.Allowed() || a.RequestID == "" {
		t.Fatalf("%+v %v", a, err)
	}
	if gone, err := c.Standing(ctx, "sb1", []uint64{a.Seq, 99}); err != nil || fmt.Sprint(gone) != "[99]" {
		t.Errorf("%v %v", gone, err)
	}
	end := door.Disconnection{Sandbox: "sb1", Seq: a.Seq, Address: "93.184.215.14:443", BytesOut: 5, BytesIn: 7, Milliseconds: 12}
	must(t, c.Disconnected(ctx, end))
	if err := c.Disconnected(ctx, end); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("it ended twice: %v", err)
	}
	for _, ask := range []door.ConnectAsk{connectTo("api.example", 22, "93.184.215.14"), connectTo("evil.example", 443, "93.184.215.14"), connectTo("evil.example", 443, "93.184.215.14")} {
		if a, err := c.Connect(ctx, ask); err != nil || a.Decision.Allowed() || a.RequestID == "" {
			t.Errorf("%+v: %+v %v", ask, a, err)
		}
	}
	if _, err := c.Connect(ctx, connectTo("api.example", 443)); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("without an address: %v", err)
	}
	lost, err := c.Connect(ctx, connectTo("a.example.org", 8443, "93.184.215.14"))
	must(t, err)
	must(t, c.Disconnected(ctx, door.Disconnection{Sandbox: "sb1", Seq: lost.Seq, Problem: "it does not answer", Unreached: true}))
	for range 2 {
		_, err = c.HostRefused(ctx, door.HostRefusal{Sandbox: "sb1", Name: "api.example", Port: 443, Rule: door.RuleHostTLS, Reason: "another name"})
		must(t, err)
	}
	must(t, c.SandboxEnded(ctx, "sb1", "done"))
	want := []string{
		"started network_allowlist.api.example api.example:443 tls 93.184.215.14 2606::1 api.example is on the policy's network_allowlist x0",
		"finished network_allowlist.api.example api.example:443 tls 93.184.215.14 2606::1 93.184.215.14:443 5 7 12 0 x0",
		"blocked network_default api.example:22 the policy's network_allowlist has api.example on port 80, 443, and not on 22 x0",
		"blocked network_default evil.example:443 evil.example is not on the policy's network_allowlist x0",
		"started network_allowlist.*.example.org:8443 a.example.org:8443 tls 93.184.215.14 a.example.org is on the policy's network_allowlist x0",
		"failed network.unreached a.example.org:8443 it does not answer x0",
		"finished network_allowlist.*.example.org:8443 a.example.org:8443 tls 93.184.215.14 0 0 0 4 it does not answer x0",
		"blocked network.tls api.example:443 another name x0",
		"blocked network_default evil.example:443 evil.example is not on the policy's network_allowlist x1",
		"blocked network.tls api.example:443 another name x1",
	}
	got := texts(log)
	if len(got) == len(want) { // repeats are written side by side
		last := got[len(got)-2:]
		if strings.Contains(last[0], "network.tls") {
			last[0], last[1] = last[1], last[0]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	refusals, err := c.Refusals(ctx, "sb1", "", 0)
	if err != nil || len(refusals) != 4 || refusals[3].Name != "api.example:443" || refusals[3].What != "name" || refusals[3].Count != 2 || refusals[1].Suggest == "" {
		t.Errorf("%+v %v", refusals, err)
	}
	sum, err := c.Summary(ctx, "run-sb1")
	must(t, err)
	hosts := []Host{
		{Name: "a.example.org", Port: 8443, Connections: 1, Refused: 1, Reason: "it does not answer"},
		{Name: "api.example", Port: 22, Refused: 1, Reason: "the policy's network_allowlist has api.example on port 80, 443, and not on 22"},
		{Name: "api.example", Port: 443, Connections: 1, BytesOut: 5, BytesIn: 7, Refused: 2, Reason: "another name"},
		{Name: "evil.example", Port: 443, Refused: 2, Reason: "evil.example is not on the policy's network_allowlist"},
	}
	if diff := cmp.Diff(hosts, sum.Hosts); diff != "" || len(sum.Names) > 0 {
		t.Errorf("%s\n%v", diff, sum.Names)
	}
}

// TestWhatEndsConnections: a narrower policy, a client that closes more, a pause, the
// sandbox's end, and the run's cut; not what changes nothing.
func TestWhatEndsConnections(t *testing.T) {
	narrower, err := policy.Parse("n", []byte("network_allowlist: [ other.example ]\n"))
	must(t, err)
	same, err := policy.Parse("s", []byte("network_allowlist: [ api.example, \"*.example.org\" ]\n"))
	must(t, err)
	deny := func(entries ...string) policy.Narrowing {
		n, err := policy.NewNarrowing(nil, entries, nil)
		must(t, err)
		return n
	}
	for name, w := range map[string]struct {
		change func(c *Controller) error
		ends   bool
	}{
		"nothing":                {func(*Controller) error { return nil }, false},
		"a policy with it":       {func(c *Controller) error { return c.NarrowPolicy(t.Context(), "sb1", same) }, false},
		"a policy without it":    {func(c *Controller) error { return c.NarrowPolicy(t.Context(), "sb1", narrower) }, true},
		"all closed":             {func(c *Controller) error { return c.Narrow(t.Context(), "sb1", deny(policy.Everything)) }, true},
		"its address closed":     {func(c *Controller) error { return c.Narrow(t.Context(), "sb1", deny("93.184.0.0/16")) }, true},
		"another address closed": {func(c *Controller) error { return c.Narrow(t.Context(), "sb1", deny("8.8.8.8")) }, false},
		"a pause": {func(c *Controller) error {
			return c.SandboxFroze(t.Context(), "sb1", FreezeChange{Outcome: audit.Paused})
		}, true},
		"a freeze": {func(c *Controller) error {
			return c.SandboxFroze(t.Context(), "sb1", FreezeChange{Outcome: audit.Frozen})
		}, true},
		"a thaw that comes late": {func(c *Controller) error {
			return c.SandboxFroze(t.Context(), "sb1", FreezeChange{Outcome: audit.Thawed})
		}, false},
		"a freeze that did not go": {func(c *Controller) error {
			return c.SandboxFroze(t.Context(), "sb1", FreezeChange{Outcome: audit.Failed})
		}, false},
		"the end":                   {func(c *Controller) error { c.Unregister("sb1"); return nil }, true},
		"the gateway's end":         {func(c *Controller) error { return c.GatewayEnded(t.Context()) }, true},
		"the end as it is recorded": {func(c *Controller) error { return c.SandboxEnded(t.Context(), "sb1", "done") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, log := hosted(t, nil)
			a, err := c.Connect(t.Context(), connectTo("api.example", 443, "93.184.215.14"))
			must(t, err)
			must(t, w.change(c))
			gone, err := c.Standing(t.Context(), "sb1", []uint64{a.Seq})
			if (err != nil || len(gone) > 0) != w.ends {
				t.Errorf("%v %v", gone, err)
			}
			if ended := strings.Contains(fmt.Sprint(texts(log)), "finished"); ended != strings.Contains(name, "'s end") && ended != strings.Contains(name, "recorded") {
				t.Errorf("%q", texts(log))
			}
		})
	}
}

// TestConnectionsOfAnyProtocol: where an entry says so, as long as it does.
func TestConnectionsOfAnyProtocol(t *testing.T) {
	entries := "network_allowlist: [ api.example, { host: db.example, port: 5432, tcp: true } ]\n"
	p, err := policy.Parse("p", []byte(entries))
	must(t, err)
	without, err := policy.Parse("n", []byte("network_allowlist: [ \"db.example:5432\" ]\n"))
	must(t, err)
	c, log := hosted(t, func(r *Run) { r.Policy = p })
	for _, w := range []struct {
		name string
		port int
		tcp  bool
	}{{"db.example", 5432, true}, {"db.example", 0, false}, {"api.example", 443, false}, {"evil.example", 5432, false}} {
		if a, err := c.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: w.name, Port: w.port, Look: true}); err != nil || a.TCP != w.tcp {
			t.Errorf("%+v: %+v %v", w, a, err)
		}
	}
	tcp := func(name string, port int) door.Answer {
		ask := connectTo(name, port, "93.184.215.14")
		ask.Protocol = door.ProtocolTCP
		a, err := c.Connect(t.Context(), ask)
		must(t, err)
		return a
	}
	if a := tcp("api.example", 443); a.Decision.Allowed() {
		t.Errorf("without an entry that says so: %+v", a)
	}
	connection := tcp("db.example", 5432)
	secure, err := c.Connect(t.Context(), connectTo("db.example", 5432, "93.184.215.14"))
	must(t, err)
	if !connection.Decision.Allowed() || !secure.Decision.Allowed() {
		t.Fatalf("%+v %+v", connection, secure)
	}
	if gone, err := c.Standing(t.Context(), "sb1", []uint64{connection.Seq, secure.Seq}); err != nil || len(gone) > 0 {
		t.Errorf("%v %v", gone, err)
	}
	must(t, c.NarrowPolicy(t.Context(), "sb1", without))
	if gone, err := c.Standing(t.Context(), "sb1", []uint64{connection.Seq, secure.Seq}); err != nil || fmt.Sprint(gone) != fmt.Sprint([]uint64{connection.Seq}) {
		t.Errorf("%v %v", gone, err)
	}
	if a := tcp("db.example", 5432); a.Decision.Allowed() || !strings.Contains(a.Decision.Reason, "for TLS and HTTP alone") {
		t.Errorf("after the narrowing: %+v", a)
	}
	want := "started network_allowlist.db.example:5432 db.example:5432 tcp 93.184.215.14 db.example is on the policy's network_allowlist x0"
	if got := texts(log); len(got) < 2 || got[1] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestConnectionsNeedARecord: what can't be recorded does not begin.
func TestConnectionsNeedARecord(t *testing.T) {
	c, log := hosted(t, nil)
	log.FailWhen(func(audit.Record) error { return io.ErrShortWrite })
	if a, err := c.Connect(t.Context(), connectTo("api.example", 443, "93.184.215.14")); !errors.Is(err, io.ErrShortWrite) || a.Decision.Allowed() {
		t.Errorf("%+v %v", a, err)
	}
}

// TestPlansReachNoHost: what is only weighed has no effects outside.
func TestPlansReachNoHost(t *testing.T) {
	c, _ := hosted(t, func(r *Run) { r.Plan = true })
	if a, err := c.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: "api.example"}); err != nil || a.Answer.Decision.Rule != "network_plan" || len(a.Ports) > 0 {
		t.Errorf("%+v %v", a, err)
	}
	if a, err := c.Connect(t.Context(), connectTo("api.example", 443, "93.184.215.14")); err != nil || a.Decision.Allowed() {
		t.Errorf("%+v %v", a, err)
	}
}

// TestHostsOfAClientsNarrowing: names and addresses that the client closed.
func TestHostsOfAClientsNarrowing(t *testing.T) {
	n, err := policy.NewNarrowing(nil, []string{"93.184.0.0/16"}, nil)
	must(t, err)
	c, _ := hosted(t, func(r *Run) { r.Narrowing = n })
	if a, err := c.Connect(t.Context(), connectTo("api.example", 443, "8.8.8.8", "93.184.215.14")); err != nil || a.Decision.Rule != "network_narrowing" {
		t.Errorf("%+v %v", a, err)
	}
	if a, err := c.Connect(t.Context(), connectTo("api.example", 443, "8.8.8.8")); err != nil || !a.Decision.Allowed() {
		t.Errorf("%+v %v", a, err)
	}
}
