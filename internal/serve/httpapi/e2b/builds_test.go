package e2b_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/templatebuild"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
)

// unrecorded is a log that nobody reads.
type unrecorded struct{}

func (unrecorded) RecordBuild(context.Context, string, admission.Build) error { return nil }

// newWorkshop is a house in which templates are built.
func newWorkshop(t *testing.T) *house {
	t.Helper()
	h := newHouse(t)
	builds, err := templatebuild.Open(templatebuild.Config{
		Sandboxes: h.life, Recorder: unrecorded{}, Owed: func(context.Context, string) (bool, error) { return true, nil }, During: h.book.During, Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(builds.Close)
	h.control = e2b.NewControl(e2b.Config{
		Sandboxes: h.life, Tokens: h.book, Policies: h.policies, Templates: templates{}, Access: h.keys, Builds: builds,
		Images:          map[string]string{"python:3": "debian", "node": "debian", "node:host": "host"},
		DefaultTemplate: template.NameDebian, Log: slog.New(slog.DiscardHandler),
	})
	return h
}

// TestTheDefaultTemplateIsThere: clients ask by its name whether it is, also where the daemon chooses it.
func TestTheDefaultTemplateIsThere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.control = e2b.NewControl(e2b.Config{
		Sandboxes: h.life, Tokens: h.book, Policies: h.policies, Templates: templates{}, Access: h.keys, DefaultTemplate: template.NameAuto, Log: slog.New(slog.DiscardHandler),
	})
	for _, name := range []string{"base", "code-interpreter-v1", "debian"} {
		var found struct{ TemplateID string }
		if h.must(200, &found, h.ann, "GET /templates/aliases/"+name, ""); found.TemplateID != template.NameDebian {
			t.Errorf("%s: %+v", name, found)
		}
	}
	h.refused(404, "no template", h.ann, "GET /templates/aliases/host", "")
}

// announced is what the announcement of a build answers.
type announced struct {
	TemplateID, BuildID  string
	Public               bool
	Names, Tags, Aliases []string
}

// buildStatus is how a build stands.
type buildStatus struct {
	TemplateID, BuildID, Status string
	LogEntries                  []struct{ Timestamp, Level, Message, Step string }
	Reason                      struct{ Message, Step string }
}

func (h *house) announce(name string) announced {
	h.t.Helper()
	var a announced
	h.must(202, &a, h.ann, "POST /v3/templates", `{"name":"`+name+`","cpuCount":1,"memoryMB":1024}`)
	return a
}

// build announces a build, starts it with a body and waits for its end.
func (h *house) build(name, body string) (announced, buildStatus) {
	h.t.Helper()
	a := h.announce(name)
	path := "/templates/" + a.TemplateID + "/builds/" + a.BuildID
	h.must(202, nil, h.ann, "POST /v2"+path, body)
	for {
		var s buildStatus
		h.must(200, &s, h.ann, "GET "+path+"/status?logsOffset=0", "")
		if s.Status == "ready" || s.Status == "error" {
			return a, s
		}
		<-time.After(time.Millisecond)
	}
}

// TestBuildsOfTemplates: what is built is found by its names, tags and id, by its token
// alone, and goes with them.
func TestBuildsOfTemplates(t *testing.T) {
	t.Parallel()
	h := newWorkshop(t)
	a, s := h.build("app:v1", `{"fromImage":"e2bdev/base","steps":[{"type":"ENV","args":["A","1"],"force":false}],"force":true}`)
	if s.Status != "ready" || !isUUID(a.BuildID) || a.Public || !slices.Equal(a.Tags, []string{"v1"}) || !slices.Equal(a.Names, []string{"app"}) || len(s.LogEntries) == 0 {
		t.Fatalf("%+v %+v", a, s)
	}
	again, _ := h.build("app", `{"fromTemplate":"app:v1"}`)
	if again.TemplateID != a.TemplateID || again.BuildID == a.BuildID || !slices.Equal(again.Tags, []string{"default"}) {
		t.Errorf("%+v", again)
	}
	other := h.announce("other")
	if h.must(202, &other, h.ann, "POST /v3/templates", `{"name":"other","tags":["v1","default"]}`); !slices.Equal(other.Tags, []string{"default", "v1"}) {
		t.Errorf("%+v", other)
	}
	snaps, err := h.life.Snapshots(t.Context())
	if err != nil || len(snaps) != 2 {
		t.Fatalf("%+v %v", snaps, err)
	}
	for ref, want := range map[string]string{"app:v1": snaps[0].ID, "app": snaps[1].ID, "app:latest": snaps[1].ID, a.TemplateID: snaps[1].ID, a.TemplateID + ":v1": snaps[0].ID} {
		h.must(201, &made{}, h.ann, "POST /v2/sandboxes", `{"templateID":"`+ref+`"}`)
		if all := h.life.Requests(); all[len(all)-1].Snapshot != want || all[len(all)-1].Labels[templatebuild.Label] != "" {
			t.Errorf("%s: %+v", ref, all[len(all)-1])
		}
		h.refused(404, "no template", h.bob, "POST /v2/sandboxes", `{"templateID":"`+ref+`"}`)
	}
	for route, want := range map[string]int{
		"/templates/aliases/app": 200, "/templates/aliases/app:v1": 200, "/templates/aliases/app:v9": 404, "/templates/aliases/other": 404, "/templates/" + a.TemplateID: 200,
	} {
		if w := h.ask(h.ann, "GET "+route, ""); w.Code != want || want == 200 && !strings.Contains(w.Body.String(), a.TemplateID) {
			t.Errorf("%s: %d %s", route, w.Code, w.Body)
		}
		if w := h.ask(h.bob, "GET "+route, ""); w.Code != 404 {
			t.Errorf("bob: %s: %d %s", route, w.Code, w.Body)
		}
	}
	var list []struct {
		TemplateID, BuildID string
		Names               []string
		BuildCount          int
	}
	header := h.must(200, &list, h.ann, "GET /v2/templates?limit=1", "")
	if len(list) != 1 || list[0].TemplateID != "debian" {
		t.Errorf("%+v", list)
	}
	h.must(200, &list, h.ann, "GET /v2/templates?limit=1&nextToken="+header.Get("x-next-token"), "")
	if len(list) != 1 || list[0].TemplateID != a.TemplateID || list[0].BuildID != again.BuildID || list[0].BuildCount != 2 || !slices.Equal(list[0].Names, []string{"app"}) {
		t.Errorf("%+v", list)
	}
	if h.must(200, &list, h.bob, "GET /templates", ""); len(list) != 1 {
		t.Errorf("bob sees %+v", list)
	}
	var none []snapshot
	if h.must(200, &none, h.ann, "GET /snapshots", ""); len(none) != 0 {
		t.Errorf("builds among the snapshots: %+v", none)
	}
	h.refused(404, "no", h.bob, "DELETE /templates/"+a.TemplateID, "")
	h.must(204, nil, h.ann, "DELETE /templates/"+a.TemplateID, "")
	if snaps, err = h.life.Snapshots(t.Context()); err != nil || len(snaps) != 0 {
		t.Errorf("left: %+v %v", snaps, err)
	}
	h.refused(404, "no build", h.bob, "GET /templates/"+other.TemplateID+"/builds/"+other.BuildID+"/status", "")
	h.refused(404, "no build", h.bob, "POST /v2/templates/"+other.TemplateID+"/builds/"+other.BuildID, `{"fromTemplate":"base"}`)
	h.refused(404, "no template", h.bob, "GET /templates/"+other.TemplateID+"/files/"+strings.Repeat("0", 64), "")
}

// TestTagsAreAssigned: to what there is, under valid names; the build that loses its
// last one goes.
func TestTagsAreAssigned(t *testing.T) {
	t.Parallel()
	h := newWorkshop(t)
	first, _ := h.build("app:v1", `{"fromTemplate":"base"}`)
	second, _ := h.build("app:v2", `{"fromTemplate":"base"}`)
	var got struct {
		BuildID string
		Tags    []string
	}
	h.must(201, &got, h.ann, "POST /templates/tags", `{"target":"app:v1","tags":["latest","stable"]}`)
	if got.BuildID != first.BuildID || !slices.Equal(got.Tags, []string{"latest", "stable"}) {
		t.Errorf("%+v", got)
	}
	tags := func() map[string]string {
		t.Helper()
		var all []struct{ Tag, BuildID string }
		h.must(200, &all, h.ann, "GET /templates/app/tags", "")
		by := map[string]string{}
		for _, tag := range all {
			by[tag.Tag] = tag.BuildID
		}
		return by
	}
	if by := tags(); len(by) != 4 || by["default"] != first.BuildID || by["stable"] != first.BuildID || by["v2"] != second.BuildID {
		t.Errorf("%v", by)
	}
	for _, bad := range []string{":x", "app:", "a b", "", "A", "../x"} {
		h.refused(400, "is not valid", h.ann, "POST /templates/tags", `{"target":"app:v1","tags":["`+bad+`"]}`)
	}
	h.refused(400, "no tags", h.ann, "POST /templates/tags", `{"target":"app:v1","tags":[]}`)
	h.refused(404, "no template", h.ann, "POST /templates/tags", `{"target":"app:v9","tags":["x"]}`)
	h.refused(404, "no template", h.bob, "POST /templates/tags", `{"target":"app:v1","tags":["x"]}`)
	h.refused(403, "the daemon's host", h.ann, "POST /templates/tags", `{"target":"base","tags":["x"]}`)
	h.refused(403, "the daemon's host", h.ann, "DELETE /templates/tags", `{"name":"debian","tags":["default"]}`)
	h.refused(404, "no tag", h.bob, "DELETE /templates/tags", `{"name":"app","tags":["v1"]}`)
	h.refused(404, "no tag", h.ann, "DELETE /templates/tags", `{"name":"app","tags":["v9"]}`)
	h.must(204, nil, h.ann, "DELETE /templates/tags", `{"name":"app","tags":["v1","latest"]}`)
	if by := tags(); len(by) != 2 || by["stable"] != first.BuildID || by["v2"] != second.BuildID {
		t.Errorf("%v", by)
	}
	h.must(201, &got, h.ann, "POST /templates/tags", `{"target":"app:v2","tags":["stable"]}`)
	if left, err := h.life.Snapshots(t.Context()); err != nil || len(left) != 1 || left[0].Built.Build != second.BuildID {
		t.Errorf("a build without a name is left: %+v %v", left, err)
	}
}

// TestWhatIsNotBuilt: names that stand for something else, and bases that are not to be
// had, of which a client hears where it asks how the build goes.
func TestWhatIsNotBuilt(t *testing.T) {
	t.Parallel()
	h := newWorkshop(t)
	for _, name := range []string{"", "base", "debian", "host:v1", "Upper", "a/b", "x:", "snap0123456789abcdef", "tpl0123456789abcdef"} {
		h.refused(400, "name", h.ann, "POST /v3/templates", `{"name":"`+name+`"}`)
	}
	h.refused(400, "tag", h.ann, "POST /v3/templates", `{"name":"app","tags":["a:b"]}`)
	h.refused(400, "unknown field", h.ann, "POST /v3/templates", `{"name":"app","else":1}`)
	for body, says := range map[string]string{
		`{"fromImage":"ubuntu:22.04"}`: "pulls no images; begin with one of its own templates: fromTemplate('debian')",
		`{"fromImage":"registry.example/x","fromImageRegistry":{"type":"registry","username":"u","password":"p"}}`: "pulls no images",
		`{"fromTemplate":"not-there"}`: "no template", `{"fromTemplate":"host"}`: "no template", `{}`: "fromTemplate('base')",
		`{"fromImage":"python:3.13"}`: "pulls no images", `{"fromImage":"node:host"}`: "no template",
	} {
		if _, s := h.build("app", body); s.Status != "error" || s.Reason.Step != "base" || !strings.Contains(s.Reason.Message, says) {
			t.Errorf("%s: %+v", body, s)
		}
	}
	if len(h.life.Requests()) != 0 {
		t.Error("a sandbox was made")
	}
	for _, image := range []string{"python:3", "node:lts", "node", "e2bdev/base", "debian:stable"} {
		if _, s := h.build("app", `{"fromImage":"`+image+`"}`); s.Status != "ready" {
			t.Errorf("from the image %s: %+v", image, s)
		}
	}
	a := h.announce("app")
	path := "/templates/" + a.TemplateID + "/builds/" + a.BuildID
	h.refused(400, "unknown field", h.ann, "POST /v2"+path, `{"steps":[{"type":"RUN","what":1}]}`)
	h.refused(400, "number", h.ann, "GET "+path+"/status?logsOffset=-1", "")
	h.must(202, nil, h.ann, "POST /v2"+path, `{"fromImage":"debian:stable"}`)
	h.refused(409, "has begun", h.ann, "POST /v2"+path, `{"fromImage":"debian"}`)
}

// TestUploadLinks: who has the link needs no key, and it works once.
func TestUploadLinks(t *testing.T) {
	t.Parallel()
	h := newWorkshop(t)
	a := h.announce("app")
	route := "GET /templates/" + a.TemplateID + "/files/" + strings.Repeat("0", 64)
	var link struct {
		Present bool
		URL     string
	}
	h.must(201, &link, h.ann, route, "")
	put := func(url, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.control.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(body)))
		return w
	}
	at, found := strings.CutPrefix(link.URL, "http://example.com")
	if link.Present || !found {
		t.Fatalf("%+v", link)
	}
	if token, ok := h.control.Uploader(httptest.NewRequestWithContext(t.Context(), http.MethodPut, at, nil)); !ok || token != h.annToken.ID {
		t.Errorf("it is %q's: %v", token, ok)
	}
	if w := put(at+"x", "files"); w.Code != 403 {
		t.Errorf("a guessed link: %d %s", w.Code, w.Body)
	}
	if w := put(at, "files"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := put(at, "others"); w.Code != 403 {
		t.Errorf("a second time: %d %s", w.Code, w.Body)
	}
	if h.must(201, &link, h.ann, route, "", "X-Forwarded-Proto", "https"); !link.Present || !strings.HasPrefix(link.URL, "https://") {
		t.Errorf("%+v", link)
	}
	h.refused(400, "SHA-256", h.ann, "GET /templates/"+a.TemplateID+"/files/00", "")
	if _, err := h.book.Revoke(t.Context(), h.annToken.ID); err != nil {
		t.Fatal(err)
	}
	if w := put(strings.TrimPrefix(link.URL, "https://example.com"), "files"); w.Code == 200 {
		t.Error("a revoked token's upload was taken")
	}
}

// TestABuildsSandboxIsNoClients: it is not listed, and nothing is done to it by its id.
func TestABuildsSandboxIsNoClients(t *testing.T) {
	t.Parallel()
	h := newWorkshop(t)
	a := h.announce("app")
	path := "/templates/" + a.TemplateID + "/builds/" + a.BuildID
	h.must(202, nil, h.ann, "POST /v2"+path, `{"fromTemplate":"base","steps":[{"type":"RUN","args":["sleep 600"]}]}`)
	for len(h.life.List()) == 0 {
		<-time.After(time.Millisecond)
	}
	id := h.life.List()[0].Info().ID
	var list []json.RawMessage
	if h.must(200, &list, h.ann, "GET /v2/sandboxes", ""); len(list) != 0 {
		t.Errorf("%s", list)
	}
	for _, route := range []string{"GET /sandboxes/" + id, "DELETE /sandboxes/" + id, "POST /sandboxes/" + id + "/pause", "POST /sandboxes/" + id + "/snapshots"} {
		h.refused(404, "no sandbox", h.ann, route, "")
	}
}
