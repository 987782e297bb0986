package e2b

import (
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// free is how many bytes of its room an owner has left, as near as 16 KiB.
func (s *dataStage) free(owner string) int {
	ctx, leave := s.data.cfg.Room.Enter(s.t.Context(), owner)
	defer leave()
	n := 0
	for backend.Take(ctx, 16<<10) == nil {
		n += 16 << 10
	}
	return n
}

// alone sends a request on a connection of its own, and gives the answer once its head is there; nothing of its body
// is taken.
func (s *dataStage) alone(r *http.Request, framed bool) *http.Response {
	s.t.Helper()
	own := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: framed, DisableCompression: true, ReadBufferSize: 4 << 10}
	res, err := own.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = res.Body.Close() }) // its other end may have gone
	return res
}

// secured has the stage served over TLS, by both protocols.
func (s *dataStage) secured() {
	s.server.Close()
	s.server = httptest.NewUnstartedServer(backend.Hurried(s.data))
	s.server.EnableHTTP2 = true
	s.server.StartTLS()
	s.t.Cleanup(s.server.Close)
}

// big puts a file into the box that no connection takes at once, and that does not get shorter.
func (s *dataStage) big() {
	s.t.Helper()
	data, random := make([]byte, 12<<20), rand.NewChaCha8([32]byte{})
	_, _ = random.Read(data) // it never fails
	if err := os.WriteFile(filepath.Join(s.box.Files.Root, "home/user/big"), data, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// TestWhatZipsHasItsRoom: a download that is zipped takes the room that zipping takes, for as long as its client takes
// the file, and comes as it is if there is none. One that is not zipped takes none.
func TestWhatZipsHasItsRoom(t *testing.T) {
	s := newDataStage(t)
	s.big()
	owner := "sandbox " + boxID
	all := s.free(owner)
	ctx, cancel := context.WithCancel(t.Context())
	download := func(encoding string) *http.Response {
		r := s.request(http.MethodGet, "/files?path=/home/user/big", nil).WithContext(ctx)
		r.Header.Set("Accept-Encoding", encoding)
		res := s.alone(r, false)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("answered %s", res.Status)
		}
		return res
	}
	if download("identity"); s.free(owner) != all {
		t.Errorf("a download as it is takes %d bytes", all-s.free(owner))
	}
	zipped := 0
	for range backend.RoomEach/zipCost + 4 {
		if res := download("gzip"); res.Header.Get("Content-Encoding") == "gzip" {
			zipped++
		} else if res.ContentLength != 12<<20 {
			t.Errorf("it comes as it is, with %d bytes", res.ContentLength)
		}
	}
	if zipped != backend.RoomEach/zipCost || s.free(owner) >= zipCost {
		t.Errorf("%d are zipped at a time, and %d bytes are left", zipped, s.free(owner))
	}
	cancel()
	for s.free(owner) != all { // once the daemon has seen that they are gone
		if t.Context().Err() != nil {
			t.Fatal("the room does not come back")
		}
	}
}

// TestABodyThatNobodyReadsHasItsRoom: over HTTP/2 the server keeps some of it, also for a visitor of a port; over
// HTTP/1.1, which is the control, it stays with the kernel. A short one takes as much as it has.
func TestABodyThatNobodyReadsHasItsRoom(t *testing.T) {
	const requests = 20
	for name, framed := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			s := newDataStage(t)
			s.secured()
			s.big()
			came, gate := make(chan struct{}, requests), make(chan struct{})
			s.serves(3000, func(http.ResponseWriter, *http.Request) {
				came <- struct{}{}
				<-gate
			})
			t.Cleanup(func() { close(gate) })
			taken := func(owner string, length int64, send func(*http.Request), request func() *http.Request) int {
				before := s.free(owner)
				for range requests {
					r := request()
					body, sender := io.Pipe()
					t.Cleanup(func() { _ = sender.Close() })
					r.Body, r.ContentLength = body, length
					send(r)
				}
				return (before - s.free(owner)) / requests
			}
			download := func() *http.Request { return s.request(http.MethodGet, "/files?path=/home/user/big", nil) }
			visit := func() *http.Request {
				r := s.port("3000", "/")
				r.Method = http.MethodPost
				return r
			}
			wants := func(what string, n, least, most int) {
				if n < least || n > most {
					t.Errorf("%s takes %d bytes, want %d to %d", what, n, least, most)
				}
			}
			buffer := 0
			if framed {
				buffer = backend.ReceiveBuffer
			}
			answered := func(r *http.Request) { s.alone(r, framed) }
			wants("a download", taken("sandbox "+boxID, 2<<20, answered, download), buffer, buffer)
			if framed { // over HTTP/1.1 the server reads a short one before it answers
				wants("a download with a short body", taken("sandbox "+boxID, 8<<10, answered, download), 7<<10, 9<<10)
			}
			visited := func(r *http.Request) {
				go func() {
					res, err := (&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: framed}).RoundTrip(r)
					if err == nil {
						_ = res.Body.Close()
					}
				}()
				<-came
			}
			wants("a visit", taken(backend.Visitors("sandbox "+boxID), 2<<20, visited, visit), visitCost+buffer, visitCost+buffer+32<<10)
		})
	}
}
