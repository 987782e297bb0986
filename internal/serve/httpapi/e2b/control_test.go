package e2b_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/quota"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
)

func TestWhoMayCall(t *testing.T) {
	h := newHouse(t)
	box := h.create("")
	_, old, err := h.book.Issue(t.Context(), token.Grant{Name: "old"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.book.Revoke(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	for _, route := range []string{"GET /v2/sandboxes", "GET /sandboxes/" + box.SandboxID, "POST /volumes", "GET /nothing", "DELETE /sandboxes/" + box.SandboxID} {
		for key, sentence := range map[string]string{"": "no API key", "e2b_00": "not valid here", old: "not valid here", box.EnvdAccessToken: "not valid here"} {
			h.refused(http.StatusUnauthorized, sentence, key, route, "")
		}
	}
	h.must(http.StatusOK, &[]any{}, "", "GET /v2/sandboxes", "", "Authorization", "Bearer "+h.ann)
	h.must(http.StatusNoContent, nil, "", "GET /health", "")
	if h.strangers != 5*4 {
		t.Errorf("of %d refusals %d are told", 5*4, h.strangers)
	}
	for _, secret := range []string{h.ann, old, box.EnvdAccessToken} {
		if strings.Contains(h.log.String(), secret) {
			t.Error("the log has a secret")
		}
	}
	if h.log.Len() == 0 {
		t.Error("the log does not tell of requests without a key")
	}
}

// TestOthers: another client's sandboxes and snapshots are not there, on every route.
func TestOthers(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	var snap struct{ SnapshotID string }
	h.must(http.StatusCreated, &snap, h.ann, "POST /sandboxes/"+id+"/snapshots", `{"name":"mine"}`)
	for _, route := range []string{
		"GET /sandboxes/%s", "DELETE /sandboxes/%s", "POST /sandboxes/%s/connect", "POST /v2/sandboxes/%s/connect", "POST /sandboxes/%s/resume",
		"POST /sandboxes/%s/timeout", "POST /sandboxes/%s/refreshes", "POST /sandboxes/%s/pause", "PUT /sandboxes/%s/network",
		"GET /sandboxes/%s/metrics", "POST /sandboxes/%s/snapshots", "POST /sandboxes/%s/fork",
	} {
		h.refused(http.StatusNotFound, "there is no sandbox", h.bob, fmt.Sprintf(route, id), "")
		h.refused(http.StatusNotFound, "there is no sandbox", h.ann, fmt.Sprintf(route, "sb0000"), "")
	}
	var list []any
	h.must(http.StatusOK, &list, h.bob, "GET /v2/sandboxes", "")
	h.must(http.StatusOK, &list, h.bob, "GET /snapshots", "")
	if len(list) > 0 {
		t.Error(list)
	}
	for _, ref := range []string{"mine", snap.SnapshotID} {
		h.refused(http.StatusNotFound, "there is no snapshot", h.bob, "DELETE /templates/"+ref, "")
		h.refused(http.StatusNotFound, "no template or snapshot", h.bob, "POST /v2/sandboxes", `{"templateID":"`+ref+`"}`)
	}
	if n := len(h.life.List()); n != 1 {
		t.Errorf("%d sandboxes are left", n)
	}
}

func TestCreate(t *testing.T) {
	h := newHouse(t)
	m := h.create(`,"metadata":{"a":"1","policy":"data"},"envVars":{"K":"v"},"timeout":60,"autoPause":true,"autoResume":{"enabled":true},` +
		`"secure":false,"network":{"allowOut":["api.example"],"denyOut":["0.0.0.0/0"],"allowPublicTraffic":false},"mcp":{"exa":{"apiKey":"k"}},"iam":{"tokens":{}},"volumeMounts":[]`)
	req := h.life.Requests()[0]
	if req.Env["K"] != "v" || req.Template != "debian" || req.Owner.Token != h.annToken.ID || req.User != "token ann" || !req.Linger ||
		req.Account != (sandbox.Account{Name: "user", Home: "/home/user"}) || req.HostUID != 65534 || req.HostGID != 65533 ||
		req.Lifetime != (sandbox.Lifetime{TTL: time.Minute, Then: sandbox.ThenPause}) || string(req.PolicyText) != "packages: { default: allow }\n" ||
		!strings.HasSuffix(req.PolicySource, "/named/data.yaml") || req.Narrowing.IsZero() {
		t.Errorf("%+v", req)
	}
	if m.SandboxID == "" || m.EnvdVersion != e2b.EnvdVersion || m.Domain != "sandbox.example:7433" || m.TemplateID != "base" || m.ClientID == "" ||
		m.EnvdAccessToken != h.keys.Token(m.SandboxID) || m.TrafficAccessToken != h.keys.Traffic(m.SandboxID) || m.TrafficAccessToken == m.EnvdAccessToken {
		t.Errorf("%+v", m)
	}
	d := h.info(m.SandboxID)
	if d.State != "running" || d.CPUCount != 2 || d.MemoryMB != 2048 || d.DiskSizeMB != 4096 || d.VolumeMounts == nil || d.Policy != "data" ||
		d.Lifecycle.OnTimeout != "pause" || !d.Lifecycle.AutoResume || h.livesFor(m.SandboxID) != time.Minute || d.PolicyDigest != req.Policy.Digest() {
		t.Errorf("%+v", d)
	}
	if len(d.Metadata) != 2 || d.Metadata["a"] != "1" {
		t.Errorf("metadata %v", d.Metadata)
	}
	// Nothing that the client asked for beyond the policy is there, and that shows.
	if d.AllowInternetAccess == nil || *d.AllowInternetAccess || len(d.Network.AllowOut) != 0 || !slices.Equal(d.Network.DenyOut, []string{"0.0.0.0/0"}) ||
		d.Network.AllowPublicTraffic || !strings.Contains(strings.Join(d.Notes, "\n"), "allowOut opens nothing") {
		t.Errorf("%+v %v", d.Network, d.Notes)
	}
}

func TestCreateDefaults(t *testing.T) {
	h := newHouse(t)
	var first made
	h.must(http.StatusCreated, &first, h.ann, "POST /sandboxes", `{"templateID":"code-interpreter-v1"}`)
	second := h.create("")
	var third made
	h.must(http.StatusCreated, &third, h.ann, "POST /v2/sandboxes", `{"templateID":"debian","timeout":0}`)
	var ttl []time.Duration
	for _, r := range h.life.Requests() {
		ttl = append(ttl, r.Lifetime.TTL)
		if r.Lifetime.Then != sandbox.ThenDestroy || r.Policy == nil || r.PolicySource != "" || !r.Narrowing.IsZero() {
			t.Errorf("%+v", r)
		}
	}
	if !slices.Equal(ttl, []time.Duration{15 * time.Second, 5 * time.Minute, time.Millisecond}) {
		t.Errorf("they live for %v", ttl)
	}
	if first.TemplateID != "code-interpreter-v1" || third.TemplateID != "debian" || second.TrafficAccessToken != h.keys.Contexts(second.SandboxID) {
		t.Errorf("%+v %+v %+v", first, second, third)
	}
	if d := h.info(second.SandboxID); d.Policy != "default" || !d.Network.AllowPublicTraffic || d.Lifecycle.OnTimeout != "kill" || d.Metadata == nil {
		t.Errorf("%+v", d)
	}
}

func TestCreateRefuses(t *testing.T) {
	h := newHouse(t)
	for _, c := range []struct {
		status         int
		body, sentence string
	}{
		{400, `{`, "not valid JSON"},
		{400, `[]`, "send an object"},
		{400, `{"templateID":"base","templateID":"base"}`, "duplicate"},
		{400, `{"templateID":"base","timeout":"60"}`, "the field takes no JSON string"},
		{400, `{"templateID":"base","timeout":1.5}`, `not valid at "timeout"`},
		{400, `{"templateID":"base","gpu":1}`, `"gpu"`},
		{400, "{\"templateID\":\"\xff\"}", "not valid JSON"},
		{400, `{}`, "templateID is missing"},
		{400, `{"templateID":"base","timeout":-1}`, "from 0 to 86400"},
		{400, `{"templateID":"base","timeout":86401}`, "from 0 to 86400"},
		{400, `{"templateID":"base","iam":{"tokens":{"aws":{"audience":"a","tokenType":"JWT-SVID"}}}}`, "no workload identity"},
		{400, `{"templateID":"base","volumeMounts":[{"name":"a","path":"/a"}]}`, "no volumes"},
		{400, `{"templateID":"base","autoPause":true,"autoPauseMemory":false,"autoResume":{"enabled":true}}`, "does not go on by itself"},
		{400, `{"templateID":"base","metadata":{"cofferdam.policy":"data"}}`, "the server's own"},
		{400, `{"templateID":"base","network":{"allowOut":["a.example"]}}`, "denyOut"},
		{400, `{"templateID":"base","network":{"allowOut":["192.0.2.1"],"denyOut":["0.0.0.0/0"]}}`, "addresses have no route"},
		{400, `{"templateID":"base","network":{"denyOut":["a.example"]}}`, "only be in allowOut"},
		{400, `{"templateID":"base","network":{"rules":{"a.example":[{}]}}}`, "nothing is injected"},
		{400, `{"templateID":"base","network":{"egressProxy":{"address":"p.example:1"}}}`, "no way out"},
		{400, `{"templateID":"base","network":{"dnsServers":["192.0.2.1"]}}`, "the gateway resolves"},
		{400, `{"templateID":"base","network":{"httpsPorts":[8443]}}`, "plain HTTP here"},
		{400, `{"templateID":"base","network":{"maskRequestHost":"localhost:${PORT}"}}`, "not rewritten"},
		{403, `{"templateID":"base","metadata":{"policy":"secret"}}`, "the token \"ann\" may not use the policy \"secret\"; it may choose: data, default, gone"},
		{403, `{"templateID":"base","metadata":{"policy":"gone"}}`, "there is no policy named \"gone\""},
		{404, `{"templateID":"nothing"}`, "no template or snapshot \"nothing\""},
		{404, `{"templateID":"host"}`, "no template or snapshot \"host\""},
	} {
		h.refused(c.status, c.sentence, h.ann, "POST /v2/sandboxes", c.body)
	}
	h.refused(400, "larger than", h.ann, "POST /v2/sandboxes", `{"templateID":"`+strings.Repeat("a", 1<<20)+`"}`)
	h.refused(400, "Idempotency-Key", h.ann, "POST /v2/sandboxes", `{"templateID":"base"}`, "Idempotency-Key", strings.Repeat("k", 256))
	if n := len(h.life.Requests()); n != 0 {
		t.Errorf("%d were made", n)
	}
}

// fullHost refuses a sandbox for which the host has no room until another one ends, and nobody knows when.
func fullHost(t *testing.T) error {
	t.Helper()
	b := quota.NewBook(quota.Host{CPU: 1})
	if err := b.Take("first", quota.Share{CPU: 1}, token.Quota{}); err != nil {
		t.Fatal(err)
	}
	return b.Take("second", quota.Share{CPU: 1}, token.Quota{})
}

func TestManagersErrors(t *testing.T) {
	h := newHouse(t)
	for _, c := range []struct {
		err        error
		status     int
		sentence   string
		retryAfter string
		again      string
	}{
		{fault.Exhausted(1500*time.Millisecond, "too many a minute"), 429, "too many a minute", "2", "true"},
		{fault.Exhausted(10*time.Second, "too many a minute"), 429, "too many a minute", "10", "true"},
		{fault.Exhausted(11*time.Second, "too many a minute"), 429, "too many a minute", "11", "false"},
		{quota.NewBook(quota.Host{CPU: 1}).MayPromise(quota.Share{CPU: 2}), 429, "overcommit.cpu", "", "false"},
		{fullHost(t), 429, "this host is full", "30", "false"},
		{fault.Exhausted(0, "20 sandboxes are all"), 429, "20 sandboxes are all", "", "false"},
		{fault.Wrap(fault.ErrUnavailable, io.ErrUnexpectedEOF, "the engine is down"), 503, "the engine is down", "", ""},
		{fault.Wrap(fault.ErrUnavailable, fault.Invalid("a field is wrong"), "the agent did not come up"), 503, "the agent did not come up", "", ""},
		{errInside, 403, "MAL-2026-1", "", ""},
		{errors.New("/var/lib/secret is broken"), 500, "something inside failed", "", ""},
	} {
		h.life.FailCreate(c.err)
		header := h.refused(c.status, c.sentence, h.ann, "POST /v2/sandboxes", `{"templateID":"base"}`)
		if got := header.Get("Retry-After"); got != c.retryAfter {
			t.Errorf("%v: Retry-After %q, want %q", c.err, got, c.retryAfter)
		}
		if got := header.Get("Should-Retry"); got != c.again {
			t.Errorf("%v: Should-Retry %q, want %q", c.err, got, c.again)
		}
	}
	if !strings.Contains(h.log.String(), "/var/lib/secret is broken") {
		t.Error("what failed is not in the operator's log")
	}
	if body := h.ask(h.ann, "POST /v2/sandboxes", `{"templateID":"base"}`).Body.String(); strings.Contains(body, "secret") {
		t.Error(body)
	}
}

func TestIdempotencyKey(t *testing.T) {
	h := newHouse(t)
	var first, again, others made
	h.must(http.StatusCreated, &first, h.ann, "POST /v2/sandboxes", `{"templateID":"base"}`, "Idempotency-Key", "k1")
	h.must(http.StatusCreated, &again, h.ann, "POST /v2/sandboxes", `{"templateID":"base"}`, "Idempotency-Key", "k1")
	h.must(http.StatusCreated, &others, h.bob, "POST /v2/sandboxes", `{"templateID":"base"}`, "Idempotency-Key", "k1")
	if first != again || first.SandboxID == others.SandboxID {
		t.Errorf("%v %v %v", first, again, others)
	}
}

// TestIdempotencyErrors: clients tell them apart by a code, and ask again where that helps.
func TestIdempotencyErrors(t *testing.T) {
	h := newHouse(t)
	for _, c := range []struct {
		err         error
		code, again string
	}{
		{fault.Wrap(fault.ErrConflict, sandbox.ErrKeyMismatch, "another"), "idempotency_request_mismatch", ""},
		{&fault.Fault{Category: fault.ErrConflict, Cause: sandbox.ErrKeyUnderway, Sentence: "not yet", Retry: time.Second}, "idempotency_in_progress", "true"},
	} {
		h.life.FailCreate(c.err)
		w := h.ask(h.ann, "POST /v2/sandboxes", `{"templateID":"base"}`)
		if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), `"error_code":"`+c.code+`"`) || w.Header().Get("Should-Retry") != c.again {
			t.Errorf("%v: %d %s %v", c.err, w.Code, w.Body, w.Header())
		}
	}
	h.life.FailCreate(fault.Invalid("no"))
	if body := h.ask(h.ann, "POST /v2/sandboxes", `{"templateID":"base"}`).Body.String(); strings.Contains(body, "error_code") {
		t.Error(body)
	}
}

func TestLifeAndEnd(t *testing.T) {
	h := newHouse(t)
	id := h.create(`,"timeout":600,"autoPause":true`).SandboxID
	set := func(status int, sentence, body string) {
		t.Helper()
		if sentence == "" {
			h.must(status, nil, h.ann, "POST /sandboxes/"+id+"/timeout", body)
			return
		}
		h.refused(status, sentence, h.ann, "POST /sandboxes/"+id+"/timeout", body)
	}
	set(204, "", `{"timeout":300}`)
	if got := h.livesFor(id); got != 5*time.Minute || h.info(id).Lifecycle.OnTimeout != "pause" {
		t.Errorf("it lives for %v, then %s", got, h.info(id).Lifecycle.OnTimeout)
	}
	set(400, "timeout is missing", `{}`)
	set(400, "from 0 to", `{"timeout":100000}`)
	h.must(204, nil, h.ann, "POST /sandboxes/"+id+"/refreshes", `{"duration":60}`)
	if got := h.livesFor(id); got != 5*time.Minute {
		t.Errorf("a refresh made it shorter: %v", got)
	}
	h.must(204, nil, h.ann, "POST /sandboxes/"+id+"/refreshes", `{"duration":900}`)
	if got := h.livesFor(id); got != 15*time.Minute {
		t.Errorf("after a refresh it lives for %v", got)
	}
	h.must(204, nil, h.ann, "DELETE /sandboxes/"+id, "")
	h.refused(404, "there is no sandbox", h.ann, "DELETE /sandboxes/"+id, "")
}

// TestGoing: what is on its way out is gone for clients.
func TestGoing(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	for _, state := range []sandbox.State{sandbox.Destroying, sandbox.Failed} {
		if err := h.life.Become(id, state); err != nil {
			t.Fatal(err)
		}
		h.refused(404, "there is no sandbox", h.ann, "GET /sandboxes/"+id, "")
		var list []any
		if h.must(200, &list, h.ann, "GET /v2/sandboxes", ""); len(list) != 0 {
			t.Errorf("%s: %v", state, list)
		}
	}
}

func TestPauseAndConnect(t *testing.T) {
	h := newHouse(t)
	box := h.create(`,"timeout":600`)
	id := box.SandboxID
	var got made
	h.must(200, &got, h.ann, "POST /v2/sandboxes/"+id+"/connect", `{"timeout":60}`)
	if got != box || h.livesFor(id) != 10*time.Minute || h.life.Touched(id) != 1 {
		t.Errorf("%+v; it lives for %v", got, h.livesFor(id))
	}
	h.must(200, &got, h.ann, "POST /sandboxes/"+id+"/connect", `{"timeout":1200}`)
	if h.livesFor(id) != 20*time.Minute {
		t.Errorf("it lives for %v", h.livesFor(id))
	}
	h.refused(409, "runs already", h.ann, "POST /sandboxes/"+id+"/resume", "")
	h.must(204, nil, h.ann, "POST /sandboxes/"+id+"/pause", `{"memory":true}`)
	h.refused(409, "paused already", h.ann, "POST /sandboxes/"+id+"/pause", "")
	if state := h.info(id).State; state != "paused" {
		t.Error(state)
	}
	h.life.RefuseResume(id, errInside)
	h.refused(403, "known to be malicious now", h.ann, "POST /v2/sandboxes/"+id+"/connect", "")
	h.life.RefuseResume(id, nil)
	h.must(201, &got, h.ann, "POST /v2/sandboxes/"+id+"/connect", "")
	if got != box || h.livesFor(id) != 5*time.Minute || h.info(id).State != "running" {
		t.Errorf("%+v; it lives for %v", got, h.livesFor(id))
	}
	h.must(204, nil, h.ann, "POST /sandboxes/"+id+"/pause", "")
	h.must(201, &got, h.ann, "POST /sandboxes/"+id+"/resume", `{"timeout":60,"autoPause":true}`)
	if got != box || h.livesFor(id) != time.Minute {
		t.Errorf("%+v; it lives for %v", got, h.livesFor(id))
	}
}

// TestPauseOfFilesAlone: connecting starts it anew, however that is asked for; at its
// end it is paused so if it was made so.
func TestPauseOfFilesAlone(t *testing.T) {
	h := newHouse(t)
	box := h.create(`,"autoPause":true,"autoPauseMemory":false`)
	id := box.SandboxID
	if then := h.life.Requests()[0].Lifetime.Then; then != sandbox.ThenPauseFiles {
		t.Errorf("at its end: %q", then)
	}
	if got := h.info(id).Lifecycle.OnTimeout; got != "pause" {
		t.Errorf("at its end it is said to be %q", got)
	}
	alone := func(want bool) {
		t.Helper()
		sb, err := h.life.Get(id)
		if err != nil || sb.FilesAlone() != want {
			t.Errorf("files alone: %v, %v", sb.FilesAlone(), err)
		}
	}
	for _, body := range []string{"", `{"memory":false}`, `{"memory":true}`} {
		h.must(204, nil, h.ann, "POST /sandboxes/"+id+"/pause", `{"memory":false}`)
		alone(true)
		h.refused(409, "paused already", h.ann, "POST /sandboxes/"+id+"/pause", `{"memory":false}`)
		var got made
		if h.must(201, &got, h.ann, "POST /v2/sandboxes/"+id+"/connect", body); got != box {
			t.Errorf("%+v", got)
		}
		alone(false)
	}
}

// TestWaitingForAPerson: what is frozen for a hold shows as paused, and connecting
// says what it waits for.
func TestWaitingForAPerson(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	if err := h.life.Become(id, sandbox.Frozen); err != nil {
		t.Fatal(err)
	}
	if state := h.info(id).State; state != "paused" {
		t.Error(state)
	}
	h.life.RefuseResume(id, fault.New(fault.ErrConflict, "the sandbox waits for a person: request ap-k3m7qx"))
	h.refused(409, "ap-k3m7qx", h.ann, "POST /v2/sandboxes/"+id+"/connect", "")
	// One that can't be paused now is not paused already.
	if err := h.life.Become(id, sandbox.Snapshotting); err != nil {
		t.Fatal(err)
	}
	h.refused(503, "snapshotting", h.ann, "POST /sandboxes/"+id+"/pause", "")
}

func TestNetwork(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	route := "PUT /sandboxes/" + id + "/network"
	h.must(204, nil, h.ann, route, `{"allowOut":["A.example"],"denyOut":["0.0.0.0/0"]}`)
	if n := h.life.Narrowing(id); !slices.Equal(n.Allow, []string{"a.example"}) || !slices.Equal(n.Deny, []string{"0.0.0.0/0"}) {
		t.Errorf("%+v", n)
	}
	h.refused(400, "names can only be", h.ann, route, `{"denyOut":["a.example"]}`)
	h.refused(400, "settled when", h.ann, route, `{"allowPublicTraffic":false}`)
	h.refused(400, "unknown field", h.ann, route, `{"allowIn":[]}`)
	if n := h.life.Narrowing(id); n.IsZero() {
		t.Error("a refused change took away what there was")
	}
	h.must(204, nil, h.ann, route, `{"allow_internet_access":false}`)
	if n := h.life.Narrowing(id); !slices.Equal(n.Deny, []string{"0.0.0.0/0"}) || len(n.Allow) > 0 {
		t.Errorf("%+v", n)
	}
	h.must(204, nil, h.ann, route, `{}`)
	if n := h.life.Narrowing(id); !n.IsZero() {
		t.Errorf("%+v", n)
	}
}

func TestMetrics(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	type sample struct {
		Timestamp                                                       string
		TimestampUnix, MemUsed, MemTotal, MemCache, DiskUsed, DiskTotal int64
		CPUCount, CPUUsedPct                                            float64
	}
	var got []sample
	h.must(200, &got, h.ann, "GET /sandboxes/"+id+"/metrics", "")
	if len(got) != 1 || got[0].CPUUsedPct != 12.5 || got[0].MemUsed != 1<<28 || got[0].MemTotal != 1<<30 || got[0].DiskTotal != 4<<30 || got[0].TimestampUnix == 0 {
		t.Errorf("%+v", got)
	}
	now := time.Now().Unix()
	for query, want := range map[string]int{
		fmt.Sprintf("start=%d&end=%d", now-60, now+60): 1, fmt.Sprintf("start=%d", now+60): 0, fmt.Sprintf("end=%d", now-60): 0,
	} {
		if h.must(200, &got, h.ann, "GET /sandboxes/"+id+"/metrics?"+query, ""); len(got) != want {
			t.Errorf("%s: %+v", query, got)
		}
	}
	h.refused(400, "not a time in seconds", h.ann, "GET /sandboxes/"+id+"/metrics?start=yesterday", "")
	h.must(204, nil, h.ann, "POST /sandboxes/"+id+"/pause", "")
	if h.must(200, &got, h.ann, "GET /sandboxes/"+id+"/metrics", ""); len(got) != 0 {
		t.Errorf("a paused one uses %+v", got)
	}
}

// TestNotHere: what the protocol has and this server does not is said in a
// sentence, and so is what nobody knows.
func TestNotHere(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	for route, sentence := range map[string]string{
		"POST /templates": "cofferdam template build", "PATCH /templates/base": "cofferdam template build", "POST /templates/t": "cofferdam template build",
		"GET /volumes": "no volumes", "POST /volumes/v": "no volumes", "GET /volumecontent/v/dir": "no volumes",
		"POST /secrets": "in the daemon's configuration", "POST /secrets/s": "in the daemon's configuration", "DELETE /secrets/s": "in the daemon's configuration",
		"GET /sandboxes/metrics?sandbox_ids=a": "one sandbox at a time",
		"GET /nodes":                           "no GET /nodes", "PATCH /sandboxes/" + id: "no PATCH /sandboxes/", "GET /": "no GET /", "POST /v9/sandboxes": "no POST /v9/sandboxes",
		"GET /sandboxes/" + id + "/unknown": "no GET /sandboxes/",
	} {
		h.refused(http.StatusNotImplemented, sentence, h.ann, route, "")
	}
}
