package e2b_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
)

// wireLines are the lines of one kind of what the newest SDK sends, without that kind: see test/sdk/wire.py,
// which prints them.
func wireLines(t *testing.T, kind string) []string {
	t.Helper()
	f, err := os.Open("testdata/wire.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []string
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), kind+" "); ok {
			lines = append(lines, rest)
		}
	}
	if len(lines) == 0 {
		t.Fatalf("testdata/wire.txt has no line of the kind %q", kind)
	}
	return lines
}

// told is the message of an answer that is an error; "": it is none.
func told(body []byte) string {
	var e struct{ Message string }
	_ = json.Unmarshal(body, &e) // a list is no error
	return e.Message
}

// fill puts things that are there in the place of a route's placeholders.
func (h *house) fill(t *testing.T, route string) string {
	t.Helper()
	switch {
	case strings.Contains(route, "/sandboxes/{}"):
		return strings.Replace(route, "{}", h.create("").SandboxID, 1)
	case strings.Contains(route, "/templates/{}/tags/{}"):
		return strings.NewReplacer("/templates/{}", "/templates/debian", "/tags/{}", "/tags/default").Replace(route)
	case strings.Contains(route, "/builds/{}"):
		a := h.announce("wire")
		return strings.NewReplacer("/templates/{}", "/templates/"+a.TemplateID, "/builds/{}", "/builds/"+a.BuildID).Replace(route)
	case strings.Contains(route, "/files/{}"):
		a := h.announce("wire")
		return strings.NewReplacer("/templates/{}", "/templates/"+a.TemplateID, "/files/{}", "/files/"+strings.Repeat("a", 64)).Replace(route)
	}
	return strings.ReplaceAll(route, "{}", "debian")
}

// TestRoutesOfTheNewestSDK: each does something, or says why it is not here and what to do.
func TestRoutesOfTheNewestSDK(t *testing.T) {
	t.Parallel()
	h := newWorkshop(t)
	for _, route := range wireLines(t, "route") {
		if w := h.ask(h.ann, h.fill(t, route), ""); strings.Contains(told(w.Body.Bytes()), "this server has no") {
			t.Errorf("%s: %d %s", route, w.Code, w.Body)
		}
	}
}

// TestFieldsOfTheNewestSDK: each is taken, or refused by a sentence about what it asks for.
func TestFieldsOfTheNewestSDK(t *testing.T) {
	t.Parallel()
	h := newWorkshop(t)
	for _, line := range append(wireLines(t, "body"),
		// How the JavaScript SDK sends a step's own options.
		"POST /v2/templates/{}/builds/{} steps.forceUpload", "POST /v2/templates/{}/builds/{} steps.resolveSymlinks", "POST /v2/templates/{}/builds/{} steps.gzip",
	) {
		at := strings.LastIndex(line, " ")
		route, field := line[:at], line[at+1:]
		body := "null"
		for inner := field; inner != ""; {
			outer, name, nested := "", inner, false
			if i := strings.LastIndex(inner, "."); i >= 0 {
				outer, name, nested = inner[:i], inner[i+1:], true
			}
			body = `{"` + name + `":` + body + `}`
			if nested && (outer == "steps" || outer == "volumeMounts") {
				body = "[" + body + "]"
			}
			inner = outer
		}
		if w := h.ask(h.ann, h.fill(t, route), body); strings.Contains(told(w.Body.Bytes()), "unknown field") {
			t.Errorf("%s %s: %d %s", route, body, w.Code, w.Body)
		}
	}
}

// TestTextsOfTheNewestSDK: the SDK tells answers of 502 apart by what their sentences have in them.
func TestTextsOfTheNewestSDK(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for _, line := range wireLines(t, "text") {
		name, text, _ := strings.Cut(line, " ")
		texts[name] = text
	}
	for text, constant := range map[string]string{
		e2b.TextNotFound: "SANDBOX_NOT_FOUND_MESSAGE", e2b.TextPaused: "SANDBOX_NOT_FOUND_MESSAGE", e2b.TextSilent: "SANDBOX_NOT_FOUND_MESSAGE", e2b.TextPortClosed: "SANDBOX_PORT_NOT_OPEN_MESSAGE",
	} {
		for name, of := range texts {
			if got := strings.Contains(text, of); got != (name == constant) {
				t.Errorf("%q has %s (%q) in it: %t", text, name, of, got)
			}
		}
	}
}
