package e2b_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
)

// house is a control plane over pretended sandboxes, with two clients.
type house struct {
	strangers int // requests without a valid key

	t        *testing.T
	life     *backendtest.Life
	book     *token.Book
	policies *namedpolicy.Store
	control  *e2b.Control
	keys     *e2b.Keys
	room     *backend.Room
	log      bytes.Buffer
	ann, bob string // their secrets
	annToken token.Token
}

// templates are as on a host where only the first is built.
type templates struct{}

func (templates) Known() []template.Known {
	return []template.Known{{Name: template.NameDebian}, {Name: template.NameHost}}
}

func (templates) Meant(name string) string {
	if name == template.NameAuto {
		return template.NameDebian
	}
	return name
}

func (templates) List(context.Context) ([]template.Template, error) {
	return []template.Template{{Name: template.NameDebian, Created: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}}, nil
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, life: backendtest.NewLife(t.TempDir()), room: backend.NewRoom()}
	var err error
	if h.book, err = token.Open(t.Context(), tokentest.NewMemory(), nil); err != nil {
		t.Fatal(err)
	}
	if h.policies, err = namedpolicy.Open(filepath.Join(t.TempDir(), "named"), h.book.Users); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"data": "packages: { default: allow }\n", "secret": "packages: { default: hold }\n"} {
		if _, err := h.policies.Put(name, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if h.annToken, h.ann, err = h.book.Issue(t.Context(), token.Grant{Name: "ann", Policies: []string{"data", "gone"}}); err != nil {
		t.Fatal(err)
	}
	if _, h.bob, err = h.book.Issue(t.Context(), token.Grant{Name: "bob", Policy: "secret"}); err != nil {
		t.Fatal(err)
	}
	if h.keys, err = e2b.LoadKeys(filepath.Join(t.TempDir(), "access.key"), h.life); err != nil {
		t.Fatal(err)
	}
	h.control = e2b.NewControl(e2b.Config{
		Sandboxes: h.life, Tokens: h.book, Policies: h.policies, Templates: templates{}, Access: h.keys, Room: h.room,
		DefaultTemplate: template.NameDebian, Domain: "sandbox.example:7433", HostUID: 65534, HostGID: 65533,
		Refused: func(context.Context) { h.strangers++ }, Log: slog.New(slog.NewTextHandler(&h.log, nil)),
	})
	return h
}

// ask makes a request; body "" is none.
func (h *house) ask(key, route, body string, headers ...string) *httptest.ResponseRecorder {
	h.t.Helper()
	method, path, _ := strings.Cut(route, " ")
	r := httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(body))
	if key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.control.ServeHTTP(w, r)
	return w
}

// must asks for something that works and reads the answer into v; nil: there is
// none.
func (h *house) must(status int, v any, key, route, body string, headers ...string) http.Header {
	h.t.Helper()
	w := h.ask(key, route, body, headers...)
	if w.Code != status {
		h.t.Fatalf("%s %s: %d %s, want %d", route, body, w.Code, w.Body, status)
	}
	data, err := io.ReadAll(w.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	if v == nil {
		if len(data) > 0 {
			h.t.Fatalf("%s: it answers %s", route, data)
		}
		return w.Header()
	}
	if err := json.Unmarshal(data, v); err != nil {
		h.t.Fatalf("%s: %s: %v", route, data, err)
	}
	return w.Header()
}

// refused asks for something that does not work, and checks the error object.
func (h *house) refused(status int, sentence, key, route, body string, headers ...string) http.Header {
	h.t.Helper()
	w := h.ask(key, route, body, headers...)
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		h.t.Errorf("%s %s: no error object: %s", route, body, w.Body)
	}
	if w.Code != status || e.Code != status || !strings.Contains(e.Message, sentence) {
		h.t.Errorf("%s %s: %d %d %q, want %d %q", route, body, w.Code, e.Code, e.Message, status, sentence)
	}
	return w.Header()
}

// made is what a create answers.
type made struct {
	SandboxID, TemplateID, ClientID, EnvdVersion, EnvdAccessToken, TrafficAccessToken, Domain string
}

// create makes a sandbox of ann's; fields are more members of the body.
func (h *house) create(fields string) made {
	h.t.Helper()
	var m made
	h.must(http.StatusCreated, &m, h.ann, "POST /v2/sandboxes", `{"templateID":"base"`+fields+`}`)
	return m
}

// detail is what an info answers.
type detail struct {
	made

	StartedAt, EndAt               string
	State, Policy, PolicyDigest    string
	CPUCount, MemoryMB, DiskSizeMB int
	Metadata                       map[string]string
	AllowInternetAccess            *bool
	Network                        struct {
		AllowOut, DenyOut  []string
		AllowPublicTraffic bool
	}
	Lifecycle struct {
		OnTimeout  string
		AutoResume bool
	}
	VolumeMounts []any
	Notes        []string
}

func (h *house) info(id string) detail {
	h.t.Helper()
	var d detail
	h.must(http.StatusOK, &d, h.ann, "GET /sandboxes/"+id, "")
	return d
}

// livesFor is about how long a sandbox still lives.
func (h *house) livesFor(id string) time.Duration {
	h.t.Helper()
	ends, err := time.Parse(time.RFC3339, h.info(id).EndAt)
	if err != nil {
		h.t.Fatal(err)
	}
	return time.Until(ends).Round(10 * time.Second)
}

var errInside = fault.New(fault.ErrForbidden, "numpy 2.0 is known to be malicious now (MAL-2026-1)")
