package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
)

// planners are two tokens that make plans.
type planners struct {
	t       *testing.T
	log     *approvaltest.Log
	keys    audit.OwnerKeys
	door    *admission.Controller
	server  *Server
	policy  *policy.Policy
	tokens  map[string]token.Token
	secrets map[string]string
}

func newPlanners(t *testing.T) *planners {
	t.Helper()
	p := &planners{t: t, log: &approvaltest.Log{}, keys: audit.NewOwnerKeys([]byte("the installation's")), tokens: map[string]token.Token{}, secrets: map[string]string{}}
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ann", "bob"} {
		if p.tokens[name], p.secrets[name], err = book.Issue(t.Context(), token.Grant{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if p.policy, err = policy.Parse("p.yaml", []byte("packages: { default: allow }\n")); err != nil {
		t.Fatal(err)
	}
	p.door = admission.New(admission.Config{Log: p.log})
	p.server = New(Config{Log: p.log, OwnerKeys: p.keys, Tokens: book, Door: p.door, Logger: slog.New(slog.DiscardHandler)})
	return p
}

func (p *planners) ask(who, method, path, body string) (int, string) {
	p.t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(p.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("X-Api-Key", p.secrets[who])
	p.server.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// plan has a plan made in a sandbox of a token's, which then ends.
func (p *planners) plan(who, run string, notes string) {
	p.t.Helper()
	began(p.t, p.log, p.keys, p.tokens[who].ID, run)
	if err := p.door.Register(admission.Run{Sandbox: "sb-" + run, Run: run, Plan: true, Policy: p.policy, Token: p.tokens[who].ID}); err != nil {
		p.t.Fatal(err)
	}
	defer p.door.Unregister("sb-" + run)
	body := `{"ecosystem":"python","releases":[],"notes":["` + notes + `"]}`
	if status, text := p.ask(who, http.MethodPost, "/v1/runs/"+run+"/plan", body); status != http.StatusOK {
		p.t.Fatalf("%s's plan of %s: %d %.300s", who, run, status, text)
	}
}

// TestOthersPlansLeaveMineAlone: what a token is answered depends on nothing that another token does
// (docs/isolation.md: "State is never shared"), the plan that is kept of its run included.
func TestOthersPlansLeaveMineAlone(t *testing.T) {
	p := newPlanners(t)
	p.plan("ann", "mine", "a note")
	before, text := p.ask("ann", http.MethodGet, "/v1/runs/mine/plan", "")
	if before != http.StatusOK {
		t.Fatalf("%d %s", before, text)
	}
	for i := range maxKeptPlans {
		p.plan("bob", fmt.Sprint("theirs-", i), "a note")
	}
	after, now := p.ask("ann", http.MethodGet, "/v1/runs/mine/plan", "")
	if after != before || now != text {
		t.Errorf("after another token made %d plans, ann's own is %d %.200s", maxKeptPlans, after, now)
	}
}

// TestKeptPlansAreBounded: what is kept of a token's plans after its requests is bounded by more than how
// many there are.
func TestKeptPlansAreBounded(t *testing.T) {
	p := newPlanners(t)
	inUse := func() int64 {
		runtime.GC() // once more for what pools keep
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	const plans, each = 6, 3 << 20 // of 64 of up to 16 MiB; and the pace of a token is not waited for
	for i := range plans {
		p.plan("bob", fmt.Sprint("run-", i), strings.Repeat("x", each))
	}
	held := inUse() - before
	if held > maxPlanBytes+2<<20 {
		t.Errorf("%d plans of runs that are over hold %d KiB; those of one token may hold %d KiB", plans, held>>10, maxPlanBytes>>10)
	}
	if last, text := p.ask("bob", http.MethodGet, fmt.Sprint("/v1/runs/run-", plans-1, "/plan"), ""); last != http.StatusOK {
		t.Errorf("the last one: %d %.200s", last, text)
	}
	runtime.KeepAlive(p)
}

// TestTheLastPlanOfARunIsGiven: whoever made it, so an administrator's is given to the token whose run it is, and
// the last of two to whoever may see both.
func TestTheLastPlanOfARunIsGiven(t *testing.T) {
	var p plans
	p.keepPlan("tok-zoe", "run", []byte("first"))
	p.keepPlan("tok-bob", "run", []byte("second"))
	if got := string(p.lastPlan("run")); got != "second" {
		t.Errorf("the last plan is %q", got)
	}
	p.keepPlan("", "run", []byte("third"))
	if got := string(p.lastPlan("run")); got != "third" {
		t.Errorf("the last plan is %q", got)
	}
}

// TestPlansOfAllOwnersAreBounded: tokens come and go, and what is kept of all their plans stays bounded; the
// small plan of one is not what leaves.
func TestPlansOfAllOwnersAreBounded(t *testing.T) {
	var p plans
	p.keepPlan("tok-ann", "mine", []byte("a plan"))
	large := make([]byte, maxPlanBytes-planCost)
	const owners = 2 * maxAllPlansBytes / maxPlanBytes
	for i := range owners {
		p.keepPlan(fmt.Sprint("tok-", i), fmt.Sprint("run-", i), large)
	}
	held := 0
	for _, k := range p.kept {
		held += len(k.answer)
	}
	if held > maxAllPlansBytes || p.lastPlan(fmt.Sprint("run-", owners-1)) == nil || string(p.lastPlan("mine")) != "a plan" {
		t.Errorf("%d tokens have %d MiB kept; the last one's is %t, a small one's %q", owners, held>>20, p.lastPlan(fmt.Sprint("run-", owners-1)) != nil, p.lastPlan("mine"))
	}
}
