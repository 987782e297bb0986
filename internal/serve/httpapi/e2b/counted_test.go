package e2b_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// TestTagsAreCountedFirst: a list of tags that is longer than any may be is refused before there is work for
// each of them: of that, memory that is taken tells without a clock. Reading the list takes some.
func TestTagsAreCountedFirst(t *testing.T) {
	h := newWorkshop(t)
	list := func(tags int) string {
		const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
		var list []string
		for i := range tags {
			list = append(list, `"`+string([]byte{letters[i/46656%36], letters[i/1296%36], letters[i/36%36], letters[i%36]})+`"`)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	for route, body := range map[string]string{
		"POST /v3/templates":     `{"name":"app","tags":TAGS}`,
		"POST /templates/tags":   `{"target":"app","tags":TAGS}`,
		"DELETE /templates/tags": `{"name":"app","tags":TAGS}`,
	} {
		t.Run(route, func(t *testing.T) {
			work := func(tags int) (perTag float64, status int, answer string) {
				text := strings.ReplaceAll(body, "TAGS", list(tags))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				w := h.ask(h.ann, route, text)
				runtime.ReadMemStats(&after)
				return float64(after.Mallocs-before.Mallocs) / float64(tags), w.Code, w.Body.String()
			}
			if _, status, answer := work(3); strings.Contains(answer, "it may have") {
				t.Fatalf("the control: %d %s", status, answer)
			}
			each, status, answer := work(20_000)
			if status != http.StatusBadRequest || !strings.Contains(answer, "tags has 20000 items; it may have ") {
				t.Errorf("%d %s", status, answer)
			}
			if each > 20 {
				t.Errorf("of a list of 20,000 tags that is refused, each made the daemon take memory %.0f times", each)
			}
		})
	}
}

// TestListsOfRequestsAreCounted: so are the other lists and objects of this wire.
func TestListsOfRequestsAreCounted(t *testing.T) {
	h := newWorkshop(t)
	box := h.create("")
	many := func(item string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	object := func(n int) string {
		var text strings.Builder
		for i := range n {
			text.WriteString(`,"k` + strings.Repeat("k", i) + `":"v"`)
		}
		return "{" + text.String()[1:] + "}"
	}
	for field, tt := range map[string]struct{ route, body string }{
		"steps":      {"POST /v2/templates/tpl0123456789abcdef/builds/x", `{"fromTemplate":"base","steps":` + many("{}", 2_001) + `}`},
		"steps.args": {"POST /v2/templates/tpl0123456789abcdef/builds/x", `{"fromTemplate":"base","steps":[{"type":"ENV","args":` + many(`"a"`, 2_001) + `}]}`},
		"metadata":   {"POST /sandboxes", `{"templateID":"base","metadata":` + object(1_001) + `}`},
		"envVars":    {"POST /sandboxes", `{"templateID":"base","envVars":` + object(1_001) + `}`},
		"allowOut":   {"PUT /sandboxes/" + box.SandboxID + "/network", `{"allowOut":` + many(`"a.example"`, 1_001) + `}`},
		"denyOut":    {"PUT /sandboxes/" + box.SandboxID + "/network", `{"denyOut":` + many(`"10.0.0.1"`, 1_001) + `}`},
	} {
		w := h.ask(h.ann, tt.route, tt.body)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "request's "+field+" has") {
			t.Errorf("%s: %d %.300s", field, w.Code, w.Body)
		}
	}
}
