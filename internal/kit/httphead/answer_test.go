package httphead_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

const within = 50 * time.Millisecond

// serving serves a handler over both protocols without TLS.
func serving(t *testing.T, do http.HandlerFunc) (url string, framed *http.Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(do)
	var both, alone http.Protocols
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	alone.SetUnencryptedHTTP2(true)
	server.Config.Protocols = &both
	server.Start()
	transport := &http.Transport{Protocols: &alone}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL, &http.Client{Transport: transport}
}

// TestAnswersThatNobodyTakesEnd over each protocol, and behind an upgrade. Over HTTP/2 another stream
// of the connection goes on; and a pause of the server's is not the client's.
func TestAnswersThatNobodyTakesEnd(t *testing.T) {
	ended := make(chan error, 10)
	url, framed := serving(t, func(w http.ResponseWriter, r *http.Request) {
		out := &httphead.Answer{ResponseWriter: w, Within: within}
		if r.URL.Path == "/paused" {
			_, _ = io.WriteString(out, "begun ")
			out.Flush()
			<-time.NewTimer(5 * within).C
			_, _ = io.WriteString(out, "ended")
			return
		}
		var to io.Writer = out
		if r.URL.Path == "/upgraded" {
			conn, _, err := http.NewResponseController(out).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			to = conn
		}
		for piece := make([]byte, 1<<20); ; {
			if _, err := to.Write(piece); err != nil {
				ended <- err
				return
			}
		}
	})
	for _, path := range []string{"/plain", "/upgraded"} {
		conn, err := net.Dial("tcp", url[len("http://"):])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-ended
	}
	stalled, err := framed.Get(url + "/framed")
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Body.Close()
	live, err := framed.Get(url + "/paused")
	if err != nil {
		t.Fatal(err)
	}
	defer live.Body.Close()
	<-ended
	if said, err := io.ReadAll(live.Body); err != nil || string(said) != "begun ended" {
		t.Errorf("a stream beside the one that ended: %q %v", said, err)
	}
	if _, err := io.Copy(io.Discard, stalled.Body); err == nil {
		t.Error("what was broken off looks whole")
	}
}

// TestHalvesOfConnections: who ends one half is still answered on the other.
func TestHalvesOfConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		said, _ := io.ReadAll(conn)
		_, _ = conn.Write(said)
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn := &httphead.Taken{Conn: &httphead.Conn{Conn: raw}, Within: time.Hour}
	defer conn.Close()
	_, _ = io.WriteString(conn, "question\n")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if said, err := bufio.NewReader(conn).ReadString('\n'); err != nil || said != "question\n" {
		t.Errorf("%q %v", said, err)
	}
}

// TestAConnectionThatIsTakenOverHasTheAnswersTime: without one it waits as long as its client does.
func TestAConnectionThatIsTakenOverHasTheAnswersTime(t *testing.T) {
	for _, within := range []time.Duration{0, time.Hour} {
		url, _ := serving(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := (&httphead.Answer{ResponseWriter: w, Within: within}).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\nsaid"); err != nil {
				t.Errorf("within %v: %v", within, err)
			}
		})
		answer, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || string(said) != "said" {
			t.Errorf("within %v: %q %v", within, said, err)
		}
	}
	over := &httphead.Answer{ResponseWriter: httptest.NewRecorder(), Within: time.Hour}
	if conn, _, err := over.Hijack(); err == nil || conn != nil {
		t.Errorf("of no connection: %v %v", conn, err)
	}
}

// ample is an account that has room for everything.
type ample struct{}

func (ample) Take(int64) bool { return true }
func (ample) Give(int64)      {}

// TestFieldsBehindABodyAreBounded over HTTP/2, where each counts its name, its text and 32 bytes.
func TestFieldsBehindABodyAreBounded(t *testing.T) {
	const most = 8 << 10
	for size, whole := range map[int]bool{100: true, most: true, most + 1: false, 3 * most: false} {
		url, framed := serving(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "body")
			w.Header().Set(http.TrailerPrefix+"Behind", strings.Repeat("x", size-len("Behind")-32))
		})
		r, err := http.NewRequestWithContext(httphead.With(t.Context(), ample{}), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := (&httphead.Transport{To: framed.Transport}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(answer.Body)
		answer.Body.Close()
		if (err == nil) != whole || (len(answer.Trailer) > 0) != whole {
			t.Errorf("%d bytes: %v, and %d fields are there", size, err, len(answer.Trailer))
		}
	}
}
