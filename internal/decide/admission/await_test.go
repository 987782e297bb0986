package admission

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// waitingHouse is a house whose policy holds what no list names, with a queue
// and a holder.
type waitingHouse struct {
	*house
	queue  *queue
	holder *holder
}

func newWaitingHouse(tb testing.TB, onHold string, limits Limits) *waitingHouse {
	tb.Helper()
	h := newHouse(tb, limits)
	h.Unregister("sb1")
	h.policy = parse(tb, "packages: { default: hold, sdist: hold, on_hold: "+onHold+" }\n"+
		"allowed_packages: { python: [ { name: requests, with_dependencies: true } ] }\n"+
		"blocked_packages: { python: [ { name: evil } ] }\n")
	w := &waitingHouse{house: h, queue: newQueue(), holder: newHolder()}
	h.config.Approvals, h.config.Holder = w.queue, w.holder
	must(tb, h.Register(h.run()))
	return w
}

// begun is an ask that is under way.
type begun struct {
	answer door.Answer
	err    error
}

func (h *waitingHouse) begin(ctx context.Context, ask door.AwaitAsk) <-chan begun {
	done := make(chan begun, 1)
	go func() {
		a, err := h.Await(ctx, ask)
		done <- begun{a, err}
	}()
	return done
}

func TestWhatWaitsIsShownAndServedToNobody(t *testing.T) {
	h := newWaitingHouse(t, "fail", Limits{})
	a, err := h.Index(t.Context(), indexOf("rich", "d", wheel("rich", "13.7.0"), wheel("rich", "13.7.1")))
	must(t, err)
	if len(a.Verdicts) != 1 || !a.Verdicts[0].Shown() || a.Verdicts[0].Allowed() || a.RequestID != "" || !a.WantEdges {
		t.Errorf("the page: %+v", a)
	}
	judged, err := h.Judge(t.Context(), judging("rich", "13.7.1"))
	must(t, err)
	served, err := h.Serve(t.Context(), serving("rich", "13.7.1"))
	must(t, err)
	for _, got := range []door.Answer{judged, served} {
		if got.Decision.Effect != policy.Hold || got.Approval != "" {
			t.Errorf("%+v", got)
		}
	}
	if n, filed := len(h.records(t)), h.queue.list(); n != 1 || len(filed) != 0 {
		t.Errorf("%d records, filed %+v; want nothing but the page before the bytes are here", n, filed)
	}
}

func TestATreeIsFiledAsItsMetadataIsRead(t *testing.T) {
	h := newWaitingHouse(t, "fail", Limits{})
	a, err := h.Preview(t.Context(), previewing("rich", "13.7.1"))
	must(t, err)
	if a.Decision.Effect != policy.Hold || a.Approval != "ap-1" || len(h.records(t)) != 0 {
		t.Fatalf("%+v, %d records", a, len(h.records(t)))
	}
	must(t, h.Edges(t.Context(), "sb1", python("rich", "13.7.1"), []door.Requirement{{Name: "pygments", Specifier: ">=2"}, {Name: "evil"}}))
	a, err = h.Preview(t.Context(), previewing("pygments", "2.19.0"))
	must(t, err)
	if a.Decision.Effect != policy.Hold || a.Approval != "ap-2" {
		t.Errorf("a dependency of what waits: %+v", a)
	}
	filed := h.queue.list()
	if len(filed) != 2 || !slices.Equal(filed[1].Asks[0].WantedBy, []string{"rich 13.7.1 requires pygments >=2"}) {
		t.Errorf("filed: %+v", filed)
	}
	want := approval.File{Name: "rich-13.7.1-py3-none-any.whl", Kind: "wheel", Digests: []string{"sha256:" + hexOf("rich13.7.1")}, Published: noon().AddDate(-1, 0, 0)}
	if got := filed[0].Files[0]; got.Name != want.Name || got.Kind != want.Kind || !slices.Equal(got.Digests, want.Digests) || !got.Published.Equal(want.Published) {
		t.Errorf("the file is %+v, want %+v", got, want)
	}
	if asker := filed[0].Asks[0]; asker.Run != "run1" || asker.Sandbox != "sb1" || asker.Task != "a task" || asker.User != "ann" {
		t.Errorf("the asker is %+v", asker)
	}
	if d, err := h.Judge(t.Context(), judging("evil", "1.0")); err != nil || d.Decision.Effect != policy.Deny {
		t.Errorf("a blocked dependency: %+v, %v", d, err)
	}
}

