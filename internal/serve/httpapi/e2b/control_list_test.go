package e2b_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
)

type listed struct {
	SandboxID, State, TemplateID, StartedAt, EndAt string
	Metadata                                       map[string]string
}

// ids are those of all pages.
func (h *house) ids(query string) []string {
	h.t.Helper()
	var all []string
	next := ""
	for range 20 {
		var page []listed
		header := h.must(http.StatusOK, &page, h.ann, "GET /v2/sandboxes?"+query+"&nextToken="+next, "")
		for _, l := range page {
			all = append(all, l.SandboxID)
		}
		if next = header.Get("x-next-token"); next == "" {
			return all
		}
	}
	h.t.Fatal("the pages have no end")
	return nil
}

func TestList(t *testing.T) {
	h := newHouse(t)
	var made []string
	for i := range 5 {
		made = append(made, h.create(fmt.Sprintf(`,"metadata":{"n":"%d","odd":"%t","ä b":"c+d&e%%"}`, i, i%2 == 1)).SandboxID)
	}
	h.must(204, nil, h.ann, "POST /sandboxes/"+made[1]+"/pause", "")
	started := func(i int) string { return h.info(made[i]).StartedAt }
	newest := slices.Clone(made)
	slices.Reverse(newest)
	twice := func(m url.Values) string { return "metadata=" + url.QueryEscape(m.Encode()) }
	for query, want := range map[string][]string{
		"":                           newest,
		"order=desc":                 newest,
		"order=asc":                  made,
		"limit=2":                    newest,
		"limit=2&order=asc":          made,
		"limit=5":                    newest,
		"state=paused":               {made[1]},
		"state=running,paused":       newest,
		"state=running&state=paused": newest,
		"state=running&order=asc":    {made[0], made[2], made[3], made[4]},
		"template=base":              newest,
		"template=debian":            newest,
		"template=other":             nil,
		"order=asc&startedAfter=" + url.QueryEscape(started(0)):              made,
		"startedAfter=2100-01-01T00:00:00.000Z":                              nil,
		twice(url.Values{"n": {"3"}}):                                        {made[3]},
		twice(url.Values{"n": {"3"}, "odd": {"false"}}):                      nil,
		"limit=1&order=asc&" + twice(url.Values{"odd": {"true"}}):            {made[1], made[3]},
		twice(url.Values{url.PathEscape("ä b"): {url.PathEscape("c+d&e%")}}): newest,
		twice(url.Values{"cofferdam.policy": {"default"}}):                   nil,
		twice(url.Values{"none": {""}}):                                      nil,
	} {
		if got := h.ids(query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	var first []listed
	h.must(200, &first, h.ann, "GET /sandboxes?"+twice(url.Values{"odd": {"true"}}), "")
	for query, want := range map[string]string{"limit=1": "4", "state=paused": "0", "limit=1&" + twice(url.Values{"odd": {"true"}}): "1"} {
		var page []listed
		if got := h.must(200, &page, h.ann, "GET /v2/sandboxes?"+query, "").Get("X-Total-Running"); got != want {
			t.Errorf("%s: %q run, want %s", query, got, want)
		}
	}
	if len(first) != 1 || first[0].SandboxID != made[3] || first[0].Metadata["n"] != "3" {
		t.Errorf("the first version's list: %+v", first)
	}
}

func TestListRefuses(t *testing.T) {
	h := newHouse(t)
	for query, want := range map[string]string{
		"limit=0": "from 1 to 100", "limit=101": "from 1 to 100", "limit=x": "from 1 to 100", "nextToken=*": "did not give that nextToken",
		"state=gone": "running or paused", "order=up": "asc or desc", "startedAfter=yesterday": "not a time such as", "metadata=%25zz": "must be a list of name=value",
		"metadata=a%3D%2525zz": "must be a list of name=value",
	} {
		h.refused(400, want, h.ann, "GET /v2/sandboxes?"+query, "")
	}
}

// TestPagesHoldStill: what is made or goes while a client reads moves nothing else.
func TestPagesHoldStill(t *testing.T) {
	h := newHouse(t)
	var made []string
	for range 4 {
		made = append(made, h.create("").SandboxID)
	}
	var page []listed
	next := h.must(200, &page, h.ann, "GET /v2/sandboxes?limit=2", "").Get("x-next-token")
	h.create("")
	h.must(204, nil, h.ann, "DELETE /sandboxes/"+made[2], "") // the last one that was read
	if h.must(200, &page, h.ann, "GET /v2/sandboxes?limit=2&nextToken="+next, ""); len(page) != 2 || page[0].SandboxID != made[1] || page[1].SandboxID != made[0] {
		t.Errorf("%+v, want %v", page, made)
	}
}

type snapshot struct {
	SnapshotID string
	Names      []string
}

func TestSnapshots(t *testing.T) {
	h := newHouse(t)
	id, other := h.create(`,"metadata":{"policy":"data"}`).SandboxID, h.create("").SandboxID
	var named, plain, third snapshot
	h.must(201, &named, h.ann, "POST /sandboxes/"+id+"/snapshots", `{"name":"ready"}`)
	h.must(201, &plain, h.ann, "POST /sandboxes/"+id+"/snapshots", "")
	h.must(201, &third, h.ann, "POST /sandboxes/"+other+"/snapshots", `{}`)
	if !slices.Equal(named.Names, []string{"ready:default"}) || plain.Names == nil || named.SnapshotID == plain.SnapshotID {
		t.Errorf("%+v %+v", named, plain)
	}
	for name, want := range map[string]string{
		"base": "stands for something else", "code-interpreter-v1": "stands for something else", plain.SnapshotID: "stands for something else",
		"A": "not valid", "a/b": "not valid", "a:": "not valid", ":a": "not valid", "a:b:c": "not valid", "base:v1": "stands for something else", strings.Repeat("a", 64): "not valid",
	} {
		h.refused(400, want, h.ann, "POST /sandboxes/"+id+"/snapshots", `{"name":"`+name+`"}`)
	}
	for query, want := range map[string][]string{
		"": {third.SnapshotID, plain.SnapshotID, named.SnapshotID}, "sandboxID=" + id: {plain.SnapshotID, named.SnapshotID}, "name=ready": {named.SnapshotID},
		"name=ready:v1": {named.SnapshotID}, "name=" + third.SnapshotID: {third.SnapshotID}, "name=nothing": nil, "limit=2": {third.SnapshotID, plain.SnapshotID},
	} {
		var list []snapshot
		header := h.must(200, &list, h.ann, "GET /snapshots?"+query, "")
		var got []string
		for _, s := range list {
			got = append(got, s.SnapshotID)
		}
		if !slices.Equal(got, want) || (header.Get("x-next-token") != "") != (query == "limit=2") {
			t.Errorf("%s: %v, want %v; next %q", query, got, want, header.Get("x-next-token"))
		}
	}
	h.refused(403, "removed on the daemon's host", h.ann, "DELETE /templates/base", "")
	h.refused(403, "removed on the daemon's host", h.ann, "DELETE /templates/host", "")
	h.must(204, nil, h.ann, "DELETE /templates/"+plain.SnapshotID, "")
	h.refused(404, "no snapshot", h.ann, "DELETE /templates/"+plain.SnapshotID, "")
}

// TestSnapshotsOfFiles: memory: false keeps the files alone; what there is of the sandbox goes on.
func TestSnapshotsOfFiles(t *testing.T) {
	h := newHouse(t)
	id := h.create("").SandboxID
	for body, want := range map[string]engine.Contents{`{"memory":false}`: engine.ContentsFiles, `{"memory":true}`: engine.ContentsMemory, `{"memory":null}`: engine.ContentsMemory} {
		var made snapshot
		h.must(201, &made, h.ann, "POST /sandboxes/"+id+"/snapshots", body)
		all, err := h.life.Snapshots(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if last := all[len(all)-1]; last.ID != made.SnapshotID || last.Contents != want {
			t.Errorf("%s: %+v", body, last)
		}
		if state := h.info(id).State; state != "running" {
			t.Errorf("%s: it is %s", body, state)
		}
	}
}

// TestCreateFromSnapshot: the policy is that of its source's name, as it is today.
func TestCreateFromSnapshot(t *testing.T) {
	h := newHouse(t)
	id := h.create(`,"metadata":{"policy":"data"}`).SandboxID
	var s snapshot
	h.must(201, &s, h.ann, "POST /sandboxes/"+id+"/snapshots", `{"name":"ready"}`)
	if _, err := h.policies.Put("data", "data", []byte("packages: { default: hold }\n")); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{s.SnapshotID, "ready", "ready:latest", "ready:default"} {
		var m made
		h.must(201, &m, h.ann, "POST /v2/sandboxes", `{"templateID":"`+ref+`"}`)
		all := h.life.Requests()
		r := all[len(all)-1]
		if r.Snapshot != s.SnapshotID || r.Template != "" || r.Account.Name != "" || string(r.PolicyText) != "packages: { default: hold }\n" || m.TemplateID != ref {
			t.Errorf("%s: %+v", ref, r)
		}
	}
	h.refused(404, "no template or snapshot", h.ann, "POST /v2/sandboxes", `{"templateID":"ready:v2"}`)
	var m made
	h.must(201, &m, h.ann, "POST /v2/sandboxes", `{"templateID":"ready","metadata":{"policy":"default"}}`)
	if got := h.info(m.SandboxID).Policy; got != "default" {
		t.Error(got)
	}
}

func TestFork(t *testing.T) {
	h := newHouse(t)
	if _, err := h.book.Revoke(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	_, few, err := h.book.Issue(t.Context(), token.Grant{Name: "few", Quota: token.Quota{Sandboxes: 2}})
	if err != nil {
		t.Fatal(err)
	}
	var m made
	h.must(201, &m, few, "POST /v2/sandboxes", `{"templateID":"base","autoPause":true}`)
	var forks []struct {
		Sandbox *made
		Error   *struct {
			Code    int
			Message string
		}
	}
	h.must(201, &forks, few, "POST /sandboxes/"+m.SandboxID+"/fork", `{"count":2,"timeout":60}`)
	if len(forks) != 2 || forks[0].Sandbox == nil || forks[0].Error != nil || forks[1].Sandbox != nil || forks[1].Error == nil || forks[1].Error.Code != 429 ||
		!strings.Contains(forks[1].Error.Message, "its quota is 2") {
		t.Fatalf("%+v", forks)
	}
	fork := forks[0].Sandbox
	if fork.SandboxID == m.SandboxID || fork.EnvdAccessToken == m.EnvdAccessToken || fork.EnvdAccessToken != h.keys.Token(fork.SandboxID) {
		t.Errorf("%+v of %+v", fork, m)
	}
	sb, err := h.life.Get(fork.SandboxID)
	if err != nil || sb.Lifetime().Then != "pause" || sb.Info().Parent != m.SandboxID {
		t.Errorf("%+v %v", sb, err)
	}
	for _, count := range []string{"0", "101", "-1"} {
		h.refused(400, "from 1 to 100", few, "POST /sandboxes/"+m.SandboxID+"/fork", `{"count":`+count+`}`)
	}
	h.must(204, nil, few, "POST /sandboxes/"+m.SandboxID+"/pause", "")
	h.refused(409, "is paused", few, "POST /sandboxes/"+m.SandboxID+"/fork", "")
}

func TestTemplates(t *testing.T) {
	h := newHouse(t)
	var all []struct {
		TemplateID, BuildStatus, CreatedAt string
		Aliases                            []string
	}
	h.must(200, &all, h.ann, "GET /templates", "")
	if len(all) != 1 || all[0].TemplateID != "debian" || all[0].BuildStatus != "ready" || all[0].CreatedAt != "2026-03-04T05:06:07.000Z" || !slices.Contains(all[0].Aliases, "base") {
		t.Errorf("%+v", all)
	}
	var one struct{ TemplateID string }
	for _, route := range []string{"GET /templates/base", "GET /templates/debian", "GET /templates/aliases/base", "GET /templates/aliases/code-interpreter-v1"} {
		if h.must(200, &one, h.ann, route, ""); one.TemplateID != "debian" {
			t.Errorf("%s: %+v", route, one)
		}
	}
	h.refused(404, "no template \"host\"", h.ann, "GET /templates/host", "")
	h.refused(404, "no template \"mine\"", h.ann, "GET /templates/aliases/mine", "")
}

// TestKeys: tokens outlive the daemon, and differ by sandbox, use and installation.
func TestKeys(t *testing.T) {
	h := newHouse(t)
	path := filepath.Join(t.TempDir(), "access.key")
	keys, err := e2b.LoadKeys(path, h.life)
	if err != nil {
		t.Fatal(err)
	}
	again, err := e2b.LoadKeys(path, h.life)
	if err != nil {
		t.Fatal(err)
	}
	other, err := e2b.LoadKeys(filepath.Join(t.TempDir(), "access.key"), h.life)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if len(keys.Token("sb1")) != 64 || keys.Token("sb1") != again.Token("sb1") || keys.Token("sb1") == keys.Token("sb2") ||
		keys.Token("sb1") == keys.Traffic("sb1") || keys.Token("sb1") == other.Token("sb1") {
		t.Error("tokens are not as they should be")
	}
	open, closed := h.create("").SandboxID, h.create(`,"network":{"allowPublicTraffic":false}`).SandboxID
	if keys.Traffic(open) != "" || keys.Traffic(closed) == "" || keys.Traffic("sb0") == "" {
		t.Error("ports are not open to whom they should be")
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e2b.LoadKeys(path, h.life); err == nil {
		t.Error("a damaged key was taken")
	}
}
