package delivery_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/artifacts"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/delivery"
)

const content = "the bytes of a file"

// oneDecision is a door that says the same of everything.
type oneDecision struct {
	decision policy.Decision
	failure  error
	asks     []door.ServeAsk
	sent     int
	aborted  []int64
}

func (d *oneDecision) Judge(context.Context, door.JudgeAsk) (door.Answer, error) {
	return door.Answer{Decision: d.decision, Seq: 7}, d.failure
}

func (d *oneDecision) Serve(_ context.Context, ask door.ServeAsk) (door.Answer, error) {
	d.asks = append(d.asks, ask)
	return door.Answer{Decision: d.decision, Seq: 7}, d.failure
}

func (d *oneDecision) Show(context.Context, door.Showing) error { return d.failure }

func (d *oneDecision) Sent(context.Context, string, uint64) error {
	d.sent++
	return nil
}

func (d *oneDecision) Aborted(_ context.Context, _ string, _ uint64, sent int64) error {
	d.aborted = append(d.aborted, sent)
	return nil
}

// recorder takes a reader, as the server's answers do.
type recorder struct{ *httptest.ResponseRecorder }

func (r recorder) ReadFrom(from io.Reader) (int64, error) { return io.Copy(r.ResponseRecorder, from) }

// verifiedFile is a file that the cache has, with its sha256 in hex.
func verifiedFile(t *testing.T) (v *artifacts.Verified, sum string) {
	t.Helper()
	store, err := cache.Open(t.TempDir(), cache.Limits{Reserve: 1})
	if err != nil {
		t.Fatal(err)
	}
	out, err := store.Create(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = out.Write([]byte(content))
	if err = errors.Join(err, out.Commit()); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	as := artifacts.New(artifacts.Config{Store: store, Flights: coalesce.New(log), Ahead: 1, Log: log, Now: time.Now})
	digest := sha256.Sum256([]byte(content))
	sum = hex.EncodeToString(digest[:])
	v, _, err = as.Cached(artifacts.Wanted{Key: cache.Key{File: "a"}, Digest: "sha256:" + sum})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v, sum
}

// TestOnlyWhatIsAllowedIsSent: of a file about which the door says anything but that it
// may be had no byte is sent, whatever is done with what Judge gives.
func TestOnlyWhatIsAllowedIsSent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		door oneDecision
		want bool
	}{
		"allowed":  {oneDecision{decision: policy.Decision{Effect: policy.Allow}}, true},
		"held":     {oneDecision{decision: policy.Decision{Effect: policy.Hold}}, false},
		"denied":   {oneDecision{decision: policy.Decision{Effect: policy.Deny}}, false},
		"nothing":  {oneDecision{}, false},
		"an error": {oneDecision{decision: policy.Decision{Effect: policy.Allow}, failure: errors.New("no record")}, false},
	} {
		v, sum := verifiedFile(t)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/a", nil)
		ask := door.ServeAsk{FileAsk: door.FileAsk{Sandbox: "sb", Digests: []string{"sha256:" + sum}}}
		d := &test.door
		j, answer, ok, err := delivery.Judge(r, d, ask, []string{"a/b"}, v)
		if ok != test.want || (err != nil) != (d.failure != nil) || answer.Decision.Effect != d.decision.Effect {
			t.Errorf("%s: %v, %v, %v", name, ok, answer.Decision.Effect, err)
		}
		first := d.asks[0]
		if first.SHA256 != sum || first.Size != int64(len(content)) || first.Part != "" || len(first.Paths) != 1 {
			t.Errorf("%s: the door was asked about %+v", name, first)
		}
		w := recorder{httptest.NewRecorder()}
		err = j.Send(w, r)
		if got := w.Code == http.StatusOK && w.Body.String() == content; got != test.want || (err == nil) != test.want {
			t.Errorf("%s: %d %q, %v", name, w.Code, w.Body, err)
		}
		if !test.want && (w.Code < 400 || d.sent+len(d.aborted) > 0) {
			t.Errorf("%s: %d; the door heard of %d and %d", name, w.Code, d.sent, len(d.aborted))
		}
		if test.want && d.sent != 1 {
			t.Errorf("%s: the door was not told that all of it has left", name)
		}
	}
}

// TestHeadReadsNothing: the answer to HEAD has the size of what was not judged, and
// none of its bytes.
func TestHeadReadsNothing(t *testing.T) {
	t.Parallel()
	v, sum := verifiedFile(t)
	w := httptest.NewRecorder()
	delivery.Head(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/a", nil), v)
	if w.Code != http.StatusOK || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "19" || w.Header().Get("ETag") != `"sha256:`+sum+`"` {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
}

// TestWhatIsNotOnRecordIsNotShown: metadata whose showing could not be recorded has
// nothing to send.
func TestWhatIsNotOnRecordIsNotShown(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"on record": nil, "not on record": errors.New("no record")} {
		s, err := delivery.Show(t.Context(), &oneDecision{failure: failure}, door.Showing{File: "a.mod"}, []byte("module a"))
		if !errors.Is(err, failure) {
			t.Errorf("%s: %v", name, err)
		}
		w := httptest.NewRecorder()
		s.Send(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/a", nil), "text/plain", "e")
		if shown := w.Code == http.StatusOK && w.Body.String() == "module a"; shown != (failure == nil) || failure != nil && w.Code < 400 {
			t.Errorf("%s: %d %q", name, w.Code, w.Body)
		}
	}
}
