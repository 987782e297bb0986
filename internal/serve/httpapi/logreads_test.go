package httpapi

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// longLog is a log that is read through at a test's will: who reads it for the records of a run waits until goOn.
type longLog struct {
	approvaltest.Log
	reading atomic.Int32
	goOn    chan struct{}
}

func (l *longLog) Records(ctx context.Context, f audit.Filter) iter.Seq2[audit.Record, error] {
	if f.Run != "" && f.Seqs == nil {
		l.reading.Add(1)
		<-l.goOn
	}
	return l.Log.Records(ctx, f)
}

// noSandboxes has none.
type noSandboxes struct{ Sandboxes }

func (noSandboxes) List() []*sandbox.Sandbox { return nil }

// began puts the beginning of a sandbox of a token on record.
func began(t *testing.T, log audit.Log, keys audit.OwnerKeys, token, run string) {
	t.Helper()
	r := audit.Record{Kind: audit.KindSandbox, Outcome: audit.Started, Run: run, Sandbox: "sb-" + run, Token: token, Detail: map[string]string{}}
	if key := keys.Of(run, token); key != "" {
		r.Detail[audit.DetailOwnerKey] = key
	}
	if _, err := log.Append(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// TestOneTokensReadersOfTheLog: the whole log is read for few of a token's requests at once, as for its
// questions for logs on the E2B port, whatever it asks for. Each is answered in the end.
func TestOneTokensReadersOfTheLog(t *testing.T) {
	for what, c := range map[string]struct {
		method, path, body string
		status             int
	}{
		"refusals":           {http.MethodGet, "/v1/refusals?run=r1", "", http.StatusOK},
		"the last plan":      {http.MethodGet, "/v1/runs/r1/plan", "", http.StatusNotFound},
		"a plan":             {http.MethodPost, "/v1/runs/theirs/plan", `{"ecosystem":"python","releases":[{"name":"six","version":"1.0"}]}`, http.StatusNotFound},
		"a sandbox of a run": {http.MethodPost, "/v1/sandboxes", `{"run":"theirs"}`, http.StatusConflict},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { readersOfTheLog(t, c.method, c.path, c.body, c.status) })
		})
	}
}

// readersOfTheLog asks for something very many times at once.
func readersOfTheLog(t *testing.T, method, path, body string, status int) {
	t.Helper()
	const requests, most = 200, 16
	log := &longLog{goOn: make(chan struct{})}
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tok, secret, err := book.Issue(t.Context(), token.Grant{Name: "mallory"})
	if err != nil {
		t.Fatal(err)
	}
	keys := audit.NewOwnerKeys([]byte("the installation's"))
	began(t, log, keys, tok.ID, "r1")
	began(t, log, keys, "tk_another", "theirs")
	s := New(Config{Log: log, OwnerKeys: keys, Tokens: book, Door: admission.New(admission.Config{Log: log}), Sandboxes: noSandboxes{}, Logger: slog.New(slog.DiscardHandler)})
	var group sync.WaitGroup
	var served atomic.Int32
	var last atomic.Value
	for range requests {
		group.Go(func() {
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
			r.Header.Set("X-Api-Key", secret)
			s.ServeHTTP(w, r)
			if last.Store(fmt.Sprint(w.Code, w.Body)); w.Code == status {
				served.Add(1)
			}
		})
	}
	synctest.Wait() // all that run read the log, or wait for their turn
	reading := log.reading.Load()
	close(log.goOn)
	group.Wait()
	if reading == 0 || served.Load() == 0 {
		t.Fatalf("INCONCLUSIVE: %d read the log, %d were answered, last %s", reading, served.Load(), last.Load())
	}
	if reading > most {
		t.Errorf("%d requests of one token read the whole log at once", reading)
	}
}

// TestATokensLastRunIsFoundBehindOthers: what other tokens do does not change what a token is told of its own.
func TestATokensLastRunIsFoundBehindOthers(t *testing.T) {
	t.Parallel()
	log := &approvaltest.Log{}
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tok, secret, err := book.Issue(t.Context(), token.Grant{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	keys := audit.NewOwnerKeys([]byte("the installation's"))
	s := New(Config{Log: log, OwnerKeys: keys, Tokens: book, Door: admission.New(admission.Config{Log: log}), Logger: slog.New(slog.DiscardHandler)})
	ask := func() (int, string) {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/refusals", nil)
		r.Header.Set("X-Api-Key", secret)
		s.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	began(t, log, keys, tok.ID, "mine")
	if status, body := ask(); status != http.StatusOK {
		t.Fatalf("INCONCLUSIVE: %d %s", status, body)
	}
	for i := range lookedAt {
		began(t, log, keys, "tk_another", fmt.Sprint("theirs-", i))
	}
	if status, body := ask(); status != http.StatusOK {
		t.Errorf("after %d sandboxes of another token: %d %s", lookedAt, status, body)
	}
}
