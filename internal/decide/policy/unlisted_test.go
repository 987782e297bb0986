package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestUnlistedNames: what is not listed waits on the ports that a person can open, if the
// policy says so; what nobody can be asked about is refused as ever.
func TestUnlistedNames(t *testing.T) {
	const list = "network_allowlist: [ api.example, \"host.example:8443\" ]\n"
	holds, denies := mustParse(t, list+"network_unlisted: hold\n"), mustParse(t, list+"network_unlisted: deny\n")
	for _, c := range []struct {
		name  string
		port  int
		want  policy.Effect
		ports string
	}{
		{"new.example", 0, policy.Hold, "[80 443]"},
		{"new.example", 443, policy.Hold, "[80 443]"},
		{"new.example", 80, policy.Hold, "[80 443]"},
		{"new.example", 22, policy.Deny, "[80 443]"},
		{"xn--nw-bja.example", 443, policy.Hold, "[80 443]"},
		{"api.example", 443, policy.Allow, "[80 443]"}, // the control: what is listed needs nobody
		{"api.example", 8443, policy.Deny, "[80 443]"},
		{"host.example", 443, policy.Hold, "[80 443 8443]"},
		{"host.example", 8443, policy.Allow, "[80 443 8443]"},
		// Addresses, in any spelling, and names of private networks and of this machine.
		{"127.0.0.1", 443, policy.Deny, "[]"},
		{"2130706433", 443, policy.Deny, "[]"},
		{"0x7f.1", 443, policy.Deny, "[]"},
		{"169.254.169.254", 80, policy.Deny, "[]"},
		{"[::1]", 443, policy.Deny, "[]"},
		{"localhost", 443, policy.Deny, "[]"},
		{"a.localhost", 443, policy.Deny, "[]"},
		{"metadata.google.internal", 80, policy.Deny, "[]"},
		{"printer.local", 80, policy.Deny, "[]"},
		{"git.corp", 443, policy.Deny, "[]"},
		{"router.home.arpa", 443, policy.Deny, "[]"},
		{"1.0.0.127.in-addr.arpa", 443, policy.Deny, "[]"},
		{"hidden.onion", 443, policy.Deny, "[]"},
		{"single", 443, policy.Deny, "[]"},
		// Texts that are no name in its one spelling.
		{"", 443, policy.Deny, "[]"},
		{"New.example", 443, policy.Deny, "[]"},
		{"new.example.", 443, policy.Deny, "[]"},
		{"new.example:443", 443, policy.Deny, "[]"},
		{"*.example", 443, policy.Deny, "[]"},
		{"a_b.example", 443, policy.Deny, "[]"},
		{"new.example/x", 443, policy.Deny, "[]"},
		{"n\u00e9w.example", 443, policy.Deny, "[]"},
	} {
		d := holds.Host(c.name, c.port)
		if d.Effect != c.want || d.Reason == "" || c.want == policy.Hold && (d.Rule != "network_unlisted" || !strings.Contains(d.Reason, "waits for approval")) {
			t.Errorf("%q on %d: %+v, want %s", c.name, c.port, d, c.want)
		}
		if ports := fmt.Sprint(holds.HostPorts(c.name)); ports != c.ports {
			t.Errorf("%q has the ports %s, want %s", c.name, ports, c.ports)
		}
		if d := denies.Host(c.name, c.port); d.Effect == policy.Hold || d.Allowed() != (c.want == policy.Allow) {
			t.Errorf("deny: %q on %d: %+v", c.name, c.port, d)
		}
	}
	if !holds.AsksHosts() || denies.AsksHosts() || mustParse(t, list).Host("new.example", 443).Effect != policy.Deny {
		t.Error("it is not the document that says whether names wait")
	}
}

// TestRoomForAskedPorts: a name that is listed on as many ports as there can be gets no more.
func TestRoomForAskedPorts(t *testing.T) {
	var ports []string
	for i := range 8 {
		ports = append(ports, fmt.Sprintf("\"a.example:%d\"", 8000+i))
	}
	p := mustParse(t, "network_unlisted: hold\nnetwork_allowlist: [ "+strings.Join(ports, ", ")+" ]\n")
	if got := p.HostPorts("a.example"); len(got) != 8 || slices.Contains(got, 443) {
		t.Errorf("%v", got)
	}
}

