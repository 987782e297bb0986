package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
)

func holdAll(pkgref.Ref, door.File) policy.Decision {
	return policy.Decision{Effect: policy.Hold, Rule: "packages.default", ResolvedBy: policy.ByDefault, Reason: "foo waits for approval"}
}

func approveAll(pkgref.Ref, door.File) policy.Decision {
	return policy.Decision{Effect: policy.Allow, Rule: "approval", ResolvedBy: policy.ByApproval, Reason: "foo was approved by ann (ap-7k2m4q)"}
}

// newHoldBench is a bench with a project "foo" that waits for a person.
func newHoldBench(t *testing.T, change func(*gateway.Config)) (*bench, pypitest.Dist) {
	t.Helper()
	b := newBench(t, change)
	foo := pypitest.Wheel(t, "foo", "1.0", "bar>=2")
	b.publish(foo)
	b.door.rule(holdAll)
	return b, foo
}

// TestAHoldIsRefusedWithItsRequest: what waits is on the page and its metadata
// is read, which the door is told with what is known; its file is fetched and
// looked into before a person is asked, and refused with how to approve it.
func TestAHoldIsRefusedWithItsRequest(t *testing.T) {
	b, foo := newHoldBench(t, nil)
	page := b.get("/simple/foo/", "Accept", pypitest.TypeJSON)
	if page.StatusCode != 200 || !strings.Contains(page.body, foo.File) || strings.Contains(page.body, `"yanked":"`) || !strings.Contains(page.body, "core-metadata") {
		t.Errorf("the page: %s", status(page))
	}
	if meta := b.get("/p/" + foo.File + ".metadata"); meta.StatusCode != 200 || meta.body != string(foo.Metadata) {
		t.Errorf("its metadata: %s", status(meta))
	}
	file := b.get("/p/" + foo.File)
	want := "python foo 1.0: foo waits for approval; request ap-7k2m4q; a person approves it on the host: cofferdam approvals approve ap-7k2m4q; try again then"
	if file.StatusCode != http.StatusForbidden || file.Status != "403 Blocked by cofferdam: "+want {
		t.Errorf("the file: %s", file.Status)
	}
	for _, part := range []string{want, `"approval":"ap-7k2m4q"`, `"approve":"cofferdam approvals approve ap-7k2m4q"`, `"rule":"packages.default"`} {
		if !strings.Contains(file.body, part) {
			t.Errorf("the body lacks %q: %s", part, file.body)
		}
	}
	if head := b.do(sandboxA, http.MethodHead, "https://"+filesHost+"/p/"+foo.File); head.StatusCode != 200 || head.ContentLength != int64(len(foo.Bytes)) {
		t.Errorf("HEAD: %s", head.Status)
	}
	b.door.mu.Lock()
	defer b.door.mu.Unlock()
	log := strings.Join(b.door.log, "\n")
	if len(b.door.served) != 0 || len(b.door.denied) != 0 || len(b.door.previewed) == 0 || len(b.door.awaited) == 0 || strings.Contains(log, ": serve") {
		t.Fatal(log)
	}
	sidecar, await := b.door.previewed[len(b.door.previewed)-1], b.door.awaited[len(b.door.awaited)-1]
	if sidecar.Evidence == nil || sidecar.File.Digest != "sha256:"+foo.Digest() {
		t.Errorf("of the metadata: %+v", sidecar)
	}
	if await.SHA256 != foo.Digest() || await.Size != int64(len(foo.Bytes)) || len(await.Digests) != 2 || await.Evidence == nil || await.Evidence.Published.IsZero() {
		t.Errorf("of the file: %+v", await)
	}
	if got := fmt.Sprint(b.door.edges["python foo 1.0"]); got != "[{bar >=2   false}]" {
		t.Errorf("its requirements: %s", got)
	}
}

