package pages

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
)

// onePage is a protocol that has one document, and counts how often it is rendered.
type onePage struct {
	ecosystem.Protocol
	text  string
	drawn int
}

func (*onePage) Form(string) ecosystem.Form { return "full" }

func (*onePage) ContentType(ecosystem.Form) string { return "text/plain" }

func (p *onePage) Render(w io.Writer, _ *ecosystem.Index, _ io.ReaderAt, _ ecosystem.View) error {
	p.drawn++
	_, err := io.WriteString(w, p.text)
	return err
}

// served is a server that answers with what is rendered, and what it is rendered from.
func served(t *testing.T, text string) (url string, ps *Pages, p *onePage) {
	t.Helper()
	store, err := cache.Open(t.TempDir(), cache.Limits{})
	must(t, err)
	log := slog.New(slog.DiscardHandler)
	flights := coalesce.New(log)
	ps, err = New(Config{Store: store, Flights: flights, Log: log, Rendered: 8 << 20})
	must(t, err)
	p = &onePage{text: text}
	j := Judged{Page: &Page{Index: &ecosystem.Index{}, stored: &cache.Rows{}}, source: Source{Index: "https://index.example/", Protocol: p}, answer: door.IndexAnswer{Epoch: "e"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		doc, err := ps.Render(r.Context(), j, r, "")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		doc.Send(w, r)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(func() {
		server.Close()
		flights.Cancel()
		flights.Wait()
	})
	return server.URL, ps, p
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// TestASpoiltPage: what was kept and can't be unpacked is no empty page and no half one.
// A fault that shows before anything is sent has the page rendered anew for the same client; where that
// shows later the connection breaks, and the next client has it rendered anew.
func TestASpoiltPage(t *testing.T) {
	t.Parallel()
	large := make([]byte, 4*sureBytes) // gzip can make nothing of it
	_, _ = rand.NewChaCha8([32]byte{}).Read(large)
	for name, c := range map[string]struct {
		text  string
		spoil func(packed []byte) []byte
		late  bool
	}{
		"whole":          {"a page", func(p []byte) []byte { return p }, false}, // the control
		"empty":          {"a page", func([]byte) []byte { return nil }, false},
		"no gzip":        {"a page", func(p []byte) []byte { return append([]byte("x"), p[1:]...) }, false},
		"another sum":    {"a page", func(p []byte) []byte { p[len(p)-8]++; return p }, false},
		"cut short":      {string(large), func(p []byte) []byte { return p[:len(p)-5] }, true},
		"cut at its end": {"a page", func(p []byte) []byte { return p[:len(p)-1] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			url, ps, p := served(t, c.text)
			if text, err := ask(t, url); text != c.text || err != nil || p.drawn != 1 {
				t.Fatalf("the control: %d bytes, %v, rendered %d times", len(text), err, p.drawn)
			}
			what := renderKey{index: "https://index.example/", epoch: "e", form: "full"}
			kept, ok := ps.rendered.Get(what)
			if !ok {
				t.Fatal("the page is not kept")
			}
			spoilt := *kept
			spoilt.packed = c.spoil(bytes.Clone(kept.packed))
			ps.rendered.Put(what, &spoilt, 1)
			text, err := ask(t, url)
			if c.late != (err != nil) || !c.late && text != c.text {
				t.Errorf("%d bytes of %d, %v", len(text), len(c.text), err)
			}
			if text, err := ask(t, url); text != c.text || err != nil {
				t.Errorf("asked again: %d bytes of %d, %v", len(text), len(c.text), err)
			}
			if want := map[bool]int{true: 1, false: 2}[name == "whole"]; p.drawn != want {
				t.Errorf("rendered %d times, want %d", p.drawn, want)
			}
		})
	}
}

// ask has a page unpacked. An error: it did not come whole.
func ask(t *testing.T, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	req.Header.Set("Accept-Encoding", "identity")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // it asks once
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(text), err
}