// TestWhatWaitsAdmitsNothing: an entry's dependencies are admitted through a
// release of it that is had, not through one of which a file waits.
func TestWhatWaitsAdmitsNothing(t *testing.T) {
	h := newWaitingHouse(t, "fail", Limits{})
	sdist := fileAsk("requests", "2.31.0")
	sdist.File.Name, sdist.File.Kind = "requests-2.31.0.tar.gz", policy.KindSdist
	bytes := wheelBytes("requests", "2.31.0")
	if a, err := h.Judge(t.Context(), door.JudgeAsk{FileAsk: sdist}); err != nil || a.Decision.Effect != policy.Hold {
		t.Fatalf("%+v, %v", a, err)
	}
	must(t, h.Edges(t.Context(), "sb1", python("requests", "2.31.0"), []door.Requirement{{Name: "idna", Specifier: "<4"}}))
	verdict := func() policy.Decision {
		a, err := h.Judge(t.Context(), judging("idna", "3.6"))
		must(t, err)
		return a.Decision
	}
	if d := verdict(); d.Effect != policy.Hold || len(d.WantedBy) != 1 || d.WantedBy[0].Through != "" {
		t.Errorf("while it waits: %+v", d)
	}
	a, err := h.Await(t.Context(), door.AwaitAsk{FileAsk: sdist, Bytes: bytes})
	must(t, err)
	h.queue.answer(t, a.Approval, approval.Approved)
	if a, err = h.Serve(t.Context(), door.ServeAsk{FileAsk: sdist, Bytes: bytes}); err != nil || !a.Decision.Allowed() || a.Decision.ResolvedBy != policy.ByApproval {
		t.Fatalf("approved: %+v, %v", a, err)
	}
	if d := verdict(); !d.Allowed() || d.ResolvedBy != policy.ByDependency {
		t.Errorf("once it is had: %+v", d)
	}
}

func TestAHoldThatFailsNamesItsRequest(t *testing.T) {
	h := newWaitingHouse(t, "fail", Limits{})
	var answers []door.Answer
	for range 3 {
		a, err := h.Await(t.Context(), awaiting("rich", "13.7.1"))
		must(t, err)
		answers = append(answers, a)
	}
	if answers[0].Decision.Effect != policy.Hold || answers[0].Approval != "ap-1" || answers[2].RequestID != answers[0].RequestID {
		t.Errorf("%+v", answers)
	}
	got := h.records(t, audit.Pending)
	if len(got) != 1 || got[0].Approval != "ap-1" || got[0].SHA256 != hexOf("rich13.7.1") || got[0].InstalledVersion != "13.7.1" || got[0].Rule != "packages.default" {
		t.Fatalf("pending records: %+v", got)
	}
	list, err := h.Refusals(t.Context(), "sb1", "", 10)
	must(t, err)
	if len(list) != 1 || list[0].Count != 3 || list[0].Approval != "ap-1" || !strings.HasSuffix(list[0].Reason, "it waits as ap-1, on the host: cofferdam approvals approve ap-1") {
		t.Errorf("why: %+v", list)
	}
	sum, err := h.Summary(t.Context(), "run1")
	must(t, err)
	if len(sum.Refused) != 1 || !strings.Contains(sum.Refused[0].Reason, "ap-1") {
		t.Errorf("the summary: %+v", sum.Refused)
	}
	if h.holder.String() != "held , 0 to be frozen, 0 released" || len(h.queue.list()) != 1 {
		t.Errorf("%s; filed %+v", h.holder, h.queue.list())
	}

	h.queue.answer(t, "ap-1", approval.Approved)
	a, err := h.Serve(t.Context(), serving("rich", "13.7.1"))
	must(t, err)
	served := h.records(t, audit.Served)
	if !a.Decision.Allowed() || len(served) != 1 || served[0].Approval != "ap-1" || served[0].ResolvedBy != "approval" || served[0].Rule != "approval" {
		t.Errorf("the retry: %+v, %+v", a, served)
	}
	if list, err = h.Refusals(t.Context(), "sb1", "", 10); err != nil || len(list) != 0 {
		t.Errorf("why, after it was served: %+v, %v", list, err)
	}
	if sum, err = h.Summary(t.Context(), "run1"); err != nil || len(sum.Refused) != 0 || len(sum.Served) != 1 {
		t.Errorf("the summary, after it was served: %+v, %v", sum, err)
	}
}

