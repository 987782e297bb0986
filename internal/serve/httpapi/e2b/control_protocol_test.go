package e2b_test

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// TestLongIDs: older clients write ID-CLIENT; both forms are one sandbox, on every
// route.
func TestLongIDs(t *testing.T) {
	h := newHouse(t)
	box := h.create(`,"timeout":600`)
	long := box.SandboxID + "-" + box.ClientID
	if got := h.info(long); got.SandboxID != box.SandboxID {
		t.Errorf("%+v", got)
	}
	h.must(204, nil, h.ann, "POST /sandboxes/"+long+"/timeout", `{"timeout":60}`)
	if got := h.livesFor(box.SandboxID); got != time.Minute {
		t.Errorf("it lives for %v", got)
	}
	for _, wrong := range []string{box.SandboxID + "-", box.SandboxID + "-a-b", "-" + box.SandboxID, box.SandboxID + "-A"} {
		h.refused(404, "there is no sandbox", h.ann, "GET /sandboxes/"+wrong, "")
	}
	h.refused(404, "there is no sandbox", h.bob, "GET /sandboxes/"+long, "")
	h.must(204, nil, h.ann, "DELETE /sandboxes/"+long, "")
}

// TestTimeoutsBeforeSandboxes: a time that no sandbox may have is refused as such,
// whether there is the sandbox or not.
func TestTimeoutsBeforeSandboxes(t *testing.T) {
	h := newHouse(t)
	for route, body := range map[string]string{
		"timeout": `{"timeout":100000}`, "refreshes": `{"duration":100000}`, "connect": `{"timeout":100000}`, "resume": `{"timeout":-1}`,
	} {
		h.refused(400, "from 0 to 86400", h.ann, "POST /sandboxes/sb0000/"+route, body)
		h.refused(404, "there is no sandbox", h.ann, "POST /sandboxes/sb0000/"+route, strings.NewReplacer("100000", "10", "-1", "10").Replace(body))
	}
}

// TestConcurrentPauses: all that come at once are answered as the one that does it.
func TestConcurrentPauses(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	h.life.HoldPauses(5)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if w := h.ask(h.ann, "POST /sandboxes/"+id+"/pause", ""); w.Code != http.StatusNoContent {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	all.Wait()
	if state := h.info(id).State; state != "paused" {
		t.Error(state)
	}
	h.refused(409, "paused already", h.ann, "POST /sandboxes/"+id+"/pause", "")
}

// TestResumeKeepsItsEnd: what becomes of a sandbox at its end is kept, and its new time
// is set before it goes on: with the rest of the old one it could be over at once.
func TestResumeKeepsItsEnd(t *testing.T) {
	h := newHouse(t)
	id := h.create(`,"timeout":0,"autoPause":true`).SandboxID
	h.must(204, nil, h.ann, "POST /sandboxes/"+id+"/pause", "")
	at := map[string]time.Duration{}
	h.life.OnResume(func(sb *sandbox.Sandbox) { at[string(sb.Lifetime().Then)] = sb.Lifetime().TTL })
	h.must(201, &made{}, h.ann, "POST /sandboxes/"+id+"/resume", `{"timeout":600}`)
	if at["pause"] != 10*time.Minute || h.info(id).Lifecycle.OnTimeout != "pause" {
		t.Errorf("it went on with %v, then %s", at, h.info(id).Lifecycle.OnTimeout)
	}
	h.must(204, nil, h.ann, "POST /sandboxes/"+id+"/pause", "")
	h.life.RefuseResume(id, errInside)
	h.refused(403, "malicious", h.ann, "POST /sandboxes/"+id+"/connect", `{"timeout":60}`)
	if got := h.livesFor(id); got != 10*time.Minute {
		t.Errorf("a resume that was refused moved its end: %v", got)
	}
}

// TestTagsOfNames: each tag of a name is a snapshot of its own; no tag is the default.
func TestTagsOfNames(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	taken := map[string]string{}
	for _, name := range []string{"ready", "ready:v1", "ready:v2"} {
		var s snapshot
		h.must(201, &s, h.ann, "POST /sandboxes/"+id+"/snapshots", `{"name":"`+name+`"}`)
		taken[name] = s.SnapshotID
		if want := map[string]string{"ready": "ready:default"}[name]; s.Names[0] != name && s.Names[0] != want {
			t.Errorf("%s is called %v", name, s.Names)
		}
	}
	for ref, want := range map[string]string{
		"ready": "ready", "ready:default": "ready", "ready:latest": "ready", "ready:v1": "ready:v1", "ready:v2": "ready:v2", taken["ready:v1"]: "ready:v1",
	} {
		h.must(201, &made{}, h.ann, "POST /v2/sandboxes", `{"templateID":"`+ref+`"}`)
		all := h.life.Requests()
		if got := all[len(all)-1].Snapshot; got != taken[want] {
			t.Errorf("%s made %s", ref, got)
		}
	}
	var tags []struct{ Tag, BuildID, CreatedAt string }
	if h.must(200, &tags, h.ann, "GET /templates/ready/tags", ""); len(tags) != 3 || tags[2].Tag != "default" || tags[2].BuildID == tags[1].BuildID || !isUUID(tags[2].BuildID) {
		t.Errorf("%+v", tags)
	}
	if h.must(200, &tags, h.ann, "GET /templates/base/tags", ""); len(tags) != 1 || tags[0].Tag != "default" {
		t.Errorf("%+v", tags)
	}
	h.refused(404, "template", h.bob, "GET /templates/ready/tags", "")
	h.must(201, &made{}, h.ann, "POST /v2/sandboxes", `{"templateID":"base:default"}`)
	h.refused(404, "no template or snapshot", h.ann, "POST /v2/sandboxes", `{"templateID":"base:v1"}`)
	h.must(204, nil, h.ann, "DELETE /templates/ready:v1", "")
	h.refused(404, "no template or snapshot", h.ann, "POST /v2/sandboxes", `{"templateID":"ready:v1"}`)
	h.must(201, &made{}, h.ann, "POST /v2/sandboxes", `{"templateID":"ready"}`)
}

// isUUID: clients take no other ids of builds.
func isUUID(s string) bool {
	return regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(s)
}