// TestNarrowedUnlistedNames: what one policy denies no other leaves to a person.
func TestNarrowedUnlistedNames(t *testing.T) {
	const holds, lists, denies = "network_unlisted: hold\n", "network_allowlist: [ new.example ]\n", "packages: { default: deny }\n"
	for _, c := range []struct {
		p, by string
		want  policy.Effect
		ports string
	}{
		{holds, holds + "name: other\n", policy.Hold, "[80 443]"},
		{lists, holds, policy.Hold, "[80 443]"},
		{holds, lists, policy.Hold, "[80 443]"},
		{holds, denies, policy.Deny, "[]"},
		{denies, holds, policy.Deny, "[]"},
		{lists, lists + "name: other\n", policy.Allow, "[80 443]"},
	} {
		p, _ := mustParse(t, c.p).NarrowedBy(mustParse(t, c.by))
		if d := p.Host("new.example", 443); d.Effect != c.want || fmt.Sprint(p.HostPorts("new.example")) != c.ports {
			t.Errorf("%q narrowed by %q: %+v %v", c.p, c.by, d, p.HostPorts("new.example"))
		}
	}
}

// TestAnswersAboutHosts: an answer decides what waits, and nothing else.
func TestAnswersAboutHosts(t *testing.T) {
	waits := mustParse(t, "network_unlisted: hold\n").Host("new.example", 443)
	yes := policy.Approval{ID: "ap-yes", By: "ann"}
	no := policy.Approval{ID: "ap-no", By: "bob", Denied: true, Reason: "use\x1b the mirror"}
	for name, c := range map[string]struct {
		d       policy.Decision
		answers []policy.Approval
		effect  policy.Effect
		id      string
		reason  string
	}{
		"nobody answered":       {waits, nil, policy.Hold, "", "waits for approval"},
		"approved":              {waits, []policy.Approval{yes}, policy.Allow, "ap-yes", "new.example was approved by ann (ap-yes)"},
		"denied":                {waits, []policy.Approval{no}, policy.Deny, "ap-no", "new.example was denied by bob (ap-no): use? the mirror"},
		"both":                  {waits, []policy.Approval{yes, no}, policy.Deny, "ap-no", "denied"},
		"what is denied stays":  {policy.Decision{Effect: policy.Deny, Reason: "no"}, []policy.Approval{yes}, policy.Deny, "", "no"},
		"what is allowed stays": {policy.Decision{Effect: policy.Allow, Reason: "listed"}, []policy.Approval{no}, policy.Allow, "", "listed"},
	} {
		d := policy.AnswerHost(c.d, "new.example", c.answers)
		if d.Effect != c.effect || d.Approval != c.id || !strings.Contains(d.Reason, c.reason) || c.id != "" && (d.Rule != "approval" || d.ResolvedBy != policy.ByApproval) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestUnlistedContradicts: a document that denies unlisted names does not hold them.
func TestUnlistedContradicts(t *testing.T) {
	for document, want := range map[string]string{
		"defaults: { network_default: deny }\nnetwork_unlisted: hold\n": "network_unlisted is hold, and defaults.network_default on line 1 denies the same names",
		"network_unlisted: hold\nnetwork: { mode: restricted }\n":       "network.mode",
		"network_unlisted: allow\n":                                     "network_unlisted",
		"network_unlisted: [ hold ]\n":                                  "network_unlisted",
	} {
		if _, err := policy.Parse("p", []byte(document)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", document, err, want)
		}
	}
	mustParse(t, "defaults: { network_default: deny }\nnetwork_unlisted: deny\n")
}

// TestAPersonOpensNoOtherProtocol: what says no name is for a policy to list.
func TestAPersonOpensNoOtherProtocol(t *testing.T) {
	p := mustParse(t, "network_unlisted: hold\nnetwork_allowlist: [ { host: db.example, port: 5432, tcp: true } ]\n")
	if d := p.Host("new.example", 443); d.Effect != policy.Hold { // the control
		t.Errorf("%+v", d)
	}
	if d := p.HostTCP("new.example", 443); d.Effect != policy.Deny || !strings.Contains(d.Reason, "tcp: true") {
		t.Errorf("any protocol to a name that waits for a person: %+v", d)
	}
	if d := p.HostTCP("db.example", 5432); !d.Allowed() {
		t.Errorf("%+v", d)
	}
}