func TestAnAnswerMeetsWhatWaits(t *testing.T) {
	for _, c := range []struct {
		onHold string
		frozen int
		state  approval.State
		effect policy.Effect
		reason string
	}{
		{"wait 10m", 0, approval.Approved, policy.Allow, "rich was approved by bob (ap-1)"},
		{"wait 10m", 0, approval.Denied, policy.Deny, "rich was denied by bob (ap-1): because"},
		{"wait 10m", 0, approval.Expired, policy.Hold, "rich is on no list and waits for approval; packages.default is hold; its request has expired, and a retry makes a new one"},
		{"freeze", 1, approval.Approved, policy.Allow, "rich was approved by bob (ap-1)"},
		{"freeze", 1, approval.Denied, policy.Deny, "rich was denied by bob (ap-1): because"},
	} {
		h := newWaitingHouse(t, c.onHold, Limits{})
		first, second := h.begin(t.Context(), awaiting("rich", "13.7.1")), h.begin(t.Context(), awaiting("rich", "13.7.1"))
		<-h.holder.signal
		<-h.holder.signal
		if got, want := h.holder.String(), "held ap-1 ap-1, "; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", c.onHold, got, want)
		}
		if n := len(h.records(t, audit.Pending)); n != 1 {
			t.Errorf("%s: %d pending records", c.onHold, n)
		}
		h.queue.answer(t, "ap-1", c.state)
		for _, done := range []<-chan begun{first, second} {
			if got := <-done; got.err != nil || got.answer.Decision.Effect != c.effect || got.answer.Decision.Reason != c.reason {
				t.Errorf("%s, %s: %+v", c.onHold, c.state, got)
			}
		}
		if len(h.holder.held) != 0 || h.holder.past != 2 || len(h.holder.frozen) != 2*c.frozen {
			t.Errorf("%s: %s", c.onHold, h.holder)
		}
		blocked := h.records(t, audit.Blocked)
		if c.state == approval.Denied && (len(blocked) != 1 || blocked[0].Approval != "ap-1" || blocked[0].ResolvedBy != "approval") {
			t.Errorf("%s: blocked records %+v", c.onHold, blocked)
		}
		if n := len(h.records(t, audit.Served)); n != 0 {
			t.Errorf("%s: waiting served %d files", c.onHold, n)
		}
	}
}

func TestAWaitHasAnEnd(t *testing.T) {
	h := newWaitingHouse(t, "wait 1s", Limits{})
	a, err := h.Await(t.Context(), awaiting("rich", "13.7.1"))
	must(t, err)
	if a.Decision.Effect != policy.Hold || a.Approval != "ap-1" || !strings.HasSuffix(a.Decision.Reason, "; nobody answered within 1s") {
		t.Errorf("%+v", a)
	}
	if h.holder.String() != "held , 0 to be frozen, 1 released" || h.holds.kept.Held() != 0 {
		t.Errorf("%s, %d holding", h.holder, h.holds.kept.Held())
	}
}

