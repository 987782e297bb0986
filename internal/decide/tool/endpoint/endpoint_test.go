package endpoint_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool/endpoint"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool/tooltest"
)

func at(t *testing.T, handle http.HandlerFunc) *endpoint.Endpoint {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	e, err := endpoint.New(server.URL + "/tool?fixed=1")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestSuite(t *testing.T) {
	t.Parallel()
	tooltest.Suite(t, func(t *testing.T, b tooltest.Behaviour) (tool.Runner, <-chan struct{}) {
		t.Helper()
		begun := make(chan struct{})
		return at(t, func(w http.ResponseWriter, r *http.Request) {
			switch b {
			case tooltest.Echo:
				body, _ := io.ReadAll(r.Body)
				_, _ = w.Write(body)
			case tooltest.Deaf:
				_, _ = io.WriteString(w, "ok")
			case tooltest.Silent:
			case tooltest.Fail:
				w.Header().Set("Reason", tooltest.Secret)
				http.Error(w, tooltest.Secret, http.StatusInternalServerError)
			case tooltest.Flood:
				for {
					if _, err := io.WriteString(w, strings.Repeat("x", 4096)); err != nil {
						return
					}
				}
			case tooltest.Hang:
				_, _ = io.Copy(io.Discard, r.Body)
				close(begun)
				<-r.Context().Done()
			case tooltest.Binary:
				_, _ = io.WriteString(w, "\xff\x00")
			case tooltest.WhoAsks:
				fmt.Fprintf(w, "%s %s", r.Header.Get("Cofferdam-Run"), r.Header.Get("Cofferdam-Sandbox"))
			}
		}), begun
	})
}

// TestNothingIsFollowed: a redirect, to wherever it leads, is a failure, and its target
// hears of nothing.
func TestNothingIsFollowed(t *testing.T) {
	t.Parallel()
	reached := make(chan string, 8)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.URL.Path }))
	t.Cleanup(other.Close)
	if answer, err := http.Get(other.URL + "/control"); err != nil { // the control
		t.Fatal(err)
	} else if _ = answer.Body.Close(); <-reached != "/control" {
		t.Fatal("the control is broken")
	}
	for _, status := range []int{301, 302, 303, 307, 308, 204, 404} {
		e := at(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", other.URL)
			w.WriteHeader(status)
		})
		_, err := e.Run(t.Context(), tool.Call{Arguments: `{}`, MaxOutput: 100})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(status)) {
			t.Errorf("%d: %v", status, err)
		}
	}
	if len(reached) > 0 {
		t.Error("a redirect was followed")
	}
}

// TestCompressionIsNotUndone: a small answer can't become a large one.
func TestCompressionIsNotUndone(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(bytes.Repeat([]byte("x"), 1<<20))
	_ = z.Close()
	e := at(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("it is asked for %s", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	})
	if got, err := e.Run(t.Context(), tool.Call{Arguments: `{}`, MaxOutput: 1 << 20}); err == nil {
		t.Errorf("%d bytes", len(got))
	}
}

func TestURLsThatCanNotBe(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "host/x", "ftp://h/", "http://", "http://a:b@h/", "http://h/#x", "http:x", "unix:///run/x"} {
		if _, err := endpoint.New(address); err == nil {
			t.Errorf("%q: nothing is wrong", address)
		}
	}
	if _, err := endpoint.New("http://127.0.0.1:9000/tool"); err != nil {
		t.Error(err)
	}
}