// TestAnApprovedFileIsServedToWhoWaited: also when that takes longer than a
// request may take otherwise. pip is kept patient meanwhile, and the answer
// comes with a status of its own.
func TestAnApprovedFileIsServedToWhoWaited(t *testing.T) {
	for agent, interims := range map[string]int{"pip/26.3 {}": 5, "pnpm/10.34.9 npm/? node/v20": 5, "uv/0.13.9 {}": 0, "Go-http-client/1.1": 0} {
		b, foo := newHoldBench(t, func(c *gateway.Config) {
			c.Limits.RequestTime, c.Limits.Interim = 60*time.Millisecond, 20*time.Millisecond
		})
		begun, approve := make(chan struct{}), make(chan struct{})
		b.door.wait = func(ctx context.Context, _ door.AwaitAsk) error {
			close(begun)
			select {
			case <-approve:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		seen := make(chan int, 1_000)
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
			seen <- code
			return nil
		}}
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, "https://"+filesHost+"/p/"+foo.File, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", agent)
		go func() {
			<-begun
			for range interims {
				if code := <-seen; code != http.StatusContinue {
					t.Errorf("%s: an interim answer %d", agent, code)
				}
			}
			b.door.rule(approveAll)
			close(approve)
		}()
		resp, err := b.client(sandboxA).Do(req)
		if err != nil {
			t.Fatalf("%s: %v", agent, err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.Status != "200 OK" || string(body) != string(foo.Bytes) {
			t.Errorf("%s: %s, %d bytes, %v", agent, resp.Status, len(body), err)
		}
		if served := b.door.Served(); len(served) != 1 || served[0].SHA256 != foo.Digest() {
			t.Errorf("%s: served %+v", agent, served)
		}
		if interims == 0 && len(seen) > 0 {
			t.Errorf("%s: %d interim answers", agent, len(seen))
		}
	}
}

func TestADenialMeetsWhoWaited(t *testing.T) {
	b, foo := newHoldBench(t, nil)
	b.door.wait = func(context.Context, door.AwaitAsk) error {
		b.door.rule(func(pkgref.Ref, door.File) policy.Decision {
			return policy.Decision{Effect: policy.Deny, Rule: "approval", ResolvedBy: policy.ByApproval, Reason: "foo was denied by ann (ap-7k2m4q): too new"}
		})
		return nil
	}
	got := b.get("/p/" + foo.File)
	if got.Status != "403 Blocked by cofferdam: python foo 1.0: foo was denied by ann (ap-7k2m4q): too new; request r-1; see: cofferdam why" {
		t.Errorf("%s", got.Status)
	}
	if n := len(b.door.Served()); n != 0 {
		t.Errorf("%d served", n)
	}
}

// TestAClientThatGoesAwayEndsTheWait: the door is told by the end of its call.
func TestAClientThatGoesAwayEndsTheWait(t *testing.T) {
	b, foo := newHoldBench(t, nil)
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	b.door.wait = func(ctx context.Context, _ door.AwaitAsk) error {
		leave()
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+filesHost+"/p/"+foo.File, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := b.client(sandboxA).Do(req); err == nil {
		resp.Body.Close()
		t.Errorf("%s", resp.Status)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ended with %v", err)
	}
	if n := len(b.door.Served()); n != 0 {
		t.Errorf("%d served", n)
	}
}

// TestNoByteAfterADenial: a file that was approved is cut off where it is being
// sent when the approval is taken back.
func TestNoByteAfterADenial(t *testing.T) {
	b := newBench(t, nil)
	noise := make([]byte, 4<<20) // more than what is sent between two questions, and can't be packed
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(noise) // never fails
	foo := pypitest.WheelOf(t, "foo", "1.0", [2]string{"foo/noise.bin", string(noise)})
	b.publish(foo)
	b.door.rule(approveAll)
	if got := b.get("/p/" + foo.File); got.StatusCode != 200 || got.body != string(foo.Bytes) {
		t.Fatalf("while it is approved: %s, %d bytes", got.Status, len(got.body))
	}
	resp := b.open("/p/" + foo.File)
	defer resp.Body.Close()
	first := make([]byte, 1_000)
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Fatal(err)
	}
	b.door.rule(holdAll)
	rest, err := io.ReadAll(resp.Body)
	if err == nil || len(rest) > 1<<20 {
		t.Errorf("%d bytes more came, and then %v", len(rest), err)
	}
	b.eventually("the abort is recorded", func() bool {
		b.door.mu.Lock()
		defer b.door.mu.Unlock()
		return len(b.door.aborted) == 1 && b.door.aborted[0] < int64(len(foo.Bytes))
	})
}

// TestNoByteAfterAnAdvisory: what was allowed by the policy, and is refused while
// it is sent, is sent no further.
func TestNoByteAfterAnAdvisory(t *testing.T) {
	b := newBench(t, nil)
	noise := make([]byte, 4<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never fails
	foo := pypitest.WheelOf(t, "foo", "1.0", [2]string{"foo/noise.bin", string(noise)})
	b.publish(foo)
	resp := b.open("/p/" + foo.File)
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1_000)); err != nil {
		t.Fatal(err)
	}
	b.door.rule(func(pkgref.Ref, door.File) policy.Decision {
		return policy.Decision{Effect: policy.Deny, Rule: "advisory", ResolvedBy: policy.ByAdvisory, Reason: "foo is malware"}
	})
	if rest, err := io.ReadAll(resp.Body); err == nil || len(rest) > 2<<20 {
		t.Errorf("%d bytes more came, and then %v", len(rest), err)
	}
	b.eventually("the abort is recorded", func() bool {
		b.door.mu.Lock()
		defer b.door.mu.Unlock()
		return len(b.door.aborted) == 1 && b.door.aborted[0] < int64(len(foo.Bytes)) && len(b.door.sent) == 0
	})
}

// TestNoFirstByteAfterADenial: one that comes between the record and the first
// byte is met.
func TestNoFirstByteAfterADenial(t *testing.T) {
	b, foo := newHoldBench(t, nil)
	b.door.wait = func(context.Context, door.AwaitAsk) error {
		b.door.rule(approveAll)
		return nil
	}
	b.door.onServed = func() { b.door.decide = holdAll }
	resp := b.open("/p/" + foo.File)
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil || len(body) > 0 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	b.eventually("the abort is recorded", func() bool {
		b.door.mu.Lock()
		defer b.door.mu.Unlock()
		return len(b.door.aborted) == 1 && b.door.aborted[0] == 0
	})
}

// open returns with the head of an answer. Connections are pipes: nothing is sent
// ahead of what is read.
func (b *bench) open(path string) *http.Response {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, "https://"+filesHost+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := b.client(sandboxA).Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp
}

// TestAHoldWhoseDaemonGoesAwayIsNoAnswer: the connection breaks, so that the
// client asks again.
func TestAHoldWhoseDaemonGoesAwayIsNoAnswer(t *testing.T) {
	b, foo := newHoldBench(t, nil)
	b.door.wait = func(context.Context, door.AwaitAsk) error {
		return fmt.Errorf("it was killed: %w", door.ErrGone)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+filesHost+"/p/"+foo.File, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := b.client(sandboxA).Do(req); err == nil {
		_ = res.Body.Close()
		t.Fatalf("the client got an answer: %s", res.Status)
	}
}

// TestWaitingNamesAreCapped: with packages.default: hold every name that exists is
// shown, and so is it in a plan; how many reach the upstream has an end, until
// people have approved some.
func TestWaitingNamesAreCapped(t *testing.T) {
	shown := map[string]func(pkgref.Ref, door.File) policy.Decision{
		"held": holdAll,
		"planned": func(p pkgref.Ref, f door.File) policy.Decision {
			d := holdAll(p, f)
			d.Effect, d.Unadmitted = policy.Allow, true
			return d
		},
	}
	for what, rule := range shown {
		b := newBench(t, func(c *gateway.Config) { c.Limits.ShownNames = 3 })
		b.door.rule(rule)
		names := []string{"leak-a", "leak-b", "leak-c", "leak-d", "leak-e"}
		for _, name := range names {
			b.publish(pypitest.Wheel(t, name, "1.0"))
		}
		before := len(b.registry.Requests())
		for i, name := range names {
			a := b.get("/simple/" + name + "/")
			if i < 3 && a.StatusCode != http.StatusOK || i >= 3 && (a.StatusCode != http.StatusUnavailableForLegalReasons || !strings.Contains(a.Status, "nobody has approved")) {
				t.Errorf("%s: name %d: %s", what, i, status(a))
			}
		}
		if n := len(b.registry.Requests()) - before; n != 3 {
			t.Errorf("%s: %d names reached the upstream, want 3", what, n)
		}
		items := channel.Request{Items: []channel.RequestItem{{Ecosystem: "python", Name: "leak-e"}}}
		if got, err := b.gateway.Propose(t.Context(), sandboxA, items); err != nil || got[0].Effect != policy.Deny || !strings.Contains(got[0].Reason, "nobody has approved") {
			t.Errorf("%s: a proposal: %+v, %v", what, got, err)
		}
		if a := b.do(sandboxA, http.MethodGet, "https://"+filesHost+"/p/leak_e-1.0-py3-none-any.whl"); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: a file of a new name: %s", what, status(a))
		}
		if n := len(b.registry.Requests()) - before; n != 3 {
			t.Errorf("%s: %d names reached the upstream, want 3", what, n)
		}
		if a := b.do("sb-b", http.MethodGet, "https://index.example/simple/leak-e/"); a.StatusCode != http.StatusOK {
			t.Errorf("%s: another run: %s", what, status(a))
		}
		b.door.rule(approveAll)
		for _, name := range []string{"leak-a", "leak-d"} { // the first is known, and makes room when it is approved
			if a := b.get("/simple/" + name + "/"); a.StatusCode != http.StatusOK {
				t.Errorf("%s: after an approval, %s: %s", what, name, status(a))
			}
		}
	}
}

// fickle is a door that allows a file, and answers the question with which it is to
// be served otherwise.
type fickle struct {
	*fakeDoor
	serve policy.Effect
}

func (f fickle) Serve(ctx context.Context, ask door.ServeAsk) (door.Answer, error) {
	a, err := f.fakeDoor.Serve(ctx, ask)
	if err == nil {
		a.Decision.Effect = f.serve
	}
	return a, err
}

// TestTheLastAnswerCounts: what the daemon answers when the file is to be recorded as
// served decides, whatever it said before; nothing but an allowance lets a byte out.
func TestTheLastAnswerCounts(t *testing.T) {
	for serve, want := range map[policy.Effect]int{policy.Allow: http.StatusOK, policy.Hold: http.StatusForbidden, policy.Deny: http.StatusForbidden, "": http.StatusForbidden} {
		b := newBench(t, nil)
		foo := pypitest.Wheel(t, "foo", "1.0")
		b.publish(foo)
		b.judge = fickle{b.door, serve}
		b.restart()
		a := b.get("/p/" + foo.File)
		if sent := a.body == string(foo.Bytes); a.StatusCode != want || sent != (serve == policy.Allow) {
			t.Errorf("the answer %q: %s, sent %t", serve, a.Status, sent)
		}
	}
}

// TestAPersonIsToldWhatBuildingRuns: what waits as a source distribution is looked into before a person is asked, and
// they are told what its PKG-INFO says and what its build runs.
func TestAPersonIsToldWhatBuildingRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.door.rule(holdAll)
	foo := sdist(t, "foo", "1.0")
	b.publish(foo)
	b.get("/p/" + foo.File)
	b.door.mu.Lock()
	defer b.door.mu.Unlock()
	if len(b.door.awaited) != 1 || b.door.awaited[0].Evidence == nil || b.door.awaited[0].Evidence.Inside == nil {
		t.Fatalf("%+v", b.door.awaited)
	}
	e := b.door.awaited[0].Evidence
	if fmt.Sprint(e.Inside.Builds) != "[build backend: setuptools, since it names none]" || e.Summary != "of foo" {
		t.Errorf("%q, %q", e.Inside.Builds, e.Summary)
	}
}