func TestAClientThatGoesAwayEndsItsWait(t *testing.T) {
	h := newWaitingHouse(t, "freeze", Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	done := h.begin(ctx, awaiting("rich", "13.7.1"))
	<-h.holder.signal
	cancel()
	if got := <-done; !errors.Is(got.err, context.Canceled) {
		t.Errorf("%+v", got)
	}
	if h.holder.String() != "held , 1 to be frozen, 1 released" || h.holds.kept.Held() != 0 {
		t.Errorf("%s, %d holding", h.holder, h.holds.kept.Held())
	}
	if r := h.queue.list(); len(r) != 1 || r[0].State != approval.Pending {
		t.Errorf("the request: %+v", r)
	}
	h.queue.answer(t, "ap-1", approval.Approved)
	if a, err := h.Await(t.Context(), awaiting("rich", "13.7.1")); err != nil || !a.Decision.Allowed() {
		t.Errorf("the retry: %+v, %v", a, err)
	}
}

// TestAnAnswerAboutAnotherFileAsksAgain: what was approved is not the file that
// waits, so that waits on, as another request.
func TestAnAnswerAboutAnotherFileAsksAgain(t *testing.T) {
	h := newWaitingHouse(t, "freeze", Limits{})
	done := h.begin(t.Context(), awaiting("rich", "13.7.1"))
	<-h.holder.signal
	h.queue.answer(t, "ap-1", approval.Approved, "sha256:"+hexOf("another"), "md5:"+hexOf("rich13.7.1"))
	<-h.holder.signal
	if h.holder.String() != "held ap-2, 2 to be frozen, 1 released" {
		t.Errorf("%s", h.holder)
	}
	h.queue.answer(t, "ap-2", approval.Approved)
	if got := <-done; got.err != nil || !got.answer.Decision.Allowed() || got.answer.Decision.Approval != "ap-2" {
		t.Errorf("%+v", got)
	}
	for _, ask := range []door.ServeAsk{serving("rich", "13.7.2"), serving("rich", "13.7.0")} {
		if a, err := h.Serve(t.Context(), ask); err != nil || a.Decision.Effect != policy.Hold {
			t.Errorf("another version: %+v, %v", a, err)
		}
	}
}

func TestFewOfASandboxAreKeptWaiting(t *testing.T) {
	for name, limits := range map[string]Limits{"this sandbox": {Waiting: 1}, "all": {AllWaiting: 1}} {
		h := newWaitingHouse(t, "freeze", limits)
		first := h.begin(t.Context(), awaiting("rich", "13.7.1"))
		<-h.holder.signal
		a, err := h.Await(t.Context(), awaiting("pygments", "2.19.0"))
		must(t, err)
		if a.Decision.Effect != policy.Hold || a.Approval != "ap-2" || !strings.HasSuffix(a.Decision.Reason, "wait already that this one is not kept waiting") {
			t.Errorf("%s: %+v", name, a)
		}
		h.queue.answer(t, "ap-1", approval.Denied)
		<-first
		second := h.begin(t.Context(), awaiting("pygments", "2.19.0"))
		<-h.holder.signal
		h.queue.answer(t, "ap-2", approval.Approved)
		if got := <-second; got.err != nil || !got.answer.Decision.Allowed() {
			t.Errorf("%s: once there is a place: %+v", name, got)
		}
	}
}

func TestWhereNobodyCanBeAskedAHoldIsARefusal(t *testing.T) {
	h := newWaitingHouse(t, "freeze", Limits{})
	h.config.Approvals = nil
	a, err := h.Index(t.Context(), indexOf("rich", "d", wheel("rich", "13.7.1")))
	must(t, err)
	if a.Verdicts[0].Shown() || a.RequestID == "" {
		t.Errorf("the page: %+v", a)
	}
	got, err := h.Await(t.Context(), awaiting("rich", "13.7.1"))
	if err != nil || got.Decision.Effect != policy.Deny || !strings.HasSuffix(got.Decision.Reason, "; nobody can be asked here, so it is refused") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAFullQueueRefusesWithItsSentence(t *testing.T) {
	h := newWaitingHouse(t, "wait 10m", Limits{})
	h.queue.full = fault.New(fault.ErrForbidden, "200 requests of this run wait already")
	a, err := h.Await(t.Context(), awaiting("rich", "13.7.1"))
	must(t, err)
	if a.Decision.Effect != policy.Deny || a.Decision.Reason != "nobody is asked about it: 200 requests of this run wait already" || len(h.records(t, audit.Blocked)) != 1 {
		t.Errorf("%+v", a)
	}
	if a, err := h.Preview(t.Context(), previewing("rich", "13.7.1")); err != nil || !a.Decision.Shown() {
		t.Errorf("its metadata: %+v, %v", a, err)
	}
}

func TestAQueueThatFailsServesNothing(t *testing.T) {
	h := newWaitingHouse(t, "wait 10m", Limits{})
	h.queue.fails = fault.New(fault.ErrUnavailable, "the disk is full")
	_, judged := h.Judge(t.Context(), judging("rich", "13.7.1"))
	_, served := h.Serve(t.Context(), serving("rich", "13.7.1"))
	_, awaited := h.Await(t.Context(), awaiting("rich", "13.7.1"))
	for what, err := range map[string]error{"judge": judged, "serve": served, "await": awaited} {
		if !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if a, err := h.Index(t.Context(), indexOf("rich", "d", wheel("rich", "13.7.1"))); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("the page: %+v, %v", a, err)
	}
	if n := len(h.records(t)); n != 0 {
		t.Errorf("%d records", n)
	}
}

// TestNobodyIsHeldWithoutARecord: a log that can't be written ends the
// wait before it begins.
func TestNobodyIsHeldWithoutARecord(t *testing.T) {
	h := newWaitingHouse(t, "freeze", Limits{})
	must(t, h.log.Close())
	if a, err := h.Await(t.Context(), awaiting("rich", "13.7.1")); err == nil {
		t.Errorf("%+v", a)
	}
	if h.holder.String() != "held , 0 to be frozen, 0 released" {
		t.Errorf("%s", h.holder)
	}
}

// TestADenialCountsAtOnce: after a denial or a revocation is acknowledged
// nothing that asks is served.
func TestADenialCountsAtOnce(t *testing.T) {
	h := newWaitingHouse(t, "fail", Limits{})
	a, err := h.Await(t.Context(), awaiting("rich", "13.7.1"))
	must(t, err)
	h.queue.answer(t, a.Approval, approval.Approved)
	stop, done := make(chan struct{}), make(chan error, 4)
	for range 4 {
		go func() {
			for {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				if _, err := h.Serve(context.Background(), serving("rich", "13.7.1")); err != nil {
					done <- err
					return
				}
			}
		}()
	}
	h.queue.revoke(a.Approval)
	for range 20 {
		if got, err := h.Serve(t.Context(), serving("rich", "13.7.1")); err != nil || got.Decision.Effect != policy.Hold {
			t.Errorf("served after the revocation: %+v, %v", got, err)
		}
		if got, err := h.Index(t.Context(), indexOf("rich", "d", wheel("rich", "13.7.1"))); err != nil || got.Verdicts[got.OfFile[0]].Allowed() {
			t.Errorf("a page says that it is allowed: %+v, %v", got, err)
		}
	}
	close(stop)
	for range 4 {
		must(t, <-done)
	}
}

// TestAnswersOfAnotherRunAreNotShared: verdicts on pages are shared by runs with
// the same facts, and people's answers are facts.
func TestAnswersOfAnotherRunAreNotShared(t *testing.T) {
	h := newWaitingHouse(t, "fail", Limits{})
	h.config.Approvals = runQueue{h.queue, "run2"}
	must(t, h.Register(Run{Sandbox: "sb2", Run: "run2", Policy: h.policy}))
	a, err := h.Await(t.Context(), awaiting("rich", "13.7.1"))
	must(t, err)
	h.queue.answer(t, a.Approval, approval.Approved)
	effects := map[string]policy.Effect{}
	for _, sandbox := range []string{"sb1", "sb2"} {
		ask := indexOf("rich", "d", wheel("rich", "13.7.1"))
		ask.Sandbox = sandbox
		got, err := h.Index(t.Context(), ask)
		must(t, err)
		effects[sandbox] = got.Verdicts[got.OfFile[0]].Effect
	}
	if effects["sb1"] != policy.Hold || effects["sb2"] != policy.Allow {
		t.Errorf("%v", effects)
	}
}

// runQueue gives one run's answers to that run alone.
type runQueue struct {
	*queue
	run string
}

func (q runQueue) Grants(ctx context.Context, p pkgref.Ref, who approval.Asker) ([]policy.Approval, string, error) {
	if who.Run != q.run {
		return nil, "same", nil
	}
	grants, _, err := q.queue.Grants(ctx, p, who)
	return grants, "same", err
}

func TestMalwareInsideOfWhatWaitsIsRefused(t *testing.T) {
	h := newWaitingHouse(t, "wait 10m", Limits{})
	h.config.Advisories = madeUp{facts: map[pkgref.Ref]advisory.Facts{
		python("inner", ""): {Malware: []policy.Malware{{ID: "MAL-1", Every: true}}},
	}}
	ask := awaiting("rich", "13.7.1")
	ask.Bundled = []string{"inner 1.0"}
	a, err := h.Await(t.Context(), ask)
	must(t, err)
	if a.Decision.Effect != policy.Deny || !a.Decision.Alarm || len(h.queue.list()) != 0 {
		t.Errorf("%+v; filed %+v", a, h.queue.list())
	}
}

// madeUp are facts made up for a test.
type madeUp struct{ facts map[pkgref.Ref]advisory.Facts }

func (m madeUp) Facts(p pkgref.Ref) (advisory.Facts, error) { return m.facts[p], nil }
func (m madeUp) Generation() string                         { return "" }
func (m madeUp) Vulnerabilities(pkgref.Ref) (advisory.Vulnerabilities, error) {
	return advisory.Vulnerabilities{Assessed: true}, nil
}

func TestWhatWaitedIsRestored(t *testing.T) {
	h := newWaitingHouse(t, "fail", Limits{})
	_, err := h.Await(t.Context(), awaiting("rich", "13.7.1"))
	must(t, err)
	again := New(Config{Clients: all.Asked, Log: h.log, Clock: h, Approvals: h.queue})
	must(t, again.Restore(t.Context(), h.run()))
	list, err := again.Refusals(t.Context(), "sb1", "", 10)
	must(t, err)
	if len(list) != 1 || list[0].Approval != "ap-1" {
		t.Errorf("why, after a restart: %+v", list)
	}
	a, err := again.Await(t.Context(), awaiting("rich", "13.7.1"))
	must(t, err)
	if a.Approval != "ap-1" || len(h.records(t, audit.Pending)) != 1 {
		t.Errorf("the retry joins: %+v, %d records", a, len(h.records(t, audit.Pending)))
	}
	h.queue.answer(t, "ap-1", approval.Approved)
	if a, err = again.Serve(t.Context(), serving("rich", "13.7.1")); err != nil || !a.Decision.Allowed() {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestAPolicyWithoutHoldsAsksNobody: where nothing can wait the queue need not
// work.
func TestAPolicyWithoutHoldsAsksNobody(t *testing.T) {
	h := newHouse(t, Limits{})
	q := newQueue()
	q.fails = errors.New("not to be asked")
	h.Unregister("sb1")
	h.config.Approvals, h.policy = q, parse(t, "allowed_packages: { python: [ { name: requests } ] }\n")
	must(t, h.Register(h.run()))
	if a, err := h.Serve(t.Context(), serving("requests", "2.31.0")); err != nil || !a.Decision.Allowed() {
		t.Errorf("%+v, %v", a, err)
	}
}
