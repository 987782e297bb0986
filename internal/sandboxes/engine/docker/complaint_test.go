package docker

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// TestWhatIsLeftBehindIsToldOnce: a daemon that answers everything but what it has, and one
// that removes nothing, are told of once, until it goes well.
func TestWhatIsLeftBehindIsToldOnce(t *testing.T) {
	lists, removes := true, true
	host := pretender{component: "Engine", other: func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/containers/json") && lists:
			_, _ = w.Write([]byte(`[{"Id":"0123456789abcdef","Labels":{"` + labelSandbox + `":"gone"}}]`))
		case r.Method == http.MethodDelete && removes:
			w.WriteHeader(http.StatusNoContent)
		default:
			http.Error(w, `{"message":"out of order"}`, http.StatusInternalServerError)
		}
	}}.listen(t)
	var said bytes.Buffer
	e := New(Config{Host: host, StateDir: t.TempDir(), Place: t.TempDir(), Log: slog.New(slog.NewTextHandler(&said, nil))}, nil)
	look := func() {
		e.tending.tellFailure(t.Context(), e.cfg.Log, "tending", e.removeOrphans(t.Context()))
		_, err := e.List(t.Context())
		if err != nil {
			t.Errorf("its list: %v", err)
		}
	}
	lists = false
	look()
	if said.Len() > 0 {
		t.Errorf("a daemon that nobody used was asked: %s", &said)
	}
	if err := e.markTraces(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name           string
		lists, removes bool
		want           []string // a line of each
	}{
		{"it lists nothing", false, true, []string{"list the containers of the Docker daemon", "list the containers of the Docker daemon"}},
		{"it still does not", false, true, nil},
		{"it does", true, true, nil},
		{"it removes nothing", true, false, []string{"remove container 0123456789ab"}},
		{"it still does not", true, false, nil},
		{"it does again", true, true, nil},
		{"and no more", true, false, []string{"remove container 0123456789ab"}},
	} {
		said.Reset()
		lists, removes = step.lists, step.removes
		look()
		lines := strings.FieldsFunc(said.String(), func(r rune) bool { return r == '\n' })
		told := len(lines) == len(step.want)
		for i := range min(len(lines), len(step.want)) {
			told = told && strings.Contains(lines[i], step.want[i]) && strings.Contains(lines[i], "out of order")
		}
		if !told {
			t.Errorf("%s: it said %q, want %q", step.name, lines, step.want)
		}
	}
	said.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.listing.tellFailure(ctx, e.cfg.Log, "listing", context.Canceled)
	if said.Len() > 0 {
		t.Errorf("a look that was given up was told of: %s", &said)
	}
}
